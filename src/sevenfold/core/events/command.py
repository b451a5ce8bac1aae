"""What happened to commands that an agent ran. Part of the closed union in `core/events.py`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GuardedLeft:
    """A held command made a file that programs obey, and it could not be moved aside: it counts."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class GuardedMoved:
    """A held command made a file that programs obey, such as a repository's hooks: it was moved aside."""

    path: str
    moved_to: str


@dataclass(frozen=True, slots=True)
class SandboxFailed:
    """Commands cannot be held here: those that must be are refused, and others are asked for."""

    profile: str
    """`read-only` or `workspace`."""
    reason: str
