"""The second half of the replay report: what filled the context, and the sessions one by one.

`render_chart` draws the context size of a session with characters, with breaks and cuts below it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath

from sevenfold.cli.screen import (
    Screen,
    TableCell,
    Tone,
    format_count,
    format_share,
    format_time,
    format_tokens,
    format_usd,
    render_bar,
    shorten_text,
)
from sevenfold.replay.context_fill import ContextFill, FillKind, PointMark, SeriesPoint
from sevenfold.replay.report import ReplayReport, SessionReport

# The chart: one column for one call or several.

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


_BAR_CHARS = 20
CHART_ROWS = 8
_MOST_SESSIONS = 10
MAX_SHARE_ROWS = 12
_MOST_READS = 5
SMALL_SHARE = 0.004
"""Smaller rows are added up: four tenths of a per cent is the width of nothing."""

FILL_KIND_LABELS: dict[FillKind, str] = {
    "human": "what people wrote",
    "assistant": "what the model wrote",
    "thinking": "thinking",
    "attachment": "attachments and reminders",
    "memory": "memory and instructions",
    "summary": "summaries of compaction",
    "system_prompt": "system prompt",
    "tool_schema": "tool schemas",
    "unlogged": "system prompt, tools: not in the log",
}


def show_context_fill(report: ReplayReport, screen: Screen) -> None:
    """Rows of what was sent, by who put it there."""
    fill = report.fill
    if not fill.carried_tokens:
        return
    screen.show("")
    screen.show_line("What filled the context: tokens sent, counted with every call", "strong")
    rows = _fill_rows(fill)
    largest = max(rows.values())
    screen.show_table(
        [
            TableCell(f"  {shorten_text(label, 38)}"),
            TableCell(f"{format_tokens(tokens):>8}"),
            TableCell(f"{format_share(tokens, fill.carried_tokens):>6}"),
            TableCell(render_bar(tokens / largest, _BAR_CHARS, has_unicode=screen.has_unicode)),
        ]
        for label, tokens in rows.items()
    )
    if fill.repeated_entered_tokens:
        screen.show_line(
            f"  Files read again though unchanged: {format_tokens(fill.repeated_entered_tokens)} tokens, "
            f"sent {format_tokens(fill.repeated_carried_tokens)} in all.",
            "warning",
        )
    for item in report.repeated_reads[:_MOST_READS]:
        path = shorten_text(item.path, 48, is_path=True)
        screen.show_line(f"    {path:48}  {item.times:>3}x again {format_tokens(item.tokens):>7}", "faint")


def show_costly_results(report: ReplayReport, screen: Screen) -> None:
    if not report.costly_results:
        return
    screen.show("")
    screen.show_line("The most expensive tool results: written once, read with every call after", "strong")
    heading = [
        TableCell(word, "faint") for word in ("  tool", f"{'what':36}", "tokens", " sent", "   dollars")
    ]
    rows = [
        [
            TableCell(f"  {shorten_text(item.tool or '?', 12)}"),
            TableCell(f"{shorten_text(item.label, 36, is_path=_is_path(item.label)):36}"),
            TableCell(f"{format_tokens(item.tokens):>6}"),
            TableCell(f"{item.sent:>4}x"),
            TableCell(f"{format_usd(item.usd):>10}"),
        ]
        for item in report.costly_results
    ]
    screen.show_table([heading, *rows])


def show_context_chart(sessions: Sequence[SessionReport], screen: Screen) -> None:
    """The most expensive session's context, call by call."""
    session = next((item for item in sessions if item.series), None)
    if session is None:
        return
    screen.show("")
    screen.show_line(
        shorten_text(f"Context over time: {name_session(session)}", screen.columns - 2), "strong"
    )
    width = screen.columns - 2
    lines = render_chart(session.series, width=width, height=CHART_ROWS, has_unicode=screen.has_unicode)
    for line in lines:
        screen.show_cells(line)
    calls = session.series[-1].call + 1
    legend = f"x break ({len(session.breaks)})  C compaction ({len(session.compactions)})"
    legend += f"  c clearing ({len(session.clearings)})" if session.clearings else ""
    span = f"{format_time(session.first_at)} to {format_time(session.last_at)}, {format_count(calls, 'call')}"
    screen.show_line(f"         {span}", "faint")
    screen.show_line(f"         {legend}", "faint")


def show_sessions(sessions: Sequence[SessionReport], screen: Screen) -> None:
    if len(sessions) < 2:
        return
    screen.show("")
    screen.show_line("Sessions, most expensive first", "strong")
    words = ("  began", f"{'session':23}", "calls", "largest", "   hit", "breaks", "  dollars")
    screen.show_table(
        [
            [TableCell(word, "faint") for word in words],
            *(_session_row(item) for item in sessions[:_MOST_SESSIONS]),
        ]
    )
    if len(sessions) > _MOST_SESSIONS:
        screen.show_line(f"  and {len(sessions) - _MOST_SESSIONS:,} more; --json lists them all", "faint")


def _session_row(session: SessionReport) -> list[TableCell]:
    totals = session.totals
    is_priced = totals.calls > totals.unpriced_calls
    usd = ("~" if totals.estimated_usd else "") + format_usd(totals.cost.total) if is_priced else "unpriced"
    return [
        TableCell(f"  {format_time(session.first_at)[:10]}"),
        TableCell(f"{shorten_text(name_session(session), 23):23}"),
        TableCell(f"{totals.calls:>5,}"),
        TableCell(f"{format_tokens(session.largest_prompt_tokens):>7}"),
        TableCell(f"{format_share(totals.tokens.read, totals.tokens.prompt):>6}"),
        TableCell(f"{len(session.breaks):>6}"),
        TableCell(f"{usd:>9}"),
    ]


def name_session(session: SessionReport) -> str:
    """How its id begins, and what it is about."""
    short = session.id[:8] + (f"/{session.sub_agent[:8]}" if session.sub_agent else "")
    named = session.title or PurePath(session.project).name
    return f"{short} {named}" if named else short


def _fill_rows(fill: ContextFill) -> dict[str, int]:
    """Labels and tokens, largest first; what is too small to see is one row at the end."""
    sums: defaultdict[str, int] = defaultdict(int)
    for share in fill.shares:
        sums[_label(share.kind, share.tool)] += share.carried_tokens
    ordered = sorted(sums.items(), key=lambda row: -row[1])
    shown = {
        label: tokens
        for label, tokens in ordered[:MAX_SHARE_ROWS]
        if tokens >= SMALL_SHARE * fill.carried_tokens
    }
    rest = fill.carried_tokens - sum(shown.values())
    return {**shown, "everything else": rest} if rest > 0 else shown


def _label(kind: FillKind, tool: str) -> str:
    if kind == "tool_result":
        return f"{tool or 'unknown tool'}: results"
    if kind == "tool_request":
        return f"{tool or 'unknown tool'}: requests"
    return FILL_KIND_LABELS.get(kind, kind)


def _is_path(label: str) -> bool:
    return "/" in label and " " not in label
