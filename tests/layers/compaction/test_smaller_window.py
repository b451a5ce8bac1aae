"""A provider whose window is smaller than we know of, such as a gateway or a server of one's own."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sevenfold.core.cache.prompt_blocks import PromptLevel
from sevenfold.core.errors import InputError, PromptTooLong, ThinkingRefused
from sevenfold.core.events import CompactionStarted, Event, HistoryCompacted, WindowLearned, WordsCut
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message
from sevenfold.core.models import Model
from sevenfold.core.prices import CATALOG, ModelSettings
from sevenfold.core.requests import RequestParams
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.scripted import make_response
from sevenfold.session import Session
from sevenfold.simulator.simulator_state import BlockTokenizer, estimate_tokens
from sevenfold.testing import Simulator, say

MODEL = "claude-opus-5"
FRAME = RequestParams(model=MODEL, max_tokens=1_000)
ROUNDING_TOKENS = 10
"""An estimate is off by so much, as the count of each message is rounded."""
SMALLER = CATALOG.with_overrides({MODEL: ModelSettings(window_tokens=30_000)})


def test_every_refusal_is_answered_by_a_view_that_the_provider_takes(tmp_path: Path) -> None:
    recovered = 0

    async def talk(provider: AnthropicProvider) -> str:
        nonlocal recovered
        home = {"HOME": str(tmp_path)}
        async with await Session.open(FRAME, project=tmp_path, provider=provider, environ=home) as session:
            for number in range(24):
                session.history.append(Message("user", f"Number {number}: " + "word " * 1_500))
                view = await session.prepare()
                try:
                    reply = await provider.send(view.request)
                except PromptTooLong as error:
                    shorter = await session.recover(error)
                    assert shorter is not None
                    assert shorter.tokens < view.tokens
                    reply = await provider.send(shorter.request)
                    recovered += 1
                await session.record(reply)
            return str((await session.prepare()).request.messages)

    with Simulator(lambda _: say("I see."), catalog=SMALLER) as simulator:
        shown = asyncio.run(talk(AnthropicProvider(simulator.client(max_retries=0))))
    assert recovered
    assert all(f"Number {number}: " in shown for number in range(24))


@dataclass(frozen=True, slots=True)
class Bill:
    """What the provider counted for a request."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Shortening:
    """One compaction, and what the provider counted for the view that it left."""

    target: int
    compacted: HistoryCompacted
    billed: int


def shortenings(seen: Sequence[Event | Bill]) -> Iterator[Shortening]:
    target, compacted = 0, None
    for item in seen:
        match item:
            case CompactionStarted():
                target = item.target_tokens
            case HistoryCompacted():
                compacted = item
            case Bill() if compacted is not None:
                yield Shortening(target, compacted, item.tokens)
                compacted = None
            case _:
                pass


def count_densely(model: Model, level: PromptLevel, block: JsonObject) -> int:
    return math.ceil(1.5 * estimate_tokens(model, level, block))


@pytest.mark.parametrize(
    "tokenizer",
    [
        pytest.param(estimate_tokens, id="as estimated", marks=pytest.mark.story),
        pytest.param(count_densely, id="denser"),
    ],
)
def test_a_clip_stays_below_its_target_however_much_the_user_has_said(
    tmp_path: Path, tokenizer: BlockTokenizer
) -> None:
    seen: list[Event | Bill] = []

    async def talk(provider: AnthropicProvider) -> None:
        home = {"HOME": str(tmp_path)}
        opening = Session.open(FRAME, project=tmp_path, provider=provider, environ=home, emit=seen.append)
        async with await opening as session:
            for number in range(30):
                session.history.append(Message("user", f"Number {number}: " + "word " * 1_500))
                view = await session.prepare()
                try:
                    reply = await provider.send(view.request)
                except PromptTooLong as error:
                    shorter = await session.recover(error)
                    assert shorter is not None
                    reply = await provider.send(shorter.request)
                assert reply.usage.last_run is not None
                seen.append(Bill(reply.usage.last_run.prompt))
                await session.record(reply)

    tiny = CATALOG.with_overrides({MODEL: ModelSettings(window_tokens=12_000)})
    with Simulator(lambda _: say("I see."), catalog=tiny, tokenizer=tokenizer) as simulator:
        asyncio.run(talk(AnthropicProvider(simulator.client(max_retries=0))))
    clips = [item for item in shortenings(seen) if item.compacted.rung == "clip"]
    assert clips
    for clip in clips:
        assert clip.compacted.tokens_after < clip.target
        assert clip.billed < clip.target + ROUNDING_TOKENS
    spilled = "".join(path.read_text() for path in tmp_path.rglob("*.txt"))
    assert all(f"Number {number}: " in spilled for number in range(20))


