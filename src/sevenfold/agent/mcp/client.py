"""The MCP client: servers are connected in the background, and their tools are tools like any other.

The list of tools is part of the cached prefix and never changes in a session. So what is not known when the
first request goes out, or has too large a schema to stand in every prompt, is listed by name in the context,
looked up with `tool_search` and called with `mcp_call`, which are declared from the start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Self

from sevenfold.agent.mcp.catalog import choose_declared, find_declared_tools
from sevenfold.agent.mcp.connection import FIRST_RECONNECT_WAIT, McpConnection
from sevenfold.agent.mcp.connections import McpConnections
from sevenfold.agent.mcp.tools import MCP_CALL_NAME, TOOL_SEARCH_NAME, McpCallTool, McpTool, ToolSearchTool
from sevenfold.agent.mcp.transport import ServerEnvironment
from sevenfold.agent.tool import Tool
from sevenfold.core.events import Emit, McpDeferred, McpSkipped, ignore_event
from sevenfold.core.json import JsonObject
from sevenfold.core.settings.mcp import McpServer, McpSettings
from sevenfold.layers.compaction.restore_policy import Extra
from sevenfold.layers.context.sources import ContextSource

STARTED_WITHOUT_SERVERS = (
    "this session began without MCP servers, and its list of tools cannot change; begin a new one"
)
_EXTRA = "the mcp package is not installed: install sevenfold[mcp]"


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
        first_wait: timedelta = FIRST_RECONNECT_WAIT,
    ) -> Self:
        """Begin to connect to all of them. Returns at once."""
        place = ServerEnvironment(cwd, environ)
        links: list[McpConnection] = []
        if servers and not _has_library():
            emit(McpSkipped(", ".join(servers), _EXTRA))
        elif servers:
            # The library logs what we tell as events; with nobody listening it would print.
            library = logging.getLogger("mcp")
            if not library.handlers:
                library.addHandler(logging.NullHandler())
            links = [
                McpConnection(name, server, settings, place, emit, first_wait=first_wait)
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

        Servers are waited for, for a moment. A session that goes on hands in what it has declared, and gets
        exactly the same, whatever its servers offer now.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.start_seconds):
                await self._links.wait_tried()
        if declared is not None:
            return self._tools_before(tuple(declared))
        if not self._links.links:
            return ()
        listed = {link.name: link.tools for link in self._links}
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
            for link in self._links:
                self._emit(McpDeferred(link.name, STARTED_WITHOUT_SERVERS))
            return ()
        self._is_reachable = True
        return (*(McpTool(spec, self._links) for spec in specs), self._search, McpCallTool(self._links))

    def sources(self) -> tuple[ContextSource, ...]:
        """What the model is told of each server: its instructions, and its tools that are not in the list."""
        return tuple(
            ContextSource("mcp", self._said(link), link.name)
            for link in self._links
            if link.tools is not None and self._is_reachable
        )

    def discovered(self) -> tuple[Extra, ...]:
        """Schemas that were looked up: to be put back after a compaction."""
        return self._search.extras()

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
