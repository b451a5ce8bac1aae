"""The terminal agent: a loop over a `Session`, its tools, and the terminal interface.

In reading order:

- `tool`: the `Tool` protocol, access requests and tool events.
- `loop/`: one agent and its turns.
- `opening/`: builds an agent from settings: session, model, tools and background work.
- `tools/`: the built-in tools and the executor that runs calls.
- `permissions/`: decides whether a call may run, and asks a person.
- `sandbox/`: runs shell commands with restricted access to files and network.
- `hooks/`: user commands that run before and after an agent's actions.
- `mcp/`: a client for MCP servers.
- `subagents/`: agents that an agent starts, and messages between them.
- `tui/`: chat in a terminal, and single runs for scripts.
- `prompts/`: the system prompt.
"""
