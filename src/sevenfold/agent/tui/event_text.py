"""One sentence for each event: for the line under a turn, the status line and the tour."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core import events
from sevenfold.core.events import Event, describe_event

RESUMED_CAUSE = "resumed"
"""Of a `CacheMissed` that a chat finds: what was sent before is not known well enough to say more."""


@dataclass(frozen=True, slots=True)
class EventText:
    """An event as a person reads it."""

    text: str
    layer: int | None = None
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    layer: int | None
    text: str
    """With the event's fields in braces."""
    is_warning: bool = False


_ROWS: dict[type[Event], _Row] = {
    events.ResultSpilled: _Row(1, "a result of {size_bytes:,} bytes went to disk, a preview stands in"),
    events.CheckpointFailed: _Row(None, "the edit of {path} cannot be taken back: {reason}", True),
    events.SpillFailed: _Row(1, "a result of {size_bytes:,} bytes could not be stored: {reason}", True),
    events.ResultsCleared: _Row(2, "{old_results} left the prompt, {tokens:,} tokens"),
    events.ProviderClearingEnded: _Row(
        2, "{reason}: {cleared} results are cleared here, {restored} are sent whole again"
    ),
    events.ClearingRefused: _Row(2, "{setting} is not available: {reason}", True),
    events.NotesUpdated: _Row(3, "notes cover {covered} messages now"),
    events.NotesSkipped: _Row(3, "notes were due and skipped: {reason}", True),
    events.NotesTruncated: _Row(3, "notes are over their limits: {sections} were cut", True),
    events.CompactionStarted: _Row(4, "a compaction of {tokens_before:,} tokens begins: {cause}"),
    events.HistoryCompacted: _Row(
        4, "compacted by {method}: {tokens_before:,} → {tokens_after:,} tokens, {kept} kept"
    ),
    events.FileRestored: _Row(4, "read {path} again, {tokens:,} tokens"),
    events.ExtraRestored: _Row(4, "put back: {title}"),
    events.RestoreSkipped: _Row(4, "{what} was not put back: {reason}", True),
    events.RungFailed: _Row(4, "compaction by {method} failed: {reason}", True),
    events.BreakerOpened: _Row(4, "{breaker} stopped after {count} failures: {reason}", True),
    events.DraftRefused: _Row(5, "{key} is not remembered ({rule}): {reason}"),
    events.ExtractionEnded: _Row(5, "the turn was searched for memories: {found}"),
    events.ExtractionSkipped: _Row(5, "the turn was not searched for memories: {reason}"),
    events.IndexCut: _Row(5, "the index of memories was cut by {lines} lines: {reason}", True),
    events.MemoryLagged: _Row(5, "files of the memory folder are behind its history: {reason}", True),
    events.MemoryChanged: _Row(5, "{keys} {kind} by {who}"),
    events.MemoryEdited: _Row(
        5, "{key} was edited outside; the text from before is used until `sevenfold memory review`", True
    ),
    events.MemoryQuarantined: _Row(5, "{key} waits for `sevenfold memory review`: {reason}", True),
    events.MemoryRecalled: _Row(5, "recalled {key} (by {ranked_by}, {percent}% sure)"),
    events.MemoryRefused: _Row(5, "{name} in the memory folder is not read: {reason}", True),
    events.RecallSkipped: _Row(5, "recall fell short: {reason}"),
    events.TeamConflicted: _Row(
        5, "{key} was changed by two people; yours is kept as {copy}: `sevenfold team conflicts`", True
    ),
    events.TeamDeletionLost: _Row(
        5, "the team's server has lost the deletion of {key}, which is back: `sevenfold team delete`", True
    ),
    events.TeamEntryRefused: _Row(5, "{key} from the team's server was not taken: {reason}", True),
    events.TeamFileHeld: _Row(5, "{key} is not shared with the team: {reason}", True),
    events.TeamSecretBlocked: _Row(5, "{key} was not sent to the team: {reason}", True),
    events.TeamStopped: _Row(5, "the team's memories are not exchanged: {reason}", True),
    events.TeamSynced: _Row(
        5,
        "the team's memories: {taken} came, {dropped} went, {merged} merged, {sent} sent, {deleted} deleted",
    ),
    events.TeamTextKept: _Row(5, "{key} stays: {reason}", True),
    events.TeamUnreached: _Row(5, "the team's server: {reason}", True),
    events.TeamVersionLost: _Row(
        5, "the team's server has lost version {version} of {key}, which it had taken: it was set back", True
    ),
    events.MemoryStateMoved: _Row(
        5, "the history of {directory} was kept with a project, and is kept with the directory now"
    ),
    events.MemoryStateUnknown: _Row(
        5, "{directory} was in use, and its history is not found: what lies there waits for review", True
    ),
    events.UserWideSkipped: _Row(5, "what is remembered for all projects is not in use: {reason}", True),
    events.VectorsUnused: _Row(5, "memories are found by words alone: {reason}"),
    events.RuleShown: _Row(5, "the memory {memory} was put before {tool} ({condition})"),
    events.RulesSkipped: _Row(5, "no rules were looked at before {tool}: {reason}", True),
    events.ConditionRefused: _Row(5, "{memory} cannot apply to {condition!r}: {reason}", True),
    events.ClaimsBroken: _Row(5, "{memory} names what could not be found: {claims}", True),
    events.UsesLost: _Row(5, "how often memories were used is not known: {reason}", True),
    events.DreamEnded: _Row(6, "the dream {dream} is over: {outcome}, {changed} changed, {removed} merged"),
    events.DreamDegraded: _Row(6, "the dream goes on without a model: {reason}", True),
    events.DreamSkipped: _Row(6, "no dream: {reason}"),
    events.DreamSpared: _Row(6, "the dream left {keys} as they are: {reason}"),
    events.DreamStarted: _Row(6, "a dream over {memories} memories begins ({writer})"),
    events.AgentStarted: _Row(7, "the agent {name} begins"),
    events.AgentEnded: _Row(7, "the agent {name} {ended}"),
    events.WorktreeKept: _Row(7, "{path} stays, on branch {branch}: {reason}"),
    events.ForkEnded: _Row(7, "the request for {kind} {ended}: {read_tokens:,} tokens read from the cache"),
    events.ToolDenied: _Row(7, "{who} may not use {tool}: {reason}", True),
    events.PrefixBroken: _Row(
        None, "the cached prefix broke: {cause}; {lost_tokens:,} tokens are written again", True
    ),
    events.CacheMissed: _Row(
        None, "the cache gave {read_tokens:,} of {expected_tokens:,} tokens back ({cause})", True
    ),
    events.CallRefused: _Row(None, "{kind} may not ask a model: {reason}", True),
    events.KindPaused: _Row(None, "{kind} rests until {until}: {reason}", True),
    events.DocTracked: _Row(None, "{path} is a living document and is kept up to date from now on"),
    events.DocUpdated: _Row(None, "{path} was brought up to date"),
    events.McpConnected: _Row(None, "the MCP server {server} is there, with {tools} tools"),
    events.McpFailed: _Row(None, "the MCP server {server} cannot be reached: {reason}", True),
    events.McpSkipped: _Row(None, "the MCP server {server} is not used: {reason}", True),
    events.RuleKept: _Row(None, "{rule} is allowed from now on: kept in {path}{git_note}"),
    events.RuleLost: _Row(None, "{rule} holds for this session alone: {reason}", True),
    events.GuardedLeft: _Row(
        None, "a command made {path}, which programs obey, and it could not be moved aside: {reason}", True
    ),
    events.GuardedMoved: _Row(
        None, "a command made {path}, which programs obey: it was moved to {moved_to}", True
    ),
    events.SandboxFailed: _Row(None, "commands cannot run with {profile} access only here: {reason}", True),
    events.VariablesHeld: _Row(
        None, "kept from commands, as likely secrets: {names}; sandbox.pass_variables passes them on"
    ),
    events.SkillSkipped: _Row(None, "the skill {path} is not offered: {reason}", True),
    events.FrameLost: _Row(None, "{path} cannot be read, so the cache is written again: {reason}", True),
    events.DefinitionLimited: _Row(None, "{part} of the agent in {path} is ignored: {reason}", True),
    events.DefinitionSkipped: _Row(None, "the agent in {path} is not used: {reason}", True),
    events.HooksIgnored: _Row(None, "hooks of {source} are not used as they are: {reason}", True),
    events.ContextCut: _Row(None, "more context than {limit_tokens:,} tokens: {sources} were cut", True),
    events.HookFailed: _Row(None, "the hook {hook} failed: {reason}", True),
    events.InstructionSkipped: _Row(None, "{path} is not read: {reason}", True),
    events.AnswerTruncated: _Row(
        None, "the answer was cut short, after going on {continuations} times: ask for the rest", True
    ),
    events.LoopDetected: _Row(None, "the same call of {tool} failed {count} times in this turn", True),
    events.ModelUnknown: _Row(
        None, "no table knows {model}: a window of {assumed_window_tokens:,} tokens is assumed", True
    ),
    events.PriceUnknown: _Row(None, "no price is known for {model}", True),
    events.RetryScheduled: _Row(
        None, "waiting {seconds:g} s, then retry {retry} of {of} ({model}): {reason}", True
    ),
    events.SettingRefused: _Row(None, "{key} of {source} is not used: {reason}", True),
    events.TranscriptFailed: _Row(None, "{waiting} records wait to be written: {reason}", True),
    events.WriterFailed: _Row(None, "{writer} failed: {reason}", True),
}

