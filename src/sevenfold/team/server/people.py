"""Organisations, their members, and the tokens that speak for them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import cast

from sevenfold.team.server.database import OrgId, SqlRow, Tx, sql_number, sql_text
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.policy import (
    MEMBER_ROLES,
    TOKEN_SCOPES,
    MemberId,
    MemberRole,
    Principal,
    RightsChanged,
    TokenId,
    TokenScope,
    record_audit,
)

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@+-]{0,79}", re.ASCII)
"""Of organisations and members: what a log line or a terminal can show as it is."""

TOKEN_PATTERN = re.compile(r"sfm_([a-z0-9]{1,40})_([A-Za-z0-9_-]{43})", re.ASCII)
"""The organisation is in it, so that it can be looked for with the rules for rows already in force."""


@dataclass(frozen=True, slots=True)
class Org:
    id: OrgId
    name: str


@dataclass(frozen=True, slots=True)
class OrgMember:
    id: MemberId
    name: str
    role: MemberRole


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    id: TokenId
    member: MemberId
    scopes: tuple[TokenScope, ...]
    created_ms: int
    expires_ms: int | None
    is_revoked: bool


@dataclass(frozen=True, slots=True)
class NewToken:
    id: TokenId
    text: str
    """Shown once: the database has its hash alone."""


def add_org(tx: Tx, id_: OrgId, name: str, now_ms: int) -> Org:
    """With an id that the caller made, so that its people can be made in the same transaction."""
    _check_name(name, "organisation")
    if not tx.rows(
        "INSERT INTO org VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING id", id_, name, now_ms
    ):
        raise _exists(f"an organisation called {name}")
    record_audit(tx, id_, "org.add", now_ms, detail=name)
    return Org(id_, name)


def list_orgs(tx: Tx) -> list[Org]:
    return [
        Org(OrgId(sql_text(row[0])), sql_text(row[1]))
        for row in tx.rows("SELECT id, name FROM org ORDER BY name")
    ]


def find_org(tx: Tx, name: str) -> Org:
    """By its name or its id."""
    found = tx.rows("SELECT id, name FROM org WHERE name = ? OR id = ?", name, name)
    if not found:
        raise ApiError(
            status=404,
            kind="not found",
            message=f"there is no organisation {name[:80]!r}",
            advice="list them: serve org list",
        )
    return Org(OrgId(sql_text(found[0][0])), sql_text(found[0][1]))


def add_member(tx: Tx, who: Principal | OrgId, name: str, role: str, now_ms: int) -> OrgMember:
    org = _org_of(who)
    _check_name(name, "member")
    chosen = _check_role(who, role)
    id_ = MemberId(new_row_id())
    if tx.rows("SELECT 1 FROM member WHERE org = ? AND name = ? AND removed IS NULL", org, name):
        raise _exists(f"a member called {name}")
    added = tx.rows(
        "INSERT INTO member VALUES (?, ?, ?, ?, ?, NULL) ON CONFLICT DO NOTHING RETURNING id",
        *(org, id_, name, chosen, now_ms),
    )
    if not added:  # by somebody else, since we looked
        raise _exists(f"a member called {name}")
    record_audit(tx, who, "member.add", now_ms, detail=f"{name} as {chosen}")
    return OrgMember(id_, name, chosen)


def list_members(tx: Tx, org: OrgId) -> list[OrgMember]:
    rows = tx.rows("SELECT id, name, role FROM member WHERE org = ? AND removed IS NULL ORDER BY name", org)
    return [_member(row) for row in rows]


def find_member(tx: Tx, org: OrgId, name: str) -> OrgMember:
    """By name or by id."""
    found = tx.rows(
        "SELECT id, name, role FROM member WHERE org = ? AND (name = ? OR id = ?) AND removed IS NULL"
        " ORDER BY CASE WHEN id = ? THEN 0 ELSE 1 END",  # somebody may be called like another's id
        *(org, name, name, name),
    )
    if not found:
        raise ApiError(
            status=404,
            kind="not found",
            message=f"there is no member {name[:80]!r}",
            advice="list them: GET /api/v1/members",
        )
    return _member(found[0])


def change_role(tx: Tx, who: Principal | OrgId, name: str, role: str, now_ms: int) -> OrgMember:
    org = _org_of(who)
    member = find_member(tx, org, name)
    chosen = _check_role(who, role)
    check_outranks(who, member)
    if chosen != "owner":
        _check_owner_left(tx, org, member)
    tx.rows("UPDATE member SET role = ? WHERE org = ? AND id = ?", chosen, org, member.id)
    record_audit(tx, who, "member.change", now_ms, detail=f"{member.name} from {member.role} to {chosen}")
    return OrgMember(member.id, member.name, chosen)


def remove_member(tx: Tx, who: Principal | OrgId, name: str, now_ms: int) -> OrgMember:
    """The member's tokens end at once. What was written stays, with the name of who wrote it."""
    org = _org_of(who)
    member = find_member(tx, org, name)
    check_outranks(who, member)
    _check_owner_left(tx, org, member)
    tx.rows("UPDATE member SET removed = ? WHERE org = ? AND id = ?", now_ms, org, member.id)
    tx.rows(
        "UPDATE token SET revoked = ? WHERE org = ? AND member = ? AND revoked IS NULL",
        now_ms,
        org,
        member.id,
    )
    record_audit(tx, who, "member.remove", now_ms, detail=member.name)
    return member


