"""Events of memories. Import them from `core.events`.

In order: the memory folder, recall, rules and verification, extraction, dreams, and the team's server.
"""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.memories import MemoryUseKind


@dataclass(frozen=True, slots=True)
class IndexCut:
    """The index was over its caps even after folding, so a prompt got a part of it, and was told."""

    lines: int
    reason: str


@dataclass(frozen=True, slots=True)
class MemoryLagged:
    """Files of the memory folder could not be brought up to date with its history, or edits of them not be
    noticed. What is recorded is in use; the next change, and the next who opens the folder, try again."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChanged:
    """A transaction was recorded: memories were written, removed, reverted or accepted."""

    transaction: str
    kind: str
    who: str
    keys: str
    count: int


@dataclass(frozen=True, slots=True)
class MemoryEdited:
    """A file of the memory folder was changed past the engine. The last accepted text stays in use until a
    person looks at it."""

    key: str
    waiting: str


@dataclass(frozen=True, slots=True)
class MemoryPurged:
    """Versions of memories were erased for good, history included."""

    source: str
    versions: int


@dataclass(frozen=True, slots=True)
class MemoryQuarantined:
    """Text that nobody may take at its word waits for a person, outside the memory folder."""

    waiting: str
    key: str
    taint: str
    reason: str


@dataclass(frozen=True, slots=True)
class MemoryRebuilt:
    """The state of the memory folder was read again from its history."""

    reason: str


@dataclass(frozen=True, slots=True)
class MemoryRecovered:
    """A writer died between recording a change and putting its files in place; they were put there now."""

    count: int


@dataclass(frozen=True, slots=True)
class MemoryRefused:
    """A file that lies among the memories is not read."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class MemoryStateMoved:
    """The state of a memory directory (history, uses, dreams, team) was kept with a project before, and is
    kept with the directory from now on."""

    directory: str
    source: str


@dataclass(frozen=True, slots=True)
class MemoryStateUnknown:
    """A memory directory was in use before, and its history is not found: its files wait for a person."""

    directory: str


@dataclass(frozen=True, slots=True)
class UserWideSkipped:
    """What is remembered for all projects could not be opened: a project goes on with its own memories."""

    reason: str


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
class ConditionRefused:
    """What a memory says of when it applies could not be read: it fires on its other conditions alone."""

    memory: str
    condition: str
    reason: str


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
class UsesLost:
    """How often memories were used could not be read or written: counts start again, or lack some."""

    where: str
    reason: str


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
class TeamUnreached:
    """The server did not answer in time: the memories that are here are used, and what is new waits."""

    reason: str
