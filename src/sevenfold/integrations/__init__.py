"""Sevenfold under other people's agent loops.

- `attached_client`: `attach`, the layers under a client of the SDK of Anthropic or OpenAI.
- `langchain`: `attach_model`, the same under a chat model of LangChain.
- `anthropic_sdk`: the middleware of an Anthropic client, for Bedrock and Vertex too.
- `openai_sdk`: the transport of an OpenAI client: Chat Completions and Responses.
- `conversations`: which conversation a request of an attached client belongs to.
- `reply_stream`: answers on their way to the caller: streams that are read along, and refusals.
- `memory_tool`: the Anthropic memory tool, served from a project's memories.
- `mcp_server/`: `sevenfold mcp`, a server for any agent that speaks MCP.
"""
