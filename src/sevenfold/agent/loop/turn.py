"""A turn: the events that it emits, its state while it runs, and how it ended.

`EventRelay` passes events on; listeners only observe, and nothing they do changes a turn. `LoopGuard` notices
that a model makes the same failing call again and again. `AgentDeps` is what an agent is built from.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Literal, TypeAlias

from sevenfold.agent.hooks.runner import SessionHooks
from sevenfold.agent.tool import ToolEnded, ToolEvent, ToolPrinted, ToolStarted
from sevenfold.agent.tools.executor import ToolBatch, ToolExecutor
from sevenfold.core.errors import LoopStopped, SevenfoldError
from sevenfold.core.events import Emit, Event
from sevenfold.core.json import write_json
from sevenfold.core.messages import ToolUse
from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.core.requests import ModelResponse, RequestParams
from sevenfold.layers.context import ContextSource
from sevenfold.providers.provider import Delta, Provider, TextDelta
from sevenfold.session import Session

MAX_EQUAL_FAILURES = 5
"""A model that got the same error five times for the same call has not understood it."""


MAX_FAILED_ANSWERS = 20
"""A model that changes a name or a number each time gets no further either. In real sessions a handful of
answers fails in a row, while it looks for a file or corrects an edit."""


MAX_PAUSES = 50
"""A pause comes after ten steps of a tool that the provider runs: five hundred steps are no answer's work."""


@dataclass(frozen=True, slots=True)
class CallLoop:
    """Calls that get no further."""

    use: ToolUse
    count: int
    said: str


@dataclass(slots=True)
class LoopGuard:
    """Counts equal failing calls since something new succeeded: a test that fails again after each edit is
    work, and the same without any is not. Also counts answers of which every call failed."""

    _failures: Counter[bytes] = field(default_factory=Counter[bytes])
    _succeeded: set[bytes] = field(default_factory=set[bytes])
    _failed_answers: int = 0

    def find_loop(self, answers: ToolBatch) -> CallLoop | None:
        """Take in the calls of an answer; the last of those that have failed too often, if there are any."""
        repeated = self._find_repeated(answers)
        known = [use for use in answers.uses if use.id in answers.outputs]
        has_failed = bool(known) and all(answers.outputs[use.id].is_error for use in known)
        self._failed_answers = self._failed_answers + 1 if has_failed else 0
        if repeated:
            said = f"made the same call of {repeated.name!r:.80} {MAX_EQUAL_FAILURES} times in this turn"
            return CallLoop(repeated, MAX_EQUAL_FAILURES, f"{said}, and it failed each time")
        if self._failed_answers >= MAX_FAILED_ANSWERS:
            said = f"called tools in {self._failed_answers} answers in a row, and every call failed"
            return CallLoop(known[-1], self._failed_answers, said)
        return None

    def _find_repeated(self, answers: ToolBatch) -> ToolUse | None:
        found: ToolUse | None = None
        for use in answers.uses:
            output, key = answers.outputs.get(use.id), _digest(use)
            if output is None:
                continue
            if output.is_error:
                self._failures[key] += 1
                found = use if self._failures[key] >= MAX_EQUAL_FAILURES else found
            elif key not in self._succeeded:
                self._succeeded.add(key)
                self._failures.clear()
                found = None
        return found

    def reset(self) -> None:
        """Start counting again: a person wants the model to continue."""
        self._failures.clear()
        self._failed_answers = 0


def _digest(use: ToolUse) -> bytes:
    """A digest of the tool and its input, without the id, which differs with every call."""
    return blake2b(use.name.encode() + b"\0" + write_json(use.input), digest_size=16).digest()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundEnded:
    """One model call is over: its answer, how full the window is now, and what the session cost so far."""

    reply: ModelResponse
    context_tokens: int
    limit_tokens: int
    spent_usd: float | None
    """None: the model has no known price."""
    started: datetime | None = None
    """When its request was sent: what it left in the provider's cache lives from then."""


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
    """The callback of a turn without a listener."""


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
    partial_text: list[str] = field(default_factory=list[str])
    """The part of an answer that has come so far."""
    tool_batch: ToolBatch | None = None
    """Of the calls that are being run."""
    continuations: int = 0
    """How often the turn went on after an answer that was cut short."""
    stops_refused: int = 0
    """How often hooks continued the turn."""
    pauses: int = 0
    """How many answers in a row ended in a pause."""
    loop_guard: LoopGuard = field(default_factory=LoopGuard)

    def add_delta(self, delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            self.partial_text.append(delta.text)
        self.watch(DeltaReceived(delta))

    def count_pause(self, *, is_paused: bool) -> None:
        """Raise `LoopStopped` where a provider pauses answer after answer: each costs the whole prompt."""
        self.pauses = self.pauses + 1 if is_paused else 0
        if self.pauses >= MAX_PAUSES:
            raise LoopStopped(
                f"the provider paused {self.pauses} answers in a row; say what to do instead, or check its "
                "address"
            )

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


# Events go to the caller that opened the agent, to the user interface, and to the session's log.
MAX_UNSEEN_EVENTS = 200
"""Events from before a user interface is attached, for it to show: opening an agent emits a dozen at most."""


class EventRelay:
    """An `Emit`. The user interface is called on the event loop, whichever thread emitted the event."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._watch: OnTurnEvent | None = None
        self._unseen: deque[Event] = deque(maxlen=MAX_UNSEEN_EVENTS)
        self._keep: Emit | None = None
        self._unkept: deque[Event] = deque(maxlen=MAX_UNSEEN_EVENTS)

    def __call__(self, event: Event) -> None:
        if self._keep is None:
            self._unkept.append(event)
        else:
            self._keep(event)
        self.forward(event)

    def log_to(self, keep: Emit) -> None:
        """From now on events are kept there too, and those from before there was a session first."""
        while self._unkept:
            keep(self._unkept.popleft())
        self._keep = keep

    def forward(self, event: Event) -> None:
        """The same for an event that the session has kept itself."""
        self._emit(event)
        if threading.get_ident() == self._thread:
            self._show(event)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._show(event))

    def set_watcher(self, watch: OnTurnEvent) -> None:
        """From now on; what happened before anybody watched comes first."""
        self._watch = watch
        while self._unseen:
            watch(LayerActed(self._unseen.popleft()))

    def _show(self, event: Event) -> None:
        if self._watch is None:
            self._unseen.append(event)
        else:
            self._watch(LayerActed(event))


ReadSources: TypeAlias = Callable[[], tuple[ContextSource, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDeps:
    """What an agent works with."""

    session: Session
    toolbox: ToolExecutor
    provider: Provider
    frame: RequestParams
    relay: EventRelay
    hooks: SessionHooks
    exits: AsyncExitStack
    """Closed with the agent: its session last but for what that needs."""
    keep: Callable[[RequestParams], Awaitable[bool]]
    """Store request parameters for when the session is resumed; False, and reported, where that fails."""
    kept: RequestParams | None
    """What is written down already."""
    catalog: Catalog = CATALOG
    thinks: bool = True
    """Whether models that can are asked to."""
    max_rounds: int = 500
    sources: tuple[ReadSources, ...] = ()
    """Context that may change from round to round: said where it has."""
    is_child: bool = False
    """Started by another agent: its session belongs to no person, and hooks run only at its end."""


@dataclass(frozen=True, slots=True)
class OpeningMessages:
    """What to say when a session begins or continues."""

    texts: tuple[str, ...] = ()
    """To the model, beside the first prompt."""
    notices: tuple[str, ...] = ()
    """To the person."""
    posts: tuple[str, ...] = ()
    """In the user's name."""
