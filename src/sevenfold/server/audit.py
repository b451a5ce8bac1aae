"""Who did what, and when: a log that only grows, without a word of any memory."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from sevenfold.server.database import OrgId, Tx, number_of, text_of
from sevenfold.server.rights import Principal


@dataclass(frozen=True, slots=True)
class AuditLine:
    at_ms: int
    member: str
    token: str
    verb: str
    repo: str
    detail: str


def record(
    tx: Tx, who: Principal | OrgId, verb: str, now_ms: int, *, repo: str = "", detail: str = ""
) -> None:
    """A line of the log, in the transaction of what it tells. An organisation alone: done on the machine."""
    org, member, token = (
        (who.org, who.member, who.token) if isinstance(who, Principal) else (who, "operator", "")
    )
    # Milliseconds first, so that lines of one moment keep an order of their own.
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


def read_audit(tx: Tx, org: OrgId, limit: int, before_ms: int | None = None) -> list[AuditLine]:
    """The newest first."""
    rows = tx.rows(
        "SELECT at, member, token, verb, repo, detail FROM audit WHERE org = ? AND at < ?"
        " ORDER BY at DESC, id DESC LIMIT ?",
        org,
        2**62 if before_ms is None else before_ms,
        limit,
    )
    return [AuditLine(number_of(row[0]), *(text_of(value) for value in row[1:])) for row in rows]
