"""What happened, as values: every fallback, skip and failure that a person may want to know of.

The union is closed. Whoever adds an event adds it to `Event`, and to `docs/events.md` (a test checks).
Names are past tense; a field holds what a reader needs to act, never a secret or a message's body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeAlias, get_args

from sevenfold.core.agent_events import (
    AgentEnded,
    AgentStarted,
    DefinitionSkipped,
    MailSkipped,
    PeerDismissed,
    ProgressSkipped,
    WorktreeKept,
)
from sevenfold.core.command_events import GuardedMoved, SandboxMissing
from sevenfold.core.messages import ToolUseId
from sevenfold.core.outside_events import (
    DocDropped,
    DocSkipped,
    DocTracked,
    DocUpdated,
    McpConnected,
    McpDeferred,
    McpFailed,
    McpSkipped,
    UntrustedEntered,
)
from sevenfold.core.tool_events import RuleLost, SkillSkipped
from sevenfold.core.turn_events import HooksIgnored, ToolFailed, TurnInterrupted


@dataclass(frozen=True, slots=True)
class BillMissing:
    """An answer came without a bill, or with one that cannot be read: what it cost is not known, and how full
    the window is remains an estimate. Told once for each reason."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class BreakerOpened:
    """Something automatic failed or helped nothing too often in a row, and is not tried again by itself."""

    breaker: str
    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class BreakerStateLost:
    """What was known about failed compactions could not be read or kept, so that counting starts anew."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class CacheMissed:
    """Less of a prompt came out of the provider's cache than what was sent before promised."""

    who: str
    expected_tokens: int
    read_tokens: int
    idle_seconds: int
    """Since the request that should have been read started."""
    cause: str
    """`idle`, `unexplained`, or what an unannounced change of the prefix touched."""
    told: str
    """The reason that the provider gave; empty when it was not asked, or gave none."""


@dataclass(frozen=True, slots=True)
class CallCharged:
    """A model call of background work was paid for."""

    kind: str
    model: str
    tokens: int
    read: int
    micro_usd: int | None
    """None: the model's price is not known."""


@dataclass(frozen=True, slots=True)
class CallRefused:
    """Background work wanted to ask a model and may not, for a cap, a pause or the switch; it is left out."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class ClearingRefused:
    """A way of clearing old results that settings ask for is not to be had."""

    setting: str
    reason: str


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    """The view is about to be cut down to a summary."""

    trigger: str
    tokens_before: int
    target_tokens: int


@dataclass(frozen=True, slots=True)
class ContextCut:
    """Instruction files and other context have more than their share of the window: not all is shown."""

    sources: str
    """The ones that lost text, separated by commas."""
    limit_tokens: int


@dataclass(frozen=True, slots=True)
class CutRegistered:
    """The prefix that was sent before is changed on purpose, from this message of the view on."""

    who: str
    layer: int
    reason: str
    first: int


@dataclass(frozen=True, slots=True)
class ExtraRestored:
    """Something beside files that was in view before a compaction was put back after it."""

    kind: str
    """`skill`, `plan`, `todo`, `tasks`, `tools`, `agents`, `mcp`, `hook` or `session`."""
    title: str
    tokens: int
    is_cut: bool
    """Only its beginning fitted."""


@dataclass(frozen=True, slots=True)
class FileRestored:
    """A file that was read before a compaction was read again after it."""

    path: str
    tokens: int
    is_cut: bool
    """Only its beginning fitted."""


@dataclass(frozen=True, slots=True)
class ForkEnded:
    """A fork is over: how, and what it used."""

    kind: str
    outcome: str
    """`answered`, `failed`, `cancelled`, or `out of rounds`."""
    rounds: int
    read_tokens: int
    written_tokens: int
    fresh_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ForkStarted:
    """A side run begins on the session's own prefix."""

    kind: str
    messages: int


@dataclass(frozen=True, slots=True)
class HistoryCompacted:
    """A summary stands for what came before it."""

    rung: str
    trigger: str
    tokens_before: int
    tokens_after: int
    kept_messages: int
    calls: int
    """Model calls that it took, failed ones included."""
    milliseconds: int


@dataclass(frozen=True, slots=True)
class HistoryChanged:
    """The caller changed or dropped messages that had been taken before: the view follows from there on."""

    first: int
    """The first message of the caller's list that differs."""
    forgotten: int
    reason: str


@dataclass(frozen=True, slots=True)
class HistoryRepaired:
    """A message that the provider would have refused is sent in a form that it takes."""

    message: int
    """Which message of the history."""
    repair: str
    detail: str


@dataclass(frozen=True, slots=True)
class HookFailed:
    """A hook failed or took too long: what it would have added is missing, and the rest goes on."""

    hook: str
    reason: str


@dataclass(frozen=True, slots=True)
class InstructionSkipped:
    """An instruction file, or one that it imports, is not read."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class KindPaused:
    """A kind of background work failed too often in a row and rests until a time."""

    kind: str
    strikes: int
    until: str
    reason: str


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
class NotesRecordLost:
    """How far session notes go could not be read, so that they count as covering nothing until they are next
    brought up to date."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotesSkipped:
    """Session notes were due and were not brought up to date; what they cover stays as it was."""

    session: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotesTruncated:
    """Session notes are over their limits, so that a part of them stays out of the prompt."""

    session: str
    sections: str
    """The ones that lost lines, separated by commas."""
    tokens: int
    """Of what is left."""


