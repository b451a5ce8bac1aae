"""The report as values: per session, per file, and over all. `replay/report_json.py` spells it out.

Tokens and dollars of a bill are exact. What is estimated (output where the log has no final count, what
filled the context, what a tool result cost) is in fields that say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.core.events import Event
from sevenfold.replay.bills import BillTotals, ModelBill, merge_bills, sum_bills
from sevenfold.replay.breaks import CacheBreak
from sevenfold.replay.context_fill import ContextFill, sum_fills
from sevenfold.replay.result_costs import CostlyResult, choose_costliest
from sevenfold.replay.series import SeriesPoint
from sevenfold.store.foreign.entries import ForeignAgent
from sevenfold.store.foreign.find import UnreadableFile

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
    events: tuple[Event, ...] = ()
    """What happened while reading that a person may want to act on; each once."""

    @property
    def totals(self) -> BillTotals:
        return sum_bills(self.bills)

    @property
    def breaks(self) -> tuple[CacheBreak, ...]:
        return tuple(item for session in self.sessions for item in session.breaks)


def build_replay_report(
    files: Iterable[FileReport],
    *,
    origin: ReportOrigin = "named",
    unreadable: Iterable[UnreadableFile] = (),
    repriced: str | None = None,
) -> ReplayReport:
    """The report over all files."""
    read = tuple(files)
    sessions = sorted((item for file in read for item in file.sessions), key=_by_cost)
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
