"""Who did what, and when: a log that only grows, without a word of any memory."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from sevenfold.team.server.database import OrgId, Tx, sql_number, sql_text
from sevenfold.team.server.policy import Principal

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
