"""The user's own files: reading and replacing them by real path, and listing those of a project.

Callers have resolved links and have permission for the result. Exactly that path is opened: a link that
somebody puts there meanwhile stops the walk.

`exclude_from_git` keeps a file of ours out of git, by the repository's own `info/exclude`, which is never
committed. Whoever packed a repository chose what its `.git` is: nothing is followed out of it, and a git
folder that does not belong to the checkout is left alone.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import TypeAlias

from sevenfold.core.errors import FileDamaged, FileExists, FileMissing, KeyRefused, NotRegular, SevenfoldError
from sevenfold.core.system import map_os_errors
from sevenfold.core.text.globs import IgnoreRule, expand_braces, is_ignored, matches_path, parse_ignore_rules
from sevenfold.store.files.disk import (
    FOLDER_FLAGS,
    NEVER_INHERIT,
    READ_FLAGS,
    SYSTEM_DISK,
    Disk,
    read_fully,
    write_all,
)
from sevenfold.store.files.folder import check_path
from sevenfold.store.project.git import find_own_git_folders
from sevenfold.store.project.settings_files import find_checkout

_STEP_FLAGS = os.O_DIRECTORY | NEVER_INHERIT | getattr(os, "O_PATH", os.O_RDONLY)
"""Passing through a folder takes less than reading it: many home folders cannot be listed by others."""

_NO_FILES = ("/proc/", "/sys/")
"""The kernel's answers look like plain files there, and some never end."""

_TEMP = ".sevenfold-tmp-"

PRIVATE_MASK = 0o077
"""For files that say what runs or what is allowed: nobody else may change them, whatever the user's umask."""


