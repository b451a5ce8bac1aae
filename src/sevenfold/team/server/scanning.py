"""Scans what clients send for secrets: a client may be old, broken or not ours.

Small texts are scanned at once, larger ones in other processes.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import signal
import threading
from asyncio import Semaphore
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING, TypeAlias, cast
from weakref import WeakValueDictionary

from sevenfold.core.secrets import (
    MAX_SCAN_CHARS,
    Allowance,
    Fingerprint,
    Inspection,
    SecretFinding,
    describe_refusal,
    find_secrets,
)
from sevenfold.team.server.database import OrgId, Tx, sql_text
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.policy import Principal, record_audit

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor


META_KEY = "fingerprint key"
TOGETHER = "all together"
"""Under this name stands what was found across texts. No memory can be called so."""

BlockedFindings: TypeAlias = list[dict[str, object]]
"""What was found in one text, as it is told."""


def read_fingerprint_key(tx: Tx) -> bytes:
    """Made once for a database, so that every process gives a finding the same name."""
    tx.rows("INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO NOTHING", META_KEY, secrets.token_hex(32))
    return bytes.fromhex(sql_text(tx.rows("SELECT value FROM meta WHERE name = ?", META_KEY)[0][0]))


def key_of_org(key: bytes, org: OrgId) -> bytes:
    """Of its own, so that a name says nothing to another organisation."""
    return hmac.digest(key, org.encode(), "sha256")


def allow_finding(tx: Tx, who: Principal | OrgId, fingerprint: str, reason: str, now_ms: int) -> None:
    org, member = (who.org, who.member) if isinstance(who, Principal) else (who, "operator")
    if not reason.strip() or len(reason) > 500 or "\0" in reason:
        raise ApiError(
            status=422,
            kind="bad request",
            message="an allowance needs a reason of 1 to 500 characters",
            advice="say why it is none",
        )
    if len(fingerprint) != 20 or not set(fingerprint) <= set("0123456789abcdef"):
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"{fingerprint[:80]!r} is no fingerprint",
            advice="copy the one that a refusal has told",
        )
    check_text_secrets(reason, "the reason")
    tx.rows(
        "INSERT INTO allowance VALUES (?, ?, ?, ?, ?) ON CONFLICT (org, fingerprint)"
        " DO UPDATE SET reason = excluded.reason, member = excluded.member, at = excluded.at",
        *(org, fingerprint, reason, member, now_ms),
    )
    record_audit(tx, who, "secret.allow", now_ms, detail=fingerprint)


def read_allowances(tx: Tx, org: OrgId) -> list[Allowance]:
    rows = tx.rows("SELECT fingerprint, reason FROM allowance WHERE org = ?", org)
    return [Allowance(Fingerprint(sql_text(row[0])), sql_text(row[1])) for row in rows]


def check_text_secrets(text: str, what: str) -> None:
    """`ApiError` 422 for a secret in words that are no memory, such as the password in a remote. Everybody is
    shown them, and nobody allows such a one."""
    found = find_secrets(text, key=bytes(16)).findings
    if found:
        raise ApiError(
            status=422,
            kind="secret",
            message=f"{what} seems to hold a secret ({found[0].name})",
            advice="take it out, and change it",
        )


def find_blocked(
    texts: Mapping[str, str], key: bytes, allowances: Sequence[Allowance]
) -> dict[str, BlockedFindings]:
    """Rule, line and fingerprint of what was found, by the name of its text; of clean texts nothing.

    A tenth of a second of work for the largest request.
    """
    found = {name: find_secrets(text, key=key, allowances=allowances) for name, text in texts.items()}
    joined = "".join(texts.values())
    if len(texts) > 1 and len(joined) <= MAX_SCAN_CHARS and all(one.is_clean for one in found.values()):
        # Half a key at the end of one file and half at the beginning of the next.
        found[TOGETHER] = find_secrets(joined, key=key, allowances=allowances)
    return {name: _list_findings(one) for name, one in found.items() if not one.is_clean}


def refuse_blocked(blocked: Mapping[str, BlockedFindings], count: int) -> None:
    """`ApiError` 422 if anything was found in so many texts."""
    unread = sorted(name for name, found in blocked.items() if all(one["rule"] == "refused" for one in found))
    if unread and len(unread) == len(blocked):
        raise ApiError(
            status=422,
            kind="secret",
            message=f"{len(unread)} of {count} texts cannot be looked through for secrets: "
            f"{blocked[unread[0]][0]['name']}; nothing was stored",
            advice="split the text, or take out what is encoded; it need not hold a secret",
            extras={"secrets": dict(blocked)},
        )
    if blocked:
        raise ApiError(
            status=422,
            kind="secret",
            message=f"{len(blocked)} of {count} texts seem to hold a secret; nothing was stored",
            advice="take it out, or have an admin allow its fingerprint with a reason",
            extras={"secrets": dict(blocked)},
        )


def _list_findings(inspection: Inspection) -> BlockedFindings:
    findings = [_finding(one) for one in inspection.findings]
    if inspection.refusal is not None:
        findings.append(
            {"rule": "refused", "name": describe_refusal(inspection.refusal), "line": 1, "fingerprint": ""}
        )
    return findings


def _finding(one: SecretFinding) -> dict[str, object]:
    return {"rule": cast("str", one.rule), "name": one.name, "line": one.line, "fingerprint": one.fingerprint}


# A scan keeps the interpreter lock while it runs: in a thread, the largest text would make every other
# request wait for a tenth of a second.

AT_ONCE = 2
"""They are all computing; more would only take turns."""
SMALL_CHARS = 2_000
"""A millisecond's work; to hand it to another process and back costs as much."""
NICENESS = 5
"""Answering those who wait comes before looking through what was just sent."""


class SecretScanners:
    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._free = Semaphore(AT_ONCE)
        self._lines: WeakValueDictionary[OrgId, Semaphore] = WeakValueDictionary()

    async def find(
        self, org: OrgId, texts: Mapping[str, str], key: bytes, allowances: Sequence[Allowance]
    ) -> Mapping[str, BlockedFindings]:
        """What seems to hold a secret, by the name of its text."""
        if sum(map(len, texts.values())) <= SMALL_CHARS:
            return find_blocked(texts, key, allowances)
        line = self._lines.get(org)
        if line is None:
            self._lines[org] = line = Semaphore(1)
        # One of an organisation at a time, so that a hundred texts of one are not before all others'.
        async with line, self._free:
            return await self._find_elsewhere(texts, key, allowances)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    async def _find_elsewhere(
        self, texts: Mapping[str, str], key: bytes, allowances: Sequence[Allowance]
    ) -> Mapping[str, BlockedFindings]:
        pool = self._pool = self._pool or _make_pool()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(pool, find_blocked, dict(texts), key, tuple(allowances))
        except BrokenExecutor as error:
            if self._pool is pool:
                self._pool = None
            raise ApiError(
                status=503,
                kind="not ready",
                message="the search for secrets ended before it was done; nothing was stored",
                advice="send the same again",
                retry=True,
                retry_after_seconds=1,
            ) from error


def _make_pool() -> ProcessPoolExecutor:
    """Multiprocessing is imported here, since it marks the interpreter that imports it."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn"), initializer=_settle_in)


def _settle_in() -> None:
    """A process that searches ends with its server, whether that is told to end or killed."""
    os.nice(NICENESS)
    for one in (signal.SIGINT, signal.SIGTERM):  # a supervisor sends them to the whole group
        signal.signal(one, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(0)
