"""Many writers on one transcript: threads, processes, forked children, and one that is being closed."""

from __future__ import annotations

import os
import threading

import pytest

from sevenfold.core.errors import StoreError
from sevenfold.store.files.disk import Disk
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.transcript import RecordPosition, Transcript
from tests.store import children
from tests.store.disks import QuickDisk
from tests.store.transcripts import SESSION, ids, said, scanned, stored

WRITERS, TIMES = 4, 40


def on(sessions: Folder, disk: Disk) -> Folder:
    return Folder.open(sessions.path, disk=disk)


class DribblingDisk(QuickDisk):
    """Takes a few hundred bytes at a time, so that a line takes many calls."""

    def write(self, fd: int, data: memoryview) -> int:
        return super().write(fd, data[:500])


def names(writer: int) -> list[str]:
    return [f"{writer}-{n}" for n in range(TIMES)]


def append_many(transcript: Transcript, writer: int) -> None:
    for name in names(writer):
        transcript.append(said(name, name * 700))


def expect_unmixed(sessions: Folder) -> None:
    lines = stored(sessions)
    assert len(scanned(sessions)) == len(lines) == WRITERS * TIMES
    for writer in range(WRITERS):
        assert [name for name in ids(lines) if name.startswith(f"{writer}-")] == names(writer)
    assert all(line.record == said(line.record.id, line.record.id * 700) for line in lines)


@pytest.mark.parametrize("shared", [True, False], ids=["one writer", "a writer each"])
def test_threads_never_mix_their_lines(sessions: Folder, shared: bool) -> None:
    with on(sessions, DribblingDisk()) as folder:
        writers = [Transcript.open(folder, SESSION)] * WRITERS
        if not shared:
            writers = [writers[0], *(Transcript.open(folder, SESSION) for _ in range(WRITERS - 1))]
        threads = [
            threading.Thread(target=append_many, args=(transcript, writer))
            for writer, transcript in enumerate(writers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for transcript in writers:
            transcript.close()
    expect_unmixed(sessions)


def test_processes_never_mix_their_lines(sessions: Folder) -> None:
    def write(writer: int) -> None:
        with on(sessions, DribblingDisk()) as folder, Transcript.open(folder, SESSION) as transcript:
            append_many(transcript, writer)

    children.expect_success([lambda writer=writer: write(writer) for writer in range(WRITERS)])
    expect_unmixed(sessions)


def test_a_forked_child_is_refused_and_leaves_its_parents_handle_alone(sessions: Folder) -> None:
    transcript = Transcript.open(sessions, SESSION)
    transcript.append(said("parent"))

    def use_in_child() -> None:
        fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(3)]
        for attempt in (lambda: transcript.append(said("child")), transcript.sync):
            with pytest.raises(StoreError, match="parent process"):
                attempt()
        transcript.close()
        for fd in fds:
            os.close(fd)
        with Transcript.open(sessions, SESSION) as own:
            own.append(said("own"))

    children.expect_success([use_in_child])
    transcript.append(said("parent again"))
    transcript.close()
    assert ids(stored(sessions)) == ["parent", "own", "parent again"]


class WaitingDisk(QuickDisk):
    """A write that takes until somebody lets it go on."""

    def __init__(self) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()

    def write(self, fd: int, data: memoryview) -> int:
        self.entered.set()
        self.go_on.wait(30)
        return super().write(fd, data)


def test_a_child_forked_while_a_thread_was_writing_is_refused_and_does_not_hang(sessions: Folder) -> None:
    disk = WaitingDisk()

    def use_in_child() -> None:
        with pytest.raises(StoreError, match="parent process"):
            transcript.append(said("child"))
        transcript.close()

    with on(sessions, disk) as folder, Transcript.open(folder, SESSION) as transcript:
        thread = threading.Thread(target=lambda: transcript.append(said("parent")))
        thread.start()
        disk.entered.wait(30)
        children.expect_success([use_in_child])
        disk.go_on.set()
        thread.join()
    assert ids(stored(sessions)) == ["parent"]


def test_closing_waits_for_a_record_that_is_being_written(sessions: Folder) -> None:
    """Else the number of the closed handle may be another file's by the time the line is written."""
    disk = WaitingDisk()
    with on(sessions, disk) as folder:
        transcript = Transcript.open(folder, SESSION)
        done: list[RecordPosition] = []
        writer = threading.Thread(target=lambda: done.append(transcript.append(said("first"))))
        closer = threading.Thread(target=transcript.close)
        writer.start()
        disk.entered.wait(30)
        closer.start()
        closer.join(0.1)
        disk.go_on.set()
        writer.join()
        closer.join()
    assert len(done) == 1
    assert ids(stored(sessions)) == ["first"]