_QUIET = frozenset(
    {
        *(events.CutRegistered, events.ForkStarted, events.RungSkipped, events.HistoryRepaired),
        events.HistoryChanged,
        *(events.TailSealed, events.TempSwept, events.LeaseReclaimed, events.CallCharged),
        *(events.McpDeferred, events.ToolFailed, events.TurnInterrupted, events.UntrustedEntered),
        *(events.DreamProgressed, events.IndexRebuilt, events.MemoryRebuilt, events.MemoryRecovered),
        events.RuleAnswered,
    }
)
"""Told by what follows them, or of no use while a person works; `sevenfold doctor` has them."""


def render_event_text(event: Event) -> EventText | None:
    """The event in one sentence; None for those that nobody at work wants to read."""
    kind = type(event)
    if kind in _QUIET or _is_idle(event):
        return None
    row, values = _ROWS.get(kind), describe_event(event)
    if row is None:
        # A new event needs no entry here: its own name and fields are shown.
        name = values.pop("event")
        return EventText(f"{name}: " + ", ".join(f"{key} {value}" for key, value in values.items()))
    return EventText(row.text.format_map({**values, **_word_counts(event)}), row.layer, row.is_warning)


def _word_counts(event: Event) -> dict[str, str]:
    """Counts as words: singular where there is one, and without zeros."""
    match event:
        case events.HistoryCompacted():
            kept = f"{event.kept_messages:,} message{'' if event.kept_messages == 1 else 's'}"
            return {"kept": kept, "method": _METHODS.get(event.rung, event.rung)}
        case events.ResultsCleared():
            return {"old_results": f"{event.results:,} old tool result{'' if event.results == 1 else 's'}"}
        case events.ExtractionEnded():
            counts = (
                (event.written, "remembered"),
                (event.waiting, "to review"),
                (event.refused, "refused"),
            )
            return {"found": ", ".join(f"{count:,} {what}" for count, what in counts if count)}
        case _:
            return _word_names(event)


