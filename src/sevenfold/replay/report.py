"""The report as values: per session, per file, and over all; and as plain JSON data.

Tokens and dollars of a bill are exact. What is estimated (output where the log has no final count, what
filled the context, what a tool result cost) is in fields that say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.core.events import Event, describe_event
from sevenfold.core.prices import Cost
from sevenfold.core.usage import TokenCounts
from sevenfold.replay.bills import (
    BillTotals,
    CostlyResult,
    ModelBill,
    choose_costliest,
    merge_bills,
    sum_bills,
)
from sevenfold.replay.calls import CacheBreak, group_breaks
from sevenfold.replay.context_fill import ContextFill, SeriesPoint, sum_fills
from sevenfold.replay.mcp_servers import ServerUse
from sevenfold.store.foreign.entries import ForeignAgent
from sevenfold.store.foreign.transcripts import UnreadableFile

MAX_REPEATED_READS = 10

ReportOrigin: TypeAlias = Literal["named", "usual places", "sample"]


@dataclass(frozen=True, slots=True)
class RecordedCompaction:
    at: datetime | None
    before_tokens: int | None
    """As the log says, else the last prompt before it."""
    after_tokens: int | None
    """The first prompt after it."""


@dataclass(frozen=True, slots=True)
class RecordedClearing:
    at: datetime | None
    results: int
    saved_tokens: int | None


@dataclass(frozen=True, slots=True)
class RepeatedRead:
    """A file that was read again while the very content was still in the context."""

    path: str
    times: int
    """Beyond the first."""
    tokens: int
    """Estimated, of the repetitions."""


def local_day(at: datetime | None) -> str:
    """In the user's own zone: a day's work is remembered by the clock on the wall."""
    try:
        return f"{at.astimezone():%Y-%m-%d}" if at else ""
    except (ValueError, OverflowError, OSError):  # the year 1, which some programs log for no time
        return ""


@dataclass(frozen=True, slots=True)
class DayBill:
    """What one model cost in a session on one day."""

    day: str
    """In the user's own zone, as 2026-11-03; "" where the log has no time."""
    bill: ModelBill


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReport:
    """One conversation: a session, or a sub-agent of one."""

    id: str
    agent: ForeignAgent
    sub_agent: str | None
    """Set for a sub-agent; `id` is then its parent's."""
    path: Path
    project: str
    version: str
    first_at: datetime | None
    last_at: datetime | None
    unbilled_calls: int
    """Calls for which the log holds no usage."""
    uncounted_calls: int
    """Calls that are context here and no cost: another file counts them, or they were too early."""
    bills: tuple[ModelBill, ...]
    is_simulated: bool = False
    """Our simulator answered its calls, so nobody was billed for them."""
    title: str = ""
    """The first words of a person in it; of a sub-agent, of its task."""
    days: tuple[DayBill, ...] = ()
    """The same by day and model."""
    servers: tuple[ServerUse, ...] = ()
    """MCP servers whose tools were sent, where the log holds the requests."""
    breaks: tuple[CacheBreak, ...]
    compactions: tuple[RecordedCompaction, ...]
    clearings: tuple[RecordedClearing, ...]
    series: tuple[SeriesPoint, ...]
    largest_prompt_tokens: int
    fill: ContextFill
    repeated_reads: tuple[RepeatedRead, ...]
    costly_results: tuple[CostlyResult, ...]

    @property
    def name(self) -> str:
        return f"{self.id}/{self.sub_agent}" if self.sub_agent else self.id

    @property
    def totals(self) -> BillTotals:
        return sum_bills(self.bills)


