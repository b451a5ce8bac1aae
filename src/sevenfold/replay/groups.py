"""What sessions cost by day, week, project, model or session; and as rows for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal, TypeAlias

from sevenfold.replay.bills import BillTotals, ModelBill, sum_bills
from sevenfold.replay.report import SessionReport, local_day

GroupKind: TypeAlias = Literal["session", "day", "week", "project", "model"]
NO_DAY, NO_PROJECT = "no date", "no project"


@dataclass(frozen=True, slots=True, kw_only=True)
class BillGroup:
    """One row: a day, a week, a project, a model or a session."""

    key: str
    sessions: int
    totals: BillTotals
    breaks: int
    lost_usd: Decimal
    """Of the breaks that have a price."""


@dataclass(slots=True)
class _Group:
    bills: list[ModelBill] = field(default_factory=list[ModelBill])
    sessions: set[str] = field(default_factory=set[str])
    breaks: int = 0
    lost_usd: Decimal = Decimal(0)


def group_sessions(sessions: Iterable[SessionReport], kind: GroupKind) -> tuple[BillGroup, ...]:
    """One group a day, and so on: days and weeks newest first, all others most expensive first."""
    groups: dict[str, _Group] = {}
    for session in sessions:
        for row in session.days:
            group = groups.setdefault(_key(session, row.day, row.bill.model, kind), _Group())
            group.bills.append(row.bill)
            group.sessions.add(session.id)
        for item in session.breaks:
            group = groups.get(_key(session, local_day(item.at), _bill_row(session, item.model), kind))
            if group is not None:
                group.breaks += 1
                group.lost_usd += item.lost_usd or 0
    rows = [
        BillGroup(
            key=key,
            sessions=len(group.sessions),
            totals=sum_bills(group.bills),
            breaks=group.breaks,
            lost_usd=group.lost_usd,
        )
        for key, group in groups.items()
    ]
    if kind in ("day", "week"):
        return tuple(sorted(rows, key=lambda row: row.key, reverse=True))
    return tuple(sorted(rows, key=lambda row: (-row.totals.cost.total, -row.totals.tokens.prompt, row.key)))


def week_of(day: str) -> str:
    """The Monday of a day's week."""
    at = date.fromisoformat(day)
    return (at - timedelta(days=at.weekday())).isoformat()


def _key(session: SessionReport, day: str, model: str, kind: GroupKind) -> str:
    match kind:
        case "session":
            return session.name
        case "day":
            return day or NO_DAY
        case "week":
            return week_of(day) if day else NO_DAY
        case "project":
            return session.project or NO_PROJECT
        case "model":
            return model


def _bill_row(session: SessionReport, model: str) -> str:
    """Under which name a model's calls are counted: a dated id goes to its family."""
    names = [bill.model for bill in session.bills]
    return next((name for name in names if model == name), names[0] if len(names) == 1 else model)


CSV_COLUMNS = (
    *("sessions", "calls", "fresh_tokens", "read_tokens", "written_5m_tokens", "written_1h_tokens"),
    *("output_tokens", "hit_rate", "usd", "uncached_usd", "estimated_usd", "unpriced_tokens"),
    *("breaks", "lost_usd"),
)


def render_csv(groups: Iterable[BillGroup], kind: GroupKind) -> str:
    """With a header; dollars have six places and no sign. A key that a spreadsheet would take for a formula
    is quoted."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([kind, *CSV_COLUMNS])
    writer.writerows([_escape_formula(group.key), *_values(group)] for group in groups)
    return out.getvalue()


def _escape_formula(text: str) -> str:
    flat = " ".join(text.split())
    return f"'{flat}" if flat.startswith(("=", "+", "-", "@")) else flat


def _values(group: BillGroup) -> Iterator[object]:
    totals = group.totals
    tokens = totals.tokens
    yield from (group.sessions, totals.calls, tokens.fresh, tokens.read)
    yield from (tokens.written_5m, tokens.written_1h, tokens.output)
    yield "" if totals.hit_rate is None else f"{totals.hit_rate:.4f}"
    yield from (f"{totals.cost.total:.6f}", f"{totals.uncached_usd:.6f}", f"{totals.estimated_usd:.6f}")
    yield from (totals.unpriced_tokens, group.breaks, f"{group.lost_usd:.6f}")
