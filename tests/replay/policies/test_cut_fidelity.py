"""After a cut it is counted what the session went on to use, and whether that was still there."""

from __future__ import annotations

from datetime import UTC, datetime

from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.spills import SpillDecision
from sevenfold.replay.policies.fidelity import CutFidelity, measure_cut_fidelity
from sevenfold.store.files import RecordId
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    CutRecord,
    DecisionRecord,
    InjectedRecord,
    KeptSegment,
    MessageRecord,
    Record,
    RecordBody,
)

AT = datetime(2026, 11, 15, tzinfo=UTC)
LINE = "def parse_header(line: str) -> tuple[str, str]:"


def records(*bodies: RecordBody) -> list[Record]:
    return [Record(body, AT, RecordId(str(number))) for number, body in enumerate(bodies)]


def read(number: int, path: str, text: str) -> tuple[MessageRecord, MessageRecord]:
    use = ToolUseId(f"t{number}")
    asked = Message("assistant", (ToolUse(use, "read", JsonObject({"file_path": path})),))
    return MessageRecord(asked), MessageRecord(Message("user", (ToolResult(use, text),)))


def edit(old: str) -> MessageRecord:
    given = JsonObject({"file_path": "x", "old_string": old, "new_string": "y"})
    return MessageRecord(Message("assistant", (ToolUse(ToolUseId("e"), "edit", given),)))


def cleared(*uses: str, marker: str = "[cleared]") -> CutRecord:
    detail = freeze_object({"cleared": dict.fromkeys(uses, marker)})
    return CutRecord(2, "old results", None, detail)


def only(*bodies: RecordBody) -> CutFidelity:
    [cut] = measure_cut_fidelity(records(*bodies))
    return cut


def test_what_was_cleared_and_is_quoted_later_is_one_pointer_away_by_its_path() -> None:
    cut = only(*read(1, "src/a.py", LINE), cleared("t1"), edit(LINE))
    # The line, and the name in it.
    assert (cut.layer, cut.used, cut.in_view, cut.pointed) == (2, 2, 0, 2)


def test_what_was_kept_is_in_view() -> None:
    cut = only(*read(1, "src/a.py", LINE), *read(2, "src/b.py", "nothing"), cleared("t2"), edit(LINE))
    assert (cut.used, cut.in_view) == (2, 2)


def test_what_no_result_had_shown_before_the_cut_does_not_count() -> None:
    cut = only(
        *read(1, "src/a.py", "nothing"),
        cleared("t1"),
        *read(2, "src/c.py", LINE),
        edit(LINE),
        edit("words only"),
    )
    assert cut.used == 0


def test_after_a_compaction_only_what_the_summary_or_a_kept_message_names_is_left() -> None:
    summary = InjectedRecord(Message("user", (Text("We worked on src/a.py."),)), "summary")
    boundary = BoundaryRecord(trigger="auto", tokens_before=1_000, last_message=None)
    cut = only(
        *read(1, "src/a.py", LINE), *read(2, "lib/z.py", "other_name = 1"), boundary, summary, edit(LINE)
    )
    assert (cut.layer, cut.used, cut.in_view, cut.pointed) == (4, 2, 0, 2)
    lost = only(*read(2, "lib/z.py", LINE), boundary, summary, edit(LINE))
    assert (lost.used, lost.in_view, lost.pointed) == (2, 0, 0)


def test_messages_that_a_boundary_kept_are_in_view() -> None:
    kept = KeptSegment(RecordId("2"), RecordId("5"), RecordId("3"), 0)
    first, second = read(1, "src/a.py", "gone"), read(2, "src/b.py", LINE)
    cut = only(
        *first,
        *second,
        BoundaryRecord(trigger="auto", tokens_before=1, last_message=None, tools=(), kept=kept),
        edit(LINE),
    )
    assert (cut.used, cut.in_view) == (2, 2)


def test_a_spilled_result_counts_as_its_preview_and_leads_to_its_file() -> None:
    decision = SpillDecision(
        tool_use_id=ToolUseId("t1"),
        preview="see tool-results/t1.txt",
        spill="tool-results/t1.txt",
        digest=None,
        size_bytes=9,
    )
    asked = Message("assistant", (ToolUse(ToolUseId("t1"), "shell", JsonObject({"command": "make"})),))
    shown = Message("user", (ToolResult(ToolUseId("t1"), LINE),))
    cut = only(
        MessageRecord(asked),
        MessageRecord(shown),
        DecisionRecord(decision),
        *read(2, "src/b.py", "x"),
        cleared("t2"),
        edit(LINE),
    )
    assert (cut.used, cut.in_view, cut.pointed) == (2, 0, 2)


def test_each_cut_counts_what_was_used_after_it() -> None:
    bodies = (
        *read(1, "src/a.py", LINE),
        cleared("t1"),
        edit(LINE),
        *read(2, "src/a.py", LINE),
        cleared("t2"),
        edit(LINE),
    )
    first, second = measure_cut_fidelity(records(*bodies))
    assert (first.used, second.used) == (4, 2)
