"""What git tracks, and where, from its index alone: a repository can make git run code of its choosing."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

_MAX_INDEX_BYTES = 256 * 1024 * 1024
"""Some two million files; beyond that we do not look and say so."""

TrackingState: TypeAlias = Literal["tracked", "untracked", "unknown"]
IndexPresence: TypeAlias = Literal["here", "elsewhere", "unknown"]

_MOST_COMPARED = 1000
"""One file that git has seen will do; where the first thousand are not, the rest are not either."""

_HASH_BYTES = (20, 32)
"""SHA-1 and SHA-256 repositories; the index does not say which it is."""


def read_tracking(checkout: Path, names: frozenset[str]) -> TrackingState:
    """Whether any of these paths (relative, with `/`) is in the index of the repository checked out here.

    Without an index nobody knows: an unpacked archive has none, and holds what its maker put there. Case is
    ignored: on a disk that ignores it too, a tracked `.SEVENFOLD` is the same folder. Nor does an index tell
    of files that it never saw, such as one that an archive brought along.
    """
    wanted = {name.casefold() for name in names}
    try:
        git_dir = _git_dir(checkout)
        for file in (git_dir / "index", *sorted(git_dir.glob("sharedindex.*"))):
            if not wanted.isdisjoint(_names(_read(file))):
                return "tracked"
    except (OSError, ValueError):
        return "unknown"
    is_elsewhere = read_presence(git_dir, Path(os.path.realpath(checkout))) == "elsewhere"
    return "unknown" if is_elsewhere else "untracked"


def read_presence(git_dir: Path, folder: Path) -> IndexPresence:
    """Whether the files that this git folder last saw are those in `folder`, by inode.

    A copy of them has other inodes, and an archive cannot ask for one. Times and sizes prove nothing: an
    archive sets both, and every edit changes them.
    """
    try:
        entries = _read_entries(_read(git_dir / "index"), _MOST_COMPARED)
    except (OSError, ValueError):
        return "unknown"
    # Some programs that write an index leave inodes out.
    telling = [entry for entry in entries if entry.inode]
    if not telling:
        return "unknown"
    return "here" if any(_is_there(folder, entry) for entry in telling) else "elsewhere"


def _is_there(folder: Path, entry: _Entry) -> bool:
    path = folder / os.fsdecode(entry.name)
    try:
        found = os.lstat(path)
        # A link on the way would lead to the very files of whoever is pointed at.
        if not stat.S_ISREG(found.st_mode) or os.path.realpath(path) != str(path):
            return False
    except (OSError, ValueError):
        return False
    return found.st_ino & 0xFFFFFFFF == entry.inode


def _git_dir(checkout: Path) -> Path:
    mark = checkout / ".git"
    if mark.is_dir():
        return mark
    label, _, target = mark.read_text("utf-8").partition(":")
    git_dir = checkout / target.strip()
    if label != "gitdir" or not target.strip() or not git_dir.is_dir():
        raise ValueError(f"{mark} is no pointer to a git folder")
    return git_dir


def _read(file: Path) -> bytes:
    # Non-blocking, and a plain file: what a stranger's repository holds in its place is not waited for.
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as opened:
        found = os.fstat(opened.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_INDEX_BYTES:
            raise ValueError(f"{file} is no plain file, or too large to look through")
        return opened.read(_MAX_INDEX_BYTES)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A tracked file as git last saw it."""

    name: bytes
    inode: int
    """Cut to 32 bits."""


_SEEN = struct.Struct(">20xI16x")
"""What we use of an entry's start: two times, device, inode, mode, owner and group, size."""


def _names(data: bytes) -> list[str]:
    """Every path in an index, folded for comparison."""
    return [os.fsdecode(entry.name).casefold() for entry in _read_entries(data)]


def _read_entries(data: bytes, most: int | None = None) -> list[_Entry]:
    """What is in an index; `ValueError` when it cannot be read for certain."""
    for size in _HASH_BYTES:
        try:
            return list(islice(_entries(data, size), most))
        except (ValueError, IndexError):
            continue
    raise ValueError("not an index that we can read")


def _entries(data: bytes, hash_bytes: int) -> Iterator[_Entry]:
    version, count = int.from_bytes(data[4:8]), int.from_bytes(data[8:12])
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index")
    at, name = 12, b""
    for _ in range(count):
        start, fixed = at, at + 40 + hash_bytes
        is_extended = data[fixed] & 0x40
        at = fixed + (4 if is_extended else 2)
        kept = 0
        if version == 4:
            # Names share their beginning with the one before: how much of its end to drop, then the rest.
            drop, at = data[at] & 0x7F, at + 1
            while data[at - 1] & 0x80:
                drop, at = ((drop + 1) << 7) | (data[at] & 0x7F), at + 1
            kept = len(name) - drop
        end = data.index(b"\0", at)
        previous, name = name, name[:kept] + data[at:end]
        # Read with the wrong hash size, names come out of order or empty: that is how we notice.
        if kept < 0 or not previous <= name or not name:
            raise ValueError("entries out of order")
        yield _Entry(name, *_SEEN.unpack_from(data, start))
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
