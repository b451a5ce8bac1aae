"""Messages that a boundary keeps from before itself: found by its pointer, by a search, and around damage."""

from __future__ import annotations

import pytest

from sevenfold.core.messages import ToolUseId
from sevenfold.core.spills import SpillDecision
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript import reader
from sevenfold.store.transcript.reader import resume
from sevenfold.store.transcript.records import CutRecord, DecisionRecord, KeptSegment, Record, write_line
from tests.store.disks import CountingDisk
from tests.store.transcripts import AT, SESSION, boundary, ids, resumed, said, segment, spoilt, write_raw

BIG = [said(f"big-{n}", "x" * 100_000) for n in range(60)]


def length(*records: Record) -> int:
    return sum(len(write_line(record)) for record in records)


def test_what_was_kept_is_read_by_its_place_and_no_more(sessions: Folder) -> None:
    disk = sessions.disk
    assert isinstance(disk, CountingDisk)
    before = write_raw(sessions, *BIG)
    kept = KeptSegment(RecordId("k1"), RecordId("s"), RecordId("k2"), len(before))
    write_raw(sessions, before, said("k1"), said("k2"), boundary("b", kept, "k2"), said("s"))
    found = resume(sessions, SESSION)
    assert ids(found.kept) == ["k1", "k2"]
    assert ids(found.records) == ["s"]
    assert disk.bytes_read < 3 * reader.CHUNK_BYTES
    assert disk.lowest > len(before) - reader.CHUNK_BYTES - 100


@pytest.mark.parametrize(
    "offset",
    [length(said("1")), 0, 1, length(said("1")) + 3, length(said("1"), said("2")), -7, 1 << 40, 1 << 80],
    ids=["right", "start", "in mid-line", "in the head", "late", "negative", "far", "farther"],
)
def test_kept_messages_are_found_wherever_the_pointer_points(sessions: Folder, offset: int) -> None:
    mark = boundary("b", segment("2", "3", offset))
    found = resumed(sessions, said("1"), said("2"), said("3"), said("4"), mark, said("5"))
    assert ids(found.kept) == ["2", "3"]
    assert ids(found.records) == ["5"]
    assert found.bad == ()


@pytest.mark.parametrize(
    ("lost", "left"),
    [("2", ["3", "4"]), ("3", ["2", "4"]), ("4", ["2", "3", "5"])],
    ids=["head", "middle", "tail"],
)
def test_a_damaged_line_among_the_kept_costs_that_line_alone(
    sessions: Folder, lost: str, left: list[str]
) -> None:
    mark = boundary("b", segment("2", "4", length(said("1"))))
    lines = [spoilt(said(name)) if name == lost else write_line(said(name)) for name in "12345"]
    found = resumed(sessions, *lines, mark, said("6"))
    assert ids(found.kept) == left, "and rather more than less where the tail is gone"
    assert len(found.bad) == 1


def test_kept_messages_may_reach_over_an_earlier_boundary(sessions: Folder) -> None:
    mark = boundary("b2", segment("1", "2", 0))
    found = resumed(sessions, said("1"), boundary("b1"), said("2"), mark, said("3"))
    assert ids(found.kept) == ["1", "2"]
    assert ids(found.records) == ["3"]


def test_kept_messages_that_are_nowhere_are_told(sessions: Folder) -> None:
    found = resumed(sessions, said("1"), boundary("b", segment("x", "y", 5)), said("2"))
    assert found.kept == ()
    assert ids(found.records) == ["2"]
    assert [bad.reason for bad in found.bad] == ["the messages kept by the boundary are not there"]


def test_kept_messages_written_twice_count_once(sessions: Folder) -> None:
    mark = boundary("b", segment("1", "3", 0))
    found = resumed(sessions, said("1"), said("2"), said("2"), said("3"), mark)
    assert ids(found.kept) == ["1", "2", "3"]
    assert found.repeated == 1


def test_decisions_and_cuts_about_kept_messages_are_kept_though_written_after_them(sessions: Folder) -> None:
    decided = Record(
        DecisionRecord(SpillDecision(tool_use_id=ToolUseId("t1"), preview="a preview")), AT, RecordId("d")
    )
    cut = Record(CutRecord(2, "cleared", RecordId("2")), AT, RecordId("c"))
    mark = boundary("b", segment("2", "3", length(said("1"))))
    found = resumed(sessions, said("1"), said("2"), said("3"), decided, said("4"), cut, mark, said("5"))
    assert ids(found.kept) == ["2", "3", "d", "c"]
    assert ids(found.records) == ["5"]
