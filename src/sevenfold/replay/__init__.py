"""Analyzes recorded sessions of any agent: what they cost, where the cache broke, what filled the context.

In reading order:

- `calls`: model calls, put together from the entries of a transcript; cache breaks and their causes.
- `bills`: what calls cost, by model, and what each tool result cost.
- `context_fill`: what filled the context, call by call.
- `account`: all of the above for one transcript file.
- `parallel`: many files, in several processes.
- `stored_reports`: the accounts of earlier runs, so that only what changed is read again.
- `report`: the report over all files, as values and as JSON.
- `mcp_servers`: what the tools of MCP servers weigh, and whether they were used.
- `groups`: what sessions cost by day, week, project, model or session; CSV.
- `advice`: what to do about the bill, with dollars, evidence and a command.
- `savings`: what Sevenfold would have saved, for a report.
- `anonymous`: a report without paths, names, commands and prompts.
- `picture`: the bill as one picture to share.
- `page/`: the report as an HTML page.
- `policies/`: what a session would have cost with other policies for clearing tool results.
- `sample/`: a recorded session to try `sevenfold replay` on.

`store/foreign` reads the transcripts; nothing here knows their formats.
"""
