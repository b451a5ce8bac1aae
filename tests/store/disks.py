"""Disks and folders for tests: one that does not wait, one that walks, one that counts what is read."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sevenfold.store.files.disk import Disk, SystemDisk
from sevenfold.store.files.folder import Folder
from tests.store.faults import Operation


class WalkingDisk(SystemDisk):
    """What every system without openat2 has: the portable walk."""

    def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
        return self.walk_beneath(root_fd, path, flags)


class QuickDisk(SystemDisk):
    """For what is not about durability: it waits for no device."""

    def fsync(self, fd: int) -> None:
        pass


class LackingDisk(SystemDisk):
    """A file system, such as NFS, that cannot rename without replacing in one step.

    It calls `between` with a file under two names, or with a name found free and not yet taken.
    """

    def __init__(self, between: Callable[[], None] | None = None) -> None:
        self.between = between

    def rename_new(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), new)

    def link(self, old: str, new: str, *, dir_fd: int) -> None:
        super().link(old, new, dir_fd=dir_fd)
        self._call_once()

    def rename(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        self._call_once()
        super().rename(old, new, old_fd=old_fd, new_fd=new_fd)

    def _call_once(self) -> None:
        between, self.between = self.between, None
        if between:
            between()


class CountingDisk(QuickDisk):
    """Knows how much was read, and from where."""

    def __init__(self) -> None:
        self.bytes_read = 0
        self.lowest = 1 << 62

    def read(self, fd: int, size: int, offset: int) -> bytes:
        data = super().read(fd, size, offset)
        self.bytes_read += len(data)
        self.lowest = min(self.lowest, offset)
        return data


QUICK = QuickDisk()


@contextmanager
def fresh_folder(disk: Disk = QUICK, own: frozenset[str] = frozenset()) -> Generator[Folder]:
    """An empty folder for one example of a property, where a fixture would be shared by all of them."""
    with tempfile.TemporaryDirectory() as place, Folder.open(Path(place), disk=disk, own=own) as folder:
        yield folder


def tree(place: Path) -> dict[str, bytes]:
    """Every plain file below a place, with its content."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def effects(seen: Sequence[Operation]) -> list[Operation]:
    """What a disk was asked to do, less looking at handles and closing them."""
    return [operation for operation in seen if operation not in ("stat", "close")]


def temps(place: Path) -> list[str]:
    return [path.name for path in place.rglob(".tmp-*")]


OTHERS_SECONDS = 10.0
"""How long a thread of an earlier test may take to close what it has just opened, on a busy machine."""


def open_handles(below: Path | None = None) -> set[int]:
    """The numbers of all handles, or of those in this folder, less the one that the looking itself opens."""
    found = {fd for fd in map(int, os.listdir("/dev/fd")) if os.path.lexists(f"/dev/fd/{fd}")}
    return {fd for fd in found if below is None or name_of(fd).startswith(str(below.resolve()))}


def name_of(fd: int) -> str:
    try:
        return os.readlink(f"/dev/fd/{fd}")
    except OSError:
        return ""


def find_left_open(before: set[int]) -> dict[int, str]:
    """Handles that were opened since and stay open, with what they are on.

    Servers and loops of earlier tests have threads in this process, which open and close files at any moment.
    Whatever they have open just now is soon closed; what a test forgot is not.
    """
    until = time.monotonic() + OTHERS_SECONDS
    while (left := open_handles() - before) and time.monotonic() < until:
        time.sleep(0.01)
    return {fd: name_of(fd) for fd in left}
