"""Durable work under asyncio: in a thread, so that an fsync holds up nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, TypeVar

_T = TypeVar("_T")


async def run_blocking(work: Callable[[], _T]) -> _T:
    """Run `work` in a thread and return what it returns.

    A cancelled caller still waits for the work to end: once it has begun, whether it was acknowledged must
    not be a matter of luck, and nothing may be written after its owner believes that it has stopped. If the
    work failed meanwhile, that is the cancellation's cause.
    """
    # A future and no task: a loop that shuts down cancels every task, and would leave the thread behind.
    return await _ended(asyncio.get_running_loop().run_in_executor(None, copy_context().run, work))


async def await_shielded(work: Coroutine[Any, Any, _T]) -> _T:
    """Await work that a cancelled caller still waits for, because half of it would be worse than none."""
    return await _ended(asyncio.ensure_future(work))


async def _ended(future: asyncio.Future[_T]) -> _T:
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled from future.exception()
    return future.result()
