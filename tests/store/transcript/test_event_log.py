"""Events are still there when somebody asks what happened, within bounds, and never at the session's cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.events import Event, EventsLost, KindPaused, WriterFailed
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript import transcript
from sevenfold.store.transcript.transcript import EVENTS_LEFT_OUT, EventLog, LoggedEvent, read_events


def written(folder: Folder) -> list[str]:
    return [told.name for told in read_events(folder)]


def test_an_event_reads_back_with_its_time_and_its_fields(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        log = EventLog(folder, ManualClock())
        log.add(WriterFailed("notes", "the disk is full"))
        assert written(folder) == []
        log.flush()
        log.flush()
        [told] = read_events(folder)
    assert isinstance(told, LoggedEvent)
    assert told.at == ManualClock().now()
    assert dict(told.fields) == {"event": "WriterFailed", "writer": "notes", "reason": "the disk is full"}


def test_a_second_session_of_the_same_name_goes_on_in_the_same_file(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        for name in ("one", "two"):
            log = EventLog(folder, ManualClock())
            log.add(WriterFailed(name, "x"))
            log.flush()
        assert [told.fields["writer"] for told in read_events(folder)] == ["one", "two"]


def test_a_full_file_becomes_the_older_one_and_nothing_grows_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "MAX_EVENT_LOG_BYTES", 2_000)
    with Folder.open(tmp_path) as folder:
        log = EventLog(folder, ManualClock())
        for number in range(200):
            log.add(WriterFailed(str(number), "x"))
            log.flush()
        found = [int(str(told.fields["writer"])) for told in read_events(folder)]
        sizes = [entry.size_bytes for name in folder.names() if (entry := folder.stat(name))]
    assert found == list(range(found[0], 200))
    assert len(found) > 5
    assert sum(sizes) < 5_000


def test_of_a_storm_the_rest_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "MAX_WAITING", 3)
    with Folder.open(tmp_path) as folder:
        log = EventLog(folder, ManualClock())
        for _ in range(10):
            log.add(KindPaused("notes", 3, "later", "busy"))
        log.flush()
        *_, last = read_events(folder)
        assert len(written(folder)) == 4
    assert (last.name, last.fields["count"]) == (EVENTS_LEFT_OUT, 7)


def test_a_line_that_is_damaged_is_passed_over(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        log = EventLog(folder, ManualClock())
        log.add(WriterFailed("one", "x"))
        log.flush()
        with (tmp_path / "events.jsonl").open("ab") as file:
            file.write(b'{"c":"00000000","k":"event"\n{"torn')
        log.add(WriterFailed("two", "x"))
        log.flush()
        assert [told.fields["writer"] for told in read_events(folder)] == ["one", "two"]


def test_a_disk_that_refuses_stops_nobody_and_is_told_once(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as folder:
        told: list[Event] = []
        log = EventLog(folder, ManualClock(), told.append)
        (tmp_path / "events.jsonl").mkdir()
        for _ in range(2):
            log.add(WriterFailed("one", "x"))
            log.flush()
        assert [type(event) for event in told] == [EventsLost]
        (tmp_path / "events.jsonl").rmdir()
        assert written(folder) == []
