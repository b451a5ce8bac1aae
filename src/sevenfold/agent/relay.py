"""Where the events of an agent go: to whoever opened it, and to the face that watches."""

from __future__ import annotations

import asyncio
import threading

from sevenfold.agent.seen import LayerActed, Watch, unwatched
from sevenfold.core.events import Emit, Event


class Relay:
    """An `Emit`. A face is told on the loop, whichever thread an event happened in."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self.watch: Watch = unwatched

    def __call__(self, event: Event) -> None:
        self._emit(event)
        if threading.get_ident() == self._thread:
            self.watch(LayerActed(event))
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self.watch(LayerActed(event)))
