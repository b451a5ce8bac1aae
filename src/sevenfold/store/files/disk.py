"""The file system port: every operation that must outlive the process goes through a `Disk`.

`SystemDisk` calls the kernel. Tests have a disk that fails at a chosen operation, and the torture tests
fail each operation in turn. Names are always relative to an open directory, so that what was checked is
what is used.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import sys
from typing import Protocol


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