@dataclass(frozen=True, slots=True)
class LineCounts:
    lines: int = 0
    length_bytes: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict[str, int])
    """Lines of a type that no reader knows, by type."""
    faults: Mapping[str, int] = field(default_factory=dict[str, int])
    """Lines that could not be read, by what is wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    path: Path
    agent: ForeignAgent
    lines: LineCounts
    sessions: tuple[SessionReport, ...]
    events: tuple[Event, ...] = ()
    """Models in it that no table knows, or that have no price."""


@dataclass(frozen=True, slots=True)
class PlayedSaving:
    """The main conversation of a file, with everything kept and under our policy. Costs are in tokens at the
    price of fresh input."""

    keep_cost: float
    cost: float


@dataclass(frozen=True, slots=True)
class SavingRange:
    """What clearing old tool results would have saved, as parts of what the prompts of some sessions cost."""

    low: float
    high: float
    usd: float
    """What they cost."""
    sessions: int

    def describe_scope(self, report: ReplayReport) -> str:
        """Whose prompts these are; says so where only a part of the sessions was played."""
        of = report.priced_sessions
        if self.sessions >= of:
            return "what prompts cost"
        return f"what the prompts of {self.sessions:,} of {of:,} sessions cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """Everything that was read."""

    origin: ReportOrigin
    files: int
    lines: LineCounts
    sessions: tuple[SessionReport, ...]
    """Most expensive first."""
    bills: tuple[ModelBill, ...]
    """By model, most expensive first."""
    fill: ContextFill
    costly_results: tuple[CostlyResult, ...]
    repeated_reads: tuple[RepeatedRead, ...]
    unreadable: tuple[UnreadableFile, ...]
    repriced: str | None = None
    """The model whose prices of today stand in for all others."""
    left_out: int = 0
    """Sessions that the simulator answered, and that are in no figure: others were found."""
    events: tuple[Event, ...] = ()
    """What happened while reading that a person may want to act on; each once."""
    is_anonymous: bool = False
    """Paths, names, commands and prompts were left out."""

    @property
    def totals(self) -> BillTotals:
        return sum_bills(self.bills)

    @property
    def priced_sessions(self) -> int:
        """Sessions whose prompts have a price, sub-agents aside."""
        costs = (item.totals.cost for item in self.sessions if not item.sub_agent)
        return sum(cost.total > cost.output for cost in costs)

    @property
    def breaks(self) -> tuple[CacheBreak, ...]:
        return tuple(item for session in self.sessions for item in session.breaks)

    def describe_simulated(self) -> str:
        """What to say of sessions that ran against the simulator; empty where none did."""
        if self.left_out:
            ran = "session ran" if self.left_out == 1 else "sessions ran"
            return (
                f"{self.left_out:,} {ran} against Sevenfold's simulator, so nothing was paid: left out here. "
                "Name a folder or a file to see them."
            )
        mains = [item for item in self.sessions if not item.sub_agent]
        count = sum(item.is_simulated for item in mains)
        if not count:
            return ""
        which = f"{count:,} of these sessions" if count < len(mains) else "These sessions"
        return f"{which} ran against Sevenfold's simulator: what they cost was not paid."


def build_replay_report(
    files: Iterable[FileReport],
    *,
    origin: ReportOrigin = "named",
    unreadable: Iterable[UnreadableFile] = (),
    repriced: str | None = None,
) -> ReplayReport:
    """The report over all files."""
    read = tuple(files)
    found = [item for file in read for item in file.sessions]
    paid = [item for item in found if not item.is_simulated]
    # In the usual places the question is what was spent.
    chosen = paid if paid and origin == "usual places" else found
    sessions = sorted(chosen, key=_by_cost)
    return ReplayReport(
        origin=origin,
        files=len(read),
        lines=sum_line_counts(file.lines for file in read),
        sessions=tuple(sessions),
        bills=merge_bills(bill for session in sessions for bill in session.bills),
        fill=sum_fills(session.fill for session in sessions),
        costly_results=choose_costliest(item for session in sessions for item in session.costly_results),
        repeated_reads=merge_repeated_reads(item for session in sessions for item in session.repeated_reads),
        unreadable=tuple(sorted(unreadable, key=lambda item: str(item.path))),
        repriced=repriced,
        left_out=sum(not item.sub_agent for item in found) - sum(not item.sub_agent for item in chosen),
        events=tuple(dict.fromkeys(event for file in read for event in file.events)),
    )


def merge_repeated_reads(reads: Iterable[RepeatedRead]) -> tuple[RepeatedRead, ...]:
    """One row a path, the most wasteful."""
    merged: dict[str, RepeatedRead] = {}
    for item in reads:
        before = merged.get(item.path, RepeatedRead(item.path, 0, 0))
        merged[item.path] = replace(
            before, times=before.times + item.times, tokens=before.tokens + item.tokens
        )
    return tuple(sorted(merged.values(), key=lambda item: (-item.tokens, item.path))[:MAX_REPEATED_READS])


def sum_line_counts(counts: Iterable[LineCounts]) -> LineCounts:
    lines = length = 0
    unknown: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for item in counts:
        lines, length = lines + item.lines, length + item.length_bytes
        unknown.update(item.unknown)
        faults.update(item.faults)
    return LineCounts(lines, length, dict(unknown.most_common()), dict(faults.most_common()))


def _by_cost(session: SessionReport) -> tuple[Decimal, int, str]:
    totals = session.totals
    return (-totals.cost.total, -totals.tokens.prompt, session.name)


# JSON. `docs/replay.md` describes the format; increase `FORMAT` when a change would break readers.

REPORT_FORMAT = 1

_Plain: TypeAlias = dict[str, object]


def describe_replay_report(report: ReplayReport) -> _Plain:
    """Everything in the report; times are ISO 8601 in UTC, dollars and seconds are numbers."""
    return {
        "format": REPORT_FORMAT,
        "origin": report.origin,
        "repriced": report.repriced,
        "files": report.files,
        "left_out_simulated": report.left_out,
        "lines": _lines(report.lines),
        "total": _totals(report.totals),
        "models": [_bill(bill) for bill in report.bills],
        "breaks": _break_groups(report.breaks),
        "fill": _fill(report.fill),
        "repeated_reads": [asdict(item) for item in report.repeated_reads],
        "costly_results": [_result(item) for item in report.costly_results],
        "days": [
            {"day": row.day or None, "session": session.name, **_bill(row.bill)}
            for session in report.sessions
            for row in session.days
        ],
        "sessions": [describe_session_report(session) for session in report.sessions],
        "unreadable": [{"path": str(item.path), "reason": item.reason} for item in report.unreadable],
        "events": [describe_event(event) for event in report.events],
    }


def describe_session_report(session: SessionReport) -> _Plain:
    return {
        "id": session.id,
        "sub_agent": session.sub_agent,
        "title": session.title or None,
        "is_simulated": session.is_simulated,
        "agent": session.agent,
        "path": str(session.path),
        "project": session.project or None,
        "version": session.version or None,
        "first_at": _time(session.first_at),
        "last_at": _time(session.last_at),
        "total": _totals(session.totals),
        "unbilled_calls": session.unbilled_calls,
        "uncounted_calls": session.uncounted_calls,
        "models": [_bill(bill) for bill in session.bills],
        "servers": [asdict(item) for item in session.servers],
        "breaks": [_break(item) for item in session.breaks],
        "compactions": [
            {"at": _time(item.at), "before_tokens": item.before_tokens, "after_tokens": item.after_tokens}
            for item in session.compactions
        ],
        "clearings": [
            {"at": _time(item.at), "results": item.results, "saved_tokens": item.saved_tokens}
            for item in session.clearings
        ],
        "largest_prompt_tokens": session.largest_prompt_tokens,
        "series": [
            {
                "call": point.call,
                "at": _time(point.at),
                "prompt_tokens": point.prompt_tokens,
                "read_tokens": point.read_tokens,
                "mark": point.mark or None,
            }
            for point in session.series
        ],
        "fill": _fill(session.fill),
        "repeated_reads": [asdict(item) for item in session.repeated_reads],
        "costly_results": [_result(item) for item in session.costly_results],
    }


def _totals(totals: BillTotals) -> _Plain:
    return {
        "calls": totals.calls,
        "tokens": _counts(totals.tokens),
        "hit_rate": totals.hit_rate,
        "usd": _cost(totals.cost),
        "uncached_usd": float(totals.uncached_usd),
        "saved_usd": float(totals.saved_usd),
        "estimated": {"output_tokens": totals.estimated_output_tokens, "usd": float(totals.estimated_usd)},
        "unpriced": {"calls": totals.unpriced_calls, "tokens": totals.unpriced_tokens},
    }


def _bill(bill: ModelBill) -> _Plain:
    return {
        "model": bill.model,
        "calls": bill.calls,
        "tokens": _counts(bill.tokens),
        "usd": _cost(bill.cost) if bill.cost else None,
        "uncached_usd": _usd(bill.uncached_usd),
        "unpriced": bill.gap,
        "estimated": {
            "calls": bill.estimated_calls,
            "output_tokens": bill.estimated_output_tokens,
            "usd": float(bill.estimated_usd),
        },
    }


def _break_groups(breaks: Iterable[CacheBreak]) -> _Plain:
    groups = group_breaks(breaks)
    return {
        "count": sum(group.count for group in groups),
        "lost_tokens": sum(group.lost_tokens for group in groups),
        "lost_usd": float(sum((group.lost_usd or Decimal(0) for group in groups), Decimal(0))),
        "by_cause": [{**asdict(group), "lost_usd": _usd(group.lost_usd)} for group in groups],
    }


def _break(item: CacheBreak) -> _Plain:
    return {
        "at": _time(item.at),
        "cause": item.cause,
        "lost_tokens": item.lost_tokens,
        "lost_usd": _usd(item.lost_usd),
        "gap_s": _seconds(item.gap),
        "life_s": _seconds(item.life),
        "model": item.model,
        "prompt_tokens": item.prompt_tokens,
        "read_tokens": item.read_tokens,
    }


def _fill(fill: ContextFill) -> _Plain:
    carried = fill.carried_tokens
    return {
        "carried_tokens": carried,
        "shares": [
            {**asdict(share), "share": share.carried_tokens / carried if carried else 0.0}
            for share in fill.shares
        ],
        "repeated_reads": {
            "entered_tokens": fill.repeated_entered_tokens,
            "carried_tokens": fill.repeated_carried_tokens,
        },
    }


def _result(item: CostlyResult) -> _Plain:
    return {**asdict(item), "at": _time(item.at), "usd": _usd(item.usd)}


def _lines(lines: LineCounts) -> _Plain:
    return {
        "read": lines.lines,
        "bytes": lines.length_bytes,
        "unknown": dict(lines.unknown),
        "faults": dict(lines.faults),
    }


def _counts(tokens: TokenCounts) -> _Plain:
    return {**asdict(tokens), "prompt": tokens.prompt}


def _cost(cost: Cost) -> _Plain:
    parts: dict[str, Decimal] = asdict(cost)
    return {**{name: float(usd) for name, usd in parts.items()}, "total": float(cost.total)}


def _usd(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _seconds(span: timedelta | None) -> float | None:
    return span.total_seconds() if span is not None else None
