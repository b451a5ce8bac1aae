"""Before an operation: who asks, whether they may, and whether it is too often."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta

from sevenfold.server.database import OrgId
from sevenfold.server.desk import Desk
from sevenfold.server.limits import Buckets
from sevenfold.server.people import find_principal, hash_token, org_in_token
from sevenfold.server.refusals import Refusal
from sevenfold.server.rights import Principal, Verb, check_right

REMEMBERED = timedelta(seconds=5)
"""So long a revoked token may still work in another process; else pollers would ask the database twice."""
MOST_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class _Known:
    principal: Principal
    until: timedelta


class Gate:
    def __init__(self, desk: Desk) -> None:
        limits, self._desk = desk.limits, desk
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._tokens = Buckets(limits.token_rate, limits.token_rate * limits.burst_seconds)
        self._orgs = Buckets(limits.org_rate, limits.org_rate * limits.burst_seconds)
        self._strangers = Buckets(limits.stranger_rate, limits.stranger_rate * limits.burst_seconds)

    async def admit(self, authorization: str, address: str, verb: Verb) -> Principal:
        """Whoever asks, if it is allowed; else `Refusal` 401, 403 or 429."""
        principal = await self._find(authorization, address)
        now = self._desk.clock.uptime()
        _check_rate(self._tokens.take(principal.token, now), "this token")
        _check_rate(self._orgs.take(principal.org, now), "this organisation")
        check_right(principal, verb)
        return principal

    def admit_stranger(self, address: str) -> None:
        _check_rate(self._strangers.take(address, self._desk.clock.uptime()), "your address without a token")

    def forget(self) -> None:
        """Somebody's rights changed here: look everybody up again."""
        self._known.clear()

    async def _find(self, authorization: str, address: str) -> Principal:
        scheme, _, text = authorization.partition(" ")
        org = org_in_token(text.strip()) if scheme.lower() == "bearer" else None
        principal = await self._look_up(org, hash_token(text.strip()), address) if org else None
        if principal is None:
            self.admit_stranger(address)
            raise Refusal(
                401,
                "unauthorised",
                "the request has no token that is good here: none, unknown, revoked or past its time",
                "send Authorization: Bearer TOKEN; sevenfold team join URL gets one",
            )
        return principal

    async def _look_up(self, org: OrgId, hash_: str, address: str) -> Principal | None:
        now, now_ms = self._desk.clock.uptime(), self._desk.now_ms
        known = self._known.get(hash_)
        if known is not None and now < known.until:
            expires = known.principal.expires_ms
            return known.principal if expires is None or now_ms < expires else None
        # Of an address that has guessed too often, what is not known is not even looked for.
        _check_rate(self._strangers.look(address, now), "your address with tokens that are none")
        principal = await self._desk.look(
            org, lambda tx: find_principal(tx, org, hash_, now_ms), turn="sign in"
        )
        self._known.pop(hash_, None)
        if principal is not None:
            self._known[hash_] = _Known(principal, now + REMEMBERED)
            if len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
        return principal


def _check_rate(wait: timedelta, whose: str) -> None:
    if wait:
        seconds = max(1, -(-wait // timedelta(seconds=1)))
        raise Refusal(
            429,
            "rate",
            f"too many requests of {whose}",
            f"wait {seconds} s, and ask less often",
            retry=True,
            retry_after_seconds=seconds,
        )
