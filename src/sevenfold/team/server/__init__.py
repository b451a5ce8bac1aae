"""The team server: shared memories over HTTP, on SQLite or PostgreSQL.

- `operations`: the table of all operations: route, right, input and output.
- `messages`: what goes over the wire, and errors.
- `http_api`: a request from HTTP to its operation and back; metrics and the request log.
- `app_state`: what operations work with, access control, and request bodies.
- `policy`: who may do what, limits and rates, and the audit log of who did what.
- `memory`, `commits`: a repository's memories, and applying a commit to them.
- `admin_endpoints`: operations on people, tokens, repositories and the audit log; signing a device in.
- `people`, `repos`: organisations and tokens, repositories and their proof.
- `scanning`: looking for secrets in what clients send.
- `database`, `sqlite`, `postgres`: transactions and migrations, and the two databases.
- `http_server`: listening on a port, timeouts, and rates across processes.
- `backup`: a copy of a whole server in one file.

The server knows the protocol and not the engine: it imports nothing of `session`, `layers` or `agent`.
"""
