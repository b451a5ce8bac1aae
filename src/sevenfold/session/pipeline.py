"""The request path: full history in, view out. The work of a round grows with what is new in it.

`Session.prepare` adds new messages and stores their large results (layer 1), clears old results (layer 2),
compacts if due (layer 4), appends changed context and recalled memories, and hands out the view.
`ViewBuilder` has the state that these steps share: messages, token counts, cuts and breakpoints. What was
sent once is sent again byte for byte; a layer that has to change it announces a cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from sevenfold.core.catalog import Catalog
from sevenfold.core.clock import Clock
from sevenfold.core.events import BillLost, Emit, HistoryChanged
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import Message, ToolUse, ToolUseId
from sevenfold.core.normalize import NO_SOURCE, NormalizeRules
from sevenfold.core.requests import Capabilities, ModelRequest, ModelResponse, RequestParams
from sevenfold.core.tokens import SourcedMessage, Tally, TextOrigin
from sevenfold.core.tokens.estimation import CALIBRATED_ESTIMATOR, TokenEstimator
from sevenfold.core.tool_kinds import is_clearable
from sevenfold.core.usage import Usage
from sevenfold.core.view import (
    ENGINE_ENTRY,
    Cut,
    PreparedRequest,
    ViewMessage,
    ViewMessages,
    with_result_texts,
)
from sevenfold.layers.microcompact.local_clearing import (
    DEFAULT_CACHE_PRICES,
    ClearingCost,
    LocalClearing,
    ResultPosition,
    is_cache_cold,
)
from sevenfold.layers.microcompact.policy import CachePrices, compute_cache_prices
from sevenfold.layers.microcompact.server_clearing import ClearingStep, ServerClearing
from sevenfold.layers.tool_results.spill import SpillLayer, SpillStore
from sevenfold.providers.provider import UNREADABLE_USAGE
from sevenfold.session.cache.breakpoints import (
    BreakpointPlanner,
    find_caller_breakpoints,
    find_clearing_breakpoint,
)
from sevenfold.session.cache.monitor import WHOLE_PROMPT
from sevenfold.session.history import CallerBreakpoint, HistoryMessage, RecordedReply
from sevenfold.session.journal import Journal
from sevenfold.session.model_limits import (
    PARAMS_CHANGED,
    ViewNormalizer,
    WindowPlan,
    adapt_messages,
    compute_thinking_binding,
    find_first_change,
)
from sevenfold.session.settings import PipelineSettings
from sevenfold.store.transcript.records import (
    CutRecord,
    DecisionRecord,
    InjectedRecord,
    MessageRecord,
    RecordId,
    UsageRecord,
)

CLEARED_KEY, SAVED_KEY, REWRITTEN_KEY, MEMORIES_KEY = "cleared", "saved", "rewritten", "memories"
"""Of a cut's detail: results that gave way to markers, what that saves, what it had to write again, and how
many recalled memories went with them."""
DEPTH_KEY = "depth"
"""Of a cut's detail: how many of the oldest results the provider clears, and which its cache left out."""

FORGOTTEN_KEY = "forgotten"
"""Key of a cut's detail: nothing is shown any more of what was thought before it."""

CutDetail: TypeAlias = Callable[[], JsonObject]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDeps:
    """What the request path works with."""

    settings: PipelineSettings
    catalog: Catalog
    clock: Clock
    emit: Emit
    journal: Journal
    spills: SpillStore | None = None
    estimator: TokenEstimator = CALIBRATED_ESTIMATOR


