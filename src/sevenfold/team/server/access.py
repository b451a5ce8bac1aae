"""Before an operation: who asks, whether they may, and whether it is too often."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from datetime import timedelta

from sevenfold.team.server.api_errors import ApiError
from sevenfold.team.server.app_state import AppState
from sevenfold.team.server.database import OrgId
from sevenfold.team.server.limits import REQUEST_BYTES_A_PERMIT, RESPONSE_BYTES_A_PERMIT, RateBuckets
from sevenfold.team.server.people import find_principal, hash_token, read_token_org
from sevenfold.team.server.rights import Principal, Verb, check_right, is_allowed

MOST_REMEMBERED = 20_000
"""Principals whose tokens were seen here. Each transaction looks whether they still hold."""
SELDOM_BURST = 20


class AccessControl:
    def __init__(self, desk: AppState) -> None:
        limits, self._desk = desk.limits, desk
        self._known: OrderedDict[str, Principal] = OrderedDict()
        burst, delay = limits.burst_seconds, limits.delay
        self._tokens = RateBuckets(limits.token_rate, limits.token_rate * burst, delay=delay, is_shared=True)
        # A second's worth at once and no more: what one organisation does together, all others wait for.
        self._orgs = RateBuckets(limits.org_rate, limits.org_rate, delay=delay, is_shared=True)
        self._strangers = RateBuckets(limits.stranger_rate, limits.stranger_rate * burst)
        self._seldom = RateBuckets(limits.seldom_rate, SELDOM_BURST)

    async def admit(self, authorization: str, address: str, verb: Verb) -> Principal:
        """Whoever asks, if it is allowed and when it is their turn; else `Refusal` 401, 403 or 429."""
        principal = await self._find(authorization, address)
        await self._wait(self._tokens, principal.token, "this token")
        await self._wait(self._orgs, principal.org, "this organisation")
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

    def check_seldom(self, who: str) -> None:
        """Before a device's code is made or tried: who guesses codes, or uses them up, asks often."""
        self._check(self._seldom, who, "this kind")

    def charge(self, principal: Principal, bytes_in: int, bytes_out: int) -> None:
        """What a request cost beside having been one; its organisation's next ones wait for it."""
        permits = bytes_in // REQUEST_BYTES_A_PERMIT + bytes_out // RESPONSE_BYTES_A_PERMIT
        if permits:
            self._orgs.charge(principal.org, self._desk.clock.uptime(), permits)

    def tell_taken(self) -> dict[str, int]:
        """What was taken here of permits that all processes share, by the name of the bucket."""
        return {
            f"{kind} {name}": permits
            for kind, buckets in self._shared.items()
            for name, permits in buckets.tell_taken().items()
        }

    def take_elsewhere(self, taken: Mapping[str, int]) -> None:
        """What other processes took of them."""
        now = self._desk.clock.uptime()
        for spelled, permits in taken.items():
            kind, _, name = spelled.partition(" ")
            if permits > 0:  # fewer than before: its row was forgotten meanwhile
                self._shared[kind].take_elsewhere(name, now, permits)

    @property
    def _shared(self) -> Mapping[str, RateBuckets]:
        return {"token": self._tokens, "org": self._orgs}

    def _check(self, buckets: RateBuckets, name: str, whose: str) -> None:
        wait = buckets.take(name, self._desk.clock.uptime())
        if wait:
            raise _too_often(wait, whose)

    async def _wait(self, buckets: RateBuckets, name: str, whose: str) -> None:
        wait = buckets.take(name, self._desk.clock.uptime())
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
        now_ms = self._desk.now_ms
        known = self._known.get(hash_)
        if known is not None:
            return known if known.expires_ms is None or now_ms < known.expires_ms else None
        # Of an address that has guessed too often, what is not known is not even looked for.
        wait = self._strangers.look(address, self._desk.clock.uptime())
        if wait:
            raise _too_often(wait, "your address with tokens that are none")
        async with self._desk.turn("sign in"):
            principal = await self._desk.look(org, lambda tx: find_principal(tx, org, hash_, now_ms))
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
