"""What happens in a turn of an agent, as events; `core/events.py` has them in its union."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.messages import ToolUseId


@dataclass(frozen=True, slots=True)
class FrameLost:
    """What a session had been sent with could not be read: it is put together anew, and written to the cache
    anew."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class HooksIgnored:
    """Hooks of a file, or some of them, are not run."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """A tool broke in a way of its own: the model was told so, and the turn goes on."""

    tool: str
    tool_use_id: ToolUseId
    reason: str


@dataclass(frozen=True, slots=True)
class TurnInterrupted:
    """A turn was cut short; what an unfinished answer cost is in no bill of ours."""

    session: str
    rounds: int
    """Answers that had come by then."""
    open_calls: int
    """Tool calls that were under way or waiting, and got a result that says so."""
