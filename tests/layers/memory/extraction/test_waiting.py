"""Turns that wait to be looked through: past the share of the session, over restarts, after a compaction."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from sevenfold.core.events import (
    ExtractionSkipped,
)
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.layers.conversation_state import DROPPED_KEY
from sevenfold.layers.memory.extraction.drafts import MAX_LOOK_BYTES
from sevenfold.layers.memory.extraction.settings import ExtractionSettings
from sevenfold.layers.memory.extraction.writer import (
    DEFERRED_REASON,
    RULES_REASON,
    ExtractionRecord,
    read_extraction_record,
    read_unsearched,
)
from sevenfold.providers.scripted import make_response
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    CutRecord,
    MessageRecord,
    Record,
    RecordBody,
    SentRecord,
)
from sevenfold.store.transcript.transcript import Transcript
from tests.layers.learning import School, by_model, written

TABS = "From now on, indent with tabs, never with spaces."


def test_past_its_share_of_the_session_a_turn_waits_and_is_looked_through_at_the_end(tmp_path: Path) -> None:
    found = School(tmp_path, ExtractionSettings())
    lesson = found.session("s1", [make_response("nothing to keep")] * 9)
    lesson.main_usd = 0.5
    for number in range(6):
        lesson.say(f"Please have a look at module {number} of the parser.").end()
    # Five cents are free; what the look at the end may cost is kept back.
    assert len(lesson.models.requests) == 4
    assert found.told(ExtractionSkipped) == [ExtractionSkipped("s1", DEFERRED_REASON)] * 2
    lesson.leave()
    assert "last 4 messages" in str(lesson.models.requests[4].messages[-1])
    lesson.main_usd = 2.0
    lesson.say("Please have a look at the lexer too.").end()
    assert len(lesson.models.requests) == 6
    found.close()


def test_a_turn_that_waits_is_looked_through_though_the_agent_wrote_memory_since(tmp_path: Path) -> None:
    found = School(tmp_path, ExtractionSettings())
    lesson = found.session("s1", [make_response("nothing to keep")] * 9)
    lesson.main_usd = 0.5
    for number in range(4):
        lesson.say(f"Please have a look at module {number} of the parser.").end()
    lesson.say(TABS).end()
    lesson.say("Remember that we deploy on Fridays.")
    lesson.call("memory", "remembered", action="write", name="deploys").end()
    assert {one.reason for one in found.told(ExtractionSkipped) if isinstance(one, ExtractionSkipped)} == {
        DEFERRED_REASON
    }
    lesson.leave()
    assert "last 6 messages" in str(lesson.models.requests[-1].messages[-1])
    found.close()


def test_a_turn_that_waits_is_checked_against_what_was_said_after_a_compaction_too(tmp_path: Path) -> None:
    found = School(tmp_path, ExtractionSettings())
    answer = make_response(calls={"memory": written("tabs", TABS)})
    lesson = found.session("s1", [make_response("nothing to keep")] * 4 + [answer])
    lesson.main_usd = 0.5
    for number in range(4):
        lesson.say(f"Please have a look at module {number} of the parser.").end()
    lesson.say(TABS).end()
    lesson.say("Go on with the lexer, please.").compact().leave()
    assert found.bodies() == {"tabs.md": TABS}
    (stored,) = found.memory.scan()
    assert (stored.origin.said_by, stored.origin.messages) == ("user", ("s1.8",))
    found.close()


def test_the_share_is_counted_over_the_session_however_often_it_is_opened(tmp_path: Path) -> None:
    found, asked = School(tmp_path, ExtractionSettings()), 0
    said: list[Message] = []
    for number in range(10):
        lesson = found.session("s1", [make_response("nothing to keep")] * 2, is_kept=True)
        lesson.said, lesson.main_usd = said, 0.1
        lesson.say(f"Please have a look at module {number} of the parser.").end()
        said, asked = lesson.said, asked + len(lesson.models.requests)
    # As in one session: what one look more at the end may cost is kept back.
    assert asked == 4
    found.close()


def test_a_look_is_counted_though_the_process_dies_in_it(tmp_path: Path) -> None:
    found, spent = School(tmp_path, ExtractionSettings()), list[Decimal]()

    def note_spent(_: ModelRequest) -> ModelResponse:
        with Folder.open(tmp_path / "s1") as folder:
            spent.append(read_extraction_record(folder, "s1").spent.own_usd)
        return make_response("nothing to keep")

    lesson = found.session("s1", [note_spent] * 2, is_kept=True)
    lesson.main_usd = 1.0
    lesson.say("Please have a look at the parser.").end().say("Please have a look at the lexer.").end()
    assert spent == [Decimal(0), Decimal("0.02")]
    found.close()


LONG = "This module parses lists of numbers.\n\n" * 90
"""What a person says of 3,400 bytes."""


def test_what_is_too_much_for_one_look_takes_several_and_nothing_is_left_out(tmp_path: Path) -> None:
    found = School(tmp_path, by_model())
    lesson = found.session("s1", [make_response("nothing to keep")] * 3)
    for number in range(30):
        lesson.say(f"Statement {number}. {LONG}", "I see. " * 900)
    lesson.leave()
    assert [one.messages for one in lesson.looks] == [22, 22, 16]
    assert all(len(one.steps.encode()) <= MAX_LOOK_BYTES for one in lesson.looks)
    shown = "".join(one.steps for one in lesson.looks)
    assert all(f"Statement {number}. " in shown for number in range(30))
    found.close()


def test_at_the_end_what_is_past_the_share_is_read_by_the_rules(tmp_path: Path) -> None:
    found = School(tmp_path, ExtractionSettings())
    lesson = found.session("s1", [make_response("nothing to keep")])
    lesson.main_usd = 0.01
    for number in range(15):
        lesson.say(f"Statement {number}. {LONG}")
    lesson.say(TABS)
    lesson.each_usd = 0.06
    lesson.leave()
    assert len(lesson.looks) == 1
    assert found.told(ExtractionSkipped) == [ExtractionSkipped("s1", RULES_REASON)]
    assert list(found.bodies().values()) == [TABS]
    found.close()


NOW = datetime(2026, 11, 15, tzinfo=UTC)


def write_transcript(folder: Folder, *bodies: tuple[str, RecordBody]) -> dict[str, int]:
    """Where each of these records stands first."""
    records = [Record(body, NOW, RecordId(name)) for name, body in bodies]
    with Transcript.open(folder, "s1") as transcript:
        places = transcript.append_all(records)
    return {record.id: place.offset for record, place in reversed([*zip(records, places, strict=True)])}


def said(text: str) -> MessageRecord:
    return MessageRecord(Message("user", text))


BOUNDARY = BoundaryRecord(trigger="auto", tokens_before=9, last_message=None)
CUT = CutRecord(4, "compaction", None)


@pytest.mark.parametrize("cursor", ["a", "gone", ""])
@pytest.mark.parametrize("is_whole", [True, False])
def test_what_waits_is_found_in_the_transcript(tmp_path: Path, cursor: str, is_whole: bool) -> None:
    dropped = CutRecord(0, "the user went back", None, freeze_object({DROPPED_KEY: ["c"]}))
    with Folder.open(tmp_path) as folder:
        end: list[tuple[str, RecordBody]] = [("cut", CUT)] if is_whole else []
        places = write_transcript(
            folder,
            *(("0", said("zero")), ("a", said("one")), ("b", said("two")), ("c", said("three"))),
            *(("d1", dropped), ("boundary", BOUNDARY), ("0", said("zero")), ("a", said("one")), *end),
            *(("sent", SentRecord(model="m", who="main")), ("e", said("five"))),
        )
        record = ExtractionRecord(cursor=cursor, offset=places["a"] if cursor == "a" else 0)
        found = [one.id for one in read_unsearched(folder, "s1", record)]
        if cursor == "a":
            # What a boundary wrote again was said before. Where it is not whole, nobody knows.
            assert found == (["b", "e"] if is_whole else ["b", "0", "e"])
        else:
            assert found == ["0", "a", "b", "e"]


def test_what_was_looked_through_is_not_read_again(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        places = write_transcript(folder, ("a", said("one")), ("b", said("two")), ("c", said("three")))
        file = tmp_path / "s1.jsonl"
        file.write_bytes(b"x" * (places["b"] - 1) + file.read_bytes()[places["b"] - 1 :])
        record = ExtractionRecord(cursor="b", offset=places["b"])
        assert [one.id for one in read_unsearched(folder, "s1", record)] == ["c"]
        # A place in the middle of a line is another file's: then all is read.
        record = ExtractionRecord(cursor="b", offset=places["b"] + 3)
        assert [one.id for one in read_unsearched(folder, "s1", record)] == ["c"]
        assert read_unsearched(folder, "s2", record) == ()
