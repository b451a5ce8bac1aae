"""What a project's sessions did and cost, from their transcripts and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from sevenfold.core.errors import FileMissing, WireError
from sevenfold.core.events import RuleAnswered, RuleShown
from sevenfold.core.messages import Message, RecordId
from sevenfold.core.prices import Catalog
from sevenfold.core.requests import ModelResponse
from sevenfold.core.usage import read_stored_usage
from sevenfold.replay.policies.fidelity import CutFidelity, measure_cut_fidelity
from sevenfold.session.cache.monitor import SpendSummary, UsageLedger
from sevenfold.session.opening import Workspace
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import BoundaryRecord, CutRecord, Record, SentRecord, UsageRecord
from sevenfold.store.transcript.transcript import (
    LoggedEvent,
    SessionEntry,
    SessionId,
    is_agent_session,
    list_sessions,
    read_events,
)

FIGURE_RECORDS = ("usage", "request", "cut", "boundary")
"""Kinds of records that hold figures: all others can be passed over unread."""

MAIN, AGENT = "main", "agent"
OnStatsProgress = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    id: SessionId
    started: datetime
    rounds: int
    compactions: int
    cuts: dict[int, int]
    """Of the other layers, by layer."""
    spent: tuple[SpendSummary, ...]
    events: dict[str, int]
    rules: dict[str, int]
    """How often one was put before an action, and what became of that."""
    unread: int
    """Bills that could not be read."""
    unbilled: int = 0
    """Requests that no bill came for."""
    fidelity: tuple[CutFidelity, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    root: str
    sessions: tuple[SessionFacts, ...]
    """Oldest first."""


@dataclass(slots=True, kw_only=True)
class _Tally:
    """One session's figures as its lines go by."""

    book: UsageLedger
    kind: str = MAIN
    """Whose rounds its own are in the sums: an agent's session is no conversation with a person."""
    started: datetime | None = None
    rounds: int = 0
    compactions: int = 0
    unread: int = 0
    open: Counter[str] = field(default_factory=Counter[str])
    """Requests without a bill so far, by who sent them."""
    cuts: Counter[int] = field(default_factory=Counter[int])
    seen: set[RecordId] = field(default_factory=set[RecordId])

    def take(self, record: Record) -> None:
        if record.id in self.seen:
            return
        self.seen.add(record.id)
        self.started = self.started or record.at
        match record.body:
            case UsageRecord() as bill:
                self._close(bill.who)
                self._bill(bill, record.at)
            case SentRecord(_, who, is_refused):
                if is_refused:
                    self._close(who)
                else:
                    self.open[who] += 1
            case CutRecord(layer):
                # A compaction has a boundary of its own.
                self.cuts[layer] += layer != 4
            case BoundaryRecord():
                self.compactions += 1
            case _:
                pass

    def _close(self, who: str) -> None:
        # Transcripts from before requests were written have bills alone.
        self.open[who] -= self.open[who] > 0

    def _bill(self, bill: UsageRecord, at: datetime) -> None:
        try:
            usage = read_stored_usage(bill.wire, bill.dialect)
        except WireError:
            self.unread += 1
            return
        self.rounds += bill.who == MAIN
        reply = ModelResponse(
            message=Message("assistant", ""),
            usage=usage,
            usage_wire=bill.wire,
            model=bill.model,
            dialect=bill.dialect,
        )
        self.book.add(self.kind if bill.who == MAIN else bill.who, bill.model, reply, at.date())


def read_project_facts(
    workspace: Workspace,
    since: date,
    *,
    with_fidelity: bool = False,
    on_progress: OnStatsProgress | None = None,
) -> ProjectFacts:
    """All sessions written to since a day. A project that nothing was kept for has none."""
    root, place, catalog = workspace.project_root, workspace.project_folder, workspace.catalog
    if not place.is_dir():
        return ProjectFacts(str(root), ())
    with Folder.open(place) as folder, folder.subfolder("sessions", create=False) as sessions:
        listed = [entry for entry in list_sessions(sessions) if entry.modified.date() >= since]
        found = tuple(_read_all(sessions, listed, catalog, with_fidelity, on_progress))
    return ProjectFacts(str(root), tuple(sorted(found, key=lambda each: (each.started, each.id))))


def _read_all(
    sessions: Folder,
    listed: Sequence[SessionEntry],
    catalog: Catalog,
    with_fidelity: bool,
    on_progress: OnStatsProgress | None,
) -> Iterator[SessionFacts]:
    total, done = sum(entry.size_bytes for entry in listed) or 1, 0
    for entry in listed:
        facts = _read_session(sessions, entry, catalog, with_fidelity)
        if facts is not None:
            yield facts
        done += entry.size_bytes
        if on_progress is not None:
            on_progress(done / total)


def _read_session(
    sessions: Folder, entry: SessionEntry, catalog: Catalog, with_fidelity: bool
) -> SessionFacts | None:
    tally = _Tally(book=UsageLedger(catalog), kind=AGENT if is_agent_session(entry.id) else MAIN)
    for line in scan_transcript(sessions, entry.id, kinds=FIGURE_RECORDS):
        if isinstance(line, StoredRecord):
            tally.take(line.record)
    if tally.started is None:
        return None  # no model was ever asked
    has_cuts = tally.compactions or tally.cuts
    told = _read_told(sessions, entry.id)
    return SessionFacts(
        id=entry.id,
        started=tally.started,
        rounds=tally.rounds,
        compactions=tally.compactions,
        cuts={layer: count for layer, count in sorted(tally.cuts.items()) if count},
        spent=tally.book.spent(),
        events=dict(Counter(one.name for one in told)),
        rules=dict(Counter(filter(None, map(_rule_outcome, told)))),
        unread=tally.unread,
        unbilled=tally.open.total(),
        fidelity=measure_cut_fidelity(_each_once(sessions, entry.id)) if with_fidelity and has_cuts else (),
    )


def _read_told(sessions: Folder, session: SessionId) -> tuple[LoggedEvent, ...]:
    try:
        with sessions.subfolder(session, create=False) as folder:
            return tuple(read_events(folder))
    except FileMissing:
        return ()  # a session without a folder has no events


def _rule_outcome(told: LoggedEvent) -> str:
    if told.name == RuleShown.__name__:
        return "shown"
    return str(told.fields.get("outcome", "")) if told.name == RuleAnswered.__name__ else ""


def _each_once(sessions: Folder, session: SessionId) -> Iterator[Record]:
    seen: set[RecordId] = set()
    for line in scan_transcript(sessions, session):
        if isinstance(line, StoredRecord) and line.record.id not in seen:
            seen.add(line.record.id)
            yield line.record
