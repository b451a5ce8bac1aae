"""Requests side by side: what one of them writes can be read once its answer begins, and not before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.types import MessageParam, Usage

from sevenfold.simulator import simulator_state
from sevenfold.simulator.brain import Prompt, Reply
from sevenfold.simulator.exchange import MessagesExchange
from sevenfold.simulator.load_brain import EchoBrain
from sevenfold.simulator.openai.exchange import OpenAIExchange
from sevenfold.simulator.simulator_state import ArrivalBarrier, SimulatorState
from sevenfold.testing import Choices, Simulator, SlowFault
from tests.simulator.asking import MODEL, NEWER, PROSE

SIDE = 8


def said(tag: str) -> list[MessageParam]:
    text = f"{tag} {PROSE}"
    return [
        {
            "role": "user",
            "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}],
        }
    ]


async def together(client: AsyncAnthropic, tag: str) -> list[Usage]:
    asked = (client.messages.create(model=MODEL, max_tokens=50, messages=said(tag)) for _ in range(SIDE))
    return [message.usage for message in await asyncio.gather(*asked)]


@pytest.mark.rule("cache-48")
def test_identical_requests_side_by_side_all_miss_and_all_pay() -> None:
    async def main() -> None:
        async with Simulator() as sim, sim.async_client() as client:
            # Once over connections that are new, once over those that were kept.
            for tag in ("new", "kept"):
                bills = await together(client, tag)
                assert [bill.cache_read_input_tokens for bill in bills] == [0] * SIDE
                assert len({bill.cache_creation_input_tokens for bill in bills}) == 1
                after = await client.messages.create(model=MODEL, max_tokens=50, messages=said(tag))
                assert after.usage.cache_read_input_tokens == bills[0].cache_creation_input_tokens

    asyncio.run(main())


@pytest.mark.rule("cache-48")
def test_threads_side_by_side_all_miss(sim: Simulator) -> None:
    asked, everybody = list[Prompt](), asyncio.Event()

    async def answer_together(prompt: Prompt) -> str:
        """On a busy machine a thread may come any time later, so no answer begins before the last one."""
        asked.append(prompt)
        if len(asked) == SIDE:
            everybody.set()
        await everybody.wait()
        return "Here."

    sim.reset(answer_together)
    with sim.client() as client, ThreadPoolExecutor(SIDE) as pool:

        def ask(_: int) -> int | None:
            message = client.messages.create(model=MODEL, max_tokens=50, messages=said("threads"))
            return message.usage.cache_read_input_tokens

        assert list(pool.map(ask, range(SIDE))) == [0] * SIDE


@pytest.mark.rule("cache-48")
def test_a_request_after_the_first_byte_of_an_answer_reads_what_it_wrote(
    sim: Simulator, client: Anthropic
) -> None:
    with client.messages.stream(model=MODEL, max_tokens=500, messages=said("stream")) as streaming:
        first = next(iter(streaming))
        assert first.type == "message_start"
        second = client.messages.create(model=MODEL, max_tokens=50, messages=said("stream"))
        written = streaming.get_final_message().usage.cache_creation_input_tokens
    assert second.usage.cache_read_input_tokens == written


def test_a_connection_that_says_nothing_is_waited_for_once(
    sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator_state, "MAX_ARRIVAL_SECONDS", 0.05)
    address = httpx2.URL(sim.url)

    async def main() -> list[int]:
        _, writer = await asyncio.open_connection(address.host, address.port)
        async with sim.async_client() as client:
            asked = [
                await client.messages.create(model=MODEL, max_tokens=50, messages=said("silent"))
                for _ in range(2)
            ]
        writer.close()
        return [message.usage.cache_read_input_tokens or 0 for message in asked]

    first, second = asyncio.run(main())
    assert first == 0
    assert second > 0


@pytest.mark.rule("choices-17")
@pytest.mark.parametrize(("hold", "looks"), [(timedelta(), 1), (timedelta(seconds=0.05), 2)])
def test_an_answer_can_be_made_to_begin_later(
    hold: timedelta, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Choices().first_token == timedelta()
    monkeypatch.setattr(simulator_state, "LONE_GRACE_SECONDS", 0.0)
    assert asyncio.run(settle_before_another(hold)).index("begun") == looks - 1


@pytest.mark.rule("choices-17")
def test_others_get_a_moment_to_follow_a_client_that_was_always_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simulator_state, "LONE_GRACE_SECONDS", 0.1)
    assert asyncio.run(settle_before_another(timedelta())) == ["late looked", "begun"]


async def settle_before_another(hold: timedelta) -> list[str]:
    """In which order an answer on a used connection begins, and another request comes."""
    arrivals, order = ArrivalBarrier(), list[str]()

    async def late() -> None:
        # Far behind: no pass of the loop would have waited for it.
        for _ in range(10 * simulator_state.QUIET_PASSES):
            await asyncio.sleep(0)
        order.append("late looked")

    other = asyncio.create_task(late())
    await arrivals.settle(hold)
    order.append("begun")
    await other
    return order


@pytest.mark.rule("cache-48")
def test_a_client_that_was_alone_before_misses_side_by_side_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # Long enough for any machine: how long it really is, is a matter of speed.
    monkeypatch.setattr(simulator_state, "LONE_GRACE_SECONDS", 0.2)

    async def main() -> list[int | None]:
        async with Simulator() as sim, sim.async_client() as client:
            await client.messages.create(
                model=MODEL, max_tokens=50, messages=[{"role": "user", "content": "Hi"}]
            )
            return [bill.cache_read_input_tokens for bill in await together(client, "warm")]

    assert asyncio.run(main()) == [0] * SIDE


def test_an_answer_on_its_way_holds_nobody_up() -> None:
    """A slow stream of any endpoint is no request that is still to be looked up."""

    async def main() -> None:
        arrivals, begun, over = ArrivalBarrier(), asyncio.Event(), asyncio.Event()

        async def slow(_scope: object, _receive: object, send: simulator_state.AsgiSend) -> None:
            await send({"type": "http.response.start"})
            begun.set()
            await over.wait()

        async def send(_message: object) -> None:
            """To nobody."""

        async def receive() -> MutableMapping[str, object]:
            return {}

        serving = asyncio.ensure_future(arrivals.watch(slow)({"client": ("here", 1)}, receive, send))
        await begun.wait()
        async with asyncio.timeout(simulator_state.MAX_ARRIVAL_SECONDS / 2):
            await arrivals.settle(timedelta())
        assert not serving.done()
        over.set()
        await serving

    asyncio.run(main())


NEVER = timedelta(days=1)
"""A first delay that no test waits for."""


async def serve(world: SimulatorState, *, is_openai: bool, streams: bool) -> None:
    """One and the same request, without a network."""
    headers = {"x-api-key": "k", "authorization": "Bearer k", "anthropic-version": NEWER}
    body = {"model": "gpt-5.6" if is_openai else MODEL, "max_tokens": 50, "stream": streams}
    if is_openai:
        talk = [{"role": "user", "content": PROSE * 4}]
        await OpenAIExchange(world).serve("chat", headers, json.dumps({**body, "messages": talk}).encode())
    else:
        data = json.dumps({**body, "messages": said("slow")}).encode()
        await MessagesExchange(world).serve("messages", headers, data)


@pytest.mark.rule("cache-48")
@pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("is_openai", [False, True], ids=["messages", "chat"])
def test_what_a_slow_answer_wrote_cannot_be_read_before_it_begins(is_openai: bool, streams: bool) -> None:
    async def main() -> None:
        asked = asyncio.Event()

        class Brain(EchoBrain):
            async def reply(self, prompt: Prompt) -> Reply:
                asked.set()
                return await super().reply(prompt)

        world = SimulatorState(brain=Brain())
        world.faults.add(SlowFault(first=NEVER))
        slow = asyncio.create_task(serve(world, is_openai=is_openai, streams=streams))
        await asked.wait()
        for reads in (False, True):
            await serve(world, is_openai=is_openai, streams=streams)
            assert bool(world.ledger.entries[-1].usage.read) is reads
        assert not slow.done()
        slow.cancel()

    asyncio.run(main())


@pytest.mark.rule("cache-48")
def test_what_a_slow_answer_wrote_can_be_read_once_it_has_begun() -> None:
    async def main() -> list[int]:
        world = SimulatorState(brain=EchoBrain())
        world.faults.add(SlowFault(first=timedelta(microseconds=1)))
        for _ in range(2):
            await serve(world, is_openai=False, streams=True)
        return [entry.usage.read for entry in world.ledger.entries]

    first, second = asyncio.run(main())
    assert (first, second > 0) == (0, True)
