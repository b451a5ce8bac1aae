"""Repositories: an id of ours that never changes, claimed by an admin or with a proof from the forge.

A remote is a string that anybody can set, so it is only a hint for finding the repository. The proof is that
the forge says who may push to it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias, cast

from sevenfold.core.errors import InputError
from sevenfold.team.protocol import RepoId
from sevenfold.team.server.database import OrgId, SqlRow, Tx, sql_number, sql_text
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.people import new_row_id
from sevenfold.team.server.policy import Principal, ServerLimits, record_audit
from sevenfold.team.server.scanning import check_text_secrets

if TYPE_CHECKING:
    import httpx2

REPO_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,3}", re.ASCII)
REPO_REMOTE = re.compile(r"[!-~]{0,500}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    id: RepoId
    name: str
    remote: str
    proof: str
    """`admin`, or the forge and its own immutable number for the repository."""
    seq: int
    entries: int
    bytes: int


def claim_repo(
    tx: Tx, who: Principal | OrgId, name: str, remote: str, proof: str, now_ms: int, limits: ServerLimits
) -> Repo:
    org = who.org if isinstance(who, Principal) else who
    if not REPO_NAME.fullmatch(name) or not REPO_REMOTE.fullmatch(remote):
        wrong = name if not REPO_NAME.fullmatch(name) else remote
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"{wrong[:80]!r} cannot be a repository's name or remote",
            advice="name it like owner/name, of letters, digits and . _ -; a remote has no spaces",
        )
    check_text_secrets(f"{name}\n{remote}", "its name or remote")
    if "#" in proof:  # the forge's number, which stays when it is renamed there
        _check_unproved(tx, org, proof)
    count = sql_number(tx.rows("SELECT count(*) FROM repo WHERE org = ?", org)[0][0])
    if count >= limits.repos:
        raise ApiError(
            status=422,
            kind="quota",
            message=f"the organisation has {count:,} repositories, its limit",
            advice="ask the operator for more",
        )
    id_ = RepoId(new_row_id())
    added = tx.rows(
        "INSERT INTO repo VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0)"
        " ON CONFLICT (org, name) DO NOTHING RETURNING id",
        *(org, id_, name, remote, proof, now_ms),
    )
    if not added:
        raise ApiError(
            status=409,
            kind="exists",
            message=f"there is a repository called {name} already",
            advice="use that one",
        )
    record_audit(tx, who, "repo.claim", now_ms, repo=id_, detail=f"{name}, by {proof}")
    return Repo(id=id_, name=name, remote=remote, proof=proof, seq=0, entries=0, bytes=0)


def _check_unproved(tx: Tx, org: OrgId, proof: str) -> None:
    found = tx.rows("SELECT name FROM repo WHERE org = ? AND proof = ?", org, proof)
    if found:
        raise ApiError(
            status=409,
            kind="exists",
            message=f"it is claimed already, as {sql_text(found[0][0])}",
            advice="use that one: it is the same",
        )


def list_repos(tx: Tx, org: OrgId) -> list[Repo]:
    rows = tx.rows(
        "SELECT id, name, remote, proof, seq, entries, bytes FROM repo WHERE org = ? ORDER BY name", org
    )
    return [_repo(row) for row in rows]


@dataclass(frozen=True, slots=True)
class CollectedRows:
    tombstones: int
    bodies: int
    answers: int


def collect_garbage(tx: Tx, org: OrgId, repo: RepoId, now_ms: int, limits: ServerLimits) -> CollectedRows:
    """Forget tombstones, bodies and answers that are past their time. History and audit stay."""

    def before(span: timedelta) -> int:
        return now_ms - span // timedelta(milliseconds=1)

    # Held against commits: one of them may be about to name a body that is about to go.
    tx.rows(f"SELECT seq FROM repo WHERE org = ? AND id = ?{tx.locking}", org, repo)
    gone = tx.rows(
        "DELETE FROM entry WHERE org = ? AND repo = ? AND checksum IS NULL AND changed < ? RETURNING version",
        *(org, repo, before(timedelta(days=limits.tombstone_days))),
    )
    if gone:
        floor = max(sql_number(row[0]) for row in gone)
        tx.rows("UPDATE repo SET floor = ? WHERE org = ? AND id = ? AND floor < ?", floor, org, repo, floor)
    bodies = tx.rows(
        "DELETE FROM blob WHERE org = ? AND repo = ? AND is_kept = 0 AND created < ? RETURNING checksum",
        *(org, repo, before(timedelta(hours=limits.body_hours))),
    )
    tx.rows(
        "DELETE FROM waiting WHERE org = ? AND repo = ? AND created < ?",
        *(org, repo, before(timedelta(hours=limits.body_hours))),
    )
    answers = tx.rows(
        "DELETE FROM applied WHERE org = ? AND repo = ? AND at < ? RETURNING id",
        *(org, repo, before(timedelta(days=limits.replay_days))),
    )
    return CollectedRows(len(gone), len(bodies), len(answers))


def _repo(row: SqlRow) -> Repo:
    id_, name, remote, proof, seq, entries, size = row
    return Repo(
        id=RepoId(sql_text(id_)),
        name=sql_text(name),
        remote=sql_text(remote),
        proof=sql_text(proof),
        seq=sql_number(seq),
        entries=sql_number(entries),
        bytes=sql_number(size),
    )


# GitHub, GitHub Enterprise, Gitea and Forgejo answer alike.

PUBLIC_APIS = {"github.com": "https://api.github.com"}
"""Whose API is not under its own name."""

_REMOTE = re.compile(
    r"(?:https://|ssh://git@|git@)([a-z0-9.-]{1,200})(?:/|:)"
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})/([A-Za-z0-9._-]{1,100}?)(?:\.git)?/?",
    re.ASCII,
)
TIMEOUT_SECONDS = 10
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class ForgeRepo:
    number: int
    """The forge's own, which stays when the repository is renamed or moved."""
    name: str
    may_push: bool


