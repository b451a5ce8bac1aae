"""What a face is shown of a turn while it runs. Faces only watch: nothing here changes what happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from sevenfold.core.events import Event
from sevenfold.core.messages import ToolUse
from sevenfold.core.requests import Reply
from sevenfold.providers.provider import Delta
from sevenfold.run.tool import ToolOutput


@dataclass(frozen=True, slots=True)
class Streamed:
    """More of an answer came."""

    delta: Delta


@dataclass(frozen=True, slots=True)
class ToolStarted:
    use: ToolUse
    said: str
    """The call in one line."""


@dataclass(frozen=True, slots=True)
class ToolPrinted:
    """A running tool printed something."""

    use: ToolUse
    text: str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    use: ToolUse
    output: ToolOutput
    took: timedelta


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


Seen: TypeAlias = Streamed | ToolStarted | ToolPrinted | ToolEnded | RoundEnded | LayerActed | Noticed
Watch: TypeAlias = Callable[[Seen], None]


def unwatched(seen: Seen) -> None:
    """For a turn that nobody watches."""
