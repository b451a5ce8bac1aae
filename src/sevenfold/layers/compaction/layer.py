"""Layer 4 in a session: when a compaction is due, what it is given, and how its result is applied.

`WindowPlan` has the window of the model and its thresholds. `CompactionLayer` is the step of the request
path; `compactor` runs the compaction itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import Literal

from sevenfold.core.clock import Clock
from sevenfold.core.errors import PromptTooLong
from sevenfold.core.events import Emit, WindowLearned
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import Block, Message, ToolResult, ToolUseId, without_message_thinking
from sevenfold.core.models import Model
from sevenfold.core.requests import ENGINE_ENTRY, Cut, PreparedRequest, RequestParams, ViewMessage
from sevenfold.core.tokens import (
    SAFETY_FACTOR,
    Thresholds,
    WindowFacts,
    WindowSettings,
    choose_window,
    narrow_thresholds,
    plan_thresholds,
)
from sevenfold.layers.compaction.compactor import Compactor, PlannedCompaction
from sevenfold.layers.compaction.job import Compacted, CompactionJob, CompactionNotes, Part
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.compaction.policy import CompactionTrigger, CompactSettings
from sevenfold.layers.context import is_context_message
from sevenfold.layers.context.layer import CurrentContext
from sevenfold.layers.conversation import Conversation
from sevenfold.layers.session_notes.writer import NotesSources
from sevenfold.layers.tool_results.spill import SpillLayer
from sevenfold.store.files import RecordId, new_record_id
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    DecisionRecord,
    InjectedRecord,
    KeptSegment,
    MessageRecord,
)

TOKENS_KEY, BETAS_KEY, ROUNDS_KEY, THOUGHTLESS_KEY = "tokens", "betas", "rounds", "thoughtless"
"""Keys of a cut's detail: how large the view was after it; the headers that it needs; how many rounds the
session had; and whether the messages that were kept lost their thinking."""

REFUSED_SHARE = 0.75
"""Of what a provider takes, a view that it refused is cut to so much: the rest is for the next rounds and
for what our count is off by."""


class WindowPlan:
    """The window of the model in use: by the catalogue, the settings, and what its provider has said."""

    __slots__ = ("_compact", "_frame", "_model", "_settings", "learned", "thresholds", "tokens")

    def __init__(
        self, settings: WindowSettings, compact: CompactSettings, frame: RequestParams, model: Model
    ) -> None:
        self._settings, self._compact = settings, compact
        self.learned: dict[str, int] = {}
        """What providers have said they take at most, by model, in tokens as they are counted here."""
        self.tokens: int
        self.thresholds: Thresholds
        self.use(frame, model)

    def use(self, frame: RequestParams, model: Model) -> None:
        self._frame, self._model = frame, model
        settings, compact, learned = self._settings, self._compact, self.learned.get(frame.model)
        self.tokens = choose_window(frame.model, model, frame.betas, settings)
        facts = WindowFacts(
            self.tokens, model.max_output_tokens, compact.is_automatic, compact.auto_compact_pct
        )
        self.thresholds = plan_thresholds(facts, settings)
        if learned is not None:
            self.tokens = min(self.tokens, learned)
            self.thresholds = narrow_thresholds(self.thresholds, learned)

    def learn(self, model: str, limit_tokens: int) -> None:
        """The provider of this model takes no longer prompts than this, whatever the catalogue says."""
        self.learned[model] = limit_tokens
        self.use(self._frame, self._model)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest:
    """Why a view is cut down, and how."""

    trigger: CompactionTrigger
    instructions: str = ""
    hook_text: str = ""
    part: Part | None = None
    error: PromptTooLong | None = None
    """What the provider said, where it insists."""
    extras: tuple[Extra, ...] = ()
    """What hooks want to have back in the view after it."""


class CompactionLayer:
    """The compactions of one conversation."""

    def __init__(
        self,
        conversation: Conversation,
        window: WindowPlan,
        compactor: Compactor,
        *,
        spilling: SpillLayer,
        folder: str,
        ttl: timedelta,
        clock: Clock,
        emit: Emit,
    ) -> None:
        self._conversation, self._window, self._compactor = conversation, window, compactor
        self._spilling, self._spills = spilling, spilling.spills
        self._ttl, self._clock, self._emit = ttl, clock, emit
        self._folder = folder
        """Where the agent works: what relative paths of files that it read start from."""
        self._spilled: dict[str, str] = {}
        """Texts that are already stored: several strategies ask for the same ones, and so do the notes."""
        if compactor.state.limit_tokens is not None:
            window.learn(compactor.state.limit_model, compactor.state.limit_tokens)

    @property
    def is_stopped(self) -> bool:
        """Whether compactions failed so often that none is started automatically."""
        return self._compactor.is_stopped

    async def learn(self, error: PromptTooLong, view_tokens: int) -> None:
        """Remember what a provider takes that refused the view, so that the next one is cut down in time."""
        model, window = self._conversation.frame.model, self._window
        limit = _own_limit(view_tokens, error)
        if limit is None or limit >= window.thresholds.auto_compact:
            return
        self._emit(WindowLearned(model, limit, window.tokens))
        window.learn(model, limit)
        await self._compactor.remember(model, limit)

    async def run(
        self, asked: CompactionRequest, view: PreparedRequest, notes: NotesSources, context: CurrentContext
    ) -> Compacted:
        """Cut the view down and show what came of it from now on, with this context in its head."""
        done = await self._compactor.compact(self._job(asked, view, notes, context))
        if context.message is not None and not any(map(is_context_message, done.view)):
            # After the summary, and after any block: what stands before one is not read by the model.
            done = replace(done, head=(*done.head, context.message))
        self._adopt(done, asked.extras)
        return done

    def plan(self, view: PreparedRequest, notes: NotesSources, context: CurrentContext) -> PlannedCompaction:
        """What an automatic compaction of this view would try first."""
        return self._compactor.plan(self._job(CompactionRequest(trigger="auto"), view, notes, context))

    def _job(
        self, asked: CompactionRequest, view: PreparedRequest, notes: NotesSources, context: CurrentContext
    ) -> CompactionJob:
        conversation, error = self._conversation, asked.error
        job = CompactionJob(
            request=view.request,
            tokens_before=view.tokens,
            target=self._target(view.tokens, error),
            counts=self._counts(),
            weigh=self._weigh,
            capabilities=conversation.capabilities,
            trigger=asked.trigger,
            overshoot=error.overshoot if error else None,
            window_tokens=self._window.tokens,
            instructions=asked.instructions,
            hook_text=asked.hook_text,
            part=asked.part,
            notes=CompactionNotes(notes.text, notes.last, notes.template),
            structural=notes.structural,
            sent_messages=conversation.last.messages,
            is_warm=self._is_warm,
            attachments=frozenset(at for at, item in enumerate(conversation.shown) if _is_aside(item)),
            transcript=conversation.journal.path,
            spill=self.spill,
            folder=self._folder,
            extras=asked.extras,
        )
        if context.message is None:
            return job
        return _with_context(job, context, math.ceil(sum(map(self._weigh, context.message.blocks))))

    def _target(self, tokens: int, error: PromptTooLong | None) -> int:
        """What the new view must stay below. A provider that refused the old one knows its window better than
        our catalogue does, and counts in tokens of its own."""
        usual = self._window.thresholds.auto_compact
        known = self._window.learned.get(self._conversation.frame.model)
        if error is not None:
            known = _own_limit(tokens, error) or tokens
        return usual if known is None else min(usual, int(known * REFUSED_SHARE))

    def _counts(self) -> list[int]:
        """Tokens of each message, by the same measure as the whole: before a first bill, with its margin."""
        tally, margin = self._conversation.tally, self._margin
        return [math.ceil(tally.estimate_of(item.weight) * margin) for item in self._conversation.shown]

    def _weigh(self, block: Block) -> float:
        """Tokens of a block of the new view, by that measure too: the target is in the same tokens."""
        return self._conversation.tally.estimate_block(block) * float(self._margin)

    @property
    def _margin(self) -> Fraction:
        return SAFETY_FACTOR if self._conversation.tally.count().is_wholly_estimated else Fraction(1)

    @property
    def _is_warm(self) -> bool:
        """Whether the provider's cache still holds what the last request marked."""
        if self._conversation.cached_at is None:
            return False  # another model, system prompt or tools: nothing of the view was sent to it
        last, now = self._conversation.last.ended, self._clock.now()
        # A clock that was set back says nothing: taken for cold, a summary is paid once too dearly at worst.
        return last is not None and timedelta() <= now - last <= self._ttl

    def spill(self, name: str, text: str) -> str | None:
        """Store a text of the session, under a name of this text alone; its path, or None."""
        spills = self._spills
        if spills is None or name in self._spilled:
            return self._spilled.get(name)
        path = spills.path_of(spills.store(ToolResult(ToolUseId(name), text)))
        if path is not None:
            self._spilled[name] = path
        return path

    def _adopt(self, done: Compacted, extras: tuple[Extra, ...]) -> None:
        conversation, journal = self._conversation, self._conversation.journal
        before = conversation.shown.items
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
                last_message=conversation.entries[last].id if last != ENGINE_ENTRY else None,
                tools=tuple(extra.title for extra in extras if extra.kind == "tools"),
                kept=segment,
            )
        )
        kept_entries = range(kept[0].entry, kept[-1].entry + 1) if segment else _entries_of(kept)
        conversation.boundary_written([*_entries_of(stays), *kept_entries])
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
        conversation.betas = done.betas
        conversation.rewrite(items, keeps_beginning=done.before > 0)
        detail = {
            TOKENS_KEY: conversation.tokens,
            THOUGHTLESS_KEY: is_thoughtless,
            BETAS_KEY: list(done.betas),
            **conversation.describe_places(),
            ROUNDS_KEY: conversation.rounds,
        }
        conversation.announce(Cut(4, f"compaction by {done.rung}", done.before, freeze_object(detail)))

    def _segment(self, kept: list[ViewMessage], head: list[RecordId]) -> KeptSegment:
        entries, journal = self._conversation.entries, self._conversation.journal
        first, final = entries[kept[0].entry].id, entries[kept[-1].entry].id
        return KeptSegment(first, head[-1], final, journal.offset(first))

    def _write_again(self, messages: Sequence[Message], items: Sequence[ViewMessage]) -> None:
        """Kept messages that are no longer what the transcript has are written as they are now, with what was
        decided of their results: a resumed session reads nothing of them before the boundary."""
        entries, journal = self._conversation.entries, self._conversation.journal
        for message, item in zip(messages, items, strict=True):
            if item.entry == ENGINE_ENTRY:
                journal.add(InjectedRecord(message, "attachment"))
            else:
                # Under its own name: whoever reads the whole transcript counts it once.
                journal.add(MessageRecord(message), entries[item.entry].id)
        for decision in self._spilling.list_decisions(messages):
            journal.add(DecisionRecord(decision))


def _entries_of(items: Sequence[ViewMessage]) -> list[int]:
    return [item.entry for item in items if item.entry != ENGINE_ENTRY]


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
