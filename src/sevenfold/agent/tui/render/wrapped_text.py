"""Our own lines in a terminal, and labels with what belongs to each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from sevenfold.agent.tui.render.word_wrap import find_hanging_breaks

_LEAST_TEXT_COLUMNS = 20
"""Beside a label; with less, the text stands below it."""
_STACKED_INDENT = 2
LEAST_COLUMNS = 10


def wrap_plain(text: str, columns: int, hang: int = 0) -> list[str]:
    """Lines of at most so many columns; `hang` spaces stand before what goes on."""
    room = max(columns, LEAST_COLUMNS)
    hang = hang if 0 < hang < room // 2 else 0
    lines: list[str] = []
    for line in text.split("\n"):
        places = [0, *find_hanging_breaks(line, room, hang), len(line)]
        parts = [line[start:end].rstrip() for start, end in pairwise(places)]
        lines += [parts[0], *(f"{'':{hang}}{part}" for part in parts[1:])]
    return lines


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One row: what it is about, and what is to be said."""

    label: str
    text: str


def wrap_rows(rows: Iterable[LabelledText], columns: int) -> list[str]:
    """Rows with their texts in one column, or below their labels where that column would be too narrow."""
    from rich.cells import cell_len

    shown = list(rows)
    width = max((cell_len(row.label) for row in shown), default=0) + 2
    is_stacked = columns - width < _LEAST_TEXT_COLUMNS
    lines: list[str] = []
    for row in shown:
        if is_stacked:
            lines += wrap_plain(row.label, columns)
            lines += [
                f"{'':{_STACKED_INDENT}}{part}" for part in wrap_plain(row.text, columns - _STACKED_INDENT)
            ]
            continue
        first, *more = wrap_plain(row.text, columns - width)
        lines.append(f"{row.label}{' ' * (width - cell_len(row.label))}{first}".rstrip())
        lines += [f"{'':{width}}{part}" for part in more]
    return lines
