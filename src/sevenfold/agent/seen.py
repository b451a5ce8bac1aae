"""What a face is shown of a turn while it runs. Faces only watch: nothing here changes what happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sevenfold.core.events import Event
from sevenfold.core.requests import Reply
from sevenfold.providers.provider import Delta
from sevenfold.run.tool_seen import ToolEnded, ToolPrinted, ToolSeen, ToolStarted

__all__ = [
    "LayerActed",
    "Noticed",
    "RoundEnded",
    "Seen",
    "Streamed",
    "ToolEnded",
    "ToolPrinted",
    "ToolStarted",
    "Watch",
    "unwatched",
]


@dataclass(frozen=True, slots=True)
class Streamed:
    """More of an answer came."""

    delta: Delta


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """One model call is over: its answer, how full the window is now, and what the session cost so far."""

    reply: Reply
    context_tokens: int
    limit_tokens: int
    spent_usd: float | None
    """None: the model has no known price."""


@dataclass(frozen=True, slots=True)
class LayerActed:
    """A layer, a writer or a fork did something: any event of the engine."""

    event: Event


@dataclass(frozen=True, slots=True)
class Noticed:
    """A line for the person: a background agent ended, mail came, a hook said something."""

    text: str
    is_warning: bool = False


Seen: TypeAlias = Streamed | ToolSeen | RoundEnded | LayerActed | Noticed
Watch: TypeAlias = Callable[[Seen], None]


def unwatched(seen: Seen) -> None:
    """For a turn that nobody watches."""
