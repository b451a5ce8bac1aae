"""A repository's shared memory in the database: what is there, and what clients do to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from sevenfold.core.errors import InputError, KeyRefused
from sevenfold.core.team_keys import check_team_key
from sevenfold.team.protocol import (
    Checksum,
    Commit,
    CommitApplied,
    CommitId,
    RepoId,
    TeamChange,
    TeamEntry,
    TeamKey,
    check_commit,
    compute_checksum,
)
from sevenfold.team.server.api_errors import ApiError, make_not_found
from sevenfold.team.server.commits import (
    NO_STORED_ENTRY,
    WriteContext,
    execute_commit,
    read_repo_state,
    read_stored_entries,
)
from sevenfold.team.server.database import SqlRow, Tx, sql_bytes, sql_number, sql_text
from sevenfold.team.server.rights import Principal


@dataclass(frozen=True, slots=True)
class LiveEntry:
    version: int
    checksum: Checksum
    content: str | None
    """None where only checksums were asked for."""


@dataclass(frozen=True, slots=True)
class RepoContents:
    seq: int
    floor: int
    entries: Mapping[TeamKey, LiveEntry]
    deleted: Mapping[TeamKey, int]
    """The versions of tombstones."""


def read_seq(tx: Tx, who: Principal, repo: RepoId) -> int:
    found = tx.rows("SELECT seq FROM repo WHERE org = ? AND id = ?", who.org, repo)
    if not found:
        raise make_not_found("such repository")
    return sql_number(found[0][0])


def read_contents(tx: Tx, who: Principal, repo: RepoId, *, bodies: bool) -> RepoContents:
    state = read_repo_state(tx, who, repo)
    column, join = "NULL", ""
    if bodies:
        column = "blob.body"
        join = (
            " LEFT JOIN blob ON blob.org = entry.org AND blob.repo = entry.repo"
            " AND blob.checksum = entry.checksum"
        )
    rows = tx.rows(
        f"SELECT entry.key, entry.version, entry.checksum, {column} FROM entry{join}"
        " WHERE entry.org = ? AND entry.repo = ? ORDER BY entry.key",
        who.org,
        repo,
    )
    living = {
        TeamKey(sql_text(key)): LiveEntry(
            sql_number(version),
            Checksum(sql_text(checksum)),
            sql_bytes(body).decode() if bodies else None,
        )
        for key, version, checksum, body in rows
        if checksum is not None
    }
    deleted = {TeamKey(sql_text(row[0])): sql_number(row[1]) for row in rows if row[2] is None}
    return RepoContents(state.seq, state.floor, living, deleted)


def read_body(tx: Tx, who: Principal, repo: RepoId, checksum: str) -> bytes:
    """A body that some commit has named, now or in the past."""
    read_repo_state(tx, who, repo)
    found = tx.rows(
        "SELECT body FROM blob WHERE org = ? AND repo = ? AND checksum = ? AND is_kept = 1",
        who.org,
        repo,
        checksum,
    )
    if not found:
        raise make_not_found("body with that checksum in the repository")
    return sql_bytes(found[0][0])


def store_bodies(tx: Tx, writer: WriteContext, bodies: Sequence[str]) -> list[Checksum]:
    """Keep bodies for a commit to come; nobody sees them before."""
    read_repo_state(tx, writer.principal, writer.repo)
    checksums = _insert_bodies(tx, writer, bodies)
    waiting = tx.rows(
        "SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM blob WHERE org = ? AND repo = ? AND is_kept = 0",
        writer.principal.org,
        writer.repo,
    )
    used = sql_number(waiting[0][0])
    if used > writer.limits.waiting_bytes:
        raise ApiError(
            status=422,
            kind="quota",
            message=f"{used:,} bytes of bodies wait for a commit; {writer.limits.waiting_bytes:,} may",
            advice=f"commit what was sent, or wait {writer.limits.body_hours} hours until it is forgotten",
        )
    return checksums


def apply_writer_commit(tx: Tx, writer: WriteContext, wanted: Commit) -> CommitApplied:
    """Apply a commit, or answer as before if it was applied already."""
    _check(wanted)
    state = read_repo_state(tx, writer.principal, writer.repo, locking=tx.locking)
    digest = _digest(wanted)
    seq = _applied_before(tx, writer, wanted.id, digest)
    if seq is not None:
        return CommitApplied(seq, {one.key: TeamEntry(seq, one.checksum) for one in wanted.changes})
    applied = execute_commit(tx, writer, state, wanted, "commit")
    tx.rows(
        "INSERT INTO applied VALUES (?, ?, ?, ?, ?, ?)",
        writer.principal.org,
        writer.repo,
        wanted.id,
        digest,
        applied.seq,
        writer.now_ms,
    )
    return applied


def upsert_texts(
    tx: Tx, writer: WriteContext, texts: Mapping[str, str], if_match: frozenset[str] | None
) -> CommitApplied:
    """What a simple client sends: these texts, over whatever is there; nothing is deleted."""
    check_team_keys(texts)
    state = read_repo_state(tx, writer.principal, writer.repo, locking=tx.locking)
    if if_match is not None and f'"{state.seq}"' not in if_match and "*" not in if_match:
        raise ApiError(
            status=412,
            kind="stale",
            message=f"the repository is at {state.seq} and not where If-Match says",
            advice="read the checksums, take what changed, and send the rest with the new ETag",
            extras={"seq": state.seq},
        )
    now = read_stored_entries(tx, writer, texts)
    changes = tuple(
        TeamChange(TeamKey(key), now.get(TeamKey(key), NO_STORED_ENTRY).entry.version, checksum)
        for key, text in texts.items()
        if (checksum := compute_checksum(text)) != now.get(TeamKey(key), NO_STORED_ENTRY).entry.checksum
    )
    if not changes:
        return CommitApplied(state.seq, {key: held.entry for key, held in now.items()})
    wanted = Commit(CommitId("upsert"), changes)
    _insert_bodies(tx, writer, [texts[one.key] for one in changes])
    applied = execute_commit(tx, writer, state, wanted, "upsert")
    return CommitApplied(applied.seq, {**{key: held.entry for key, held in now.items()}, **applied.entries})


def check_team_keys(keys: Iterable[str]) -> None:
    """`Refusal` 422 for the first that cannot be a shared memory's name."""
    for key in keys:
        try:
            check_team_key(key)
        except KeyRefused as error:
            raise ApiError(
                status=422,
                kind="key",
                message=str(error),
                advice="rename the memory",
                extras={"keys": [key[:200]]},
            ) from error


