"""`sevenfold team` and `sevenfold serve`.

- `context`: the shared memories of a project, opened for a command, and how their state is shown.
- `command`: the actions of `sevenfold team`.
- `serve`: `sevenfold serve`: opens the database and runs a server.
- `serve_admin`: the actions of `sevenfold serve` for administrators.
"""
