"""The operations on a repository's memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from sevenfold.team.protocol import (
    Checksum,
    Commit,
    CommitApplied,
    CommitId,
    RepoId,
    TeamChange,
    TeamKey,
    compute_checksum,
    is_checksum,
)
from sevenfold.team.server import messages as wire
from sevenfold.team.server.api_errors import ApiError, make_not_found
from sevenfold.team.server.app_state import ApiRequest, ApiResponse, AppState
from sevenfold.team.server.bodies import check_sizes
from sevenfold.team.server.commits import WriteContext
from sevenfold.team.server.memory import (
    RepoContents,
    apply_writer_commit,
    check_team_keys,
    read_body,
    read_contents,
    read_seq,
    store_bodies,
    upsert_texts,
)

KEYS_LABEL = "the names"
"""Under this stands what was found in keys."""


async def handle_read_memory(desk: AppState, call: ApiRequest) -> ApiResponse:
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
        seq = await desk.look(who, lambda tx: read_seq(tx, who, repo))
        if {f'"{seq}"', f'W/"{seq}"', "*"} & seen:
            return ApiResponse(None, 304, seq)
    with_bodies = view != "hashes"
    found = await desk.read(who, lambda tx: read_contents(tx, who, repo, bodies=with_bodies))
    return ApiResponse(_told(repo, found, bodies=with_bodies), etag=found.seq)


async def handle_put_memory(desk: AppState, call: ApiRequest) -> ApiResponse:
    texts = cast("wire.EntriesSent", call.body).entries
    check_sizes(call.raw_bytes, list(texts.values()), desk.limits)
    await _check_names(desk, call, texts)
    await desk.check_secrets(call.who, texts)
    writer, if_match = _writer(desk, call), _tags(call.headers.get("if-match"))
    applied = await desk.write(call.who, lambda tx: upsert_texts(tx, writer, texts, if_match))
    return ApiResponse(_applied(applied), etag=applied.seq)


async def handle_send_bodies(desk: AppState, call: ApiRequest) -> ApiResponse:
    bodies = cast("wire.BodiesSent", call.body).bodies
    check_sizes(call.raw_bytes, bodies, desk.limits)
    await desk.check_secrets(call.who, {compute_checksum(body): body for body in bodies})
    writer = _writer(desk, call)
    return ApiResponse(
        wire.ChecksumsTold(await desk.write(call.who, lambda tx: store_bodies(tx, writer, bodies)))
    )


async def handle_read_body(desk: AppState, call: ApiRequest) -> ApiResponse:
    who, repo, checksum = call.who, RepoId(call.repo), call.places["checksum"]
    if not is_checksum(checksum):
        raise make_not_found("body with that checksum in the repository")
    body = await desk.read(who, lambda tx: read_body(tx, who, repo, checksum))
    return ApiResponse(wire.BodyTold(checksum, body.decode()))


async def handle_commit(desk: AppState, call: ApiRequest) -> ApiResponse:
    sent = cast("wire.CommitSent", call.body)
    changes = tuple(
        TeamChange(TeamKey(one.key), one.expected, None if one.checksum is None else Checksum(one.checksum))
        for one in sent.changes
    )
    await _check_names(desk, call, [one.key for one in sent.changes])
    writer, wanted = _writer(desk, call), Commit(CommitId(sent.id), changes)
    applied = await desk.write(call.who, lambda tx: apply_writer_commit(tx, writer, wanted))
    return ApiResponse(_applied(applied), etag=applied.seq)


async def _check_names(desk: AppState, call: ApiRequest, keys: Collection[str]) -> None:
    check_team_keys(keys)
    await desk.check_secrets(call.who, {KEYS_LABEL: "\n".join(keys)})


def _writer(desk: AppState, call: ApiRequest) -> WriteContext:
    return WriteContext(call.who, RepoId(call.repo), desk.now_ms, desk.limits)


def _tags(header: str | None) -> frozenset[str] | None:
    """The entity tags that a header lists; None where there is no header."""
    return None if header is None else frozenset(tag.strip() for tag in header.split(","))


def _told(repo: RepoId, found: RepoContents, *, bodies: bool) -> wire.MemoryTold | wire.HashesTold:
    deleted = {str(key): wire.DeletedTold(version) for key, version in found.deleted.items()}
    if not bodies:
        hashes = {str(key): wire.HashTold(one.version, one.checksum) for key, one in found.entries.items()}
        return wire.HashesTold(repo=repo, seq=found.seq, floor=found.floor, entries=hashes, deleted=deleted)
    entries = {
        str(key): wire.EntryTold(one.version, one.checksum, one.content or "")
        for key, one in found.entries.items()
    }
    return wire.MemoryTold(repo=repo, seq=found.seq, floor=found.floor, entries=entries, deleted=deleted)


def _applied(applied: CommitApplied) -> wire.AppliedTold:
    return wire.AppliedTold(applied.seq, {key: entry.version for key, entry in applied.entries.items()})
