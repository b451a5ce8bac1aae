"""What a transcript holds, as values and as lines.

A line is a JSON object that starts with a checksum of the rest of itself:

    {"c":"9f0c2a61","k":"message","id":"…","at":"2026-11-15T09:30:00+00:00","v":{…}}

So a line can be checked without parsing it (`store/files/__init__.py`), and a boundary can be found by its
bytes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Annotated, Literal, TypeAlias

from sevenfold.core.errors import InputError, WireError
from sevenfold.core.fields import JsonForm, read_fields, write_fields
from sevenfold.core.json import (
    EMPTY_OBJECT,
    MAX_NESTING,
    Json,
    JsonObject,
    freeze,
    nesting_depth,
    read_object,
)
from sevenfold.core.messages import (
    MAX_MESSAGE_NESTING,
    Message,
    read_message,
    write_message,
)
from sevenfold.core.spills import SpillDecision
from sevenfold.store.files import RecordId, format_line, is_whole, new_record_id


@dataclass(frozen=True, slots=True)
class MessageRecord:
    message: Message


@dataclass(frozen=True, slots=True)
class InjectedRecord:
    """A message that the engine put into the view and that the caller's own history does not hold."""

    message: Message
    origin: Literal["attachment", "memory", "summary"]


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """What layer 1 decided for a tool result: final, so that later requests carry the same bytes."""

    decision: SpillDecision


@dataclass(frozen=True, slots=True)
class CutRecord:
    """A change to a prefix that was sent before, announced so that nobody takes it for an accident."""

    layer: int
    reason: str
    first: RecordId | None
    """The first record whose bytes differ from what was sent."""
    detail: JsonObject = EMPTY_OBJECT


@dataclass(frozen=True, slots=True)
class KeptSegment:
    """Messages from before a boundary that stay in the view after it."""

    head: RecordId
    anchor: RecordId
    """The message after which they are shown: the summary."""
    tail: RecordId
    offset: int
    """Where the head's line starts, so that resuming need not look for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryRecord:
    """Compaction cut here: resuming starts at the last of these."""

    trigger: Literal["auto", "manual"]
    tokens_before: int
    last_message: RecordId | None
    tools: tuple[str, ...] = ()
    """Tools whose schemas were discovered before it, to be declared again."""
    kept: KeptSegment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    """What one model call was billed, as the provider said it."""

    model: str
    who: str
    """`main`, or the kind of fork that called."""
    dialect: Literal["anthropic", "openai"] = "anthropic"
    wire: JsonObject
    frame: Annotated[str, JsonForm(omits_default=True)] = ""
    """What the call's model, system prompt and tools hash to: its thinking holds under them alone."""
    is_simulated: Annotated[bool, JsonForm(omits_default=True)] = False
    """The simulator answered, so nobody is billed."""
    resent_at: Annotated[datetime | None, JsonForm(omits_default=True)] = None
    """When the request was sent again; None: it was sent once, as the record of its sending says."""


@dataclass(frozen=True, slots=True)
class SentRecord:
    """A request that is about to be sent, written before it is. A process that dies then leaves it without a
    bill, which can be counted."""

    model: str
    who: str
    """`main`, or the kind of fork that called."""
    is_refused: Annotated[bool, JsonForm(omits_default=True)] = False
    """The provider refused the last request of `who`: no bill will come, and none is missing."""


@dataclass(frozen=True, slots=True)
class ParentRecord:
    """Everything before it happened in another session, from which this one branched off here."""

    session: str


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """A kind that a newer version wrote: kept, so that nothing is lost by reading with an older one."""

    kind: str
    wire: Json


RecordBody: TypeAlias = (
    MessageRecord
    | InjectedRecord
    | DecisionRecord
    | CutRecord
    | BoundaryRecord
    | UsageRecord
    | SentRecord
    | ParentRecord
    | UnknownRecord
)


@dataclass(frozen=True, slots=True)
class Record:
    body: RecordBody
    at: datetime
    id: RecordId = field(default_factory=new_record_id)


BOUNDARY_MARK = b'","k":"boundary",'
MESSAGE_MARK = b'","k":"message",'
"""After the checksum. In a JSON string their quotes would be escaped, so only an object can hold them."""

MAX_RECORD_NESTING = {"message": MAX_MESSAGE_NESTING, "aside": MAX_MESSAGE_NESTING + 1}
"""Levels that a kind can be read back with: a message is kept shallower than JSON itself may be."""


def write_line(record: Record) -> bytes:
    """The line with its newline; `InputError` when it is too long to be read back."""
    kind, fields = _write_body(record.body)
    value = freeze(fields)
    if nesting_depth(value) > MAX_RECORD_NESTING.get(kind, MAX_NESTING - 1):
        raise InputError(
            f"a {kind} record {nesting_depth(value)} levels deep could not be read back; flatten it "
            f"or make it text"
        )
    return format_line(kind, record.id, record.at, value)


def read_line(line: bytes) -> Record:
    """The record of a line; `WireError` when it is damaged or makes no sense."""
    if not is_whole(line):
        raise WireError("its checksum does not fit")
    wire = read_object(line)
    kind, when, value = _text(wire, "k"), _text(wire, "at"), wire.get("v")
    try:
        at = datetime.fromisoformat(when)
    except ValueError as error:
        raise WireError(f"its time {when!r} is none") from error
    reader = _READERS.get(kind)
    body = reader(value) if reader and isinstance(value, JsonObject) else UnknownRecord(kind, value)
    return Record(body, at, RecordId(_text(wire, "id")))


def _write_body(body: RecordBody) -> tuple[str, object]:
    """The kind's name and the value's fields."""
    match body:
        case MessageRecord():
            return "message", write_message(body.message)
        case InjectedRecord():
            return "aside", {"origin": body.origin, "message": write_message(body.message)}
        case DecisionRecord():
            return "decision", write_fields(body.decision)
        case CutRecord():
            return "cut", write_fields(body)
        case BoundaryRecord():
            return "boundary", write_fields(body)
        case UsageRecord() | SentRecord():
            return "usage" if isinstance(body, UsageRecord) else "request", write_fields(body)
        case ParentRecord():
            return "parent", write_fields(body)
        case UnknownRecord():
            return body.kind, body.wire


def _read_aside(wire: JsonObject) -> RecordBody:
    named = wire.get("origin")
    origin = _ORIGINS.get(named) if isinstance(named, str) else None
    if origin is None:
        raise WireError(f"its origin is {named!r}; expected one of {', '.join(_ORIGINS)}")
    return InjectedRecord(read_message(wire.get("message")), origin)


def _text(wire: JsonObject, key: str) -> str:
    value = wire.get(key)
    if not isinstance(value, str):
        raise WireError(f"its {key} is {value!r}; expected text")
    return value


_ORIGINS: Mapping[str, Literal["attachment", "memory", "summary"]] = {
    "attachment": "attachment",
    "memory": "memory",
    "summary": "summary",
}
_READERS: Mapping[str, Callable[[JsonObject], RecordBody]] = {
    "message": lambda wire: MessageRecord(read_message(wire)),
    "aside": _read_aside,
    "decision": lambda wire: DecisionRecord(read_fields(SpillDecision, wire)),
    "cut": partial(read_fields, CutRecord),
    "boundary": partial(read_fields, BoundaryRecord),
    "usage": partial(read_fields, UsageRecord),
    "request": partial(read_fields, SentRecord),
    "parent": partial(read_fields, ParentRecord),
}
