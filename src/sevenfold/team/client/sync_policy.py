"""What to do about one key: a three-way rule over the last agreed text, the local text and the server's text.

Also here: what a device knows about its exchanges (`SyncState`), and when to try again (`RetryState`). Pure.

A text that nobody else has is never overwritten and never removed. A text that somebody removed on purpose
does not come back, unless somebody else was changing it at the time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Literal, TypeAlias, TypeVar

from sevenfold.core.errors import SevenfoldError, TeamOffline, TeamRefused
from sevenfold.core.fields import JsonForm
from sevenfold.team.protocol import (
    NO_ENTRY,
    Checksum,
    Commit,
    CommitApplied,
    TeamEntry,
    TeamKey,
    VersionRange,
)

_Entries: TypeAlias = Mapping[TeamKey, Annotated[TeamEntry, JsonForm(as_list=True)]]

SyncPolicy: TypeAlias = Literal["merge", "server wins", "local wins"]
"""The last two are the policy `mirror`, for pulling and for pushing."""

KeepReason: TypeAlias = Literal[
    "deleted elsewhere, changed here",
    "deleted here, changed elsewhere",
    "deleted elsewhere, new here",
    "lost by the server, kept here",
]
"""Why a text stays. The last: the server had it once and has lost it, though nobody deleted it."""


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """One key, as three parties know it."""

    base: TeamEntry | None
    """What this device and the server last agreed on; None: nothing yet."""
    local: Checksum | None
    """The file's; None: there is no file."""
    remote: TeamEntry = NO_ENTRY
    deleting: Checksum | None = None
    """The text that somebody asked here to delete for all. Its file is gone: one that is there came later."""

    is_lost: ClassVar[bool] = False
    """The server has no record of the base: it was set back after it had acknowledged it."""

    @property
    def is_forgotten(self) -> bool:
        """Versions only grow, so a server with an older one was set back too; or, where it has nothing at
        all, the tombstone is gone. Either way nobody wanted to change or delete anything."""
        return self.base is not None and (self.is_lost or _is_older(self.remote, self.base))


@dataclass(frozen=True, slots=True)
class LostFacts(KeyFacts):
    """The same where the server has no record of the base."""

    is_lost: ClassVar[bool] = True


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
class RecoverFile:
    """Write the agreed text into the file again: it was removed by hand, and the server has lost it."""

    base: TeamEntry


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
    is_lost: bool = False
    """The same, and somebody has changed it there since: nobody can tell what they had seen."""


SyncStep: TypeAlias = (
    DoNothing | RecordAgreement | PullText | RecoverFile | RemoveFile | PushText | DeleteRemote | MergeTexts
)


def choose_sync_step(facts: KeyFacts, policy: SyncPolicy = "merge") -> SyncStep:
    """The next step for a key; once it is done, ask again."""
    if facts.deleting is not None and facts.local is None:
        return _decide_deletion(facts, facts.deleting)
    remote, local = facts.remote, facts.local
    if local is None:
        if facts.base is not None and _is_recoverable(facts, facts.base):
            return RecoverFile(facts.base)
        if remote.checksum is not None:
            return PullText(remote)  # new; or removed here by hand: a local deletion does not propagate
        return DoNothing() if facts.base is None else RecordAgreement(None)
    if remote.checksum == local:
        return DoNothing() if facts.base == remote else RecordAgreement(remote)
    if facts.base is not None and local == facts.base.checksum and not facts.is_forgotten:
        return _decide_clean(facts.base, remote)
    return _decide_edited(facts, local, policy)


def _is_recoverable(facts: KeyFacts, base: TeamEntry) -> bool:
    """Where the server has nothing at all, the text may have been deleted so long ago that the tombstone was
    forgotten. Only its history can tell."""
    has_lost = facts.is_lost if facts.remote == NO_ENTRY else facts.is_forgotten
    return has_lost and facts.remote.checksum != base.checksum


def _decide_deletion(facts: KeyFacts, deleting: Checksum) -> SyncStep:
    remote = facts.remote
    if remote.checksum is None:
        return RecordAgreement(None)
    # What was seen here was the deleted text, or the one that it was an unsent change of.
    was_seen = remote.checksum == deleting or remote == facts.base
    return DeleteRemote(remote.version) if was_seen else PullText(remote, "deleted here, changed elsewhere")


