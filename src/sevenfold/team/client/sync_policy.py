"""What to do about one key: the three-way rule, from what was last agreed, what is here and what is there.

Pure. A text that nobody else has is never overwritten and never removed; a text that somebody removed on
purpose does not come back, unless somebody else was changing it at the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sevenfold.team.protocol import NO_ENTRY, Checksum, TeamEntry

SyncPolicy: TypeAlias = Literal["merge", "server wins", "local wins"]
"""The last two are the two halves of the mirror policy, for pulling and for pushing."""

KeepReason: TypeAlias = Literal[
    "deleted elsewhere, changed here",
    "deleted here, changed elsewhere",
    "deleted elsewhere, new here",
    "lost by the server, kept here",
]
"""Why a text stays: the last one the server had once, and does not any more, by nobody's wish."""


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """One key, as three parties know it."""

    base: TeamEntry | None
    """What this device and the server last agreed on; None: nothing yet."""
    local: Checksum | None
    """The file's; None: there is no file."""
    remote: TeamEntry = NO_ENTRY
    doomed: Checksum | None = None
    """The text that somebody asked here to delete for all. Its file is gone: one that is there came later."""


@dataclass(frozen=True, slots=True)
class DoNothing:
    """Nothing to do."""


@dataclass(frozen=True, slots=True)
class RecordAgreement:
    """Both ends have the same: write down that they agree."""

    base: TeamEntry | None


@dataclass(frozen=True, slots=True)
class PullText:
    """Write the server's text into the file."""

    entry: TeamEntry
    kept: KeepReason | None = None


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """Remove the file: it was deleted for all, and nothing here was new."""

    entry: TeamEntry


@dataclass(frozen=True, slots=True)
class PushText:
    """Send the file's text."""

    expected: int
    checksum: Checksum
    kept: KeepReason | None = None
    """Why it is here at all, where somebody may wonder."""


@dataclass(frozen=True, slots=True)
class DeleteRemote:
    """Delete it for all."""

    expected: int


@dataclass(frozen=True, slots=True)
class MergeTexts:
    """Both ends have changed it: merge, or keep both where everybody sees them."""

    entry: TeamEntry
    is_older: bool = False
    """The server was set back, to a backup say: what it has does not come from what was agreed on."""


SyncStep: TypeAlias = (
    DoNothing | RecordAgreement | PullText | RemoveFile | PushText | DeleteRemote | MergeTexts
)


def choose_sync_step(facts: KeyFacts, policy: SyncPolicy = "merge") -> SyncStep:
    """The next step for a key; once it is done, ask again."""
    if facts.doomed is not None and facts.local is None:
        return _decide_doomed(facts, facts.doomed)
    remote, local = facts.remote, facts.local
    if local is None:
        if remote.checksum is not None:
            return PullText(remote)  # new; or removed here by hand: a local deletion does not propagate
        return DoNothing() if facts.base is None else RecordAgreement(None)
    if remote.checksum == local:
        return DoNothing() if facts.base == remote else RecordAgreement(remote)
    if facts.base is not None and local == facts.base.checksum and not _is_older(remote, facts.base):
        return _decide_clean(facts.base, remote)
    return _decide_edited(facts.base, local, remote, policy)


def _decide_doomed(facts: KeyFacts, doomed: Checksum) -> SyncStep:
    remote = facts.remote
    if remote.checksum is None:
        return RecordAgreement(None)
    # What was seen here was the deleted text, or the one that it was an unsent change of.
    was_seen = remote.checksum == doomed or remote == facts.base
    return DeleteRemote(remote.version) if was_seen else PullText(remote, "deleted here, changed elsewhere")


def _is_older(remote: TeamEntry, base: TeamEntry) -> bool:
    """Whether the server has lost what was agreed on. Versions only grow, so it was set back; or, where it
    has nothing at all, the tombstone is gone too. That is nobody's wish to change or delete anything."""
    return remote != base and remote.version <= base.version


def _decide_clean(base: TeamEntry, remote: TeamEntry) -> SyncStep:
    if remote == base:
        return DoNothing()
    return PullText(remote) if remote.checksum is not None else RemoveFile(remote)


def _decide_edited(
    base: TeamEntry | None, local: Checksum, remote: TeamEntry, policy: SyncPolicy
) -> SyncStep:
    is_older = base is not None and _is_older(remote, base)
    if remote.checksum is None:
        if base is not None and not is_older and policy == "server wins":
            return RemoveFile(remote)
        return PushText(remote.version, local, _why_kept(base, remote))
    if remote == base or policy == "local wins":
        return PushText(remote.version, local)
    return PullText(remote) if policy == "server wins" else MergeTexts(remote, is_older)


def _why_kept(base: TeamEntry | None, remote: TeamEntry) -> KeepReason | None:
    """Why a text is sent that the server does not have; None: it is just new."""
    if base is not None:
        return (
            "lost by the server, kept here" if _is_older(remote, base) else "deleted elsewhere, changed here"
        )
    # Written anew; or here from before the deletion, if what was agreed on is lost or the team was left.
    return None if remote == NO_ENTRY else "deleted elsewhere, new here"
