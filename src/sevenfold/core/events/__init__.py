"""What happened, as values: every fallback, skip and failure that a person may want to know of.

- `context`: session notes, compaction, and the cached prefix.
- `memory`: the memory folder.
- `learning`: recall, rules, extraction, dreams, and the team's server.
- `agent`: agents and their messages, turns, tools, commands, forks, spend, MCP and living documents.
- `store`: the disk.

Import events from this package. The union `Event` is closed: add a new event to it and to `docs/events.md`
(a test checks). Names are in the past tense; a field holds what a reader needs in order to act, never a
secret or the body of a message.
"""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from sevenfold.core.events.agent import (
        AgentEnded,
        AgentStarted,
        AnswerTruncated,
        BillLost,
        CallCharged,
        CallRefused,
        DefinitionLimited,
        DefinitionSkipped,
        DocDropped,
        DocSkipped,
        DocTracked,
        DocUpdated,
        ForkEnded,
        ForkStarted,
        FrameLost,
        GuardedLeft,
        GuardedMoved,
        HooksIgnored,
        KindPaused,
        LoopDetected,
        MailSkipped,
        McpConnected,
        McpDeferred,
        McpFailed,
        McpSkipped,
        ModelUnknown,
        PeerDismissed,
        PriceUnknown,
        ProgressSkipped,
        RetryScheduled,
        RuleKept,
        RuleLost,
        SandboxFailed,
        SkillSkipped,
        SpendStateLost,
        ToolDenied,
        ToolFailed,
        ToolStateLost,
        TurnInterrupted,
        UntrustedEntered,
        VariablesHeld,
        WorktreeKept,
        WriterFailed,
    )
    from sevenfold.core.events.context import (
        BreakerOpened,
        BreakerStateLost,
        CacheMissed,
        ClearingRefused,
        CompactionRefused,
        CompactionStarted,
        ContextCut,
        CutRegistered,
        ExtraRestored,
        FileRestored,
        HistoryChanged,
        HistoryCompacted,
        HistoryRepaired,
        HookFailed,
        NotesRecordLost,
        NotesSkipped,
        NotesTruncated,
        NotesUpdated,
        PrefixBroken,
        PromptTrimmed,
        ProviderClearingEnded,
        ReplyUnrecorded,
        RequestPassed,
        RestoreSkipped,
        ResultsCleared,
        RungFailed,
        RungSkipped,
        WindowLearned,
        WordsCut,
    )
    from sevenfold.core.events.learning import (
        ClaimsBroken,
        DraftRefused,
        DreamDegraded,
        DreamEnded,
        DreamProgressed,
        DreamSkipped,
        DreamSpared,
        DreamStarted,
        ExtractionEnded,
        ExtractionSkipped,
        IndexRebuilt,
        MemoryRecalled,
        RecallSkipped,
        RuleAnswered,
        RuleShown,
        RulesSkipped,
        TeamConflicted,
        TeamDeletionLost,
        TeamEntryRefused,
        TeamFileHeld,
        TeamSecretBlocked,
        TeamStopped,
        TeamSynced,
        TeamTextKept,
        TeamUnreached,
        TeamVersionLost,
        VectorsUnused,
    )
    from sevenfold.core.events.memory import (
        ConditionRefused,
        IndexCut,
        MemoryChanged,
        MemoryEdited,
        MemoryLagged,
        MemoryPurged,
        MemoryQuarantined,
        MemoryRebuilt,
        MemoryRecovered,
        MemoryRefused,
        MemoryStateMoved,
        MemoryStateUnknown,
        UserWideSkipped,
        UsesLost,
    )
    from sevenfold.core.events.store import (
        CheckpointFailed,
        EventsLost,
        InstructionSkipped,
        LeaseReclaimed,
        LineQuarantined,
        LockFaceFailed,
        LockRebuilt,
        MailQuarantined,
        ResultSpilled,
        SettingRefused,
        SpillFailed,
        SweepFailed,
        TailSealed,
        TempSwept,
        TranscriptFailed,
        WorktreeDisowned,
    )

    Event: TypeAlias = (
        AgentEnded
        | AgentStarted
        | AnswerTruncated
        | BillLost
        | BreakerOpened
        | BreakerStateLost
        | CacheMissed
        | CallCharged
        | CallRefused
        | CheckpointFailed
        | ClaimsBroken
        | ClearingRefused
        | CompactionRefused
        | CompactionStarted
        | ConditionRefused
        | ContextCut
        | CutRegistered
        | DefinitionLimited
        | DefinitionSkipped
        | DocDropped
        | DocSkipped
        | DocTracked
        | DocUpdated
        | DraftRefused
        | DreamDegraded
        | DreamEnded
        | DreamProgressed
        | DreamSkipped
        | DreamSpared
        | DreamStarted
        | EventsLost
        | ExtraRestored
        | ExtractionEnded
        | ExtractionSkipped
        | FileRestored
        | ForkEnded
        | ForkStarted
        | FrameLost
        | GuardedLeft
        | GuardedMoved
        | HistoryChanged
        | HistoryCompacted
        | HistoryRepaired
        | HookFailed
        | HooksIgnored
        | IndexCut
        | IndexRebuilt
        | InstructionSkipped
        | KindPaused
        | LeaseReclaimed
        | LineQuarantined
        | LockFaceFailed
        | LockRebuilt
        | LoopDetected
        | MailQuarantined
        | MailSkipped
        | McpConnected
        | McpDeferred
        | McpFailed
        | McpSkipped
        | MemoryChanged
        | MemoryEdited
        | MemoryLagged
        | MemoryPurged
        | MemoryQuarantined
        | MemoryRebuilt
        | MemoryRecalled
        | MemoryRecovered
        | MemoryRefused
        | MemoryStateMoved
        | MemoryStateUnknown
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
        | ProviderClearingEnded
        | RecallSkipped
        | ReplyUnrecorded
        | RequestPassed
        | RestoreSkipped
        | ResultSpilled
        | ResultsCleared
        | RetryScheduled
        | RuleAnswered
        | RuleKept
        | RuleLost
        | RuleShown
        | RulesSkipped
        | RungFailed
        | RungSkipped
        | SandboxFailed
        | SettingRefused
        | SkillSkipped
        | SpendStateLost
        | SpillFailed
        | SweepFailed
        | TailSealed
        | TeamConflicted
        | TeamDeletionLost
        | TeamEntryRefused
        | TeamFileHeld
        | TeamSecretBlocked
        | TeamStopped
        | TeamSynced
        | TeamTextKept
        | TeamUnreached
        | TeamVersionLost
        | TempSwept
        | ToolDenied
        | ToolFailed
        | ToolStateLost
        | TranscriptFailed
        | TurnInterrupted
        | UntrustedEntered
        | UserWideSkipped
        | UsesLost
        | VariablesHeld
        | VectorsUnused
        | WindowLearned
        | WordsCut
        | WorktreeDisowned
        | WorktreeKept
        | WriterFailed
    )
