"""Tools of real MCP servers: a process that talks over its pipes, and one that listens on the loopback."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from sevenfold.agent.mcp.client import McpClient, ToolSearchTool
from sevenfold.agent.tool import Tool, ToolOutput
from sevenfold.core.errors import InputError
from sevenfold.core.events import (
    Event,
    McpConnected,
    McpDeferred,
    McpFailed,
    McpSkipped,
    UntrustedEntered,
)
from sevenfold.core.extras import render_install_command
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import Image, Text
from sevenfold.core.settings.sections import McpServer, McpSettings
from sevenfold.core.tool_kinds import ToolContext
from tests.agent.mcp.test_child_supervisor import wait_gone
from tests.contracts.source_tree import ROOT
from tests.torture.endpoint_stage import serve_harm

pytestmark = pytest.mark.story

pytest.importorskip("mcp")

PATIENT = McpSettings(start_seconds=120, connect_seconds=120)
"""How long a server takes to start is the machine's affair, and none of these tests'."""
SOON: Final = timedelta(milliseconds=1)
STDIO = McpServer(command=sys.executable, args=("-m", "tests.agent.mcp_server"))
PLACE = ToolContext(root=ROOT, cwd=ROOT)


class Told:
    """Events, and a way to wait for one."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._more = asyncio.Event()

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self._more.set()

    async def wait(self, kind: type[Event], count: int = 1) -> None:
        while len(self.of(kind)) < count:
            self._more.clear()
            await self._more.wait()

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


@asynccontextmanager
async def connected(
    servers: Mapping[str, McpServer], told: Told, settings: McpSettings = PATIENT
) -> AsyncGenerator[McpClient]:
    client = McpClient.start(servers, settings, cwd=ROOT, environ=os.environ, emit=told.emit, first_wait=SOON)
    try:
        yield client
    finally:
        await client.close()


def by_name(tools: tuple[Tool, ...]) -> dict[str, Tool]:
    return {tool.spec.name: tool for tool in tools}


def looked_up(tool: Tool) -> list[str]:
    """What a compaction puts back."""
    assert isinstance(tool, ToolSearchTool)
    return [extra.title for extra in tool.extras()]


async def run(tool: Tool, /, **given: object) -> ToolOutput:
    return await tool.run(freeze_object(given), PLACE, lambda _text: None)


@asynccontextmanager
async def serving(listening: socket.socket) -> AsyncGenerator[McpServer]:
    """The same server over HTTP. Whoever calls before it is up waits in line at the socket."""
    fd, port = listening.fileno(), listening.getsockname()[1]
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.agent.mcp_server", str(fd), cwd=ROOT, pass_fds=(fd,)
    )
    try:
        yield McpServer(url=f"http://127.0.0.1:{port}/mcp")
    finally:
        with suppress(ProcessLookupError):
            started.kill()
        await started.wait()


async def check_every_kind_of_answer(server: McpServer, told: Told) -> None:
    async with connected({"own": server}, told) as client:
        tools = by_name(await client.tools())
        assert (await run(tools["mcp__own__add"], a=2, b=3)).content == "5"
        assert (await run(tools["mcp__own__greet"], name="Ann")).content == "hello Ann"
        assert (await run(tools["mcp__own__fail"], reason="because")).is_error
        wrong = await run(tools["mcp__own__add"], a="two")
        assert wrong.is_error
        assert "integer" in str(wrong.content)
        content = (await run(tools["mcp__own__picture"])).content
        assert isinstance(content, tuple)
        text, image = content
        assert text == Text("look:")
        assert isinstance(image, Image)
        assert image.source["media_type"] == "image/png"
        assert [source.text for source in client.sources()] == ["Add before you multiply."]
    assert [event.name for event in told.events if isinstance(event, UntrustedEntered)][:2] == [
        "mcp__own__add",
        "mcp__own__greet",
    ]


def test_a_server_over_pipes_answers_in_every_form() -> None:
    asyncio.run(check_every_kind_of_answer(STDIO, Told()))


def test_a_server_over_http_answers_in_every_form() -> None:
    async def check() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            async with serving(listening) as server:
                await check_every_kind_of_answer(server, Told())

    asyncio.run(check())


def test_a_call_says_before_it_runs_which_tool_is_meant() -> None:
    async def check() -> None:
        async with connected({"own": STDIO}, Told()) as client:
            tools = by_name(await client.tools())
            direct = tools["mcp__own__add"].need(freeze_object({"a": 1}), PLACE)
            assert (direct.kind, direct.tool, direct.said) == (
                "outside",
                "mcp__own__add",
                'mcp__own__add {"a":1}',
            )
            given = freeze_object({"tool": "mcp__own__add", "arguments": {"a": 1}})
            assert tools["mcp_call"].need(given, PLACE) == direct
            with pytest.raises(InputError, match="expected the name of an MCP tool"):
                tools["mcp_call"].need(JsonObject(), PLACE)

    asyncio.run(check())


