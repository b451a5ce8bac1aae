"""Shared memory for a team.

- `protocol`: the rule by which shared memories change, used by client and server.
- `client`: exchanges the memories of a project with a server.
- `server`: the team server.

`client` and `server` do not import each other.
"""
