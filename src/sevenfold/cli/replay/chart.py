"""Context size over a session, drawn with characters: one column a call or several, breaks and cuts below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sevenfold.cli.formatting import format_tokens
from sevenfold.cli.screen import TableCell, Tone
from sevenfold.replay.series import PointMark, SeriesPoint

_LEVELS = " ▁▂▃▄▅▆▇█"
AXIS_CHARS = 7
MAX_COLUMN_CHARS = 4
"""A few calls are drawn as broad columns, so that a short session is no sliver."""
MARK_CHARS: dict[PointMark, str] = {"": " ", "break": "x", "clearing": "c", "compaction": "C"}
_RANK: dict[PointMark, int] = {"": 0, "clearing": 1, "break": 2, "compaction": 3}


@dataclass(frozen=True, slots=True)
class ChartColumn:
    tokens: int
    mark: PointMark


def plan_columns(points: Sequence[SeriesPoint], width: int) -> list[ChartColumn]:
    """One column a call, or the largest of several, with the weightiest mark among them."""
    count = min(width, len(points))
    edges = [place * len(points) // count for place in range(count + 1)]
    return [_column(points[start:end]) for start, end in pairwise(edges)]


def render_chart(
    points: Sequence[SeriesPoint], *, width: int, height: int, has_unicode: bool
) -> list[list[TableCell]]:
    """Lines of cells, top first. Nothing to draw is no lines."""
    if not points:
        return []
    room = width - AXIS_CHARS - 2
    drawn = plan_columns(points, room)
    wide = max(1, min(MAX_COLUMN_CHARS, room // len(drawn)))
    top = max(1, *(column.tokens for column in drawn))
    rows = [
        [
            _axis(top, level, height, has_unicode=has_unicode),
            *(
                TableCell(
                    _block(column.tokens, top, level, height, has_unicode=has_unicode) * wide, _tone(column)
                )
                for column in drawn
            ),
        ]
        for level in reversed(range(height))
    ]
    marks = [TableCell(f"{MARK_CHARS[column.mark]:{wide}}", _tone(column)) for column in drawn]
    return [*rows, [TableCell(" " * (AXIS_CHARS + 2)), *marks]]


def _column(group: Sequence[SeriesPoint]) -> ChartColumn:
    weightiest = max(group, key=lambda point: _RANK[point.mark])
    return ChartColumn(max(point.prompt_tokens for point in group), weightiest.mark)


def _axis(top: int, level: int, height: int, *, has_unicode: bool) -> TableCell:
    """Tokens at the top of this row, for the highest row and the middle one."""
    is_labelled = level in (height - 1, height // 2 - 1)
    label = format_tokens(top * (level + 1) // height) if is_labelled else ""
    return TableCell(f"{label:>{AXIS_CHARS}} {'┤' if has_unicode else '|'}", "faint")


def _block(tokens: int, top: int, level: int, height: int, *, has_unicode: bool) -> str:
    eighths = min(8, max(0, round(tokens * height * 8 / top) - 8 * level))
    if has_unicode:
        return _LEVELS[eighths]
    return "#" if eighths >= 4 else " "


def _tone(column: ChartColumn) -> Tone:
    return "warning" if column.mark == "break" else "strong" if column.mark else "plain"
