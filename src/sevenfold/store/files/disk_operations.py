"""Operations built on a `Disk`: waiting for a flock, giving a file a name that is not taken, making folders.

Where the file system can rename without replacing, `ExclusiveRenamer` does that. NFS and some others cannot.
There a file that gets its *first* name is linked to it, which does not replace, and then loses its temporary
name: a process that dies in between leaves a file with two names, and readers know the temporary one for
what it is. A file that is *moved* has two names that both count, so it is renamed after a check that the new
name is free: it always has exactly one of them. A lock on the folder excludes everybody on this machine who
makes new names this way between the check and the rename.
"""

from __future__ import annotations

import errno
import fcntl
import os
import random
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sevenfold.core.errors import LockBusy
from sevenfold.store.files.disk import FOLDER_FLAGS, Disk

# The kernel releases a flock when its holder dies.

_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02


def take_flock(disk: Disk, fd: int, wait: timedelta, name: str) -> None:
    """Wait for the lock of an open file; `LockBusy` when it cannot be had in time."""
    deadline = time.monotonic() + wait.total_seconds()
    pause = _FIRST_PAUSE
    while True:
        try:
            return disk.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except InterruptedError:
            continue
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise LockBusy(
                    f"{name} is held by another process for over {wait.total_seconds():g} s; "
                    "look for a stopped process that has it open (lsof, fuser)"
                ) from error
        except OSError:
            # It may have been taken all the same, and whoever is told that it was not will not let go of it.
            with suppress(OSError):
                drop_flock(disk, fd)
            raise
        # Jitter: sixteen processes that woke together would otherwise ask together for ever.
        time.sleep(pause * random.uniform(0.5, 1.5))
        pause = min(pause * 2, _LONGEST_PAUSE)


def drop_flock(disk: Disk, fd: int) -> None:
    """Let go at once. Closing alone would not, where a child forked meanwhile has a copy of the handle."""
    while True:
        try:
            return disk.flock(fd, fcntl.LOCK_UN)
        except InterruptedError:
            continue


# Fork shares a flock with the child, which would keep the lock of its parent after the parent died. So the
# child closes its copy of the handle; the lock stays with the parent.

_HANDLES: dict[int, object] = {}
"""Each with a mark of who put it there: a number is used again as soon as its handle is closed."""


@contextmanager
def close_in_children(fd: int) -> Generator[None]:
    """For the length of the block, a fork of this process closes `fd` in the child."""
    mark = object()
    _HANDLES[fd] = mark
    try:
        yield
    finally:
        # In a forked child the number may by now belong to a handle of the child's own.
        if _HANDLES.get(fd) is mark:
            del _HANDLES[fd]


def _close_inherited() -> None:
    while _HANDLES:
        fd, _ = _HANDLES.popitem()
        with suppress(OSError):
            os.close(fd)


os.register_at_fork(after_in_child=_close_inherited)


@dataclass(frozen=True, slots=True)
class ExclusiveRenamer:
    """The names of one open directory."""

    disk: Disk
    fd: int
    path: str
    """For people to read."""
    wait: timedelta

    def give(self, temp: str, name: str) -> None:
        """Name a temporary file of this directory."""
        if self._renamed(temp, name, self.fd):
            return
        with self._alone():
            self.disk.link(temp, name, dir_fd=self.fd)
        # A reader that meets both takes the temporary one for a dead writer's, and may drop it first.
        with suppress(FileNotFoundError):
            self.disk.unlink(temp, dir_fd=self.fd)

    def move(self, old: str, name: str, *, old_fd: int) -> None:
        """Name a file that has a name already, here or in another directory, and take that from it."""
        if self._renamed(old, name, old_fd):
            return
        with self._alone():
            if name in self.disk.names(self.fd):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            self.disk.rename(old, name, old_fd=old_fd, new_fd=self.fd)

    def _renamed(self, old: str, name: str, old_fd: int) -> bool:
        """Whether the file system could do it in one step."""
        try:
            self.disk.rename_new(old, name, old_fd=old_fd, new_fd=self.fd)
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                return False
            raise
        return True

    @contextmanager
    def _alone(self) -> Generator[None]:
        # A handle of our own: flock belongs to the open file, and threads share the folder's.
        fd = self.disk.open_beneath(self.fd, ".", FOLDER_FLAGS)
        try:
            with close_in_children(fd):
                take_flock(self.disk, fd, self.wait, self.path)
                yield
        finally:
            # Nothing was written through it, so an error here says nothing about what the block did.
            with suppress(OSError):
                drop_flock(self.disk, fd)
            with suppress(OSError):
                self.disk.close(fd)


# Each folder is durable before the next is made.


def make_folders(path: Path, disk: Disk) -> None:
    """Make `path` and whatever is missing above it."""
    missing: list[Path] = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    # Whoever made the last one that is there may have died before making its name durable. A mount point has
    # its name from elsewhere.
    if path.stat().st_dev == path.parent.stat().st_dev:
        with suppress(PermissionError):
            _sync_folder(path.parent, disk)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            disk.mkdir(str(folder))
        _sync_folder(folder.parent, disk)


def _sync_folder(path: Path, disk: Disk) -> None:
    fd = disk.open(str(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        disk.fsync(fd)
    finally:
        disk.close(fd)