def add_token(
    tx: Tx,
    who: Principal | OrgId,
    name: str,
    scopes: Iterable[str],
    now_ms: int,
    *,
    lasts: timedelta | None,
) -> NewToken:
    """A token of a member; `lasts` None: until it is revoked."""
    org = _org_of(who)
    member = find_member(tx, org, name)
    check_outranks(who, member)
    chosen = check_scopes(scopes)
    check_grants(who, chosen)
    id_ = TokenId(new_row_id())
    text = f"sfm_{org}_{secrets.token_urlsafe(32)}"
    expires = None if lasts is None else now_ms + lasts // timedelta(milliseconds=1)
    tx.rows(
        "INSERT INTO token VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
        *(org, id_, member.id, hash_token(text), " ".join(chosen), now_ms, expires),
    )
    record_audit(tx, who, "token.add", now_ms, detail=f"{id_} for {member.name}: {' '.join(chosen)}")
    return NewToken(id_, text)


def list_tokens(tx: Tx, org: OrgId) -> list[ApiToken]:
    rows = tx.rows(
        "SELECT id, member, scopes, created, expires, revoked FROM token WHERE org = ? ORDER BY created, id",
        org,
    )
    return [
        ApiToken(
            id=TokenId(sql_text(id_)),
            member=MemberId(sql_text(member)),
            scopes=_scopes(sql_text(scopes)),
            created_ms=sql_number(created),
            expires_ms=None if expires is None else sql_number(expires),
            is_revoked=revoked is not None,
        )
        for id_, member, scopes, created, expires, revoked in rows
    ]


def revoke_token(tx: Tx, who: Principal | OrgId, id_: str, now_ms: int) -> None:
    org = _org_of(who)
    found = tx.rows("SELECT member FROM token WHERE org = ? AND id = ?", org, id_)
    if not found:
        raise ApiError(
            status=404,
            kind="not found",
            message=f"there is no token {id_[:80]!r}",
            advice="list them: GET /api/v1/tokens",
        )
    owner = tx.rows("SELECT id, name, role FROM member WHERE org = ? AND id = ?", org, found[0][0])
    check_outranks(who, _member(owner[0]))
    tx.rows("UPDATE token SET revoked = ? WHERE org = ? AND id = ? AND revoked IS NULL", now_ms, org, id_)
    record_audit(tx, who, "token.revoke", now_ms, detail=id_)


def read_token_org(text: str) -> OrgId | None:
    """Which organisation a token claims to be of; that it is one is another question."""
    found = TOKEN_PATTERN.fullmatch(text)
    return OrgId(found[1]) if found else None


def find_principal(tx: Tx, org: OrgId, hash_: str, now_ms: int) -> Principal | None:
    """Whom the token with this hash speaks for; None if it is unknown, revoked or past its time."""
    found = tx.rows(
        "SELECT org.name, member.id, member.name, member.role, token.id, token.scopes, token.expires"
        " FROM token JOIN member ON member.org = token.org AND member.id = token.member"
        " JOIN org ON org.id = token.org"
        " WHERE token.org = ? AND token.hash = ? AND token.revoked IS NULL AND member.removed IS NULL",
        *(org, hash_),
    )
    if not found:
        return None
    org_name, member, member_name, role, token, scopes, expires = found[0]
    if expires is not None and sql_number(expires) <= now_ms:
        return None
    return Principal(
        org=org,
        org_name=sql_text(org_name),
        member=MemberId(sql_text(member)),
        member_name=sql_text(member_name),
        role=cast("MemberRole", sql_text(role)),
        token=TokenId(sql_text(token)),
        scopes=frozenset(_scopes(sql_text(scopes))),
        expires_ms=None if expires is None else sql_number(expires),
    )


