"""Bad input through an attached client of either colour, whole or streamed: what the engine promises for it
(docs/engine.md) holds there too, and the provider, which forgives nothing, is never asked to."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest

from sevenfold.core.errors import SettingsError, WireError
from sevenfold.core.events import HistoryRepaired, ResultSpilled
from sevenfold.core.messages import without_breakpoints
from sevenfold.integrations.attached_client import attach
from sevenfold.testing import Choices, Prompt, Reply, Simulator, say
from tests.session.talk import Listener
from tests.session.test_bad_input import HUGE, LARGE, SetClock

Way: TypeAlias = Literal["blocking", "blocking stream", "async", "async stream"]
Wire: TypeAlias = dict[str, Any]

MODEL = "claude-opus-5"
WAYS: tuple[Way, ...] = ("blocking", "blocking stream", "async", "async stream")
USE: Wire = {"type": "tool_use", "id": "t1", "name": "Look", "input": {"at": "it"}}

pytestmark = pytest.mark.parametrize("way", WAYS)


@dataclass(slots=True)
class Heard:
    """What arrived at the provider, but for cache markers, which move."""

    prompts: list[str]

    def __call__(self, prompt: Prompt) -> Reply:
        self.prompts.append(" ".join(str(without_breakpoints(message)) for message in prompt.messages))
        return say("Well.")


@pytest.fixture
def heard() -> Heard:
    return Heard([])


@pytest.fixture(scope="module")
def running() -> Generator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def sim(running: Simulator, heard: Heard) -> Simulator:
    running.reset(heard, choices=Choices(empty_text=False))
    return running


@pytest.fixture
def listener() -> Listener:
    return Listener()


def user(*content: Wire) -> Wire:
    return {"role": "user", "content": list(content)}


def assistant(*content: Wire) -> Wire:
    return {"role": "assistant", "content": list(content)}


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


def result(content: object) -> Wire:
    return {"type": "tool_result", "tool_use_id": "t1", "content": content}


def looked_up(content: object) -> list[Wire]:
    return [user(text("go")), assistant(USE), user(result(content))]


def run(
    way: Way, sim: Simulator, histories: Iterable[list[Wire]], project: Path | None = None, **given: Any
) -> None:
    """Ask for an answer to each in turn; the next one may be made after that."""
    given |= {"project": project, "environ": {"HOME": str(project or "/nowhere")}}
    if way.startswith("async"):
        asyncio.run(_run_async(way, sim, histories, given))
        return
    with attach(sim.client(max_retries=0), **given) as client:
        for messages in histories:
            asked: Any = {"model": MODEL, "max_tokens": 100, "messages": messages}
            if way == "blocking":
                client.messages.create(**asked)
                continue
            with client.messages.stream(**asked) as stream:
                stream.get_final_message()


async def _run_async(way: Way, sim: Simulator, histories: Iterable[list[Wire]], given: Any) -> None:
    async with (
        sim.async_client(max_retries=0) as own,
        attach(own, **given) as client,
    ):
        for messages in histories:
            asked: Any = {"model": MODEL, "max_tokens": 100, "messages": messages}
            if way == "async":
                await client.messages.create(**asked)
                continue
            async with client.messages.stream(**asked) as stream:
                await stream.get_final_message()


BAD: dict[str, list[Wire]] = {
    "stray result": [user(text("go")), user(result("42 degrees"))],
    "lost result": [user(text("go")), assistant(USE), assistant(text("and")), user(text("well?"))],
    "text": [user(text("half \ud83d of it"))],
    "block": [user(text("go"), {"text": "of no type"})],
}


@pytest.mark.parametrize("wrong", BAD)
def test_what_can_be_mended_is_mended_and_told(
    sim: Simulator, listener: Listener, way: Way, wrong: str
) -> None:
    run(way, sim, [BAD[wrong]], emit=listener)
    told = [event.repair for event in listener.events if isinstance(event, HistoryRepaired)]
    assert told == [wrong]
    assert [entry.status for entry in sim.ledger.entries] == [200]


class Broken:
    """An object of no SDK that we know."""

    def model_dump(self, **_: object) -> object:
        raise RuntimeError("not today")


@pytest.mark.parametrize("block", [None, 5, b"bytes", Broken()], ids=lambda block: type(block).__name__)
def test_what_is_no_block_is_named_before_anything_is_sent(sim: Simulator, way: Way, block: Any) -> None:
    with pytest.raises(WireError, match=r"messages\[1\]: content\[1\]"):
        run(way, sim, [[user(text("go")), user(text("fine"), block)]])
    assert sim.ledger.entries == []


@pytest.mark.story
def test_a_result_of_50_mb_goes_to_disk_and_its_preview_is_sent(
    sim: Simulator, heard: Heard, listener: Listener, tmp_path: Path, way: Way
) -> None:
    run(way, sim, [looked_up(HUGE)], project=tmp_path, emit=listener)
    (event,) = (event for event in listener.events if isinstance(event, ResultSpilled))
    assert Path(event.path).stat().st_size == len(HUGE)
    assert len(heard.prompts[0]) < 5_000


def test_a_deleted_spill_changes_no_byte_of_what_is_sent(
    sim: Simulator, heard: Heard, listener: Listener, tmp_path: Path, way: Way
) -> None:
    def histories() -> Generator[list[Wire]]:
        messages = looked_up(LARGE)
        yield messages
        (event,) = (event for event in listener.events if isinstance(event, ResultSpilled))
        Path(event.path).unlink()
        yield [*messages, assistant(text("Well.")), user(text("more"))]

    run(way, sim, histories(), project=tmp_path, emit=listener)
    assert heard.prompts[1].startswith(heard.prompts[0])


def test_a_clock_that_is_set_back_changes_nothing(
    sim: Simulator, heard: Heard, listener: Listener, way: Way
) -> None:
    clock = SetClock()

    def histories() -> Generator[list[Wire]]:
        messages = looked_up("short")
        yield messages
        clock.time -= timedelta(days=3_650)
        yield [*messages, assistant(text("Well.")), user(text("more"))]

    run(way, sim, histories(), clock=clock, emit=listener)
    assert heard.prompts[1].startswith(heard.prompts[0])
    assert [entry.status for entry in sim.ledger.entries] == [200, 200]


def test_margins_that_leave_nothing_of_the_window_are_refused_before_anything_is_sent(
    sim: Simulator, way: Way
) -> None:
    cramped = {"models": {MODEL: {"window_tokens": 30_000}}}
    with pytest.raises(SettingsError, match="leave nothing of the 30,000 tokens"):
        run(way, sim, [[user(text("go"))]], settings=cramped)
    assert sim.ledger.entries == []
