"""Events of the context. Import them from `core.events`.

First session notes and compaction (layers 3 and 4), then the cached prefix.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BreakerOpened:
    """Something automatic failed or helped nothing too often in a row, and is not tried again by itself."""

    breaker: str
    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class BreakerStateLost:
    """What was known about failed compactions could not be read or kept, so that counting starts again."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class CompactionRefused:
    """A hook had a compaction left out. One that is due is asked for again with the next request."""

    trigger: str
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
class HookFailed:
    """A hook failed or took too long: what it would have added is missing, and the rest goes on."""

    hook: str
    reason: str


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
class RestoreSkipped:
    """Something that was in view before a compaction was not put back after it."""

    what: str
    reason: str


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
class WindowLearned:
    """A provider refused a prompt and said what it takes, which is less than was assumed: from now on views
    are cut down before that."""

    model: str
    limit_tokens: int
    """As they are counted here."""
    assumed_tokens: int


@dataclass(frozen=True, slots=True)
class WordsCut:
    """Of something that the user said only the beginning is in view after a compaction, and nothing holds the
    rest: the session is not on disk, or the disk did not take it."""

    size_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
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
class ClearingRefused:
    """A way of clearing old results that settings ask for is not available."""

    setting: str
    reason: str


@dataclass(frozen=True, slots=True)
class CutRegistered:
    """The prefix that was sent before is changed on purpose, from this message of the view on."""

    who: str
    layer: int
    reason: str
    first: int


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
class PrefixBroken:
    """A request differs from the one before it where nobody announced a cut, so that its cache is lost."""

    who: str
    cause: str
    """`model`, `tools`, `system`, `message` or `params`."""
    path: str
    """The first block that differs, or the setting."""
    lost_tokens: int


@dataclass(frozen=True, slots=True)
class PromptTrimmed:
    """The provider leaves out of the prompt what was in it before, as it does on this model: earlier thinking
    once the user speaks, or a message that was for one turn. What follows it is written to the cache anew."""

    who: str
    path: str
    """The first block that differs."""
    lost_tokens: int


@dataclass(frozen=True, slots=True)
class ReplyUnrecorded:
    """An answer of an attached client could not be read along: its caller has it, and it is not booked."""

    reason: str


@dataclass(frozen=True, slots=True)
class RequestPassed:
    """A request of an attached client went through untouched."""

    reason: str


@dataclass(frozen=True, slots=True)
class ProviderClearingEnded:
    """The provider no longer clears the results that it was told to clear."""

    reason: str
    cleared: int
    """Of them, those that are cleared on our side from now on."""
    restored: int
    """Of them, those that are sent whole again."""
    tokens: int
    """Of the results that are sent whole again, estimated."""


@dataclass(frozen=True, slots=True)
class ResultsCleared:
    """Old tool results left the prompt."""

    by: str
    """Who cleared them and how: `provider`, `cache edits`, or the policy by which we did."""
    results: int
    tokens: int
    """Of the results: estimated, or as the provider says; 0 where nobody knows."""
    memories: int = 0
    """Texts of recalled memories that went with them."""
