"""Who may do what: one table, by operation, that the code asks and the tests walk through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NewType, TypeAlias, get_args

from sevenfold.team.server.api_errors import ApiError
from sevenfold.team.server.database import OrgId

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
    """`Refusal` 403 where the token's scopes or the member's role do not reach."""
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
