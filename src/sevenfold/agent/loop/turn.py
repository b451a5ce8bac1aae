"""A turn: the events that it emits, its state while it runs, and how it ended.

Listeners only observe: nothing they do changes a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sevenfold.agent.tool import ToolEnded, ToolEvent, ToolPrinted, ToolStarted
from sevenfold.agent.tools.executor import ToolBatch
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import Event
from sevenfold.core.messages import ToolUse
from sevenfold.core.requests import ModelResponse
from sevenfold.providers.provider import Delta, TextDelta

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


TurnEndReason: TypeAlias = Literal["answered", "interrupted", "refused", "failed", "out of rounds"]
"""`refused`: by the model, or by a hook before it was asked. `failed`: see the error."""

TRUNCATED_STOPS = frozenset({"max_tokens", "model_context_window_exceeded"})
"""Reasons to stop that cut an answer short."""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    text: str
    """Of the last answer; of a refused prompt, why."""
    rounds: int
    reason: TurnEndReason
    error: SevenfoldError | None = None


@dataclass(slots=True, kw_only=True)
class TurnState:
    """What has happened of a turn so far."""

    watch: OnTurnEvent = ignore_turn_event
    rounds: int = 0
    text: str = ""
    """Of the last whole answer."""
    half: list[str] = field(default_factory=list[str])
    """What has come of an answer that is not whole yet."""
    answers: ToolBatch | None = None
    """Of the calls that are being run."""
    continued: int = 0
    """How often the turn went on after an answer that was cut short."""
    stops_refused: int = 0
    """How often hooks had the turn go on."""

    def hear(self, delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            self.half.append(delta.text)
        self.watch(DeltaReceived(delta))

    def notice(self, *texts: str) -> None:
        for text in texts:
            self.watch(NoticePosted(text))

    def end(self, reason: TurnEndReason, error: SevenfoldError | None = None) -> TurnEnd:
        return TurnEnd(self.text, self.rounds, reason, error)


def select_complete_calls(reply: ModelResponse) -> tuple[ToolUse, ...]:
    """Those that were meant: an answer that was cut short may hold half a file in its last call, and one that
    was broken off as a refusal is not to be acted on."""
    if reply.stop_reason == "refusal":
        return ()
    return reply.tool_uses[:-1] if reply.stop_reason in TRUNCATED_STOPS else reply.tool_uses
