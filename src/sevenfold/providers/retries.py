"""Sends a request again after a failure that may pass. Each wait is an event, and none is long.

The SDKs would wait as long as an endpoint asks, in silence; so they are told not to retry, and this does.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from sevenfold.core.errors import Overloaded, ProviderError, ProviderUnreachable, RateLimited
from sevenfold.core.events import Emit, RetryScheduled, ignore_event

MAX_WAIT_SECONDS = 60.0
"""For all retries of one request. Who is asked to wait longer is told so, and decides."""

_FIRST_DELAY, _MAX_DELAY = 0.5, 8.0
_CONFLICT = 409
"""The SDKs try again after a lock that was not had."""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How a provider waits, and who is told."""

    emit: Emit = ignore_event
    stall: timedelta = timedelta(minutes=5)
    """How long an answer may bring nothing new."""
    unstreamed: timedelta = timedelta(minutes=10)
    """How long an answer may take that comes whole: what the SDKs wait."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Cancelled with the request."""


DEFAULT_CALL_OPTIONS = CallOptions()


async def send_with_retries(
    attempt: Callable[[], Awaitable[_Answer]], model: str, max_retries: int, options: CallOptions
) -> _Answer:
    """The answer, or the error of the last attempt. Nothing is sent again once an answer has begun."""
    left = MAX_WAIT_SECONDS
    for retry in range(max_retries):
        try:
            return await attempt()
        except ProviderError as error:
            wait = plan_wait(error, retry, left)
            if wait is None:
                raise
            left -= wait
            options.emit(
                RetryScheduled(
                    model=model,
                    retry=retry + 1,
                    of=max_retries,
                    seconds=round(wait, 1),
                    reason=_first_line(error),
                )
            )
            await options.sleep(wait)
    return await attempt()


def plan_wait(error: ProviderError, retry: int, left_seconds: float) -> float | None:
    """How long to wait before the next attempt; None: no attempt would help, or not within the limit."""
    if error.should_retry is False or not (error.should_retry or _may_pass(error)):
        return None
    asked = error.retry_after
    if asked is not None and asked > timedelta():
        seconds = asked.total_seconds()
        return seconds if seconds <= left_seconds else None
    # Several clients that failed together do not come back together.
    delay = min(_FIRST_DELAY * 2.0**retry, _MAX_DELAY) * (1 - 0.25 * random.random())
    return delay if delay <= left_seconds else None


def _may_pass(error: ProviderError) -> bool:
    return isinstance(error, RateLimited | Overloaded | ProviderUnreachable) or error.status == _CONFLICT


def _first_line(error: ProviderError) -> str:
    return (str(error).partition("\n")[0] or type(error).__name__)[:200]
