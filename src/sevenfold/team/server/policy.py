"""Who may do what (one table, by operation, that the code and the tests use), limits, rates and audit."""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, NewType, TypeAlias, get_args

from sevenfold.team.protocol import (
    MAX_REQUEST_BYTES,
    MAX_TEAM_ENTRIES,
    MAX_TEAM_FILE_BYTES,
    MAX_TOTAL_BYTES,
)
from sevenfold.team.server.database import OrgId, Tx, sql_number, sql_text
from sevenfold.team.server.messages import ApiError

MemberId = NewType("MemberId", str)
TokenId = NewType("TokenId", str)

MemberRole: TypeAlias = Literal["owner", "admin", "writer", "reader"]
TokenScope: TypeAlias = Literal["memory:read", "memory:write", "admin"]
Verb: TypeAlias = Literal[
    "whoami",
    "memory.read",
    "memory.write",
    "repo.list",
    "repo.claim",
    "repo.prove",
    "member.list",
    "member.change",
    "token.list",
    "token.change",
    "device.approve",
    "secret.allow",
    "audit.read",
]

MEMBER_ROLES: tuple[MemberRole, ...] = get_args(MemberRole)
TOKEN_SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)


@dataclass(frozen=True, slots=True)
class AccessRule:
    scope: TokenScope | None
    """None: whatever the token is good for."""
    roles: frozenset[MemberRole]


_ALL = frozenset(MEMBER_ROLES)
_WRITING: frozenset[MemberRole] = frozenset({"owner", "admin", "writer"})
_RUNNING: frozenset[MemberRole] = frozenset({"owner", "admin"})

