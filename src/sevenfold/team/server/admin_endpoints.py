"""Operations on people, tokens, repositories and the audit log, and signing a device in with a short code."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from sevenfold.team.server import messages
from sevenfold.team.server.app_state import ApiRequest, ApiResponse, AppState, format_ms_time
from sevenfold.team.server.database import OrgId, Tx, sql_number, sql_text
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.people import (
    NewToken,
    OrgMember,
    add_member,
    add_token,
    change_role,
    check_grants,
    check_outranks,
    check_scopes,
    find_member,
    hash_token,
    list_members,
    list_tokens,
    remove_member,
    revoke_token,
)
from sevenfold.team.server.policy import AUDIT_LINE_ID, Principal, TokenScope, read_audit, record_audit
from sevenfold.team.server.repos import Repo, claim_repo, list_repos
from sevenfold.team.server.scanning import allow_finding

# A device shows a short code and an admin approves it, so that nobody has to paste a token.

LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, so that no words; nothing that looks like something else (RFC 8628)."""
STRANGE = re.compile(r"[^A-Za-z0-9 ._@+'-]", re.ASCII)
"""In the name of a device, which a stranger chooses and the audit log shows: on a terminal, for one."""
CODE_LIFETIME = timedelta(minutes=10)
DEVICE_POLL_INTERVAL = timedelta(seconds=5)
TOKEN_LIFETIME = timedelta(days=180)
_MOST_WAITING = 10_000
"""Codes at a time. They cost a row each and need no token, so there is an end to them."""
NO_ORG = "-"
"""Stands for an organisation that is not there: no id is spelled like it."""
_SCOPES: tuple[TokenScope, ...] = ("memory:read", "memory:write")


@dataclass(frozen=True, slots=True)
class DeviceCode:
    device_code: str
    """The laptop's secret."""
    user_code: str
    """What a person reads out."""


@dataclass(frozen=True, slots=True)
class SignedInDevice:
    org: OrgId
    member: OrgMember
    scopes: tuple[TokenScope, ...]
    token: NewToken


