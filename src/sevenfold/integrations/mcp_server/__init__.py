"""`sevenfold mcp`: an MCP server with the memory, the past sessions and the spend of a project.

Agents start it before each session and wait for its first answer. So it is written for a fast start: on the
way to that answer it imports a few modules of the standard library and this folder, and nothing else.

- `protocol`: versions of MCP, JSON-RPC errors, and what each version adds to a result. Pure.
- `catalog`: the tools, prompts and resources. Their texts are constant: they are part of the cached prefix.
- `dispatch`: answers a message; progress and cancellation of requests that are under way.
- `backend`: what tools and resources do, through the resident process or in this one.
- `stdio`: one message a line on standard input and output.
- `streamable_http`: streamable HTTP on this machine.
"""
