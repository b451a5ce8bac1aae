"""What a face is shown of a turn while it runs. Faces only watch: nothing here changes what happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sevenfold.agent.tool_events import ToolEnded, ToolEvent, ToolPrinted, ToolStarted
from sevenfold.core.events import Event
from sevenfold.core.requests import ModelResponse
from sevenfold.providers.provider import Delta

__all__ = [
    "DeltaReceived",
    "LayerActed",
    "NoticePosted",
    "OnTurnEvent",
    "RoundEnded",
    "ToolEnded",
    "ToolPrinted",
    "ToolStarted",
    "TurnEvent",
    "ignore_turn_event",
]


@dataclass(frozen=True, slots=True)
class DeltaReceived:
    """More of an answer came."""

    delta: Delta


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """One model call is over: its answer, how full the window is now, and what the session cost so far."""

    reply: ModelResponse
    context_tokens: int
    limit_tokens: int
    spent_usd: float | None
    """None: the model has no known price."""


@dataclass(frozen=True, slots=True)
class LayerActed:
    """A layer, a writer or a fork did something: any event of the engine."""

    event: Event


@dataclass(frozen=True, slots=True)
class NoticePosted:
    """A line for the person: a background agent ended, mail came, a hook said something."""

    text: str
    is_warning: bool = False


TurnEvent: TypeAlias = DeltaReceived | ToolEvent | RoundEnded | LayerActed | NoticePosted
OnTurnEvent: TypeAlias = Callable[[TurnEvent], None]


def ignore_turn_event(seen: TurnEvent) -> None:
    """For a turn that nobody watches."""
