"""The lines of a memory folder's history, as values and as records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias, cast

from sevenfold.core.errors import WireError
from sevenfold.core.json import JsonObject, freeze_object, replace_lone_surrogates
from sevenfold.core.memories import CHANGE_AUTHORS, SAID_BY, TAINTS, ChangeAuthor, Origin, SaidBy, Taint
from sevenfold.store.files import checksum_line, format_line, is_whole, new_record_id
from sevenfold.store.memory.changes import (
    TRANSACTION_KINDS,
    UNDO_STEPS,
    MemoryChange,
    PendingReview,
    ProposedChange,
    Transaction,
    TransactionId,
    TransactionKind,
    UndoStep,
)

TRANSACTION = "memory"
UPKEEP = "upkeep"
_UPKEEP_MARK = b'","k":"' + UPKEEP.encode() + b'",'

_LATEST_NS = 253_402_300_799 * 10**9
"""The end of the year 9999: some file systems keep times that Python cannot say."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells a file from another without reading it."""

    size_bytes: int
    modified_ns: int
    inode: int

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(min(max(0, self.modified_ns), _LATEST_NS) / 1e9, UTC)


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """What a file in the folder held when it was last looked at."""

    sha256: str | None
    """None: there is no such file."""
    stamp: FileStamp | None = None


NO_FILE = FileSnapshot(None)


@dataclass(frozen=True, slots=True, kw_only=True)
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
    stamp: FileStamp | None = None
    """Of the file in the folder that says so already."""
    order: int | None = None
    """Of a version that is put back: as new as it was then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTransaction:
    """A transaction with its texts."""

    id: TransactionId
    at: datetime
    kind: TransactionKind
    origin: Origin
    changes: tuple[LoggedChange, ...]
    of: str = ""
    reason: str = ""
    settles: tuple[str, ...] = ()
    """What else waited and no longer does: it was accepted or rejected too, or is overtaken by this."""
    rejects: tuple[str, ...] = ()
    """Of what no longer waits, what a person rejected."""
    step: UndoStep = ""
    reopens: tuple[str, ...] = ()
    """What had been accepted, rejected or overtaken, and waits again."""

    def origin_of(self, change: LoggedChange) -> Origin:
        return change.origin or self.origin

    def to_transaction(self) -> Transaction:
        """Without the texts."""
        changes = tuple(
            MemoryChange(item.key, item.before, item.after, self.origin_of(item)) for item in self.changes
        )
        return Transaction(
            id=self.id,
            at=self.at,
            kind=self.kind,
            origin=self.origin,
            changes=changes,
            of=self.of,
            step=self.step,
            reopens=self.reopens,
        )

    def to_review(self) -> PendingReview:
        """As a person gets it who has to look at it."""
        changes = tuple(
            ProposedChange(
                item.key, None if item.text is None else replace_lone_surrogates(item.text), item.before
            )
            for item in self.changes
        )
        return PendingReview(
            id=self.id,
            at=self.at,
            origin=self.origin,
            reason=self.reason,
            changes=changes,
            is_outside=self.kind == "outside",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepRecord:
    """Files were put in place, for every transaction up to a place in the log."""

    upto: int
    at: datetime
    files: Mapping[str, FileSnapshot]
    boot: str
    """Of the machine: what was put in place before it went down may be lost."""
    intends: str = ""
    """SHA-256 of an index that is about to be put in place; nothing else is told then."""


LogEntry: TypeAlias = LoggedTransaction | UpkeepRecord
_Wire: TypeAlias = "dict[str, object]"


def make_first_entry(at: datetime) -> UpkeepRecord:
    """The first line, whose random id tells this file from any other."""
    return UpkeepRecord(upto=0, at=at, files={}, boot="")


def new_transaction_id() -> TransactionId:
    """Short enough to be typed, long enough to be nobody else's."""
    return TransactionId(new_record_id()[:12])


def encode_text(text: str) -> bytes:
    """The bytes of a file; the way back of `decode`."""
    return text.encode("utf-8", "surrogateescape")


def decode_text(data: bytes) -> str:
    """Any bytes as text that gives the same bytes again."""
    return data.decode("utf-8", "surrogateescape")


def hash_text(text: str) -> str:
    return hashlib.sha256(encode_text(text)).hexdigest()


def format_log_line(entry: LogEntry) -> bytes:
    """A line of the history."""
    if isinstance(entry, LoggedTransaction):
        return format_line(TRANSACTION, entry.id, entry.at, _write_logged(entry))
    # As it is: it names every file of the folder, and nothing in it is anybody's text.
    wire = {"k": UPKEEP, "id": new_record_id(), "at": entry.at.isoformat(), "v": _write_upkeep(entry)}
    return checksum_line(UPKEEP, json.dumps(wire, separators=(",", ":")).encode())


def is_upkeep(line: bytes) -> bool:
    """Whether a line is about files that were put in place, told without reading it."""
    return line.find(_UPKEEP_MARK, 0, 40) >= 0


