"""Signing a laptop in without pasting a token: it shows a short code, and an admin approves that."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import timedelta

from sevenfold.team.server.api_errors import ApiError
from sevenfold.team.server.audit import record_audit
from sevenfold.team.server.database import OrgId, Tx, sql_number, sql_text
from sevenfold.team.server.people import (
    NewToken,
    OrgMember,
    add_token,
    check_outranks,
    check_scopes,
    find_member,
    hash_token,
)
from sevenfold.team.server.rights import Principal, TokenScope

LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, so that no words; nothing that looks like something else (RFC 8628)."""
STRANGE = re.compile(r"[^A-Za-z0-9 ._@+'-]", re.ASCII)
"""In the name of a device, which a stranger chooses and the audit log shows: on a terminal, for one."""
CODE_LIFETIME = timedelta(minutes=10)
DEVICE_POLL_INTERVAL = timedelta(seconds=5)
TOKEN_LIFETIME = timedelta(days=180)
_MOST_WAITING = 10_000
"""Codes at a time. They cost a row each and need no token, so there is an end to them."""
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


def start_device(tx: Tx, name: str, now_ms: int) -> DeviceCode:
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
        "INSERT INTO device VALUES (?, ?, ?, ?, NULL, NULL, NULL)",
        *(hash_token(code.device_code), code.user_code, STRANGE.sub("?", name)[:80], now_ms),
    )
    return code


def approve_device(tx: Tx, who: Principal | OrgId, user_code: str, member: str, now_ms: int) -> OrgMember:
    org = who.org if isinstance(who, Principal) else who
    spelled = "".join(user_code.upper().split()).replace("-", "")
    found = tx.rows(
        f"SELECT created, name, org FROM device WHERE user_code = ?{tx.locking}",
        f"{spelled[:4]}-{spelled[4:]}",
    )
    if not found or _is_over(sql_number(found[0][0]), now_ms) or found[0][2] is not None:
        raise ApiError(
            status=404,
            kind="not found",
            message="no device waits with that code",
            advice="start again: sevenfold team join URL",
        )
    chosen = find_member(tx, org, member)
    check_outranks(who, chosen)
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
