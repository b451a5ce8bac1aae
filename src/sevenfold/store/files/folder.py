"""A folder that no key can leave: the only way in which the package reads and writes its own files.

Callers pass relative keys. The grammar of keys excludes `..` and the like, the kernel is asked to refuse
links and paths that leave the folder, and the handle that was checked is the handle that is used.
`check_key` refuses a name that no file of ours may have. `FolderTimeouts` says how long processes that share
a project's folders wait for one another.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path, PurePath
from typing import Self

from sevenfold.core import events
from sevenfold.core.errors import (
    AccessDenied,
    FileDamaged,
    FileMissing,
    InputError,
    KeyRefused,
    NotRegular,
)
from sevenfold.core.events import Emit
from sevenfold.core.memories import INDEX_FILE, WINDOWS_DEVICES, MemoryKey
from sevenfold.core.system import map_os_errors
from sevenfold.store.files.disk import (
    APPEND_FLAGS,
    FOLDER_FLAGS,
    NEVER_INHERIT,
    READ_FLAGS,
    SYSTEM_DISK,
    Disk,
    ExclusiveRenamer,
    make_folders,
    read_fully,
    write_all,
)

# The names that files of ours may have, and the names that memories may have.
#
# ASCII only, so there are no Unicode look-alikes, direction marks or encodings to distinguish. What can
# still go wrong (names that differ in case only, device names of other systems) is refused here or by the
# folder.

KEY_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", re.ASCII)
"""No leading dot or dash, and room for a suffix below the 255 bytes that file systems allow."""

MAX_KEY_PARTS = 8


def check_path(path: str | PurePath) -> None:
    """`KeyRefused` for a path, from a setting say, that the system has no bytes for."""
    try:
        if b"\0" not in os.fsencode(path):
            return
    except UnicodeEncodeError:
        pass
    raise KeyRefused(f"{str(path)!r} cannot be a path; take out what is no character")


def is_key_part(name: str) -> bool:
    """Whether one name between slashes fits the grammar."""
    return bool(KEY_PART.fullmatch(name)) and not name.endswith(".") and not _is_device(name)


def check_key(key: str, own: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The parts of a key, or `KeyRefused` with the reason. `own` names are ours and may start with a dot."""
    parts = tuple(key.split("/"))
    if len(parts) > MAX_KEY_PARTS:
        raise KeyRefused(f"key {key[:80]!r} has {len(parts)} parts; at most {MAX_KEY_PARTS} are allowed")
    for part in parts:
        if part in own:
            continue
        if _is_device(part):
            raise KeyRefused(f"key {key[:80]!r} is refused: {part[:80]!r} is a device's name on some systems")
        if not is_key_part(part):
            where = f" for its part {part[:80]!r}" if len(parts) > 1 else ""
            raise KeyRefused(
                f"key {key[:80]!r} is refused{where}: use 1 to 200 letters, digits, "
                "'.', '_' and '-', starting with none of '.' and '-' and not ending with '.'"
            )
    return parts


def _is_device(name: str) -> bool:
    return name.partition(".")[0].lower() in WINDOWS_DEVICES


# A memory's name is that of any file of ours, ends in .md, and is never that of the index.
MAX_MEMORY_DEPTH = 4
"""As deep as `logs/YYYY/MM/YYYY-MM-DD.md`."""


def check_memory_key(text: str) -> MemoryKey:
    """The key, or `KeyRefused` with the reason."""
    parts = check_key(text)
    if not text.endswith(".md") or text == ".md":
        raise KeyRefused(f"{text[:80]!r} cannot be a memory: its name has to end in .md")
    if any(part.casefold().endswith(".md") for part in parts[:-1]):
        raise KeyRefused(f"{text[:80]!r} cannot be a memory: a folder on its way is named like a file")
    if parts[-1].casefold() == INDEX_FILE.casefold():
        raise KeyRefused(f"{text[:80]!r} is the index, which the engine keeps; name the memory by its topic")
    if len(parts) > MAX_MEMORY_DEPTH:
        raise KeyRefused(
            f"{text[:80]!r} lies {len(parts)} deep; at most {MAX_MEMORY_DEPTH} parts are allowed"
        )
    return MemoryKey(text)


@dataclass(frozen=True, slots=True)
class FolderTimeouts:
    """Kept by a `Folder` and the folders below it, so that callers need not pass them on."""

    mutex: timedelta = timedelta(seconds=15)
    """For somebody else's change of a few milliseconds."""

    mark: timedelta = timedelta(minutes=2)
    """Who says that it is at work, and said so longer ago than this, has died."""

    sweep: timedelta = timedelta(days=1)
    """Half-made files are looked for this often: they cost nothing but room, and looking goes through every
    folder there is."""


