"""What every operation works with: the database without blocking the loop, limits, time, and the scan."""

from __future__ import annotations

import asyncio
from asyncio import Semaphore, wrap_future
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from weakref import WeakValueDictionary

from sevenfold.core.clock import Clock
from sevenfold.server.database import Database, OrgId, Tx
from sevenfold.server.forge import Forge
from sevenfold.server.limits import Limits
from sevenfold.server.refusals import Refusal
from sevenfold.server.rights import Principal
from sevenfold.server.scanning import check_secrets, key_of_org, read_allowances, read_fingerprint_key

T = TypeVar("T")

SCANS_AT_ONCE = 2
"""They are all computing; more would only take turns."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request that may be carried out: who, what, and with which words."""

    principal: Principal | None
    repo: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    places: Mapping[str, str]
    """What stands for the names in the path."""
    body: object
    raw_bytes: int

    @property
    def who(self) -> Principal:
        assert self.principal is not None
        return self.principal


@dataclass(frozen=True, slots=True)
class Answer:
    body: object
    """A value of `messages`, text, or None for no body at all."""
    status: int = 200
    etag: int | None = None


class Desk:
    def __init__(self, database: Database, limits: Limits, clock: Clock, forge: Forge | None = None) -> None:
        self.limits, self.clock, self.forge = limits, clock, forge
        self._database = database
        self._turns: WeakValueDictionary[str, Semaphore] = WeakValueDictionary()
        self._scans = Semaphore(SCANS_AT_ONCE)
        self._waiting = 0
        self._key = database.write(None, read_fingerprint_key).result()

    @property
    def now_ms(self) -> int:
        return int(self.clock.now().timestamp() * 1000)

    @property
    def waiting(self) -> int:
        """Transactions under way or in line."""
        return self._waiting

    async def read(self, org: OrgId | None, work: Callable[[Tx], T]) -> T:
        return await self._take_turn(org or "", lambda: self._database.read(org, work))

    async def look(self, org: OrgId, work: Callable[[Tx], T], *, turn: str | None = None) -> T:
        """Read some rows by their keys. `turn`: in whose line to wait, if not the organisation's own."""
        return await self._take_turn(turn or org, lambda: self._database.read(org, work, quick=True))

    async def write(self, org: OrgId | None, work: Callable[[Tx], T]) -> T:
        return await self._take_turn(org or "", lambda: self._database.write(org, work))

    async def check_secrets(self, org: OrgId, texts: Mapping[str, str]) -> None:
        allowances = await self.look(org, lambda tx: read_allowances(tx, org))
        key = key_of_org(self._key, org)
        # Behind its own organisation's first, so that a hundred texts of one are not before all others'.
        async with self._turn(f"scan {org}", SCANS_AT_ONCE), self._scans:
            await asyncio.to_thread(check_secrets, texts, key, allowances)

    def _turn(self, line: str, at_once: int) -> Semaphore:
        """It is forgotten as soon as nobody waits for it."""
        turn = self._turns.get(line)
        if turn is None:
            self._turns[line] = turn = Semaphore(at_once)
        return turn

    async def _take_turn(self, line: str, start: Callable[[], Future[T]]) -> T:
        """An organisation waits for its own turn, so that it cannot fill the line of all."""
        if self._waiting >= self.limits.waiting:
            raise Refusal(
                503,
                "not ready",
                f"{self._waiting:,} requests wait for the database",
                "ask again after the seconds in Retry-After",
                retry=True,
                retry_after_seconds=2,
            )
        self._waiting += 1
        try:
            async with self._turn(line, self.limits.at_once):
                future = start()
                return future.result() if future.done() else await wrap_future(future)
        finally:
            self._waiting -= 1


def spell_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