def test_a_compaction_by_hand_that_gains_nothing_leaves_the_view_as_it_is() -> None:
    async def ask() -> None:
        async with await Session.open(FRAME, project=None) as session:
            for number in range(60):
                session.history.append(Message("user", f"Number {number}: a few words of mine."))
                session.history.append(Message("assistant", "."))
            before = await session.prepare()
            with pytest.raises(InputError, match="nothing is gained"):
                await session.compact()
            assert (await session.prepare()).request == before.request

    asyncio.run(ask())


def test_what_a_provider_takes_is_learned_at_the_first_refusal_and_after_a_resume(tmp_path: Path) -> None:
    events: list[Event] = []

    async def talk(provider: AnthropicProvider, session: str | None, rounds: range) -> tuple[str, int]:
        refused, home = 0, {"HOME": str(tmp_path)}
        opening = Session.open(
            FRAME, project=tmp_path, session=session, provider=provider, environ=home, emit=events.append
        )
        async with await opening as found:
            for number in rounds:
                found.history.append(Message("user", f"Number {number}: " + "word " * 1_500))
                try:
                    reply = await provider.send((await found.prepare()).request)
                except PromptTooLong as error:
                    refused += 1
                    shorter = await found.recover(error)
                    assert shorter is not None
                    reply = await provider.send(shorter.request)
                await found.record(reply)
            return found.id, refused

    with Simulator(lambda _: say("I see."), catalog=SMALLER) as simulator:
        provider = AnthropicProvider(simulator.client(max_retries=0))
        name, refused = asyncio.run(talk(provider, None, range(24)))
        assert refused == 1
        assert asyncio.run(talk(provider, name, range(24, 36))) == (name, 0)
    (learned,) = (event for event in events if isinstance(event, WindowLearned))
    assert learned.assumed_tokens > 10 * learned.limit_tokens
    assert 25_000 < learned.limit_tokens <= 30_000


def test_words_that_nothing_holds_any_more_are_told() -> None:
    events: list[Event] = []

    async def ask() -> None:
        async with await Session.open(FRAME, project=None, emit=events.append) as session:
            session.history.append(Message("user", "a long line of mine\n" * 4_000))
            session.history.append(Message("assistant", "I see."))
            session.history.append(Message("user", "Go on."))
            await session.prepare()
            await session.compact()

    asyncio.run(ask())
    assert [event for event in events if isinstance(event, WordsCut)] == [WordsCut(80_000)]


def test_a_view_that_is_refused_for_another_reason_is_helped_again() -> None:
    async def insist() -> None:
        async with await Session.open(FRAME, project=None) as session:
            session.history.append(Message("user", "word " * 5_000))
            session.history.append(Message("assistant", "I see."))
            session.history.append(Message("user", "Go on."))
            await session.prepare()
            assert await session.recover(ThinkingRefused("no thoughts")) is not None
            assert await session.recover(PromptTooLong(tokens=12_000, limit=10_000)) is not None
            assert await session.recover(ThinkingRefused("no thoughts")) is None

    asyncio.run(insist())


@pytest.mark.parametrize("history", [5, iter(()), {"role": "user"}, "hello"])
def test_what_is_no_history_is_refused(history: Any) -> None:
    async def ask() -> None:
        async with await Session.open(FRAME, project=None) as session:
            with pytest.raises(InputError, match="a history is a list of messages"):
                await session.prepare(history)

    asyncio.run(ask())


def test_a_view_that_was_refused_twice_is_helped_again_once_something_new_was_said() -> None:
    async def insist() -> None:
        error = PromptTooLong(tokens=12_000, limit=10_000)
        async with await Session.open(FRAME, project=None) as session:
            for number in range(6):
                session.history.append(Message("user", f"Number {number}: " + "word " * 1_500))
                session.history.append(Message("assistant", "I see."))
            session.history.append(Message("user", "Go on."))
            view = await session.prepare()
            assert await session.recover(error) is not None
            assert await session.recover(error) is None
            again = await session.prepare()
            assert await session.recover(error) is None
            session.history.append(Message("user", "word " * 5_000))
            grown = await session.prepare()
            shorter = await session.recover(error)
            assert shorter is not None
            assert again.tokens < view.tokens
            assert shorter.tokens < grown.tokens

    asyncio.run(insist())


def test_a_view_that_was_refused_is_helped_again_once_an_answer_came() -> None:
    async def insist() -> None:
        error = PromptTooLong(tokens=12_000, limit=10_000)
        async with await Session.open(FRAME, project=None) as session:
            for number in range(6):
                session.history.append(Message("user", f"Number {number}: " + "word " * 1_500))
                session.history.append(Message("assistant", "I see."))
            session.history.append(Message("user", "Go on."))
            await session.prepare()
            assert await session.recover(error) is not None
            assert await session.recover(error) is None
            await session.record(make_response("An answer. " * 200))
            assert await session.recover(error) is not None

    asyncio.run(insist())
