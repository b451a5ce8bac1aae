"""Appending: acknowledged is durable, lines never mix, and a torn tail spoils nothing after it."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.core.errors import (
    DiskFault,
    DiskFull,
    FileMissing,
    InputError,
    LockBusy,
    NotRegular,
    StoreError,
    WriterBroken,
)
from sevenfold.core.events import Event, TailSealed
from sevenfold.store.files.disk import Disk, SystemDisk
from sevenfold.store.files.folder import Folder, FolderTimeouts
from sevenfold.store.transcript.reader import BadLine, StoredRecord, resume
from sevenfold.store.transcript.records import write_line
from sevenfold.store.transcript.transcript import RecordPosition, Transcript
from tests.store.disks import QuickDisk, effects
from tests.store.faults import Fault, FaultyDisk
from tests.store.transcripts import FILE, SESSION, ids, said, scanned, stored, write_raw

WRITERS, TIMES = 4, 40


def on(sessions: Folder, disk: Disk) -> Folder:
    return Folder.open(sessions.path, disk=disk)


def test_records_are_read_back_in_the_order_they_were_written(sessions: Folder) -> None:
    records = [said(f"{n}", "é" * n) for n in range(20)]
    with Transcript.open(sessions, SESSION) as transcript:
        places = [transcript.append(record) for record in records[:10]]
        places += transcript.append_all(records[10:])
    assert scanned(sessions) == [
        StoredRecord(record, place.offset) for record, place in zip(records, places, strict=True)
    ]
    data = (sessions.path / FILE).read_bytes()
    for record, place in zip(records, places, strict=True):
        assert data[place.offset : place.offset + place.length_bytes] == write_line(record)


def test_nothing_appended_is_nothing_changed(sessions: Folder) -> None:
    with Transcript.open(sessions, SESSION) as transcript:
        assert transcript.append_all([]) == []
    assert (sessions.path / FILE).read_bytes() == b""


def test_one_fsync_makes_any_number_of_records_durable(sessions: Folder) -> None:
    disk = FaultyDisk()
    with on(sessions, disk) as folder, Transcript.open(folder, SESSION) as transcript:
        disk.seen.clear()
        transcript.append_all([said("1"), said("2")])
        assert effects(disk.seen) == ["flock", "write", "fsync", "flock"]
        disk.seen.clear()
        transcript.append(said("3"), durable=False)
        assert effects(disk.seen) == ["flock", "write", "flock"]
        disk.seen.clear()
        transcript.sync()
        assert disk.seen == ["fsync"]


def test_a_transcript_found_there_is_made_durable_by_name_too(sessions: Folder) -> None:
    """Its maker may have died before its name was; a record acknowledged by us must not go with it."""
    (sessions.path / FILE).touch()
    disk = FaultyDisk()
    with on(sessions, disk) as folder, Transcript.open(folder, SESSION):
        assert effects(disk.seen)[-2:] == ["open", "fsync"]


def test_a_torn_tail_is_closed_off_at_every_place_it_can_be_torn(sessions: Folder) -> None:
    torn = write_line(said("torn", "a \u2028 line"))
    for cut in range(len(torn) + 1):
        write_raw(sessions, said("first"), torn[:cut])
        events: list[Event] = []
        with Transcript.open(sessions, SESSION, emit=events.append) as transcript:
            place = transcript.append(said("next"))
        whole = ["torn"] if cut >= len(torn) - 1 else []
        assert ids(stored(sessions)) == ["first", *whole, "next"], cut
        end = len(write_line(said("first"))) + cut
        sealed = 0 < cut < len(torn)
        assert events == ([TailSealed(f"{sessions.path}/{FILE}", end)] if sealed else [])
        assert place.offset == end + sealed
        bad = [line for line in scanned(sessions) if isinstance(line, BadLine)]
        assert len(bad) == (1 if sealed and not whole else 0)


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\xff", b"{", b"\n\n", b"x" * 100_000], ids=ascii)
def test_whatever_a_power_cut_leaves_at_the_end_the_next_record_is_whole(
    sessions: Folder, tail: bytes
) -> None:
    write_raw(sessions, said("first"), tail)
    with Transcript.open(sessions, SESSION) as transcript:
        transcript.append(said("next"))
        transcript.append(said("last"))
    assert ids(stored(sessions)) == ["first", "next", "last"]


def test_a_session_goes_on_from_what_it_resumed_with(sessions: Folder) -> None:
    """A tail that lacks only its newline is there when it is read, and still there once it is closed off."""
    write_raw(sessions, said("first"), write_line(said("tail"))[:-1])
    before = resume(sessions, SESSION)
    with Transcript.open(sessions, SESSION) as transcript:
        transcript.append(said("next"))
    after = resume(sessions, SESSION)
    assert ids(before.records) == ["first", "tail"]
    assert after.records[:2] == before.records
    assert after.bad == before.bad == ()


def count_to_append(sessions: Folder) -> int:
    """Which operation the first append starts with, counting from 1."""
    disk = FaultyDisk()
    with on(sessions, disk) as folder, Transcript.open(folder, "counted"):
        return len(disk.seen) + 1


def test_a_failed_fsync_is_never_tried_again_on_the_same_handle(sessions: Folder) -> None:
    failing = FaultyDisk(Fault(count_to_append(sessions) + 3, "EIO"))
    with on(sessions, failing) as folder:
        with Transcript.open(folder, SESSION) as transcript:
            with pytest.raises(DiskFault):
                transcript.append(said("doubtful"))
            for attempt in (lambda: transcript.append(said("next")), transcript.sync):
                with pytest.raises(WriterBroken, match="open it again"):
                    attempt()
        with Transcript.open(folder, SESSION) as transcript:
            transcript.append(said("doubtful"))
    found = resume(sessions, SESSION)
    assert ids(found.records) == ["doubtful"]
    assert found.repeated == 1


def test_what_is_on_the_disk_is_acknowledged_though_looking_at_it_fails(sessions: Folder) -> None:
    at = count_to_append(sessions)
    disk = FaultyDisk(Fault(at + 4, "EIO"))
    with on(sessions, disk) as folder, Transcript.open(folder, SESSION) as transcript:
        transcript.append(said("first"))
        assert disk.seen[at + 3] == "stat"
        transcript.append(said("second"))
    assert ids(stored(sessions)) == ["first", "second"]


def test_an_error_of_closing_is_one_of_ours_and_closing_again_is_harmless(sessions: Folder) -> None:
    disk = FaultyDisk(Fault(count_to_append(sessions), "EIO"))
    with on(sessions, disk) as folder:
        transcript = Transcript.open(folder, SESSION)
        with pytest.raises(DiskFault, match="close"):
            transcript.close()
        transcript.close()


def test_a_full_disk_costs_the_record_and_nothing_else(sessions: Folder, events: list[Event]) -> None:
    class FullDisk(QuickDisk):
        room = 1 << 20

        def write(self, fd: int, data: memoryview) -> int:
            if not self.room:
                raise OSError(28, "No space left on device")
            taken = super().write(fd, data[: self.room])
            self.room -= taken
            return taken

    disk = FullDisk()
    with on(sessions, disk) as folder, Transcript.open(folder, SESSION, emit=events.append) as transcript:
        transcript.append(said("first"))
        disk.room = 50
        for _ in range(2):
            with pytest.raises(DiskFull, match="free some space"):
                transcript.append(said("lost"))
        disk.room = 1 << 20
        transcript.append(said("next"))
    assert ids(stored(sessions)) == ["first", "next"]
    assert len(events) == 1


def test_a_lock_that_is_let_go_late_costs_nothing(sessions: Folder) -> None:
    at = count_to_append(sessions)
    disk = FaultyDisk(Fault(at + 5, "EINTR"))
    with on(sessions, disk) as folder, Transcript.open(folder, SESSION) as transcript:
        transcript.append(said("first"))
        assert effects(disk.seen[at - 1 :]) == ["flock", "write", "fsync", "flock", "flock"]
        with Transcript.open(sessions, SESSION) as other:
            other.append(said("second"))
    assert ids(stored(sessions)) == ["first", "second"]


def test_who_holds_it_too_long_is_named(sessions: Folder) -> None:
    with (
        Folder.open(sessions.path, timeouts=FolderTimeouts(mutex=timedelta(0))) as folder,
        Transcript.open(folder, SESSION) as transcript,
        sessions.opened(FILE, os.O_RDWR) as fd,
    ):
        SystemDisk().flock(fd, 2)
        with pytest.raises(LockBusy, match=FILE):
            transcript.append(said("waiting"))


def test_a_closed_transcript_says_so(sessions: Folder) -> None:
    transcript = Transcript.open(sessions, SESSION)
    transcript.close()
    transcript.close()
    for attempt in (lambda: transcript.append(said("late")), transcript.sync):
        with pytest.raises(StoreError, match="closed"):
            attempt()


def test_a_record_too_long_is_refused_before_anything_is_written(
    sessions: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sevenfold.store.files.MAX_RECORD_LINE_BYTES", 1000)
    with Transcript.open(sessions, SESSION) as transcript:
        with pytest.raises(InputError):
            transcript.append_all([said("short"), said("long", "x" * 1000)])
        assert transcript.append(said("next")) == RecordPosition(0, len(write_line(said("next"))))


def test_what_is_added_to_a_removed_transcript_is_not_acknowledged(sessions: Folder) -> None:
    with Transcript.open(sessions, SESSION) as transcript:
        transcript.append(said("first"))
        sessions.remove(FILE)
        with pytest.raises(FileMissing, match="removed while it was open"):
            transcript.append(said("second"))


def test_a_link_in_place_of_a_transcript_is_not_written_to(sessions: Folder, outside: Path) -> None:
    (sessions.path / FILE).symlink_to(outside / "secret.md")
    with pytest.raises(NotRegular):
        Transcript.open(sessions, SESSION)
    assert (outside / "secret.md").read_text("utf-8") == "secret"


def test_who_hears_of_a_sealed_tail_may_write_to_the_transcript(sessions: Folder) -> None:
    write_raw(sessions, b"torn")

    def note(event: Event) -> None:
        transcript.append(said(type(event).__name__))

    with Transcript.open(sessions, SESSION, emit=note) as transcript:
        transcript.append(said("first"))
    assert ids(stored(sessions)) == ["first", "TailSealed"]
