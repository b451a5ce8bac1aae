"""Runs one job at a time. A request during a run waits; a newer request replaces it, and one run follows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from sevenfold.core.events import Emit, WriterFailed, ignore_event

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[_T]):
    """Apart from the request itself, which may be None."""

    request: _T


class SingleFlight(Generic[_T]):
    """Runs a job for the newest request. Exceptions of a run do not reach the caller."""

    def __init__(self, name: str, run: Callable[[_T], Awaitable[None]], *, emit: Emit = ignore_event) -> None:
        self._name = name
        self._run = run
        self._emit = emit
        self._task: asyncio.Task[None] | None = None
        self._waiting: _Waiting[_T] | None = None
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def ask(self, request: _T) -> None:
        """Start a run, or have one follow the run under way. Returns at once."""
        if self._is_closed:
            return
        self._waiting = _Waiting(request)
        if not self.is_running:
            self._task = asyncio.get_running_loop().create_task(self._work(), name=self._name)

    async def settle(self, limit: timedelta) -> bool:
        """Wait for all that was asked for; whether it came to its end within the limit. Stops nothing."""
        task = self._task
        if task is not None and not task.done():
            await asyncio.wait({task}, timeout=limit.total_seconds())
        return not self.is_running

    async def close(self, limit: timedelta) -> bool:
        """Take no more requests, wait for a bounded time, then stop what still runs."""
        self._is_closed = True
        if await self.settle(limit):
            return True
        self._waiting = None
        if self._task is not None:
            self._task.cancel()
            # A write that has begun is let end; it is bounded too, for the disk may hang.
            await asyncio.wait({self._task}, timeout=limit.total_seconds())
        self._emit(
            WriterFailed(self._name, f"stopped: it still ran {limit.total_seconds():g} s after closing")
        )
        return False

    async def _work(self) -> None:
        while (waiting := self._waiting) is not None:
            self._waiting = None
            try:
                await self._run(waiting.request)
            except Exception as error:
                # Whatever a writer raises costs its own work alone.
                self._emit(WriterFailed(self._name, f"{type(error).__name__}: {error}"))
