"""Runs a compaction: tries one strategy after the other until the new view fits.

It never fails because a model is missing: the last strategies need none. Every attempt, skip and failure is
an event. `CompactionStateFile` keeps the count of failures across restarts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import CompactionBusy, CompactionStopped, FileMissing, InputError, SevenfoldError
from sevenfold.core.events import (
    BreakerOpened,
    BreakerStateLost,
    CompactionStarted,
    Emit,
    HistoryCompacted,
    RungFailed,
    RungSkipped,
    ignore_event,
)
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import read_object, write_json
from sevenfold.core.messages import Compaction, Message
from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.core.system import run_blocking
from sevenfold.layers.compaction.compose import ComposedView, compose_view
from sevenfold.layers.compaction.job import (
    Compacted,
    CompactionJob,
    CompactionRun,
    SummaryDraft,
    SummaryFailure,
    start_compaction_run,
)
from sevenfold.layers.compaction.keep_policy import NoNotesPlan, NotesKeepPlan
from sevenfold.layers.compaction.policy import (
    MODEL_STRATEGIES,
    BreakerState,
    CompactionOutcome,
    CompactionStrategy,
    CompactSettings,
    SkippedStrategy,
    StrategyAttempt,
    StrategyFacts,
    choose_strategy,
)
from sevenfold.layers.compaction.summary_methods import (
    COMPACTION_BLOCK_BETA,
    SummaryPrompts,
    SummaryRequester,
    choose_summary_start,
    draft_clip,
    draft_notes,
    draft_structural,
    explain_no_block,
    plan_notes_draft,
    read_summary_prompts,
)
from sevenfold.layers.compaction.trim import without_thinking
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.providers.provider import Provider
from sevenfold.store.files.folder import Folder

# The breaker's state on disk: a restart does not reset it.

COMPACT_STATE_FILE = "compact.json"
_MAX_STATE_BYTES = 4_096


class CompactionStateFile:
    """`compact.json` in a session's folder. Without a folder it remembers nothing."""

    def __init__(self, session: Folder | None = None, *, emit: Emit = ignore_event) -> None:
        self._folder = session
        self._emit = emit

    def read(self) -> BreakerState:
        """The state from disk; an empty one if there is none. An unreadable file is reported as an event."""
        if self._folder is None:
            return BreakerState()
        try:
            return read_fields(
                BreakerState, read_object(self._folder.read(COMPACT_STATE_FILE, max_bytes=_MAX_STATE_BYTES))
            )
        except FileMissing:
            return BreakerState()
        except SevenfoldError as error:
            self._tell(error)
            return BreakerState()

    def write(self, state: BreakerState) -> None:
        """Store the state. A disk error does not stop a compaction."""
        if self._folder is None:
            return
        try:
            self._folder.replace(COMPACT_STATE_FILE, write_json(write_fields(state)))
        except SevenfoldError as error:
            self._tell(error)

    def _tell(self, error: SevenfoldError) -> None:
        where = f"{self._folder.path}/{COMPACT_STATE_FILE}" if self._folder else COMPACT_STATE_FILE
        self._emit(BreakerStateLost(where, str(error)))


_NOTES = NotesSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCompaction:
    """What a compaction tries first, and what it would keep."""

    strategy: CompactionStrategy
    skipped: tuple[SkippedStrategy, ...]
    kept_messages: int
    kept_tokens: int
    total_tokens: int | None
    """Of the view after it, where that can be told without asking anybody."""
    notes_tokens: int | None
    """None: there are no notes."""


@dataclass(frozen=True, slots=True)
class _Running:
    """A running compaction, which a second caller may join."""

    job: CompactionJob
    since: timedelta
    result: asyncio.Future[Compacted]


