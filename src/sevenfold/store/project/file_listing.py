"""The files below a folder, as git would show them: no link is followed, and what is ignored is left out."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import TypeAlias

from sevenfold.core.os_errors import map_os_errors
from sevenfold.core.text.globs import expand_braces, matches_path
from sevenfold.store.files.disk import READ_FLAGS, SYSTEM_DISK, read_fully
from sevenfold.store.files.user_files import open_user_folder
from sevenfold.store.project.gitignore import IgnoreRule, is_ignored, parse_ignore_rules
from sevenfold.store.project.settings_files import find_checkout

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