else:
    # Only who checks types needs the union; making all classes takes a third of a short command.
    Event = object

_NAMES = {
    "agent": """
        AgentEnded AgentStarted AnswerTruncated BillLost CallCharged CallRefused DefinitionLimited
        DefinitionSkipped DocDropped DocSkipped DocTracked DocUpdated ForkEnded ForkStarted FrameLost
        GuardedLeft GuardedMoved HooksIgnored KindPaused LoopDetected MailSkipped McpConnected
        McpDeferred McpFailed McpSkipped ModelUnknown PeerDismissed PriceUnknown ProgressSkipped
        RetryScheduled RuleKept RuleLost SandboxFailed SkillSkipped SpendStateLost ToolDenied ToolFailed
        ToolStateLost TurnInterrupted UntrustedEntered VariablesHeld WorktreeKept WriterFailed
    """,
    "context": """
        BreakerOpened BreakerStateLost CacheMissed ClearingRefused CompactionRefused CompactionStarted
        ContextCut CutRegistered ExtraRestored FileRestored HistoryChanged HistoryCompacted
        HistoryRepaired HookFailed NotesRecordLost NotesSkipped NotesTruncated NotesUpdated PrefixBroken
        PromptTrimmed ProviderClearingEnded ReplyUnrecorded RequestPassed RestoreSkipped ResultsCleared
        RungFailed RungSkipped WindowLearned WordsCut
    """,
    "learning": """
        ClaimsBroken DraftRefused DreamDegraded DreamEnded DreamProgressed DreamSkipped DreamSpared
        DreamStarted ExtractionEnded ExtractionSkipped IndexRebuilt MemoryRecalled RecallSkipped
        RuleAnswered RuleShown RulesSkipped TeamConflicted TeamDeletionLost TeamEntryRefused TeamFileHeld
        TeamSecretBlocked TeamStopped TeamSynced TeamTextKept TeamUnreached TeamVersionLost VectorsUnused
    """,
    "memory": """
        ConditionRefused IndexCut MemoryChanged MemoryEdited MemoryLagged MemoryPurged MemoryQuarantined
        MemoryRebuilt MemoryRecovered MemoryRefused MemoryStateMoved MemoryStateUnknown UserWideSkipped
        UsesLost
    """,
    "store": """
        CheckpointFailed EventsLost InstructionSkipped LeaseReclaimed LineQuarantined LockFaceFailed
        LockRebuilt MailQuarantined ResultSpilled SettingRefused SpillFailed SweepFailed TailSealed
        TempSwept TranscriptFailed WorktreeDisowned
    """,
}
"""Where each event is defined. A module is loaded when the first of its events is asked for."""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name == "EVENT_TYPES":
        found: object = tuple(map(_load_event, sorted(_MODULES)))
    elif name in _MODULES:
        found = _load_event(name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, "EVENT_TYPES"})


def _load_event(name: str) -> object:
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


class Emit(Protocol):
    """Takes an event; whoever opens the session decides who listens. Any function of one event is one."""

    # A class and no alias: an editor shows `emit: Emit` then, and not the names of all events.
    def __call__(self, event: Event, /) -> object: ...


if TYPE_CHECKING:
    EVENT_TYPES: tuple[type[Event], ...]
    """All of them."""


def describe_event(event: Event) -> dict[str, str | int]:
    """The event as plain data: its name, then its fields."""
    return {"event": type(event).__name__} | {item.name: getattr(event, item.name) for item in fields(event)}


def emit_to_both(one: Emit, other: Emit) -> Emit:
    """Two listeners as one."""

    def tell(event: Event) -> None:
        one(event)
        other(event)

    return tell


def ignore_event(event: Event) -> None:
    """For callers that have nobody to tell, such as a test of something else."""