def start_device(tx: Tx, name: str, now_ms: int, org: str = "") -> DeviceCode:
    """`org`: the organisation that it wants to join, by name or id; no other can take it in."""
    tx.rows("DELETE FROM device WHERE created < ?", now_ms - CODE_LIFETIME // timedelta(milliseconds=1))
    waiting = sql_number(tx.rows("SELECT count(*) FROM device")[0][0])
    if waiting >= _MOST_WAITING:
        raise ApiError(
            status=429,
            kind="rate",
            message="too many devices wait to be approved",
            advice="ask again in a few minutes",
            retry=True,
            retry_after_seconds=60,
        )
    code = DeviceCode(secrets.token_urlsafe(32), _user_code())
    tx.rows(
        "INSERT INTO device VALUES (?, ?, ?, ?, NULL, NULL, NULL, ?)",
        *(hash_token(code.device_code), code.user_code, STRANGE.sub("?", name)[:80], now_ms),
        _wanted(tx, org),
    )
    return code


def _wanted(tx: Tx, name: str) -> str:
    """The id of the organisation. One that is not there is not told: its code is one that nobody approves."""
    if name:
        found = tx.rows("SELECT id FROM org WHERE name = ? OR id = ?", name[:200], name[:200])
        return sql_text(found[0][0]) if found else NO_ORG
    orgs = tx.rows("SELECT id FROM org LIMIT 2")
    return sql_text(orgs[0][0]) if len(orgs) == 1 else ""


def approve_device(tx: Tx, who: Principal | OrgId, user_code: str, member: str, now_ms: int) -> OrgMember:
    org = who.org if isinstance(who, Principal) else who
    spelled = "".join(user_code.upper().split()).replace("-", "")
    found = tx.rows(
        f"SELECT created, name, wanted FROM device WHERE user_code = ? AND org IS NULL{tx.locking}",
        f"{spelled[:4]}-{spelled[4:]}",
    )
    # On a server of several organisations, a device that named none is the operator's to place.
    allowed = (org,) if isinstance(who, Principal) else (org, "")
    if not found or _is_over(sql_number(found[0][0]), now_ms) or found[0][2] not in allowed:
        raise ApiError(
            status=404,
            kind="not found",
            message="no device waits with that code",
            advice="start again: sevenfold team join URL --org NAME",
        )
    chosen = find_member(tx, org, member)
    check_outranks(who, chosen)
    check_grants(who, _SCOPES)
    tx.rows(
        "UPDATE device SET org = ?, member = ?, scopes = ? WHERE user_code = ?",
        *(org, chosen.id, " ".join(_SCOPES), f"{spelled[:4]}-{spelled[4:]}"),
    )
    record_audit(tx, who, "device.approve", now_ms, detail=f"{found[0][1]} for {chosen.name}")
    return chosen


def read_approval(tx: Tx, device_code: str, now_ms: int) -> OrgId:
    """The organisation that approved the device; the token is then made in a transaction of its own."""
    found = tx.rows("SELECT created, org FROM device WHERE hash = ?", hash_token(device_code))
    if not found or _is_over(sql_number(found[0][0]), now_ms):
        raise ApiError(
            status=400,
            kind="expired",
            message="the code is unknown, used or past its time",
            advice="start again: sevenfold team join URL",
        )
    if found[0][1] is None:
        raise ApiError(
            status=400,
            kind="pending",
            message="nobody has approved the device yet",
            advice=f"ask again in {DEVICE_POLL_INTERVAL.seconds} seconds",
            retry=True,
        )
    return OrgId(sql_text(found[0][1]))


def finish_device(tx: Tx, org: OrgId, device_code: str, now_ms: int) -> SignedInDevice:
    """The token of an approved device, once."""
    found = tx.rows(
        "DELETE FROM device WHERE hash = ? AND org = ? RETURNING member, scopes, created",
        *(hash_token(device_code), org),
    )
    if not found:
        raise ApiError(
            status=400,
            kind="expired",
            message="the code is unknown, used or past its time",
            advice="start again: sevenfold team join URL",
        )
    member = find_member(tx, org, sql_text(found[0][0]))
    scopes = check_scopes(sql_text(found[0][1]).split())
    token = add_token(tx, org, member.id, scopes, now_ms, lasts=TOKEN_LIFETIME)
    return SignedInDevice(org, member, scopes, token)


def _is_over(created_ms: int, now_ms: int) -> bool:
    return now_ms - created_ms >= CODE_LIFETIME // timedelta(milliseconds=1)


def _user_code() -> str:
    letters = "".join(secrets.choice(LETTERS) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"


MOST_DAYS = 3_650
MOST_LINES = 1_000


async def handle_whoami(app: AppState, call: ApiRequest) -> ApiResponse:
    who = call.who
    await app.read_quick(who, lambda _tx: None)  # only whether it still holds
    expires = None if who.expires_ms is None else format_ms_time(who.expires_ms)
    body = messages.WhoTold(
        org=who.org,
        org_name=who.org_name,
        member=who.member_name,
        role=who.role,
        scopes=sorted(who.scopes),
        token=who.token,
        expires=expires,
    )
    return ApiResponse(body)


async def handle_list_repos(app: AppState, call: ApiRequest) -> ApiResponse:
    org = call.who.org
    repos = await app.read(call.who, lambda tx: list_repos(tx, org))
    return ApiResponse(messages.ReposTold([_repo(one) for one in repos]))


async def handle_claim_repo(app: AppState, call: ApiRequest) -> ApiResponse:
    sent, who, now = cast("messages.ClaimSent", call.body), call.who, app.now_ms
    repo = await app.write(
        who, lambda tx: claim_repo(tx, who, sent.name, sent.remote, "admin", now_ms=now, limits=app.limits)
    )
    return ApiResponse(_repo(repo), 201)


async def handle_prove_repo(app: AppState, call: ApiRequest) -> ApiResponse:
    sent, who, now = cast("messages.ProofSent", call.body), call.who, app.now_ms
    if app.forge is None:
        raise ApiError(
            status=422,
            kind="bad request",
            message="this server asks no forge",
            advice="have an admin claim the repository, or start the server with --forge HOST",
        )
    found = await app.forge.look_up(sent.remote, sent.credential)
    proof = f"{app.forge.host}#{found.number}"
    repo = await app.write(
        who, lambda tx: claim_repo(tx, who, found.name, sent.remote, proof, now_ms=now, limits=app.limits)
    )
    return ApiResponse(_repo(repo), 201)


async def handle_list_members(app: AppState, call: ApiRequest) -> ApiResponse:
    org = call.who.org
    members = await app.read(call.who, lambda tx: list_members(tx, org))
    return ApiResponse(messages.MembersTold([_member(one) for one in members]))


async def handle_add_member(app: AppState, call: ApiRequest) -> ApiResponse:
    sent, who, now = cast("messages.MemberSent", call.body), call.who, app.now_ms
    member = await app.write(who, lambda tx: add_member(tx, who, sent.name, sent.role, now))
    return ApiResponse(_member(member), 201)


async def handle_change_member(app: AppState, call: ApiRequest) -> ApiResponse:
    sent, who, now = cast("messages.RoleSent", call.body), call.who, app.now_ms
    name = call.path_params["member"]
    return ApiResponse(_member(await app.write(who, lambda tx: change_role(tx, who, name, sent.role, now))))


async def handle_remove_member(app: AppState, call: ApiRequest) -> ApiResponse:
    who, now, name = call.who, app.now_ms, call.path_params["member"]
    await app.write(who, lambda tx: remove_member(tx, who, name, now))
    return ApiResponse(messages.DoneTold())


async def handle_list_tokens(app: AppState, call: ApiRequest) -> ApiResponse:
    org = call.who.org
    tokens = await app.read(call.who, lambda tx: list_tokens(tx, org))
    return ApiResponse(
        messages.TokensTold(
            [
                messages.TokenTold(
                    id=one.id,
                    member=one.member,
                    scopes=one.scopes,
                    created=format_ms_time(one.created_ms),
                    expires=None if one.expires_ms is None else format_ms_time(one.expires_ms),
                    revoked=one.is_revoked,
                )
                for one in tokens
            ]
        )
    )


async def handle_add_token(app: AppState, call: ApiRequest) -> ApiResponse:
    sent, who, now = cast("messages.TokenSent", call.body), call.who, app.now_ms
    if not 1 <= sent.days <= MOST_DAYS:
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"a token cannot last {sent.days} days",
            advice=f"say 1 to {MOST_DAYS}",
        )
    lasts = timedelta(days=sent.days)
    token = await app.write(who, lambda tx: add_token(tx, who, sent.member, sent.scopes, now, lasts=lasts))
    return ApiResponse(messages.NewTokenTold(token.id, token.text), 201)


async def handle_revoke_token(app: AppState, call: ApiRequest) -> ApiResponse:
    who, now, token = call.who, app.now_ms, call.path_params["id"]
    await app.write(who, lambda tx: revoke_token(tx, who, token, now))
    return ApiResponse(messages.DoneTold())


async def handle_start_device(app: AppState, call: ApiRequest) -> ApiResponse:
    sent, now = cast("messages.DeviceSent", call.body), app.now_ms
    code = await app.write(None, lambda tx: start_device(tx, sent.name, now, sent.org))
    verify = f"an admin runs: sevenfold serve device approve ORG {code.user_code} MEMBER"
    body = messages.DeviceTold(
        device_code=code.device_code,
        user_code=code.user_code,
        verify=verify,
        interval=DEVICE_POLL_INTERVAL.seconds,
        expires_in=CODE_LIFETIME.seconds,
    )
    return ApiResponse(body, 201)


async def handle_poll_device(app: AppState, call: ApiRequest) -> ApiResponse:
    code, now = cast("messages.PollSent", call.body).device_code, app.now_ms
    org = await app.read(None, lambda tx: read_approval(tx, code, now))
    done = await app.write(org, lambda tx: finish_device(tx, org, code, now))
    return ApiResponse(messages.SignedInTold(done.token.text, done.org, done.member.name, done.scopes))


async def handle_approve_device(app: AppState, call: ApiRequest) -> ApiResponse:
    sent, who, now = cast("messages.ApprovalSent", call.body), call.who, app.now_ms
    member = await app.write(who, lambda tx: approve_device(tx, who, sent.user_code, sent.member, now))
    return ApiResponse(_member(member))


async def handle_allow_finding(app: AppState, call: ApiRequest) -> ApiResponse:
    sent, who, now = cast("messages.AllowanceSent", call.body), call.who, app.now_ms
    await app.write(who, lambda tx: allow_finding(tx, who, sent.fingerprint, sent.reason, now))
    return ApiResponse(messages.DoneTold(), 201)


async def handle_read_audit(app: AppState, call: ApiRequest) -> ApiResponse:
    org = call.who.org
    limit = _whole(call.query.get("limit", "100"), "limit", MOST_LINES)
    before = _before(call.query["before"]) if "before" in call.query else None
    lines = await app.read(call.who, lambda tx: read_audit(tx, org, limit, before))
    return ApiResponse(
        messages.AuditTold(
            [
                messages.LineTold(
                    id=one.id,
                    at=format_ms_time(one.at_ms),
                    member=one.member,
                    token=one.token,
                    verb=one.verb,
                    repo=one.repo,
                    detail=one.detail,
                )
                for one in lines
            ]
        )
    )


def _before(text: str) -> str:
    """The id of a line, or a time that stands before all ids of its millisecond."""
    return text if AUDIT_LINE_ID.fullmatch(text) else f"{_whole(text, 'before', 10**15 - 1):015d}"


def _whole(text: str, name: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and 1 <= int(text) <= most):
        raise ApiError(
            status=400,
            kind="bad request",
            message=f"{name} is {text[:40]!r}",
            advice=f"send a whole number from 1 to {most:,}",
        )
    return int(text)


def _repo(one: Repo) -> messages.RepoTold:
    return messages.RepoTold(
        id=one.id,
        name=one.name,
        remote=one.remote,
        proof=one.proof,
        seq=one.seq,
        entries=one.entries,
        bytes=one.bytes,
    )


def _member(one: OrgMember) -> messages.MemberTold:
    return messages.MemberTold(one.id, one.name, one.role)
