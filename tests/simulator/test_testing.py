"""`sevenfold.testing`: a simulator in three lines, and what it does at the end."""

from __future__ import annotations

import asyncio
import threading

import pytest
from anthropic.types import Message

from sevenfold.core.errors import CallUnexpected, InputError, SimulatorError, StepsUnused
from sevenfold.testing import EchoBrain, Prompt, Reply, Simulator, say, script
from tests.simulator.asking import MARK, MODEL, PROSE, Asker, text, user


def hello(sim: Simulator, said: str = "Hi") -> Message:
    return sim.client(max_retries=0).messages.create(
        model=MODEL, max_tokens=99, messages=[{"role": "user", "content": said}]
    )


def test_three_lines_are_enough() -> None:
    with Simulator(script("Hello.")) as sim:
        message = hello(sim)
    assert message.content[0].to_dict()["text"] == "Hello."


def test_an_unused_step_fails_the_block() -> None:
    with pytest.raises(StepsUnused), Simulator(script("Hello.", "Bye.")) as sim:
        hello(sim)


def test_an_unexpected_call_fails_the_block_even_when_the_client_swallowed_it() -> None:
    def careless(sim: Simulator) -> None:
        try:
            hello(sim)
        except Exception:
            return

    with pytest.raises(CallUnexpected), Simulator(script()) as sim:
        careless(sim)


def test_a_test_that_failed_keeps_its_own_error() -> None:
    with pytest.raises(ZeroDivisionError), Simulator(script("Hello.")):
        _ = 1 / 0


def test_it_works_in_an_async_block() -> None:
    async def talk() -> str:
        async with Simulator(script("Hello.")) as sim, sim.async_client() as client:
            message = await client.messages.create(
                model=MODEL, max_tokens=99, messages=[{"role": "user", "content": "Hi"}]
            )
            return str(message.content[0].to_dict()["text"])

    assert asyncio.run(talk()) == "Hello."


def test_an_async_block_complains_too() -> None:
    async def talk() -> None:
        async with Simulator(script("Hello.")):
            pass

    with pytest.raises(StepsUnused):
        asyncio.run(talk())


@pytest.mark.parametrize("said", ["Text.", say("Reply.")], ids=["text", "reply"])
def test_a_function_is_a_brain(said: str | Reply) -> None:
    with Simulator(lambda _: said) as sim:
        assert hello(sim).stop_reason == "end_turn"


def test_an_async_function_is_a_brain() -> None:
    async def brain(prompt: Prompt) -> str:
        await asyncio.sleep(0)
        return f"{prompt.number}: {prompt.last_text}"

    with Simulator(brain) as sim:
        assert hello(sim).content[0].to_dict()["text"] == "1: Hi"


def test_a_brain_sees_what_the_model_would_see(ask: Asker) -> None:
    seen: list[Prompt] = []

    def look(prompt: Prompt) -> str:
        seen.append(prompt)
        return "Seen."

    ask.sim.reset(look)
    ask.create(
        "Hi", system=[text("Be brief."), text("Be kind.")], max_tokens=77, thinking={"type": "adaptive"}
    )
    (prompt,) = seen
    assert (prompt.model, prompt.system, prompt.max_tokens) == (MODEL, "Be brief.\n\nBe kind.", 77)
    assert (prompt.thinks, prompt.purpose, prompt.last_text) == (True, "reply", "Hi")


def test_requests_at_the_same_time_miss_the_cache_alike(sim: Simulator) -> None:
    both = threading.Barrier(2, timeout=30)
    arrived = asyncio.Event()
    waiting = 0

    async def brain(_prompt: Prompt) -> str:
        nonlocal waiting
        waiting += 1
        if waiting == 2:
            arrived.set()
        await arrived.wait()
        return "Done."

    def ask() -> int:
        both.wait()
        said = user(text(PROSE, cache_control=MARK))
        body = {"model": MODEL, "max_tokens": 9, "messages": [said]}
        sim.client().post("/v1/messages", cast_to=object, body=body)
        return 1

    sim.reset(brain)
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    ask_again = Asker(sim, sim.client()._client)  # pyright: ignore[reportPrivateUsage]
    ask_again.create(user(text(PROSE, cache_control=MARK)), key="simulated")
    assert [entry.usage.read > 0 for entry in sim.ledger.entries] == [False, False, True]


def test_a_reset_forgets_everything(ask: Asker) -> None:
    said = user(text(PROSE, cache_control=MARK))
    ask.create(said)
    ask.sim.reset()
    assert ask.sim.ledger.entries == []
    assert ask.create(said).usage.read == 0


def test_it_has_an_address_only_while_it_runs() -> None:
    sim = Simulator(EchoBrain())
    with pytest.raises(SimulatorError, match="not running"):
        _ = sim.url
    sim.start()
    assert sim.url.startswith("http://127.0.0.1:")
    with pytest.raises(SimulatorError, match="running already"):
        sim.start()
    sim.stop()
    sim.stop()
    with pytest.raises(SimulatorError, match="not running"):
        _ = sim.url


def test_a_port_that_is_taken_is_told() -> None:
    with Simulator() as sim:
        port = int(sim.url.rpartition(":")[2])
        with pytest.raises(InputError, match=f"port {port}"):
            Simulator(port=port).start()


def test_a_simulator_can_be_started_again() -> None:
    sim = Simulator()
    for _ in range(2):
        with sim:
            assert hello(sim).stop_reason == "end_turn"
