"""The tools that reach MCP servers: one for each that is declared, one that looks others up, one that calls
them."""

from __future__ import annotations

from sevenfold.agent.mcp.catalog import ServerTool, find_tools
from sevenfold.agent.mcp.connections import McpConnections
from sevenfold.agent.mcp.results import count_output_bytes
from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.core.errors import InputError
from sevenfold.core.events import UntrustedEntered
from sevenfold.core.json import JsonObject, freeze_object, write_json
from sevenfold.core.text.fences import fence_text
from sevenfold.core.tool_context import ToolContext
from sevenfold.layers.compaction.restore_policy import Extra

TOOL_SEARCH_NAME, MCP_CALL_NAME = "tool_search", "mcp_call"
MAX_SUMMARY_TEXT_CHARS = 200


async def call_server_tool(
    links: McpConnections, name: str, given: JsonObject, on_progress: OnProgress
) -> ToolOutput:
    """Call a server's tool by our name for it."""
    link = links.link_of(name)
    if link is None:
        return ToolOutput(
            f"no MCP server has a tool called {name}; look for one with {TOOL_SEARCH_NAME}", is_error=True
        )
    tool = links.find(name)
    own = tool.own_name if tool else name.partition(f"__{link.name}__")[2]
    return await link.call(own, given, on_progress)


def _outside(name: str, given: JsonObject) -> AccessRequest:
    said = f"{name} {write_json(given).decode('utf-8', 'replace')}"
    return AccessRequest(
        kind="outside",
        tool=name,
        said=said if len(said) <= MAX_SUMMARY_TEXT_CHARS else said[:MAX_SUMMARY_TEXT_CHARS] + "…",
    )


class McpTool:
    """A server's tool that stands in the list."""

    def __init__(self, spec: ToolSpec, links: McpConnections) -> None:
        self._spec, self._links = spec, links

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        del place
        return _outside(self._spec.name, given)

    async def run(self, given: JsonObject, place: ToolContext, on_progress: OnProgress) -> ToolOutput:
        del place
        return await call_server_tool(self._links, self._spec.name, given, on_progress)


_CALL_SPEC = ToolSpec(
    MCP_CALL_NAME,
    f"Call a tool of an MCP server that is not in the list of tools. Look up its schema with "
    f"{TOOL_SEARCH_NAME} first.",
    freeze_object(
        {
            "type": "object",
            "properties": {
                "tool": {"type": "string", "description": "Its name: mcp__server__tool."},
                "arguments": {"type": "object", "description": "As its schema says."},
            },
            "required": ["tool", "arguments"],
        }
    ),
)


class McpCallTool:
    """Calls a server's tool that does not stand in the list."""

    def __init__(self, links: McpConnections) -> None:
        self._links = links

    @property
    def spec(self) -> ToolSpec:
        return _CALL_SPEC

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        del place
        return _outside(_tool(given), _arguments(given))

    async def run(self, given: JsonObject, place: ToolContext, on_progress: OnProgress) -> ToolOutput:
        del place
        return await call_server_tool(self._links, _tool(given), _arguments(given), on_progress)


def _tool(given: JsonObject) -> str:
    name = given.get("tool")
    if not isinstance(name, str) or not name:
        raise InputError(f"tool is {name!r}; expected the name of an MCP tool, such as mcp__server__tool")
    return name


def _arguments(given: JsonObject) -> JsonObject:
    arguments = given.get("arguments", JsonObject())
    if not isinstance(arguments, JsonObject):
        raise InputError("arguments is no object; give the tool's arguments by name")
    return arguments


_SEARCH_SPEC = ToolSpec(
    TOOL_SEARCH_NAME,
    "Look up tools of MCP servers that are not in the list of tools: what they do and their schemas. "
    f"Call what was found with {MCP_CALL_NAME}.",
    freeze_object(
        {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Names of tools, or words."}},
            "required": ["query"],
        }
    ),
    is_parallel=True,
)


class ToolSearchTool:
    """Looks tools up, and remembers which, so that a compaction does not lose them."""

    def __init__(self, links: McpConnections) -> None:
        self._links = links
        self._found: dict[str, ServerTool] = {}

    @property
    def spec(self) -> ToolSpec:
        return _SEARCH_SPEC

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        del place
        return AccessRequest(kind="nothing", said=f"look up tools: {_query(given)}")

    async def run(self, given: JsonObject, place: ToolContext, on_progress: OnProgress) -> ToolOutput:
        del on_progress
        found = find_tools(self._links.known, _query(given))
        if not found:
            # A server may offer more than it did when it was connected.
            await self._links.list_again()
            found = find_tools(self._links.known, _query(given))
        if not found:
            names = "\n".join(tool.name for tool in self._links.known) or "none: no server is connected"
            return ToolOutput(f"No tool fits. There are:\n{names}")
        for tool in found:
            self._found.pop(tool.name, None)
            self._found[tool.name] = tool
        output = ToolOutput("\n\n".join(map(_shown, found)))
        place.emit(UntrustedEntered("mcp", TOOL_SEARCH_NAME, count_output_bytes(output)))
        return output

    def extras(self) -> tuple[Extra, ...]:
        """The schemas that were looked up, the newest first."""
        return tuple(Extra("tools", tool.name, _shown(tool)) for tool in reversed(self._found.values()))


def _query(given: JsonObject) -> str:
    query = given.get("query")
    if not isinstance(query, str) or not query.strip():
        raise InputError(f"query is {query!r}; expected names of tools, or words that describe one")
    return query


def _shown(tool: ServerTool) -> str:
    schema = write_json(tool.schema).decode("utf-8", "replace")
    return fence_text("tool", f"{tool.description}\nInput schema: {schema}", label=tool.name)
