"""The lines of a memory folder's history, as values and as records."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias, cast

from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject, freeze_object
from sevenfold.core.provenance import SAID_BY, TAINTS, WHO, Origin
from sevenfold.store.memory_changes import KINDS, Change, Kind, Transaction, TransactionId
from sevenfold.store.record_lines import write_line
from sevenfold.store.records import Record, RecordId, UnknownRecord, new_id

TRANSACTION = "memory"
UPKEEP = "upkeep"

_LATEST_NS = 253_402_300_799 * 10**9
"""The end of the year 9999: some file systems keep times that Python cannot say."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells a file from another without reading it."""

    size_bytes: int
    modified_ns: int
    inode: int

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(min(max(0, self.modified_ns), _LATEST_NS) / 1e9, UTC)


@dataclass(frozen=True, slots=True)
class Placement:
    """What a file in the folder held when it was last looked at."""

    sha256: str | None
    """None: there is no such file."""
    stamp: Stamp | None = None


NOWHERE = Placement(None)


@dataclass(frozen=True, slots=True)
class LoggedChange:
    key: str
    before: str | None
    after: str | None
    text: str | None = None
    """What `after` is the hash of; bytes that are no UTF-8 stand as lone surrogates. None: removed, or
    erased since."""
    origin: Origin | None = None
    """None: the transaction's."""
    at: datetime | None = None
    """None: when the transaction was. Adopted files are older."""
    stamp: Stamp | None = None
    """Of the file in the folder that says so already."""
    order: int | None = None
    """Of a version that is put back: as new as it was then."""


@dataclass(frozen=True, slots=True)
class Logged:
    """A transaction with its texts."""

    id: TransactionId
    at: datetime
    kind: Kind
    origin: Origin
    changes: tuple[LoggedChange, ...]
    of: str = ""
    reason: str = ""
    settles: tuple[str, ...] = ()
    """What waited and is overtaken by this."""

    def origin_of(self, change: LoggedChange) -> Origin:
        return change.origin or self.origin

    def told(self) -> Transaction:
        """Without the texts."""
        changes = tuple(
            Change(item.key, item.before, item.after, self.origin_of(item)) for item in self.changes
        )
        return Transaction(self.id, self.at, self.kind, self.origin, changes, self.of)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Files were put in place, for every transaction up to a place in the log."""

    upto: int
    at: datetime
    files: Mapping[str, Placement]
    boot: str
    """Of the machine: what was put in place before it went down may be lost."""


LogEntry: TypeAlias = Logged | Upkeep


def begin_log(at: datetime) -> Upkeep:
    """The first line, whose random id tells this file from any other."""
    return Upkeep(0, at, {}, "")


def new_transaction_id() -> TransactionId:
    """Short enough to be typed, long enough to be nobody else's."""
    return TransactionId(new_id()[:12])


