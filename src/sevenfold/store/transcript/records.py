"""What a transcript holds, as values; `record_lines` makes lines of them and reads them back."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NewType, TypeAlias
from uuid import uuid4

from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.core.messages import Message
from sevenfold.core.spills import SpillDecision

RecordId = NewType("RecordId", str)
"""Unique in a transcript: a record written twice, because the first try was in doubt, counts once."""


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
    wire: JsonObject
    dialect: Literal["anthropic", "openai"] = "anthropic"
    frame: str = ""
    """What the call's model, system prompt and tools hash to: its thinking holds under them alone."""


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
    | ParentRecord
    | UnknownRecord
)


def new_record_id() -> RecordId:
    return RecordId(uuid4().hex)


@dataclass(frozen=True, slots=True)
class Record:
    body: RecordBody
    at: datetime
    id: RecordId = field(default_factory=new_record_id)
