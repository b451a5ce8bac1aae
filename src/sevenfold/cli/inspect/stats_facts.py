"""What a project's sessions did and cost, from their transcripts and events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from sevenfold.core.errors import FileMissing, WireError
from sevenfold.core.events import ClaimsBroken, MemoryRecalled, RuleAnswered, RuleShown, ignore_event
from sevenfold.core.memories import is_indexed, read_memory
from sevenfold.core.messages import has_user_text
from sevenfold.core.prices import Catalog
from sevenfold.core.text.facts import split_facts
from sevenfold.core.usage import read_stored_usage
from sevenfold.layers.memory.extraction.gate import find_contradicted
from sevenfold.layers.memory.recall.policy import find_recalled_texts
from sevenfold.replay.policies.fidelity import CutFidelity, extract_block_text, measure_cut_fidelity
from sevenfold.session.cache.monitor import SpendSummary, UsageLedger
from sevenfold.session.opening import Workspace
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import WAITING_KINDS
from sevenfold.store.memory.directory import MEMORY_FOLDER
from sevenfold.store.memory.history import MemoryStore
from sevenfold.store.memory.records import LoggedChange, LoggedTransaction
from sevenfold.store.memory.sidecars import MarkStore
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    CutRecord,
    InjectedRecord,
    MessageRecord,
    ParentRecord,
    Record,
    SentRecord,
    UsageRecord,
)
from sevenfold.store.transcript.transcript import (
    LoggedEvent,
    SessionEntry,
    SessionId,
    is_agent_session,
    list_sessions,
    read_events,
)

FIGURE_RECORDS = ("usage", "request", "cut", "boundary", "parent")
"""Kinds of records that hold figures: all others can be passed over unread."""

MAIN, AGENT = "main", "agent"
OnStatsProgress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class RecallUse:
    """What became of recalled memories, of those that hold a name or a value."""

    judged: int = 0
    unused: int = 0
    """None of their names and values occurs in what the model wrote in the rest of the turn."""


NO_RECALLS = RecallUse()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuality:
    """Versions of memories that were written in a period, and what turned out to be wrong with them."""

    written: int = 0
    contradicted: int = 0
    """A later version says otherwise."""
    reverted: int = 0
    """A person took the change back, or removed the memory."""
    broken: int = 0
    """A check found that something it names is not there."""
    polluted: int = 0
    """Any of these, each version once."""

    @property
    def pollution(self) -> float | None:
        return self.polluted / self.written if self.written else None


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
    recalled: RecallUse = NO_RECALLS


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    root: str
    sessions: tuple[SessionFacts, ...]
    """Oldest first."""
    memory: MemoryQuality = MemoryQuality()


@dataclass(slots=True, kw_only=True)
class _Tally:
    """One session's figures as its lines go by."""

    ledger: UsageLedger
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
        self.ledger.add_usage(self.kind if bill.who == MAIN else bill.who, bill.model, usage, at.date())


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
        doubts = [doubt for entry in listed for doubt in _read_doubts(sessions, entry.id)]
    memory = _read_memory_quality(workspace.memory_state_folder, since, doubts)
    return ProjectFacts(str(root), tuple(sorted(found, key=lambda each: (each.started, each.id))), memory)


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
    kind = AGENT if is_agent_session(entry.id) else MAIN
    tally = _Tally(ledger=UsageLedger(catalog), kind=kind)
    for line in scan_transcript(sessions, entry.id, kinds=FIGURE_RECORDS):
        if not isinstance(line, StoredRecord):
            continue
        if isinstance(line.record.body, ParentRecord):
            # What is before it was copied, and is counted for the session that this one branched off.
            tally = _Tally(ledger=UsageLedger(catalog), kind=kind)
        else:
            tally.take(line.record)
    if tally.started is None:
        return None  # no model was ever asked
    has_cuts = tally.compactions or tally.cuts
    events = _read_logged_events(sessions, entry.id)
    return SessionFacts(
        id=entry.id,
        started=tally.started,
        rounds=tally.rounds,
        compactions=tally.compactions,
        cuts={layer: count for layer, count in sorted(tally.cuts.items()) if count},
        spent=tally.ledger.spent(),
        events=dict(Counter(one.name for one in events)),
        rules=dict(Counter(filter(None, map(_rule_outcome, events)))),
        unread=tally.unread,
        unbilled=tally.open.total(),
        fidelity=measure_cut_fidelity(_each_once(sessions, entry.id)) if with_fidelity and has_cuts else (),
        recalled=(
            measure_recall_use(_each_once(sessions, entry.id, RECALL_RECORDS))
            if any(one.name == MemoryRecalled.__name__ for one in events)
            else NO_RECALLS
        ),
    )


def _read_logged_events(sessions: Folder, session: SessionId) -> tuple[LoggedEvent, ...]:
    try:
        with sessions.subfolder(session, create=False) as folder:
            return tuple(read_events(folder))
    except FileMissing:
        return ()  # a session without a folder has no events


def _rule_outcome(event: LoggedEvent) -> str:
    if event.name == RuleShown.__name__:
        return "shown"
    return str(event.fields.get("outcome", "")) if event.name == RuleAnswered.__name__ else ""


