"""The names that files of ours may have, and the names that memories may have.

ASCII only, so there are no Unicode look-alikes, direction marks or encodings to distinguish. What can still
go wrong (names that differ in case only, device names of other systems) is refused here or by the folder.
"""

from __future__ import annotations

import os
import re
from pathlib import PurePath

from sevenfold.core.errors import KeyRefused
from sevenfold.core.memories import INDEX_FILE, WINDOWS_DEVICES, MemoryKey

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
            raise KeyRefused(
                f"key {key[:80]!r} is refused for its part {part[:80]!r}: use 1 to 200 letters, digits, "
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
