"""Events of what is made of memories. Import them from `core.events`.

In order: recall, rules and verification, extraction, dreams, and the team's server.
"""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.memories import MemoryUseKind


@dataclass(frozen=True, slots=True)
class IndexRebuilt:
    """What was computed about memories could not be read, and is computed again from their files."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecalled:
    """A memory was put before the model because the prompt seemed to be about it."""

    key: str
    percent: int
    """How well it fits, as far as that can be told; 100 is its own words."""
    ranked_by: str
    size_bytes: int
    is_late: bool
    """It was not found in time for its own prompt, and came with a later request."""


@dataclass(frozen=True, slots=True)
class RecallSkipped:
    """Nothing was recalled for a prompt, or less than there may be, and not because nothing fitted."""

    reason: str


@dataclass(frozen=True, slots=True)
class VectorsUnused:
    """Memories are found by their words alone though searching by meaning is set up."""

    reason: str


@dataclass(frozen=True, slots=True)
class ClaimsBroken:
    """A recalled memory names things that could not be found in the project; the model is told so."""

    memory: str
    claims: str
    """Between commas."""


@dataclass(frozen=True, slots=True)
class RuleAnswered:
    """What became of an action that a rule was shown before."""

    memory: str
    outcome: MemoryUseKind


@dataclass(frozen=True, slots=True)
class RulesSkipped:
    """Memories could not be read, so that no rule was shown before a call."""

    tool: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleShown:
    """A memory was put before the model because an action was about to need it."""

    memory: str
    condition: str
    tool: str
    tool_use_id: str
    is_held: bool
    """The call waits until it is repeated; False: the text came with its result."""


@dataclass(frozen=True, slots=True)
class DraftRefused:
    """A check refused what a writer wanted to remember."""

    session: str
    key: str
    rule: str
    """Why, in a word: `secret`, `duplicate`, `task state`, …"""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionEnded:
    """A turn was looked through for what is worth remembering."""

    session: str
    writer: str
    """`model`, or `rules`."""
    written: int
    waiting: int
    """Memories that are not the user's own words, and wait for a person."""
    refused: int


@dataclass(frozen=True, slots=True)
class ExtractionSkipped:
    """A turn was not looked through, or what was found in it is lost."""

    session: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamEnded:
    """A dream is over."""

    dream: str
    outcome: str
    """`completed`, `unchanged`, `refused`, `failed`, or `killed`."""
    reason: str
    changed: int
    removed: int
    archived: int
    waiting: int
    """Changes that a person has to accept."""
    transaction: str


@dataclass(frozen=True, slots=True)
class DreamDegraded:
    """A dream goes on without a model: duplicates, dates and stale memories need none."""

    dream: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamProgressed:
    """A dream took a step. It is `starting` until it first changes its copy, then `updating`."""

    dream: str
    state: str
    step: str
    tools: int
    touched: int


@dataclass(frozen=True, slots=True)
class DreamSkipped:
    """A dream was due, or was asked for, and did not begin."""

    reason: str


@dataclass(frozen=True, slots=True)
class DreamSpared:
    """A dream left memories as they are: they were edited meanwhile, or what it made of them would not do."""

    dream: str
    keys: str
    reason: str


@dataclass(frozen=True, slots=True)
class DreamStarted:
    """A dream began, with so many memories in its copy."""

    dream: str
    writer: str
    """`model`, or `mechanical`: without one."""
    memories: int


@dataclass(frozen=True, slots=True)
class TeamConflicted:
    """Two people changed one memory in a way that does not merge: the other text has the key, this one the
    copy, and both are shared."""

    key: str
    copy: str


@dataclass(frozen=True, slots=True)
class TeamEntryRefused:
    """Something that the server sent was not taken: its name, its size or its checksum is wrong."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class TeamFileHeld:
    """A file of the team's folder is not shared for now."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class TeamSecretBlocked:
    """A text with something like a secret in it was not sent."""

    key: str
    reason: str
    """Rule and line; never the value."""


@dataclass(frozen=True, slots=True)
class TeamStopped:
    """The server refuses for good: nothing is sent again until a file or the token changes."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamSynced:
    """What an exchange with the server did."""

    taken: int
    dropped: int
    merged: int
    sent: int
    deleted: int


@dataclass(frozen=True, slots=True)
class TeamTextKept:
    """One deleted a memory and another changed or wrote it, or the server had lost it: the text was kept."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class TeamVersionLost:
    """The server has no record of a version that it had acknowledged: it was set back, to a backup say. The
    text from here is sent again, or kept beside what is there now."""

    key: str
    version: int


@dataclass(frozen=True, slots=True)
class TeamDeletionLost:
    """The server has a text again that was deleted for all: it was set back. The text is here again, too."""

    key: str
    version: int


@dataclass(frozen=True, slots=True)
class TeamUnreached:
    """The server did not answer in time: the memories that are here are used, and what is new waits."""

    reason: str
