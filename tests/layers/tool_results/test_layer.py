"""Layer 1 in a session: each result is decided on once, and every later request has the same decision."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.core.events import Event, ResultSpilled, SpillFailed
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.spills import SpillDecision
from sevenfold.layers.tool_results.policy import EMPTY_RESULT, ToolResultSettings
from sevenfold.layers.tool_results.spill import (
    NO_DISK_REASON,
    SpillLayer,
    SpillStore,
    iter_tool_results,
    spill_digest,
)
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.records import DecisionRecord, MessageRecord
from tests.layers.conversations import Kept

SETTINGS = ToolResultSettings(limit_chars=1_000, round_limit_chars=10_000, preview_bytes=100)
LONG = "a long line of output\n" * 100
ONE, TWO = ToolUseId("one"), ToolUseId("two")
TOOLS = {use: ToolUse(use, "Bash", EMPTY_OBJECT) for use in (ONE, TWO)}


@pytest.fixture
def layer(tmp_path: Path, events: list[Event]) -> Generator[SpillLayer]:
    with Folder.open(tmp_path / "session", create=True) as session:
        spills = SpillStore(session, SETTINGS, emit=events.append)
        yield SpillLayer(settings=SETTINGS, spills=spills, emit=events.append)
        spills.close()


def told(**texts: str | None) -> Message:
    return Message("user", tuple(ToolResult(ToolUseId(use), text) for use, text in texts.items()))


def decide(layer: SpillLayer, *messages: Message) -> Sequence[SpillDecision]:
    return asyncio.run(layer.decide(messages, TOOLS))


def test_a_long_result_goes_to_disk_and_a_short_one_stays(layer: SpillLayer, events: list[Event]) -> None:
    message = told(one=LONG, two="short")
    first, second = decide(layer, message)
    assert (first.tool_use_id, second.tool_use_id) == (ONE, TWO)
    assert first.spill is not None
    assert (second.spill, second.preview) == (None, None)
    shown = layer.rendered(message)
    assert [block.content for block in iter_tool_results(shown)] == [first.preview, "short"]
    assert [type(event) for event in events] == [ResultSpilled]


def test_a_result_is_decided_on_once_whatever_its_messages_bring_again(
    layer: SpillLayer, events: list[Event]
) -> None:
    message = told(one=LONG)
    (made,) = decide(layer, message)
    shown = layer.rendered(message)
    assert decide(layer, message) == ()
    assert decide(layer, shown) == (), "its own preview is no other result"
    assert layer.rendered(shown) == shown
    (other,) = decide(layer, told(one=LONG + "more"))
    assert other.digest != made.digest
    assert len(events) == 2
    assert decide(layer, told(two="short")) != ()
    assert decide(layer, told(two="shorter")) == (), "what stayed is not decided on again"


def test_the_tool_of_a_result_is_known_by_its_request(layer: SpillLayer) -> None:
    layer.settings = replace(SETTINGS, opted_out=("Bash",))
    assert [made.spill for made in decide(layer, told(one=LONG))] == [None]
    (unknown,) = decide(layer, told(three=LONG))
    assert unknown.spill is not None


def test_without_a_disk_a_long_result_stays_and_an_event_says_so(events: list[Event]) -> None:
    layer = SpillLayer(settings=SETTINGS, spills=None, emit=events.append)
    message = told(one=LONG, two="short")
    assert [made.spill for made in decide(layer, message)] == [None, None]
    assert layer.rendered(message) == message
    assert events == [SpillFailed(ONE, len(LONG), NO_DISK_REASON)]
    assert layer.store_whole(ToolResult(ONE, LONG)) is None


def test_a_message_without_a_change_is_the_same_object(layer: SpillLayer) -> None:
    for message in (
        Message("user", "words"),
        Message("assistant", (Text("no results"),)),
        told(one="short"),
        told(never="decided on"),
    ):
        decide(layer, *([message] if message == told(one="short") else []))
        assert layer.rendered(message) is message


def test_a_rendered_message_keeps_its_other_blocks_and_fields(layer: SpillLayer) -> None:
    more = JsonObject({"id": "msg_1"})
    message = Message("user", (Text("see"), ToolResult(ONE, None), Text("done")), more)
    decide(layer, message)
    assert layer.rendered(message) == Message(
        "user", (Text("see"), ToolResult(ONE, EMPTY_RESULT), Text("done")), more
    )


def test_a_decision_of_an_earlier_process_holds(layer: SpillLayer) -> None:
    (made,) = decide(layer, told(one=LONG))
    other = SpillLayer(settings=SETTINGS, spills=layer.spills, emit=layer.emit)
    other.restore(made)
    assert decide(other, told(one=LONG)) == ()
    assert other.rendered(told(one=LONG)) == layer.rendered(told(one=LONG))
    assert made.digest == spill_digest(ToolResult(ONE, LONG))


def test_a_whole_result_is_stored_once_on_request(layer: SpillLayer, events: list[Event]) -> None:
    (made,) = decide(layer, told(one=LONG))
    assert layer.spills is not None
    assert layer.store_whole(ToolResult(ONE, LONG)) == layer.spills.path_of(made)
    assert len(events) == 1
    decide(layer, told(two="short"))
    path = layer.store_whole(ToolResult(TWO, "short"))
    assert path is not None
    assert Path(path).read_text() == "short"


def test_messages_join_the_history_with_previews_and_their_decisions_are_written(layer: SpillLayer) -> None:
    talk = Kept()
    calls, results = Message("assistant", tuple(TOOLS.values())), told(one=LONG, two="short")
    asyncio.run(layer.add(talk, [Message("user", "go"), calls, results]))
    shown = layer.rendered(results)
    assert [item.message for item in talk.shown] == [Message("user", "go"), calls, shown]
    assert shown != results
    assert talk.kept.bodies == [
        *(MessageRecord(message) for message in (Message("user", "go"), calls, shown)),
        *(DecisionRecord(layer.decisions[use]) for use in (ONE, TWO)),
    ]


def test_decisions_whose_caller_was_cancelled_are_handed_to_the_next(layer: SpillLayer) -> None:
    async def cancelled() -> Sequence[SpillDecision]:
        asking = asyncio.ensure_future(layer.decide([told(one=LONG)], TOOLS))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return await layer.decide([told(two="short")], TOOLS)

    assert [made.tool_use_id for made in asyncio.run(cancelled())] == [ONE, TWO]
