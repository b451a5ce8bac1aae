"""A commit against the rows of a repository: what it finds, what it may, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sevenfold.team.protocol import (
    NO_ENTRY,
    Checksum,
    Commit,
    CommitApplied,
    CommitConflicts,
    RepoId,
    TeamEntry,
    TeamKey,
    apply_commit,
)
from sevenfold.team.server.database import Tx, placeholders, sql_number, sql_text
from sevenfold.team.server.messages import ApiError, make_not_found
from sevenfold.team.server.policy import Principal, ServerLimits, record_audit


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoState:
    """The row of a repository."""

    seq: int
    floor: int
    """Tombstones up to here may have been forgotten."""
    entries: int
    bytes: int
    kept_bytes: int


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Who writes where, and when."""

    principal: Principal
    repo: RepoId
    now_ms: int
    limits: ServerLimits


@dataclass(frozen=True, slots=True)
class StoredEntry:
    entry: TeamEntry
    bytes: int


NO_STORED_ENTRY = StoredEntry(NO_ENTRY, 0)

CHANGE_BYTES = 300
"""What history, audit and the answer take of the disk for each change, deletions too."""
STEP_BYTES = 1_000_000
"""The organisation's whole use is added up when one of its repositories has grown by so much."""


def read_repo_state(tx: Tx, who: Principal, repo: RepoId, *, locking: str = "") -> RepoState:
    found = tx.rows(
        f"SELECT seq, floor, entries, bytes, kept_bytes FROM repo WHERE org = ? AND id = ?{locking}",
        who.org,
        repo,
    )
    if not found:
        raise make_not_found("such repository")
    seq, floor, entries, size, kept = (sql_number(value) for value in found[0])
    return RepoState(seq=seq, floor=floor, entries=entries, bytes=size, kept_bytes=kept)


def read_stored_entries(tx: Tx, writer: WriteContext, keys: Iterable[str]) -> dict[TeamKey, StoredEntry]:
    names = sorted(keys)
    rows = tx.rows(
        "SELECT key, version, checksum, bytes FROM entry WHERE org = ? AND repo = ?"
        f" AND key IN ({placeholders(names)})",
        writer.principal.org,
        writer.repo,
        *names,
    )
    return {
        TeamKey(sql_text(key)): StoredEntry(
            TeamEntry(sql_number(version), None if checksum is None else Checksum(sql_text(checksum))),
            sql_number(size),
        )
        for key, version, checksum, size in rows
    }


@dataclass(frozen=True, slots=True)
class _Body:
    bytes: int
    is_kept: bool


def execute_commit(
    tx: Tx, writer: WriteContext, state: RepoState, wanted: Commit, verb: str
) -> CommitApplied:
    """The repository's row is locked, so nothing that is read here changes before the end."""
    stored = read_stored_entries(tx, writer, [one.key for one in wanted.changes])
    outcome = apply_commit({key: one.entry for key, one in stored.items()}, state.seq, wanted)
    if isinstance(outcome, CommitConflicts):
        raise _conflict(outcome)
    bodies = _read_sizes(tx, writer, wanted)
    after = _state_after(state, wanted, stored, bodies)
    _check_quota(writer.limits, state, after)
    _check_names(tx, writer, len(wanted.changes) - len(stored))
    if after.kept_bytes // STEP_BYTES > state.kept_bytes // STEP_BYTES:
        _check_org(tx, writer)
    _write(tx, writer, outcome, after, bodies)
    deleted = sum(1 for one in wanted.changes if one.checksum is None)
    detail = f"{len(wanted.changes)} changed, {deleted} of them deleted, at {outcome.seq}"
    record_audit(tx, writer.principal, f"memory.{verb}", writer.now_ms, repo=writer.repo, detail=detail)
    return outcome


def _conflict(found: CommitConflicts) -> ApiError:
    entries = {
        str(key): {"version": entry.version, "checksum": entry.checksum}
        for key, entry in found.entries.items()
    }
    return ApiError(
        status=409,
        kind="conflict",
        message=f"{len(entries)} of the keys changed since they were read; nothing was applied",
        advice="pull, merge, and commit against the versions in `conflicts`",
        extras={"conflicts": entries},
    )


def _read_sizes(tx: Tx, writer: WriteContext, wanted: Commit) -> dict[Checksum, _Body]:
    needed = sorted({one.checksum for one in wanted.changes if one.checksum is not None})
    if not needed:
        return {}
    rows = tx.rows(
        "SELECT checksum, bytes, is_kept FROM blob WHERE org = ? AND repo = ?"
        f" AND checksum IN ({placeholders(needed)})",
        writer.principal.org,
        writer.repo,
        *needed,
    )
    own = _read_own(tx, writer, needed)
    bodies = {
        Checksum(sql_text(row[0])): _Body(sql_number(row[1]), row[2] == 1)
        for row in rows
        if row[2] == 1 or row[0] in own
    }
    missing = [one for one in needed if one not in bodies]
    if missing:
        raise ApiError(
            status=422,
            kind="missing",
            message=f"{len(missing)} of the bodies that the commit names were not sent, or were forgotten",
            advice="send those in `missing` to /bodies, then the commit again",
            extras={"missing": list[str](missing)},
        )
    return bodies