def test_tools_over_the_budget_are_named_looked_up_and_called_without_being_declared() -> None:
    async def check() -> None:
        told = Told()
        settings = McpSettings(start_seconds=120, connect_seconds=120, schema_tokens=10)
        async with connected({"own": STDIO}, told, settings) as client:
            tools = by_name(await client.tools())
            assert list(tools) == ["tool_search", "mcp_call"]
            assert "- mcp__own__greet: Say hello to somebody." in client.sources()[0].text
            assert looked_up(tools["tool_search"]) == []
            found = await run(tools["tool_search"], query="say hello")
            assert '"name":{"title":"Name","type":"string"}' in str(found.content)
            called = await run(tools["mcp_call"], tool="mcp__own__greet", arguments={"name": "Bob"})
            assert called.content == "hello Bob"
            assert looked_up(tools["tool_search"]) == ["mcp__own__greet"]
            unknown = await run(tools["mcp_call"], tool="mcp__nobody__x", arguments={})
            assert unknown.is_error
        assert len(told.of(McpDeferred)) == 1

    asyncio.run(check())


def test_a_tool_that_a_server_offers_later_is_found_when_it_is_looked_for() -> None:
    async def check() -> None:
        async with connected({"own": STDIO}, Told()) as client:
            tools = by_name(await client.tools())
            assert client.sources()[0].text == "Add before you multiply."
            await run(tools["mcp__own__grow"])
            found = await run(tools["tool_search"], query="multiply")
            assert "Multiply two numbers." in str(found.content)
            product = await run(tools["mcp_call"], tool="mcp__own__multiply", arguments={"a": 6, "b": 7})
            assert product.content == "42"
            assert "- mcp__own__multiply" in client.sources()[0].text

    asyncio.run(check())


def test_a_session_that_goes_on_declares_exactly_what_it_had() -> None:
    async def check() -> None:
        async with connected({"own": STDIO}, Told()) as client:
            before = [tool.spec.declared() for tool in await client.tools()]
        async with connected({"own": STDIO}, Told()) as client:
            tools = await client.tools(before[2:])
            assert [tool.spec.declared() for tool in tools] == before[2:]
            assert (await run(by_name(tools)["mcp__own__fail"], reason="x")).is_error
            assert "mcp__own__add" in client.sources()[0].text  # it is there, and no longer declared
        async with connected({}, Told()) as client:
            tools = by_name(await client.tools(before))
            gone = await run(tools["mcp__own__add"], a=1, b=2)
            assert gone.is_error

    asyncio.run(check())


def test_a_session_that_began_without_servers_is_told_nothing_of_them_and_the_user_why() -> None:
    async def check() -> None:
        told = Told()
        async with connected({"own": STDIO}, told) as client:
            assert await client.tools([freeze_object({"name": "read", "input_schema": {}})]) == ()
            assert client.sources() == ()
        (deferred,) = told.of(McpDeferred)
        assert "begin a new one" in str(deferred)

    asyncio.run(check())


def test_the_first_request_does_not_wait_for_a_server_that_says_nothing() -> None:
    async def check() -> None:
        told = Told()
        silent = McpServer(command="sleep", args=("1000",))
        settings = McpSettings(start_seconds=0, connect_seconds=600)
        async with connected({"silent": silent}, told, settings) as client:
            assert list(by_name(await client.tools())) == ["tool_search", "mcp_call"]
        assert told.of(McpDeferred) == [McpDeferred("silent", "it is not connected yet")]

    asyncio.run(check())


def test_a_server_that_dies_is_told_of_answers_with_an_error_and_comes_back() -> None:
    async def check() -> None:
        told = Told()
        async with connected({"own": STDIO}, told) as client:
            tools = by_name(await client.tools())
            died = await run(tools["mcp__own__die"])
            assert died.is_error
            assert "whether the call took effect is not known" in str(died.content)
            await told.wait(McpConnected, 2)
            assert (await run(tools["mcp__own__add"], a=2, b=3)).content == "5"
        assert len(told.of(McpFailed)) == 1

    asyncio.run(check())


