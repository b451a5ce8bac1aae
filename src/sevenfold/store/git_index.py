"""Whether git tracks a file, from its index alone: a repository can make git run code of its choosing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

MAX_INDEX_BYTES = 256 * 1024 * 1024
"""Some two million files; beyond that we do not look and say so."""

Answer: TypeAlias = Literal["tracked", "untracked", "unknown"]

_HASH_BYTES = (20, 32)
"""SHA-1 and SHA-256 repositories; the index does not say which it is."""


def read_tracking(checkout: Path, names: frozenset[str]) -> Answer:
    """Whether any of these paths (relative, with `/`) is in the index of the repository checked out here.

    Without an index nobody knows: an unpacked archive has none, and holds what its maker put there. Case is
    ignored: on a disk that ignores it too, a tracked `.SEVENFOLD` is the same folder.
    """
    wanted = {name.casefold() for name in names}
    try:
        git_dir = _git_dir(checkout)
        for file in (git_dir / "index", *sorted(git_dir.glob("sharedindex.*"))):
            if not wanted.isdisjoint(_names(_read(file))):
                return "tracked"
    except (OSError, ValueError):
        return "unknown"
    return "untracked"


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
    if file.stat().st_size > MAX_INDEX_BYTES:
        raise ValueError(f"{file} is too large to look through")
    return file.read_bytes()


def _names(data: bytes) -> list[str]:
    """Every path in an index, folded for comparison; `ValueError` when it cannot be read for certain."""
    for size in _HASH_BYTES:
        try:
            raw = list(_entries(data, size))
        except (ValueError, IndexError):
            continue
        return [os.fsdecode(name).casefold() for name in raw]
    raise ValueError("not an index that we can read")


def _entries(data: bytes, hash_bytes: int) -> Iterator[bytes]:
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
        yield name
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