def _read_own(tx: Tx, writer: WriteContext, needed: Sequence[Checksum]) -> frozenset[str]:
    """Those of the bodies that this member has sent. What another has sent and not committed is nobody else's
    to publish, whoever knows its checksum."""
    rows = tx.rows(
        "SELECT checksum FROM waiting WHERE org = ? AND repo = ? AND member = ?"
        f" AND checksum IN ({placeholders(needed)})",
        *(writer.principal.org, writer.repo, writer.principal.member, *needed),
    )
    return frozenset(sql_text(row[0]) for row in rows)


def _state_after(
    state: RepoState, wanted: Commit, stored: Mapping[TeamKey, StoredEntry], bodies: Mapping[Checksum, _Body]
) -> RepoState:
    before = [stored.get(one.key, NO_STORED_ENTRY) for one in wanted.changes]
    left = sum(1 for one in before if one.entry.checksum is not None)
    came = [bodies[one.checksum].bytes for one in wanted.changes if one.checksum is not None]
    return RepoState(
        seq=state.seq + 1,
        floor=state.floor,
        entries=state.entries - left + len(came),
        bytes=state.bytes - sum(one.bytes for one in before) + sum(came),
        kept_bytes=state.kept_bytes
        + CHANGE_BYTES * len(wanted.changes)
        + sum(one.bytes for one in bodies.values() if not one.is_kept),
    )


def _check_quota(limits: ServerLimits, before: RepoState, after: RepoState) -> None:
    for what, was, now, limit, advice in (
        ("memories", before.entries, after.entries, limits.entries, "merge or delete some"),
        ("bytes of memories", before.bytes, after.bytes, limits.total_bytes, "shorten or delete some"),
        (
            "bytes with history",
            before.kept_bytes,
            after.kept_bytes,
            limits.kept_bytes,
            "ask the operator for more",
        ),
    ):
        if now > limit and now > was:
            raise ApiError(
                status=422,
                kind="quota",
                message=f"the repository would have {now:,} {what}; {limit:,} is the limit",
                advice=f"{advice} first",
            )


def _check_names(tx: Tx, writer: WriteContext, new: int) -> None:
    """Names that were deleted are remembered, so whoever makes and deletes new ones makes listings grow."""
    if not new:
        return
    org, repo, limit = writer.principal.org, writer.repo, writer.limits.names
    names = new + sql_number(
        tx.rows("SELECT count(*) FROM entry WHERE org = ? AND repo = ?", org, repo)[0][0]
    )
    if names > limit:
        raise ApiError(
            status=422,
            kind="quota",
            message=f"the repository would have {names:,} names, deleted ones included; "
            f"{limit:,} is the limit",
            advice=f"use names that were there before; one that was deleted is forgotten after"
            f" {writer.limits.tombstone_days} days",
        )


def _check_org(tx: Tx, writer: WriteContext) -> None:
    kept = tx.rows(
        "SELECT CAST(coalesce(sum(kept_bytes), 0) AS BIGINT) FROM repo WHERE org = ?", writer.principal.org
    )
    used, limit = sql_number(kept[0][0]), writer.limits.org_bytes
    if used > limit:
        raise ApiError(
            status=422,
            kind="quota",
            message=f"the organisation has {used:,} bytes in all repositories with their "
            f"history; {limit:,} may be",
            advice="ask the operator for more",
        )


def _write(
    tx: Tx, writer: WriteContext, applied: CommitApplied, after: RepoState, bodies: Mapping[Checksum, _Body]
) -> None:
    org, repo = writer.principal.org, writer.repo
    sizes: dict[Checksum | None, int] = {None: 0}
    sizes |= {checksum: body.bytes for checksum, body in bodies.items()}
    tx.run_each(
        "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (org, repo, key) DO UPDATE SET"
        " version = excluded.version, checksum = excluded.checksum, bytes = excluded.bytes,"
        " changed = excluded.changed",
        [
            (org, repo, key, entry.version, entry.checksum, sizes[entry.checksum], writer.now_ms)
            for key, entry in applied.entries.items()
        ],
    )
    tx.run_each(
        "INSERT INTO entry_history VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(org, repo, entry.version, key, entry.checksum),
                *(writer.principal.member, writer.principal.token, writer.now_ms),
            )
            for key, entry in applied.entries.items()
        ],
    )
    tx.run_each(
        "UPDATE blob SET is_kept = 1 WHERE org = ? AND repo = ? AND checksum = ?",
        [(org, repo, checksum) for checksum, body in bodies.items() if not body.is_kept],
    )
    tx.run_each(
        "DELETE FROM waiting WHERE org = ? AND repo = ? AND checksum = ?",
        [(org, repo, checksum) for checksum in bodies],
    )
    tx.rows(
        "UPDATE repo SET seq = ?, entries = ?, bytes = ?, kept_bytes = ? WHERE org = ? AND id = ?",
        *(after.seq, after.entries, after.bytes, after.kept_bytes, org, repo),
    )
