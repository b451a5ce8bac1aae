"""One file's account: its entries in order, each conversation with its own bills, breaks and contents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.events import Event
from sevenfold.core.models import Model
from sevenfold.replay.calls import Assembler, Call, Step
from sevenfold.replay.lane import LaneAccount
from sevenfold.replay.pricing import Pricer
from sevenfold.replay.report import FileReport, LineCounts
from sevenfold.store.foreign.entries import MAIN, Agent, ForeignSession, LaneId, Unknown
from sevenfold.store.foreign.repeats import digest
from sevenfold.store.foreign.transcripts import LineTally, read_transcript


@dataclass(frozen=True, slots=True)
class Terms:
    """What is counted, and at which prices."""

    catalog: Catalog = CATALOG
    reprice: Model | None = None
    since: datetime | None = None
    """Calls before this are context, and no cost."""


def read_account(
    path: Path,
    agent: Agent,
    terms: Terms,
    *,
    foreign: frozenset[int] = frozenset(),
    on_bytes: Callable[[int], None] | None = None,
) -> FileReport:
    """Read a transcript and account for it. `foreign` are the digests of calls that another file counts."""
    events: list[Event] = []
    pricer = Pricer(terms.catalog, terms.reprice, events.append)
    tally, assembler, facts = LineTally(), Assembler(), ForeignSession()
    lanes: dict[LaneId, LaneAccount] = {}

    def take(step: Step) -> None:
        if step.lane not in lanes:
            lanes[step.lane] = LaneAccount(pricer)
        lanes[step.lane].take(step, is_counted=_is_counted(step, terms.since, foreign))

    for entry in read_transcript(path, agent, tally, on_bytes):
        if isinstance(entry, ForeignSession):
            facts = entry
        elif not isinstance(entry, Unknown):
            for step in assembler.take(entry):
                take(step)
    for step in assembler.finish():
        take(step)
    ordered = sorted(lanes.items(), key=lambda item: item[0] != MAIN)
    sessions = (lane.report(facts, agent, name, path) for name, lane in ordered if not lane.is_empty)
    counts = LineCounts(tally.lines, tally.length_bytes, dict(tally.unknown), {**tally.faults})
    return FileReport(path, agent, counts, tuple(sessions), tuple(events))


def _is_counted(step: Step, since: datetime | None, foreign: frozenset[int]) -> bool:
    if since is not None and step.at is not None and step.at < since:
        return False
    return not (isinstance(step, Call) and step.id and digest(step.id) in foreign)
