"""A repository's shared memory: its rows, what clients do to them, and the operations for that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import cast

from sevenfold.core.errors import InputError, KeyRefused
from sevenfold.core.memories import check_team_key
from sevenfold.team.protocol import (
    MAX_CHANGES,
    Checksum,
    Commit,
    CommitApplied,
    CommitId,
    RepoId,
    TeamChange,
    TeamEntry,
    TeamKey,
    VersionRange,
    check_commit,
    compute_checksum,
    is_checksum,
)
from sevenfold.team.server import messages
from sevenfold.team.server.app_state import ApiRequest, ApiResponse, AppState, check_sizes
from sevenfold.team.server.commits import (
    NO_STORED_ENTRY,
    WriteContext,
    execute_commit,
    read_repo_state,
    read_stored_entries,
)
from sevenfold.team.server.database import SqlRow, Tx, placeholders, sql_bytes, sql_number, sql_text
from sevenfold.team.server.messages import ApiError, make_not_found
from sevenfold.team.server.policy import Principal


@dataclass(frozen=True, slots=True)
class LiveEntry:
    version: int
    checksum: Checksum
    content: str | None
    """None where only checksums were asked for."""
    author: str | None
    """The name of the member whose token the version came with; None after a restore without its history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoContents:
    seq: int
    floor: int
    entries: Mapping[TeamKey, LiveEntry]
    deleted: Mapping[TeamKey, int]
    """The versions of tombstones."""
    tag: str = ""
    lost: tuple[VersionRange, ...] = ()


@dataclass(frozen=True, slots=True)
class StateTags:
    seq: int
    known: frozenset[str]
    """The entity tags of the state. The plain number is the one in the header."""


def read_tags(tx: Tx, who: Principal, repo: RepoId) -> StateTags:
    found = tx.rows("SELECT seq FROM repo WHERE org = ? AND id = ?", who.org, repo)
    if not found:
        raise make_not_found("such repository")
    seq = sql_number(found[0][0])
    tagged = f'"{seq}.{read_state_tag(tx, who, repo, seq)}"'
    return StateTags(seq, frozenset({f'"{seq}"', f'W/"{seq}"', tagged, f"W/{tagged}", "*"}))


def read_state_tag(tx: Tx, who: Principal, repo: RepoId, seq: int) -> str:
    """Made from the last commit; empty where there is none, as after a restore."""
    rows = tx.rows(
        "SELECT key, checksum, token, at FROM entry_history WHERE org = ? AND repo = ? AND version = ?"
        " ORDER BY key",
        *(who.org, repo, seq),
    )
    return sha256(repr([tuple(row) for row in rows]).encode()).hexdigest()[:16] if rows else ""


def read_lost(tx: Tx, who: Principal, repo: RepoId) -> tuple[VersionRange, ...]:
    rows = tx.rows(
        "SELECT first_version, last_version FROM lost_range WHERE org = ? AND repo = ?"
        " ORDER BY first_version",
        *(who.org, repo),
    )
    return tuple(VersionRange(sql_number(first), sql_number(last)) for first, last in rows)


