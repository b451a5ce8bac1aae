"""Dreams as events; `core/events.py` has them in its union."""

from __future__ import annotations

from dataclasses import dataclass


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
