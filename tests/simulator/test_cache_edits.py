"""The client's side of `cache_edits`: which results it deletes, and what a fork sends."""

from __future__ import annotations

import asyncio

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.simulator.wire.messages_request import (
    CACHE_EDITS_BETA,
    CACHE_EDITS_FIELD,
    CacheEditingProvider,
    choose_deleted,
)

FRAME = RequestParams(model="claude-opus-5", max_tokens=100)


def rounds(count: int, tool: str = "Read") -> list[Message]:
    said = [Message("user", "Read them.")]
    for number in range(count):
        use = ToolUseId(f"t{number}")
        said.append(Message("assistant", (ToolUse(use, tool, JsonObject({})),)))
        said.append(Message("user", (ToolResult(use, "text"),)))
    return said


def test_all_but_the_recent_results_go_once_there_are_too_many() -> None:
    assert choose_deleted(rounds(4), 4, 2) == ()
    assert choose_deleted(rounds(5), 4, 2) == ("t0", "t1", "t2")
    assert choose_deleted(rounds(7), 4, 2) == ("t0", "t1", "t2")
    assert choose_deleted(rounds(8), 4, 2) == ("t0", "t1", "t2", "t3", "t4", "t5")


def test_results_of_a_tool_that_is_not_clearable_stay() -> None:
    assert choose_deleted(rounds(9, "mcp__db__query"), 4, 2) == ()


def test_a_fork_sends_what_the_main_conversation_deleted_and_deletes_nothing_itself() -> None:
    scripted = ScriptedProvider([make_response("a"), make_response("b"), make_response("c")])
    provider = CacheEditingProvider(scripted, cached_results=4, recent_results=2)

    async def run() -> None:
        await provider.send(ModelRequest(FRAME, rounds(4)))
        await provider.send(ModelRequest(FRAME, rounds(5)))
        await provider.send(ModelRequest(FRAME, rounds(20), purpose="notes"))

    asyncio.run(run())
    first, second, fork = (request.frame for request in scripted.requests)
    assert first == FRAME
    assert second.params[CACHE_EDITS_FIELD] == JsonObject({"delete_tool_results": ("t0", "t1", "t2")})
    assert second.betas == (CACHE_EDITS_BETA,)
    assert fork == second
