"""The status line: model, mode, context, cost, tasks, and what a layer did last, as far as the columns go."""

from __future__ import annotations

from dataclasses import dataclass

_GAP = "  "
_ELLIPSIS = "…"
_LEAST_NEWS = 16
"""Fewer columns than this would say nothing of what happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusLine:
    """What the line is made of."""

    model: str = ""
    mode: str = ""
    context_tokens: int = 0
    limit_tokens: int = 0
    spent_usd: float | None = 0.0
    tasks: int = 0
    queued: int = 0
    """Messages that wait for the end of the round."""
    news: str = ""
    """What a layer did last."""
    is_working: bool = False


def render_status_line(status: StatusLine, columns: int) -> str:
    """At most `columns` characters: the least important goes first, and only the news is cut in mid-word."""
    parts = _parts(status)
    while parts and len(_GAP.join(parts)) > columns:
        parts.pop()
    line = _GAP.join(parts)
    room = columns - len(line) - len(_GAP)
    if not status.news or room < min(_LEAST_NEWS, len(status.news)):
        return line
    news = status.news if len(status.news) <= room else status.news[: room - 1] + _ELLIPSIS
    return f"{line}{_GAP}{news}" if line else news


def _parts(status: StatusLine) -> list[str]:
    """The most important first."""
    parts = [_context(status), status.mode, status.model.removeprefix("claude-"), _cost(status)]
    if status.tasks:
        parts.insert(1, f"{status.tasks} task{'' if status.tasks == 1 else 's'}")
    if status.queued:
        parts.insert(1, f"{status.queued} queued")
    if status.is_working:
        parts.insert(0, "working")
    return [part for part in parts if part]


def _context(status: StatusLine) -> str:
    if not status.limit_tokens:
        return ""
    return f"{100 * status.context_tokens / status.limit_tokens:.0f}% context"


def _cost(status: StatusLine) -> str:
    if status.spent_usd is None:
        return "unpriced"
    return f"${status.spent_usd:.2f}"