class ViewBuilder:
    """Builds the view of one conversation from its history."""

    def __init__(self, frame: RequestParams, capabilities: Capabilities, around: SessionDeps) -> None:
        self.deps = around
        self.frame = self._framed = frame
        self.capabilities, self.binding = capabilities, compute_thinking_binding(frame)
        self.model = around.catalog.find(frame.model, around.emit)
        self.window = WindowPlan(around.settings, frame, self.model)
        self.entries: list[HistoryMessage] = []
        self.earlier = 0
        """Messages of the history before the first entry: those that a resumed session did not read."""
        self.on_entry: Callable[[HistoryMessage], None] = _ignore
        """Called with every new message of the history."""
        self.shown = ViewMessages()
        self.tools: dict[ToolUseId, ToolUse] = {}
        self.cleared: dict[ToolUseId, str] = {}
        self.tally = Tally(self.model, estimator=around.estimator)
        self.tally.set_frame(_system_text(frame), frame.tools)
        self.spilling = SpillLayer(
            settings=around.settings.tool_results, spills=around.spills, emit=around.emit, decisions={}
        )
        self._shaping = ViewNormalizer(self._rules(), around.emit)
        self.server = ServerClearing(settings=around.settings.server_edits, is_clearable=is_clearable)
        self.local = LocalClearing(settings=around.settings.microcompact)
        self.sent_tokens = self.sent_messages = 0
        """Tokens of the last answered request, and how many messages at the start of the view were in it."""
        self.last_request: datetime | None = None
        """When the last request that was answered started: an entry of the cache lives from then."""
        self._started: datetime | None = None
        self.rounds = 0
        self.last_call: datetime | None = None
        """When the last answer came: after a time-to-live, what it left in the cache is gone."""
        self.betas: tuple[str, ...] = ()
        """Headers that what stands in the view needs, such as a compaction block."""
        self.marks: tuple[CallerBreakpoint, ...] = ()
        """The breakpoints of the caller, by message of the history."""
        self._marking = BreakpointPlanner(settings=around.settings.cache)
        self._cuts: list[Cut] = []
        self._unbilled: set[BillLost] = set()
        self._view: PreparedRequest | None = None
        self._handed: PreparedRequest | None = None
        """The one that was handed out last; a view that was only looked at is none."""
        self._mark_frame()
        self.local.prices = self.cache_prices(0)

    async def add(self, messages: Sequence[Message], origin: TextOrigin = "human") -> None:
        """Add new messages of the history: store them, decide on their results, show them."""
        if not messages:
            return
        self._view = None
        for message in messages:
            self._know_tools(message)
        decisions = await self.spilling.decide(messages, self.tools)
        for message in messages:
            self.remember(self.spilling.rendered(message), origin)
        for decision in decisions:
            self.deps.journal.add(DecisionRecord(decision))

    def set_marks(self, marks: tuple[CallerBreakpoint, ...]) -> None:
        """Set the caller's breakpoints, which the caller may move."""
        if marks != self.marks:
            self.marks, self._view = marks, None

    def drop_from(self, kept: int, reason: str) -> None:
        """The caller changed or dropped messages that stood there before: all from `kept` on are forgotten.

        What comes after them is handed in again. Where thinking is signed over everything before it, what was
        thought after the change can no longer be sent.
        """
        gone = self.entries[kept:]
        if not gone:
            return
        del self.entries[kept:]
        first = next((at for at, item in enumerate(self.shown) if item.entry >= kept), len(self.shown))
        stays = [item for item in self.shown if item.entry < kept]
        self.deps.emit(HistoryChanged(kept, len(gone), reason))
        dropped = {"dropped": [entry.id for entry in gone]}
        self.cut(Cut(0, reason, first, freeze_object(dropped)), stays)

    def cut(self, cut: Cut, items: Sequence[ViewMessage], detail: CutDetail | None = None) -> None:
        """Announce a change, and show these messages from now on. `detail` is asked once they are shown."""
        self._start_over(items, keeps_beginning=cut.first > 0)
        self.register(replace(cut, detail=detail()) if detail else cut)

    def register(self, cut: Cut) -> None:
        """Write down a change of the view that was made."""
        self._view = None
        self._cuts.append(cut)
        self._marking.cut(cut.first)
        self.sent_messages = min(self.sent_messages, cut.first)
        first = self.shown.items[cut.first].entry if cut.first < len(self.shown) else ENGINE_ENTRY
        named = self.entries[first].id if first != ENGINE_ENTRY else None
        self.deps.journal.add(CutRecord(cut.layer, cut.reason, named, cut.detail))

    @property
    def ttl(self) -> timedelta:
        """How long the provider's cache holds what a request marked."""
        return self.deps.settings.cache.lifetime

    def clear(
        self, markers: dict[ToolUseId, str], reason: str, stake: ClearingCost, memories: Sequence[int] = ()
    ) -> None:
        """Replace old results with their markers from now on, and register the cut with cleared memories."""
        places = sorted([*memories, *self.replace_results(markers, stake)])
        if places:
            detail = {
                CLEARED_KEY: markers,
                SAVED_KEY: stake.saved_tokens,
                REWRITTEN_KEY: stake.rewrite_tokens,
            }
            own = {MEMORIES_KEY: len(memories)} if memories else {}
            self.register(Cut(2, reason, places[0], freeze_object({**detail, **own})))

    def replace_results(self, markers: dict[ToolUseId, str], stake: ClearingCost) -> list[int]:
        """Replace without registering a cut, as on resume; returns the places that changed."""
        self.cleared.update(markers)
        places = sorted({place for use in markers if (place := self.shown.place(use)) is not None})
        for place in places:
            self.replace_message(place, with_result_texts(self.shown.items[place].message, markers))
        self.local.cut(stake, markers)
        return places

    def replace_message(self, place: int, message: Message) -> None:
        """Replace a message of the view; the caller announces the change."""
        before = self.shown.items[place]
        self.shown.swap(place, message, self.tally.swap(before.message, message, before.origin))
        self._view = None

    def clear_deeper(self, step: ClearingStep) -> None:
        """The provider clears more of the oldest results from now on; ours stay as they are."""
        self.tally.discount(step.weight)
        place = self.shown.place(step.first)
        reason = f"the provider clears {step.results} old results, about {step.tokens:,} tokens"
        self.register(Cut(2, reason, place or 0, freeze_object({DEPTH_KEY: self.server.depth})))

    def bill(self, reply: ModelResponse) -> RecordedReply:
        """Record what a model call cost, and its answer; `take_answer` shows the answer."""
        self.deps.journal.add(
            UsageRecord(
                model=reply.model or self.frame.model,
                who="main",
                wire=reply.usage_wire,
                dialect=reply.dialect,
                frame=self.binding,
            )
        )
        self._marking.answered(self._started or self.deps.clock.now())
        usage = reply.usage if reply.usage.requests else None
        if usage is None:
            # A compatible server may say nothing of usage: the estimate stands.
            told = reply.extra.get(UNREADABLE_USAGE)
            self.report_missing_usage(
                reply.model or self.frame.model, told if isinstance(told, str) else "none came"
            )
        now = self.deps.clock.now()
        self.answered(usage, self._started or now, now)
        entry = HistoryMessage(reply.message, self.deps.journal.add(MessageRecord(reply.message)))
        self.on_entry(entry)
        return RecordedReply(entry, usage)

    def report_missing_usage(self, model: str, reason: str) -> None:
        """An answer has no bill to count from."""
        event = BillLost(model, reason)
        if event not in self._unbilled:
            self._unbilled.add(event)
            self.deps.emit(event)

    def take_answer(self, answer: RecordedReply, written: Message | None) -> None:
        """An answer joins the view as the caller's history has it; None: it does not have it."""
        own = answer.entry
        if written == own.message:
            self._know_tools(own.message)
            self.entries.append(own)
            self.show(own.message, own.origin, len(self.entries) - 1, answer.usage)
            return
        dropped = freeze_object({"dropped": [own.id]})
        self.deps.journal.add(CutRecord(0, "the caller did not keep the reply", None, dropped))
        if written is not None:
            self.remember(written, own.origin, usage=answer.usage)
        elif answer.usage is not None:
            # No request contained it, so nothing breaks; the size of the prompt is known all the same.
            self.tally.bill(answer.usage, Message("assistant", ()), is_output_known=False)

    def answered(self, usage: Usage | None, started: datetime, ended: datetime) -> None:
        """A request was answered: what it left in the cache, and when."""
        run = usage.last_run if usage else None
        idle = started - self.last_request if self.last_request else None
        self.sent_tokens = run.prompt if run else self.tally.count().tokens
        self.local.sent(self.sent_tokens, started, is_cold=is_cache_cold(idle, self.ttl))
        self.last_request, self.last_call = started, ended
        self.sent_messages = len(self.shown)
        self.rounds += 1

    def use(self, frame: RequestParams, capabilities: Capabilities) -> None:
        """Use other request parameters: the caller's choice, and the caller's break of the prefix."""
        if frame is self.frame or frame == self.frame:
            return
        self._view = None
        if frame.model != self.frame.model:
            # Another model has a cache of its own: nothing of the view changed, and nothing of it is read.
            self._cuts.append(Cut(0, PARAMS_CHANGED, WHOLE_PROMPT))
            self.sent_messages = 0
        is_framed_anew = (frame.system, frame.tools) != (self.frame.system, self.frame.tools)
        model = self.deps.catalog.find(frame.model, self.deps.emit)
        if model != self.model:
            self.model = model
            self.tally.switch_model(model)
        self.frame, self.capabilities = frame, capabilities
        if is_framed_anew:
            self.tally.set_frame(_system_text(frame), frame.tools)
        self.window.use(frame, model)
        before, self.binding = self.binding, compute_thinking_binding(frame)
        self.adapt(drops_thinking=before != self.binding and not capabilities.rewrites_history)
        self._mark_frame()

    def adapt(self, *, drops_thinking: bool = False) -> None:
        """Show everything as the current model accepts it."""
        before, items = self.shown.messages(), self.shown.items
        fitting = adapt_messages(items, self.capabilities, drops_thinking=drops_thinking)
        is_same = all(one is other for one, other in zip(fitting, items, strict=True))
        if is_same and self._shaping.rules == self._rules():
            return
        if not self.capabilities.compacts_on_demand:
            self.betas = ()
        self._start_over(fitting)
        first = find_first_change(before, self.shown.messages())
        if first is not None:
            self.register(Cut(0, PARAMS_CHANGED, first))

    def forget_thinking(self, reason: str) -> None:
        """Remove all thinking so far from the view."""
        fitting = adapt_messages(self.shown.items, self.capabilities, drops_thinking=True)
        first = find_first_change(self.shown.messages(), [item.message for item in fitting])
        if first is not None:
            self.cut(Cut(0, reason, first, freeze_object({FORGOTTEN_KEY: True})), fitting)

    @property
    def is_ready(self) -> bool:
        """Whether nothing changed since the last view was handed out: the same one is sent again."""
        return self._view is not None and self._view is self._handed

    def view(self) -> PreparedRequest:
        """What to send now."""
        if self._view is None:
            count = self.tally.count().tokens
            messages = self.shown.messages()
            now = self.deps.clock.now()
            theirs = find_caller_breakpoints(self.marks, self.shown, self.capabilities.breakpoints)
            oldest = self.server.oldest or (self.local.oldest if self.cleared else None)
            standing = find_clearing_breakpoint(self.shown, oldest)
            marks = self._marking.plan(messages, theirs, now, standing)
            request = ModelRequest(self._sent_frame(), messages, marks)
            reached = self.window.thresholds
            level, left = reached.level(count), reached.percent_left(count)
            self._view = PreparedRequest(
                request=request, tokens=count, level=level, percent_left=left, cuts=tuple(self._cuts)
            )
        return self._view

    def cache_prices(self, tokens: int) -> CachePrices:
        """What a prompt of this size pays for reading and writing the cache, against fresh input."""
        tariff = self.model.prices_at(self.deps.clock.now())
        return compute_cache_prices(tariff.for_prompt(tokens), self.ttl) if tariff else DEFAULT_CACHE_PRICES

    def hand_out(self) -> PreparedRequest:
        """The view to send. Its cuts are announced with it, and not again with the next one."""
        view = self._handed = self.view()
        self._cuts.clear()
        self._started = self.deps.clock.now()
        return view

    def _start_over(self, items: Sequence[ViewMessage], *, keeps_beginning: bool = True) -> None:
        self._view = None
        self._shaping = ViewNormalizer(self._rules(), self.deps.emit)
        shaped = self._shaping.start_over([item.message for item in items], [item.entry for item in items])
        placed = [
            ViewMessage(one.message, 0.0, ENGINE_ENTRY, "attachment")
            if one.source == NO_SOURCE
            else replace(items[one.source], message=one.message)
            for one in shaped
        ]
        weights = self.tally.rewrite(SourcedMessage(item.message, item.origin) for item in placed)
        self.shown.start_over(
            replace(item, weight=weight) for item, weight in zip(placed, weights, strict=True)
        )
        self.server.start_over(self.shown, keeps=keeps_beginning)
        self._stock_shelf()

    def _stock_shelf(self) -> None:
        """Collect the clearable results of a rewritten view, none of which is in the cache as it is now."""
        self.local.start_over()
        place = self.tally.count().tokens - self.tally.estimate_of(sum(item.weight for item in self.shown))
        for item in self.shown:
            self.local.add(item, self.tools, ResultPosition(self.rounds, place, 0), self.tally.estimate_of)
            place += self.tally.estimate_of(item.weight)

    def remember(
        self,
        message: Message,
        origin: TextOrigin,
        *,
        name: RecordId | None = None,
        usage: Usage | None = None,
    ) -> None:
        """A message of the history, as it is stored. One that has a name already was read, not said now."""
        self._know_tools(message)
        named = name or self.deps.journal.add(MessageRecord(message))
        entry = HistoryMessage(message, named, origin)
        self.entries.append(entry)
        self.on_entry(entry)
        self.show(message, origin, len(self.entries) - 1, usage)

    def show(
        self, message: Message, origin: TextOrigin, entry: int = ENGINE_ENTRY, usage: Usage | None = None
    ) -> None:
        """A message goes into the view, in a shape that the provider takes."""
        self._view = None
        visible = with_result_texts(message, self.cleared) if self.cleared else message
        for one in self._shaping.add(visible, entry):
            is_itself = one.source == self._shaping.last
            own: TextOrigin = origin if is_itself else self._origin(one.entry)
            if usage is not None and is_itself:
                weight, usage = self.tally.bill(usage, one.message), None
            else:
                weight = self.tally.add(one.message, own)
            self._append(ViewMessage(one.message, weight, one.entry, own))
        if usage is not None:
            # Nothing of an empty reply is shown, and its bill holds all the same.
            self.tally.bill(usage, message)

    def _know_tools(self, message: Message) -> None:
        for block in message.blocks:
            if isinstance(block, ToolUse):
                self.tools[block.id] = block

    def _origin(self, entry: int) -> TextOrigin:
        return "attachment" if entry == ENGINE_ENTRY else self.entries[entry].origin

    def finish(self, *, is_stored: bool = False) -> None:
        """What is missing for the view to be sent now is put in, and becomes part of what was said."""
        for one in self._shaping.finish():
            self._view = None
            origin = self._origin(one.entry)
            if one.entry == ENGINE_ENTRY and not is_stored:
                self.deps.journal.add(InjectedRecord(one.message, "attachment"))
            self._append(ViewMessage(one.message, self.tally.add(one.message, origin), one.entry, origin))

    def _append(self, item: ViewMessage) -> None:
        self.shown.append(item)
        self.server.add(item.message, item.weight)
        if item.message.role == "user":
            place = self.tally.count().tokens - self.tally.estimate_of(item.weight)
            at = ResultPosition(self.rounds, place, self.sent_tokens)
            self.local.add(item, self.tools, at, self.tally.estimate_of)

    def _sent_frame(self) -> RequestParams:
        """The caller's parameters with what our layers add; the same object while nothing changes."""
        missing = tuple(beta for beta in self.betas if beta not in self.frame.betas)
        frame = replace(self.frame, betas=(*self.frame.betas, *missing)) if missing else self.frame
        frame = self.server.apply(frame)
        if frame != self._framed:
            self._framed = frame
        return self._framed

    def _mark_frame(self) -> None:
        filled = self.tally.breakdown()
        tokens = filled.system_prompt + filled.tool_schemas
        self._marking.use(self.frame, self.model, self.capabilities, tokens)

    def _rules(self) -> NormalizeRules:
        return NormalizeRules(self.capabilities.takes_system_role, self.model.takes_prefill)


def _ignore(_: HistoryMessage) -> None: ...


def _system_text(frame: RequestParams) -> str:
    if isinstance(frame.system, str):
        return frame.system
    texts = (block.get("text") for block in frame.system)
    return "\n".join(text for text in texts if isinstance(text, str))
