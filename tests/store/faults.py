"""A disk with one accident in it, to prove what survives: torture runs put it at every operation in turn."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias, TypeVar, get_args

from sevenfold.store.files.disk import SYSTEM_DISK, Disk

Operation: TypeAlias = Literal[
    "open",
    "read",
    "write",
    "fsync",
    "rename",
    "link",
    "unlink",
    "mkdir",
    "flock",
    "set_times",
    "names",
    "stat",
    "close",
]
Accident: TypeAlias = Literal[
    "die before", "die after", "die half way", "ENOSPC", "EIO", "EINTR", "EIO after", "short"
]
"""`EIO after`: it was done, and an error is reported all the same, as by a server whose answer was lost."""

_T = TypeVar("_T")

OPERATIONS: tuple[Operation, ...] = get_args(Operation)
ACCIDENTS: tuple[Accident, ...] = get_args(Accident)

_CHANGES: frozenset[Operation] = frozenset(
    ("open", "write", "fsync", "rename", "link", "unlink", "mkdir", "flock", "set_times")
)
_NEEDS_SPACE: frozenset[Operation] = frozenset(("open", "write", "fsync", "rename", "link", "mkdir"))
_HAS_SIZE: frozenset[Operation] = frozenset(("read", "write"))


def can_happen(accident: Accident, operation: Operation) -> bool:
    """Whether the accident means anything there: only writes are cut in half, only some need space."""
    match accident:
        case "die half way":
            return operation == "write"
        case "die before" | "die after":
            return operation in _CHANGES
        case "ENOSPC":
            return operation in _NEEDS_SPACE
        case "short":
            return operation in _HAS_SIZE
        case "EIO after":
            return operation in _CHANGES
        case "EIO" | "EINTR":
            return True


@dataclass(frozen=True, slots=True)
class Fault:
    at: int
    """The operation it strikes, counted from 1."""
    accident: Accident
    lasting: bool = False
    """An error that stays (a full disk) rather than one that passes."""


def _kill_self() -> NoReturn:
    os.kill(os.getpid(), 9)
    os._exit(137)


class FaultyDisk:
    """A disk that counts its operations and has an accident at one of them.

    With no fault it only counts and lists them, which is how a run learns where accidents can be put.
    """

    def __init__(
        self,
        fault: Fault | None = None,
        *,
        inner: Disk = SYSTEM_DISK,
        die: Callable[[], NoReturn] = _kill_self,
    ) -> None:
        self._fault = fault
        self._inner = inner
        self._die = die
        self.seen: list[Operation] = []

    @property
    def struck(self) -> bool:
        """Whether the accident has happened."""
        return self._fault is not None and len(self.seen) >= self._fault.at

    def open(self, name: str, flags: int, *, dir_fd: int | None = None) -> int:
        return self._do("open", lambda: self._inner.open(name, flags, dir_fd=dir_fd))

    def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
        return self._do("open", lambda: self._inner.open_beneath(root_fd, path, flags))

    def close(self, fd: int) -> None:
        self._do("close", lambda: self._inner.close(fd))

    def read(self, fd: int, size: int, offset: int) -> bytes:
        if self._strikes_next("short"):
            size = max(1, size // 2)
        return self._do("read", lambda: self._inner.read(fd, size, offset))

    def write(self, fd: int, data: memoryview) -> int:
        if self._strikes_next("short"):
            data = data[: max(1, len(data) // 2)]
        elif self._strikes_next("die half way"):
            self._inner.write(fd, data[: len(data) // 2])
        return self._do("write", lambda: self._inner.write(fd, data))

    def fsync(self, fd: int) -> None:
        self._do("fsync", lambda: self._inner.fsync(fd))

    def rename(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        self._do("rename", lambda: self._inner.rename(old, new, old_fd=old_fd, new_fd=new_fd))

    def rename_new(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        self._do("rename", lambda: self._inner.rename_new(old, new, old_fd=old_fd, new_fd=new_fd))

    def link(self, old: str, new: str, *, dir_fd: int) -> None:
        self._do("link", lambda: self._inner.link(old, new, dir_fd=dir_fd))

    def unlink(self, name: str, *, dir_fd: int) -> None:
        self._do("unlink", lambda: self._inner.unlink(name, dir_fd=dir_fd))

    def mkdir(self, name: str, *, dir_fd: int | None = None) -> None:
        self._do("mkdir", lambda: self._inner.mkdir(name, dir_fd=dir_fd))

    def flock(self, fd: int, operation: int) -> None:
        self._do("flock", lambda: self._inner.flock(fd, operation))

    def set_times(self, fd: int, modified_ns: int) -> None:
        self._do("set_times", lambda: self._inner.set_times(fd, modified_ns))

    def stat(self, fd: int) -> os.stat_result:
        return self._do("stat", lambda: self._inner.stat(fd))

    def names(self, fd: int) -> list[str]:
        return self._do("names", lambda: self._inner.names(fd))

    def _strikes_next(self, accident: Accident) -> bool:
        fault = self._fault
        return fault is not None and fault.accident == accident and fault.at == len(self.seen) + 1

    def _do(self, operation: Operation, act: Callable[[], _T]) -> _T:
        self.seen.append(operation)
        fault = self._fault
        if fault is None or not self._strikes(fault, operation):
            return act()
        if fault.accident in ("ENOSPC", "EIO", "EINTR", "EIO after"):
            # A handle is gone whatever closing it says, and closing it again would hit somebody else's.
            if fault.accident == "EIO after" or operation == "close":
                self._undo_open(operation, act())
            code: int = getattr(errno, fault.accident.partition(" ")[0])
            raise OSError(code, os.strerror(code))
        if fault.accident in ("die before", "die half way"):
            self._die()
        try:
            return act()
        finally:
            # Whether it went well or not: a run must not outlive its accident.
            if fault.accident == "die after":
                self._die()

    def _undo_open(self, operation: Operation, result: object) -> None:
        """A handle that nobody will be told of is closed; the file that was made stays."""
        if operation == "open" and isinstance(result, int):
            self._inner.close(result)

    def _strikes(self, fault: Fault, operation: Operation) -> bool:
        count = len(self.seen)
        if fault.lasting and count > fault.at:
            return can_happen(fault.accident, operation)
        return count == fault.at
