"""What an agent is built from, and the relay that passes its events on."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from sevenfold.agent.hooks.runner import SessionHooks
from sevenfold.agent.loop.turn import LayerActed, OnTurnEvent
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.events import Emit, Event
from sevenfold.core.requests import RequestParams
from sevenfold.layers.context.sources import ContextSource
from sevenfold.providers.provider import Provider
from sevenfold.session import Session

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
        self.pass_on(event)

    def keep_with(self, keep: Emit) -> None:
        """From now on events are kept there too, and those from before there was a session first."""
        while self._unkept:
            keep(self._unkept.popleft())
        self._keep = keep

    def pass_on(self, event: Event) -> None:
        """The same for an event that the session has kept itself."""
        self._emit(event)
        if threading.get_ident() == self._thread:
            self._show(event)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._show(event))

    def show_to(self, watch: OnTurnEvent) -> None:
        """From now on; what happened before anybody watched comes first."""
        self._watch = watch
        while self._unseen:
            watch(LayerActed(self._unseen.popleft()))

    def _show(self, event: Event) -> None:
        if self._watch is None:
            self._unseen.append(event)
        else:
            self._watch(LayerActed(event))


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
    sources: Callable[[], tuple[ContextSource, ...]] | None = None
    """Context that may change from round to round: said where it has."""
    is_child: bool = False
    """Started by another agent: its session is no person's, and hooks hear of its end alone."""


@dataclass(frozen=True, slots=True)
class OpeningMessages:
    """What there is to say when a session begins, or goes on."""

    texts: tuple[str, ...] = ()
    """To the model, beside the first prompt."""
    notices: tuple[str, ...] = ()
    """To the person."""
    posts: tuple[str, ...] = ()
    """In the user's name."""
