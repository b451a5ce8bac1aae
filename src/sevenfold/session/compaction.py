"""Layers 2 and 4 in the view of a session.

`CompactionLayer`: when a compaction is due, what it is given, and how its result is applied.
`MicrocompactLayer`: clears old tool results, by the means that the model allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from typing import Literal

from sevenfold.core.errors import PromptTooLong
from sevenfold.core.events import ClearingRefused, ResultsCleared, WindowLearned
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import Block, Message, ToolResult, ToolUseId
from sevenfold.core.requests import ModelResponse
from sevenfold.core.tokens import SAFETY_FACTOR
from sevenfold.core.view import ENGINE_ENTRY, Cut, ViewMessage
from sevenfold.layers.compaction.compactor import Compactor
from sevenfold.layers.compaction.job import NO_NOTES, Compacted, CompactionJob, CompactionNotes, Part
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.compaction.policy import CompactionTrigger
from sevenfold.layers.context import is_context_message
from sevenfold.layers.microcompact.facts import BARE_MARKER, render_cleared_marker
from sevenfold.layers.microcompact.policy import PRESSURE_TRIGGER, ClearingFacts, ClearingPlan
from sevenfold.layers.microcompact.server_clearing import uses_server_edits
from sevenfold.session.context import CurrentContext
from sevenfold.session.memory import clear_oldest_memories, find_old_memories
from sevenfold.session.model_limits import without_message_thinking
from sevenfold.session.pipeline import ViewBuilder
from sevenfold.session.resume import BETAS_KEY, COVERS_KEY, ROUNDS_KEY, THOUGHTLESS_KEY, TOKENS_KEY
from sevenfold.store.files.disk import run_blocking
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    InjectedRecord,
    KeptSegment,
    MessageRecord,
    RecordId,
    new_record_id,
)

REFUSED_SHARE = 0.75
"""Of what a provider takes, a view that it refused is cut to so much: the rest is for the next rounds and
for what our count is off by."""


@dataclass(frozen=True, slots=True)
class CompactionSources:
    """What the writers left for a compaction to use."""

    notes: CompactionNotes = NO_NOTES
    structural: str = ""
    extras: tuple[Extra, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest:
    """Why a view is cut down, and how."""

    trigger: CompactionTrigger
    instructions: str = ""
    hook_text: str = ""
    part: Part | None = None
    error: PromptTooLong | None = None
    """What the provider said, where it insists."""


@dataclass(slots=True)
class CompactionLayer:
    """The compactions of one conversation."""

    path: ViewBuilder
    compactor: Compactor
    folder: str = ""
    """Where the agent works: what relative paths of files that it read start from."""
    _spilled: dict[str, str] = field(default_factory=dict[str, str])
    """Texts that are already stored: several strategies ask for the same ones, and so do the notes."""

    @property
    def is_due(self) -> bool:
        """Whether the view has grown to where it is cut down by itself."""
        return (
            self.path.window.thresholds.is_compact_due(self.path.tally.count().tokens)
            and not self.compactor.is_stopped
        )

    async def learn(self, error: PromptTooLong) -> None:
        """Remember what a provider takes that refused the view, so that the next one is cut down in time."""
        path, name = self.path, self.path.frame.model
        limit = _own_limit(path.view().tokens, error)
        if limit is None or limit >= path.window.thresholds.auto_compact:
            return
        path.deps.emit(WindowLearned(name, limit, path.window.tokens))
        path.window.learn(name, limit)
        await self.compactor.remember(name, limit)

    async def run(
        self, wishes: CompactionRequest, noted: CompactionSources, context: CurrentContext
    ) -> Compacted:
        """Cut the view down and show what came of it from now on, with this context in its head."""
        job = self._job(wishes, noted)
        if context.message is None:
            done = await self.compactor.compact(job)
        else:
            tokens = math.ceil(sum(map(self._weigh, context.message.blocks)))
            done = await self.compactor.compact(_with_context(job, context, tokens))
            if not any(map(is_context_message, done.view)):
                # After the summary, and after any block: what stands before one is not read by the model.
                done = replace(done, head=(*done.head, context.message))
        self._adopt(done, noted.extras)
        return done

    def _job(self, wishes: CompactionRequest, noted: CompactionSources) -> CompactionJob:
        path, error = self.path, wishes.error
        items = path.shown.items
        view = path.view()
        return CompactionJob(
            request=view.request,
            tokens_before=view.tokens,
            target=self._target(view.tokens, error),
            counts=self._counts(),
            weigh=self._weigh,
            capabilities=path.capabilities,
            trigger=wishes.trigger,
            overshoot=error.overshoot if error else None,
            window_tokens=path.window.tokens,
            instructions=wishes.instructions,
            hook_text=wishes.hook_text,
            part=wishes.part,
            notes=noted.notes,
            structural=noted.structural,
            sent_messages=path.sent_messages,
            is_warm=self.is_warm,
            attachments=frozenset(index for index, item in enumerate(items) if _is_aside(item)),
            transcript=path.deps.journal.path,
            spill=self.spill,
            folder=self.folder,
            extras=noted.extras,
        )

    def _target(self, tokens: int, error: PromptTooLong | None) -> int:
        """What the new view must stay below. A provider that refused the old one knows its window better than
        our catalogue does, and counts in tokens of its own."""
        path, usual = self.path, self.path.window.thresholds.auto_compact
        known = path.window.learned.get(path.frame.model)
        if error is not None:
            known = _own_limit(tokens, error) or tokens
        return usual if known is None else min(usual, int(known * REFUSED_SHARE))

    def _counts(self) -> list[int]:
        """Tokens of each message, by the same measure as the whole: before a first bill, with its margin."""
        tally, margin = self.path.tally, self._margin
        return [math.ceil(tally.estimate_of(item.weight) * margin) for item in self.path.shown.items]

    def _weigh(self, block: Block) -> float:
        """Tokens of a block of the new view, by that measure too: the target is in the same tokens."""
        return self.path.tally.estimate_block(block) * float(self._margin)

    @property
    def _margin(self) -> Fraction:
        return SAFETY_FACTOR if self.path.tally.count().is_wholly_estimated else Fraction(1)

    @property
    def is_warm(self) -> bool:
        """Whether the provider's cache still holds what the last request marked."""
        last, now = self.path.last_call, self.path.deps.clock.now()
        # A clock that was set back says nothing: taken for cold, a summary is paid once too dearly at worst.
        return last is not None and timedelta() <= now - last <= self.path.deps.settings.cache.lifetime

    def spill(self, name: str, text: str) -> str | None:
        """Store a text of the session, under a name of this text alone; its path, or None."""
        spills = self.path.deps.spills
        if spills is None or name in self._spilled:
            return self._spilled.get(name)
        path = spills.path_of(spills.store(ToolResult(ToolUseId(name), text)))
        if path is not None:
            self._spilled[name] = path
        return path

    def _adopt(self, done: Compacted, extras: tuple[Extra, ...]) -> None:
        path, journal = self.path, self.path.deps.journal
        before = path.shown.items
        kept = before[done.kept_from :]
        is_thoughtless = any(new is not item.message for new, item in zip(done.kept, kept, strict=True))
        is_whole = all(
            new == (without_message_thinking(item.message) if is_thoughtless else item.message)
            and item.entry != ENGINE_ENTRY
            for new, item in zip(done.kept, kept, strict=True)
        )
        # Of a part from some message on, the beginning stays what it was.
        stays, head = before[: done.before], done.head[done.before :]
        ids = [new_record_id() for _ in head]
        segment = self._segment(kept, ids) if is_whole and kept and ids else None
        last = next((item.entry for item in reversed(before) if item.entry != ENGINE_ENTRY), ENGINE_ENTRY)
        journal.add(
            BoundaryRecord(
                trigger="manual" if done.trigger == "manual" else "auto",
                tokens_before=done.tokens_before,
                last_message=path.entries[last].id if last != ENGINE_ENTRY else None,
                tools=tuple(extra.title for extra in extras if extra.kind == "tools"),
                kept=segment,
            )
        )
        self._write_again(done.head[: done.before], stays)
        for name, message in zip(ids, head, strict=True):
            journal.add(InjectedRecord(message, _head_origin(message, name == ids[0])), name)
        if segment is None:
            self._write_again(done.kept, kept)
        items = [*stays, *(ViewMessage(message, 0.0, ENGINE_ENTRY, "attachment") for message in head)]
        items += [
            ViewMessage(new, item.weight, item.entry, item.origin)
            for new, item in zip(done.kept, kept, strict=True)
        ]
        path.betas = done.betas

        def detail() -> JsonObject:
            tokens = path.tally.count().tokens
            return freeze_object(
                {
                    TOKENS_KEY: tokens,
                    THOUGHTLESS_KEY: is_thoughtless,
                    BETAS_KEY: list(done.betas),
                    COVERS_KEY: path.earlier + len(path.entries),
                    ROUNDS_KEY: path.rounds,
                }
            )

        path.cut(Cut(4, f"compaction by {done.rung}", done.before), items, detail)

    def _segment(self, kept: list[ViewMessage], head: list[RecordId]) -> KeptSegment:
        entries, journal = self.path.entries, self.path.deps.journal
        first, final = entries[kept[0].entry].id, entries[kept[-1].entry].id
        return KeptSegment(first, head[-1], final, journal.offset(first))

    def _write_again(self, messages: tuple[Message, ...], items: list[ViewMessage]) -> None:
        """Kept messages that are no longer what the transcript has are written as they are now."""
        for message, item in zip(messages, items, strict=True):
            if item.entry == ENGINE_ENTRY:
                self.path.deps.journal.add(InjectedRecord(message, "attachment"))
            else:
                # Under its own name: whoever reads the whole transcript counts it once.
                self.path.deps.journal.add(MessageRecord(message), self.path.entries[item.entry].id)