def _check(wanted: Commit) -> None:
    check_team_keys(one.key for one in wanted.changes)
    try:
        check_commit(wanted)
    except InputError as error:
        raise ApiError(
            status=422,
            kind="bad request",
            message=str(error),
            advice="send a commit as docs/sync-protocol.md has it",
        ) from error


def _insert_bodies(tx: Tx, writer: WriteContext, bodies: Sequence[str]) -> list[Checksum]:
    checksums = [compute_checksum(body) for body in bodies]
    rows: list[SqlRow] = []
    for checksum, body in dict(zip(checksums, bodies, strict=True)).items():
        raw = body.encode()
        rows.append((writer.principal.org, writer.repo, checksum, raw, len(raw), writer.now_ms))
    # One that waits already waits from now on: its commit is on its way again.
    tx.run_each(
        "INSERT INTO blob VALUES (?, ?, ?, ?, ?, ?, 0) ON CONFLICT (org, repo, checksum)"
        " DO UPDATE SET created = excluded.created",
        rows,
    )
    return checksums


def _applied_before(tx: Tx, writer: WriteContext, id_: CommitId, digest: str) -> int | None:
    found = tx.rows(
        "SELECT digest, seq FROM applied WHERE org = ? AND repo = ? AND id = ?",
        writer.principal.org,
        writer.repo,
        id_,
    )
    if not found:
        return None
    if found[0][0] != digest:
        raise ApiError(
            status=422,
            kind="commit reused",
            message=f"the id {id_[:80]!r} was another commit's",
            advice="make ids from what is changed, so that different commits have different ones",
        )
    return sql_number(found[0][1])


def _digest(wanted: Commit) -> str:
    said = "\n".join(sorted(f"{one.key} {one.expected} {one.checksum}" for one in wanted.changes))
    return sha256(said.encode()).hexdigest()
