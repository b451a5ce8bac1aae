"""What the torture rigs found in the store, each as a small test of its own."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import DiskFault, LockBusy, NotRegular
from sevenfold.core.events import Event, LockFaceFailed
from sevenfold.core.json import JsonObject
from sevenfold.store.files.disk import READ_FLAGS, SystemDisk
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.lock_state import PID_FILE, PidFile
from sevenfold.store.files.locks import Lock
from sevenfold.store.mailbox import Mail, Mailbox
from tests.store.disks import LackingDisk
from tests.store.faults import Fault, FaultyDisk

LETTER = Mail(
    sender="bob", summary="hello", body=JsonObject({"text": "hi"}), sent=datetime(2026, 11, 15, tzinfo=UTC)
)


class FlakyDisk(SystemDisk):
    """Fails one read when told to, and works again."""

    fails_next_read = False

    def read(self, fd: int, size: int, offset: int) -> bytes:
        if self.fails_next_read:
            self.fails_next_read = False
            raise OSError(errno.EIO, "the device coughed")
        return super().read(fd, size, offset)


def test_mail_that_the_disk_fails_to_read_once_is_received_the_next_time(tmp_path: Path) -> None:
    disk = FlakyDisk()
    events: list[Event] = []
    with Folder.open(tmp_path, disk=disk) as root, root.subfolder("control") as control:
        box = Mailbox(root, "ada", control=control, emit=events.append)
        box.deliver(LETTER)
        disk.fails_next_read = True
        with pytest.raises(DiskFault):
            box.receive()
        assert box.receive() == [LETTER]
        box.close()
    assert events == []


def test_a_face_that_the_disk_fails_to_read_once_is_still_another_programs_lock(tmp_path: Path) -> None:
    disk = FlakyDisk()
    (tmp_path / PID_FILE).write_text("1")
    with Folder.open(tmp_path, disk=disk, own=frozenset([PID_FILE])) as memory:
        lock = Lock(memory, "dream", pid_file=PidFile(memory))
        disk.fails_next_read = True
        with pytest.raises(DiskFault):
            lock.acquire()
        with pytest.raises(LockBusy):
            lock.acquire()
    assert (tmp_path / PID_FILE).read_text() == "1"


def test_a_success_counts_though_the_disk_fails_to_read_the_face(tmp_path: Path) -> None:
    disk = FlakyDisk()
    events: list[Event] = []
    with Folder.open(tmp_path, disk=disk, own=frozenset([PID_FILE])) as memory:
        lock = Lock(memory, "dream", pid_file=PidFile(memory), emit=events.append)
        lease = lock.acquire()

        def commit() -> None:
            disk.fails_next_read = True

        lease.publish(commit)
        assert lock.read_state().last_success
        assert [type(event) for event in events] == [LockFaceFailed]
        assert lock.acquire().token == lease.token + 1


class BusyDisk(SystemDisk):
    """Somebody else is quick to act whenever a file is read."""

    meanwhile: Callable[[], None] | None = None

    def read(self, fd: int, size: int, offset: int) -> bytes:
        found = super().read(fd, size, offset)
        act, self.meanwhile = self.meanwhile, None
        if act:
            act()
        return found


def test_a_lock_taken_while_its_state_is_read_is_no_success_of_another_programs(tmp_path: Path) -> None:
    disk, clock = BusyDisk(), ManualClock()
    own = frozenset([PID_FILE])
    with Folder.open(tmp_path, disk=disk, own=own) as ours, Folder.open(tmp_path, own=own) as theirs:
        rival = Lock(theirs, "dream", clock=clock, pid_file=PidFile(theirs))
        rival.acquire().release()
        clock.pass_time(timedelta(hours=1))
        disk.meanwhile = lambda: rival.acquire() and None
        assert Lock(ours, "dream", clock=clock, pid_file=PidFile(ours)).read_state().last_success is None
        assert disk.meanwhile is None


class Died(BaseException):
    """Stands in for the end of the process."""


def die() -> NoReturn:
    raise Died


def test_a_file_whose_maker_died_with_two_names_on_it_can_be_read(tmp_path: Path) -> None:
    with Folder.open(tmp_path, disk=LackingDisk(die)) as folder, pytest.raises(Died):
        folder.create("a.md", b"whole")
    with Folder.open(tmp_path) as folder:
        assert folder.read("a.md", max_bytes=9) == b"whole"
    assert os.listdir(tmp_path) == ["a.md"]


def test_a_file_that_is_just_getting_its_name_can_be_read(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def look() -> None:
        with Folder.open(tmp_path) as reader:
            seen.append(reader.read("a.md", max_bytes=9))

    with Folder.open(tmp_path, disk=LackingDisk(look)) as folder:
        folder.create("a.md", b"whole")
    assert seen == [b"whole"]
    assert os.listdir(tmp_path) == ["a.md"]


def test_a_second_name_that_is_no_temporary_one_is_still_refused(tmp_path: Path) -> None:
    for name in ("a.md", ".tmp-other", "outside"):
        (tmp_path / name).write_bytes(b"mine")
    os.link(tmp_path / "outside", tmp_path / "b.md")
    os.link(tmp_path / "outside", tmp_path / ".tmp-same")
    with Folder.open(tmp_path) as folder, pytest.raises(NotRegular):
        folder.read("b.md", max_bytes=9)
    assert (tmp_path / ".tmp-other").exists()


def test_a_process_that_dies_after_an_operation_dies_even_if_the_operation_failed(tmp_path: Path) -> None:
    disk = FaultyDisk(Fault(1, "die after"), die=die)
    with pytest.raises(Died):
        disk.open(str(tmp_path / "nothing"), READ_FLAGS)