@dataclass(frozen=True, slots=True)
class NotesUpdated:
    """Session notes were brought up to date."""

    session: str
    writer: str
    """`structural` or `model`."""
    tokens: int
    covered: int
    """How many messages of the history they cover."""


@dataclass(frozen=True, slots=True)
class PrefixBroken:
    """A request differs from the one before it where nobody announced a cut, so that its cache is lost."""

    who: str
    cause: str
    """`model`, `tools`, `system`, `message` or `params`."""
    path: str
    """The first block that differs, or the setting."""
    lost_tokens: int


@dataclass(frozen=True, slots=True)
class PriceUnknown:
    """A model that settings describe has no price, there or in the table: nothing it costs can be told."""

    model: str


@dataclass(frozen=True, slots=True)
class PromptTrimmed:
    """The provider leaves out of the prompt what was in it before, as it does on this model: earlier thinking
    once the user speaks, or a message that was for one turn. What follows it is written to the cache again."""

    who: str
    path: str
    """The first block that differs."""
    lost_tokens: int


@dataclass(frozen=True, slots=True)
class ReplyUnrecorded:
    """An answer went to the caller of an attached client and could not be read along: its bill is not booked."""

    reason: str


@dataclass(frozen=True, slots=True)
class RequestPassed:
    """A request of an attached client went through untouched."""

    reason: str


@dataclass(frozen=True, slots=True)
class RestoreSkipped:
    """Something that was in view before a compaction was not put back after it."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class ResultSpilled:
    """A tool result went to disk and a preview stands in for it."""

    tool_use_id: ToolUseId
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ResultsCleared:
    """Old tool results left the prompt."""

    by: str
    """Who cleared them and how: `provider`, `cache edits`, or the policy by which we did."""
    results: int
    tokens: int
    """Estimated, or as the provider says; 0 where nobody knows."""


@dataclass(frozen=True, slots=True)
class RungFailed:
    """One way to make a summary was tried and failed."""

    rung: str
    reason: str
    failures_in_row: int
    """Of model calls, over the life of the session."""


@dataclass(frozen=True, slots=True)
class RungSkipped:
    """One way to make a summary was not tried."""

    rung: str
    reason: str


@dataclass(frozen=True, slots=True)
class SettingRefused:
    """A setting was ignored: its source may not make it, or says what cannot be used and may not stop us."""

    source: str
    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class SpendStateLost:
    """What background work had spent so far could not be read or written; caps count from what is known."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class SpillFailed:
    """A tool result could not be stored, so it stays in the context whole."""

    tool_use_id: ToolUseId
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class SweepFailed:
    """Half-made files of writers that died could not be looked for; the project is open all the same."""

    folder: str
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
class ToolDenied:
    """A tool call was not allowed: by a fork's brief, a rule, a mode, a hook or a person."""

    who: str
    tool: str
    tool_use_id: ToolUseId
    reason: str


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


@dataclass(frozen=True, slots=True)
class WriterFailed:
    """A background job failed or had to be stopped: its work is lost, and nothing else is."""

    writer: str
    reason: str


Event: TypeAlias = (
    AgentEnded
    | AgentStarted
    | BillMissing
    | BreakerOpened
    | BreakerStateLost
    | CacheMissed
    | CallCharged
    | CallRefused
    | ClearingRefused
    | CompactionStarted
    | ContextCut
    | CutRegistered
    | DefinitionSkipped
    | DocDropped
    | DocSkipped
    | DocTracked
    | DocUpdated
    | ExtraRestored
    | FileRestored
    | ForkEnded
    | ForkStarted
    | GuardedMoved
    | HistoryChanged
    | HistoryCompacted
    | HistoryRepaired
    | HookFailed
    | HooksIgnored
    | InstructionSkipped
    | KindPaused
    | LeaseReclaimed
    | LineQuarantined
    | LockFaceFailed
    | LockRebuilt
    | MailQuarantined
    | MailSkipped
    | McpConnected
    | McpDeferred
    | McpFailed
    | McpSkipped
    | ModelUnknown
    | NotesRecordLost
    | NotesSkipped
    | NotesTruncated
    | NotesUpdated
    | PeerDismissed
    | PrefixBroken
    | PriceUnknown
    | ProgressSkipped
    | PromptTrimmed
    | ReplyUnrecorded
    | RequestPassed
    | RestoreSkipped
    | ResultSpilled
    | ResultsCleared
    | RuleLost
    | RungFailed
    | RungSkipped
    | SandboxMissing
    | SettingRefused
    | SkillSkipped
    | SpendStateLost
    | SpillFailed
    | SweepFailed
    | TailSealed
    | TempSwept
    | ToolDenied
    | ToolFailed
    | TranscriptFailed
    | TurnInterrupted
    | UntrustedEntered
    | WorktreeDisowned
    | WorktreeKept
    | WriterFailed
)

Emit: TypeAlias = Callable[[Event], None]
"""Where a room puts an event; the edge decides who listens."""

EVENTS: tuple[type[Event], ...] = get_args(Event)


def describe(event: Event) -> dict[str, str | int]:
    """The event as plain data: its name, then its fields."""
    return {"event": type(event).__name__} | {item.name: getattr(event, item.name) for item in fields(event)}


def tell_both(one: Emit, other: Emit) -> Emit:
    """Two listeners as one."""

    def tell(event: Event) -> None:
        one(event)
        other(event)

    return tell


def ignore(event: Event) -> None:
    """For callers that have nobody to tell, such as a test of something else."""
