"""Sevenfold under other people's agent loops.

- `anthropic_sdk`: `attach`, the layers under a client of the Anthropic SDK.
- `conversations`: which conversation a request of that client belongs to.
- `anthropic_stream`: answers on their way to the caller: streams that are read along, and refusals.
- `memory_tool`: the Anthropic memory tool, served from a project's memories.
- `mcp_server/`: `sevenfold mcp`, a server for any agent that speaks MCP.
"""
