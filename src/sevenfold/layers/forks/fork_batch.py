"""Forks that start together: where the prefix is not in the provider's cache, one goes first and writes it.

The others wait for its first token, by which time the prefix can be read; then each pays for its own words
alone. With a warm cache nobody waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from sevenfold.core.requests import ModelRequest
from sevenfold.providers.provider import OnDelta

WARM_LIFETIME = timedelta(minutes=4)
"""How long after its request a prefix is surely still cached, of the five minutes that it lives at least."""


def is_prefix_warm(parent: ModelRequest, since: timedelta) -> bool:
    """Whether what a request sent that long ago can still be read."""
    marks = parent.breakpoints
    if not marks and "cache_control" not in parent.frame.params:
        return True  # nothing is cached here, or all by itself: waiting would help nobody
    longest = max((mark.ttl for mark in marks), default=timedelta(minutes=5))
    return since < longest * (WARM_LIFETIME / timedelta(minutes=5))


class ForkBatch:
    """Forks of one parent that were asked for together."""

    def __init__(self) -> None:
        self._leader: asyncio.Event | None = None

    @asynccontextmanager
    async def joined(self, *, warm: bool) -> AsyncGenerator[OnDelta | None]:
        """When the prefix can be read. Whoever is first is given what to call at each token."""
        while not warm and self._leader is not None and not self._leader.is_set():
            await self._leader.wait()
        if warm or self._leader is not None:
            yield None
            return
        leader = self._leader = asyncio.Event()
        try:
            yield lambda _delta: leader.set()
        finally:
            if not leader.is_set():
                # It ended without a token: somebody else goes first.
                self._leader = None
                leader.set()