FOLDER_TIMEOUTS = FolderTimeouts()


TEMP_PREFIX = ".tmp-"
TEMP_LIFE = timedelta(hours=1)
"""No write takes this long, so an older temporary file has no writer any more."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """What can be told about a file without reading it."""

    size_bytes: int
    modified_ns: int


class Folder:
    """One open directory. Safe to share between threads: it keeps no position and no cache."""

    def __init__(
        self, fd: int, path: Path, disk: Disk, own: frozenset[str], timeouts: FolderTimeouts = FOLDER_TIMEOUTS
    ) -> None:
        self._disk = disk
        self._own = own
        self.timeouts = timeouts
        try:
            self._device = disk.stat(fd).st_dev
        except BaseException:
            disk.close(fd)
            raise
        self._fd = fd
        self.path = path
        """For people to read; never opened again by name."""

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool = False,
        disk: Disk = SYSTEM_DISK,
        own: frozenset[str] = frozenset(),
        timeouts: FolderTimeouts = FOLDER_TIMEOUTS,
    ) -> Self:
        """Hold `path` open. `create` makes it and its missing parents, each durable before the next."""
        with map_os_errors(f"open folder {path}"):
            check_path(path)
            if create:
                make_folders(path, disk)
            return cls(disk.open(str(path), FOLDER_FLAGS), path, disk, own, timeouts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with map_os_errors(f"close folder {self.path}"):
                self._disk.close(fd)

    @property
    def disk(self) -> Disk:
        return self._disk

    def read(self, key: str, *, max_bytes: int) -> bytes:
        """The whole file, refused rather than cut when it is over `max_bytes`."""
        with self.opened(key, READ_FLAGS) as fd, map_os_errors(f"read {self._say(key)}"):
            size = self._disk.stat(fd).st_size
            if size > max_bytes:
                raise FileDamaged(f"{self._say(key)} has {size:,} bytes; at most {max_bytes:,} are expected")
            return read_fully(self._disk, fd, size)

    def read_range(self, key: str, start: int, size: int) -> bytes:
        """A part of the file; shorter only where the file ends."""
        if start < 0 or size < 0:
            raise InputError(
                f"cannot read {size} bytes of {self._say(key)} from {start}; both must be 0 or more"
            )
        with self.opened(key, READ_FLAGS) as fd, map_os_errors(f"read {self._say(key)}"):
            # Memory is allocated for what is there, not for whatever number was asked for.
            left = self._disk.stat(fd).st_size - start
            return read_fully(self._disk, fd, min(size, left), start)

    def stat(self, key: str) -> FileStat | None:
        """Size and time of a file, or None when there is none."""
        try:
            with self.opened(key, READ_FLAGS) as fd, map_os_errors(f"look at {self._say(key)}"):
                found = self._disk.stat(fd)
        except FileMissing:
            return None
        return FileStat(found.st_size, found.st_mtime_ns)

    def names(self) -> list[str]:
        """Names directly inside, sorted, that a key could name; what does not fit the grammar is not ours."""
        return [name for name in self.all_names() if is_key_part(name)]

    def all_names(self) -> list[str]:
        """Every name directly inside, sorted, ours or not."""
        with map_os_errors(f"list {self.path}"):
            return sorted(self._disk.names(self._fd))

    def replace(self, key: str, data: bytes, *, modified_ns: int | None = None, durable: bool = True) -> None:
        """Put `data` in place of whatever the file held: all of it or nothing, durable on return.

        Without `durable` a power cut may take it, and no twin of its name is looked for: for whoever has
        compared the names, and can put all of it in place again.
        """
        self._put(key, data, fresh=False, modified_ns=modified_ns, durable=durable)

    def append(self, key: str, data: bytes, *, durable: bool = True) -> int:
        """Write `data` behind what a file holds, and make the file if need be; the size that it has then.

        In one write, so that lines of two processes never mix. A full disk may leave a part of it.
        """
        with self.opened(key, APPEND_FLAGS) as fd, map_os_errors(f"append to {self._say(key)}"):
            write_all(self._disk, fd, data)
            if durable:
                self._disk.fsync(fd)
            return self._disk.stat(fd).st_size

    def create(self, key: str, data: bytes) -> None:
        """Make a file that must not be there yet: all of it or nothing, durable on return."""
        self._put(key, data, fresh=True)

    def remove(self, key: str, *, durable: bool = True) -> None:
        """Delete a file, durably. One that is not there is an error: the caller was wrong about the world."""
        with self._parent(key) as (parent, name), map_os_errors(f"remove {self._say(key)}"):
            self._disk.unlink(name, dir_fd=parent)
            if durable:
                self._disk.fsync(parent)

    def move(self, old: str, new: str) -> None:
        """Rename within the folder without replacing anything, durably at both ends."""
        with (
            self._parent(old) as (source, old_name),
            self._parent(new) as (target, new_name),
            map_os_errors(f"move {self._say(old)} to {new}"),
        ):
            self._refuse_duplicate(target, new_name)
            self._new_names(target).move(old_name, new_name, old_fd=source)
            self._disk.fsync(target)
            self._disk.fsync(source)

    def sync_name(self, key: str) -> None:
        """Make the name of a file that was found there durable: whoever made it may have died just before."""
        with self._parent(key) as (parent, _), map_os_errors(f"settle {self._say(key)}"):
            self._disk.fsync(parent)

    def subfolder(self, key: str, *, create: bool = True) -> Folder:
        """A folder below this one, made durably if need be. It is confined to itself, not to its parent."""
        parts = check_key(key, self._own)
        for depth in range(len(parts) if create else 0):
            self._make(parts[: depth + 1])
        with map_os_errors(f"open folder {self._say(key)}"):
            fd = self._disk.open_beneath(self._fd, "/".join(parts), FOLDER_FLAGS)
            return Folder(fd, self.path.joinpath(*parts), self._disk, self._own, self.timeouts)

    def without_own(self) -> Folder:
        """The same directory for those to whom the names of our own do not exist: every verb refuses them."""
        with map_os_errors(f"open folder {self.path}"):
            fd = self._disk.open_beneath(self._fd, ".", FOLDER_FLAGS)
            return Folder(fd, self.path, self._disk, frozenset(), self.timeouts)

    def open_file(self, key: str, flags: int) -> int:
        """A checked handle for a caller that keeps it (a transcript, a mutex); made durably with O_CREAT."""
        if flags & os.O_TRUNC:
            raise InputError(f"{self._say(key)} cannot be emptied before it is checked; use replace")
        if not flags & os.O_CREAT:
            path = "/".join(check_key(key, self._own))
            with map_os_errors(f"open {self._say(key)}"):
                fd = self._disk.open_beneath(self._fd, path, flags | os.O_NONBLOCK)
                return self._checked_regular(fd, key)
        with self._parent(key) as (parent, name), map_os_errors(f"create {self._say(key)}"):
            self._refuse_duplicate(parent, name)
            fd = self._disk.open_beneath(parent, name, flags | os.O_NONBLOCK)
            self._checked_regular(fd, key)
            try:
                # Also when it was there: whoever made it may have died before making the name durable.
                self._disk.fsync(parent)
            except BaseException:
                self._disk.close(fd)
                raise
            return fd

    @contextmanager
    def opened(self, key: str, flags: int) -> Generator[int]:
        """A checked handle for the length of a block."""
        fd = self.open_file(key, flags)
        try:
            yield fd
        finally:
            with map_os_errors(f"close {self._say(key)}"):
                self._disk.close(fd)

    def sweep(self, now: datetime, emit: Emit) -> int:
        """Remove what dead writers left half-made here. Live ones are younger than `TEMP_LIFE`."""
        swept = 0
        oldest_ns = int((now - TEMP_LIFE).timestamp() * 1e9)
        with map_os_errors(f"sweep {self.path}"):
            for name in self._disk.names(self._fd):
                if name.startswith(TEMP_PREFIX) and self._is_older(name, oldest_ns):
                    with suppress(FileNotFoundError):  # somebody else sweeps here too
                        self._disk.unlink(name, dir_fd=self._fd)
                        swept += 1
        if swept:
            emit(events.TempSwept(str(self.path), swept))
        return swept

    def _put(
        self, key: str, data: bytes, *, fresh: bool, modified_ns: int | None = None, durable: bool = True
    ) -> None:
        with self._parent(key) as (parent, name), map_os_errors(f"write {self._say(key)}"):
            if durable:
                self._refuse_duplicate(parent, name)
            temp = TEMP_PREFIX + os.urandom(8).hex()
            try:
                self._write_temp(parent, temp, data, modified_ns, durable=durable)
                if fresh:
                    self._new_names(parent).give(temp, name)
                else:
                    self._disk.rename(temp, name, old_fd=parent, new_fd=parent)
            except BaseException:
                # Best effort: what stays is swept later and can be mistaken for nothing.
                with suppress(OSError):
                    self._disk.unlink(temp, dir_fd=parent)
                raise
            if durable:
                self._disk.fsync(parent)

    def _new_names(self, fd: int) -> ExclusiveRenamer:
        return ExclusiveRenamer(self._disk, fd, str(self.path), self.timeouts.mutex)

    def _write_temp(
        self, parent: int, temp: str, data: bytes, modified_ns: int | None, *, durable: bool
    ) -> None:
        fd = self._disk.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NEVER_INHERIT, dir_fd=parent)
        try:
            write_all(self._disk, fd, data)
            if modified_ns is not None:
                self._disk.set_times(fd, modified_ns)
            if durable:
                self._disk.fsync(fd)
        finally:
            self._disk.close(fd)

    @contextmanager
    def _parent(self, key: str) -> Generator[tuple[int, str]]:
        """The open directory that holds the key's last part."""
        *above, name = check_key(key, self._own)
        if not above:
            yield self._fd, name
            return
        with map_os_errors(f"open the folder of {self._say(key)}"):
            fd = self._disk.open_beneath(self._fd, "/".join(above), FOLDER_FLAGS)
        try:
            yield fd, name
        finally:
            with map_os_errors(f"close the folder of {self._say(key)}"):
                self._disk.close(fd)

    def _make(self, parts: tuple[str, ...]) -> None:
        key = "/".join(parts)
        with self._parent(key) as (parent, name), map_os_errors(f"make folder {self._say(key)}"):
            self._refuse_duplicate(parent, name)
            with suppress(FileExistsError):
                self._disk.mkdir(name, dir_fd=parent)
            # Also when it was there: whoever made it may have died before making the name durable.
            self._disk.fsync(parent)

    def _refuse_duplicate(self, parent: int, name: str) -> None:
        """A name that differs from another in case alone is the same file on half the world's disks."""
        folded = name.casefold()
        for other in self._disk.names(parent):
            if other != name and other.casefold() == folded:
                raise KeyRefused(f"{name!r} differs from {other!r} in case alone; choose another name")

    def _checked_regular(self, fd: int, key: str) -> int:
        """The handle itself, closed and refused unless it is a plain file of one name on our device."""
        try:
            found = self._disk.stat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise NotRegular(
                    f"{self._say(key)} is no plain file; links, FIFOs and devices are not opened"
                )
            # No name at all is fine: it was replaced while we held the old file, which is still whole.
            if found.st_nlink > 1:
                found = self._without_temp(fd, key)
            if found.st_nlink > 1:
                raise NotRegular(
                    f"{self._say(key)} has {found.st_nlink} names (hard links); remove the others"
                )
            if found.st_dev != self._device:
                raise NotRegular(f"{self._say(key)} lies on another device; mount nothing inside this folder")
        except BaseException:
            self._disk.close(fd)
            raise
        return fd

    def _without_temp(self, fd: int, key: str) -> os.stat_result:
        """The file less its temporary name, which a writer leaves that dies between two steps of a rename."""
        found = self._disk.stat(fd)
        with suppress(OSError), self._parent(key) as (parent, _):
            for name in self._disk.names(parent):
                if name.startswith(TEMP_PREFIX) and self._inode(name, parent) == found.st_ino:
                    self._disk.unlink(name, dir_fd=parent)
        return self._disk.stat(fd)

    def _inode(self, name: str, parent: int) -> int:
        fd = self._disk.open(name, READ_FLAGS, dir_fd=parent)
        try:
            return self._disk.stat(fd).st_ino
        finally:
            self._disk.close(fd)

    def _is_older(self, name: str, oldest_ns: int) -> bool:
        with suppress(OSError):
            fd = self._disk.open(name, READ_FLAGS, dir_fd=self._fd)
            try:
                found = self._disk.stat(fd)
                # Not the time that was set, which may lie in the past while its writer lives.
                return stat.S_ISREG(found.st_mode) and found.st_ctime_ns < oldest_ns
            finally:
                self._disk.close(fd)
        return False

    def _say(self, key: str) -> str:
        return f"{self.path}/{key}"


_NOT_OURS = (NotRegular, FileMissing, KeyRefused, AccessDenied)


def sweep_tree(folder: Folder, now: datetime, emit: Emit, depth: int = MAX_KEY_PARTS) -> int:
    """Sweep a folder as deep as a key can reach: nothing of ours lies deeper, and agents may nest folders
    without end."""
    swept = folder.sweep(now, emit)
    for name in folder.names() if depth else ():
        with suppress(*_NOT_OURS), folder.subfolder(name, create=False) as below:
            swept += sweep_tree(below, now, emit, depth - 1)
    return swept
