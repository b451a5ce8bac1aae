"""What every operation works with: the database without blocking the loop, limits, time, and the secret scan.

Also here: `AccessControl` (who asks, whether they may, whether it is too often), and reading request bodies.
"""

from __future__ import annotations

import asyncio
import zlib
from asyncio import Semaphore, wrap_future
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, TypeVar
from weakref import WeakValueDictionary

from sevenfold.core.clock import Clock
from sevenfold.team.server.database import Database, OrgId, Tx
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.people import check_principal, find_principal, hash_token, read_token_org
from sevenfold.team.server.policy import (
    REQUEST_BYTES_A_PERMIT,
    RESPONSE_BYTES_A_PERMIT,
    Principal,
    RateBuckets,
    ServerLimits,
    Verb,
    check_right,
    is_allowed,
)
from sevenfold.team.server.repos import Forge
from sevenfold.team.server.scanning import (
    SecretScanners,
    key_of_org,
    read_allowances,
    read_fingerprint_key,
    refuse_blocked,
)

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
    path_params: Mapping[str, str]
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

    async def read_quick(self, who: RowOwner, work: Callable[[Tx], _T]) -> _T:
        """Read some rows by their keys."""
        return await _result(self._database.read(_org_of(who), self._checked(who, work), quick=True))

    async def write(self, who: RowOwner, work: Callable[[Tx], _T]) -> _T:
        return await _result(self._database.write(_org_of(who), self._checked(who, work)))

    @asynccontextmanager
    async def acquire_slot(self, line: str) -> AsyncGenerator[None]:
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
        """`ApiError` 422 for what seems to hold a secret that nobody has allowed."""
        org, key = who.org, key_of_org(self._key, who.org)
        blocked = await self._scanners.find(org, texts, key, ())
        if blocked:
            allowances = await self.read_quick(who, lambda tx: read_allowances(tx, org))
            blocked = await self._scanners.find(org, texts, key, allowances) if allowances else blocked
            refuse_blocked(blocked, len(texts))

    def close(self) -> None:
        """After the last request. The database is the caller's."""
        self._scanners.close()

    def _checked(self, who: RowOwner, work: Callable[[Tx], _T]) -> Callable[[Tx], _T]:
        """Checks in the same transaction that a principal is still what `AccessControl` found."""
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


MOST_REMEMBERED = 20_000
"""Principals whose tokens were seen here. Each transaction looks whether they still hold."""
SELDOM_BURST = 20
_BYTES = "bytes "
"""Before the name of a bucket that bytes are charged to, where processes tell each other."""


class AccessControl:
    def __init__(self, app: AppState) -> None:
        limits, self._app = app.limits, app
        self._known: OrderedDict[str, Principal] = OrderedDict()
        burst, delay = limits.burst_seconds, limits.delay
        self._tokens = RateBuckets(limits.token_rate, limits.token_rate * burst, delay=delay, is_shared=True)
        # A second's worth at once and no more: what one organisation does together, all others wait for.
        self._orgs = RateBuckets(limits.org_rate, limits.org_rate, delay=delay, is_shared=True)
        # Bytes are a matter between a token and the server. Its colleagues are delayed by them, to leave
        # other organisations their part, and never refused.
        self._token_bytes = RateBuckets(
            limits.token_rate,
            limits.token_rate * burst,
            delay=delay,
            is_shared=True,
            most_debt=timedelta(seconds=burst),
        )
        self._org_bytes = RateBuckets(
            limits.org_rate, limits.org_rate, delay=delay, is_shared=True, most_debt=delay / 2
        )
        self._strangers = RateBuckets(limits.stranger_rate, limits.stranger_rate * burst)
        self._seldom = RateBuckets(limits.seldom_rate, SELDOM_BURST)

    async def admit(self, authorization: str, address: str, verb: Verb) -> Principal:
        """Whoever asks, if it is allowed and when it is their turn; else `ApiError` 401, 403 or 429."""
        principal = await self._find(authorization, address)
        await self._wait(self._tokens, self._token_bytes, principal.token, "this token")
        await self._wait(self._orgs, self._org_bytes, principal.org, "this organisation")
        if not is_allowed(principal.role, principal.scopes, verb):  # as far as is known here
            return await self.admit_again(authorization, address, verb)
        return principal

    async def admit_again(self, authorization: str, address: str, verb: Verb) -> Principal:
        """Where what was known of the token holds no longer."""
        self._known.pop(hash_token(_text_in(authorization)), None)
        principal = await self._find(authorization, address)
        check_right(principal, verb)
        return principal

    def admit_stranger(self, address: str) -> None:
        self._check(self._strangers, address, "your address without a token")

    def check_rare(self, who: str) -> None:
        """Before a device's code is made or tried: who guesses codes, or uses them up, asks often."""
        self._check(self._seldom, who, "this kind")

    def charge(self, principal: Principal, bytes_in: int, bytes_out: int) -> None:
        """What a request cost beside having been one. Its token pays all of it; its organisation's next ones
        wait for some of it."""
        permits = bytes_in // REQUEST_BYTES_A_PERMIT + bytes_out // RESPONSE_BYTES_A_PERMIT
        if permits:
            now = self._app.clock.uptime()
            self._token_bytes.charge(principal.token, now, permits)
            self._org_bytes.charge(principal.org, now, permits)

    def report_taken(self) -> dict[str, int]:
        """What was taken here of permits that all processes share, by the name of the bucket."""
        return {
            f"{kind} {mark}{name}": permits
            for mark, shared in (("", self._shared), (_BYTES, self._charged))
            for kind, buckets in shared.items()
            for name, permits in buckets.report_taken().items()
        }

    def add_remote_taken(self, taken: Mapping[str, int]) -> None:
        """What other processes took of them."""
        now = self._app.clock.uptime()
        for spelled, permits in taken.items():
            kind, _, name = spelled.partition(" ")
            if permits > 0:  # fewer than before: its row was forgotten meanwhile
                shared = self._charged if name.startswith(_BYTES) else self._shared
                shared[kind].add_remote_taken(name.removeprefix(_BYTES), now, permits)

    @property
    def _shared(self) -> Mapping[str, RateBuckets]:
        """By the first word of a bucket's name. Processes of an older version know these two kinds alone."""
        return {"token": self._tokens, "org": self._orgs}

    @property
    def _charged(self) -> Mapping[str, RateBuckets]:
        return {"token": self._token_bytes, "org": self._org_bytes}

    def _check(self, buckets: RateBuckets, name: str, whose: str) -> None:
        wait = buckets.take(name, self._app.clock.uptime())
        if wait:
            raise _too_often(wait, whose)

    async def _wait(self, buckets: RateBuckets, charged: RateBuckets, name: str, whose: str) -> None:
        now = self._app.clock.uptime()
        wait = charged.look(name, now)
        if wait <= buckets.delay:
            wait = max(wait, buckets.take(name, now))
        if wait:
            await asyncio.sleep(min(wait, buckets.delay).total_seconds())
        if wait > buckets.delay:
            raise _too_often(wait - buckets.delay, whose)

    async def _find(self, authorization: str, address: str) -> Principal:
        text = _text_in(authorization)
        org = read_token_org(text)
        principal = await self._look_up(org, hash_token(text), address) if org else None
        if principal is None:
            self.admit_stranger(address)
            raise ApiError(
                status=401,
                kind="unauthorised",
                message="the request has no token that is good here: none, unknown, revoked or past its time",
                advice="send Authorization: Bearer TOKEN; sevenfold team join URL gets one",
            )
        return principal

    async def _look_up(self, org: OrgId, hash_: str, address: str) -> Principal | None:
        now_ms = self._app.now_ms
        known = self._known.get(hash_)
        if known is not None:
            return known if known.expires_ms is None or now_ms < known.expires_ms else None
        # Of an address that has guessed too often, what is not known is not even looked for.
        wait = self._strangers.look(address, self._app.clock.uptime())
        if wait:
            raise _too_often(wait, "your address with tokens that are none")
        async with self._app.acquire_slot("sign in"):
            principal = await self._app.read_quick(org, lambda tx: find_principal(tx, org, hash_, now_ms))
        if principal is not None:
            self._known[hash_] = principal
            if len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
        return principal


