"""One exchange between a device and its server: carries out what `sync_policy` decides, in durable steps.

It uses no clock, HTTP or disk of its own: those are behind `ports`. At whatever `await` it dies, the next
exchange goes on from what was recorded.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from sevenfold.core.errors import TeamRefused
from sevenfold.core.events import (
    Emit,
    TeamConflicted,
    TeamDeletionLost,
    TeamEntryRefused,
    TeamFileHeld,
    TeamSecretBlocked,
    TeamSynced,
    TeamTextKept,
    TeamVersionLost,
    ignore_event,
)
from sevenfold.team.client.ports import (
    FileChange,
    LocalFiles,
    MissingBodies,
    ScreenTexts,
    SyncConflict,
    SyncLedger,
    SyncRemote,
    SyncReport,
    allow_all_texts,
    choose_copy_key,
    merge_lines,
    split_batches,
)
from sevenfold.team.client.sync_policy import (
    DeleteRemote,
    DoNothing,
    KeyFacts,
    LocalText,
    MergeTexts,
    PendingWrite,
    PullText,
    PushText,
    RecoverFile,
    RemoveFile,
    SyncPolicy,
    SyncState,
    SyncStep,
    after_answer,
    after_pending_write,
    choose_sync_step,
    collect_key_facts,
    list_lost_deletions,
    needs_record,
    with_refusal,
    with_settled,
    without_keys,
    without_rewritten,
)
from sevenfold.team.protocol import (
    MAX_CHANGES,
    MAX_TEAM_FILE_BYTES,
    NO_ENTRY,
    Checksum,
    Commit,
    CommitApplied,
    CommitOutcome,
    TeamChange,
    TeamEntry,
    TeamKey,
    compute_checksum,
    make_commit_id,
    spell_seen,
)

# An exchange that was cut off asks the files whether its last write is in them.


def new_write_mark() -> str:
    """One that no other write has."""
    return secrets.token_hex(8)


async def resolve_pending_write(state: SyncState, files: LocalFiles) -> SyncState:
    if state.incoming is None:
        return state
    return after_pending_write(state, came=await files.was_written(state.incoming.mark))


# What a step writes into the files: the server's text, both texts merged, or both.


WritingStep: TypeAlias = PullText | RemoveFile | MergeTexts


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite:
    """What is to be written for one key, and what both ends will then have agreed on."""

    key: TeamKey
    entry: TeamEntry
    changes: tuple[FileChange, ...]
    is_merged: bool = False
    copy: TeamKey | None = None
    kept: str = ""


async def prepare_write(
    files: LocalFiles,
    here: Mapping[TeamKey, LocalText],
    key: TeamKey,
    step: WritingStep,
    text: str | None,
    base: TeamEntry | None,
) -> PlannedWrite:
    """`text` is the server's, if it has one."""
    mine = here.get(key)
    before = mine.checksum if mine else None
    if not isinstance(step, MergeTexts) or mine is None or text is None:
        kept = step.kept if isinstance(step, PullText) else None
        return PlannedWrite(
            key=key, entry=step.entry, changes=(FileChange(key, before, text),), kept=kept or ""
        )
    merged = await _merged(files, step, base, mine.text, text)
    if merged is not None:
        kept = "lost by the server, kept here" if step.is_older else ""
        return PlannedWrite(
            key=key, entry=step.entry, changes=(FileChange(key, before, merged),), is_merged=True, kept=kept
        )
    copy = choose_copy_key(key, mine.checksum, here)
    there = here.get(copy)
    both = (FileChange(copy, there.checksum if there else None, mine.text), FileChange(key, before, text))
    return PlannedWrite(key=key, entry=step.entry, changes=both, copy=copy)


def _signed(state: SyncState, change: FileChange) -> FileChange:
    """A text that came as it is has an author; what was merged or kept here has none."""
    if change.text is None:
        return change
    return replace(change, author=state.find_author(change.key, compute_checksum(change.text)))


async def _merged(
    files: LocalFiles, meet: MergeTexts, base: TeamEntry | None, ours: str, theirs: str
) -> str | None:
    """Both in one text; None where nobody can tell how."""
    if meet.is_lost:
        return None  # lines that the other text lacks may be missing because the server lost them
    if meet.is_older:
        # What was here once has been replaced since, and is not news. Anything else is somebody's.
        return ours if await files.body(compute_checksum(theirs)) is not None else None
    old = await files.body(base.checksum) if base and base.checksum else None
    merged = merge_lines(old, ours, theirs) if old is not None else None
    # Two texts that fit may be one that does not, and could never be sent.
    return merged if merged is None or len(merged.encode()) <= MAX_TEAM_FILE_BYTES else None


