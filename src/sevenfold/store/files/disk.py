"""The file system port: every operation that must outlive the process goes through a `Disk`.

`SystemDisk` calls the kernel. Tests have a disk that fails at a chosen operation, and the torture tests
fail each operation in turn. Names are always relative to an open directory, so that what was checked is
what is used. `take_flock`, `ExclusiveRenamer` and `make_folders` are built on it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from sevenfold.core.errors import LockBusy


class Disk(Protocol):
    """The operations there are. Each raises `OSError`; `map_os_errors` turns that into our own errors."""

    def open(self, name: str, flags: int, *, dir_fd: int | None = None) -> int: ...
    def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
        """Open a relative path that has to stay below `root_fd` and may meet no symbolic link."""
        ...

    def close(self, fd: int) -> None: ...
    def read(self, fd: int, size: int, offset: int) -> bytes: ...
    def write(self, fd: int, data: memoryview) -> int: ...
    def fsync(self, fd: int) -> None: ...
    def rename(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None: ...
    def rename_new(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        """Rename, or fail: EEXIST rather than replace anything, ENOTSUP where that is no single step."""
        ...

    def link(self, old: str, new: str, *, dir_fd: int) -> None:
        """Give a file a second name, and fail with EEXIST rather than replace anything."""
        ...

    def unlink(self, name: str, *, dir_fd: int) -> None: ...
    def mkdir(self, name: str, *, dir_fd: int | None = None) -> None: ...
    def flock(self, fd: int, operation: int) -> None: ...
    def set_times(self, fd: int, modified_ns: int) -> None: ...
    def stat(self, fd: int) -> os.stat_result: ...
    def names(self, fd: int) -> list[str]: ...


FILE_MODE = 0o600


FOLDER_MODE = 0o700
"""Conversations and memories are nobody else's business."""


NEVER_INHERIT = os.O_CLOEXEC | os.O_NOFOLLOW


FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | NEVER_INHERIT


READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | NEVER_INHERIT
"""Non-blocking, so that opening a FIFO returns and can be refused instead of waiting for its writer."""

APPEND_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT


class SystemDisk:
    """The kernel's own file system calls."""

    def open(self, name: str, flags: int, *, dir_fd: int | None = None) -> int:
        return os.open(name, flags, FILE_MODE, dir_fd=dir_fd)

    def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
        if _OPENAT2.here(root_fd):
            return _OPENAT2.open(root_fd, path, flags)
        return self.walk_beneath(root_fd, path, flags)

    def walk_beneath(self, root_fd: int, path: str, flags: int) -> int:
        """The portable way: one component at a time, following nothing, the last handle deciding."""
        *folders, last = os.fsdecode(_encoded(path)).split("/")
        if not last or path.startswith("/") or ".." in (*folders, last):
            raise OSError(errno.EXDEV, "path leaves its folder", path)
        device = os.fstat(root_fd).st_dev
        current = os.dup(root_fd)
        try:
            for name in folders:
                below = os.open(name, FOLDER_FLAGS, dir_fd=current)
                os.close(current)
                current = below
                _refuse_mount(current, device, name)
            found = os.open(last, flags | NEVER_INHERIT, FILE_MODE, dir_fd=current)
        finally:
            os.close(current)
        try:
            _refuse_mount(found, device, last)
        except BaseException:
            os.close(found)
            raise
        return found

    def close(self, fd: int) -> None:
        os.close(fd)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        return os.pread(fd, size, offset)

    def write(self, fd: int, data: memoryview) -> int:
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        full = getattr(fcntl, "F_FULLFSYNC", None)
        if full is None or not _reaches_the_drive(fd, full):
            os.fsync(fd)

    def rename(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        os.rename(old, new, src_dir_fd=old_fd, dst_dir_fd=new_fd)

    def rename_new(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        call = getattr(_libc(), "renameatx_np" if sys.platform == "darwin" else "renameat2", None)
        if call is None:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), new)
        source, target = ctypes.c_char_p(_encoded(old)), ctypes.c_char_p(_encoded(new))
        exclusive = 0x4 if sys.platform == "darwin" else 0x1
        try:
            _checked(call(old_fd, source, new_fd, target, ctypes.c_uint(exclusive)), new)
        except OSError as error:
            # Kernels and file systems have three ways to say that they do not know the flag.
            if error.errno in (errno.ENOSYS, errno.EINVAL):
                raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), new) from error
            raise

    def link(self, old: str, new: str, *, dir_fd: int) -> None:
        os.link(old, new, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)

    def unlink(self, name: str, *, dir_fd: int) -> None:
        os.unlink(name, dir_fd=dir_fd)

    def mkdir(self, name: str, *, dir_fd: int | None = None) -> None:
        os.mkdir(name, FOLDER_MODE, dir_fd=dir_fd)

    def flock(self, fd: int, operation: int) -> None:
        # flock, not lockf: a POSIX lock vanishes when any handle of the file is closed in the process.
        fcntl.flock(fd, operation)

    def set_times(self, fd: int, modified_ns: int) -> None:
        os.utime(fd, ns=(modified_ns, modified_ns))

    def stat(self, fd: int) -> os.stat_result:
        return os.fstat(fd)

    def names(self, fd: int) -> list[str]:
        if fd < 0:
            # Python takes -1 for no handle at all, and would list the current folder.
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        # By a handle of its own: the place in a listing belongs to the open file, and of two threads that
        # list by the same one each would get a part.
        own = os.open(".", FOLDER_FLAGS, dir_fd=fd)
        try:
            return os.listdir(own)
        finally:
            os.close(own)


