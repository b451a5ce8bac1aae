"""What a device knows about its exchanges, and how that changes with each step. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sevenfold.core.errors import TeamRefused
from sevenfold.team.client.sync_policy import KeyFacts, RecordAgreement, SyncStep
from sevenfold.team.protocol import NO_ENTRY, Checksum, Commit, CommitApplied, TeamEntry, TeamKey

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class LocalText:
    """A file of the team's folder."""

    text: str = field(repr=False)
    checksum: Checksum
    hold: str = ""
    """Why it is left alone for now, if it is: a person has to look at it first."""


@dataclass(frozen=True, slots=True)
class RefusedText:
    """A text that the server does not take; it is not sent again until it changes."""

    checksum: Checksum
    reason: str


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """What was about to be changed in the files, all of it or nothing."""

    mark: str
    """Written with it, so that whoever was cut off can tell which, whatever became of the files since."""
    entries: Mapping[TeamKey, TeamEntry]
    doomed: Mapping[TeamKey, Checksum] = field(default_factory=dict[TeamKey, Checksum])
    """Files that go because somebody wants them deleted for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncState:
    """What a device knows about its exchanges; docs/sync-protocol.md says in which order it is written."""

    device: str
    etag: str = ""
    remote: Mapping[TeamKey, TeamEntry] = field(default_factory=dict[TeamKey, TeamEntry])
    """As last listed."""
    bases: Mapping[TeamKey, TeamEntry] = field(default_factory=dict[TeamKey, TeamEntry])
    incoming: PendingWrite | None = None
    doomed: Mapping[TeamKey, Checksum] = field(default_factory=dict[TeamKey, Checksum])
    refused: Mapping[TeamKey, RefusedText] = field(default_factory=dict[TeamKey, RefusedText])
    pending: Commit | None = None


def collect_key_facts(state: SyncState, here: Mapping[TeamKey, LocalText], key: TeamKey) -> KeyFacts:
    mine = here.get(key)
    return KeyFacts(
        state.bases.get(key),
        mine.checksum if mine else None,
        state.remote.get(key, NO_ENTRY),
        state.doomed.get(key),
    )


def after_pending_write(state: SyncState, *, came: bool) -> SyncState:
    """It is known whether what was about to be written is in the files."""
    if state.incoming is None:
        return state
    if not came:
        return replace(state, incoming=None)
    entries, doomed = state.incoming.entries, state.incoming.doomed
    return replace(
        state,
        incoming=None,
        bases=merge_bases(state.bases, entries),
        doomed={**without_keys(state.doomed, entries), **doomed},
    )


def without_rewritten(state: SyncState, here: Mapping[TeamKey, LocalText]) -> SyncState:
    """What is there again after it was to be deleted for all was written anew, and stays."""
    if not any(key in here for key in state.doomed):
        return state
    return replace(state, doomed=without_keys(state.doomed, here))


def with_settled(state: SyncState, plan: Mapping[TeamKey, SyncStep]) -> SyncState:
    settled = {key: step.base or NO_ENTRY for key, step in plan.items() if isinstance(step, RecordAgreement)}
    if not settled:
        return state
    return replace(state, bases=merge_bases(state.bases, settled), doomed=without_keys(state.doomed, settled))


def with_refusal(state: SyncState, commit: Commit, error: TeamRefused) -> SyncState:
    """What the server complains of, by key or by checksum, is not sent again as it is."""
    refused = {
        one.key: RefusedText(one.checksum, reason)
        for one in commit.changes
        if one.checksum is not None
        and (reason := error.keys.get(one.key) or error.keys.get(one.checksum)) is not None
    }
    return replace(state, pending=None, refused={**state.refused, **refused})


def after_answer(state: SyncState, commit: Commit, applied: CommitApplied | None) -> SyncState:
    """The commit's answer is known, and it need not be asked for again. None: it changed nothing."""
    if applied is None:
        return replace(state, pending=None)
    gone = [one.key for one in commit.changes if one.checksum is None]
    return replace(
        state,
        pending=None,
        etag="",  # it spoke of the server as it was before
        remote={**state.remote, **applied.entries},
        bases=merge_bases(state.bases, applied.entries),
        doomed=without_keys(state.doomed, gone),
        refused=without_keys(state.refused, [one.key for one in commit.changes]),
    )


def merge_bases(
    bases: Mapping[TeamKey, TeamEntry], entries: Mapping[TeamKey, TeamEntry]
) -> dict[TeamKey, TeamEntry]:
    """Nothing is remembered of what is deleted: there is no file that could be older."""
    merged = {**bases, **entries}
    return {key: entry for key, entry in merged.items() if entry.checksum is not None}


def without_keys(values: Mapping[TeamKey, V], keys: Collection[TeamKey]) -> dict[TeamKey, V]:
    return {key: value for key, value in values.items() if key not in keys}
