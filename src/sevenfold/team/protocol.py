"""The rule by which shared memories change, the same on both ends: docs/sync-protocol.md in code.

Pure. The server runs `apply_commit` in a transaction; the simulation runs it in memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, NewType, TypeAlias

from sevenfold.core.errors import InputError
from sevenfold.core.fields import JsonForm
from sevenfold.core.memories import check_team_key

RepoId = NewType("RepoId", str)
TeamKey = NewType("TeamKey", str)
Checksum = NewType("Checksum", str)
CommitId = NewType("CommitId", str)

MAX_REQUEST_BYTES = 200_000
"""The most that one request carries; a single larger file travels alone."""
MAX_TEAM_FILE_BYTES = 250_000
MAX_TEAM_ENTRIES = 500
MAX_TOTAL_BYTES = 10_000_000
MAX_CHANGES = 2 * MAX_TEAM_ENTRIES
"""Every memory there may be replaced and every one of them removed, at once."""

_CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TeamEntry:
    """What the server has under a key."""

    version: int
    """The repository's sequence number at the commit that wrote it: never the same twice, even after the key
    was deleted and forgotten. 0: there is nothing, and never was as far as anybody knows."""
    checksum: Checksum | None
    """None: it was deleted; the tombstone is kept."""


NO_ENTRY = TeamEntry(0, None)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions, the first and the last included."""

    first: int
    last: int

    def holds(self, version: int) -> bool:
        return self.first <= version <= self.last


DELETED_TEXT = "deleted"
"""What a writer had seen at a key that holds no text."""


def spell_seen(entry: TeamEntry) -> str:
    """The text of an entry as a change names it: its checksum, or `deleted`."""
    return DELETED_TEXT if entry.checksum is None else entry.checksum


@dataclass(frozen=True, slots=True)
class TeamChange:
    """One key, and what its writer had seen there."""

    key: TeamKey
    expected: int
    """The version that is replaced; a tombstone's counts, 0 is nothing at all."""
    checksum: Checksum | None
    """None deletes."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Changes that happen together or not at all. The bodies that they name were sent before."""

    id: CommitId
    """Sent again with the same id, it has the same answer and no second effect."""
    changes: tuple[Annotated[TeamChange, JsonForm(as_list=True)], ...]
    seen: Annotated[Mapping[TeamKey, str], JsonForm(omits_default=True)] = field(
        default_factory=dict[TeamKey, str]
    )
    """The texts at the expected versions, as `spell_seen` names them. A server that was set back may give a
    version a second time, to another text. A key that is not in it: not told."""


@dataclass(frozen=True, slots=True)
class CommitApplied:
    seq: int
    entries: Mapping[TeamKey, TeamEntry]
    """The changed ones alone."""


@dataclass(frozen=True, slots=True)
class CommitConflicts:
    """Nothing was applied: these keys are not as the writer had seen them."""

    entries: Mapping[TeamKey, TeamEntry]
    """As they are."""


CommitOutcome: TypeAlias = CommitApplied | CommitConflicts


def apply_commit(entries: Mapping[TeamKey, TeamEntry], seq: int, commit: Commit) -> CommitOutcome:
    """What a commit does to a repository at `seq`; of `entries` only the keys of the commit matter."""
    moved = {
        change.key: now
        for change in commit.changes
        if not _is_as_seen(commit, change, now := entries.get(change.key, NO_ENTRY))
    }
    if moved:
        return CommitConflicts(moved)
    return CommitApplied(
        seq + 1, {change.key: TeamEntry(seq + 1, change.checksum) for change in commit.changes}
    )


def _is_as_seen(commit: Commit, change: TeamChange, now: TeamEntry) -> bool:
    return now.version == change.expected and commit.seen.get(change.key, "") in ("", spell_seen(now))


def check_commit(commit: Commit) -> None:
    """`InputError` for a commit that no server may apply, whatever it holds."""
    if not 1 <= len(commit.changes) <= MAX_CHANGES:
        raise InputError(
            f"the commit has {len(commit.changes):,} changes; expected 1 to {MAX_CHANGES:,}, so split it"
        )
    if not 1 <= len(commit.id) <= 200 or not commit.id.isascii():
        raise InputError(f"{commit.id!r:.80} is no id of a commit; expected 1 to 200 ASCII characters")
    seen = set[TeamKey]()
    for change in commit.changes:
        _check_change(change)
        if change.key in seen:
            raise InputError(f"the commit changes {change.key!r} twice; say it once")
        seen.add(change.key)


def compute_checksum(text: str) -> Checksum:
    return Checksum(f"sha256:{sha256(text.encode()).hexdigest()}")


def is_checksum(text: str) -> bool:
    return bool(_CHECKSUM.fullmatch(text))


def make_commit_id(device: str, changes: Sequence[TeamChange]) -> CommitId:
    """The same for the same change of the same versions from the same device, and for nothing else.

    Without the device, a file that somebody wrote anew would be taken for the equal one that was deleted.
    """
    said = "\n".join(sorted(f"{one.key} {one.expected} {one.checksum}" for one in changes))
    return CommitId(sha256(f"{device}\n{said}".encode()).hexdigest())


def _check_change(change: TeamChange) -> None:
    check_team_key(change.key)
    if change.expected < 0:
        raise InputError(f"{change.key}: version {change.expected} is expected; versions start at 0")
    if change.checksum is None and change.expected == 0:
        raise InputError(f"{change.key}: what never was cannot be deleted; leave the change out")
    if change.checksum is not None and not is_checksum(change.checksum):
        raise InputError(f"{change.key}: {change.checksum!r:.80} is no checksum; expected sha256:<64 hex>")
