"""Connections to MCP servers.

`McpConnection` is one server: a task connects, keeps the connection open, and reconnects when it ends.
`McpConnections` holds those of one agent, and every tool that was ever listed through them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, cast

from sevenfold.agent.mcp.listings import ListingStore, ServerListing
from sevenfold.agent.mcp.servers import ServerEnvironment, StderrTail, open_transport, watch_transport
from sevenfold.agent.mcp.tool_values import (
    MCP_TOOL_PREFIX,
    ServerTool,
    count_output_bytes,
    make_server_tool,
    make_tool_name,
    parse_tool_result,
    with_unique_names,
)
from sevenfold.agent.tool import OnProgress, ToolOutput
from sevenfold.core.errors import InputError, WireError
from sevenfold.core.events import Emit, McpConnected, McpFailed, McpSkipped, UntrustedEntered
from sevenfold.core.json import JsonObject, freeze_object, thaw
from sevenfold.core.settings.sections import McpServer, McpSettings
from sevenfold.core.system import run_blocking

if TYPE_CHECKING:
    import anyio
    from mcp.client import Client, ClientRequestContext
    from mcp.shared.exceptions import MCPError
    from mcp_types import ListRootsResult


MAX_TOOLS, MAX_PAGES = 500, 50
"""A server that lists more is broken, or means harm."""
MAX_INSTRUCTIONS_CHARS = 8_000
"""Characters: two pages. They stand in the prompt from beginning to end."""
FIRST_RECONNECT_WAIT = timedelta(seconds=1)
_LONGEST_WAIT = timedelta(minutes=5)
MAX_CONNECT_TRIES = 6
"""After so many in a row that failed, only a call of one of its tools starts another."""


class McpConnection:
    """The connection to one server. Everything of the client's library happens in one task."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        settings: McpSettings,
        place: ServerEnvironment,
        emit: Emit,
        *,
        listings: ListingStore | None = None,
        first_wait: timedelta = FIRST_RECONNECT_WAIT,
    ) -> None:
        self.name = name
        self._listings = listings or ListingStore()
        self.kept = self._listings.find(name, server)
        """What it listed in an earlier session; None: nothing is known."""
        is_known = self.kept is not None and not self.kept.was_late
        self.tools: tuple[ServerTool, ...] | None = self.kept.tools if self.kept and is_known else None
        """What it lists now, or did before it was connected; None: nothing is known."""
        self.instructions = self.kept.instructions if self.kept else ""
        self._server, self._settings, self._place, self._emit = server, settings, place, emit
        self._first_wait = first_wait
        self._client: Client | None = None
        self._failure = "it is still starting"
        self._failures = 0
        self._outcome = asyncio.Event()
        """The attempt is over, either way; not set while one is under way."""
        self._ended = asyncio.Event()
        self._closing = asyncio.Event()
        self._wanted = asyncio.Event()
        self._is_resting = False
        """No further attempt is made unless it is wanted."""
        self._scope: anyio.CancelScope | None = None
        """Of the attempt that is under way."""
        self._is_open = False
        self._task: asyncio.Task[None] | None = None

    @property
    def failure(self) -> str:
        """Why it is not connected; empty where it is."""
        return self._failure if self._client is None else ""

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"mcp {self.name}")

    async def wait_listed(self) -> None:
        """Until its tools are known, or that it cannot be reached. One that was late before is not waited
        for, and one whose tools are known neither."""
        if self.kept is None:
            await self._outcome.wait()

    @property
    def first_tools(self) -> tuple[ServerTool, ...] | None:
        """What a session that begins now declares: what was kept, whatever the server has said since."""
        return self.tools if self.kept is None else None if self.kept.was_late else self.kept.tools

    async def keep_late(self) -> None:
        """Have later sessions not wait for a server that was waited for in vain."""
        if self.kept is None and self.tools is None:
            late = ServerListing(was_late=True)
            await run_blocking(lambda: self._listings.keep(self._server, late))

    async def call(self, tool: str, given: JsonObject, on_progress: OnProgress) -> ToolOutput:
        """Call a tool; what goes wrong is an output that says so."""
        client = await self._find_client()
        if client is None:
            return _failed(f"the MCP server {self.name} is not connected: {self._failure}; try again later")
        from mcp.shared.exceptions import MCPError

        async def show(progress: float, total: float | None, message: str | None) -> None:
            on_progress(f"{message or 'progress'} {progress:g}{f'/{total:g}' if total else ''}\n")

        try:
            result = await client.call_tool(
                tool,
                {key: thaw(value) for key, value in given.items()},
                read_timeout_seconds=self._settings.call_seconds,
                progress_callback=show,
            )
        except MCPError as error:
            return self._refused(tool, error)
        except Exception as error:  # whatever a server or its library comes up with ends this call alone
            return self._lost(tool, _reason(error))
        output = parse_tool_result(result)
        self._emit(UntrustedEntered("mcp", make_tool_name(self.name, tool), count_output_bytes(output)))
        return output

    async def list_again(self) -> None:
        """Ask a server that is connected what it offers now. If it does not say, the old list stays."""
        client = self._client
        if client is not None:
            try:
                self.tools = await self._list(client)
            except Exception as error:  # as for a call
                self._emit(McpSkipped(self.name, f"its tools could not be listed again: {_reason(error)}"))

    async def close(self) -> None:
        """End the connection and the program behind it, within a few seconds."""
        for event in (self._closing, self._ended, self._wanted):
            event.set()
        if self._scope is not None and self._is_open:
            self._scope.cancel()
        if self._task is not None:
            await asyncio.wait({self._task})

    def _opened(self) -> None:
        """Only from here on may connecting be cut short: a program in mid-start would be left behind."""
        self._is_open = True
        if self._scope is not None and self._closing.is_set():
            self._scope.cancel()

    def _refused(self, tool: str, error: MCPError) -> ToolOutput:
        from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, REQUEST_TIMEOUT

        if error.code == REQUEST_TIMEOUT:
            limit = f"it took over {self._settings.call_seconds:,} s (mcp_client.call_seconds)"
            return _failed(_unsure(self.name, tool, limit))
        # Over HTTP a server that went away or forgot us answers in words of the library's.
        lost = (INVALID_REQUEST, INTERNAL_ERROR) if self._server.url else ()
        if error.code in (CONNECTION_CLOSED, *lost):
            return self._lost(tool, error.message)
        return _failed(f"{self.name} refused the call of {tool}: {error.message}")

    def _lost(self, tool: str, reason: str) -> ToolOutput:
        """The connection is of no more use: the task makes another one."""
        self._client, self._failure = None, reason
        self._ended.set()
        return _failed(_unsure(self.name, tool, reason))

    async def _find_client(self) -> Client | None:
        """The connection. One that is being made is waited for; between two attempts nobody waits."""
        if self._is_resting:
            self._outcome.clear()
            self._wanted.set()
        if self._client is None and not self._outcome.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.connect_seconds):
                    await self._outcome.wait()
        return self._client

    async def _run(self) -> None:
        while not self._closing.is_set():
            began = monotonic()
            self._outcome.clear()
            words = StderrTail()
            try:
                async with self._connection(words) as client:
                    await self._greet(client, monotonic() - began)
                    await self._ended.wait()
                reason = "the connection ended"
            except InputError as error:
                self._give_up(str(error))
                return
            except Exception as error:  # a server is anybody's program, and must not end ours
                reason = _reason(error)
            finally:
                self._client = None
                said = words.text
                words.close()
            if not self._closing.is_set():
                await self._wait_again(f"{reason}; it said: {said}" if said else reason)

    @asynccontextmanager
    async def _connection(self, words: StderrTail) -> AsyncGenerator[Client]:
        """A client that has shaken hands. No task is cancelled: that could leave a process behind."""
        import anyio
        from mcp.client import Client

        self._ended.clear()
        limit = self._settings.connect_seconds
        async with open_transport(self._server, self._place, words) as transport:
            with anyio.move_on_after(limit) as scope:
                self._scope, self._is_open = scope, False
                seen = watch_transport(transport, self._ended, self._opened)
                async with Client(seen, cache=None, list_roots_callback=self._list_roots) as client:
                    yield client
            if scope.cancelled_caught:
                raise TimeoutError(f"no connection within {limit} s (mcp_client.connect_seconds)")

    async def _list_roots(self, context: ClientRequestContext) -> ListRootsResult:
        """The folder that servers work in: they ask for it to know which files are meant."""
        from mcp_types import ListRootsResult, Root

        del context
        cwd = self._place.cwd.absolute()
        return ListRootsResult(roots=[Root.model_validate({"uri": cwd.as_uri(), "name": cwd.name})])

    async def _greet(self, client: Client, seconds: float) -> None:
        tools, server = await self._list(client), client.server_info
        found = ServerListing(
            server_name=server.name[:200] if server else "",
            server_version=server.version[:200] if server else "",
            instructions=(client.instructions or "")[:MAX_INSTRUCTIONS_CHARS],
            tools=tools,
        )
        if self.kept is None or self.kept.was_late or not found.is_same(self.kept):
            self.tools, self.instructions = found.tools, found.instructions
            await run_blocking(lambda: self._listings.keep(self._server, found))
        else:
            self.tools = self.kept.tools
        if self._scope is not None:
            self._scope.deadline = math.inf  # calls have a limit of their own
            self._scope = None
        self._client, self._failures = client, 0
        self._emit(McpConnected(self.name, len(tools), round(seconds * 1_000)))
        self._outcome.set()

    async def _list(self, client: Client) -> tuple[ServerTool, ...]:
        if client.server_capabilities.tools is None:
            return ()
        found: list[ServerTool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                try:
                    schema = freeze_object(tool.input_schema)
                except WireError as error:
                    self._emit(McpSkipped(f"{self.name}: {tool.name[:80]}", str(error)))
                    continue
                found.append(make_server_tool(self.name, tool.name, tool.description or "", schema))
            cursor = page.next_cursor
            if cursor is None or len(found) > MAX_TOOLS:
                break
        if len(found) > MAX_TOOLS:
            self._emit(McpSkipped(self.name, f"it lists over {MAX_TOOLS} tools; the first are used"))
        return with_unique_names(found[:MAX_TOOLS])

    def _give_up(self, reason: str) -> None:
        self._failure = reason
        self._emit(McpSkipped(self.name, reason))
        self._outcome.set()

    async def _wait_again(self, reason: str) -> None:
        """Until the next attempt is due: each wait is twice the last, and after some a call must want one."""
        self._failures += 1
        wait = min(self._first_wait * 2 ** min(self._failures - 1, 20), _LONGEST_WAIT)
        self._failure = reason
        self._emit(McpFailed(self.name, reason, self._failures, round(wait.total_seconds())))
        self._outcome.set()
        if self._failures < MAX_CONNECT_TRIES:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait.total_seconds()):
                    await self._closing.wait()
            return
        self._is_resting = True
        self._wanted.clear()
        await self._wanted.wait()
        self._is_resting = False