def read_log_entry(line: bytes) -> LogEntry | None:
    """What a line says; None for a kind of a newer version. `WireError` where it is damaged.

    Every process reads every line, so it is parsed as it is: who changed it has changed its checksum.
    """
    if not is_whole(line):
        raise WireError("its checksum does not fit")
    try:
        wire = cast("_Wire", json.loads(line))
        kind, value, at = wire["k"], cast("_Wire", wire["v"]), datetime.fromisoformat(str(wire["at"]))
        if kind == TRANSACTION:
            return _read_logged(TransactionId(str(wire["id"])), at, value)
        if kind != UPKEEP:
            return None
        files = cast("_Wire", value["files"])
        placed = {key: read_file_snapshot(item) for key, item in files.items()}
        intends = _text(value.get("intends", ""))
        return UpkeepRecord(
            upto=_whole(value["upto"]), at=at, files=placed, boot=_text(value["boot"]), intends=intends
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise WireError(f"it makes no sense: {error!r}") from error


def write_file_snapshot(placement: FileSnapshot) -> list[object]:
    return [placement.sha256, *_write_stamp(placement.stamp)]


def read_file_snapshot(wire: object) -> FileSnapshot:
    sha256, *stamp = cast("list[object]", wire)
    return FileSnapshot(None if sha256 is None else _text(sha256), _read_stamp(stamp))


def write_origin(origin: Origin) -> dict[str, object]:
    wire: dict[str, object] = {"who": origin.who, "why": origin.why, "said_by": origin.said_by}
    rest: dict[str, object] = {
        "session": origin.session,
        "messages": list(origin.messages),
        "taint": sorted(origin.taint),
        "accepted": origin.is_accepted,
        "evidence": list(origin.evidence),
        "root": origin.root,
        "author": origin.author,
    }
    return wire | {key: value for key, value in rest.items() if value}


def read_origin(wire: object) -> Origin:
    """`ValueError` for an origin that only a newer version can know."""
    fields = cast("_Wire", wire)
    return Origin(
        who=CHANGE_AUTHORS[CHANGE_AUTHORS.index(cast("ChangeAuthor", fields["who"]))],
        why=_text(fields["why"]),
        session=_text(fields.get("session", "")),
        messages=_texts(fields.get("messages", ())),
        said_by=SAID_BY[SAID_BY.index(cast("SaidBy", fields["said_by"]))],
        taint=frozenset(
            TAINTS[TAINTS.index(cast("Taint", item))] for item in _texts(fields.get("taint", ()))
        ),
        is_accepted=fields.get("accepted") is True,
        evidence=_texts(fields.get("evidence", ())),
        root=_text(fields.get("root", "")),
        author=_text(fields.get("author", "")),
    )


def _write_upkeep(entry: UpkeepRecord) -> _Wire:
    fields: _Wire = {
        "upto": entry.upto,
        "files": {key: write_file_snapshot(item) for key, item in entry.files.items()},
        "boot": entry.boot,
    }
    return fields | ({"intends": entry.intends} if entry.intends else {})


def _write_logged(entry: LoggedTransaction) -> JsonObject:
    fields: dict[str, object] = {
        "kind": entry.kind,
        "origin": write_origin(entry.origin),
        "changes": [_write_change(change) for change in entry.changes],
    }
    rest: dict[str, object] = {
        "of": entry.of,
        "reason": entry.reason,
        "settles": list(entry.settles),
        "rejects": list(entry.rejects),
        "step": entry.step,
        "reopens": list(entry.reopens),
    }
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


def _read_logged(id_: TransactionId, at: datetime, wire: _Wire) -> LoggedTransaction:
    return LoggedTransaction(
        id=id_,
        at=at,
        kind=TRANSACTION_KINDS[TRANSACTION_KINDS.index(cast("TransactionKind", wire["kind"]))],
        origin=read_origin(wire["origin"]),
        changes=tuple([_read_change(change) for change in cast("list[_Wire]", wire["changes"])]),
        of=_text(wire.get("of", "")),
        reason=_text(wire.get("reason", "")),
        settles=_texts(wire.get("settles", ())),
        rejects=_texts(wire.get("rejects", ())),
        step=UNDO_STEPS[UNDO_STEPS.index(cast("UndoStep", wire.get("step", "")))],
        reopens=_texts(wire.get("reopens", ())),
    )


def _read_change(wire: _Wire) -> LoggedChange:
    origin, at, stamp, order = wire.get("origin"), wire.get("at"), wire.get("stamp"), wire.get("order")
    return LoggedChange(
        key=_text(wire["key"]),
        before=_maybe_text(wire["before"]),
        after=_maybe_text(wire["after"]),
        text=_maybe_text(wire.get("text")),
        origin=None if origin is None else read_origin(origin),
        at=None if at is None else datetime.fromisoformat(_text(at)),
        stamp=None if stamp is None else _read_stamp(stamp),
        order=None if order is None else _whole(order),
    )


def _write_stamp(stamp: FileStamp | None) -> list[object]:
    return [] if stamp is None else [stamp.size_bytes, stamp.modified_ns, stamp.inode]


def _read_stamp(wire: object) -> FileStamp | None:
    numbers = [_whole(number) for number in cast("list[object]", wire)]
    return FileStamp(*numbers) if numbers else None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is no text")
    return value


def _maybe_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _texts(value: object) -> tuple[str, ...]:
    return tuple([_text(item) for item in cast("list[object]", value)])


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r:.80} is not a number")
    return value
