"""Concurrent requests: a reply begins only when every request that arrived with it has looked up the cache.

Our replies take no time, a model's first token takes hundreds of milliseconds. Requests that a client sends
concurrently would all miss the provider's cache, so here the first of them waits for the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import timedelta
from typing import TypeAlias

AsgiScope: TypeAlias = MutableMapping[str, object]
AsgiReceive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, object]]]
AsgiSend: TypeAlias = Callable[[MutableMapping[str, object]], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[AsgiScope, AsgiReceive, AsgiSend], Awaitable[None]]
PeerAddress: TypeAlias = object
"""What a connection is known by: the client's address."""

QUIET_PASSES = 8
"""Turns of the loop without anybody new: more than a connection takes from the kernel to its first line."""
ARRIVAL_GRACE_SECONDS = 0.02
"""Quiet that is waited for where others may follow: between threads that share an interpreter, a request may
be several milliseconds behind."""
LONE_GRACE_SECONDS = 0.002
"""The same where nobody is likely to follow: on a connection that is used again and was always alone."""
MAX_ARRIVAL_SECONDS = 1.0
"""However many come, nobody waits longer; a connection that has said nothing by then is given up."""
ARRIVAL_POLL_SECONDS = 0.001


class ArrivalBarrier:
    """Belongs to the loop that serves."""

    __slots__ = ("_arrived", "_at", "_busy", "_fresh", "_looking", "_newcomers", "_partners")

    def __init__(self) -> None:
        self._fresh: set[PeerAddress] = set()
        """Connections that have sent nothing yet."""
        self._busy: dict[object, PeerAddress] = {}
        """The connection of each request that is being served, by its task."""
        self._looking: set[object] = set()
        """Requests that are not looked up yet."""
        self._newcomers: set[object] = set()
        """Requests that are the first of their connection."""
        self._partners: set[PeerAddress] = set()
        """Connections of clients that have had several requests open at once."""
        self._arrived = 0
        self._at = float("-inf")

    def connect(self, peer: PeerAddress) -> None:
        self._fresh.add(peer)
        self._mark()

    def disconnect(self, peer: PeerAddress) -> None:
        self._fresh.discard(peer)
        self._partners.discard(peer)

    def looked_up(self) -> None:
        """The request of the running task has seen the cache, or never will."""
        self._looking.discard(asyncio.current_task())

    async def pause(self, delay: timedelta) -> None:
        """Wait this long, and hold nobody up."""
        if delay:
            self.looked_up()
            await asyncio.sleep(delay.total_seconds())

    async def settle(self, first_token: timedelta) -> None:
        """Wait until nobody is on the way, and at least this long."""
        self.looked_up()
        loop = asyncio.get_running_loop()
        start = loop.time()
        while not await self._is_quiet(start):
            if loop.time() >= start + MAX_ARRIVAL_SECONDS:
                self._fresh.clear()
                break
        await asyncio.sleep(max(0.0, first_token.total_seconds() - (loop.time() - start)))

    async def _is_quiet(self, start: float) -> bool:
        """Whether nobody is on the way: nobody has come for a while, and the kernel has nobody either."""
        # Looking up may have taken all the time, and the interpreter with it: others get some after it.
        left = max(start + LONE_GRACE_SECONDS, self._at + self._grace()) - asyncio.get_running_loop().time()
        if left > 0 or self._is_expecting():
            await asyncio.sleep(
                ARRIVAL_POLL_SECONDS if self._is_expecting() else max(left, ARRIVAL_POLL_SECONDS)
            )
            return False
        before = self._arrived
        for _ in range(QUIET_PASSES):
            await asyncio.sleep(0)
        return self._arrived == before and not self._is_expecting()

    def watch(self, app: AsgiApp) -> AsgiApp:
        """The application, its requests counted as they come and go."""

        async def watched(scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
            task = asyncio.current_task()
            self._enter(task, scope.get("client"))

            async def sent(message: MutableMapping[str, object]) -> None:
                # Whoever answers has nothing left to look up, and may take long over it.
                self._looking.discard(task)
                await send(message)

            try:
                await app(scope, receive, sent)
            finally:
                self._busy.pop(task, None)
                self._looking.discard(task)
                self._newcomers.discard(task)

        return watched

    def _enter(self, task: object, peer: PeerAddress) -> None:
        if peer in self._fresh:
            self._fresh.discard(peer)
            self._newcomers.add(task)
        self._busy[task] = peer
        self._looking.add(task)
        if len(self._busy) > 1:
            self._partners.update(self._busy.values())
        self._mark()

    def _grace(self) -> float:
        return ARRIVAL_GRACE_SECONDS if self._may_have_company() else LONE_GRACE_SECONDS

    def _may_have_company(self) -> bool:
        """Whether the client is one that may send more at once: a new one, or one that has done so before."""
        task = asyncio.current_task()
        if task in self._newcomers:
            return True
        return self._busy.get(task) in self._partners and not self._partners <= set(self._busy.values())

    def _is_expecting(self) -> bool:
        return bool(self._fresh or self._looking)

    def _mark(self) -> None:
        self._arrived += 1
        self._at = asyncio.get_running_loop().time()
