"""Mutual exclusion: threads, processes, forks, and somebody who cleans up."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.core.errors import DiskFault, FileDamaged, FileMissing, LockBusy
from sevenfold.store.files.disk import SystemDisk, take_flock
from sevenfold.store.files.folder import Folder, FolderTimeouts
from sevenfold.store.files.locks import edit_file, mutex
from tests.store import children
from tests.store.disks import effects
from tests.store.faults import Fault, FaultyDisk

AT_ONCE = timedelta(0)
THREADS, TIMES = 4, 25


def increment(folder: Folder, control: Folder) -> None:
    def change(before: bytes | None) -> bytes:
        return b"%d" % (int(before or b"0") + 1)

    edit_file(folder, "count", change, control=control, max_bytes=100)


def is_free(control: Folder, name: str = "m") -> bool:
    try:
        with mutex(control, name, wait=AT_ONCE):
            return True
    except LockBusy:
        return False


def test_those_who_are_not_told_wait_as_long_as_the_folder_says(control: Folder) -> None:
    with mutex(control, "m"), Folder.open(control.path, timeouts=FolderTimeouts(mutex=AT_ONCE)) as hasty:
        with pytest.raises(LockBusy, match="over 0 s"), mutex(hasty, "m"):
            pass
        with mutex(hasty, "another"):
            assert not is_free(control, "another")


def test_one_holder_at_a_time_and_the_error_says_what_to_look_for(control: Folder) -> None:
    with mutex(control, "m"):
        with pytest.raises(LockBusy, match=r"m\.mutex is held .*lsof"), mutex(control, "m", wait=AT_ONCE):
            pass
        assert is_free(control, "other")
    assert is_free(control)


def test_it_is_let_go_when_the_block_fails(control: Folder) -> None:
    with pytest.raises(ZeroDivisionError), mutex(control, "m"):
        raise ZeroDivisionError
    assert is_free(control)


def test_threads_exclude_each_other(control: Folder, tmp_path: Path) -> None:
    with Folder.open(tmp_path / "memory", create=True) as folder:

        def work() -> None:
            for _ in range(TIMES):
                increment(folder, control)

        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert folder.read("count", max_bytes=10) == b"%d" % (THREADS * TIMES)


def test_processes_exclude_each_other(control: Folder, tmp_path: Path) -> None:
    with Folder.open(tmp_path / "memory", create=True) as folder:

        def work() -> None:
            for _ in range(TIMES):
                increment(folder, control)

        children.expect_success([work] * THREADS)
        assert folder.read("count", max_bytes=10) == b"%d" % (THREADS * TIMES)


def test_a_killed_holder_lets_go(control: Folder) -> None:
    def die_holding() -> None:
        with mutex(control, "m"):
            os.kill(os.getpid(), 9)

    assert children.finish(children.start(die_holding)) == -9
    assert is_free(control)


def test_a_forked_child_neither_keeps_the_lock_nor_lets_it_go(control: Folder) -> None:
    waiting, go_on = os.pipe()
    with mutex(control, "m"):
        # Inside the block: the child leaves it too, and must not close or unlock anything of its parent's.
        pid = children.start(lambda: os.read(waiting, 1))
        assert not is_free(control)
    assert is_free(control)
    os.write(go_on, b"x")
    assert children.finish(pid) == 0
    os.close(waiting)
    os.close(go_on)


def test_a_child_that_leaves_the_block_leaves_the_parents_lock_alone(control: Folder) -> None:
    def leave() -> None:
        fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(3)]
        block.__exit__(None, None, None)
        for fd in fds:
            os.close(fd)

    block = mutex(control, "m")
    block.__enter__()
    children.expect_success([leave])
    assert not is_free(control)
    block.__exit__(None, None, None)
    assert is_free(control)


class CopyingDisk(SystemDisk):
    """A fork happens in another thread just after the lock is taken, where no bookkeeping can catch it."""

    def __init__(self) -> None:
        self.copies: list[int] = []

    def flock(self, fd: int, operation: int) -> None:
        super().flock(fd, operation)
        if not self.copies:
            self.copies.append(os.dup(fd))


def test_leaving_the_block_lets_go_though_somebody_has_a_copy_of_the_handle(tmp_path: Path) -> None:
    disk = CopyingDisk()
    with Folder.open(tmp_path, disk=disk) as folder:
        with mutex(folder, "m"):
            assert not is_free(folder)
        assert is_free(folder)
    os.close(disk.copies[0])


class CleaningDisk(SystemDisk):
    """Somebody removes the lock file just before it is locked."""

    def __init__(self, place: Path) -> None:
        self.file = place / "m.mutex"
        self.cleaned = False

    def flock(self, fd: int, operation: int) -> None:
        if not self.cleaned:
            self.cleaned = True
            self.file.unlink()
        super().flock(fd, operation)


def test_a_lock_file_that_was_removed_meanwhile_locks_nobody_in_beside_us(tmp_path: Path) -> None:
    with Folder.open(tmp_path, disk=CleaningDisk(tmp_path)) as folder, mutex(folder, "m"):
        assert (tmp_path / "m.mutex").exists()
        with Folder.open(tmp_path) as other:
            assert not is_free(other)


class SlowDisk(SystemDisk):
    """Held by others for a few tries, with an interruption in between."""

    def __init__(self, answers: list[int]) -> None:
        self.answers = answers

    def flock(self, fd: int, operation: int) -> None:
        if self.answers:
            code = self.answers.pop(0)
            raise OSError(code, os.strerror(code))
        super().flock(fd, operation)


def test_waiting_goes_on_through_interruptions(tmp_path: Path) -> None:
    disk = SlowDisk([errno.EWOULDBLOCK, errno.EINTR, errno.EWOULDBLOCK])
    with Folder.open(tmp_path, disk=disk) as folder, mutex(folder, "m"):
        assert disk.answers == []


def test_a_file_system_without_locks_is_told_as_such(tmp_path: Path) -> None:
    with (
        Folder.open(tmp_path, disk=SlowDisk([errno.ENOLCK])) as folder,
        pytest.raises(DiskFault, match="local"),
        mutex(folder, "m"),
    ):
        pass


def test_a_lock_that_cannot_be_dropped_is_dropped_by_closing(tmp_path: Path) -> None:
    disk = FaultyDisk(Fault(10, "EIO"))
    with Folder.open(tmp_path, disk=disk) as folder:
        with mutex(folder, "m"):
            pass
        assert effects(disk.seen) == ["open", "open", "names", "open", "fsync", "flock", "flock"]
        with Folder.open(tmp_path) as other:
            assert is_free(other)


def test_an_error_of_closing_the_lock_file_does_not_undo_what_was_done(tmp_path: Path) -> None:
    disk = FaultyDisk(Fault(11, "EIO"))
    with Folder.open(tmp_path, disk=disk) as folder:
        with mutex(folder, "m"):
            pass
        assert disk.seen[-1] == "close"
        assert disk.struck
        with Folder.open(tmp_path) as other:
            assert is_free(other)


def test_a_lock_that_was_taken_though_an_error_was_told_is_let_go(tmp_path: Path) -> None:
    """A handle that stays open, as a transcript's does, would keep everybody else out."""
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    with pytest.raises(OSError, match="Input/output"):
        take_flock(FaultyDisk(Fault(1, "EIO after")), fd, AT_ONCE, "file")
    other = os.open(tmp_path / "file", os.O_RDWR)
    take_flock(SystemDisk(), other, AT_ONCE, "file")
    os.close(other)
    os.close(fd)