ACCESS_RULES: Mapping[Verb, AccessRule] = {
    "whoami": AccessRule(None, _ALL),
    "memory.read": AccessRule("memory:read", _ALL),
    "memory.write": AccessRule("memory:write", _WRITING),
    "repo.list": AccessRule("memory:read", _ALL),
    "repo.claim": AccessRule("admin", _RUNNING),
    "repo.prove": AccessRule("memory:write", _WRITING),
    "member.list": AccessRule("admin", _RUNNING),
    "member.change": AccessRule("admin", _RUNNING),
    "token.list": AccessRule("admin", _RUNNING),
    "token.change": AccessRule("admin", _RUNNING),
    "device.approve": AccessRule("admin", _RUNNING),
    "secret.allow": AccessRule("admin", _RUNNING),
    "audit.read": AccessRule("admin", _RUNNING),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Whom a token speaks for."""

    org: OrgId
    org_name: str
    member: MemberId
    member_name: str
    role: MemberRole
    token: TokenId
    scopes: frozenset[TokenScope]
    expires_ms: int | None


class RightsChanged(Exception):
    """A principal is not what it was when its token was looked up: ask again who it is."""


def is_allowed(role: MemberRole, scopes: frozenset[TokenScope], verb: Verb) -> bool:
    rule = ACCESS_RULES[verb]
    return role in rule.roles and (rule.scope is None or rule.scope in scopes)


def check_right(principal: Principal, verb: Verb) -> None:
    """`ApiError` 403 where the token's scopes or the member's role do not reach."""
    if is_allowed(principal.role, principal.scopes, verb):
        return
    rule = ACCESS_RULES[verb]
    if principal.role not in rule.roles:
        raise ApiError(
            status=403,
            kind="forbidden",
            message=f"{verb} is not for the role {principal.role}",
            advice=f"ask an owner for the role {' or '.join(sorted(rule.roles))}",
        )
    raise ApiError(
        status=403,
        kind="forbidden",
        message=f"{verb} needs a token with the scope {rule.scope}",
        advice="ask an admin for a token that has it",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    entries: int = MAX_TEAM_ENTRIES
    """Living memories of a repository: a prompt shows an index of 200."""
    total_bytes: int = MAX_TOTAL_BYTES
    """Of all living memories of a repository."""
    kept_bytes: int = 1_000_000_000
    """Of a repository with its history: a hundred times all that may live at once."""
    waiting_bytes: int = 2 * MAX_TOTAL_BYTES
    """Of bodies that no commit has named yet: two whole pushes."""
    body_bytes: int = MAX_REQUEST_BYTES
    file_bytes: int = MAX_TEAM_FILE_BYTES
    repos: int = 1_000
    """Of one organisation."""
    org_bytes: int = 20_000_000_000
    """Of all repositories of one organisation with their history: one must not fill the disk of all."""
    names: int = 20 * MAX_TEAM_ENTRIES
    """Living and deleted names of a repository. Every listing has all of them."""
    token_rate: int = 20
    """Requests a second of one token: a client asks a few times a minute."""
    org_rate: int = 100
    """Requests a second of one organisation, in all processes together: a thousand laptops ask 33 times. A
    fifth of what one core serves, so that one organisation leaves the others most of it."""
    stranger_rate: int = 20
    """Requests a second without a token that is known, of one address."""
    seldom_rate: float = 0.2
    """Codes of devices a second, asked for by an address or tried by an organisation: nobody needs many."""
    burst_seconds: int = 5
    """How much of a token's or an address's rate may be used at once after a rest."""
    delay: timedelta = timedelta(seconds=1)
    """How long a request of a token is held until it is its turn. One that would wait longer is refused, but
    no sooner: who is refused at once asks again at once, and a refusal costs a third of an answer."""
    at_once: int = 4
    """Requests of one organisation that are carried out at the same time; its others wait for these, and
    other organisations' do not."""
    org_waiting: int = 1_000
    """Requests of one organisation that wait for their turn."""
    waiting: int = 4_000
    """Of all of them. Beyond, a refusal now is kinder than an answer too late."""
    tombstone_days: int = 90
    body_hours: int = 24
    """How long a body waits for its commit."""
    replay_days: int = 90
    """How long the answer to a commit is kept for whoever did not hear it: as long as tombstones."""

    @property
    def raw_bytes(self) -> int:
        """Of a request's JSON: one file in which every character is an escape of six."""
        return 6 * self.file_bytes + 100_000


MAX_SMALL_BODY_BYTES = 32_000
"""Of a request that holds no texts: the longest has a name, a remote and a reason."""

REQUEST_BYTES_A_PERMIT = 10_000
"""Of texts that came in. A request's cost is looking through them, some milliseconds for so many."""
RESPONSE_BYTES_A_PERMIT = 50_000

MOST_BUCKETS = 50_000
"""Of those not used for longest, the rest is forgotten: they are full again anyway."""


class RateBuckets:
    """A bucket of permits for each name; it fills at a rate and holds some seconds' worth.

    Permits may be taken ahead of time, by who waits for them: so a line forms, and nobody has to ask again.
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        *,
        delay: timedelta = timedelta(),
        is_shared: bool = False,
        most_debt: timedelta | None = None,
    ) -> None:
        """`most_debt`: how long charges may make the next one wait, at most."""
        self._rate, self._burst, self.delay = rate, max(1.0, burst), delay
        self._least = None if most_debt is None else -rate * most_debt.total_seconds()
        self._levels: OrderedDict[str, _Level] = OrderedDict()
        self._taken: dict[str, int] | None = {} if is_shared else None
        """Since other processes were told."""

    def look(self, name: str, now: timedelta) -> timedelta:
        """Zero if there is a permit, else how long until there is one."""
        return self._until(self._permits(name, now) - 1)

    def take(self, name: str, now: timedelta) -> timedelta:
        """How long to wait before the permit that is taken may be used. Past the longest delay none is."""
        wait = self.look(name, now)
        if wait <= self.delay:
            self.charge(name, now, 1)
        return wait

    def charge(self, name: str, now: timedelta, permits: int) -> None:
        """Take permits for what is done already; whoever comes next waits for them."""
        self._lower(name, now, permits)
        if self._taken is not None:
            self._taken[name] = self._taken.get(name, 0) + permits
            if len(self._taken) > MOST_BUCKETS:
                self._taken.clear()

    def report_taken(self) -> dict[str, int]:
        """What was taken here and not told yet, where it is half a second's worth."""
        taken = self._taken or {}
        reported = {name: permits for name, permits in taken.items() if permits >= self._rate / 2}
        for name in reported:
            del taken[name]
        return reported

    def add_remote_taken(self, name: str, now: timedelta, permits: int) -> None:
        """What other processes took of the same bucket."""
        self._lower(name, now, permits)

    def _until(self, permits: float) -> timedelta:
        return timedelta(seconds=max(0.0, -permits / self._rate))

    def _lower(self, name: str, now: timedelta, permits: int) -> None:
        left = self._permits(name, now) - permits
        self._levels[name] = _Level(
            left if self._least is None else max(left, self._least), now.total_seconds()
        )
        self._levels.move_to_end(name)
        if len(self._levels) > MOST_BUCKETS:
            self._levels.popitem(last=False)

    def _permits(self, name: str, now: timedelta) -> float:
        level = self._levels.get(name)
        if level is None:
            return self._burst
        return min(self._burst, level.permits + (now.total_seconds() - level.at) * self._rate)


@dataclass(frozen=True, slots=True)
class _Level:
    permits: float
    at: float


# The audit log: who did what, and when. A log that only grows, without a word of any memory.

AUDIT_LINE_ID = re.compile(r"[0-9]{15}[0-9a-f]{12}", re.ASCII)
"""Milliseconds first, so that lines of one moment keep an order of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    id: str
    """Later ones are greater."""
    at_ms: int
    member: str
    token: str
    verb: str
    repo: str
    detail: str


def record_audit(
    tx: Tx, who: Principal | OrgId, verb: str, now_ms: int, *, repo: str = "", detail: str = ""
) -> None:
    """A line of the log, in the transaction of what it tells. An organisation alone: done on the machine."""
    org, member, token = (
        (who.org, who.member, who.token) if isinstance(who, Principal) else (who, "operator", "")
    )
    line = f"{now_ms:015d}{secrets.token_hex(6)}"
    tx.rows(
        "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        org,
        line,
        now_ms,
        member,
        token,
        verb,
        repo,
        detail,
    )


def read_audit(tx: Tx, org: OrgId, limit: int, before: str | None = None) -> list[AuditLine]:
    """The newest first; `before`: those older than the line with this id, or than a time of 15 digits."""
    rows = tx.rows(
        "SELECT id, at, member, token, verb, repo, detail FROM audit WHERE org = ? AND id < ?"
        " ORDER BY id DESC LIMIT ?",
        org,
        "a" if before is None else before,  # ids begin with digits
        limit,
    )
    return [
        AuditLine(
            id=sql_text(id_),
            at_ms=sql_number(at),
            member=sql_text(member),
            token=sql_text(token),
            verb=sql_text(verb),
            repo=sql_text(repo),
            detail=sql_text(detail),
        )
        for id_, at, member, token, verb, repo, detail in rows
    ]
