"""What recall did, as events; `core/events.py` has them in its union."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexRebuilt:
    """What was computed about memories could not be read, and is computed anew from their files."""

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
