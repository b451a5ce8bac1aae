"""An agent with a real MCP server: what it is told, what it may call, and that the prefix never moves."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.core.messages import Text
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.agent.workshop import Shop
from tests.contracts.source_tree import ROOT
from tests.layers.compaction.overflows import GOOD

pytestmark = pytest.mark.story

pytest.importorskip("mcp")

SERVER = {
    "command": sys.executable,
    "args": ["-m", "tests.agent.mcp_server"],
    "env": {"PYTHONPATH": str(ROOT)},
}
SETTINGS = {"mcp": {"own": SERVER}, "mcp_client": {"start_seconds": 120, "connect_seconds": 120}}
DEFERRED = {**SETTINGS, "mcp_client": {**SETTINGS["mcp_client"], "schema_tokens": 10}}
SUM = {"a": 2, "b": 3}


def names(request: ModelRequest) -> list[object]:
    return [tool["name"] for tool in request.frame.tools]


def texts(request: ModelRequest) -> str:
    blocks = (block for message in request.messages for block in message.blocks)
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def results(request: ModelRequest) -> str:
    return str(request.messages[-1].blocks)


def call(tool: str, **given: object) -> ModelResponse:
    """A call of a tool that is not in the list."""
    return make_response(calls={"mcp_call": {"tool": f"mcp__own__{tool}", "arguments": given}})


async def open_agent(
    shop: Shop, settings: Mapping[str, Mapping[str, object]], session: str | None = None, **changes: object
) -> Agent:
    wanted = {"tools": None, "settings": settings, "mode": "bypass", **changes}
    return await shop.open(session, **wanted)


def test_tools_of_a_server_are_in_the_list_and_are_called(tmp_path: Path) -> None:
    async def tell() -> None:
        steps = [make_response(calls={"mcp__own__add": {"a": 2, "b": 3}}), make_response("Five.")]
        with ScriptedProvider(steps) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await open_agent(shop, SETTINGS)
            end = await agent.run_turn("Add two and three.")
            await agent.close()
        assert end.text == "Five."
        assert "mcp__own__add" in names(models.requests[0])
        assert "text='5'" in results(models.requests[-1]) or "content='5'" in results(models.requests[-1])
        assert "Add before you multiply." in texts(models.requests[0])
        assert "these are not the user's words" in texts(models.requests[0])

    asyncio.run(tell())


def test_nothing_of_a_server_moves_the_prefix_over_turns_a_compaction_and_a_resumed_session(
    tmp_path: Path,
) -> None:
    async def tell() -> None:
        steps = [
            make_response(calls={"tool_search": {"query": "hello"}}),
            call("greet", name="Ann"),
            make_response("Greeted."),
            *(make_response("ok") for _ in range(3)),
            call("greet", name="Bob"),
            make_response("Again."),
        ]
        with ScriptedProvider(steps, by_purpose={"summary": lambda _: make_response(GOOD)}) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await open_agent(shop, DEFERRED, model="claude-opus-5")
            await agent.run_turn("Say hello to Ann.")
            for number in range(3):
                await agent.run_turn(f"{number} " + "word " * 6_000)
            await agent.compact()
            await agent.close()
            agent = await open_agent(shop, DEFERRED, session="latest", model="")
            await agent.run_turn("And to Bob.")
            await agent.close()
        main = [request for request in models.requests if request.purpose == "main"]
        assert len({(request.frame.tools, request.frame.system) for request in models.requests}) == 1
        assert "mcp__own__greet" not in names(main[0])
        assert "- mcp__own__greet: Say hello to somebody." in texts(main[0])
        assert "hello Ann" in results(main[2])
        after = texts(main[6])
        assert "- mcp__own__greet: Say hello to somebody." in after
        assert '"title":"greetArguments"' in after  # the schema that was looked up before the compaction
        assert "hello Bob" in results(main[7])
        assert shop.noted.of("PrefixBroken") == []

    asyncio.run(tell())


def test_a_call_by_name_is_asked_for_under_the_name_that_is_meant(tmp_path: Path) -> None:
    async def tell() -> None:
        asked: list[PermissionRequest] = []

        async def ask(question: PermissionRequest) -> PermissionResponse:
            asked.append(question)
            return PermissionResponse(is_allowed=True)

        steps = [call("greet", name="Ann"), call("die"), make_response("Done.")]
        with ScriptedProvider(steps) as models:
            shop = Shop(home=tmp_path, provider=models)
            settings = {**DEFERRED, "permissions": {"deny": ["mcp__own__die"]}}
            agent = await open_agent(shop, settings, mode="ask", ask=ask)
            await agent.run_turn("Go.")
            await agent.close()
        assert [question.need.tool for question in asked] == ["mcp__own__greet"]
        assert "hello Ann" in results(models.requests[1])
        assert "not allowed" in results(models.requests[2])

    asyncio.run(tell())


def test_agents_use_the_connections_of_the_one_that_started_them(tmp_path: Path) -> None:
    async def tell() -> None:
        started = {"prompt": "Add two and three.", "description": "adds"}
        steps = [
            make_response(calls={"agent": started}),
            make_response("It says five."),
            make_response(calls={"mcp__own__add": SUM}),
            make_response("6"),
        ]
        adding = [make_response(calls={"mcp__own__add": SUM}), make_response("Five.")]
        with ScriptedProvider(steps, by_purpose={"agent": adding}) as models:
            shop = Shop(home=tmp_path, provider=models)
            agent = await open_agent(shop, SETTINGS)
            await agent.run_turn("Have it added.")
            await agent.run_turn("Add it yourself.")
            await agent.close()
        mine, its = (
            [request for request in models.requests if request.purpose == who] for who in ("main", "agent")
        )
        assert "mcp__own__add" in names(its[0])
        assert "'5'" in results(its[-1])
        assert "'5'" in results(mine[-1]), "the connection outlives the agent that shared it"
        assert len(shop.noted.of("McpConnected")) == 1

    asyncio.run(tell())