@dataclass(frozen=True, slots=True)
class FileOwner:
    user: int
    group: int


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was found."""

    data: bytes
    mode: int
    owner: FileOwner

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def resolve_path(path: str) -> str:
    """Where a path leads once every link is followed; what is not there yet counts as plain names."""
    check_path(path)
    with map_os_errors(f"follow {path}"):
        return os.path.realpath(path)


@contextmanager
def open_user_file(real: str, *, disk: Disk = SYSTEM_DISK) -> Generator[int]:
    """A handle of a plain file, for reading. Never waits: a FIFO or a device is refused."""
    if real.startswith(_NO_FILES):
        raise NotRegular(f"{real} is not a file on a disk; run a command that prints it")
    with map_os_errors(f"open {real}"), _parent(real, disk) as folder:
        fd = disk.open(_name(real), READ_FLAGS, dir_fd=folder)
        try:
            kind = disk.stat(fd).st_mode
            if stat.S_ISDIR(kind):
                raise NotRegular(f"{real} is a folder; list it with glob")
            if not stat.S_ISREG(kind):
                raise NotRegular(f"{real} is no plain file; links, FIFOs, sockets and devices are not opened")
            yield fd
        finally:
            disk.close(fd)


@contextmanager
def open_user_folder(real: str, *, disk: Disk = SYSTEM_DISK) -> Generator[int]:
    """A handle of a folder, for listing what is in it."""
    with map_os_errors(f"open {real}"), _folder([name for name in real.split("/") if name], disk) as step:
        fd = disk.open(".", FOLDER_FLAGS, dir_fd=step)
    try:
        yield fd
    finally:
        disk.close(fd)


def read_file_state(real: str, *, max_bytes: int, disk: Disk = SYSTEM_DISK) -> FileState:
    """The whole file, refused rather than cut where it is over `max_bytes`."""
    with open_user_file(real, disk=disk) as fd, map_os_errors(f"read {real}"):
        found = disk.stat(fd)
        # One more than is allowed, since a file may grow after it was measured.
        data = read_fully(disk, fd, min(found.st_size, max_bytes) + 1)
        if len(data) > max_bytes:
            raise FileDamaged(f"{real} has {found.st_size:,} bytes; at most {max_bytes:,} are taken here")
        return FileState(data, stat.S_IMODE(found.st_mode), _owner(found))


def find_file_state(real: str, *, max_bytes: int, disk: Disk = SYSTEM_DISK) -> FileState | None:
    """The same, or None where there is no file."""
    try:
        return read_file_state(real, max_bytes=max_bytes, disk=disk)
    except FileMissing:
        return None


def replace_file(
    real: str,
    data: bytes,
    *,
    expected: FileState | None,
    max_bytes: int,
    mask: int | None = None,
    disk: Disk = SYSTEM_DISK,
) -> None:
    """Put `data` in place of what was `expected` there (None: nothing): all or nothing, durable on return.

    Mode and owner are kept. Missing folders above are made. A file that is not as expected is left alone.
    What is made anew has no bit of `mask` (None: of the umask, as with the user's own programs).
    """
    mask = _umask() if mask is None else mask
    with map_os_errors(f"write {real}"), _parent(real, disk, mask if expected is None else None) as step:
        _put(step, real, data, expected, mask=mask, max_bytes=max_bytes, disk=disk)
        _sync_folder(step, disk)


def remove_file(real: str, *, expected: FileState, max_bytes: int, disk: Disk = SYSTEM_DISK) -> None:
    """Take away a file that is as `expected`, for good on return. One that is not is left alone."""
    with map_os_errors(f"remove {real}"), _parent(real, disk) as step:
        _check_unchanged(real, expected, max_bytes, disk)
        disk.unlink(_name(real), dir_fd=step)
        _sync_folder(step, disk)


def _put(
    folder: int,
    real: str,
    data: bytes,
    expected: FileState | None,
    *,
    mask: int,
    max_bytes: int,
    disk: Disk,
) -> None:
    temp = _TEMP + secrets.token_hex(8)
    try:
        _write_temp(folder, temp, data, expected, mask=mask, disk=disk)
        _check_unchanged(real, expected, max_bytes, disk)
        if expected is None:
            _give_new_name(folder, temp, _name(real), disk)
        else:
            disk.rename(temp, _name(real), old_fd=folder, new_fd=folder)
    except BaseException:
        with suppress(OSError):
            disk.unlink(temp, dir_fd=folder)
        raise


def _write_temp(
    folder: int, temp: str, data: bytes, model: FileState | None, *, mask: int, disk: Disk
) -> None:
    fd = disk.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NEVER_INHERIT, dir_fd=folder)
    try:
        write_all(disk, fd, data)
        if model is not None and model.owner != _owner(disk.stat(fd)):
            with suppress(PermissionError):  # only root can give a file away, and may have to
                os.fchown(fd, model.owner.user, model.owner.group)
        os.fchmod(fd, 0o666 & ~mask if model is None else model.mode)
        disk.fsync(fd)
    finally:
        disk.close(fd)


def _check_unchanged(real: str, expected: FileState | None, max_bytes: int, disk: Disk) -> None:
    found = find_file_state(real, max_bytes=max_bytes, disk=disk)
    if expected is None and found is not None:
        raise FileExists(f"{real} was made meanwhile; read it first")
    if expected is not None and (found is None or found.data != expected.data):
        raise FileDamaged(f"{real} was changed meanwhile; read it again")


def _give_new_name(folder: int, temp: str, name: str, disk: Disk) -> None:
    try:
        disk.rename_new(temp, name, old_fd=folder, new_fd=folder)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        disk.link(temp, name, dir_fd=folder)
        disk.unlink(temp, dir_fd=folder)


@contextmanager
def _parent(real: str, disk: Disk, mask: int | None = None) -> Generator[int]:
    """The folder that holds the path's last name, from the top, following nothing; made with a mask."""
    names = real.split("/")[1:]
    if not real.startswith("/") or {"", ".", ".."} & set(names):
        raise KeyRefused(f"{real!r} is no real path of a file; resolve it first")
    with _folder(names[:-1], disk, mask) as current:
        yield current


@contextmanager
def _folder(names: list[str], disk: Disk, mask: int | None = None) -> Generator[int]:
    current = disk.open("/", _STEP_FLAGS)
    try:
        for name in names:
            below = _step(current, name, disk, mask)
            disk.close(current)
            current = below
        yield current
    finally:
        disk.close(current)


def _step(folder: int, name: str, disk: Disk, mask: int | None) -> int:
    try:
        return disk.open(name, _STEP_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        if mask is None:
            raise
    try:
        disk.mkdir(name, dir_fd=folder)
    except FileExistsError:  # somebody was faster
        return disk.open(name, _STEP_FLAGS, dir_fd=folder)
    made = disk.open(name, FOLDER_FLAGS, dir_fd=folder)
    os.fchmod(made, 0o777 & ~mask)
    _sync_folder(folder, disk)
    return made


def _sync_folder(step: int, disk: Disk) -> None:
    fd = disk.open(".", FOLDER_FLAGS, dir_fd=step)
    try:
        disk.fsync(fd)
    finally:
        disk.close(fd)


def _name(real: str) -> str:
    return real.rpartition("/")[2]


def _owner(found: os.stat_result) -> FileOwner:
    return FileOwner(found.st_uid, found.st_gid)


@cache
def _umask() -> int:
    # It can only be read by setting it; for that moment nobody gets more than with their own.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# Listing shows files as git would: it follows no link, and leaves out what is ignored.

MAX_LISTED_ENTRIES = 300_000
"""More than any project that a person works on; a listing of / ends here and says so."""

_MAX_SECONDS = 20
"""On a slow disk; what was found until then is shown."""

MAX_IGNORE_BYTES = 256 * 1024

IsHidden: TypeAlias = Callable[[str], bool]
"""Whether a file, by its real path, is kept from the agent."""

FileFilter: TypeAlias = Callable[[str], bool]
"""Whether a file is looked for, by its path below the folder."""


def hide_nothing(_real: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class FoundFile:
    path: str
    """Below the folder."""
    modified_ns: int


@dataclass(slots=True)
class FileListing:
    files: list[FoundFile] = field(default_factory=list[FoundFile])
    is_cut: bool = False
    """The folder was too large to be looked through."""


def list_project_files(real: str, wanted: FileFilter, hides: IsHidden = hide_nothing) -> FileListing:
    """The plain files below a folder, by name."""
    listing, started, seen = FileListing(), monotonic(), 0
    with open_user_folder(real) as top, map_os_errors(f"list {real}"):
        ignores = _Ignores.above(real)
        for folder, folders, names, fd in os.fwalk(".", dir_fd=top, follow_symlinks=False):
            below = PurePosixPath(folder).parts
            if ".gitignore" in names:
                ignores.enter(below, fd)
            folders[:] = sorted(
                name for name in folders if not ignores.leave_out(below, name, is_folder=True)
            )
            for name in sorted(names):
                path = "/".join((*below, name))
                is_left_out = not wanted(path) or ignores.leave_out(below, name, is_folder=False)
                if not is_left_out and not hides(f"{real}/{path}"):
                    _add(listing, path, name, fd)
            seen += len(folders) + len(names)
            if seen > MAX_LISTED_ENTRIES or monotonic() - started > _MAX_SECONDS:
                listing.is_cut = True
                break
    return listing


def make_name_filter(pattern: str) -> FileFilter:
    """Files that a pattern names; one without a slash names files at any depth."""
    patterns = expand_braces(pattern if "/" in pattern else f"**/{pattern}")
    return lambda path: any(matches_path(one, path) for one in patterns)


def _add(listing: FileListing, path: str, name: str, fd: int) -> None:
    try:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return  # gone meanwhile
    if stat.S_ISREG(found.st_mode):
        listing.files.append(FoundFile(path, found.st_mtime_ns))


@dataclass(slots=True)
class _Ignores:
    """The rules that hold in each folder of a walk, those from above first."""

    above_parts: tuple[str, ...] = ()
    """Of the folder where the walk starts, from the top of the checkout."""
    known: dict[tuple[str, ...], tuple[IgnoreRule, ...]] = field(
        default_factory=dict[tuple[str, ...], tuple[IgnoreRule, ...]]
    )
    is_git: bool = True

    @classmethod
    def above(cls, real: str) -> _Ignores:
        """The rules of the checkout down to where a walk starts; none at all where there is no git."""
        top = find_checkout(Path(real))
        if not (top / ".git").exists():
            return cls(is_git=False)
        parts = Path(real).relative_to(top).parts
        rules = _excluded(top)
        for depth in range(len(parts)):
            with open_user_folder(str(top.joinpath(*parts[:depth]))) as fd:
                rules += _rules_in(fd, ".gitignore", parts[:depth])
        return cls(parts, {(): rules})

    def enter(self, below: tuple[str, ...], fd: int) -> None:
        """Read the ignore file of a folder."""
        if self.is_git:
            self.known[below] = (
                *self._rules(below),
                *_rules_in(fd, ".gitignore", (*self.above_parts, *below)),
            )

    def leave_out(self, below: tuple[str, ...], name: str, *, is_folder: bool) -> bool:
        if name == ".git":
            return True
        rules = self._rules(below)
        return bool(rules) and is_ignored((*self.above_parts, *below, name), rules, is_folder=is_folder)

    def _rules(self, below: tuple[str, ...]) -> tuple[IgnoreRule, ...]:
        """Those of the nearest folder above that has some."""
        for depth in range(len(below), -1, -1):
            if below[:depth] in self.known:
                return self.known[below[:depth]]
        return ()


def _excluded(top: Path) -> tuple[IgnoreRule, ...]:
    info = os.path.realpath(top / ".git/info")
    if not os.path.isdir(info):
        return ()
    with open_user_folder(info) as fd:
        return _rules_in(fd, "exclude", ())


def _rules_in(folder: int, name: str, above: tuple[str, ...]) -> tuple[IgnoreRule, ...]:
    try:
        fd = os.open(name, READ_FLAGS, dir_fd=folder)
    except OSError:
        return ()
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ()
        return parse_ignore_rules(
            read_fully(SYSTEM_DISK, fd, MAX_IGNORE_BYTES).decode("utf-8", "replace"), above
        )
    finally:
        os.close(fd)


MAX_EXCLUDE_BYTES = 1024 * 1024
"""Of the file that is added to: a larger one was not written by a person."""


def exclude_from_git(checkout: Path, name: str) -> str:
    """Have git ignore a file by its path from the top of the checkout; why not, or nothing where it does."""
    try:
        folders = find_own_git_folders(checkout)
        if folders is None:
            return "its .git leads to a folder that does not name this checkout"
        path = folders.common / "info" / "exclude"
        real = resolve_path(str(path))
        if real != str(path):
            return f"{path} is a link, to {real}"
        _add_line(real, f"/{name}")
    except SevenfoldError as error:
        return str(error)
    return ""


def _add_line(real: str, line: str) -> None:
    before = find_file_state(real, max_bytes=MAX_EXCLUDE_BYTES)
    data = before.data if before else b""
    if line.encode() in (known.strip() for known in data.splitlines()):
        return
    gap = b"" if not data or data.endswith(b"\n") else b"\n"
    replace_file(real, data + gap + line.encode() + b"\n", expected=before, max_bytes=MAX_EXCLUDE_BYTES)