def _is_older(remote: TeamEntry, base: TeamEntry) -> bool:
    return remote != base and remote.version <= base.version


def _decide_clean(base: TeamEntry, remote: TeamEntry) -> SyncStep:
    if remote == base:
        return DoNothing()
    return PullText(remote) if remote.checksum is not None else RemoveFile(remote)


def _decide_edited(facts: KeyFacts, local: Checksum, policy: SyncPolicy) -> SyncStep:
    base, remote = facts.base, facts.remote
    if remote.checksum is None:
        if base is not None and not facts.is_forgotten and policy == "server wins":
            return RemoveFile(remote)
        return PushText(remote.version, local, _why_kept(facts))
    if remote == base or policy == "local wins":
        return PushText(remote.version, local)
    if policy == "server wins":
        return PullText(remote)
    is_older = base is not None and _is_older(remote, base)
    return MergeTexts(remote, is_older, is_lost=facts.is_lost and not is_older)


def _why_kept(facts: KeyFacts) -> KeepReason | None:
    """Why a text is sent that the server does not have; None: it is just new."""
    remote = facts.remote
    if facts.base is not None:
        return "lost by the server, kept here" if facts.is_forgotten else "deleted elsewhere, changed here"
    # Written anew; or here from before the deletion, if what was agreed on is lost or the team was left.
    return None if remote == NO_ENTRY else "deleted elsewhere, new here"


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
    entries: _Entries
    deleting: Annotated[Mapping[TeamKey, Checksum], JsonForm(name="doomed")] = field(
        default_factory=dict[TeamKey, Checksum]
    )
    """Files that go because somebody wants them deleted for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncState:
    """What a device knows about its exchanges; docs/sync-protocol.md says in which order it is written."""

    device: str
    etag: str = ""
    remote: _Entries = field(default_factory=dict[TeamKey, TeamEntry])
    """As last listed."""
    bases: _Entries = field(default_factory=dict[TeamKey, TeamEntry])
    incoming: PendingWrite | None = None
    deleting: Annotated[Mapping[TeamKey, Checksum], JsonForm(name="doomed")] = field(
        default_factory=dict[TeamKey, Checksum]
    )
    refused: Mapping[TeamKey, Annotated[RefusedText, JsonForm(as_list=True)]] = field(
        default_factory=dict[TeamKey, RefusedText]
    )
    pending: Commit | None = None
    lost: Annotated[
        tuple[Annotated[VersionRange, JsonForm(as_list=True)], ...], JsonForm(omits_default=True)
    ] = ()
    """As last listed: versions that the server acknowledged and does not have any more."""
    authors: Annotated[Mapping[TeamKey, str], JsonForm(omits_default=True)] = field(
        default_factory=dict[TeamKey, str]
    )
    """As last listed: who wrote each, as the server knows them."""

    def find_author(self, key: TeamKey, checksum: Checksum) -> str:
        """Who wrote this text under this key; empty where it is not the server's."""
        entry = self.remote.get(key)
        return self.authors.get(key, "") if entry is not None and entry.checksum == checksum else ""


def collect_key_facts(
    state: SyncState,
    here: Mapping[TeamKey, LocalText],
    key: TeamKey,
    unknown: Collection[TeamEntry] = (),
) -> KeyFacts:
    """`unknown`: entries that the server said it has no record of."""
    mine, base = here.get(key), state.bases.get(key)
    is_lost = base is not None and (base in unknown or any(one.holds(base.version) for one in state.lost))
    return (LostFacts if is_lost else KeyFacts)(
        base, mine.checksum if mine else None, state.remote.get(key, NO_ENTRY), state.deleting.get(key)
    )


def needs_record(facts: KeyFacts) -> bool:
    """Whether the next step rests on the server having seen the base: it has another text, and a newer one.

    Nobody else can tell: a server that was set back gives the same versions again.
    """
    if facts.base is None or facts.is_lost or facts.remote == facts.base:
        return False
    if facts.is_forgotten:
        return facts.local is None and facts.remote == NO_ENTRY
    return facts.remote.checksum is None or facts.remote.checksum != facts.local