def test_editing_tells_absent_from_empty_and_can_leave_things_alone(folder: Folder, control: Folder) -> None:
    seen: list[bytes | None] = []

    def look(before: bytes | None) -> None:
        seen.append(before)

    assert edit_file(folder, "f.md", look, control=control, max_bytes=10) is None
    assert folder.names() == []
    folder.create("f.md", b"")
    assert edit_file(folder, "f.md", look, control=control, max_bytes=10) == b""
    assert edit_file(folder, "f.md", lambda _: b"x", control=control, max_bytes=10) == b"x"
    assert seen == [None, b""]
    assert folder.read("f.md", max_bytes=10) == b"x"


def test_an_edit_that_finds_its_change_made_makes_it_durable(tmp_path: Path, control: Folder) -> None:
    """Whoever made the change may have died between renaming and making the name durable."""
    disk = FaultyDisk()
    with Folder.open(tmp_path, disk=disk) as folder:
        folder.replace("f.md", b"x")
        disk.seen.clear()
        edit_file(folder, "f.md", lambda _: b"x", control=control, max_bytes=10)
        assert effects(disk.seen) == ["open", "read", "fsync"]


def test_a_failed_edit_changes_nothing_and_lets_go(folder: Folder, control: Folder) -> None:
    folder.create("f.md", b"x" * 11)
    with pytest.raises(FileDamaged):
        edit_file(folder, "f.md", lambda _: b"", control=control, max_bytes=10)

    def fail(before: bytes | None) -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        edit_file(folder, "f.md", fail, control=control, max_bytes=20)
    assert folder.read("f.md", max_bytes=20) == b"x" * 11
    assert is_free(control, "edit")


def test_a_mutex_needs_its_folder(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    with Folder.open(tmp_path / "gone") as folder:
        (tmp_path / "gone").rmdir()
        with pytest.raises(FileMissing), mutex(folder, "m"):
            pass


def test_the_lock_is_the_kind_that_no_other_handle_can_drop(control: Folder) -> None:
    """A POSIX lock would vanish here, with the first handle of the file that the process closes."""
    with mutex(control, "m"):
        with control.opened("m.mutex", os.O_RDWR) as fd, pytest.raises(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert not is_free(control)
