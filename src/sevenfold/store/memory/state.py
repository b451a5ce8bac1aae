"""What holds now, from the lines of the history: which text of each memory is accepted, what waits, and what
the files in the folder are known to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import cast

from sevenfold.core.errors import WireError
from sevenfold.core.memories import INDEX_FILE, Origin
from sevenfold.store.memory.changes import WAITING_KINDS, TransactionId
from sevenfold.store.memory.files import LogLine
from sevenfold.store.memory.records import (
    NO_FILE,
    FileSnapshot,
    LoggedChange,
    LoggedTransaction,
    UpkeepRecord,
    read_file_snapshot,
    read_origin,
    write_file_snapshot,
    write_origin,
)
from sevenfold.store.transcript.transcript import RecordPosition

_FORMAT = 2
MAX_REJECTED = 200
"""Of what a person did not want, the newest: each is compared with what a writer wants next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryVersion:
    """An accepted text: which, since when, whose, and where in the history it stands."""

    sha256: str
    at: datetime
    transaction: TransactionId
    origin: Origin
    place: RecordPosition
    order: int
    """Grows with every change: the newest memory has the largest."""


@dataclass(frozen=True, slots=True)
class PendingTransaction:
    """A transaction that waits for a person."""

    place: RecordPosition
    is_outside: bool
    keys: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class MemoryState:
    end: int = 0
    """Up to where the history was read."""
    tail: int = 0
    """Where the last line that was read begins."""
    head: str = ""
    tail_head: str = ""
    """How the first line and the last one begin, in a state that was kept: what it was made of."""
    last: str = ""
    """The last transaction."""
    recorded: int = -1
    """Where that stands."""
    count: int = 0
    versions: dict[str, MemoryVersion] = field(default_factory=dict[str, MemoryVersion])
    layout: MemoryVersion | None = None
    """The index as a person last arranged it."""
    waiting: dict[str, PendingTransaction] = field(default_factory=dict[str, PendingTransaction])
    rejected: dict[str, RecordPosition] = field(default_factory=dict[str, RecordPosition])
    """Proposals that a person did not want, the oldest first, and where they stand."""
    held: dict[str, str] = field(default_factory=dict[str, str])
    """Which outside edit of a key waits: its file is left alone."""
    placed: dict[str, FileSnapshot] = field(default_factory=dict[str, FileSnapshot])
    stale: set[str] = field(default_factory=set[str])
    """Memories whose files are not what they should be."""
    births: dict[str, int] = field(default_factory=dict[str, int])
    """When each key was first used, counted as versions are; also of those that are gone."""
    since: set[str] = field(default_factory=set[str])
    """Memories that changed since the index was last arranged by a person."""
    uncovered: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Texts recorded since then, by key and hash, and where: any of them may be in the file of who died."""
    intended: set[str] = field(default_factory=set[str])
    """The same for the index: hashes of those that were about to be put in place."""
    covered: int = 0
    """Up to where in the history files and index have been put in place."""
    boot: str = ""
    """Of the machine, when files were last put in place."""

    def apply(self, found: LogLine, reopened: Mapping[str, PendingTransaction]) -> None:
        """One line further; `reopened` is what waits again by it."""
        self.tail, self.end = found.place.offset, found.place.offset + found.place.length_bytes
        if isinstance(found.entry, UpkeepRecord):
            self._take_upkeep(found.entry)
        elif found.entry is not None:
            self._take_transaction(found.entry, found.place)
            # An outside edit waits as a proposal now: its file has the accepted text again.
            self.waiting |= {id_: replace(item, is_outside=False) for id_, item in reopened.items()}

    def holding(self, key: str) -> FileSnapshot:
        return self.placed.get(key, NO_FILE)

    def sha_of(self, key: str) -> str | None:
        version = self.layout if key == INDEX_FILE else self.versions.get(key)
        return version.sha256 if version else None

    def is_waiting(self, key: str) -> bool:
        return any(key in pending.keys for pending in self.waiting.values())

    def _take_upkeep(self, entry: UpkeepRecord) -> None:
        if entry.intends:
            self.intended.add(entry.intends)
            return
        self.covered, self.boot = entry.upto, entry.boot
        self.intended.clear()
        for key in list(self.uncovered):
            left = {sha256: at for sha256, at in self.uncovered[key].items() if at >= entry.upto}
            if left:
                self.uncovered[key] = left
            else:
                del self.uncovered[key]
        for key, placement in entry.files.items():
            self._place(key, placement)

    def _take_transaction(self, entry: LoggedTransaction, place: RecordPosition) -> None:
        self.last, self.recorded = entry.id, place.offset
        if entry.kind in WAITING_KINDS:
            self._take_waiting(entry, place)
        else:
            for change in entry.changes:
                self._take_change(entry, change, place)
        settled = [id_ for id_ in (entry.of, *entry.settles) if id_]
        for id_ in settled:
            if id_ in entry.rejects or (entry.kind == "reject" and id_ == entry.of):
                self._take_rejection(id_)
            elif entry.kind == "accept":
                self.rejected.pop(id_, None)  # rejected, undone, and accepted now
        for id_ in settled:
            self._settle(id_)

    def _take_waiting(self, entry: LoggedTransaction, place: RecordPosition) -> None:
        is_outside = entry.kind == "outside"
        self.waiting[entry.id] = PendingTransaction(
            place, is_outside, tuple(change.key for change in entry.changes)
        )
        for change in entry.changes if is_outside else ():
            self.held[change.key] = entry.id
            self._place(change.key, FileSnapshot(change.after, change.stamp))

    def _take_rejection(self, id_: str) -> None:
        pending = self.waiting.get(id_)
        if pending is None or pending.is_outside:
            return  # a person's own edit may come again: they know what they said to it
        self.rejected[id_] = pending.place
        if len(self.rejected) > MAX_REJECTED:
            del self.rejected[next(iter(self.rejected))]

    def _take_change(self, entry: LoggedTransaction, change: LoggedChange, place: RecordPosition) -> None:
        key = change.key
        self.count += 1
        if not key:
            return  # erased: it counts, and says nothing any more
        version = None
        if change.after is not None:
            at, origin = change.at or entry.at, entry.origin_of(change)
            version = MemoryVersion(
                sha256=change.after,
                at=at,
                transaction=entry.id,
                origin=origin,
                place=place,
                order=change.order or self.count,
            )
        if key == INDEX_FILE:
            self.layout = version
            self.since.clear()
        elif version is None:
            self.versions.pop(key, None)
        else:
            self.versions[key] = version
            self.births.setdefault(key, self.count)
            self.uncovered.setdefault(key, {})[version.sha256] = place.offset
        if key != INDEX_FILE:
            self.since.add(key)
        if change.stamp is not None:
            self.placed[key] = FileSnapshot(change.after, change.stamp)
        self._mark(key)

    def _settle(self, id_: str) -> None:
        pending = self.waiting.pop(id_, None)
        for key in pending.keys if pending else ():
            if self.held.get(key) == id_:
                del self.held[key]
                self._mark(key)

    def _place(self, key: str, placement: FileSnapshot) -> None:
        if placement == NO_FILE:
            self.placed.pop(key, None)
        else:
            self.placed[key] = placement
        self._mark(key)

    def _mark(self, key: str) -> None:
        if key == INDEX_FILE:
            return
        if key in self.held or self.holding(key).sha256 == self.sha_of(key):
            self.stale.discard(key)
        else:
            self.stale.add(key)


def write_memory_state(state: MemoryState) -> bytes:
    """For whoever opens the folder next: nothing in it that the history does not say."""
    origins: dict[Origin, int] = {}

    def write_version(version: MemoryVersion) -> list[object]:
        origin = origins.setdefault(version.origin, len(origins))
        place = version.place
        who = [version.sha256, version.at.isoformat(), version.transaction, origin]
        return [*who, place.offset, place.length_bytes, version.order]

    versions = {key: write_version(version) for key, version in state.versions.items()}
    fields = {
        "format": _FORMAT,
        "end": state.end,
        "tail": state.tail,
        "head": state.head,
        "tail_head": state.tail_head,
        "last": state.last,
        "recorded": state.recorded,
        "count": state.count,
        "versions": versions,
        "layout": None if state.layout is None else write_version(state.layout),
        "origins": [write_origin(origin) for origin in origins],
        "waiting": {
            id_: [item.place.offset, item.place.length_bytes, item.is_outside, *item.keys]
            for id_, item in state.waiting.items()
        },
        "rejected": {id_: [place.offset, place.length_bytes] for id_, place in state.rejected.items()},
        "held": state.held,
        "placed": {key: write_file_snapshot(item) for key, item in state.placed.items()},
        "stale": sorted(state.stale),
        "births": state.births,
        "since": sorted(state.since),
        "uncovered": state.uncovered,
        "intended": sorted(state.intended),
        "covered": state.covered,
        "boot": state.boot,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def read_memory_state(data: bytes) -> MemoryState:
    """`WireError` for whatever `write_memory_state` did not write: the history is read again then."""
    try:
        wire = cast("dict[str, object]", json.loads(data))
        if wire["format"] != _FORMAT:
            raise WireError(f"its format is {wire['format']!r}")
        return _State(wire).read()
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise WireError(f"it makes no sense: {error!r}") from error


class _State:
    """Reads what `write_memory_state` wrote; whatever does not fit raises one of Python's own errors."""

    def __init__(self, wire: dict[str, object]) -> None:
        self._wire = wire
        self._origins = [read_origin(item) for item in cast("list[object]", wire["origins"])]

    def read(self) -> MemoryState:
        layout = self._wire["layout"]
        return MemoryState(
            end=self._whole("end"),
            tail=self._whole("tail"),
            head=str(self._wire["head"]),
            tail_head=str(self._wire["tail_head"]),
            last=str(self._wire["last"]),
            recorded=self._whole("recorded"),
            count=self._whole("count"),
            versions={key: self._version(item) for key, item in self._items("versions")},
            layout=None if layout is None else self._version(layout),
            waiting={id_: self._pending(item) for id_, item in self._items("waiting")},
            rejected={
                id_: RecordPosition(*cast("tuple[int, int]", item)) for id_, item in self._items("rejected")
            },
            held={key: str(item) for key, item in self._items("held")},
            placed={key: read_file_snapshot(item) for key, item in self._items("placed")},
            stale=self._names("stale"),
            births={key: int(cast("int", item)) for key, item in self._items("births")},
            since=self._names("since"),
            uncovered=cast("dict[str, dict[str, int]]", self._wire["uncovered"]),
            intended=self._names("intended"),
            covered=self._whole("covered"),
            boot=str(self._wire["boot"]),
        )

    def _items(self, key: str) -> Iterable[tuple[str, object]]:
        return cast("dict[str, object]", self._wire[key]).items()

    def _names(self, key: str) -> set[str]:
        return set(cast("list[str]", self._wire[key]))

    def _whole(self, key: str) -> int:
        return int(cast("int", self._wire[key]))

    def _version(self, wire: object) -> MemoryVersion:
        sha256, at, transaction, origin, offset, length, order = cast(
            "tuple[str, str, str, int, int, int, int]", wire
        )
        when, id_ = datetime.fromisoformat(at), TransactionId(transaction)
        return MemoryVersion(
            sha256=sha256,
            at=when,
            transaction=id_,
            origin=self._origins[origin],
            place=RecordPosition(offset, length),
            order=order,
        )

    def _pending(self, wire: object) -> PendingTransaction:
        offset, length, is_outside, *keys = cast("tuple[int, int, bool, *tuple[str, ...]]", wire)
        return PendingTransaction(RecordPosition(offset, length), is_outside, tuple(keys))