def _own_limit(tokens: int, error: PromptTooLong) -> int | None:
    """What a provider takes, as we count, who made it so many tokens; None where it did not say."""
    if not error.tokens or error.limit is None:
        return None
    return int(tokens * min(1.0, error.limit / error.tokens))


def _with_context(job: CompactionJob, context: CurrentContext, tokens: int) -> CompactionJob:
    """The job, with space reserved for the context; files that it shows are not restored as well."""
    rest = max(0, job.tokens_before - sum(job.counts))
    return replace(job, frame_tokens=rest + tokens, barred_files=job.barred_files | context.paths)


def _is_aside(item: ViewMessage) -> bool:
    return item.message.role != "assistant" and (item.entry == ENGINE_ENTRY or item.origin != "human")


def _head_origin(message: Message, is_first: bool) -> Literal["attachment", "summary"]:
    return "summary" if is_first or message.role == "assistant" else "attachment"


NO_CACHE_EDITS = "no public provider deletes results inside a cached prefix"


@dataclass(slots=True)
class MicrocompactLayer:
    """The clearings of one conversation."""

    path: ViewBuilder
    _is_refused: bool = False
    _told: int = 0
    """How many results the provider said last that it cleared."""

    async def run(self) -> None:
        """Clear what is due, before a view is handed out."""
        path = self.path
        settings = path.deps.settings.server_edits
        if settings.cache_edits and not self._is_refused:
            self._is_refused = True
            path.deps.emit(ClearingRefused("server_edits.cache_edits", NO_CACHE_EDITS))
        if uses_server_edits(path.capabilities, settings):
            self._clear_deeper()
        elif path.capabilities.rewrites_history:
            await self._clear_here()

    def read_back(self, reply: ModelResponse) -> None:
        """Report what the provider says it cleared."""
        management = reply.extra.get("context_management")
        applied = management.get("applied_edits") if isinstance(management, JsonObject) else None
        for edit in applied if isinstance(applied, tuple) else ():
            results = _count(edit, "cleared_tool_uses")
            if results and results != self._told:
                self._told = results
                self.path.deps.emit(ResultsCleared("provider", results, _count(edit, "cleared_input_tokens")))

    async def _clear_here(self) -> None:
        path = self.path
        facts = self._facts()
        path.local.prices = facts.prices
        if facts.is_cold:
            path.local.results.reset_anchors()
        chosen = path.local.choose(facts)
        if chosen is None:
            return
        markers = await run_blocking(lambda: dict(self._markers(chosen)))
        path.local.forget(use for use in chosen.ids if use not in markers)
        if not markers:
            return
        stake = path.local.estimate_cost(chosen, markers)
        memories = self._clear_memories(markers) if chosen.by == PRESSURE_TRIGGER else ()
        path.clear(markers, chosen.reason, stake, memories)
        path.deps.emit(ResultsCleared(chosen.by, len(markers), stake.saved_tokens, len(memories)))

    def _clear_memories(self, markers: Iterable[ToolUseId]) -> tuple[int, ...]:
        """Those that were recalled before the last result that goes."""
        places = (self.path.shown.place(use) for use in markers)
        last = max(place for place in places if place is not None)
        return clear_oldest_memories(self.path, len(find_old_memories(self.path, last)))

    def _facts(self) -> ClearingFacts:
        path = self.path
        tokens, now = path.tally.count().tokens, path.deps.clock.now()
        prices = path.cache_prices(tokens)
        return ClearingFacts(
            now=now,
            last_request=path.last_request,
            last_answer=path.last_call,
            ttl=path.ttl,
            prices=prices,
            view_tokens=tokens,
            cached_tokens=path.sent_tokens,
            round=path.rounds,
            warning_tokens=path.window.thresholds.warning,
            live_tokens=path.local.live_tokens(now, path.ttl),
            marked_tokens=path.local.marked_tokens,
        )

    def _markers(self, chosen: ClearingPlan) -> Iterator[tuple[ToolUseId, str]]:
        """What stands in for each chosen result, once its original is kept. Blocks on the disk."""
        path = self.path
        spills = path.deps.spills
        for use in chosen.ids:
            result = path.shown.result(use)
            if result is None:
                continue
            where = None
            if spills is not None:
                decision = path.spilling.decisions.get(use)
                if decision is None or decision.spill is None:
                    decision = spills.store(result)
                where = spills.path_of(decision)
                if where is None:
                    continue  # it could not be stored, which was reported, so it stays
            yield use, BARE_MARKER if chosen.is_bare else render_cleared_marker(path.local.call(use), where)

    def _clear_deeper(self) -> None:
        path = self.path
        tokens = path.tally.count().tokens
        step = path.server.choose(tokens, path.window.thresholds.auto_compact, path.tally.estimate_of)
        if step is not None:
            path.clear_deeper(step)


def _count(value: object, key: str) -> int:
    count = value.get(key) if isinstance(value, JsonObject) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else 0
