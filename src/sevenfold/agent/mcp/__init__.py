"""A client for MCP servers: their tools appear as tools of the agent.

- `servers`: which servers there are; starts a process or connects to a URL. Servers of a repository need a
  person's consent.
- `child_supervisor`: a separate process that ends a server with everything it started.
- `connection`: one connection per server, with reconnects.
- `tool_values`: tools and results of servers as plain values, with safe names and size limits.
- `listings`: what servers listed the last time, so that the list of tools does not depend on who is up first.
- `client`: the connections of an agent and the tools that use them.
"""