class Compactor:
    """The compactions of one session, one at a time. Without a provider, no strategy asks a model."""

    def __init__(
        self,
        provider: Provider | None,
        settings: CompactSettings,
        *,
        notes: NotesSettings = _NOTES,
        state: CompactionStateFile | None = None,
        catalog: Catalog = CATALOG,
        clock: Clock | None = None,
        prompts: SummaryPrompts | None = None,
        emit: Emit = ignore_event,
    ) -> None:
        self._settings, self._notes = settings, notes
        self._catalog, self._clock, self._emit = catalog, clock or SystemClock(), emit
        self._asker = (
            SummaryRequester(
                provider=provider,
                settings=settings,
                prompts=prompts or read_summary_prompts(),
                catalog=catalog,
                clock=self._clock,
                emit=emit,
            )
            if provider
            else None
        )
        self._file = state or CompactionStateFile(emit=emit)
        self._state = self._file.read()
        self._running: _Running | None = None

    @property
    def state(self) -> BreakerState:
        return self._state

    @property
    def is_stopped(self) -> bool:
        """Whether automatic compaction has failed too often. By hand or reactively it still runs."""
        return self._state.is_thrashing(self._settings)

    async def remember(self, model: str, limit_tokens: int) -> None:
        """Store the limit that a provider has stated, so that a resumed session knows it."""
        await self._keep(replace(self._state, limit_model=model, limit_tokens=limit_tokens))

    def plan(self, job: CompactionJob) -> PlannedCompaction:
        """What `compact` would try first with this job, if there were a model to ask. Changes nothing."""
        run = start_compaction_run(job, self._catalog.find(job.request.frame.model), self._settings)
        notes = plan_notes_draft(run, self._notes)
        step = choose_strategy(replace(self._facts(run, notes), has_model=True), self._settings)
        start = self._kept_start(step.strategy, run, notes)
        return PlannedCompaction(
            strategy=step.strategy,
            skipped=step.skipped,
            kept_messages=len(run.messages) - start,
            kept_tokens=sum(job.counts[start:]),
            total_tokens=(
                notes.total_tokens if isinstance(notes, NotesKeepPlan) and step.strategy == "notes" else None
            ),
            notes_tokens=None if job.notes.text is None else run.sizer.text(job.notes.text),
        )

    def _kept_start(
        self, strategy: CompactionStrategy, run: CompactionRun, notes: NotesKeepPlan | NoNotesPlan
    ) -> int:
        if strategy in MODEL_STRATEGIES:
            return choose_summary_start(strategy, run, self._settings)
        return self._draft(strategy, run, notes).kept_from

    async def compact(self, job: CompactionJob) -> Compacted:
        """The view cut down. Raises only where no compaction may run: `CompactionStopped`, `CompactionBusy`,
        or `InputError` for a job that makes no sense."""
        if not self._settings.enabled:
            raise CompactionStopped("compact.enabled is off; turn it on, or start a new session")
        if job.trigger == "auto" and self.is_stopped:
            raise CompactionStopped(
                f"{self._state.futile_in_row} compactions in a row helped nothing; compact by hand, or start "
                "a session with a smaller system prompt or fewer tools"
            )
        run = start_compaction_run(job, self._catalog.find(job.request.frame.model), self._settings)
        running = self._running
        if running is not None and not self._is_stale(running):
            return await self._join(running, job)
        return await self._lead(run)

    def _is_stale(self, running: _Running) -> bool:
        return self._clock.uptime() - running.since > timedelta(seconds=self._settings.lock_seconds)

    async def _join(self, running: _Running, job: CompactionJob) -> Compacted:
        """Wait for the running compaction, and use its result if it fits this job."""
        seconds = self._settings.wait_seconds
        try:
            async with asyncio.timeout(seconds):
                result = await asyncio.shield(running.result)
        except TimeoutError:
            raise CompactionBusy(f"a compaction is still under way after {seconds} s; ask again") from None
        if not _extends(job.request.messages, running.job.request.messages):
            raise CompactionBusy("a compaction of another view has just ended; ask again with the new one")
        return _carried_over(result, job, running.job)

    async def _lead(self, run: CompactionRun) -> Compacted:
        future = asyncio.get_running_loop().create_future()
        running = self._running = _Running(run.job, self._clock.uptime(), future)
        try:
            result = await self._run_strategies(run)
        except BaseException as error:
            if not future.done():
                failure = CompactionBusy(
                    "the compaction that was waited for was cancelled or failed; ask again"
                )
                failure.__cause__ = error if isinstance(error, Exception) else None
                future.set_exception(failure)
                # It is no mistake if nobody waits for the result.
                future.exception()
            raise
        finally:
            is_overtaken = self._running is not running
            if not is_overtaken:
                self._running = None
        if is_overtaken:
            future.set_exception(CompactionBusy("another compaction overtook this one; ask again"))
            return await future
        future.set_result(result)
        return result

    async def _run_strategies(self, run: CompactionRun) -> Compacted:
        job, started = run.job, self._clock.uptime()
        self._emit(CompactionStarted(job.trigger, job.tokens_before, job.target))
        notes = plan_notes_draft(run, self._notes)
        while True:
            step = choose_strategy(self._facts(run, notes), self._settings)
            for skip in step.skipped:
                self._emit(RungSkipped(skip.strategy, skip.reason))
            draft = await self._try(step.strategy, run, notes)
            if isinstance(draft, SummaryDraft):
                composed = await compose_view(draft, run)
                if composed.tokens < run.limit or (draft.strategy == "clip" and _is_worth(composed, run)):
                    return await self._finish(draft, composed, run, started)
                draft = SummaryFailure("too large", f"the view would have {composed.tokens:,} tokens")
            run.attempts.append(StrategyAttempt(step.strategy, draft.failure))
            self._emit(RungFailed(step.strategy, draft.reason, self._state.failures_in_row))
            if step.strategy == "clip":
                raise InputError(
                    f"nothing is gained by a compaction now: {draft.reason}, and it has "
                    f"{job.tokens_before:,}; go on, or start a new session"
                )

    def _facts(self, run: CompactionRun, notes: NotesKeepPlan | NoNotesPlan) -> StrategyFacts:
        job = run.job
        return StrategyFacts(
            trigger=job.trigger,
            attempts=tuple(run.attempts),
            failures_in_row=self._state.failures_in_row,
            notes_missing=notes.reason if isinstance(notes, NoNotesPlan) else "",
            has_model=self._asker is not None,
            has_structural=bool(job.structural.strip()),
            block_missing=explain_no_block(run, self._settings),
            fits_window=run.fits_window,
            can_trim=run.can_trim,
            has_rounds=bool(run.rounds),
            is_partial=job.part is not None,
            is_thrashing=self.is_stopped,
            is_directed=bool(job.instructions.strip()),
        )

    async def _try(
        self, strategy: CompactionStrategy, run: CompactionRun, notes: NotesKeepPlan | NoNotesPlan
    ) -> SummaryDraft | SummaryFailure:
        if strategy in MODEL_STRATEGIES and self._asker is not None:
            return await self._ask(strategy, run, self._asker)
        return self._draft(strategy, run, notes)

    def _draft(
        self, strategy: CompactionStrategy, run: CompactionRun, notes: NotesKeepPlan | NoNotesPlan
    ) -> SummaryDraft:
        """By the strategies that ask no model."""
        if strategy == "notes" and isinstance(notes, NotesKeepPlan):
            return draft_notes(notes, run)
        if strategy == "structural":
            return draft_structural(run, self._notes)
        return draft_clip(run)

    async def _ask(
        self, strategy: CompactionStrategy, run: CompactionRun, asker: SummaryRequester
    ) -> SummaryDraft | SummaryFailure:
        """Ask a model. The call counts as failed until it succeeds, in case the process dies in it."""
        before = self._state
        try:
            await self._keep(before.with_failure())
            draft = await asker.ask(strategy, run)
        except BaseException:
            # The caller cancelled it, which says nothing about summaries.
            await self._keep(before)
            raise
        if isinstance(draft, SummaryDraft):
            await self._keep(self._state.with_success())
        elif self._state.failures_in_row == self._settings.breaker_failures:
            self._emit(BreakerOpened("summary", self._state.failures_in_row, draft.reason))
        return draft

    async def _finish(
        self, draft: SummaryDraft, composed: ComposedView, run: CompactionRun, started: timedelta
    ) -> Compacted:
        job = run.job
        is_within = composed.tokens < job.target
        was_stopped = self.is_stopped
        since = self._state.rounds_since(run.messages)
        ending = CompactionOutcome(job.trigger, is_within, len(composed.head) + len(composed.kept), since)
        await self._keep(self._state.with_outcome(ending, self._settings))
        for event in composed.events:
            self._emit(event)
        if self.is_stopped and not was_stopped:
            why = "full again at once" if is_within else f"still {composed.tokens:,} of {job.target:,} tokens"
            self._emit(BreakerOpened("thrash", self._state.futile_in_row, why))
        took = self._clock.uptime() - started
        self._emit(
            HistoryCompacted(
                rung=draft.strategy,
                trigger=job.trigger,
                tokens_before=job.tokens_before,
                tokens_after=composed.tokens,
                kept_messages=len(composed.kept),
                calls=run.calls,
                milliseconds=took // timedelta(milliseconds=1),
            )
        )
        return Compacted(
            rung=draft.strategy,
            trigger=job.trigger,
            head=composed.head,
            kept_from=composed.kept_from,
            kept=composed.kept,
            tokens_before=job.tokens_before,
            tokens_after=composed.tokens,
            summary=draft.summary,
            replies=tuple(run.replies),
            betas=(COMPACTION_BLOCK_BETA,) if _has_block(composed.head) else (),
            calls=run.calls,
            before=composed.before,
        )

    async def _keep(self, state: BreakerState) -> None:
        if state != self._state:
            self._state = state
            await run_blocking(lambda: self._file.write(state))


def _is_worth(composed: ComposedView, run: CompactionRun) -> bool:
    """Whether the last strategy's view is used even if it is over the target. By hand it must at least be
    smaller than before, by the same estimate for both."""
    sizer, job = run.sizer, run.job
    before = max(job.tokens_before, sizer.frame_tokens + sizer.messages(run.messages))
    return job.trigger != "manual" or composed.tokens < before


def _has_block(messages: Sequence[Message]) -> bool:
    return any(isinstance(block, Compaction) for message in messages for block in message.blocks)


def _extends(messages: Sequence[Message], beginning: Sequence[Message]) -> bool:
    """Whether a view begins with the same message objects as another."""
    return len(messages) >= len(beginning) and all(
        one is other for one, other in zip(messages, beginning, strict=False)
    )


def _carried_over(result: Compacted, job: CompactionJob, first: CompactionJob) -> Compacted:
    """The same result for a view that has grown since: what is new is kept too."""
    new = tuple(job.request.messages[len(first.request.messages) :])
    if not job.capabilities.rewrites_history:
        new = without_thinking(new)
    grown = sum(job.counts[len(first.request.messages) :])
    return replace(result, kept=result.kept + new, tokens_after=result.tokens_after + grown, replies=())