SYSTEM_DISK = SystemDisk()


def _refuse_mount(fd: int, device: int, name: str) -> None:
    if os.fstat(fd).st_dev != device:
        raise OSError(errno.EXDEV, "something is mounted there", name)


def _reaches_the_drive(fd: int, full: int) -> bool:
    """macOS: plain fsync stops at the drive's own cache, and not every file system has more than that."""
    try:
        fcntl.fcntl(fd, full)
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
            raise
        return False
    return True


def write_all(disk: Disk, fd: int, data: bytes) -> None:
    """Write every byte, however few the kernel takes at a time."""
    left = memoryview(data)
    while left:
        try:
            taken = disk.write(fd, left)
        except InterruptedError:
            continue
        if taken == 0:
            raise OSError(errno.EIO, "the device took no byte and gave no reason")
        left = left[taken:]


def read_fully(disk: Disk, fd: int, size: int, offset: int = 0) -> bytes:
    """Up to `size` bytes from `offset`; fewer only at the end of the file."""
    parts: list[bytes] = []
    while size > 0:
        try:
            part = disk.read(fd, size, offset)
        except InterruptedError:
            continue
        if not part:
            break
        parts.append(part)
        size -= len(part)
        offset += len(part)
    return b"".join(parts)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _OpenAt2:
    """Linux's openat2, which Python does not wrap: the kernel itself refuses to leave the folder."""

    NUMBER = 437
    BENEATH_NO_LINKS = 0x08 | 0x04 | 0x02 | 0x01
    """RESOLVE_BENEATH, NO_SYMLINKS, NO_MAGICLINKS, NO_XDEV."""

    def __init__(self) -> None:
        self._works: bool | None = None

    def here(self, root_fd: int) -> bool:
        """Old kernels lack the call and some sandboxes deny it; asked once."""
        if self._works is None:
            try:
                os.close(self.open(root_fd, ".", FOLDER_FLAGS))
                self._works = True
            except OSError as error:
                if error.errno not in (errno.ENOSYS, errno.EPERM, errno.EINVAL):
                    raise
                self._works = False
        return self._works

    def open(self, root_fd: int, path: str, flags: int) -> int:
        if not sys.platform.startswith("linux"):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), path)
        mode = FILE_MODE if flags & os.O_CREAT else 0
        how = _OpenHow(flags | NEVER_INHERIT, mode, self.BENEATH_NO_LINKS)
        while True:
            try:
                return _checked(
                    _libc().syscall(
                        ctypes.c_long(self.NUMBER),
                        ctypes.c_int(root_fd),
                        ctypes.c_char_p(_encoded(path)),
                        ctypes.byref(how),
                        ctypes.c_size_t(ctypes.sizeof(how)),
                    ),
                    path,
                )
            except InterruptedError:
                continue  # as os.open does: a signal on a slow file system is no reason to fail


_OPENAT2 = _OpenAt2()


def _encoded(name: str) -> bytes:
    """The name's bytes. C would stop reading at a NUL, and use something else than was asked for."""
    if "\0" in name:
        raise OSError(errno.EILSEQ, "a name cannot hold a NUL", name)
    return os.fsencode(name)


def _checked(result: int, name: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), name)
    return result


_LIBC: list[ctypes.CDLL] = []


def _libc() -> ctypes.CDLL:
    if not _LIBC:
        _LIBC.append(ctypes.CDLL(None, use_errno=True))
    return _LIBC[0]


# Operations built on a `Disk`: waiting for a flock, giving a file a name that is not taken, making folders.
# Where the file system can rename without replacing, `ExclusiveRenamer` does that. NFS and some others
# cannot. There a file that gets its *first* name is linked to it, which does not replace, and then loses
# its temporary name: a process that dies in between leaves a file with two names, and readers know the
# temporary one for what it is. A file that is *moved* has two names that both count, so it is renamed after
# a check that the new name is free: it always has exactly one of them. A lock on the folder excludes
# everybody on this machine who makes new names this way between the check and the rename.

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
        from random import uniform  # not at the top: a lock is seldom waited for

        time.sleep(pause * uniform(0.5, 1.5))
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
def may_exist(path: Path | None) -> bool:
    """Whether there is such a file, or may be one: opening what may not be looked at says what is wrong."""
    with suppress(PermissionError):
        return path is not None and path.is_file()
    return True


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