def find_unknown(tx: Tx, who: Principal, repo: RepoId, asked: Mapping[TeamKey, TeamEntry]) -> list[TeamKey]:
    """The keys whose entries are not in the history, which only grows unless the database is set back."""
    read_repo_state(tx, who, repo)
    versions = sorted({entry.version for entry in asked.values()})
    rows = tx.rows(
        "SELECT key, version, checksum FROM entry_history WHERE org = ? AND repo = ?"
        f" AND version IN ({placeholders(versions)})",
        *(who.org, repo, *versions),
    )
    known = {(row[0], row[1], row[2]) for row in rows}
    return [key for key, entry in asked.items() if (key, entry.version, entry.checksum) not in known]


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
        f"SELECT entry.key, entry.version, entry.checksum, {column}, member.name FROM entry{join}"
        " LEFT JOIN entry_history ON entry_history.org = entry.org AND entry_history.repo = entry.repo"
        " AND entry_history.version = entry.version AND entry_history.key = entry.key"
        " LEFT JOIN member ON member.org = entry_history.org AND member.id = entry_history.member"
        " WHERE entry.org = ? AND entry.repo = ? ORDER BY entry.key",
        who.org,
        repo,
    )
    living = {
        TeamKey(sql_text(key)): LiveEntry(
            sql_number(version),
            Checksum(sql_text(checksum)),
            sql_bytes(body).decode() if bodies else None,
            None if author is None else sql_text(author),
        )
        for key, version, checksum, body, author in rows
        if checksum is not None
    }
    deleted = {TeamKey(sql_text(row[0])): sql_number(row[1]) for row in rows if row[2] is None}
    return RepoContents(
        seq=state.seq,
        floor=state.floor,
        entries=living,
        deleted=deleted,
        tag=read_state_tag(tx, who, repo, state.seq),
        lost=read_lost(tx, who, repo),
    )


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
        return CommitApplied(state.seq, {key: stored.entry for key, stored in now.items()})
    wanted = Commit(CommitId("upsert"), changes)
    _insert_bodies(tx, writer, [texts[one.key] for one in changes])
    applied = execute_commit(tx, writer, state, wanted, "upsert")
    return CommitApplied(
        applied.seq, {**{key: stored.entry for key, stored in now.items()}, **applied.entries}
    )


def check_team_keys(keys: Iterable[str]) -> None:
    """`ApiError` 422 for the first that cannot be a shared memory's name."""
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
    tx.run_each(
        "INSERT INTO waiting VALUES (?, ?, ?, ?, ?) ON CONFLICT (org, repo, checksum, member)"
        " DO UPDATE SET created = excluded.created",
        [
            (writer.principal.org, writer.repo, one, writer.principal.member, writer.now_ms)
            for one in sorted(set(checksums))
        ],
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


MAX_VERSION = 2**53
"""More than any repository comes to, and not more than JSON numbers hold."""
KEYS_LABEL = "the names"
"""Under this stands what was found in keys."""


async def handle_read_memory(app: AppState, call: ApiRequest) -> ApiResponse:
    who, repo = call.who, RepoId(call.repo)
    view = call.query.get("view")
    if view not in (None, "hashes"):
        raise ApiError(
            status=400,
            kind="bad request",
            message=f"there is no view {view[:40]!r}",
            advice="leave it out, or ask for view=hashes",
        )
    seen = _tags(call.headers.get("if-none-match"))
    if seen is not None:
        tags = await app.read_quick(who, lambda tx: read_tags(tx, who, repo))
        if tags.known & seen:
            return ApiResponse(None, 304, tags.seq)
    with_bodies = view != "hashes"
    found = await app.read(who, lambda tx: read_contents(tx, who, repo, bodies=with_bodies))
    return ApiResponse(_render_contents(repo, found, bodies=with_bodies), etag=found.seq)


async def handle_put_memory(app: AppState, call: ApiRequest) -> ApiResponse:
    texts = cast("messages.EntriesSent", call.body).entries
    check_sizes(call.raw_bytes, list(texts.values()), app.limits)
    await _check_names(app, call, texts)
    await app.check_secrets(call.who, texts)
    writer, if_match = _writer(app, call), _tags(call.headers.get("if-match"))
    applied = await app.write(call.who, lambda tx: upsert_texts(tx, writer, texts, if_match))
    return ApiResponse(_applied(applied), etag=applied.seq)


async def handle_send_bodies(app: AppState, call: ApiRequest) -> ApiResponse:
    bodies = cast("messages.BodiesSent", call.body).bodies
    check_sizes(call.raw_bytes, bodies, app.limits)
    await app.check_secrets(call.who, {compute_checksum(body): body for body in bodies})
    writer = _writer(app, call)
    return ApiResponse(
        messages.ChecksumsTold(await app.write(call.who, lambda tx: store_bodies(tx, writer, bodies)))
    )


async def handle_read_body(app: AppState, call: ApiRequest) -> ApiResponse:
    who, repo, checksum = call.who, RepoId(call.repo), call.path_params["checksum"]
    if not is_checksum(checksum):
        raise make_not_found("body with that checksum in the repository")
    body = await app.read(who, lambda tx: read_body(tx, who, repo, checksum))
    return ApiResponse(messages.BodyTold(checksum, body.decode()))


async def handle_commit(app: AppState, call: ApiRequest) -> ApiResponse:
    sent = cast("messages.CommitSent", call.body)
    changes = tuple(
        TeamChange(
            TeamKey(one.key),
            one.expected,
            None if one.checksum is None else Checksum(one.checksum),
        )
        for one in sent.changes
    )
    await _check_names(app, call, [one.key for one in sent.changes])
    seen = {TeamKey(one.key): one.seen for one in sent.changes if one.seen}
    writer, wanted = _writer(app, call), Commit(CommitId(sent.id), changes, seen)
    applied = await app.write(call.who, lambda tx: apply_writer_commit(tx, writer, wanted))
    return ApiResponse(_applied(applied), etag=applied.seq)


async def handle_check_known(app: AppState, call: ApiRequest) -> ApiResponse:
    who, repo = call.who, RepoId(call.repo)
    sent = cast("messages.VersionsSent", call.body).entries
    if not 1 <= len(sent) <= MAX_CHANGES:
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"the request has {len(sent):,} entries; expected 1 to {MAX_CHANGES:,}",
            advice="ask for fewer at a time",
        )
    check_team_keys(one.key for one in sent)
    for one in sent:
        _check_version(one)
    asked = {
        TeamKey(one.key): TeamEntry(one.version, None if one.checksum is None else Checksum(one.checksum))
        for one in sent
    }
    unknown = await app.read(who, lambda tx: find_unknown(tx, who, repo, asked))
    return ApiResponse(messages.UnknownTold(unknown))


