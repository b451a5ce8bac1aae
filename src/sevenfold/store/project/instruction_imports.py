"""Which other files an instruction file imports: `@path` in its prose, as other agents write it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

_IMPORT = re.compile(r"(?:^|(?<=\s))@(\S+)")
_CODE = re.compile(r"`[^`]*`")
_FENCES = ("```", "~~~")
_CLOSING = ".,;:!?)]}>\"'*_"
"""What a sentence puts after a name, and no name of a file ends with."""


def find_imports(text: str) -> tuple[str, ...]:
    """Each path once, in order. What stands in code is an example, and an address or a name is no path."""
    return tuple(dict.fromkeys(_found(text)))


def is_path_like(wanted: str) -> bool:
    """Whether a person would call it a file: `@team` and `@types/node` may be anything."""
    return PurePath(wanted).suffix != ""


def _found(text: str) -> Iterator[str]:
    fence = ""
    for line in text.splitlines():
        start = line.lstrip()
        if fence:
            fence = "" if start.startswith(fence) else fence
        elif start.startswith(_FENCES):
            fence = start[:3]
        elif "@" in line:
            for found in _IMPORT.finditer(_CODE.sub(" ", line)):
                wanted = found[1].rstrip(_CLOSING)
                if wanted and wanted not in (".", "..", "/", "~"):
                    yield wanted
