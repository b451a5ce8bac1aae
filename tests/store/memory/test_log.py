"""The log of a memory directory: lines by their place, and those that cannot be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sevenfold.core.errors import FileDamaged, WireError
from sevenfold.core.events import Event, LineQuarantined
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.files import LogStat, MemoryLog
from sevenfold.store.memory.state import MemoryState, read_memory_state, write_memory_state
from sevenfold.store.transcript.transcript import RecordPosition


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(tmp_path / "control", create=True) as folder:
        yield folder


def test_a_line_that_cannot_be_read_is_told_by_its_place_and_passed_over(control: Folder) -> None:
    control.replace("log.jsonl", b"nonsense\nmore of it\nand no end")
    events: list[Event] = []
    found = list(MemoryLog(control, events.append).read())
    assert [line.entry for line in found] == [None, None]
    assert [line.place for line in found] == [RecordPosition(0, 9), RecordPosition(9, 11)]
    told = [event for event in events if isinstance(event, LineQuarantined)]
    assert [(one.transcript, one.offset, one.length_bytes) for one in told] == [
        (f"{control.path}/log.jsonl", 0, 9),
        (f"{control.path}/log.jsonl", 9, 11),
    ]


def test_lines_are_taken_from_where_one_begins_and_only_with_their_end(control: Folder) -> None:
    control.replace("log.jsonl", b"one\ntwo\nthree")
    log = MemoryLog(control, lambda _: None)
    assert list(log.read_lines()) == [b"one\n", b"two\n"]
    assert [line.place for line in log.read(4)] == [RecordPosition(4, 4)]
    assert log.parse(b"one\n") is None
    with pytest.raises(FileDamaged, match="no transaction at 4"):
        log.read_at(RecordPosition(4, 4))


def test_a_log_is_known_by_its_size_and_its_head(control: Folder) -> None:
    log = MemoryLog(control, lambda _: None)
    assert log.stat() is None
    control.replace("log.jsonl", b"")
    assert log.stat() is None
    control.replace("log.jsonl", b"x" * 100)
    assert log.stat() == LogStat(100, b"x" * 64)
    log.replace([b"a\n", b"b\n"])
    assert log.stat() == LogStat(4, b"a\nb\n")
    assert log.head_at(2) == b"b\n"


def test_a_state_of_another_format_is_not_read() -> None:
    written = write_memory_state(MemoryState())
    assert read_memory_state(written) == MemoryState()
    other = {**json.loads(written), "format": 10**6}
    with pytest.raises(WireError, match="its format is 1000000"):
        read_memory_state(json.dumps(other).encode())
