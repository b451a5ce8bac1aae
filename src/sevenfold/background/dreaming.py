"""Runs a dream from its lock to its end: it changes a copy of the memories, checks it and publishes it whole.

Until the one commit at its end nothing that anybody sees is touched, so a dream that fails, is killed or
loses its lease leaves everything as it was. What was edited meanwhile stays as edited.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from sevenfold.background.dream_fork import DreamModel, StageRunner
from sevenfold.background.dream_logs import DistilledLogs
from sevenfold.background.dream_progress import DreamProgress
from sevenfold.background.dream_publish import Judged, Published, judge, propose, publish
from sevenfold.background.dream_record import DreamId, DreamRecord, DreamRecords
from sevenfold.background.dream_source import DreamSource, read_source
from sevenfold.background.dream_stage import Stage
from sevenfold.background.notes_texts import read_template
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import LeaseLost, ProviderError, SpendRefused, StoreError
from sevenfold.core.events import (
    DreamDegraded,
    DreamEnded,
    DreamSpared,
    DreamStarted,
    Emit,
    ignore,
)
from sevenfold.core.memories import ARCHIVE
from sevenfold.layers.dream import DreamSettings, DreamTask, brief
from sevenfold.layers.dream_distil import distil_logs
from sevenfold.layers.dream_merge import Draft, plan_mechanical
from sevenfold.layers.dream_report import read_reasons, render_diff
from sevenfold.store.folder import Folder
from sevenfold.store.lock import Lease, Lock, LockSettings
from sevenfold.store.memory_asked import ASKED
from sevenfold.store.memory_dir import MemoryDir
from sevenfold.store.offload import durably
from sevenfold.store.project import Project

LOCK = "dream"
PROMPT = "dream.md"
MOST_SHOWN = 200
"""Memories in the manifest that the fork gets; it can search for the others."""
LOOK = timedelta(seconds=1)
"""How often a dream looks whether somebody wants it to stop."""


@dataclass(frozen=True, slots=True)
class Dreamt:
    """How a dream ended, and what it changed or would have."""

    record: DreamRecord
    diff: str


Tell: TypeAlias = Callable[[str], None]
"""Told of each step of a dream."""
Dream: TypeAlias = Callable[[Tell], Awaitable[Dreamt]]


@dataclass(slots=True)
class _Night:
    """A dream under way."""

    id: DreamId
    record: DreamRecord
    progress: DreamProgress
    diff: str = ""
    published: Published | None = None
    """From the moment of the commit on: whatever comes then, the dream was dreamt."""


class Dreamer:
    """Dreams of one project. Neither the project nor its memories are closed with it."""

    def __init__(
        self,
        project: Project,
        memory: MemoryDir,
        settings: DreamSettings,
        *,
        locks: LockSettings | None = None,
        templates: Folder | None = None,
        clock: Clock | None = None,
        emit: Emit = ignore,
    ) -> None:
        self._project, self._memory, self._settings = project, memory, settings
        self._locks, self._templates = locks or LockSettings(), templates
        self._clock, self._emit = clock or SystemClock(), emit
        self.records = DreamRecords(project.control)

    def close(self) -> None:
        self.records.close()

    @property
    def lock(self) -> Lock:
        return Lock(
            self._project.control,
            LOCK,
            clock=self._clock,
            emit=self._emit,
            face=self._project.face,
            lease=self._locks.lease,
            longest_hold=self._locks.longest_hold,
        )

    @property
    def renew_every(self) -> timedelta:
        return self._locks.lease / 3

    async def dream(self, model: DreamModel | None = None, *, is_dry: bool = False) -> Dreamt:
        """Dream now. `LockBusy` where somebody does already; what else goes wrong is told and raised."""
        lease = None if is_dry else await durably(self.lock.acquire)
        night = self._begin(model)
        watch = _Watch(self, lease, night.id)
        try:
            async with watch.kept():
                await self._work(night, model, lease)
        except asyncio.CancelledError:
            await self._end(night, lease, "killed", "somebody stopped it")
            if not watch.is_stopped:
                raise
        except Exception as error:
            await self._end(night, lease, "failed", str(error))
            raise
        else:
            await self._end(night, lease, "unchanged", "")
        return Dreamt(night.record, night.diff)

    def _begin(self, model: DreamModel | None) -> _Night:
        now = self._clock.now()
        dream = DreamId(f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}")
        writer = "model" if model else "mechanical"
        return _Night(dream, DreamRecord(dream, now.isoformat(), writer), DreamProgress(dream, self._emit))

    async def _work(self, night: _Night, model: DreamModel | None, lease: Lease | None) -> None:
        now = self._clock.now()
        if lease:
            await durably(lambda: self._take_down(night))
        logs = DistilledLogs(self._project.control)
        source = await durably(
            lambda: read_source(self._project, self._memory, logs.read(), now, self._settings)
        )
        self._emit(DreamStarted(night.id, night.record.writer, len(source.kept)))
        draft = await durably(lambda: self._plan(source, now))
        if model and (source.kept or source.logs):
            draft = await self._with_model(night, model, source, draft)
        draft = await durably(lambda: self._with_free_names(draft))
        judged = await durably(lambda: judge(source, draft, now.date(), self._settings))
        night.diff = _diff(source, judged)
        if lease is None:
            night.published = Published(judged)
            return
        night.progress.step(_told_changes(len(judged.publishes)))
        await durably(lambda: self._publish(night, lease, source, judged))
        if night.published and not night.published.judged.objection:
            await durably(lambda: logs.write(source.logs))

    def _publish(self, night: _Night, lease: Lease, source: DreamSource, judged: Judged) -> None:
        memory, today = self._memory, self._clock.now().date()
        published = publish(lease, memory, source, judged, today, self._settings, dream=night.id)
        night.published, night.diff = published, _diff(source, published.judged)
        judged = published.judged
        waiting = propose(memory, source, judged, dream=night.id)
        if judged.proposes and not waiting and not judged.objection:
            self._emit(DreamSpared(night.id, ", ".join(sorted(judged.proposes)), ASKED))
        night.published = replace(published, waiting=waiting)

    def _plan(self, source: DreamSource, now: datetime) -> Draft:
        """What needs no model. Takes seconds where there are thousands."""
        draft = plan_mechanical(source.kept, source.uses, now, self._settings)
        distilled = distil_logs(source.trusted_logs, draft.texts, now.date())
        return replace(draft, texts={**draft.texts, **distilled})

    async def _with_model(self, night: _Night, model: DreamModel, source: DreamSource, draft: Draft) -> Draft:
        """What a fork makes of the copy; what needs no model is done already."""
        prompt = await durably(lambda: read_template(self._templates, PROMPT))
        sessions, today = self._project.sessions.path, self._clock.now().date()
        texts = {key: text for key, text in draft.texts.items() if not key.startswith(ARCHIVE)}
        copy = await durably(lambda: self.records.copy_folder(night.id))
        try:
            stage = Stage(source.before, texts, today, copy, night.progress.touch)
            await durably(stage.lay_out)
            manifest = stage.manifest(MOST_SHOWN)
            task = DreamTask(today, manifest, source.index, source.log_texts, str(sessions), str(copy.path))
            runner = StageRunner(model.reader_of, stage, copy.path, sessions, night.progress)
            result = await model.run_fork(brief(task, prompt, self._settings), runner.run)
        except (ProviderError, SpendRefused) as error:
            self._emit(DreamDegraded(night.id, str(error)))
            night.record = replace(night.record, writer="mechanical", reason=str(error))
            return draft
        finally:
            copy.close()
            await durably(lambda: self.records.clear_copy(night.id))
        night.progress.step(result.text)
        night.record = replace(night.record, report=result.text)
        aside = {key: text for key, text in draft.texts.items() if key.startswith(ARCHIVE)}
        reasons = (*draft.reasons, *stage.reasons, *read_reasons(result.text))
        return Draft({**stage.texts, **aside}, reasons)

    def _with_free_names(self, draft: Draft) -> Draft:
        """What is put aside never takes the place of what was put aside before. Blocks on the disk."""
        renamed = {
            key: f"{key.removesuffix('.md')}-{secrets.token_hex(3)}.md"
            for key in draft.texts
            if key.startswith(ARCHIVE) and self._memory.find(key)
        }
        return Draft(
            {renamed.get(key, key): text for key, text in draft.texts.items()},
            tuple(replace(reason, of=renamed.get(reason.of, reason.of)) for reason in draft.reasons),
        )

    def _take_down(self, night: _Night) -> None:
        self.records.tidy(self._settings.keep_records, night.id)
        self.records.write(night.record)

    def _account(self, night: _Night, published: Published, *, is_dry: bool) -> DreamRecord:
        """What a dream that came to a draft did, or would have done."""
        judged = published.judged
        keys, texts = judged.publishes, judged.draft.texts
        outcome = "refused" if judged.objection else "unchanged" if not keys else "completed"
        return replace(
            night.record,
            outcome="previewed" if is_dry and keys else outcome,
            reason=judged.objection or night.record.reason,
            transaction=published.transaction,
            changed=tuple(sorted(key for key in keys if key in texts and not key.startswith(ARCHIVE))),
            removed=tuple(sorted(keys - texts.keys())),
            archived=tuple(sorted(key for key in keys if key.startswith(ARCHIVE))),
            waiting=published.waiting,
            spared=tuple(f"{key}: {reason}" for key, reason in judged.spared.items()),
            let_go=tuple(
                f"{loss.key}: {loss.fact} ({loss.reason.why} {loss.reason.of} {loss.reason.note})"
                for loss in judged.checked.losses
                if loss.key in keys
            ),
        )

    async def _end(self, night: _Night, lease: Lease | None, outcome: str, reason: str) -> None:
        """Let go, and say how it ended; the lease is let go of already where something was published."""
        record, published = replace(night.record, outcome=outcome, reason=reason), night.published
        if published is not None:
            # Whatever came after the commit, it counts: nobody is told that nothing was changed.
            record = self._account(night, published, is_dry=lease is None)
            for key, why in published.judged.spared.items():
                self._emit(DreamSpared(night.id, key, why))
        ended, steps = self._clock.now().isoformat(), tuple(night.progress.steps)
        record = night.record = replace(record, ended=ended, steps=steps, tools=night.progress.tools)
        if lease is not None:
            with suppress(StoreError):  # it lapses by itself
                await durably(lease.give_up)
            with suppress(StoreError):  # the memories' history has what was done
                await durably(lambda: self.records.write(record, night.diff))
        self._emit(
            DreamEnded(
                record.id,
                record.outcome,
                record.reason,
                len(record.changed),
                len(record.removed),
                len(record.archived),
                len(record.waiting),
                record.transaction,
            )
        )


@dataclass(slots=True)
class _Watch:
    """Says that the work goes on while it does, and stops it when it must not any more."""

    dreamer: Dreamer
    lease: Lease | None
    dream: DreamId
    is_stopped: bool = False
    _lost: list[LeaseLost] = field(default_factory=list[LeaseLost])

    @asynccontextmanager
    async def kept(self) -> AsyncGenerator[None]:
        work = asyncio.current_task()
        beat = asyncio.create_task(self._beat(work)) if self.lease and work else None
        try:
            yield
        except asyncio.CancelledError:
            if work and (self._lost or self.is_stopped):
                work.uncancel()
            if self._lost:
                raise self._lost[0] from None
            raise
        finally:
            if beat:
                beat.cancel()
                await asyncio.wait({beat})

    async def _beat(self, work: asyncio.Task[object]) -> None:
        lease, records = self.lease, self.dreamer.records
        if lease is None:
            return
        since = timedelta(0)
        while True:
            await asyncio.sleep(LOOK.total_seconds())
            since += LOOK
            try:
                if await durably(lambda: records.is_asked_to_stop(self.dream)):
                    self.is_stopped = True
                    break
                if since >= self.dreamer.renew_every:
                    await durably(lease.renew)
                    since = timedelta(0)
            except LeaseLost as error:
                self._lost.append(error)
                break
            except StoreError:
                continue  # a lease is renewed three times as often as it must be
        work.cancel()


def _diff(source: DreamSource, judged: Judged) -> str:
    before = {key: item.memory.text for key, item in source.stored.items()}
    keys = judged.publishes or frozenset(judged.checked.changed)
    return render_diff(before, judged.draft.texts, keys)


def _told_changes(count: int) -> str:
    if not count:
        return "nothing to change"
    return f"publish {count} changed file{'' if count == 1 else 's'}"