def encode(text: str) -> bytes:
    """The bytes of a file; the way back of `decode`."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """Any bytes as text that gives the same bytes again."""
    return data.decode("utf-8", "surrogateescape")


def hash_text(text: str) -> str:
    return hashlib.sha256(encode(text)).hexdigest()


def to_record(entry: LogEntry) -> Record:
    if isinstance(entry, Logged):
        return Record(UnknownRecord(TRANSACTION, _write_logged(entry)), entry.at, RecordId(entry.id))
    fields = {
        "upto": entry.upto,
        "files": {key: write_placement(item) for key, item in entry.files.items()},
        "boot": entry.boot,
    }
    return Record(UnknownRecord(UPKEEP, freeze_object(fields)), entry.at)


def spell(entry: LogEntry) -> bytes:
    """A line of the history."""
    return write_line(to_record(entry))


def read_entry(record: Record) -> LogEntry | None:
    """What a record says; None for a kind of a newer version. `WireError` where it makes no sense."""
    body = record.body
    if not isinstance(body, UnknownRecord) or not isinstance(body.wire, JsonObject):
        return None
    if body.kind == TRANSACTION:
        return _read_logged(record, body.wire)
    if body.kind != UPKEEP:
        return None
    files = _object(body.wire, "files")
    return Upkeep(
        _whole(body.wire, "upto"),
        record.at,
        {key: read_placement(item) for key, item in files.items()},
        _text(body.wire, "boot"),
    )


def write_placement(placement: Placement) -> list[object]:
    return [placement.sha256, *_write_stamp(placement.stamp)]


def read_placement(wire: Json) -> Placement:
    if not isinstance(wire, tuple) or not wire or not isinstance(wire[0], str | None):
        raise WireError(f"{wire!r:.80} is no placement")
    return Placement(wire[0], _read_stamp(wire[1:]))


def write_origin(origin: Origin) -> dict[str, object]:
    told: dict[str, object] = {"who": origin.who, "why": origin.why, "said_by": origin.said_by}
    rest: dict[str, object] = {
        "session": origin.session,
        "messages": list(origin.messages),
        "taint": sorted(origin.taint),
        "accepted": origin.is_accepted,
    }
    return told | {key: value for key, value in rest.items() if value}


def read_origin(wire: Json) -> Origin:
    if not isinstance(wire, JsonObject):
        raise WireError("its origin is no object")
    who, said = _text(wire, "who"), _text(wire, "said_by")
    taint = frozenset(_texts(wire, "taint"))
    if who not in WHO or said not in SAID_BY or not taint <= set(TAINTS):
        raise WireError(f"its origin is {who!r}, {said!r}, {sorted(taint)!r}; a newer version may know it")
    return Origin(
        next(known for known in WHO if known == who),
        _text(wire, "why"),
        _maybe_text(wire, "session") or "",
        _texts(wire, "messages"),
        next(known for known in SAID_BY if known == said),
        frozenset(known for known in TAINTS if known in taint),
        wire.get("accepted") is True,
    )


def _write_logged(entry: Logged) -> JsonObject:
    fields: dict[str, object] = {
        "kind": entry.kind,
        "origin": write_origin(entry.origin),
        "changes": [_write_change(change) for change in entry.changes],
    }
    rest: dict[str, object] = {"of": entry.of, "reason": entry.reason, "settles": list(entry.settles)}
    return freeze_object(fields | {key: value for key, value in rest.items() if value})


def _write_change(change: LoggedChange) -> dict[str, object]:
    fields: dict[str, object] = {"key": change.key, "before": change.before, "after": change.after}
    if change.text is not None:
        fields["text"] = change.text
    if change.origin is not None:
        fields["origin"] = write_origin(change.origin)
    if change.at is not None:
        fields["at"] = change.at.isoformat()
    if change.stamp is not None:
        fields["stamp"] = _write_stamp(change.stamp)
    if change.order is not None:
        fields["order"] = change.order
    return fields


def _read_logged(record: Record, wire: JsonObject) -> Logged:
    kind, changes = _text(wire, "kind"), wire.get("changes")
    if kind not in KINDS or not isinstance(changes, tuple):
        raise WireError(f"a transaction of kind {kind!r}; a newer version may know it")
    return Logged(
        TransactionId(record.id),
        record.at,
        next(known for known in KINDS if known == kind),
        read_origin(wire.get("origin")),
        tuple(_read_change(change) for change in changes),
        _maybe_text(wire, "of") or "",
        _maybe_text(wire, "reason") or "",
        _texts(wire, "settles"),
    )


def _read_change(wire: Json) -> LoggedChange:
    if not isinstance(wire, JsonObject):
        raise WireError("one of its changes is no object")
    origin, at, stamp = wire.get("origin"), _maybe_text(wire, "at"), wire.get("stamp")
    try:
        when = None if at is None else datetime.fromisoformat(at)
    except ValueError as error:
        raise WireError(f"its time {at!r} is none") from error
    return LoggedChange(
        _text(wire, "key"),
        _maybe_text(wire, "before"),
        _maybe_text(wire, "after"),
        _maybe_text(wire, "text"),
        None if origin is None else read_origin(origin),
        when,
        _read_stamp(stamp) if isinstance(stamp, tuple) else None,
        None if wire.get("order") is None else _whole(wire, "order"),
    )


def _write_stamp(stamp: Stamp | None) -> list[object]:
    return [] if stamp is None else [stamp.size_bytes, stamp.modified_ns, stamp.inode]


def _read_stamp(wire: tuple[Json, ...]) -> Stamp | None:
    if not wire:
        return None
    if len(wire) != 3 or not all(isinstance(number, int) for number in wire):
        raise WireError(f"{wire!r:.80} is no stamp of a file")
    size, modified, inode = cast("tuple[int, int, int]", wire)
    return Stamp(size, modified, inode)


def _object(wire: JsonObject, key: str) -> JsonObject:
    value = wire.get(key)
    if not isinstance(value, JsonObject):
        raise WireError(f"its {key} is {value!r:.80}; expected an object")
    return value


def _text(wire: JsonObject, key: str) -> str:
    value = wire.get(key)
    if not isinstance(value, str):
        raise WireError(f"its {key} is {value!r:.80}; expected text")
    return value


def _maybe_text(wire: JsonObject, key: str) -> str | None:
    return None if wire.get(key) is None else _text(wire, key)


def _texts(wire: JsonObject, key: str) -> tuple[str, ...]:
    value = wire.get(key, ())
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        raise WireError(f"its {key} is no list of texts")
    return cast("tuple[str, ...]", value)


def _whole(wire: JsonObject, key: str) -> int:
    value = wire.get(key)
    if not isinstance(value, int):
        raise WireError(f"its {key} is {value!r:.80}; expected a number")
    return value
