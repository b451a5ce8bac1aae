"""Forks and writers at work, as events; `core/events.py` has them in its union."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.messages import ToolUseId


@dataclass(frozen=True, slots=True, kw_only=True)
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
class ToolDenied:
    """A tool call was not allowed: by a fork's brief, a rule, a mode, a hook or a person."""

    who: str
    tool: str
    tool_use_id: ToolUseId
    reason: str


@dataclass(frozen=True, slots=True)
class WriterFailed:
    """A background job failed or had to be stopped: its work is lost, and nothing else is."""

    writer: str
    reason: str
