"""Runs a dream from its lock to its end: it edits a copy of the memories, checks it and publishes it in one
commit.

Before that commit nothing visible changes, so a dream that fails, is killed or loses its lease leaves
everything as it was. Files that were edited meanwhile stay as edited.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import LeaseLost, ProviderError, SevenfoldError, SpendRefused, StoreError
from sevenfold.core.events import (
    DreamDegraded,
    DreamEnded,
    DreamSpared,
    DreamStarted,
    Emit,
    ignore_event,
)
from sevenfold.core.memories import ARCHIVE_PREFIX
from sevenfold.core.system import run_blocking
from sevenfold.layers.dreams.check import parse_removal_reasons, render_memory_diff, restrict_descriptions
from sevenfold.layers.dreams.inputs import DistilledLogs, DreamInputs, choose_questions, read_dream_inputs
from sevenfold.layers.dreams.merge import DreamDraft, distil_logs, plan_merge
from sevenfold.layers.dreams.policy import DreamSettings, DreamTask, build_dream_brief
from sevenfold.layers.dreams.publish import (
    DREAM_RUNNING,
    DreamId,
    DreamRecord,
    DreamRecordStore,
    PublishedDream,
    ReviewedDraft,
    propose_dream,
    publish_dream,
    review_draft,
)
from sevenfold.layers.dreams.workspace import DreamModel, DreamProgress, DreamToolRunner, DreamWorkspace
from sevenfold.layers.templates import read_template
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import Lease, Lock, LockSettings
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.plan import ALREADY_ASKED
from sevenfold.store.project.project import Project

DREAM_LOCK = "dream"
_PROMPT = "dream.md"
MAX_SHOWN_MEMORIES = 200
"""Memories in the manifest that the fork gets; it can search for the others."""
STOP_POLL_INTERVAL = timedelta(seconds=1)
"""How often a dream looks whether somebody wants it to stop."""


@dataclass(frozen=True, slots=True)
class DreamResult:
    """How a dream ended, and what it changed or would have."""

    record: DreamRecord
    diff: str


OnDreamStep: TypeAlias = Callable[[str], None]
"""Told of each step of a dream."""
RunDream: TypeAlias = Callable[[OnDreamStep], Awaitable[DreamResult]]


@dataclass(slots=True, kw_only=True)
class _DreamRun:
    """A running dream."""

    id: DreamId
    record: DreamRecord
    progress: DreamProgress
    diff: str = ""
    published: PublishedDream | None = None
    """From the moment of the commit on: whatever comes then, the dream was dreamt."""


class Dreamer:
    """Runs the dreams of one project. It closes neither the project nor its memories."""

    def __init__(
        self,
        project: Project,
        memory: MemoryDir,
        settings: DreamSettings,
        *,
        locks: LockSettings | None = None,
        templates: Folder | None = None,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
    ) -> None:
        self._project, self._memory, self._settings = project, memory, settings
        self._locks, self._templates = locks or LockSettings(), templates
        self._clock, self._emit = clock or SystemClock(), emit
        self.records = DreamRecordStore(project.memory_state)

    def close(self) -> None:
        self.records.close()

    @property
    def lock(self) -> Lock:
        return Lock(
            self._project.memory_state,
            DREAM_LOCK,
            clock=self._clock,
            emit=self._emit,
            pid_file=self._project.pid_file,
            lease=self._locks.lease,
            longest_hold=self._locks.longest_hold,
        )

    def find_running(self) -> str:
        """The id of the dream under way; empty when there is none. Blocks on the disk."""
        newest = next(iter(self.records.ids()), "")
        is_locked = self.lock.read_state().holder is not None
        return newest if is_locked and newest and self.records.read(newest).outcome == DREAM_RUNNING else ""

    @property
    def renew_every(self) -> timedelta:
        return self._locks.lease / 3

    async def dream(self, model: DreamModel | None = None, *, is_dry: bool = False) -> DreamResult:
        """Dream now. Raises `LockBusy` if a dream is running; other errors are reported and raised."""
        lease = None if is_dry else await run_blocking(self.lock.acquire)
        run = self._begin(model)
        watch = _Watch(dreamer=self, lease=lease, dream=run.id)
        try:
            async with watch.kept():
                await self._work(run, model, lease)
        except asyncio.CancelledError:
            await self._end(run, lease, "killed", "somebody stopped it")
            if not watch.is_stopped:
                raise
        except Exception as error:
            await self._end(run, lease, "failed", str(error))
            raise
        else:
            await self._end(run, lease, "unchanged", "")
        return DreamResult(run.record, run.diff)

    def _begin(self, model: DreamModel | None) -> _DreamRun:
        now = self._clock.now()
        dream = DreamId(f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}")
        writer = "model" if model else "mechanical"
        return _DreamRun(
            id=dream,
            record=DreamRecord(id=dream, started=now.isoformat(), writer=writer),
            progress=DreamProgress(dream=dream, emit=self._emit),
        )

    async def _work(self, run: _DreamRun, model: DreamModel | None, lease: Lease | None) -> None:
        now = self._clock.now()
        if lease:
            await run_blocking(lambda: self._take_down(run))
        logs = DistilledLogs(self._project.memory_state)
        source = await run_blocking(
            lambda: read_dream_inputs(self._project, self._memory, logs.read(), now, self._settings)
        )
        self._emit(DreamStarted(run.id, run.record.writer, len(source.kept)))
        draft = await run_blocking(lambda: self._plan(source, now))
        if model and (source.kept or source.logs):
            draft = await self._with_model(run, model, source, draft)
        draft = await run_blocking(lambda: self._with_free_names(draft))
        judged = await run_blocking(lambda: review_draft(source, draft, now.date(), self._settings))
        run.diff = _diff(source, judged)
        if lease is None:
            run.published = PublishedDream(judged)
            return
        run.progress.step(_describe_changes(len(judged.publishes)))
        await run_blocking(lambda: self._publish(run, lease, source, judged))
        if run.published and not run.published.judged.objection:
            await run_blocking(lambda: logs.write(source.logs))

    def _publish(self, run: _DreamRun, lease: Lease, source: DreamInputs, judged: ReviewedDraft) -> None:
        memory, today = self._memory, self._clock.now().date()
        published = publish_dream(
            lease, memory, source, judged, today=today, settings=self._settings, dream=run.id
        )
        run.published, run.diff = published, _diff(source, published.judged)
        judged = published.judged
        waiting = propose_dream(memory, source, judged, dream=run.id)
        if judged.proposes and not waiting and not judged.objection:
            self._emit(DreamSpared(run.id, ", ".join(sorted(judged.proposes)), ALREADY_ASKED))
        run.published = replace(published, waiting=waiting)

    def _plan(self, source: DreamInputs, now: datetime) -> DreamDraft:
        """The draft without a model. Takes seconds for thousands of memories."""
        draft = plan_merge(source.kept, source.uses, now, self._settings)
        distilled = distil_logs(source.trusted_logs, draft.texts, now.date())
        return replace(draft, texts={**draft.texts, **distilled})

    async def _with_model(
        self, run: _DreamRun, model: DreamModel, source: DreamInputs, draft: DreamDraft
    ) -> DreamDraft:
        """The draft of a fork, which starts from the draft without a model."""
        prompt = await run_blocking(lambda: read_template(self._templates, _PROMPT))
        sessions, today = self._project.sessions.path, self._clock.now().date()
        texts = {key: text for key, text in draft.texts.items() if not key.startswith(ARCHIVE_PREFIX)}
        copy = await run_blocking(lambda: self.records.copy_folder(run.id))
        try:
            stage = DreamWorkspace(
                before=source.before, texts=texts, today=today, folder=copy, on_write=run.progress.touch
            )
            await run_blocking(stage.write_copy)
            manifest = stage.manifest(MAX_SHOWN_MEMORIES)
            turns = await run_blocking(lambda: _find_turns(model, source, run))
            task = DreamTask(
                today=today,
                manifest=manifest,
                index=source.index,
                logs=source.log_texts,
                transcripts=str(sessions),
                copy=str(copy.path),
                turns=turns,
            )
            runner = DreamToolRunner(model.reader_of, stage, copy.path, sessions, run.progress)
            result = await model.run_fork(build_dream_brief(task, prompt, self._settings), runner.run)
        except (ProviderError, SpendRefused) as error:
            self._emit(DreamDegraded(run.id, str(error)))
            run.record = replace(run.record, writer="mechanical", reason=str(error))
            return draft
        finally:
            copy.close()
            await run_blocking(lambda: self.records.clear_copy(run.id))
        run.progress.step(result.text)
        run.record = replace(run.record, report=result.text)
        aside = {key: text for key, text in draft.texts.items() if key.startswith(ARCHIVE_PREFIX)}
        reasons = (*draft.reasons, *stage.reasons, *parse_removal_reasons(result.text))
        texts = restrict_descriptions(source.before, stage.texts)
        return DreamDraft({**texts, **aside}, reasons)

    def _with_free_names(self, draft: DreamDraft) -> DreamDraft:
        """Give archived files names that no earlier archived file has. Blocks on the disk."""
        renamed = {
            key: f"{key.removesuffix('.md')}-{secrets.token_hex(3)}.md"
            for key in draft.texts
            if key.startswith(ARCHIVE_PREFIX) and self._memory.find(key)
        }
        return DreamDraft(
            {renamed.get(key, key): text for key, text in draft.texts.items()},
            tuple(replace(reason, of=renamed.get(reason.of, reason.of)) for reason in draft.reasons),
        )

    def _take_down(self, run: _DreamRun) -> None:
        self.records.tidy(self._settings.keep_records, run.id)
        self.records.write(run.record)

    def _account(self, run: _DreamRun, published: PublishedDream, *, is_dry: bool) -> DreamRecord:
        """The record of a dream that made a draft: what it did, or would have done."""
        judged = published.judged
        keys, texts = judged.publishes, judged.draft.texts
        outcome = "refused" if judged.objection else "unchanged" if not keys else "completed"
        return replace(
            run.record,
            outcome="previewed" if is_dry and keys else outcome,
            reason=judged.objection or run.record.reason,
            transaction=published.transaction,
            changed=tuple(sorted(key for key in keys if key in texts and not key.startswith(ARCHIVE_PREFIX))),
            removed=tuple(sorted(keys - texts.keys())),
            archived=tuple(sorted(key for key in keys if key.startswith(ARCHIVE_PREFIX))),
            waiting=published.waiting,
            left_alone=tuple(f"{key}: {reason}" for key, reason in judged.left_alone.items()),
            let_go=tuple(
                f"{loss.key}: {loss.fact} ({loss.reason.why} {loss.reason.of} {loss.reason.note})"
                for loss in judged.checked.losses
                if loss.key in keys
            ),
        )

    async def _end(self, run: _DreamRun, lease: Lease | None, outcome: str, reason: str) -> None:
        """Release the lease, unless publishing did so, and record how the dream ended."""
        record, published = replace(run.record, outcome=outcome, reason=reason), run.published
        if published is not None:
            # The commit counts whatever failed after it: the record must not say that nothing changed.
            record = self._account(run, published, is_dry=lease is None)
            for key, why in published.judged.left_alone.items():
                self._emit(DreamSpared(run.id, key, why))
        ended, steps = self._clock.now().isoformat(), tuple(run.progress.steps)
        record = run.record = replace(record, ended=ended, steps=steps, tools=run.progress.tools)
        if lease is not None:
            with suppress(StoreError):  # it lapses by itself
                await run_blocking(lease.release)
            with suppress(StoreError):  # the memories' history has what was done
                await run_blocking(lambda: self.records.write(record, run.diff))
        self._emit(
            DreamEnded(
                dream=record.id,
                outcome=record.outcome,
                reason=record.reason,
                changed=len(record.changed),
                removed=len(record.removed),
                archived=len(record.archived),
                waiting=len(record.waiting),
                transaction=record.transaction,
            )
        )


@dataclass(slots=True, kw_only=True)
class _Watch:
    """Renews the lease while the work runs, and cancels the work when it must stop."""

    dreamer: Dreamer
    lease: Lease | None
    dream: DreamId
    is_stopped: bool = False
    _lost: list[LeaseLost] = field(default_factory=list[LeaseLost])

    @asynccontextmanager
    async def kept(self) -> AsyncGenerator[None]:
        work = asyncio.current_task()
        renewal = asyncio.create_task(self._renew_lease(work)) if self.lease and work else None
        try:
            yield
        except asyncio.CancelledError:
            if work and (self._lost or self.is_stopped):
                work.uncancel()
            if self._lost:
                raise self._lost[0] from None
            raise
        finally:
            if renewal:
                renewal.cancel()
                await asyncio.wait({renewal})

    async def _renew_lease(self, work: asyncio.Task[object]) -> None:
        lease, records = self.lease, self.dreamer.records
        if lease is None:
            return
        since = timedelta(0)
        while True:
            await asyncio.sleep(STOP_POLL_INTERVAL.total_seconds())
            since += STOP_POLL_INTERVAL
            try:
                if await run_blocking(lambda: records.is_asked_to_stop(self.dream)):
                    self.is_stopped = True
                    break
                if since >= self.dreamer.renew_every:
                    await run_blocking(lease.renew)
                    since = timedelta(0)
            except LeaseLost as error:
                self._lost.append(error)
                break
            except StoreError:
                continue  # a lease is renewed three times as often as it must be
        work.cancel()


def _find_turns(model: DreamModel, source: DreamInputs, run: _DreamRun) -> str:
    """What past sessions say of memories in doubt. A dream does without where they cannot be searched."""
    if model.find_turns is None:
        return ""
    try:
        return model.find_turns(choose_questions(source))
    except SevenfoldError as error:
        run.progress.step(f"past sessions could not be searched: {error}")
        return ""


def _diff(source: DreamInputs, judged: ReviewedDraft) -> str:
    before = {key: item.memory.text for key, item in source.stored.items()}
    keys = judged.publishes or frozenset(judged.checked.changed)
    return render_memory_diff(before, judged.draft.texts, keys)


def _describe_changes(count: int) -> str:
    if not count:
        return "nothing to change"
    return f"publish {count} changed file{'' if count == 1 else 's'}"
