"""Durable work under asyncio: in a thread, so that an fsync holds up nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def durably(work: Callable[[], T]) -> T:
    """Run `work` in a thread and return what it returns.

    A cancelled caller still waits for the work to end: once it has begun, whether it was acknowledged must
    not be a matter of luck, and nothing may be written after its owner believes that it has stopped.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        task.exception()  # asked for, so that asyncio does not complain that nobody did
        raise cancelled
    return task.result()