def _text_in(authorization: str) -> str:
    """The token in a header; empty where there is none."""
    scheme, _, text = authorization.partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _too_often(wait: timedelta, whose: str) -> ApiError:
    seconds = max(1, -(-wait // timedelta(seconds=1)))
    return ApiError(
        status=429,
        kind="rate",
        message=f"too many requests of {whose}",
        advice=f"wait {seconds} s, and ask less often",
        retry=True,
        retry_after_seconds=seconds,
    )


# Bodies are read and inflated up to a cap.


async def read_capped(chunks: AsyncIterator[bytes], limit_bytes: int) -> bytes:
    """The whole body, or `ApiError` 413 as soon as it is larger than allowed."""
    data = bytearray()
    async for chunk in chunks:
        data += chunk
        if len(data) > limit_bytes:
            raise make_too_large(f"the request has more than {limit_bytes:,} bytes")
    return bytes(data)


def inflate(data: bytes, encoding: str, limit_bytes: int) -> bytes:
    """Undo `Content-Encoding`, never past the cap: a kilobyte may stand for a gigabyte of zeros."""
    if encoding in ("", "identity"):
        return data
    if encoding != "gzip":
        raise ApiError(
            status=415,
            kind="unsupported",
            message=f"{encoding[:40]!r} is no encoding that is read here",
            advice="send gzip, or none",
        )
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        plain = reader.decompress(data, limit_bytes + 1)
    except zlib.error as error:
        raise ApiError(
            status=400,
            kind="bad request",
            message=f"the body is no gzip: {error}",
            advice="send it again, or plain",
        ) from error
    if len(plain) > limit_bytes:
        raise make_too_large(f"the request has more than {limit_bytes:,} bytes once inflated")
    if not reader.eof or reader.unused_data:
        raise ApiError(
            status=400,
            kind="bad request",
            message="the gzip is cut off, or has something behind it",
            advice="send it again",
        )
    return plain


def check_sizes(raw_bytes: int, texts: Sequence[str], limits: ServerLimits) -> None:
    """Many texts share a small body; one alone may be as large as a file may be."""
    if not texts:
        raise ApiError(
            status=422, kind="bad request", message="the request holds no text", advice="send at least one"
        )
    for text in texts:
        size = len(text.encode())
        if size > limits.file_bytes:
            raise make_too_large(f"one text has {size:,} bytes; {limits.file_bytes:,} is the limit")
    if len(texts) > 1 and raw_bytes > limits.body_bytes:
        raise make_too_large(
            f"{len(texts):,} texts came in {raw_bytes:,} bytes; {limits.body_bytes:,} is the limit"
        )


def make_too_large(message: str) -> ApiError:
    return ApiError(
        status=413,
        kind="too large",
        message=message,
        advice="split it: a large file travels alone, others in smaller bodies",
    )