def _check_version(one: messages.VersionSent) -> None:
    is_sound = one.checksum is None or is_checksum(one.checksum)
    if not is_sound or not 0 <= one.version <= MAX_VERSION:
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"{one.key}: {one.version} with {one.checksum!r:.80} is no version and checksum",
            advice="send what a listing has told",
        )


async def _check_names(app: AppState, call: ApiRequest, keys: Collection[str]) -> None:
    check_team_keys(keys)
    await app.check_secrets(call.who, {KEYS_LABEL: "\n".join(keys)})


def _writer(app: AppState, call: ApiRequest) -> WriteContext:
    return WriteContext(call.who, RepoId(call.repo), app.now_ms, app.limits)


def _tags(header: str | None) -> frozenset[str] | None:
    """The entity tags that a header lists; None where there is no header."""
    return None if header is None else frozenset(tag.strip() for tag in header.split(","))


def _render_contents(
    repo: RepoId, found: RepoContents, *, bodies: bool
) -> messages.MemoryTold | messages.HashesTold:
    deleted = {str(key): messages.DeletedTold(version) for key, version in found.deleted.items()}
    lost = [messages.LostTold(one.first, one.last) for one in found.lost]
    if not bodies:
        hashes = {
            str(key): messages.HashTold(one.version, one.checksum, one.author)
            for key, one in found.entries.items()
        }
        return messages.HashesTold(
            repo=repo,
            seq=found.seq,
            floor=found.floor,
            entries=hashes,
            deleted=deleted,
            lost=lost,
            tag=found.tag,
        )
    entries = {
        str(key): messages.EntryTold(one.version, one.checksum, one.content or "", one.author)
        for key, one in found.entries.items()
    }
    return messages.MemoryTold(
        repo=repo,
        seq=found.seq,
        floor=found.floor,
        entries=entries,
        deleted=deleted,
        lost=lost,
        tag=found.tag,
    )


def _applied(applied: CommitApplied) -> messages.AppliedTold:
    return messages.AppliedTold(applied.seq, {key: entry.version for key, entry in applied.entries.items()})
