"""The MCP client of an agent: connects to servers in the background, and the tools that call them.

The list of tools is part of the cached prefix and never changes in a session. So a tool that is not known
when the first request is sent, or whose schema is too large for every prompt, is listed by name in the
context, looked up with `tool_search` and called with `mcp_call`. Both are declared from the start. A model
that calls such a tool by its name gets the same answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self

from sevenfold.agent.mcp.connection import FIRST_RECONNECT_WAIT, McpConnection, McpConnections
from sevenfold.agent.mcp.listings import ListingStore
from sevenfold.agent.mcp.servers import ServerEnvironment
from sevenfold.agent.mcp.tool_values import (
    ServerTool,
    choose_declared,
    count_output_bytes,
    find_declared_tools,
    find_tools,
)
from sevenfold.agent.tool import AccessRequest, OnProgress, Tool, ToolOutput, ToolSpec
from sevenfold.core.errors import InputError, describe_missing
from sevenfold.core.events import Emit, McpDeferred, McpSkipped, UntrustedEntered, ignore_event
from sevenfold.core.json import JsonObject, freeze_object, write_json
from sevenfold.core.settings.sections import McpServer, McpSettings
from sevenfold.core.text.safe_text import fence_text
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.context import ContextSource

TOOL_SEARCH_NAME, MCP_CALL_NAME = "tool_search", "mcp_call"
MAX_SUMMARY_TEXT_CHARS = 200


async def call_server_tool(
    links: McpConnections, name: str, given: JsonObject, on_progress: OnProgress
) -> ToolOutput:
    """Call a server's tool by our name for it."""
    link = links.connection_of(name)
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

    def find_deferred(self, name: str) -> Tool | None:
        """The tool of that name, though it is not declared; also one of a server that is still starting."""
        tool = self._links.find_called(name)
        if tool is not None:
            return McpTool(tool.spec, self._links)
        owner = self._links.connection_of(name)
        if owner is None or owner.tools is not None:
            return None
        return McpTool(ToolSpec(name, "", JsonObject()), self._links)


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


@dataclass(frozen=True, slots=True)
class ServerSummary:
    """A server as a person is told of it."""

    name: str
    failure: str
    """Why it is not connected; empty where it is."""
    tools: tuple[str, ...]
    """By the names that it gives them: what it lists, or did the last time."""


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

    def list_servers(self) -> tuple[ServerSummary, ...]:
        """All of them, connected or not."""
        return tuple(
            ServerSummary(link.name, link.failure, tuple(tool.own_name for tool in link.tools or ()))
            for link in self._links.links
        )

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


STARTED_WITHOUT_SERVERS = (
    "this session began without MCP servers, and its list of tools cannot change; begin a new one"
)


class McpClient:
    """The connections of one agent, and the tools that come with them."""

    def __init__(self, links: Sequence[McpConnection], settings: McpSettings, emit: Emit) -> None:
        self._links = McpConnections(links)
        self._settings, self._emit = settings, emit
        self._declared: frozenset[str] = frozenset()
        self._is_reachable = False
        """The session has the tools by which servers are reached."""
        self._search = ToolSearchTool(self._links)

    @classmethod
    def start(
        cls,
        servers: Mapping[str, McpServer],
        settings: McpSettings,
        *,
        cwd: Path,
        environ: Mapping[str, str],
        emit: Emit = ignore_event,
        listings: ListingStore | None = None,
        first_wait: timedelta = FIRST_RECONNECT_WAIT,
    ) -> Self:
        """Begin to connect to all of them. Returns at once."""
        place = ServerEnvironment(cwd, environ)
        links: list[McpConnection] = []
        if servers and not _has_library():
            emit(McpSkipped(", ".join(servers), describe_missing("an MCP server", ["mcp"], "mcp")))
        elif servers:
            # The library logs what we tell as events; with nobody listening it would print.
            library = logging.getLogger("mcp")
            if not library.handlers:
                library.addHandler(logging.NullHandler())
            links = [
                McpConnection(name, server, settings, place, emit, listings=listings, first_wait=first_wait)
                for name, server in servers.items()
            ]
        for link in links:
            link.start()
        return cls(links, settings, emit)

    def share(self) -> McpClient:
        """The same connections for another session, with a list of tools of its own. Whoever started them
        closes them."""
        return McpClient(self._links.links, self._settings, self._emit)

    async def tools(self, declared: Iterable[JsonObject] | None = None) -> tuple[Tool, ...]:
        """The tools for a session's list, which are the same from now on.

        Servers of which nothing is known are waited for, once. A session that goes on hands in what it has
        declared, and gets exactly the same, whatever its servers offer now.
        """
        if self._links.links:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.start_seconds):
                    await self._links.wait_listed()
        if declared is not None:
            return self._tools_before(tuple(declared))
        if not self._links.links:
            return ()
        await asyncio.gather(*(link.keep_late() for link in self._links.links))
        listed = {link.name: link.first_tools for link in self._links.links}
        choice = choose_declared(listed, self._settings.schema_tokens)
        for server, reason in choice.deferred.items():
            self._emit(McpDeferred(server, reason))
        self._is_reachable = True
        self._declared = frozenset(tool.name for tool in choice.declared)
        own = (McpTool(tool.spec, self._links) for tool in choice.declared)
        return (*own, self._search, McpCallTool(self._links))

    def _tools_before(self, declared: Sequence[JsonObject]) -> tuple[Tool, ...]:
        specs = find_declared_tools(declared)
        self._declared = frozenset(spec.name for spec in specs)
        if not {TOOL_SEARCH_NAME, MCP_CALL_NAME} <= {tool.get("name") for tool in declared}:
            for link in self._links.links:
                self._emit(McpDeferred(link.name, STARTED_WITHOUT_SERVERS))
            return ()
        self._is_reachable = True
        return (*(McpTool(spec, self._links) for spec in specs), self._search, McpCallTool(self._links))

    @property
    def has_servers(self) -> bool:
        return bool(self._links.links)

    def sources(self) -> tuple[ContextSource, ...]:
        """What the model is told of each server: its instructions, and its tools that are not in the list."""
        return tuple(
            ContextSource("mcp", self._said(link), link.name)
            for link in self._links.links
            if link.tools is not None and self._is_reachable
        )

    async def close(self) -> None:
        """End every connection and the programs behind them."""
        await self._links.close()

    def _said(self, link: McpConnection) -> str:
        parts = [link.instructions.strip()]
        deferred = [tool for tool in link.tools or () if tool.name not in self._declared]
        if deferred:
            lines = (f"- {tool.name}: {_first_line(tool.description)}" for tool in deferred)
            head = (
                f"Tools that are not in the list; look one up with {TOOL_SEARCH_NAME}, then call it "
                f"with {MCP_CALL_NAME}:"
            )
            parts.append("\n".join((head, *lines)))
        return "\n\n".join(filter(None, parts))


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 100 else line[:100] + "…"


def _has_library() -> bool:
    from importlib.util import find_spec

    return find_spec("mcp") is not None