def test_a_server_over_http_that_was_started_anew_is_found_again() -> None:
    async def check(listening: socket.socket) -> None:
        told = Told()
        async with serving(listening) as server, connected({"own": server}, told) as client:
            tools = by_name(await client.tools())
            assert (await run(tools["mcp__own__die"])).is_error
            async with serving(listening):
                await told.wait(McpConnected, 2)
                assert (await run(tools["mcp__own__add"], a=2, b=3)).content == "5"
        assert len(told.of(McpFailed)) == 1

    with socket.create_server(("127.0.0.1", 0)) as listening:
        asyncio.run(check(listening))


def test_a_program_that_cannot_be_started_is_told_with_its_last_words_and_not_tried_for_ever() -> None:
    async def check() -> None:
        told = Told()
        async with connected({"own": McpServer(command="no-such-program")}, told) as client:
            await told.wait(McpFailed, 6)
            await client.tools()
            seen = len(told.of(McpFailed))
            output = await run(by_name(await client.tools())["mcp_call"], tool="mcp__own__x", arguments={})
            assert output.is_error
            assert "no-such-program: No such file or directory" in str(output.content)
            assert len(told.of(McpFailed)) == seen + 1  # the call had it tried once more

    asyncio.run(check())


def test_a_variable_that_is_not_set_keeps_a_server_from_being_started() -> None:
    async def check() -> None:
        told = Told()
        server = McpServer(command="${NO_SUCH_VARIABLE_HERE}")
        async with connected({"own": server}, told) as client:
            await client.tools()
        (skipped,) = told.of(McpSkipped)
        assert "NO_SUCH_VARIABLE_HERE is not set" in str(skipped)

    asyncio.run(check())


def test_variables_are_filled_in_and_none_of_ours_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "s3cret")

    async def check() -> None:
        server = McpServer(
            command=STDIO.command, args=STDIO.args, env=JsonObject({"GIVEN": "is-${SECRET_OF_OURS}"})
        )
        async with connected({"own": server}, Told()) as client:
            tool = by_name(await client.tools())["mcp__own__variable"]
            assert (await run(tool, name="GIVEN")).content == "is-s3cret"
            assert (await run(tool, name="SECRET_OF_OURS")).content == "unset"

    asyncio.run(check())


def test_closing_leaves_no_process_whatever_a_server_has_started() -> None:
    async def check() -> list[int]:
        async with connected({"own": STDIO}, Told()) as client:
            output = await run(by_name(await client.tools())["mcp__own__pids"])
            return [int(line) for line in str(output.content).splitlines()]

    pids = asyncio.run(check())
    assert len(pids) == 2
    assert wait_gone(pids) == []


KILLED = """
import asyncio, os, sys
from pathlib import Path
from sevenfold.core.json import JsonObject
from sevenfold.agent.mcp.client import McpClient, ToolSearchTool
from sevenfold.core.settings.sections import McpServer, McpSettings
from sevenfold.core.tool_kinds import ToolContext
async def main():
    here = Path.cwd()
    servers = {"own": McpServer(command=sys.executable, args=("-m", "tests.agent.mcp_server"))}
    client = McpClient.start(servers, McpSettings(start_seconds=120), cwd=here, environ=os.environ)
    tool = next(tool for tool in await client.tools() if tool.spec.name.endswith("pids"))
    print((await tool.run(JsonObject(), ToolContext(root=here, cwd=here), print)).content, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def test_an_agent_that_is_killed_leaves_no_server_behind() -> None:
    async def check() -> list[int]:
        agent = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        assert agent.stdout is not None
        pids = [int(await agent.stdout.readline()) for _ in range(2)]
        agent.kill()
        await agent.wait()
        return pids

    assert wait_gone(asyncio.run(check())) == []


def test_without_the_library_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sevenfold.agent.mcp.client._has_library", lambda: False)

    async def check() -> None:
        told = Told()
        client = McpClient.start({"own": STDIO}, PATIENT, cwd=tmp_path, environ={}, emit=told.emit)
        assert await client.tools() == ()
        assert render_install_command("mcp") in str(told.of(McpSkipped)[0])
        await client.close()

    asyncio.run(check())


@pytest.mark.parametrize("harm", ["bomb", "redirect", "one-line", "many-lines"])
def test_a_hostile_server_over_http_is_told_as_failed_and_takes_no_more_than_its_share(harm: str) -> None:
    async def tell() -> None:
        told = Told()
        async with serve_harm() as endpoint, connected({"it": McpServer(url=endpoint.url(harm))}, told):
            async with asyncio.timeout(60):
                await told.wait(McpFailed)
            assert endpoint.strayed == []
            assert endpoint.sent_bytes[harm] / max(1, endpoint.requests[harm]) < 64_000_000

    asyncio.run(tell())
