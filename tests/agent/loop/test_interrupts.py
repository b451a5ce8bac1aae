"""A turn that is cut short wherever it waits: the session goes on, here or taken up again, and a provider at
its strictest takes what it sends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from itertools import pairwise
from pathlib import Path
from types import coroutine
from typing import Any, TypeVar

import pytest

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.turn import TurnEnd, TurnState
from sevenfold.agent.tools.executor import INTERRUPTED_RESULT
from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUse
from sevenfold.core.normalize import LOST_RESULT
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.testing import Choices, Prompt, Simulator, call_tool
from sevenfold.testing import Reply as Said
from tests.agent.workshop import Plain, Shop

MOST_WAITS = 300
STRICTEST = Choices(empty_text=False, prefill_after_blocks=False)


def brain(prompt: Prompt) -> Said:
    """Two calls that read and one that does not, then an answer."""
    thought = (Thinking("Where is it?"),) if prompt.thinks else ()
    if prompt.results or "go on" in prompt.last_text:
        return Said((*thought, Text("That is all there is to say about it.")))
    calls = (call_tool("look", {"n": 1}), call_tool("look", {"n": 2}), call_tool("dig", {"n": 3}))
    return Said((*thought, Text("I look around."), *calls))


T = TypeVar("T")


@coroutine
def counted(work: Coroutine[Any, Any, T], at: int, then: Callable[[], None]) -> Generator[Any, Any, T]:
    """Run `work`, and have something done while it waits for the `at`-th time."""
    waits, thrown = 0, None
    while True:
        try:
            waited_for = work.throw(thrown) if thrown else work.send(None)
        except StopIteration as end:
            return end.value
        if waits == at:
            asyncio.get_running_loop().call_soon(then)
        waits, thrown = waits + 1, None
        try:
            yield waited_for
        except BaseException as error:  # a cancellation, which is the work's to hear of
            thrown = error


class Cut(Agent):
    """An agent whose next turn is interrupted while it waits for the `at`-th time."""

    at: int = -1

    async def _run(self, prompt: Message | None, turn: TurnState) -> TurnEnd:
        at, self.at = self.at, -1
        return await counted(super()._run(prompt, turn), at, self.interrupt)


async def tell(home: Path, simulator: Simulator, at: int, *, leaves: bool) -> str:
    """How the turn ended that was cut short there; the next one must go on."""
    async with simulator.async_client(max_retries=0) as client:
        shop = Shop(
            home=home,
            provider=AnthropicProvider(client),
            tools=[Plain(), Plain(name="dig", is_parallel=False)],
        )
        agent = await shop.open()
        agent.__class__ = Cut
        assert isinstance(agent, Cut)
        agent.at = at
        first = await agent.run_turn("Please look.")
        if leaves:
            await agent.close()
            agent = await shop.open(agent.session.id)
        second = await agent.run_turn("Please go on.")
        await agent.close()
    assert second.reason == "answered", (at, second.error)
    assert not shop.noted.of("HistoryRepaired"), at
    assert not shop.noted.of("PrefixBroken"), at
    return first.reason


def results_of(messages: tuple[Message, ...]) -> list[ToolResult]:
    return [block for message in messages for block in message.blocks if isinstance(block, ToolResult)]


def check_sent(messages: tuple[Message, ...], at: int) -> None:
    """Every call has its own result, in the message after it, and no answer stands there twice."""
    spoken = [str(block) for message in messages for block in message.blocks if message.role == "assistant"]
    for answer in ("I look", "That is all"):
        assert sum(answer in text for text in spoken) <= 1, at
    for message, after in pairwise(messages):
        calls = [block.id for block in message.blocks if isinstance(block, ToolUse)]
        if calls:
            results = [block for block in after.blocks if isinstance(block, ToolResult)]
            assert [block.tool_use_id for block in results] == calls, at
            assert all(block.content != LOST_RESULT for block in results), at


@pytest.mark.parametrize(
    "leaves",
    [pytest.param(False, id="goes on", marks=pytest.mark.story), pytest.param(True, id="taken up again")],
)
def test_a_turn_may_be_cut_short_wherever_it_waits(tmp_path: Path, leaves: bool) -> None:
    heard: list[tuple[Message, ...]] = []

    def listening(prompt: Prompt) -> Said:
        heard.append(prompt.messages)
        return brain(prompt)

    at, ends, texts = 0, list[str](), set[str]()
    with Simulator(listening, choices=STRICTEST) as simulator:
        for at in range(MOST_WAITS):
            ends.append(asyncio.run(tell(tmp_path / str(at), simulator, at, leaves=leaves)))
            check_sent(heard[-1], at)
            texts |= {str(block.content) for block in results_of(heard[-1])}
            # How often a turn waits depends on how a stream is cut up on its way, so that one that waits
            # seldom may get to its end before any was cut short among its tools.
            if ends[-1] == "answered" and INTERRUPTED_RESULT in texts:
                break
        assert [entry.error for entry in simulator.ledger.entries if entry.status == 400] == []
    assert ends[-1] == "answered"
    assert ends[:10] == ["interrupted"] * 10
    assert INTERRUPTED_RESULT in texts
