"""The Anthropic provider against the simulator, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import TypeVar

import anthropic
import pytest
from anthropic import AsyncAnthropic

from sevenfold.core.errors import (
    InputError,
    Overloaded,
    PromptTooLong,
    ProviderRefused,
    ProviderUnreachable,
    RateLimited,
    ReplyBroken,
    SignInRefused,
)
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, Text, Thinking, ToolUse, ToolUseId
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import Breakpoint, ModelRequest, ModelResponse
from sevenfold.providers.anthropic import AnthropicProvider, needs_json_body
from sevenfold.providers.anthropic.wire import MessagesAssembler
from sevenfold.providers.provider import Delta, Provider, TextDelta, ThinkingDelta, ToolDelta
from sevenfold.testing import DropFault, Simulator, StatusFault, StreamFault, call_tool, say
from sevenfold.testing import Reply as Said
from tests.providers.asking import MODEL, PROSE, ask, assistant, frozen, result, tool, user

Result = TypeVar("Result")
LONG = 30_000
"""Max tokens for which the provider has to stream."""
RICH = Said((Thinking("Hmm."), Text("Let me look."), call_tool("look", {"at": "it", "n": [1, 2.5]})))


def talk(sim: Simulator, act: Callable[[Provider], Coroutine[None, None, Result]]) -> Result:
    """Run something with a provider on the official async client."""

    async def run() -> Result:
        async with sim.async_client(max_retries=0) as client:
            return await act(AnthropicProvider(client))

    return asyncio.run(run())


def send(sim: Simulator, request: ModelRequest) -> ModelResponse:
    return talk(sim, lambda provider: provider.send(request))


def watched(sim: Simulator, request: ModelRequest) -> tuple[ModelResponse, list[Delta]]:
    deltas: list[Delta] = []
    reply = talk(sim, lambda provider: provider.send(request, deltas.append))
    return reply, deltas


def test_an_answer_becomes_a_reply_with_its_usage_and_what_else_it_said(sim: Simulator) -> None:
    sim.reset(lambda _: RICH)
    params = frozen({"thinking": {"type": "adaptive", "display": "summarized"}, "diagnostics": {}})
    reply = send(sim, ask(user(PROSE), params=params, tools=(tool("look"),)))
    entry = sim.last
    assert reply.id == entry.message_id
    assert reply.model == MODEL
    assert reply.stop_reason == "tool_use"
    assert reply.usage.prompt == entry.usage.prompt > 0
    assert reply.usage_wire["output_tokens"] == entry.usage.output
    assert [type(block) for block in reply.message.blocks] == [Thinking, Text, ToolUse]
    assert reply.tool_uses[0].input == frozen({"at": "it", "n": [1, 2.5]})
    assert reply.extra["diagnostics"] is None
    assert "content" not in reply.extra


def test_a_streamed_answer_is_the_same_reply_as_a_whole_one(sim: Simulator) -> None:
    params = frozen({"thinking": {"type": "adaptive", "display": "summarized"}})
    request = ask(user(PROSE), params=params, tools=(tool("look"),))
    sim.reset(lambda _: RICH)
    whole = send(sim, request)
    sim.reset(lambda _: RICH)
    streamed, deltas = watched(sim, request)
    assert streamed == whole
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "Let me look."
    assert "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta)) == "Hmm."
    calls = [delta for delta in deltas if isinstance(delta, ToolDelta)]
    assert {delta.id for delta in calls} == {whole.tool_uses[0].id}
    assert json.loads("".join(delta.json for delta in calls)) == {"at": "it", "n": [1, 2.5]}


def test_a_sync_client_gives_the_same_and_tells_its_watcher_on_the_loop(sim: Simulator) -> None:
    sim.reset(lambda _: say("Hello there."))
    told: list[bool] = []

    async def run() -> list[ModelResponse]:
        loop = asyncio.get_running_loop()
        provider = AnthropicProvider(sim.client(max_retries=0))
        streamed = await provider.send(ask(), lambda _: told.append(asyncio.get_running_loop() is loop))
        return [streamed, await provider.send(ask())]

    replies = asyncio.run(run())
    assert [reply.text for reply in replies] == ["Hello there.", "Hello there."]
    assert told
    assert all(told)


def test_an_answer_too_long_to_wait_for_is_streamed_though_nobody_watches(sim: Simulator) -> None:
    sim.reset(lambda _: say("Hello."))
    sim.fail(DropFault(after_events=2))
    # Only a stream drops after two events and before its end.
    with pytest.raises(ReplyBroken):
        send(sim, ask(max_tokens=LONG))
    assert send(sim, ask(max_tokens=LONG)).text == "Hello."


def test_a_request_for_no_tokens_warms_the_cache_and_is_never_streamed(sim: Simulator) -> None:
    request = ask(user(PROSE), max_tokens=0, breakpoints=(Breakpoint("messages", 0),))
    reply, deltas = watched(sim, request)
    assert reply.stop_reason == "max_tokens"
    assert reply.message.blocks == ()
    assert reply.usage.written > 0
    assert deltas == []


def test_breakpoints_are_written_where_they_stand_and_nowhere_else(sim: Simulator) -> None:
    system = (frozen({"type": "text", "text": PROSE}), frozen({"type": "text", "text": "Be brief."}))
    marks = (
        Breakpoint("tools", 1, ttl=timedelta(hours=1)),
        Breakpoint("system", 1, ttl=timedelta(hours=1)),
        Breakpoint("messages", 0),
        Breakpoint("messages", 2, block=0),
    )
    request = ask(
        user("One"), assistant("Two"), user(PROSE), breakpoints=marks, system=system,
        tools=(tool("look"), tool("read")),
    )  # fmt: skip
    first = send(sim, request)
    again = send(sim, request)
    assert first.usage.written_1h > 0
    assert first.usage.written_5m > 0
    assert again.usage.read == first.usage.written
    assert (again.usage.written, again.usage.fresh) == (0, first.usage.fresh)


def test_a_marker_that_moves_on_leaves_the_prefix_as_it_was(sim: Simulator) -> None:
    history = [user(PROSE)]

    async def run(provider: Provider) -> list[int]:
        read: list[int] = []
        for _ in range(4):
            mark = Breakpoint("messages", len(history) - 1)
            reply = await provider.send(ask(*history, breakpoints=(mark,)))
            read.append(reply.usage.read)
            history.extend([reply.message, user(PROSE)])
        return read

    sim.reset(lambda prompt: f"Answer {prompt.number}. {PROSE}")
    read = talk(sim, run)
    assert read[0] == 0
    assert read[1:] == sorted(set(read[1:]))
    assert [entry.difference for entry in sim.ledger.entries] == [None] * 4


def test_a_callers_own_marker_is_kept(sim: Simulator) -> None:
    own = Text(PROSE, frozen({"cache_control": {"type": "ephemeral", "ttl": "1h"}}))
    reply = send(sim, ask(Message("user", (own,)), breakpoints=(Breakpoint("messages", 0),)))
    assert reply.usage.written_1h > 0
    assert reply.usage.written_5m == 0


@pytest.mark.parametrize(
    ("mark", "named"),
    [
        (Breakpoint("messages", 7), "messages[7]"),
        (Breakpoint("messages", 0, block=1), "messages[0].content[1]"),
        (Breakpoint("messages", -1), "messages[-1]"),
        (Breakpoint("system", 0), "system[0]"),
        (Breakpoint("tools", 0), "tools[0]"),
        (Breakpoint("messages", 1), "thinking block"),
        (Breakpoint("messages", 0, ttl=timedelta(minutes=7)), "0:07:00"),
    ],
)
def test_a_breakpoint_that_cannot_stand_is_refused_by_name(
    sim: Simulator, mark: Breakpoint, named: str
) -> None:
    thought = Message("assistant", (Thinking("Hmm.", "s"), Text("Yes.")))
    with pytest.raises(InputError) as refused:
        send(sim, ask(user("One"), thought, user("Two"), breakpoints=(mark,)))
    assert named in str(refused.value)
    assert sim.ledger.entries == []


def test_a_param_that_a_request_says_elsewhere_is_refused(sim: Simulator) -> None:
    with pytest.raises(InputError, match="'stream'"):
        send(sim, ask(params=frozen({"stream": True})))


def test_betas_join_those_that_the_client_sends_anyway(sim: Simulator) -> None:
    async def run() -> ModelResponse:
        async with sim.async_client(max_retries=0) as client:
            known = client.with_options(default_headers={"anthropic-beta": "context-management-2025-06-27"})
            edits = frozen({"context_management": {"edits": []}})
            betas = ("compact-2026-09-04", "context-management-2025-06-27")
            return await AnthropicProvider(known).send(ask(params=edits, betas=betas))

    assert asyncio.run(run()).extra["context_management"] is not None


def test_capabilities_are_those_of_the_model(sim: Simulator) -> None:
    signed, older = CATALOG.find("claude-opus-5-5"), CATALOG.find("claude-haiku-4-5")
    provider = AnthropicProvider(sim.client())
    assert not provider.capabilities(signed).rewrites_history
    assert provider.capabilities(older).rewrites_history
    assert provider.capabilities(older).breakpoints == 4


def test_numbers_and_texts_that_json_libraries_spoil_survive_the_way_there(sim: Simulator) -> None:
    said: list[object] = []
    sim.reset(lambda prompt: (said.append(prompt.messages[1].blocks[0]), "Fine.")[1])
    call = JsonObject({"text": "half \ud83d of a pair", "big": 10**30, "float": 1.0})
    asked = Message("assistant", (ToolUse(ToolUseId("toolu_1"), "look", call),))
    send(sim, ask(user("Go."), asked, result("ok"), tools=(tool("look"),)))
    assert said == [asked.blocks[0]]


def test_half_a_character_that_a_client_cannot_send_is_named(sim: Simulator) -> None:
    client = sim.client().with_middleware(lambda request, call_next: call_next(request))
    with pytest.raises(InputError, match="ud83d"):
        asyncio.run(AnthropicProvider(client).send(ask(user("half \ud83d of a pair"))))


@pytest.mark.parametrize("max_tokens", [1_000, LONG])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, ProviderRefused),
        (401, SignInRefused),
        (402, ProviderRefused),
        (403, SignInRefused),
        (404, ProviderRefused),
        (413, PromptTooLong),
        (429, RateLimited),
        (500, Overloaded),
        (504, Overloaded),
        (529, Overloaded),
    ],
)
def test_an_error_answer_is_an_error_of_ours(
    sim: Simulator, status: int, expected: type[Exception], max_tokens: int
) -> None:
    sim.fail(StatusFault(status=status, message="No.", code="some_code", retry_after=timedelta(seconds=7)))
    with pytest.raises(expected) as met:
        send(sim, ask(max_tokens=max_tokens))
    error = met.value
    assert str(error) == "No."
    assert getattr(error, "status", None) == status
    assert getattr(error, "code", None) == "some_code"
    if isinstance(error, RateLimited):
        assert error.retry_after == timedelta(seconds=7)


def test_a_prompt_over_the_window_is_told_with_both_figures(sim: Simulator) -> None:
    with pytest.raises(PromptTooLong) as met:
        send(sim, ask(user(PROSE * 1_200), model="claude-haiku-4-5"))
    assert met.value.limit == 200_000
    assert met.value.tokens is not None
    assert met.value.overshoot == met.value.tokens - 200_000 > 0


def test_a_stream_that_ends_in_an_error_is_broken(sim: Simulator) -> None:
    sim.fail(StreamFault(after_events=3))
    with pytest.raises(ReplyBroken) as met:
        watched(sim, ask())
    assert met.value.kind == "overloaded_error"
    assert met.value.may_pass


@pytest.mark.parametrize("after", [0, 3])
def test_a_stream_that_drops_is_broken(sim: Simulator, after: int) -> None:
    sim.fail(DropFault(after_events=after))
    with pytest.raises(ReplyBroken, match="broke off"):
        watched(sim, ask())


def test_a_server_that_is_not_there_is_unreachable() -> None:
    async def run() -> ModelResponse:
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
        async with AsyncAnthropic(
            api_key="k", base_url="http://127.0.0.1:9", max_retries=0, http_client=http
        ) as client:
            return await AnthropicProvider(client).send(ask())

    with pytest.raises(ProviderUnreachable):
        asyncio.run(run())


@pytest.mark.parametrize("url", ["http://x:abc", "http://a\nb"])
def test_what_is_no_address_is_an_error_and_no_bug(url: str) -> None:
    with pytest.raises(ProviderUnreachable):
        asyncio.run(AnthropicProvider(base_url=url, api_key="k").send(ask()))


def test_without_a_key_the_error_says_what_to_do(sim: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", sim.url)

    async def run() -> ModelResponse:
        provider = AnthropicProvider()
        try:
            return await provider.send(ask())
        finally:
            await provider.close()
            await provider.close()

    with pytest.raises(SignInRefused, match="environment variable"):
        asyncio.run(run())


def test_middleware_is_shown_the_body_as_an_object(sim: Simulator) -> None:
    seen: list[object] = []
    client = sim.client().with_middleware(
        lambda request, call_next: (seen.append(request.options.json_data), call_next(request))[1]
    )
    reply = asyncio.run(AnthropicProvider(client).send(ask()))
    assert reply.text == "Hello?"
    assert seen == [
        {"model": MODEL, "max_tokens": 1_000, "messages": [{"role": "user", "content": "Hello?"}]}
    ]


def test_a_plain_client_is_spared_the_parsing(sim: Simulator) -> None:
    client = sim.client()
    assert not needs_json_body(client)
    assert needs_json_body(client.with_middleware(lambda request, call_next: call_next(request)))


@pytest.mark.parametrize("is_sync", [False, True])
def test_giving_up_on_a_request_leaves_at_once(sim: Simulator, is_sync: bool) -> None:
    answer = threading.Event()

    async def run() -> None:
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        async def brain(_: object) -> str:
            loop.call_soon_threadsafe(arrived.set)
            await asyncio.to_thread(answer.wait, 30)
            return "Late."

        sim.reset(brain)
        client = sim.client(max_retries=0) if is_sync else sim.async_client(max_retries=0)
        task = asyncio.create_task(AnthropicProvider(client).send(ask(), lambda _: None))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not answer.is_set()
        answer.set()
        if isinstance(client, AsyncAnthropic):
            await client.close()

    asyncio.run(run())


def test_an_answer_that_begins_again_is_broken() -> None:
    begin = {"type": "message_start", "message": {"id": "m", "model": "claude-opus-5-5"}}
    assembly = MessagesAssembler()
    list(assembly.add(begin))
    with pytest.raises(ReplyBroken, match="began twice"):
        list(assembly.add(begin))