def _word_names(event: Event) -> dict[str, str]:
    """What has a name in the program, as a person calls it."""
    match event:
        case events.CompactionStarted():
            return {"cause": COMPACTION_CAUSES.get(event.trigger, event.trigger)}
        case events.RungFailed():
            return {"method": _METHODS.get(event.rung, event.rung)}
        case events.PrefixBroken():
            return {"cause": PREFIX_CAUSES.get(event.cause, event.cause)}
        case events.CacheMissed():
            return {"cause": _MISSES.get(event.cause, PREFIX_CAUSES.get(event.cause, event.cause))}
        case events.MemoryChanged():
            who = _AUTHORS.get(event.who, event.who)
            return {"kind": _CHANGES.get(event.kind, event.kind), "who": who}
        case events.AgentEnded() | events.ForkEnded():
            return {"ended": AGENT_ENDINGS.get(event.outcome, f"ended: {event.outcome}")}
        case _:
            return {}


PREFIX_CAUSES = {
    "model": "the model changed",
    "tools": "the list of tools changed",
    "system": "the system prompt changed",
    "message": "an earlier message changed",
    "params": "a setting of the request changed",
}
_MISSES = {
    "idle": "the pause was too long",
    "unexplained": "the provider dropped them",
    RESUMED_CAUSE: "the session was resumed",
}
COMPACTION_CAUSES = {
    "auto": "the context came to its limit",
    "manual": "/compact asked for it",
    "reactive": "the provider refused a prompt that was too long",
}
_METHODS = {
    "block": "the provider",
    "trimmed": "a summary without the oldest rounds",
    "structural": "an outline",
    "clip": "clipping",
}
"""Where the name of a strategy says little."""
_AUTHORS = {
    "user": "you",
    "agent": "the agent",
    "fork": "the search of the turn",
    "dream": "a dream",
    "sync": "the team's server",
    "outside edit": "an edit outside",
}
_CHANGES = {
    "adopt": "taken in",
    "commit": "changed",
    "revert": "taken back",
    "accept": "accepted",
    "reject": "rejected",
    "trust": "trusted",
    "purge": "erased",
    "outside": "edited",
}
AGENT_ENDINGS = {
    "answered": "has answered",
    "failed": "failed",
    "cancelled": "was ended",
    "interrupted": "was interrupted",
    "refused": "was refused an answer",
    "out of rounds": "used up its rounds",
}
_UNDO: dict[type[Event], str] = {
    events.ResultSpilled: "the whole result is on disk; the preview names its file",
    events.ResultsCleared: "the results stay in the transcript: /export writes them out",
    events.HistoryCompacted: "nothing left the transcript; Ctrl-O or /expand shows the summary",
    events.NotesUpdated: "notes are a file beside the session; the next update rewrites them",
    events.ExtractionEnded: "/memory log shows what was written",
    events.MemoryQuarantined: "/memory review accepts or rejects it",
    events.MemoryRecalled: "/recalled shows why, and forgets it",
    events.WorktreeKept: "git worktree remove takes it away",
}


def find_undo(event: Event) -> str:
    """How to look at what a layer did, or take it back; empty where there is no more to see. A change of
    memories is named, because others may have followed it."""
    change = event.transaction if isinstance(event, events.MemoryChanged | events.DreamEnded) else ""
    if change:
        return f"/memory diff {change} shows it, /memory revert {change} takes it back"
    return _UNDO.get(type(event), "")


def _is_idle(event: Event) -> bool:
    """Whether it tells that nothing came of something, which is the usual case."""
    return isinstance(event, events.ExtractionEnded) and not (event.written or event.waiting or event.refused)