def _failed(text: str) -> ToolOutput:
    return ToolOutput(text, is_error=True)


def _unsure(server: str, tool: str, reason: str) -> str:
    return f"{server} gave no answer to {tool}: {reason}; whether the call took effect is not known"


def _reason(error: Exception) -> str:
    """In one line; of a group, what its first member says."""
    if isinstance(error, ExceptionGroup):
        return _reason(cast("ExceptionGroup[Exception]", error).exceptions[0])
    from mcp.shared.exceptions import MCPError

    said = " ".join(str(error).split())
    # What a server or the protocol says needs no name of ours before it.
    return said if said and isinstance(error, MCPError) else f"{type(error).__name__}: {said}".rstrip(": ")


@dataclass(frozen=True, slots=True)
class McpConnections:
    """One for each server, in the order of the settings."""

    links: Sequence[McpConnection]

    @property
    def known(self) -> tuple[ServerTool, ...]:
        """Every tool of every server that is or was connected, now or in an earlier session."""
        return tuple(tool for link in self.links for tool in link.tools or ())

    def find(self, name: str) -> ServerTool | None:
        return next((tool for tool in self.known if tool.name == name), None)

    def connection_of(self, name: str) -> McpConnection | None:
        """The connection that a tool belongs to by its name, also where its server was not connected yet."""
        tool = self.find(name)
        if tool is not None:
            return next(link for link in self.links if link.name == tool.server)
        owners = [link for link in self.links if name.startswith(f"{MCP_TOOL_PREFIX}{link.name}__")]
        return max(owners, key=lambda link: len(link.name), default=None)

    def find_called(self, name: str) -> ServerTool | None:
        """The tool that a model means by a name: ours for it, or the server's own where one has it alone."""
        tool = self.find(name)
        if tool is not None:
            return tool
        named = [tool for tool in self.known if tool.own_name == name]
        return named[0] if len(named) == 1 else None

    async def wait_listed(self) -> None:
        """Until the tools of each are known, or that it cannot be reached."""
        await asyncio.gather(*(link.wait_listed() for link in self.links))

    async def list_again(self) -> None:
        """Ask every server what it offers now."""
        await asyncio.gather(*(link.list_again() for link in self.links))

    async def close(self) -> None:
        await asyncio.gather(*(link.close() for link in self.links))
