"""A repository's shared memory in the database: what is there, and what clients do to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from sevenfold.core.errors import InputError, KeyRefused
from sevenfold.core.team_keys import check_team_key
from sevenfold.server.committing import ABSENT, Writer, read_entries, read_state, run_commit
from sevenfold.server.database import Row, Tx, bytes_of, number_of, text_of
from sevenfold.server.refusals import Refusal, not_found
from sevenfold.server.rights import Principal
from sevenfold.sync.protocol import (
    Applied,
    Change,
    Checksum,
    Commit,
    CommitId,
    Entry,
    RepoId,
    TeamKey,
    check_commit,
    checksum_of,
)


@dataclass(frozen=True, slots=True)
class Living:
    version: int
    checksum: Checksum
    content: str | None
    """None where only checksums were asked for."""


@dataclass(frozen=True, slots=True)
class Contents:
    seq: int
    floor: int
    entries: Mapping[TeamKey, Living]
    deleted: Mapping[TeamKey, int]
    """The versions of tombstones."""


def read_seq(tx: Tx, who: Principal, repo: RepoId) -> int:
    found = tx.rows("SELECT seq FROM repo WHERE org = ? AND id = ?", who.org, repo)
    if not found:
        raise not_found("such repository")
    return number_of(found[0][0])


def read_contents(tx: Tx, who: Principal, repo: RepoId, *, bodies: bool) -> Contents:
    state = read_state(tx, who, repo)
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
        TeamKey(text_of(key)): Living(
            number_of(version),
            Checksum(text_of(checksum)),
            bytes_of(body).decode() if bodies else None,
        )
        for key, version, checksum, body in rows
        if checksum is not None
    }
    deleted = {TeamKey(text_of(row[0])): number_of(row[1]) for row in rows if row[2] is None}
    return Contents(state.seq, state.floor, living, deleted)


def read_body(tx: Tx, who: Principal, repo: RepoId, checksum: str) -> bytes:
    """A body that some commit has named, now or in the past."""
    read_state(tx, who, repo)
    found = tx.rows(
        "SELECT body FROM blob WHERE org = ? AND repo = ? AND checksum = ? AND is_kept = 1",
        who.org,
        repo,
        checksum,
    )
    if not found:
        raise not_found("body with that checksum in the repository")
    return bytes_of(found[0][0])


def store_bodies(tx: Tx, writer: Writer, bodies: Sequence[str]) -> list[Checksum]:
    """Keep bodies for a commit to come; nobody sees them before."""
    read_state(tx, writer.principal, writer.repo)
    checksums = _insert_bodies(tx, writer, bodies)
    waiting = tx.rows(
        "SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM blob WHERE org = ? AND repo = ? AND is_kept = 0",
        writer.principal.org,
        writer.repo,
    )
    used = number_of(waiting[0][0])
    if used > writer.limits.waiting_bytes:
        raise Refusal(
            422,
            "quota",
            f"{used:,} bytes of bodies wait for a commit; {writer.limits.waiting_bytes:,} may",
            f"commit what was sent, or wait {writer.limits.body_hours} hours until it is forgotten",
        )
    return checksums


def commit(tx: Tx, writer: Writer, wanted: Commit) -> Applied:
    """Apply a commit, or answer as before if it was applied already."""
    _check(wanted)
    state = read_state(tx, writer.principal, writer.repo, locking=tx.locking)
    digest = _digest(wanted)
    seq = _applied_before(tx, writer, wanted.id, digest)
    if seq is not None:
        return Applied(seq, {one.key: Entry(seq, one.checksum) for one in wanted.changes})
    applied = run_commit(tx, writer, state, wanted, "commit")
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


def upsert(tx: Tx, writer: Writer, texts: Mapping[str, str], if_match: frozenset[str] | None) -> Applied:
    """What a simple client sends: these texts, over whatever is there; nothing is deleted."""
    check_keys(texts)
    state = read_state(tx, writer.principal, writer.repo, locking=tx.locking)
    if if_match is not None and f'"{state.seq}"' not in if_match and "*" not in if_match:
        raise Refusal(
            412,
            "stale",
            f"the repository is at {state.seq} and not where If-Match says",
            "read the checksums, take what changed, and send the rest with the new ETag",
            extras={"seq": state.seq},
        )
    now = read_entries(tx, writer, texts)
    changes = tuple(
        Change(TeamKey(key), now.get(TeamKey(key), ABSENT).entry.version, checksum)
        for key, text in texts.items()
        if (checksum := checksum_of(text)) != now.get(TeamKey(key), ABSENT).entry.checksum
    )
    if not changes:
        return Applied(state.seq, {key: held.entry for key, held in now.items()})
    wanted = Commit(CommitId("upsert"), changes)
    _insert_bodies(tx, writer, [texts[one.key] for one in changes])
    applied = run_commit(tx, writer, state, wanted, "upsert")
    return Applied(applied.seq, {**{key: held.entry for key, held in now.items()}, **applied.entries})


def check_keys(keys: Iterable[str]) -> None:
    """`Refusal` 422 for the first that cannot be a shared memory's name."""
    for key in keys:
        try:
            check_team_key(key)
        except KeyRefused as error:
            raise Refusal(
                422, "key", str(error), "rename the memory", extras={"keys": [key[:200]]}
            ) from error


def _check(wanted: Commit) -> None:
    check_keys(one.key for one in wanted.changes)
    try:
        check_commit(wanted)
    except InputError as error:
        raise Refusal(
            422, "bad request", str(error), "send a commit as docs/sync-protocol.md has it"
        ) from error


def _insert_bodies(tx: Tx, writer: Writer, bodies: Sequence[str]) -> list[Checksum]:
    checksums = [checksum_of(body) for body in bodies]
    rows: list[Row] = []
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


def _applied_before(tx: Tx, writer: Writer, id_: CommitId, digest: str) -> int | None:
    found = tx.rows(
        "SELECT digest, seq FROM applied WHERE org = ? AND repo = ? AND id = ?",
        writer.principal.org,
        writer.repo,
        id_,
    )
    if not found:
        return None
    if found[0][0] != digest:
        raise Refusal(
            422,
            "commit reused",
            f"the id {id_[:80]!r} was another commit's",
            "make ids from what is changed, so that different commits have different ones",
        )
    return number_of(found[0][1])


def _digest(wanted: Commit) -> str:
    said = "\n".join(sorted(f"{one.key} {one.expected} {one.checksum}" for one in wanted.changes))
    return sha256(said.encode()).hexdigest()
