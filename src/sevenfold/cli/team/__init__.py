"""`sevenfold team` and `sevenfold serve`.

- `context`: the shared memories of a project, opened for a command, and how their state is shown.
- `command`: the actions of `sevenfold team`.
- `serve`: `sevenfold serve`: runs a server.
- `serve_admin`: the actions of `sevenfold serve` for administrators.
"""