def list_lost_deletions(known: _Entries, listed: _Entries) -> dict[TeamKey, int]:
    """Deletions that the server once listed, and in whose place it has an older text again, with the versions
    that they had. They are not done again by themselves: whoever set the server back may have wanted that."""
    return {
        key: old.version
        for key, old in known.items()
        if old.checksum is None
        and (now := listed.get(key, old)).checksum is not None
        and now.version <= old.version
    }


def after_pending_write(state: SyncState, *, came: bool) -> SyncState:
    """It is known whether what was about to be written is in the files."""
    if state.incoming is None:
        return state
    if not came:
        return replace(state, incoming=None)
    entries, deleting = state.incoming.entries, state.incoming.deleting
    return replace(
        state,
        incoming=None,
        bases=merge_bases(state.bases, entries),
        deleting={**without_keys(state.deleting, entries), **deleting},
    )


def without_rewritten(state: SyncState, here: Mapping[TeamKey, LocalText]) -> SyncState:
    """What is there again after it was to be deleted for all was written anew, and stays."""
    if not any(key in here for key in state.deleting):
        return state
    return replace(state, deleting=without_keys(state.deleting, here))


def with_settled(state: SyncState, plan: Mapping[TeamKey, SyncStep]) -> SyncState:
    settled = {key: step.base or NO_ENTRY for key, step in plan.items() if isinstance(step, RecordAgreement)}
    if not settled:
        return state
    return replace(
        state, bases=merge_bases(state.bases, settled), deleting=without_keys(state.deleting, settled)
    )


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
        deleting=without_keys(state.deleting, gone),
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


# A failure delays the next try; a refusal stops it until something changes. Times in the future are ignored,
# so that a clock that was set wrong delays nothing for good.

FAILURE_WINDOW = timedelta(hours=1)
MAX_FAILURES = 60
"""In an hour, whatever changes meanwhile: an agent that writes a file a second is no reason."""
_FIRST_WAIT = timedelta(seconds=5)
LONGEST_RETRY_WAIT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryState:
    """What went wrong lately."""

    failures: tuple[datetime, ...] = ()
    """Of the last hour, oldest first."""
    in_a_row: int = 0
    not_before: datetime | None = None
    refusal: str = ""
    """What the server refused for good, in words; empty: nothing."""
    mark: str = ""
    """What files and token were like then: as long as they are the same, so is the answer."""


def choose_wait(pace: RetryState, now: datetime, mark: str) -> str:
    """Why not to try now; empty: do."""
    if pace.refusal and pace.mark == mark:
        return f"the server refused: {pace.refusal}; nothing is sent until a file or the token changes"
    if len(_recent(pace.failures, now)) >= MAX_FAILURES:
        return f"{MAX_FAILURES} attempts have failed within the hour; the next one waits"
    if pace.not_before is not None and now < pace.not_before <= now + LONGEST_RETRY_WAIT:
        return f"the last attempt failed; the next one is at {pace.not_before:%H:%M:%S} UTC"
    return ""


def after_failure(pace: RetryState, now: datetime, error: SevenfoldError, mark: str) -> RetryState:
    failures = (*_recent(pace.failures, now), now)
    in_a_row = pace.in_a_row + 1
    wait = min(LONGEST_RETRY_WAIT, _FIRST_WAIT * 2 ** min(in_a_row - 1, 10))
    if isinstance(error, TeamOffline) and error.retry_after is not None:
        wait = min(LONGEST_RETRY_WAIT, max(wait, error.retry_after))
    is_final = isinstance(error, TeamRefused)
    failed = replace(pace, failures=failures, in_a_row=in_a_row, not_before=now + wait)
    return replace(failed, refusal=str(error) if is_final else "", mark=mark if is_final else "")


def after_success(pace: RetryState, now: datetime) -> RetryState:
    return RetryState(failures=_recent(pace.failures, now))


def _recent(moments: tuple[datetime, ...], now: datetime) -> tuple[datetime, ...]:
    return tuple(moment for moment in moments if now - FAILURE_WINDOW < moment <= now)[-MAX_FAILURES:]
