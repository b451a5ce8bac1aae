"""Who may do what: one table, by operation, that the code asks and the tests walk through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NewType, TypeAlias, get_args

from sevenfold.server.database import OrgId
from sevenfold.server.refusals import Refusal

MemberId = NewType("MemberId", str)
TokenId = NewType("TokenId", str)

Role: TypeAlias = Literal["owner", "admin", "writer", "reader"]
Scope: TypeAlias = Literal["memory:read", "memory:write", "admin"]
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

ROLES: tuple[Role, ...] = get_args(Role)
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Rule:
    scope: Scope | None
    """None: whatever the token is good for."""
    roles: frozenset[Role]


_ALL = frozenset(ROLES)
_WRITING: frozenset[Role] = frozenset({"owner", "admin", "writer"})
_RUNNING: frozenset[Role] = frozenset({"owner", "admin"})

RULES: Mapping[Verb, Rule] = {
    "whoami": Rule(None, _ALL),
    "memory.read": Rule("memory:read", _ALL),
    "memory.write": Rule("memory:write", _WRITING),
    "repo.list": Rule("memory:read", _ALL),
    "repo.claim": Rule("admin", _RUNNING),
    "repo.prove": Rule("memory:write", _WRITING),
    "member.list": Rule("admin", _RUNNING),
    "member.change": Rule("admin", _RUNNING),
    "token.list": Rule("admin", _RUNNING),
    "token.change": Rule("admin", _RUNNING),
    "device.approve": Rule("admin", _RUNNING),
    "secret.allow": Rule("admin", _RUNNING),
    "audit.read": Rule("admin", _RUNNING),
}


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom a token speaks for."""

    org: OrgId
    org_name: str
    member: MemberId
    member_name: str
    role: Role
    token: TokenId
    scopes: frozenset[Scope]
    expires_ms: int | None


class RightsMoved(Exception):
    """A principal is not what it was when its token was looked up: ask again who it is."""


def is_allowed(role: Role, scopes: frozenset[Scope], verb: Verb) -> bool:
    rule = RULES[verb]
    return role in rule.roles and (rule.scope is None or rule.scope in scopes)


def check_right(principal: Principal, verb: Verb) -> None:
    """`Refusal` 403 where the token's scopes or the member's role do not reach."""
    if is_allowed(principal.role, principal.scopes, verb):
        return
    rule = RULES[verb]
    if principal.role not in rule.roles:
        raise Refusal(
            403,
            "forbidden",
            f"{verb} is not for the role {principal.role}",
            f"ask an owner for the role {' or '.join(sorted(rule.roles))}",
        )
    raise Refusal(
        403,
        "forbidden",
        f"{verb} needs a token with the scope {rule.scope}",
        "ask an admin for a token that has it",
    )
