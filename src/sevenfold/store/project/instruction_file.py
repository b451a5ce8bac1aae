"""Reading one instruction file: somebody else's, so plain, capped, and never outside what it may be in."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sevenfold.core.errors import FileDamaged, FileMissing, KeyRefused, NotRegular
from sevenfold.core.os_errors import map_os_errors
from sevenfold.store.files.disk import READ_FLAGS, SYSTEM_DISK, Disk, read_fully
from sevenfold.store.project.instruction_imports import find_imports

MAX_INSTRUCTION_BYTES = 256 * 1024
"""More than a whole context may have of instructions; what is beyond it would be cut anyway."""

FileIdentity: TypeAlias = tuple[int, int]
"""A file's device and number: the same under every name it has."""


@dataclass(frozen=True, slots=True)
class InstructionText:
    text: str
    identity: FileIdentity
    imports: tuple[str, ...] = ()
    is_cut: bool = False
    """It goes on beyond what is read of any such file."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A file as it was read the last time."""

    stamp: tuple[int, ...]
    read: InstructionText


class CachedFileReader:
    """Reads files that may be read before; one that has not changed is not read again."""

    def __init__(self, disk: Disk = SYSTEM_DISK) -> None:
        self._disk = disk
        self._known: dict[str, _Known] = {}

    def read(self, path: Path, within: Sequence[Path] = ()) -> InstructionText:
        """The text of a file; wherever links lead, it lies below one of these folders, if any are named."""
        with map_os_errors(f"read {path}"):
            real = _real(path)
            if within and not any(real.is_relative_to(os.path.realpath(folder)) for folder in within):
                raise KeyRefused(f"it leads out of {within[0]}; put the file itself there")
            fd = self._disk.open(str(real), READ_FLAGS)
            try:
                return self._read_open(str(real), fd)
            finally:
                self._disk.close(fd)

    def _read_open(self, real: str, fd: int) -> InstructionText:
        found = self._disk.stat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise NotRegular("it is a folder, pipe or device; expected a plain file")
        stamp = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        known = self._known.get(real)
        if known is None or known.stamp != stamp:
            data = read_fully(self._disk, fd, MAX_INSTRUCTION_BYTES + 1)
            known = _Known(stamp, _as_text(data, (found.st_dev, found.st_ino)))
            self._known[real] = known
        return known.read


def _real(path: Path) -> Path:
    if "\0" in str(path):
        raise KeyRefused("its name holds a NUL; no file can be called that")
    try:
        return Path(os.path.realpath(path, strict=True))
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():
            raise NotRegular("it is a link that leads nowhere") from error
        raise FileMissing(f"{path} is not there") from error


def _as_text(data: bytes, identity: FileIdentity) -> InstructionText:
    if b"\0" in data:
        raise FileDamaged("it is no text")
    is_cut = len(data) > MAX_INSTRUCTION_BYTES
    # Where it is cut the last character may be in two, and half a character is not the file's fault.
    text = data[:MAX_INSTRUCTION_BYTES].decode("utf-8-sig", "ignore" if is_cut else "replace")
    return InstructionText(text, identity, find_imports(text), is_cut)
