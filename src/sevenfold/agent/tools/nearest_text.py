"""What a text that is not in a file was probably meant to be, so that the next try succeeds."""

from __future__ import annotations

import re
from difflib import get_close_matches

_MAX_LINES = 5_000
"""Comparing words with every line takes a while; the beginning of a longer file has to do."""

_MAX_LINE_CHARS = 300

_NUMBERED = re.compile(r"\s*\d+\t")


def find_nearest(text: str, wanted: str) -> str:
    """A sentence about what is there instead."""
    lines = text.split("\n")[:_MAX_LINES]
    asked = wanted.split("\n")
    if wanted.strip() and all(_NUMBERED.match(line) for line in asked if line):
        return "It begins with line numbers, which are not part of the file; leave them out."
    at = _find_spaced(lines, asked)
    if at:
        here = "\n".join(lines[at - 1 : at - 1 + len(asked)])
        return f"The same words stand at line {at} with other white space:\n{here[:2_000]}"
    return _close_line(lines, asked)


def _find_spaced(lines: list[str], asked: list[str]) -> int:
    """The line where the same words stand, white space aside; 0: nowhere."""
    wanted = [_squeezed(line) for line in asked]
    bare = [_squeezed(line) for line in lines]
    if not any(wanted):
        return 0
    size = len(wanted)
    return next((at + 1 for at in range(len(bare) - size + 1) if bare[at : at + size] == wanted), 0)


def _close_line(lines: list[str], asked: list[str]) -> str:
    first = next((line.strip() for line in asked if line.strip()), "")[:_MAX_LINE_CHARS]
    places = {line.strip()[:_MAX_LINE_CHARS]: number for number, line in reversed([*enumerate(lines, 1)])}
    close = get_close_matches(first, list(places), 1, 0.6) if first else []
    if not close:
        return "Nothing like it is there; read the file again."
    verb = "is there" if close[0] == first else "is the nearest"
    return f"Of its first line, this {verb}, at line {places[close[0]]}: {close[0]}"


def _squeezed(line: str) -> str:
    return "".join(line.split())
