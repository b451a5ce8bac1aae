"""Events of the memory folder. Import them from `core.events`."""

from __future__ import annotations

from dataclasses import dataclass


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
class ConditionRefused:
    """What a memory says of when it applies could not be read: it fires on its other conditions alone."""

    memory: str
    condition: str
    reason: str


@dataclass(frozen=True, slots=True)
class UsesLost:
    """How often memories were used could not be read or written: counts start again, or lack some."""

    where: str
    reason: str