@dataclass(frozen=True, slots=True)
class ForgePath:
    host: str
    owner: str
    name: str


FetchUrl: TypeAlias = Callable[[str, str], Awaitable[bytes | None]]
"""A URL and a credential; None where the forge does not show it."""


def read_remote(remote: str) -> ForgePath:
    found = _REMOTE.fullmatch(remote)
    if found is None or ".." in remote:
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"{remote[:120]!r} is no remote of a forge",
            advice="send it like https://HOST/OWNER/NAME or git@HOST:OWNER/NAME",
        )
    return ForgePath(found[1], found[2], found[3])


class Forge:
    """The one forge that this server trusts: a host that a client names is asked nothing."""

    def __init__(self, host: str, fetch: FetchUrl) -> None:
        self.host, self._fetch = host, fetch

    async def look_up(self, remote: str, credential: str) -> ForgeRepo:
        """`ApiError` 422 unless the credential's owner may push there."""
        path = read_remote(remote)
        if path.host != self.host:
            raise ApiError(
                status=422,
                kind="bad request",
                message=f"{path.host} is not the forge of this server",
                advice=f"use a remote of {self.host}",
            )
        api = PUBLIC_APIS.get(self.host, f"https://{self.host}/api/v1")
        said = await self._fetch(f"{api}/repos/{path.owner}/{path.name}", credential)
        repo = _read(said) if said is not None else None
        if repo is None or not repo.may_push:
            raise ApiError(
                status=422,
                kind="bad request",
                message="the forge does not say that this credential may push there",
                advice="check remote and credential, or have an admin claim the repository",
            )
        return repo


def _read(said: bytes) -> ForgeRepo | None:
    try:
        answer: object = json.loads(said)
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    fields = cast("dict[str, object]", answer)
    number, name, rights = fields.get("id"), fields.get("full_name"), fields.get("permissions")
    if not isinstance(number, int) or not isinstance(name, str) or not isinstance(rights, dict):
        return None
    return ForgeRepo(number, name, cast("dict[str, object]", rights).get("push") is True)


async def fetch_over_http(url: str, credential: str) -> bytes | None:
    import httpx2

    if not credential.isascii() or not credential.isprintable():
        raise InputError("the forge's credential has characters that no header can hold; copy it again")
    headers = {
        "authorization": f"Bearer {credential}",
        "accept": "application/json",
        "accept-encoding": "identity",
    }
    try:
        async with (
            asyncio.timeout(2 * TIMEOUT_SECONDS),
            httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=False) as client,
            client.stream("GET", url, headers=headers) as answer,
        ):
            return await _read_forge_answer(answer)
    except (httpx2.HTTPError, TimeoutError) as error:
        raise ApiError(
            status=503,
            kind="not ready",
            message=f"the forge did not answer ({type(error).__name__})",
            advice="ask again later, or have an admin claim the repository",
            retry=True,
            retry_after_seconds=30,
        ) from error


async def _read_forge_answer(answer: httpx2.Response) -> bytes | None:
    """As it came: what is packed may unpack to a thousand times its size."""
    if answer.status_code != 200 or answer.headers.get("content-encoding", "identity") != "identity":
        return None
    data = bytearray()
    async for chunk in answer.aiter_raw():
        data += chunk
        if len(data) > _MAX_BYTES:
            return None
    return bytes(data)