def choose_compatible(drafts: Sequence[PlannedWrite]) -> list[PlannedWrite]:
    """Without those that want another text in a file than one before them; their turn comes.

    Somebody who wrote the same as we did may have sent the same copy: then both want the same text there.
    """
    wanted: dict[TeamKey, str | None] = {}
    fitting: list[PlannedWrite] = []
    for draft in drafts:
        if all(wanted.get(change.key, change.text) == change.text for change in draft.changes):
            wanted |= {change.key: change.text for change in draft.changes}
            fitting.append(draft)
    return fitting


MAX_STEPS = 12
"""A conflict on one of many keys takes three: list, merge, send. Who needs more is not getting on."""


_UNANSWERED = "it was sent, and whether it arrived cannot be asked"


class SyncExchange:
    """One run of it. Only one of a device's may be under way."""

    def __init__(
        self,
        remote: SyncRemote,
        files: LocalFiles,
        ledger: SyncLedger,
        *,
        policy: SyncPolicy = "merge",
        screen: ScreenTexts = allow_all_texts,
        emit: Emit = ignore_event,
    ) -> None:
        self._remote, self._files, self._ledger = remote, files, ledger
        self._policy: SyncPolicy = policy
        self._screen = screen
        self._emit = emit
        self._report = SyncReport()
        self._saved: SyncState | None = None
        self._refusal: TeamRefused | None = None
        self._is_listed = False
        self._unknown: set[TeamEntry] = set()
        self._recorded: set[TeamEntry] = set()

    async def run(self, *, sends: bool = True) -> SyncReport:
        """Pull, and send what is new here unless `sends` is off."""
        self._saved = await self._ledger.read()
        state = await resolve_pending_write(self._saved, self._files)
        state = await self._with_pending_known(state)
        state = await self._with_listing(state)
        for _ in range(MAX_STEPS):
            here = await self._files.scan()
            state = await self._with_records(without_rewritten(state, here), here)
            plan = self._plan(state, here)
            if any(isinstance(step, RecoverFile) for step in plan.values()):
                state = await self._recovered(state, plan)
                continue
            if any(isinstance(step, WritingStep) for step in plan.values()):
                state = await self._carried_out(state, here, plan)
                continue
            state = await self._written(with_settled(state, plan))
            if not (sends and any(isinstance(step, PushText | DeleteRemote) for step in plan.values())):
                self._report.is_settled = True
                break
            state = await self._with_sent(state, here, plan)
            if self._report.is_settled:
                break
        self._tell()
        if sends and self._refusal:
            raise self._refusal
        return self._report

    async def _with_pending_known(self, state: SyncState) -> SyncState:
        """What became of a commit whose answer never came: the same one again has the same answer.

        Texts that it lacks are sent too: given up, it might still arrive late, and be applied then. Who may
        not send any more cannot learn it; then its memories are left alone, and the others still come.
        """
        pending = state.pending
        if pending is None:
            return state
        try:
            outcome = await self._remote.push_commit(pending)
            if isinstance(outcome, MissingBodies):
                texts = [await self._files.body(checksum) for checksum in outcome.checksums]
                outcome = await self._completed(
                    pending, outcome, [text for text in texts if text is not None]
                )
        except TeamRefused as error:
            if not error.was_never_applied:
                self._refusal = error
                for change in pending.changes:
                    self._hold(change.key, f"{_UNANSWERED}: {error}")
                return state
            outcome = None
        applied = outcome if isinstance(outcome, CommitApplied) else None
        return await self._written(after_answer(state, pending, applied))

    async def _with_listing(self, state: SyncState) -> SyncState:
        """What the server has. That nothing is new is believed until something is to be sent: a server that
        was set back may come to the same number again, with other texts."""
        listing = await self._remote.pull_entries(state.etag)
        if listing is None:
            return state
        self._is_listed = True
        for key, version in list_lost_deletions(state.remote, listing.entries).items():
            self._emit(TeamDeletionLost(key, version))
        return replace(
            state, etag=listing.etag, remote=listing.entries, lost=listing.lost, authors=listing.authors
        )

    async def _with_records(self, state: SyncState, here: Mapping[TeamKey, LocalText]) -> SyncState:
        """Asks the server whether it has a record of the bases that newer texts would replace. After a
        point-in-time recovery no list of lost versions says it."""
        facts = {key: self._facts(state, here, key) for key in state.bases}
        asked = {
            key: found.base
            for key, found in facts.items()
            if found.base is not None and found.base not in self._recorded and needs_record(found)
        }
        if asked:
            missing = await self._remote.pull_unknown(asked)
            self._unknown |= {asked[key] for key in missing if key in asked}
            self._recorded |= set(asked.values()) - self._unknown
        for key in state.bases:
            found = self._facts(state, here, key)
            if found.is_forgotten and found.remote not in (NO_ENTRY, found.base):
                self._note_lost(key, found)
        return state

    def _note_lost(self, key: TeamKey, found: KeyFacts) -> None:
        if found.base is not None and key not in self._report.lost and found.remote.checksum != found.local:
            self._report.lost[key] = found.base.version
            self._emit(TeamVersionLost(key, found.base.version))

    def _facts(self, state: SyncState, here: Mapping[TeamKey, LocalText], key: TeamKey) -> KeyFacts:
        return collect_key_facts(state, here, key, self._unknown)

    def _plan(self, state: SyncState, here: Mapping[TeamKey, LocalText]) -> dict[TeamKey, SyncStep]:
        keys = {*here, *state.remote, *state.bases, *state.deleting}
        names = {key.casefold(): key for key in here}
        plan: dict[TeamKey, SyncStep] = {}
        for key in sorted(keys):
            if key in self._report.held:
                continue
            if key in here and here[key].hold:
                self._hold(key, here[key].hold)
                continue
            if key not in here and key in names:
                self._hold(
                    key, f"its name differs from that of {names[key]!r} in case alone; rename that one"
                )
                continue
            step = choose_sync_step(self._facts(state, here, key), self._policy)
            if not isinstance(step, DoNothing):
                plan[key] = step
        return plan

    async def _carried_out(
        self, state: SyncState, here: Mapping[TeamKey, LocalText], plan: Mapping[TeamKey, SyncStep]
    ) -> SyncState:
        """Files as the plan wants them. Where one has changed meanwhile, none is touched: plan again."""
        work = {key: step for key, step in plan.items() if isinstance(step, WritingStep)}
        bodies = await self._bodies({key: step.entry for key, step in work.items()})
        drafts = choose_compatible(
            [
                await prepare_write(
                    self._files,
                    here,
                    key,
                    step,
                    text=bodies[step.entry.checksum] if step.entry.checksum else None,
                    base=state.bases.get(key),
                )
                for key, step in work.items()
                if step.entry.checksum is None or step.entry.checksum in bodies
            ]
        )
        if not drafts:
            return state
        arrival = PendingWrite(new_write_mark(), {draft.key: draft.entry for draft in drafts})
        changes = {change.key: change for draft in drafts for change in draft.changes}
        state = await self._written(replace(state, incoming=arrival))
        came = await self._files.write([_signed(state, one) for one in changes.values()], arrival.mark)
        for draft in drafts if came else ():
            self._note(draft)
        return await self._written(after_pending_write(state, came=came))

    async def _recovered(self, state: SyncState, plan: Mapping[TeamKey, SyncStep]) -> SyncState:
        """Files that were removed by hand, with the texts that the server has lost; the next plan compares
        them. A text that is not in the history here either is gone: then nothing was agreed on."""
        lost = {key: step.base for key, step in plan.items() if isinstance(step, RecoverFile)}
        texts = {key: await self._files.body(base.checksum) for key, base in lost.items() if base.checksum}
        changes = [FileChange(key, None, text) for key, text in texts.items() if text is not None]
        if changes:
            await self._files.write(changes, new_write_mark())
        return replace(state, bases=without_keys(state.bases, [key for key in lost if not texts.get(key)]))

    async def _bodies(self, wanted: Mapping[TeamKey, TeamEntry]) -> Mapping[Checksum, str]:
        sums = sorted({entry.checksum for entry in wanted.values() if entry.checksum is not None})
        bodies = await self._remote.pull_bodies(sums) if sums else dict[Checksum, str]()
        for key, entry in wanted.items():
            if entry.checksum is not None and entry.checksum not in bodies:
                reason = "the server sent no text that fits its checksum"
                self._emit(TeamEntryRefused(key, reason))
                self._report.held[key] = reason
        return bodies

    def _note(self, draft: PlannedWrite) -> None:
        report = self._report
        if draft.copy:
            report.conflicts.append(SyncConflict(draft.key, draft.copy))
            self._emit(TeamConflicted(draft.key, draft.copy))
        if draft.kept:
            self._keep(draft.key, draft.kept)
        if draft.is_merged:
            report.merged.append(draft.key)
        elif draft.entry.checksum is None:
            report.dropped.append(draft.key)
        else:
            report.taken.append(draft.key)

    async def _choose_changes(
        self, state: SyncState, here: Mapping[TeamKey, LocalText], plan: Mapping[TeamKey, SyncStep]
    ) -> tuple[TeamChange, ...]:
        """What the plan sends, less what may not leave and what the server has refused as it is."""
        for key, step in plan.items():
            refused = state.refused.get(key)
            if isinstance(step, PushText) and refused is not None and refused.checksum == step.checksum:
                self._hold(key, refused.reason)
        texts = {
            key: here[key].text
            for key, step in plan.items()
            if isinstance(step, PushText) and key not in self._report.held
        }
        blocked = await self._screen(texts) if texts else dict[TeamKey, str]()
        for key, reason in blocked.items():
            self._report.held[key] = reason
            self._emit(TeamSecretBlocked(key, reason))
        changes: list[TeamChange] = []
        for key, step in plan.items():
            if isinstance(step, PushText) and key not in self._report.held:
                changes.append(TeamChange(key, step.expected, step.checksum))
                if step.kept:
                    self._keep(key, step.kept)
            elif isinstance(step, DeleteRemote):
                changes.append(TeamChange(key, step.expected, None))
        return tuple(changes[:MAX_CHANGES])

    async def _with_sent(
        self, state: SyncState, here: Mapping[TeamKey, LocalText], plan: Mapping[TeamKey, SyncStep]
    ) -> SyncState:
        if not self._is_listed:
            return await self._with_listing(replace(state, etag=""))
        changes = () if self._refusal else await self._choose_changes(state, here, plan)
        if changes:
            return await self._sent(state, here, changes)
        self._report.is_settled = True
        return state

    async def _sent(
        self, state: SyncState, here: Mapping[TeamKey, LocalText], changes: tuple[TeamChange, ...]
    ) -> SyncState:
        seen = {one.key: spell_seen(state.remote.get(one.key, NO_ENTRY)) for one in changes}
        commit = Commit(make_commit_id(state.device, changes), changes, seen)
        state = await self._written(replace(state, pending=commit))
        try:
            outcome = await self._remote.push_commit(commit)
            if isinstance(outcome, MissingBodies):
                texts = [here[one.key].text for one in changes if one.checksum]
                outcome = await self._completed(commit, outcome, texts)
        except TeamRefused as error:
            if not error.was_never_applied:
                raise
            state = await self._written(with_refusal(state, commit, error))
            if not error.keys and not self._makes_room(state, commit, error):
                raise
            return state
        state = await self._written(
            after_answer(state, commit, outcome if isinstance(outcome, CommitApplied) else None)
        )
        if isinstance(outcome, CommitApplied):
            self._report.sent += [one.key for one in changes if one.checksum is not None]
            self._report.deleted += [one.key for one in changes if one.checksum is None]
            self._report.is_settled = True
            return state
        return await self._with_listing(state)

    def _makes_room(self, state: SyncState, commit: Commit, error: TeamRefused) -> bool:
        """Whether less can be sent where all of it is too much: what is there already, changed or deleted,
        does not wait for what is new."""
        new = [one.key for one in commit.changes if state.remote.get(one.key, NO_ENTRY).checksum is None]
        if error.kind != "quota" or not 0 < len(new) < len(commit.changes):
            return False
        for key in new:
            self._hold(key, str(error))
        return True

    async def _completed(
        self, commit: Commit, missing: MissingBodies, texts: Sequence[str]
    ) -> CommitOutcome | MissingBodies:
        """A commit again, with the texts that it lacked."""
        wanted = set(missing.checksums)
        for batch in split_batches([text for text in texts if compute_checksum(text) in wanted]):
            await self._remote.push_bodies(batch)
        return await self._remote.push_commit(commit)

    async def _written(self, state: SyncState) -> SyncState:
        if state is not self._saved:
            await self._ledger.write(state)
            self._saved = state
        return state

    def _keep(self, key: TeamKey, why: str) -> None:
        if key not in self._report.kept:
            self._report.kept[key] = why
            self._emit(TeamTextKept(key, why))

    def _hold(self, key: TeamKey, why: str) -> None:
        self._report.held[key] = why
        self._emit(TeamFileHeld(key, why))

    def _tell(self) -> None:
        done = self._report
        if done.has_news:
            event = TeamSynced(
                taken=len(done.taken),
                dropped=len(done.dropped),
                merged=len(done.merged),
                sent=len(done.sent),
                deleted=len(done.deleted),
            )
            self._emit(event)
