"""Both OpenAI-shaped providers over real HTTP, and the simulator's front as the official client sees it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Literal, TypeAlias, TypeVar

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

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
from sevenfold.core.messages import Message, Opaque, Text, Thinking, ToolResult, ToolUse
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import Capabilities, ModelRequest, ModelResponse
from sevenfold.core.usage import read_openai_usage
from sevenfold.providers.openai import ChatProvider, ResponsesProvider
from sevenfold.providers.provider import Delta, Provider, TextDelta, ThinkingDelta, ToolDelta
from sevenfold.testing import DropFault, Prompt, Simulator, StatusFault, StreamFault, call_tool
from sevenfold.testing import Reply as Said
from tests.providers.asking import PROSE, ask, frozen, result, tool, user

Kind: TypeAlias = Literal["chat", "responses"]
Result = TypeVar("Result")
MODEL = "gpt-5.6"
RICH = Said((Thinking("Hmm."), Text("Let me look."), call_tool("look", {"at": "it", "n": [1, 2.5]})))
THINKING = frozen({"output_config": {"effort": "low"}})

pytestmark = pytest.mark.parametrize("kind", ["chat", "responses"])


def client(sim: Simulator) -> AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    return AsyncOpenAI(api_key="k", base_url=f"{sim.url}/v1", max_retries=0, http_client=http)


def sync_client(sim: Simulator) -> OpenAI:
    http = openai.DefaultHttpxClient(trust_env=False)
    return OpenAI(api_key="k", base_url=f"{sim.url}/v1", max_retries=0, http_client=http)


def provider_on(kind: Kind, sdk: AsyncOpenAI | OpenAI) -> Provider:
    return ChatProvider(sdk, replays_reasoning=True) if kind == "chat" else ResponsesProvider(sdk)


def talk(kind: Kind, sim: Simulator, act: Callable[[Provider], Coroutine[None, None, Result]]) -> Result:
    async def run() -> Result:
        async with client(sim) as sdk:
            return await act(provider_on(kind, sdk))

    return asyncio.run(run())


def send(kind: Kind, sim: Simulator, request: ModelRequest) -> ModelResponse:
    return talk(kind, sim, lambda provider: provider.send(request))


def gpt(*messages: Message, **fields: object) -> ModelRequest:
    return ask(*messages, model=MODEL, **fields)  # pyright: ignore[reportArgumentType] - passed on as given


def test_an_answer_becomes_a_reply(kind: Kind, sim: Simulator) -> None:
    sim.reset(lambda _: RICH)
    reply = send(kind, sim, gpt(user(PROSE), tools=(tool("look"),), params=THINKING))
    entry = sim.last
    assert (reply.id, reply.model, reply.dialect) == (entry.message_id, MODEL, "openai")
    assert reply.stop_reason == "tool_use"
    assert reply.text == "Let me look."
    assert reply.tool_uses[0].input == frozen({"at": "it", "n": [1, 2.5]})
    assert reply.usage.prompt == entry.usage.prompt > 0
    assert reply.usage.thinking == entry.usage.thinking > 0
    assert read_openai_usage(reply.usage_wire) == reply.usage
    assert entry.endpoint == kind


def test_a_streamed_answer_is_the_same_reply_as_a_whole_one(kind: Kind, sim: Simulator) -> None:
    request = gpt(user(PROSE), tools=(tool("look"),), params=THINKING)
    sim.reset(lambda _: RICH)
    whole = send(kind, sim, request)
    sim.reset(lambda _: RICH)
    deltas: list[Delta] = []
    streamed = talk(kind, sim, lambda provider: provider.send(request, deltas.append))
    assert (streamed.message, streamed.usage, streamed.stop_reason, streamed.id) == (
        whole.message,
        whole.usage,
        whole.stop_reason,
        whole.id,
    )
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "Let me look."
    shown = "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta))
    assert shown == ("Hmm." if kind == "chat" else "")
    calls = [delta for delta in deltas if isinstance(delta, ToolDelta)]
    assert {delta.id for delta in calls} == {whole.tool_uses[0].id}
    assert json.loads("".join(delta.json for delta in calls)) == {"at": "it", "n": [1, 2.5]}


def test_a_conversation_with_tools_and_reasoning_comes_back_as_it_was(kind: Kind, sim: Simulator) -> None:
    seen: list[Prompt] = []

    def brain(prompt: Prompt) -> Said | str:
        seen.append(prompt)
        return RICH if prompt.number == 1 else "Done."

    sim.reset(brain)

    async def run(provider: Provider) -> ModelResponse:
        first = await provider.send(
            gpt(user("Go."), system="Be brief.", tools=(tool("look"),), params=THINKING)
        )
        call = first.tool_uses[0]
        history = (user("Go."), first.message, result("it is red", call.id), user("And?"))
        return await provider.send(gpt(*history, system="Be brief.", tools=(tool("look"),), params=THINKING))

    assert talk(kind, sim, run).text == "Done."
    asked = seen[1]
    assert asked.system == "Be brief."
    assert asked.tools == ("look",)
    said = asked.messages[1].blocks
    assert [type(block) for block in said] == [Thinking, Text, ToolUse]
    assert said[0] == Thinking("Hmm.")
    call = said[2]
    assert isinstance(call, ToolUse)
    assert call.input == frozen({"at": "it", "n": [1, 2.5]})
    answers = [block for block in asked.messages[2].blocks if isinstance(block, ToolResult)]
    assert [answer.tool_use_id for answer in answers] == [call.id]


@pytest.mark.moves_prefix(reason="a changed prefix must be missed")
def test_the_cache_is_read_by_exact_prefix_from_1024_tokens_on(kind: Kind, sim: Simulator) -> None:
    history = [user(PROSE * 3)]

    async def run(provider: Provider) -> list[ModelResponse]:
        replies: list[ModelResponse] = []
        for _ in range(3):
            replies.append(await provider.send(gpt(*history)))
            history.extend([replies[-1].message, user(PROSE)])
        sim.advance(timedelta(minutes=31))
        replies.append(await provider.send(gpt(*history)))
        replies.append(await provider.send(gpt(user(f"Other. {PROSE * 3}"), *history[1:], who="other")))
        replies.append(await provider.send(gpt(user("Short."), who="short")))
        replies.append(await provider.send(gpt(user("Short."), who="short")))
        return replies

    sim.reset(lambda prompt: f"Answer {prompt.number}.")
    replies = talk(kind, sim, run)
    prompts, read = [reply.usage.prompt for reply in replies], [reply.usage.read for reply in replies]
    assert read == [0, prompts[0] // 128 * 128, prompts[1] // 128 * 128, 0, 0, 0, 0]
    assert read[1] >= 1024


def test_a_sync_client_gives_the_same(kind: Kind, sim: Simulator) -> None:
    sim.reset(lambda _: "Hello there.")
    told: list[bool] = []

    async def run() -> list[ModelResponse]:
        loop = asyncio.get_running_loop()
        with sync_client(sim) as sdk:
            provider = provider_on(kind, sdk)
            streamed = await provider.send(gpt(), lambda _: told.append(asyncio.get_running_loop() is loop))
            return [streamed, await provider.send(gpt())]

    assert [reply.text for reply in asyncio.run(run())] == ["Hello there.", "Hello there."]
    assert told
    assert all(told)


def test_an_answer_cut_at_its_limit_says_so(kind: Kind, sim: Simulator) -> None:
    sim.reset(lambda _: PROSE)
    reply = send(kind, sim, gpt(max_tokens=20))
    assert reply.stop_reason == "max_tokens"
    assert reply.usage.output == 20


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, ProviderRefused),
        (401, SignInRefused),
        (403, SignInRefused),
        (404, ProviderRefused),
        (413, PromptTooLong),
        (429, RateLimited),
        (500, Overloaded),
        (503, Overloaded),
    ],
)
def test_an_error_answer_is_an_error_of_ours(
    kind: Kind, sim: Simulator, status: int, expected: type[Exception]
) -> None:
    sim.fail(StatusFault(status=status, message="No.", code="some_code", retry_after=timedelta(seconds=7)))
    with pytest.raises(expected, match="No") as met:
        send(kind, sim, gpt())
    assert getattr(met.value, "status", None) == status
    assert getattr(met.value, "code", None) == "some_code"
    if isinstance(met.value, RateLimited):
        assert met.value.retry_after == timedelta(seconds=7)


def test_a_prompt_over_the_window_is_told_with_both_figures(kind: Kind, sim: Simulator) -> None:
    with pytest.raises(PromptTooLong) as met:
        send(kind, sim, gpt(user(PROSE * 1_200)))
    assert met.value.code == "context_length_exceeded"
    assert met.value.limit == 200_000
    assert met.value.tokens is not None
    assert met.value.overshoot == met.value.tokens - 200_000 > 0


def test_a_stream_that_ends_in_an_error_or_drops_is_broken(kind: Kind, sim: Simulator) -> None:
    for fault in (StreamFault(after_events=2, status=503), DropFault(after_events=2), DropFault()):
        sim.fail(fault)
        with pytest.raises(ReplyBroken):
            talk(kind, sim, lambda provider: provider.send(gpt(), lambda _: None))


def test_an_answer_that_drops_before_it_is_whole_is_an_error_that_may_pass(
    kind: Kind, sim: Simulator
) -> None:
    sim.fail(DropFault())
    with pytest.raises((ReplyBroken, ProviderUnreachable)) as met:
        send(kind, sim, gpt())
    assert met.value.may_pass


def test_a_provider_by_address_needs_no_key_and_closes_what_it_opened(kind: Kind, sim: Simulator) -> None:
    async def run() -> ModelResponse:
        url = f"{sim.url}/v1"
        provider = ChatProvider(base_url=url) if kind == "chat" else ResponsesProvider(base_url=url)
        try:
            return await provider.send(gpt())
        finally:
            await provider.close()
            await provider.close()

    assert asyncio.run(run()).text == "Hello?"


def test_without_a_key_or_an_address_the_error_says_what_to_do(kind: Kind) -> None:
    provider = ChatProvider() if kind == "chat" else ResponsesProvider()
    with pytest.raises(SignInRefused, match="environment variable"):
        asyncio.run(provider.send(gpt()))


def test_a_server_that_is_not_there_is_unreachable(kind: Kind) -> None:
    async def run() -> ModelResponse:
        http = openai.DefaultAsyncHttpxClient(trust_env=False)
        async with AsyncOpenAI(
            api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=0, http_client=http
        ) as sdk:
            return await provider_on(kind, sdk).send(gpt())

    with pytest.raises(ProviderUnreachable):
        asyncio.run(run())


def test_history_may_be_rewritten_and_nothing_else_is_promised(kind: Kind, sim: Simulator) -> None:
    provider = provider_on(kind, sync_client(sim))
    assert provider.capabilities(CATALOG.find("claude-opus-5-5")) == Capabilities(rewrites_history=True)


def test_what_only_anthropic_can_do_is_refused_by_name(kind: Kind, sim: Simulator) -> None:
    with pytest.raises(InputError, match="context_management"):
        send(kind, sim, gpt(params=frozen({"context_management": {"edits": []}})))
    with pytest.raises(InputError, match="web_search_20250305"):
        send(kind, sim, gpt(tools=(frozen({"type": "web_search_20250305", "name": "web_search"}),)))
    with pytest.raises(InputError, match="'model'"):
        send(kind, sim, gpt(params=frozen({"model": "other"})))
    assert sim.ledger.entries == []


def test_reasoning_travels_in_the_form_of_its_api(kind: Kind, sim: Simulator) -> None:
    sim.reset(lambda _: RICH)
    block = send(kind, sim, gpt(params=THINKING)).message.blocks[0]
    if kind == "chat":
        assert block == Thinking("Hmm.", None, frozen({"reasoning_field": "reasoning_content"}))
    else:
        assert isinstance(block, Opaque)
        assert block.type == "reasoning"
        assert block.wire["encrypted_content"]
