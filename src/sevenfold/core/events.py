"""What happened, as values: every fallback, skip and failure that a person may want to know of.

The union is closed. Whoever adds an event adds it to `Event`, and to `docs/events.md` (a test checks).
Names are past tense; a field holds what a reader needs to act, never a secret or a message's body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeAlias, get_args

from sevenfold.core.messages import ToolUseId


@dataclass(frozen=True, slots=True)
class LeaseReclaimed:
    """A holder died or overstayed, and its lock was taken over."""

    lock: str
    previous_token: int
    token: int
    reason: str


@dataclass(frozen=True, slots=True)
class LineQuarantined:
    """A transcript line failed its check: left in place, never read as a record."""

    transcript: str
    offset: int
    length_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class LockFaceFailed:
    """A lock is held, or was let go, and the file that shows it to other programs could not be written."""

    lock: str
    reason: str


@dataclass(frozen=True, slots=True)
class LockRebuilt:
    """A lock's record could not be read and was started anew, above any token it can have held."""

    lock: str
    token: int
    reason: str


@dataclass(frozen=True, slots=True)
class MailQuarantined:
    """A message in a mailbox could not be trusted: moved aside, not shown to the agent."""

    mailbox: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ModelUnknown:
    """A model that no table knows: cautious values stand in, and nothing it costs can be told."""

    model: str
    assumed_window_tokens: int


@dataclass(frozen=True, slots=True)
class PriceUnknown:
    """A model that settings describe has no price, there or in the table: nothing it costs can be told."""

    model: str


@dataclass(frozen=True, slots=True)
class ResultSpilled:
    """A tool result went to disk and a preview stands in for it."""

    tool_use_id: ToolUseId
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SettingRefused:
    """A setting that its source has no right to make was ignored."""

    source: str
    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class SpillFailed:
    """A tool result could not be stored, so it stays in the context whole."""

    tool_use_id: ToolUseId
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class TailSealed:
    """A writer died in mid-line; the fragment was closed off so that it spoils nothing after it."""

    transcript: str
    offset: int


@dataclass(frozen=True, slots=True)
class TempSwept:
    """Half-made files of writers that died were removed."""

    folder: str
    count: int


@dataclass(frozen=True, slots=True)
class TranscriptFailed:
    """Records could not be written: the session goes on, they are tried again, and until then a crash would
    lose them."""

    transcript: str
    waiting: int
    reason: str


@dataclass(frozen=True, slots=True)
class WorktreeDisowned:
    """A worktree names a repository that does not name it back, so it counts as a project of its own."""

    worktree: str
    claimed: str


Event: TypeAlias = (
    LeaseReclaimed
    | LineQuarantined
    | LockFaceFailed
    | LockRebuilt
    | MailQuarantined
    | ModelUnknown
    | PriceUnknown
    | ResultSpilled
    | SettingRefused
    | SpillFailed
    | TailSealed
    | TempSwept
    | TranscriptFailed
    | WorktreeDisowned
)

Emit: TypeAlias = Callable[[Event], None]
"""Where a room puts an event; the edge decides who listens."""

EVENTS: tuple[type[Event], ...] = get_args(Event)


def describe(event: Event) -> dict[str, str | int]:
    """The event as plain data: its name, then its fields."""
    return {"event": type(event).__name__} | {item.name: getattr(event, item.name) for item in fields(event)}


def ignore(event: Event) -> None:
    """For callers that have nobody to tell, such as a test of something else."""
