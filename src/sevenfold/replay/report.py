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
from sevenfold.replay.bills import Bill, Totals, add_bills, merge_bills
from sevenfold.replay.breaks import Break
from sevenfold.replay.fill import Fill, add_fills
from sevenfold.replay.results import CostlyResult, costliest
from sevenfold.replay.series import Point
from sevenfold.store.foreign.entries import Agent
from sevenfold.store.foreign.find import Unreadable

MOST_READS = 10

Origin: TypeAlias = Literal["named", "usual places", "sample"]


@dataclass(frozen=True, slots=True)
class Compaction:
    at: datetime | None
    before_tokens: int | None
    """As the log says, else the last prompt before it."""
    after_tokens: int | None
    """The first prompt after it."""


@dataclass(frozen=True, slots=True)
class Clearing:
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


@dataclass(frozen=True, slots=True)
class SessionReport:
    """One conversation: a session, or a sub-agent of one."""

    id: str
    agent: Agent
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
    bills: tuple[Bill, ...]
    breaks: tuple[Break, ...]
    compactions: tuple[Compaction, ...]
    clearings: tuple[Clearing, ...]
    series: tuple[Point, ...]
    largest_prompt_tokens: int
    fill: Fill
    repeated_reads: tuple[RepeatedRead, ...]
    costly_results: tuple[CostlyResult, ...]

    @property
    def name(self) -> str:
        return f"{self.id}/{self.sub_agent}" if self.sub_agent else self.id

    @property
    def totals(self) -> Totals:
        return add_bills(self.bills)


@dataclass(frozen=True, slots=True)
class LineCounts:
    lines: int = 0
    length_bytes: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict[str, int])
    """Lines of a type that no reader knows, by type."""
    faults: Mapping[str, int] = field(default_factory=dict[str, int])
    """Lines that could not be read, by what is wrong with them."""


@dataclass(frozen=True, slots=True)
class FileReport:
    path: Path
    agent: Agent
    lines: LineCounts
    sessions: tuple[SessionReport, ...]
    events: tuple[Event, ...] = ()
    """Models in it that no table knows, or that have no price."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was read."""

    origin: Origin
    files: int
    lines: LineCounts
    sessions: tuple[SessionReport, ...]
    """Most expensive first."""
    bills: tuple[Bill, ...]
    """By model, most expensive first."""
    fill: Fill
    costly_results: tuple[CostlyResult, ...]
    repeated_reads: tuple[RepeatedRead, ...]
    unreadable: tuple[Unreadable, ...]
    repriced: str | None = None
    """The model whose prices of today stand in for all others."""
    events: tuple[Event, ...] = ()
    """What happened while reading that a person may want to act on; each once."""

    @property
    def totals(self) -> Totals:
        return add_bills(self.bills)

    @property
    def breaks(self) -> tuple[Break, ...]:
        return tuple(item for session in self.sessions for item in session.breaks)


def sum_up(
    files: Iterable[FileReport],
    *,
    origin: Origin = "named",
    unreadable: Iterable[Unreadable] = (),
    repriced: str | None = None,
) -> Report:
    """The report over all files."""
    read = tuple(files)
    sessions = sorted((item for file in read for item in file.sessions), key=_by_cost)
    return Report(
        origin,
        len(read),
        add_lines(file.lines for file in read),
        tuple(sessions),
        merge_bills(bill for session in sessions for bill in session.bills),
        add_fills(session.fill for session in sessions),
        costliest(item for session in sessions for item in session.costly_results),
        merge_reads(item for session in sessions for item in session.repeated_reads),
        tuple(sorted(unreadable, key=lambda item: str(item.path))),
        repriced,
        tuple(dict.fromkeys(event for file in read for event in file.events)),
    )


def merge_reads(reads: Iterable[RepeatedRead]) -> tuple[RepeatedRead, ...]:
    """One row a path, the most wasteful."""
    merged: dict[str, RepeatedRead] = {}
    for item in reads:
        before = merged.get(item.path, RepeatedRead(item.path, 0, 0))
        merged[item.path] = replace(
            before, times=before.times + item.times, tokens=before.tokens + item.tokens
        )
    return tuple(sorted(merged.values(), key=lambda item: (-item.tokens, item.path))[:MOST_READS])


def add_lines(counts: Iterable[LineCounts]) -> LineCounts:
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
