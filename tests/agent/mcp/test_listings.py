"""The tools that a session declares do not depend on which server is up first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from sevenfold.agent.mcp.client import McpCallTool, McpClient
from sevenfold.agent.mcp.connection import McpConnection, McpConnections
from sevenfold.agent.mcp.listings import ListingStore, ServerListing
from sevenfold.agent.mcp.servers import ServerEnvironment, StderrTail
from sevenfold.agent.mcp.tool_values import MAX_TOOL_DESCRIPTION, make_server_tool
from sevenfold.agent.permissions.guard import ForkGuard, Reach
from sevenfold.agent.tool import Tool
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.core.events import Event, McpDeferred, ignore_event
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.settings.sections import McpServer, McpSettings
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.store.files.folder import Folder

if TYPE_CHECKING:
    from mcp.client import Client

NAMES = ("alpha", "beta", "gamma")
NO_WAIT = McpSettings(start_seconds=0)


class FakeServer:
    """A server that is up when it is told to be."""

    def __init__(self, name: str, tools: Sequence[str] = ("read", "write"), version: str = "1") -> None:
        self.settings = McpServer(command=name)
        self.name, self.tools, self.version = name, list(tools), version
        self.up = asyncio.Event()
        self.instructions = f"About {name}."
        self.server_info = SimpleNamespace(name=name, version=version)
        self.server_capabilities = SimpleNamespace(tools=True)

    async def list_tools(self, *, cursor: str | None = None) -> object:
        assert cursor is None
        listed = [
            SimpleNamespace(name=tool, description=f"{tool} of {self.name}", input_schema={"type": "object"})
            for tool in self.tools
        ]
        return SimpleNamespace(tools=listed, next_cursor=None)

    async def call_tool(self, tool: str, given: Mapping[str, object], **_options: object) -> object:
        from mcp_types import CallToolResult, TextContent

        text = f"{self.name}.{tool} {dict(given)}"
        return CallToolResult(content=[TextContent(type="text", text=text)])


class FakeConnection(McpConnection):
    """Connects to a `FakeServer` once it is up."""

    def __init__(self, server: FakeServer, listings: ListingStore, settings: McpSettings = NO_WAIT) -> None:
        place = ServerEnvironment(Path("/srv/app"), {})
        super().__init__(server.name, server.settings, settings, place, ignore_event, listings=listings)
        self._fake = server

    @asynccontextmanager
    async def _connection(self, words: StderrTail) -> AsyncGenerator[Client]:
        del words
        self._ended.clear()
        ends = [asyncio.ensure_future(event.wait()) for event in (self._fake.up, self._closing)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if self._closing.is_set():
            raise ConnectionError("closed before it was up")
        yield cast("Client", self._fake)


class Session:
    """One start of an agent with these servers."""

    def __init__(self, servers: Sequence[FakeServer], folder: Folder) -> None:
        self.servers, self.events = servers, list[Event]()
        self.links = [FakeConnection(server, ListingStore(folder)) for server in servers]
        self.client = McpClient(self.links, NO_WAIT, self.events.append)

    async def start(self, up_first: Sequence[int] = ()) -> list[str]:
        """The names that are declared, with these servers up before anything is asked."""
        for link in self.links:
            link.start()
        for number in up_first:
            await self.bring_up(number)
        return [tool.spec.name for tool in await self.client.tools()]

    async def bring_up(self, number: int) -> None:
        self.servers[number].up.set()
        await self.links[number]._outcome.wait()  # pyright: ignore[reportPrivateUsage]

    async def finish(self) -> None:
        for number in range(len(self.servers)):
            await self.bring_up(number)
        await self.client.close()

    @property
    def deferred(self) -> list[str]:
        return [event.server for event in self.events if isinstance(event, McpDeferred)]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder.open(tmp_path)


def make_servers(**versions: str) -> list[FakeServer]:
    return [FakeServer(name, version=versions.get(name, "1")) for name in NAMES]


async def start_once(folder: Folder, up_first: Sequence[int] = ()) -> list[str]:
    session = Session(make_servers(), folder)
    declared = await session.start(up_first)
    await session.finish()
    return declared


ALL = [f"mcp__{name}__{tool}" for name in NAMES for tool in ("read", "write")]
WAYS = ["tool_search", "mcp_call"]


def test_a_known_server_is_declared_whoever_is_up_first(folder: Folder) -> None:
    async def check() -> None:
        await start_once(folder)  # late, all of them; what they list is kept as they come
        for order in [(), *permutations(range(3), 1), *permutations(range(3), 2), *permutations(range(3))]:
            assert await start_once(folder, order) == [*ALL, *WAYS]

    asyncio.run(check())


def test_a_late_server_joins_as_deferred_and_is_not_waited_for_again(folder: Folder) -> None:
    async def check() -> None:
        session = Session(make_servers(), folder)
        assert await session.start([1]) == ["mcp__beta__read", "mcp__beta__write", *WAYS]
        assert session.deferred == ["alpha", "gamma"]
        await session.client.close()
        again = Session(make_servers(), folder)
        waiting = [link for link in again.links if link.kept is None]
        assert waiting == []
        assert await again.start([0, 2]) == ["mcp__beta__read", "mcp__beta__write", *WAYS]
        named = "\n".join(source.text for source in again.client.sources())
        assert "mcp__gamma__write" in named
        await again.finish()
        assert await start_once(folder) == [*ALL, *WAYS]

    asyncio.run(check())


def test_what_a_server_lists_anew_counts_from_the_next_session_on(folder: Folder) -> None:
    async def check() -> None:
        await start_once(folder)
        changed = make_servers(beta="2")
        changed[1].tools = ["read", "ask"]
        session = Session(changed, folder)
        assert await session.start([0, 1, 2]) == [*ALL, *WAYS]
        found = session.client._links.find("mcp__beta__ask")  # pyright: ignore[reportPrivateUsage]
        assert found is not None
        await session.finish()
        later = await start_once(folder)
        assert "mcp__beta__ask" in later
        assert "mcp__beta__write" not in later

    asyncio.run(check())


def test_a_server_that_lists_in_another_order_changes_nothing(folder: Folder) -> None:
    async def check() -> None:
        await start_once(folder)
        shuffled = make_servers()
        shuffled[0].tools.reverse()
        session = Session(shuffled, folder)
        await session.start([0])
        await session.finish()
        assert await start_once(folder) == [*ALL, *WAYS]

    asyncio.run(check())


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format":2}', b'{"format":1,"tools":[7]}'])
def test_a_listing_that_cannot_be_read_is_asked_for_again(tmp_path: Path, damage: bytes) -> None:
    store, server = ListingStore(Folder.open(tmp_path)), McpServer(command="alpha")
    tool = make_server_tool("alpha", "read", "d" * 3_000, freeze_object({"type": "object"}))
    kept = ServerListing(server_name="alpha", server_version="1", instructions="i", tools=(tool,))
    store.keep(server, kept)
    assert store.find("alpha", server) == kept
    assert len(tool.description) == MAX_TOOL_DESCRIPTION + 1
    assert store.find("alpha", McpServer(command="alpha", args=("--other",))) is None
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage)
    assert store.find("alpha", server) is None


def use(name: str) -> ToolUse:
    return ToolUse(ToolUseId("t1"), name, freeze_object({"path": "a"}))


@pytest.mark.parametrize("name", ["mcp__alpha__read", "only_alpha"])
def test_a_deferred_tool_that_is_called_by_its_name_is_run(folder: Folder, name: str) -> None:
    async def check() -> str:
        server = FakeServer("alpha", ["read", "only_alpha"])
        server.up.set()
        link = FakeConnection(server, ListingStore(folder))
        link.start()
        place = ToolContext(root=Path("/srv/app"), cwd=Path("/srv/app"))
        tools: list[Tool] = [McpCallTool(McpConnections([link]))]
        executor = ToolExecutor(tools, place, ForkGuard(Reach()))
        await link._outcome.wait()  # pyright: ignore[reportPrivateUsage]
        found = executor.find(name)
        assert found is not None
        assert not executor._is_parallel(use(name))  # pyright: ignore[reportPrivateUsage]
        assert found.need(freeze_object({}), place).kind == "outside"
        output = await found.run(freeze_object({"path": "a"}), place, lambda _text: None)
        await link.close()
        return str(output.content)

    assert asyncio.run(check()) == f"alpha.{name.removeprefix('mcp__alpha__')} {{'path': 'a'}}"


def test_a_tool_of_a_server_that_is_still_starting_waits_for_it_and_unknown_ones_name_the_way(
    folder: Folder,
) -> None:
    async def check() -> None:
        server = FakeServer("alpha")
        link = FakeConnection(server, ListingStore(folder), McpSettings(start_seconds=0, connect_seconds=600))
        link.start()
        client = McpClient([link], NO_WAIT, ignore_event)
        place = ToolContext(root=Path("/srv/app"), cwd=Path("/srv/app"))
        executor = ToolExecutor(await client.tools(), place, ForkGuard(Reach()))
        found = executor.find("mcp__alpha__read")
        assert found is not None
        running = asyncio.create_task(found.run(freeze_object({}), place, lambda _text: None))
        await asyncio.sleep(0)
        server.up.set()
        assert (await running).content == "alpha.read {}"
        assert executor.find("mcp__alpha__nothing") is None
        assert "tool_search" in str(executor.unknown(use("mcp__alpha__nothing")).content)
        await client.close()

    asyncio.run(check())


def test_servers_that_ask_for_roots_are_given_the_working_folder(folder: Folder) -> None:
    pytest.importorskip("mcp")
    link = asyncio.run(_make_link(folder))
    roots = asyncio.run(link._list_roots(cast("object", None))).roots  # pyright: ignore
    assert [(str(root.uri), root.name) for root in roots] == [("file:///srv/app", "app")]


async def _make_link(folder: Folder) -> McpConnection:
    return FakeConnection(FakeServer("alpha"), ListingStore(folder))