def check_principal(tx: Tx, who: Principal, now_ms: int) -> None:
    """`RightsChanged` unless the token still is what it was when it was looked up, in whichever process."""
    found = tx.rows(
        "SELECT member.role, token.scopes FROM token"
        " JOIN member ON member.org = token.org AND member.id = token.member"
        " WHERE token.org = ? AND token.id = ? AND token.revoked IS NULL AND member.removed IS NULL",
        *(who.org, who.token),
    )
    is_over = who.expires_ms is not None and who.expires_ms <= now_ms
    if (
        is_over
        or not found
        or found[0][0] != who.role
        or frozenset(_scopes(sql_text(found[0][1]))) != who.scopes
    ):
        raise RightsChanged


def hash_token(text: str) -> str:
    """Of 256 random bits: nothing slower is needed, since nobody can guess them."""
    return sha256(text.encode()).hexdigest()


def new_row_id() -> str:
    return secrets.token_hex(8)


def check_scopes(scopes: Iterable[str]) -> tuple[TokenScope, ...]:
    wanted = set(scopes)
    unknown = sorted(wanted - set(TOKEN_SCOPES))
    if unknown or not wanted:
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"{unknown[0][:80]!r} is no scope" if unknown else "a token needs a scope",
            advice=f"name some of {', '.join(TOKEN_SCOPES)}",
        )
    return tuple(scope for scope in TOKEN_SCOPES if scope in wanted)


def check_grants(who: Principal | OrgId, scopes: Iterable[TokenScope]) -> None:
    """Nobody hands on what they do not have: a token for administration would else read every memory."""
    beyond = sorted(set(scopes) - who.scopes) if isinstance(who, Principal) else []
    if beyond:
        raise ApiError(
            status=403,
            kind="forbidden",
            message=f"this token has not the scope {beyond[0]}, so it cannot give it",
            advice="use a token that has it, or ask for fewer scopes",
        )


def _org_of(who: Principal | OrgId) -> OrgId:
    return who.org if isinstance(who, Principal) else who


def _scopes(text: str) -> tuple[TokenScope, ...]:
    return cast("tuple[TokenScope, ...]", tuple(text.split()))


def _member(row: SqlRow) -> OrgMember:
    return OrgMember(MemberId(sql_text(row[0])), sql_text(row[1]), cast("MemberRole", sql_text(row[2])))


def _check_name(name: str, what: str) -> None:
    if not NAME_PATTERN.fullmatch(name):
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"{name[:80]!r} cannot be the name of a{'n' if what[0] == 'o' else ''} {what}",
            advice="use 1 to 80 letters, digits, spaces and . _ @ + -, beginning with a letter or digit",
        )


def _check_role(who: Principal | OrgId, role: str) -> MemberRole:
    if role not in MEMBER_ROLES:
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"{role[:80]!r} is no role",
            advice=f"name one of {', '.join(MEMBER_ROLES)}",
        )
    if role == "owner" and isinstance(who, Principal) and who.role != "owner":
        raise _owners_alone("makes an owner")
    return role


def check_outranks(who: Principal | OrgId, member: OrgMember) -> None:
    """An admin who could have a token of an owner would be one."""
    if member.role == "owner" and isinstance(who, Principal) and who.role != "owner":
        raise _owners_alone("touches an owner, or an owner's tokens")


def _owners_alone(what: str) -> ApiError:
    return ApiError(status=403, kind="forbidden", message=f"only an owner {what}", advice="ask an owner")


def _check_owner_left(tx: Tx, org: OrgId, member: OrgMember) -> None:
    if member.role != "owner":
        return
    # Locked, so that two owners who remove each other do not both succeed.
    owners = tx.rows(
        f"SELECT id FROM member WHERE org = ? AND role = 'owner' AND removed IS NULL{tx.locking}", org
    )
    if len(owners) == 1:
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"{member.name} is the only owner",
            advice="make somebody else an owner first",
        )


def _exists(what: str) -> ApiError:
    return ApiError(
        status=409,
        kind="exists",
        message=f"there is {what} already",
        advice="choose another name, or use that one",
    )
