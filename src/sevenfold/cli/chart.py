"""Context size over a session, drawn with characters: one column a call or several, breaks and cuts below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sevenfold.cli.figures import spell_tokens
from sevenfold.cli.render import Cell, Tone
from sevenfold.replay.series import Mark, Point

LEVELS = " ▁▂▃▄▅▆▇█"
AXIS_CHARS = 7
MOST_WIDE = 4
"""A few calls are drawn as broad columns, so that a short session is no sliver."""
MARKS: dict[Mark, str] = {"": " ", "break": "x", "clearing": "c", "compaction": "C"}
_RANK: dict[Mark, int] = {"": 0, "clearing": 1, "break": 2, "compaction": 3}


@dataclass(frozen=True, slots=True)
class Column:
    tokens: int
    mark: Mark


def columns(points: Sequence[Point], width: int) -> list[Column]:
    """One column a call, or the largest of several, with the weightiest mark among them."""
    count = min(width, len(points))
    edges = [place * len(points) // count for place in range(count + 1)]
    return [_column(points[start:end]) for start, end in pairwise(edges)]


def plot(points: Sequence[Point], *, width: int, height: int, has_unicode: bool) -> list[list[Cell]]:
    """Lines of cells, top first. Nothing to draw is no lines."""
    if not points:
        return []
    room = width - AXIS_CHARS - 2
    drawn = columns(points, room)
    wide = max(1, min(MOST_WIDE, room // len(drawn)))
    top = max(1, *(column.tokens for column in drawn))
    rows = [
        [
            _axis(top, level, height, has_unicode=has_unicode),
            *(
                Cell(_block(column.tokens, top, level, height, has_unicode=has_unicode) * wide, _tone(column))
                for column in drawn
            ),
        ]
        for level in reversed(range(height))
    ]
    marks = [Cell(f"{MARKS[column.mark]:{wide}}", _tone(column)) for column in drawn]
    return [*rows, [Cell(" " * (AXIS_CHARS + 2)), *marks]]


def _column(group: Sequence[Point]) -> Column:
    weightiest = max(group, key=lambda point: _RANK[point.mark])
    return Column(max(point.prompt_tokens for point in group), weightiest.mark)


def _axis(top: int, level: int, height: int, *, has_unicode: bool) -> Cell:
    """Tokens at the top of this row, for the highest row and the middle one."""
    is_labelled = level in (height - 1, height // 2 - 1)
    label = spell_tokens(top * (level + 1) // height) if is_labelled else ""
    return Cell(f"{label:>{AXIS_CHARS}} {'┤' if has_unicode else '|'}", "faint")


def _block(tokens: int, top: int, level: int, height: int, *, has_unicode: bool) -> str:
    eighths = min(8, max(0, round(tokens * height * 8 / top) - 8 * level))
    if has_unicode:
        return LEVELS[eighths]
    return "#" if eighths >= 4 else " "


def _tone(column: Column) -> Tone:
    return "warning" if column.mark == "break" else "strong" if column.mark else "plain"
