"""The names that shared memories may have: one grammar, checked by whoever sends and whoever receives.

Narrower than that of files on one disk: a team's folder is unpacked on systems that fold case, have devices
for names, or normalise what is not ASCII.
"""

from __future__ import annotations

import re

from sevenfold.core.errors import KeyRefused
from sevenfold.core.memories import INDEX_FILE

WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul"] + [f"{port}{digit}" for port in ("com", "lpt") for digit in range(10)]
)
"""Files on Windows that are none, whatever follows the first dot."""
_INDEX = INDEX_FILE.casefold().removesuffix(".md")
"""Each device makes its own index, and takes none from others."""

MAX_KEY_PART_CHARS = 80
TEAM_KEY_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}(?:/[a-z0-9][a-z0-9_-]{0,79}){0,2}\.md", re.ASCII)


def is_team_key(key: str) -> bool:
    parts = key.removesuffix(".md").split("/")
    return bool(TEAM_KEY_PATTERN.fullmatch(key)) and parts[-1] != _INDEX and WINDOWS_DEVICES.isdisjoint(parts)


def check_team_key(key: str) -> None:
    """`KeyRefused` for a name that some system would lose, merge with another, or open elsewhere."""
    if not is_team_key(key):
        raise KeyRefused(
            f"{key[:100]!r} cannot be a shared memory's name; use 1 to 3 parts of 1 to "
            f"{MAX_KEY_PART_CHARS} of "
            "'a-z', '0-9', '_', '-', none of them a device's name such as 'con', and end with '.md'; "
            "'memory.md' is the index"
        )
