"""`sevenfold replay`.

- `command`: runs the command.
- `outputs`: text, JSON, CSV, lists by day and the like, a page, a picture.
- `view`: the report on a terminal: costs, cache breaks and what to do.
- `contents`: the rest of the report: what filled the context, and the list of sessions.
- `sources`: where transcripts are.
- `proxied`: `--proxy`: what went through a proxy.
- `policy`: `--policy`: what sessions would have cost under a policy for clearing results.
"""
