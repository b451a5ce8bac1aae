"""The conversation of a session: its history, the view of it that is sent, and the tokens of that view.

`Conversation` is the only owner of the three. A layer reads them here and changes them through the methods
here; what else a layer has to remember, it keeps itself. One that has to follow every message is a
`ConversationListener`. What was sent once is sent again byte for byte: whoever changes it announces a `Cut`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal

from sevenfold.core.clock import Clock
from sevenfold.core.events import BillLost, Emit, HistoryChanged
from sevenfold.core.json import Json, JsonObject, freeze_object
from sevenfold.core.messages import Message, ToolUse, ToolUseId, is_same_message, without_message_thinking
from sevenfold.core.normalize import NO_SOURCE, NormalizeRules, ViewNormalizer
from sevenfold.core.prices import Catalog
from sevenfold.core.requests import (
    ENGINE_ENTRY,
    WHOLE_PROMPT,
    AnsweredRequest,
    CachedRequests,
    Capabilities,
    Cut,
    ModelResponse,
    RequestParams,
    ViewMessage,
    ViewMessages,
    adapt_messages,
    compute_thinking_binding,
    find_first_change,
    is_same_opening,
    with_result_texts,
)
from sevenfold.core.tokens import SourcedMessage, Tally, TextOrigin
from sevenfold.core.tokens.estimation import CALIBRATED_ESTIMATOR, TokenEstimator
from sevenfold.core.usage import Usage, is_simulated_id
from sevenfold.layers.conversation_state import (
    COVERS_KEY,
    DROPPED_KEY,
    FIRST_KEY,
    FORGOTTEN_KEY,
    PLACES_KEY,
    STATE_KEY,
    ConversationListener,
    EntryPlaces,
    HistoryMessage,
    Journal,
    RecordedReply,
    describe_state,
    restore_state,
)
from sevenfold.providers.provider import UNREADABLE_USAGE
from sevenfold.store.files import RecordId
from sevenfold.store.transcript.records import CutRecord, InjectedRecord, MessageRecord, UsageRecord

PARAMS_CHANGED = "the caller changed the model, the system prompt or the tools"


class Conversation:
    """The history, the view and the token count of one session.

    - To read: `entries`, `shown`, `tally`, `last`, `rounds`, and the parameters of the next request.
    - To add: `add` for the history, `inject` and `show` for messages of the engine, `finish` before sending.
    - For replies: `record_reply`, `take_reply`.
    - To change what was shown: `rewrite`, `replace_message`, `replace_results`, then `announce`.
    """

    def __init__(
        self,
        frame: RequestParams,
        capabilities: Capabilities,
        *,
        catalog: Catalog,
        clock: Clock,
        emit: Emit,
        journal: Journal,
        estimator: TokenEstimator = CALIBRATED_ESTIMATOR,
    ) -> None:
        self._catalog, self._clock, self._emit, self.journal = catalog, clock, emit, journal
        self.frame, self.capabilities = frame, capabilities
        self.model = catalog.find(frame.model, emit)
        self.binding = compute_thinking_binding(frame)
        self.entries: list[HistoryMessage] = []
        self.places = EntryPlaces()
        self.boundaries = 0
        """Boundaries that were written to the transcript: compactions."""
        self.summed_up = 0
        """Messages that the last compaction knew: its summary may speak of each. 0 without one."""
        self._readable: list[int] = []
        """The entries that a resumed session reads: those that the last boundary kept, and those since."""
        self.shown = ViewMessages()
        self.tools: dict[ToolUseId, ToolUse] = {}
        self.cleared: dict[ToolUseId, str] = {}
        """The texts that stand in the view in place of tool results."""
        self.tally = Tally(self.model, estimator=estimator)
        self.tally.set_frame(_system_text(frame), frame.tools)
        self.last = AnsweredRequest()
        self._cached = CachedRequests()
        self.rounds = 0
        self.said_tokens = 0
        """Tokens of all messages of the history as they were first shown: no cut makes it smaller."""
        self.betas: tuple[str, ...] = ()
        """Beta headers that blocks in the view need, such as a compaction block."""
        self.cuts: list[Cut] = []
        """Cuts announced since the last request."""
        self.revision = 0
        """Grows with every change: two requests of one revision are the same."""
        self.listeners: list[ConversationListener] = []
        self._new_count: JsonObject | None = None
        """The token count when the view was rebuilt, until that is announced."""
        self._normalizer = ViewNormalizer(self._rules(), emit)
        self._reported: set[BillLost] = set()

    @property
    def tokens(self) -> int:
        """The size of the view as it would be sent now."""
        return self.tally.count().tokens

    @property
    def cached_at(self) -> datetime | None:
        """When the last request with the same model, system prompt and tools started: the next one can read
        its cache. None without one."""
        return self._cached.started.get(self.binding)

    @property
    def hidden(self) -> frozenset[int]:
        """The entries that are not in the view themselves: a summary stands for them."""
        return frozenset(range(len(self.entries))).difference(item.entry for item in self.shown)

    # The history.

    def note_tools(self, message: Message) -> None:
        """Remember the tool calls of a message that is about to be added."""
        for block in message.blocks:
            if isinstance(block, ToolUse):
                self.tools[block.id] = block

    def add(
        self,
        message: Message,
        origin: TextOrigin = "human",
        *,
        id: RecordId | None = None,  # noqa: A002 - the record's own word
        usage: Usage | None = None,
    ) -> None:
        """Add a message to the history and show it. A message with an id is in the transcript already."""
        self.note_tools(message)
        entry = HistoryMessage(message, id or self.journal.add(MessageRecord(message)), origin)
        self._append_entry(entry)
        for listener in self.listeners:
            listener.message_added(entry)
        self.show(message, origin, len(self.entries) - 1, usage)

    def drop_from(self, place: int, reason: str) -> None:
        """The caller changed or dropped messages of the history: forget all from this place on.

        What comes after them is handed in again. Where thinking is signed over everything before it, what was
        thought after the change can no longer be sent.
        """
        kept = min(self.places.entry_at(place), len(self.entries))
        gone = self.entries[kept:]
        if not gone and self.places.place_of(kept) == place:
            return
        self.places.go_on_at(kept, place)
        if not gone:
            # The change is inside a summary, which stays; the next message has another place.
            self.journal.add(CutRecord(0, reason, None, freeze_object(self.describe_places())))
            return
        del self.entries[kept:]
        self._readable = [entry for entry in self._readable if entry < kept]
        first = next((at for at, item in enumerate(self.shown) if item.entry >= kept), len(self.shown))
        # Messages of the engine after a dropped message are dropped too.
        stays = [item for at, item in enumerate(self.shown) if item.entry < kept and at < first]
        self._emit(HistoryChanged(kept, len(gone), reason))
        self.rewrite(stays, keeps_beginning=first > 0)
        detail = {DROPPED_KEY: [entry.id for entry in gone], **self.describe_places()}
        self.announce(Cut(0, reason, first, freeze_object(detail)))

    def boundary_written(self, kept: Sequence[int]) -> None:
        """A resumed session reads these entries, and those that are added from now on."""
        self.boundaries += 1
        self.summed_up = self.places.place_of(len(self.entries))
        self._readable = list(kept)

    def describe_places(self) -> dict[str, Json]:
        """For a cut's detail: where the entries stand that a resumed session reads, and the next one."""
        place_of = self.places.place_of
        return {
            COVERS_KEY: place_of(len(self.entries)),
            PLACES_KEY: tuple(place_of(entry) for entry in self._readable),
        }

    def _append_entry(self, entry: HistoryMessage) -> None:
        self._readable.append(len(self.entries))
        self.entries.append(entry)

    # Replies.

    def record_reply(
        self, reply: ModelResponse, started: datetime, resent_at: datetime | None = None
    ) -> RecordedReply:
        """Record what a model call cost, and its answer; `take_reply` shows the answer."""
        model = reply.model or self.frame.model
        self.journal.add(
            UsageRecord(
                model=model,
                who="main",
                wire=reply.usage_wire,
                dialect=reply.dialect,
                frame=self.binding,
                is_simulated=is_simulated_id(reply.id),
                resent_at=resent_at,
            )
        )
        entry = HistoryMessage(reply.message, self.journal.add(MessageRecord(reply.message)))
        usage = reply.usage if reply.usage.requests else None
        if usage is None:
            # A compatible server may not report usage: the estimate stays.
            reason = reply.extra.get(UNREADABLE_USAGE)
            self.report_missing_usage(model, reason if isinstance(reason, str) else "none came")
        self.answered(usage, started, self._clock.now())
        for listener in self.listeners:
            listener.message_added(entry)
        return RecordedReply(entry, usage, self.boundaries, self.binding)

    def take_reply(self, answer: RecordedReply, written: Message | None) -> None:
        """Add an answer to the view as the caller has it. `written`: None if the caller does not have it."""
        own = answer.entry
        is_foreign = answer.binding != self.binding and not self.capabilities.rewrites_history
        if written is not None and is_same_message(written, own.message):
            shown = without_message_thinking(own.message) if is_foreign else own.message
            if answer.boundaries != self.boundaries:
                # A resumed session reads nothing before a boundary: it is written again, under its own name
                # and as it is shown.
                self.journal.add(MessageRecord(shown), own.id)
            self.note_tools(own.message)
            self._append_entry(own)
            self.show(shown, own.origin, len(self.entries) - 1, answer.usage)
            return
        dropped = freeze_object({DROPPED_KEY: [own.id]})
        self.journal.add(CutRecord(0, "the caller did not keep the reply", None, dropped))
        if written is not None:
            written = without_message_thinking(written) if is_foreign else written
            written_id = self.journal.add(MessageRecord(written))
            self.add(written, own.origin, id=written_id, usage=answer.usage)
        elif answer.usage is not None:
            # No request contained it, so nothing breaks; its bill still gives the size of the prompt.
            self.tally.bill(answer.usage, Message("assistant", ()), is_output_known=False)

    def answered(self, usage: Usage | None, started: datetime, ended: datetime, binding: str = "") -> None:
        """Note what a request left in the cache, and when. `binding` is that of its parameters, if they
        differ from those of now."""
        run, binding = usage.last_run if usage else None, binding or self.binding
        before = self._cached.started.get(binding)
        idle = started - before if before else None
        tokens = run.prompt if run else self.tokens
        self.last = AnsweredRequest(
            tokens=tokens, messages=len(self.shown), started=started, ended=ended, binding=binding
        )
        self._cached.add(binding, started)
        for listener in self.listeners:
            listener.request_answered(idle)
        self.rounds += 1

    def report_missing_usage(self, model: str, reason: str) -> None:
        """Report once that an answer came without a bill."""
        event = BillLost(model, reason)
        if event not in self._reported:
            self._reported.add(event)
            self._emit(event)

    # The view.

    def inject(self, message: Message, origin: Literal["attachment", "memory"]) -> None:
        """Append a message of the engine, which the caller's history does not have."""
        self.journal.add(InjectedRecord(message, origin))
        self.show(message, origin)

    def show(
        self, message: Message, origin: TextOrigin, entry: int = ENGINE_ENTRY, usage: Usage | None = None
    ) -> None:
        """Append a message to the view, in a form that the provider takes."""
        self.revision += 1
        visible = with_result_texts(message, self.cleared) if self.cleared else message
        for one in self._normalizer.add(visible, entry):
            is_itself = one.source == self._normalizer.last
            own: TextOrigin = origin if is_itself else self._origin(one.entry)
            if usage is not None and is_itself:
                weight, usage = self.tally.bill(usage, one.message), None
            else:
                weight = self.tally.add(one.message, own)
            self._append(ViewMessage(one.message, weight, one.entry, own))
        if usage is not None:
            # An empty reply is not shown, but its bill counts.
            self.tally.bill(usage, message)

    def finish(self, *, is_stored: bool = False) -> None:
        """Append what the view still needs before it can be sent; it becomes part of the history."""
        for one in self._normalizer.finish():
            self.revision += 1
            origin = self._origin(one.entry)
            if one.entry == ENGINE_ENTRY and not is_stored:
                self.journal.add(InjectedRecord(one.message, "attachment"))
            self._append(ViewMessage(one.message, self.tally.add(one.message, origin), one.entry, origin))

    def rewrite(self, items: Sequence[ViewMessage], *, keeps_beginning: bool = True) -> None:
        """Show these messages from now on; the caller announces the change."""
        self.revision += 1
        self._normalizer = ViewNormalizer(self._rules(), self._emit)
        normalized = self._normalizer.start_over(
            [item.message for item in items], [item.entry for item in items]
        )
        placed = [
            ViewMessage(one.message, 0.0, ENGINE_ENTRY, "attachment")
            if one.source == NO_SOURCE
            else replace(items[one.source], message=one.message)
            for one in normalized
        ]
        weights = self.tally.rewrite(SourcedMessage(item.message, item.origin) for item in placed)
        self.shown.start_over(
            replace(item, weight=weight) for item, weight in zip(placed, weights, strict=True)
        )
        self._new_count = self.tally.describe_state()
        for listener in self.listeners:
            listener.view_rewritten(keeps_beginning=keeps_beginning)

    def replace_message(self, place: int, message: Message) -> None:
        """Replace a message of the view; the caller announces the change."""
        before = self.shown.items[place]
        self.shown.swap(place, message, self.tally.swap(before.message, message, before.origin))
        self.revision += 1

    def replace_results(self, texts: dict[ToolUseId, str]) -> list[int]:
        """Show these texts in place of tool results from now on; returns the places that changed."""
        self.cleared.update(texts)
        places = sorted({place for use in texts if (place := self.shown.place(use)) is not None})
        for place in places:
            self.replace_message(place, with_result_texts(self.shown.items[place].message, texts))
        return places

    def announce(self, cut: Cut) -> None:
        """Record a change of the view that was made."""
        self.revision += 1
        detail = dict(cut.detail)
        for listener in self.listeners:
            listener.view_cut(cut.first)
            detail.update(listener.cut_detail())
        self._shorten_last(cut.first)
        self.cuts.append(replace(cut, detail=freeze_object(detail)))
        detail[FIRST_KEY] = cut.first
        if self._new_count is not None:
            detail[STATE_KEY], self._new_count = describe_state(self.last, self._new_count), None
        first = self.shown.items[cut.first].entry if cut.first < len(self.shown) else ENGINE_ENTRY
        named = self.entries[first].id if first != ENGINE_ENTRY else None
        self.journal.add(CutRecord(cut.layer, cut.reason, named, freeze_object(detail)))

    def restore_cut(self, detail: JsonObject) -> None:
        """Restore what a cut recorded, in a resumed session that has its messages already."""
        first = detail.get(FIRST_KEY)
        if isinstance(first, int):
            self._shorten_last(first)
        last = restore_state(detail.get(STATE_KEY), self.tally)
        if last is None:
            return
        self.last = last
        self._cached.add(last.binding or self.binding, last.started)
        for listener in self.listeners:
            listener.view_rewritten(keeps_beginning=first != 0)

    def _shorten_last(self, first: int) -> None:
        if first < self.last.messages:
            self.last = replace(self.last, messages=first)

    # The parameters of a request.

    def use(self, frame: RequestParams, capabilities: Capabilities) -> None:
        """Use other request parameters: the caller's choice, and the caller's break of the prefix."""
        self.revision += 1
        reason = PARAMS_CHANGED
        if frame.model != self.frame.model:
            # Each model has a cache of its own: the view is the same, but none of it can be read.
            reason = f"the model changed from {self.frame.model} to {frame.model}"
            self.cuts.append(Cut(0, reason, WHOLE_PROMPT))
            self.last = replace(self.last, messages=0)
        is_other_frame = not is_same_opening(frame, self.frame)
        model = self._catalog.find(frame.model, self._emit)
        if model != self.model:
            self.model = model
            self.tally.switch_model(model)
        self.frame, self.capabilities = frame, capabilities
        if is_other_frame:
            self.tally.set_frame(_system_text(frame), frame.tools)
        before, self.binding = self.binding, compute_thinking_binding(frame)
        self.adapt(reason, drops_thinking=before != self.binding and not capabilities.rewrites_history)

    def adapt(self, reason: str = PARAMS_CHANGED, *, drops_thinking: bool = False) -> None:
        """Show everything as the current model accepts it."""
        before, items = self.shown.messages(), self.shown.items
        fitting = adapt_messages(items, self.capabilities, drops_thinking=drops_thinking)
        is_same = all(one is other for one, other in zip(fitting, items, strict=True))
        if is_same and self._normalizer.rules == self._rules():
            return
        if not self.capabilities.compacts_on_demand:
            self.betas = ()
        self.rewrite(fitting)
        first = find_first_change(before, self.shown.messages())
        if first is not None:
            detail = {FORGOTTEN_KEY: True} if drops_thinking else {}
            self.announce(Cut(0, reason, first, freeze_object(detail)))

    def forget_thinking(self, reason: str) -> None:
        """Remove all thinking so far from the view."""
        fitting = adapt_messages(self.shown.items, self.capabilities, drops_thinking=True)
        first = find_first_change(self.shown.messages(), [item.message for item in fitting])
        if first is not None:
            self.rewrite(fitting, keeps_beginning=first > 0)
            self.announce(Cut(0, reason, first, freeze_object({FORGOTTEN_KEY: True})))

    def request_params(self) -> RequestParams:
        """The caller's parameters, with the headers that the view needs."""
        missing = tuple(beta for beta in self.betas if beta not in self.frame.betas)
        return replace(self.frame, betas=(*self.frame.betas, *missing)) if missing else self.frame

    def _append(self, item: ViewMessage) -> None:
        self.shown.append(item)
        if item.entry != ENGINE_ENTRY:
            self.said_tokens += self.tally.estimate_of(item.weight)
        for listener in self.listeners:
            listener.message_shown(item)

    def _origin(self, entry: int) -> TextOrigin:
        return "attachment" if entry == ENGINE_ENTRY else self.entries[entry].origin

    def _rules(self) -> NormalizeRules:
        return NormalizeRules(self.capabilities.takes_system_role, self.model.takes_prefill)


# Thinking is signed over the model, the system prompt and the tools: where the provider checks the signature,
# any change of them invalidates all thinking. Only models that make compaction blocks read them.


def _system_text(frame: RequestParams) -> str:
    if isinstance(frame.system, str):
        return frame.system
    texts = (block.get("text") for block in frame.system)
    return "\n".join(text for text in texts if isinstance(text, str))