def _each_once(sessions: Folder, session: SessionId, kinds: tuple[str, ...] = ()) -> Iterator[Record]:
    seen: set[RecordId] = set()
    for line in scan_transcript(sessions, session, kinds=kinds):
        if isinstance(line, StoredRecord) and line.record.id not in seen:
            seen.add(line.record.id)
            yield line.record


# Recalled memories: whether the model's own words and calls show any of their names and values.

RECALL_RECORDS = ("message", "aside")
_NAMED = re.compile(r"(?<=[^.!?:\s] )[A-Z][\w-]{2,}")
"""A word with a capital that no sentence begins with."""


def list_names_and_values(body: str) -> frozenset[str]:
    """What of a memory can be recognized to the letter: numbers, paths, names in code, proper names."""
    hard = {token for fact in split_facts(body) for token in fact.hard if token[:1].isalnum() or "/" in token}
    return frozenset(hard | {name.casefold() for name in _NAMED.findall(body)})


def measure_recall_use(records: Iterable[Record]) -> RecallUse:
    """Of the memories in a transcript, each compared with what the model wrote until the next prompt."""
    judged = unused = 0
    open_to: list[frozenset[str]] = []
    for record in records:
        match record.body:
            case InjectedRecord(message, "memory"):
                named = (list_names_and_values(one.text) for one in find_recalled_texts(message))
                fresh = [names for names in named if names]
                judged, unused = judged + len(fresh), unused + len(fresh)
                open_to += fresh
            case MessageRecord(message) if message.role == "assistant":
                said = "\n".join(map(extract_block_text, message.blocks)).casefold()
                left = [names for names in open_to if not any(name in said for name in names)]
                unused -= len(open_to) - len(left)
                open_to = left
            case MessageRecord(message) if has_user_text(message):
                open_to = []
            case _:
                pass
    return RecallUse(judged, unused)


# Memory pollution, from the history of the directory and from what checks have found.


@dataclass(slots=True, kw_only=True)
class _Version:
    """A text that a memory was given."""

    key: str
    sha256: str
    at: datetime
    body: str
    is_counted: bool
    flaws: set[str] = field(default_factory=set[str])


@dataclass(slots=True)
class _VersionLog:
    """The versions of all memories as the history goes by."""

    since: date
    versions: list[_Version] = field(default_factory=list[_Version])
    shown: dict[str, _Version] = field(default_factory=dict[str, _Version])

    def take(self, entry: LoggedTransaction) -> None:
        if entry.kind in WAITING_KINDS:
            return
        for change in entry.changes:
            if change.key and is_indexed(change.key):
                self._take_change(entry, change)

    def _take_change(self, entry: LoggedTransaction, change: LoggedChange) -> None:
        before = self.shown.pop(change.key, None)
        is_person = entry.kind == "revert" or (change.after is None and entry.origin.who == "user")
        if before is not None and is_person:
            before.flaws.add("reverted")
        if change.after is None or change.text is None:
            return
        body = read_memory(change.key, change.text).body
        if before is not None and entry.kind != "revert" and _is_contradicted(before.body, body):
            before.flaws.add("contradicted")
        at = change.at or entry.at
        is_new = entry.kind in ("commit", "accept") and at.date() >= self.since
        self.shown[change.key] = found = _Version(
            key=change.key, sha256=change.after, at=at, body=body, is_counted=is_new
        )
        self.versions.append(found)

    def doubt(self, key: str, at: datetime) -> None:
        """The version of that moment was found broken."""
        for version in reversed(self.versions):
            if version.key == key and version.at <= at:
                version.flaws.add("broken")
                return


def _is_contradicted(old: str, new: str) -> bool:
    return find_contradicted(split_facts(new), split_facts(old)) is not None


def _read_memory_quality(place: Path, since: date, doubts: Iterable[tuple[str, datetime]]) -> MemoryQuality:
    """Looks at the history alone: nothing is made, and no file of a memory is read."""
    if not (place / MEMORY_FOLDER).is_dir():
        return MemoryQuality()
    found = _VersionLog(since)
    with Folder.open(place) as state, state.subfolder(MEMORY_FOLDER, create=False) as folder:
        with closing(MemoryStore(folder, ignore_event)) as store:
            for entry in store.log.read_transactions():
                found.take(entry)
        marks = MarkStore(state).read()
    for version in found.versions:
        mark = marks.get(version.key)
        if mark is not None and mark.broken and mark.sha256 == version.sha256:
            version.flaws.add("broken")
    for key, at in doubts:
        found.doubt(key, at)
    counted = [version.flaws for version in found.versions if version.is_counted]
    flaws = Counter(flaw for each in counted for flaw in each)
    return MemoryQuality(
        written=len(counted),
        contradicted=flaws["contradicted"],
        reverted=flaws["reverted"],
        broken=flaws["broken"],
        polluted=sum(map(bool, counted)),
    )


def _read_doubts(sessions: Folder, session: SessionId) -> Iterator[tuple[str, datetime]]:
    for event in _read_logged_events(sessions, session):
        if event.name == ClaimsBroken.__name__:
            yield str(event.fields.get("key", "")), event.at
