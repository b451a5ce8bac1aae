"""What every operation works with: the database without blocking the loop, limits, time, and the scan."""

from __future__ import annotations

from asyncio import Semaphore, wrap_future
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar
from weakref import WeakValueDictionary

from sevenfold.core.clock import Clock
from sevenfold.team.server.api_errors import ApiError
from sevenfold.team.server.database import Database, OrgId, Tx
from sevenfold.team.server.forge import Forge
from sevenfold.team.server.limits import ServerLimits
from sevenfold.team.server.people import check_principal
from sevenfold.team.server.rights import Principal
from sevenfold.team.server.scanners import SecretScanners
from sevenfold.team.server.scanning import key_of_org, read_allowances, read_fingerprint_key, refuse_blocked

_T = TypeVar("_T")

RowOwner: TypeAlias = Principal | OrgId | None
"""Whose rows a transaction is about: a principal's, who must still be one; an organisation's; nobody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
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
class ApiResponse:
    body: object
    """A value of `messages`, text, or None for no body at all."""
    status: int = 200
    etag: int | None = None


class AppState:
    def __init__(
        self, database: Database, limits: ServerLimits, clock: Clock, forge: Forge | None = None
    ) -> None:
        self.limits, self.clock, self.forge = limits, clock, forge
        self._database = database
        self._turns: WeakValueDictionary[str, _Turns] = WeakValueDictionary()
        self._scanners = SecretScanners()
        self._waiting = 0
        self._key = database.write(None, read_fingerprint_key).result()

    @property
    def now_ms(self) -> int:
        return int(self.clock.now().timestamp() * 1000)

    @property
    def waiting(self) -> int:
        """Requests under way or in line."""
        return self._waiting

    async def read(self, who: RowOwner, work: Callable[[Tx], _T]) -> _T:
        return await _result(self._database.read(_org_of(who), self._checked(who, work)))

    async def look(self, who: RowOwner, work: Callable[[Tx], _T]) -> _T:
        """Read some rows by their keys."""
        return await _result(self._database.read(_org_of(who), self._checked(who, work), quick=True))

    async def write(self, who: RowOwner, work: Callable[[Tx], _T]) -> _T:
        return await _result(self._database.write(_org_of(who), self._checked(who, work)))

    @asynccontextmanager
    async def turn(self, line: str) -> AsyncGenerator[None]:
        """A place among the few requests of one line that are carried out at once. Each organisation has a
        line, so that however many it sends, another's request meets only those few."""
        turns = self._turns.get(line)
        if turns is None:  # it is forgotten as soon as nobody waits for it
            self._turns[line] = turns = _Turns(Semaphore(self.limits.at_once))
        if self._waiting >= self.limits.waiting or turns.waiting >= self.limits.org_waiting:
            raise ApiError(
                status=503,
                kind="not ready",
                message="too many requests wait for their turn",
                advice="ask again after the seconds in Retry-After",
                retry=True,
                retry_after_seconds=2,
            )
        self._waiting += 1
        turns.waiting += 1
        try:
            async with turns.free:
                yield
        finally:
            self._waiting -= 1
            turns.waiting -= 1

    async def check_secrets(self, who: Principal, texts: Mapping[str, str]) -> None:
        """`Refusal` 422 for what seems to hold a secret that nobody has allowed."""
        org, key = who.org, key_of_org(self._key, who.org)
        blocked = await self._scanners.find(org, texts, key, ())
        if blocked:
            allowances = await self.look(who, lambda tx: read_allowances(tx, org))
            blocked = await self._scanners.find(org, texts, key, allowances) if allowances else blocked
            refuse_blocked(blocked, len(texts))

    def close(self) -> None:
        """After the last request. The database is the caller's."""
        self._scanners.close()

    def _checked(self, who: RowOwner, work: Callable[[Tx], _T]) -> Callable[[Tx], _T]:
        """With a look, in the same transaction, at whether a principal still is what the gate knew."""
        if not isinstance(who, Principal):
            return work
        now_ms = self.now_ms

        def check_and_work(tx: Tx) -> _T:
            check_principal(tx, who, now_ms)
            return work(tx)

        return check_and_work


@dataclass(slots=True, weakref_slot=True)
class _Turns:
    free: Semaphore
    waiting: int = 0


async def _result(future: Future[_T]) -> _T:
    return future.result() if future.done() else await wrap_future(future)


def _org_of(who: RowOwner) -> OrgId | None:
    return who.org if isinstance(who, Principal) else who


def format_ms_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
