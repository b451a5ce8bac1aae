"""Layer 2: clears old tool results from the view, by the means that the model allows.

`MicrocompactLayer` is the step of the request path. Its `ResultAccount` has the results that may be cleared
and what clearing has saved so far, which the policies decide from. Where old messages may be rewritten,
markers replace the chosen results. Elsewhere the provider clears them (`server_clearing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from sevenfold.core.clock import Clock
from sevenfold.core.events import ClearingRefused, Emit, ProviderClearingEnded, ResultsCleared
from sevenfold.core.json import Json, JsonObject, freeze_object
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.models import Tariff
from sevenfold.core.requests import Cut, ModelResponse, RequestParams, ViewMessage
from sevenfold.core.system import run_blocking
from sevenfold.core.tokens import Thresholds
from sevenfold.core.tool_kinds import ClearableTools, find_called_tool
from sevenfold.layers.conversation import Conversation
from sevenfold.layers.conversation_state import ConversationListener
from sevenfold.layers.microcompact.facts import (
    BARE_MARKER,
    DEFAULT_CACHE_PRICES,
    ClearingCost,
    ResultPosition,
    describe_clearable,
    is_cache_cold,
    render_cleared_marker,
)
from sevenfold.layers.microcompact.policy import (
    PRESSURE_TRIGGER,
    CachePrices,
    ClearingFacts,
    ClearingPlan,
    MicrocompactSettings,
    PriceRule,
    choose_by_price,
    choose_prefix_by_price,
    compute_cache_prices,
)
from sevenfold.layers.microcompact.result_account import ResultAccount
from sevenfold.layers.microcompact.server_clearing import (
    ClearingStep,
    ServerClearing,
    ServerEditSettings,
    is_signed,
    takes_our_edit,
    uses_server_edits,
)

CLEARED_KEY, SAVED_KEY, REWRITTEN_KEY, MEMORIES_KEY = "cleared", "saved", "rewritten", "memories"
"""Of a cut's detail: results that gave way to markers, what that saves, what it had to write again, and how
many recalled memories went with them."""
DEPTH_KEY, EXCLUDED_KEY = "depth", "spared"
"""Of a cut's detail: how many of the oldest tool uses the provider clears, and the tools that it leaves
alone."""
NET_SAVED_KEY = "net_saved"
"""Of the detail of a cut that made the view anew: what clearings before it saved."""

PRICE_POLICIES = frozenset({"balanced", "thrift", "ski"})

NO_CACHE_EDITS = "no public provider deletes results inside a cached prefix"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingTools:
    """What a clearing works with besides the conversation."""

    settings: MicrocompactSettings
    server_edits: ServerEditSettings
    ttl: timedelta
    """How long the provider's cache holds what a request marked."""
    clock: Clock
    emit: Emit
    store_result: Callable[[ToolResult], str | None] | None
    """Stores a whole result and returns its path; None where that failed. Blocks on the disk."""
    clear_memories: Callable[[Message], Message | None]
    """A message of recalled memories as the marker that replaces it; None: it has none."""
    declared: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Tools of the caller, and whether their results may be cleared."""


class MicrocompactLayer(ConversationListener):
    """The clearings of one conversation."""

    def __init__(self, conversation: Conversation, tools: ClearingTools) -> None:
        self._conversation, self._tools = conversation, tools
        self.clearable = ClearableTools(
            never=tools.settings.never_clear, named=tools.settings.clearable, declared=tools.declared
        )
        self._account = ResultAccount(settings=tools.settings, is_clearable=self._is_clearable)
        self._server = ServerClearing(settings=tools.server_edits, is_clearable=self.clearable.allows)
        self._account.prices = self._cache_prices(0)
        self._is_refused = False
        self._has_signed = False
        """Whether signed thinking is in the view."""
        self._cleared_there = 0
        """How many results the provider is told to clear."""
        self._written_depth = 0
        """What the provider clears by the last cut that was announced."""
        self._expected: set[int] = set()
        """How many it may say that it did: all of them, or those of the last step; then what it said last."""
        self._is_new_view = False
        """The view was made anew, and that was not announced yet."""
        conversation.listeners.append(self)

    async def run(self, thresholds: Thresholds) -> None:
        """Clear what is due, before a view is handed out."""
        settings = self._tools.server_edits
        if settings.cache_edits and not self._is_refused:
            self._is_refused = True
            self._tools.emit(ClearingRefused("server_edits.cache_edits", NO_CACHE_EDITS))
        ended = self._find_why_ended() if self._server.depth else None
        if ended is not None:
            await self._end_there(ended)
        if self._provider_clears:
            self._clear_deeper(thresholds)
        elif self._rewrites_results:
            await self._clear_here(thresholds.warning)

    @property
    def _provider_clears(self) -> bool:
        """Whether the provider clears. An unknown model may sign its thinking: until it has, old turns can be
        rewritten here."""
        conversation, settings = self._conversation, self._tools.server_edits
        if not uses_server_edits(conversation.capabilities, settings):
            return False
        return conversation.model.is_known or self._has_signed or settings.clear_results == "always"

    @property
    def _rewrites_results(self) -> bool:
        conversation = self._conversation
        may_sign = not conversation.model.is_known and not self._has_signed
        return conversation.capabilities.rewrites_history or may_sign

    def apply(self, frame: RequestParams) -> RequestParams:
        """The parameters of a request, with what the provider is told to clear."""
        can_clear = self._conversation.capabilities.has_server_edits
        return self._server.apply(frame) if can_clear else frame

    @property
    def is_active(self) -> bool:
        """Whether anything is ever cleared with these settings, on this side or the provider's."""
        settings = self._tools.settings
        is_chosen = self._provider_clears or (self._rewrites_results and settings.policy != "keep")
        return settings.enabled and is_chosen

    @property
    def oldest(self) -> ToolUseId | None:
        """Once something was cleared: the oldest result that still may be."""
        here = self._account.oldest if self._conversation.cleared else None
        return self._server.oldest or here

    def read_back(self, reply: ModelResponse) -> None:
        """Report what the provider says it cleared, unless it is what it was told to clear."""
        management = reply.extra.get("context_management")
        applied = management.get("applied_edits") if isinstance(management, JsonObject) else None
        for edit in applied if isinstance(applied, tuple) else ():
            results = _count(edit, "cleared_tool_uses")
            if results and results not in self._expected:
                self._expected = {self._cleared_there, results}
                self._tools.emit(ResultsCleared("provider", results, _count(edit, "cleared_input_tokens")))

    def restore(self, detail: JsonObject, *, is_kept: bool) -> None:
        """Repeat a clearing of a session that is resumed; `is_kept`: a boundary came after it."""
        found = detail.get(CLEARED_KEY)
        markers = found.items() if isinstance(found, JsonObject) else ()
        texts = {ToolUseId(use): str(text) for use, text in markers}
        cost = ClearingCost(_count(detail, SAVED_KEY), _count(detail, REWRITTEN_KEY))
        depth = None if is_kept else detail.get(DEPTH_KEY)
        if depth == 0:
            self._release(texts)
            self._written_depth = 0
        elif texts:
            self._replace_results(texts, cost)
        if is_kept:
            return
        net_saved = detail.get(NET_SAVED_KEY)
        if isinstance(net_saved, (int, float)):
            self._account.ledger.net_saved, self._is_new_view = float(net_saved), False
        self._clear_memories(self._find_memories()[: _count(detail, MEMORIES_KEY)])
        if not isinstance(depth, int) or not depth:
            return
        excluded = detail.get(EXCLUDED_KEY)
        named = [name for name in excluded if isinstance(name, str)] if isinstance(excluded, tuple) else None
        step = self._server.restore(depth, named)
        self._written_depth = self._server.depth
        if step is not None:
            estimated = ClearingCost(self._conversation.tally.estimate_of(step.weight), 0)
            self._take_step(step, cost if SAVED_KEY in detail else estimated)

    def cut_detail(self) -> Mapping[str, Json]:
        """What the provider clears after a cut. Not where it cleared nothing before, and clears nothing."""
        before, self._written_depth = self._written_depth, self._server.depth
        detail: dict[str, Json] = {NET_SAVED_KEY: self._account.ledger.net_saved} if self._is_new_view else {}
        self._is_new_view = False
        if before or self._server.depth:
            detail[DEPTH_KEY] = self._server.depth
            detail[EXCLUDED_KEY] = self._server.excluded if self._server.depth else ()
        return detail

    def message_shown(self, item: ViewMessage) -> None:
        self._server.add(item.message, item.weight)
        self._has_signed = self._has_signed or is_signed(item.message)
        conversation = self._conversation
        estimate = conversation.tally.estimate_of
        place = conversation.tokens - estimate(item.weight)
        at = ResultPosition(conversation.rounds, place, conversation.last.tokens)
        self._account.add(item, conversation.tools, at, estimate)

    def view_rewritten(self, *, keeps_beginning: bool) -> None:
        """Collect the clearable results of a new view, none of which is in the cache as it is now."""
        conversation = self._conversation
        kept = self._server.start_over(conversation.shown, keeps=keeps_beginning)
        self._cleared_there, self._is_new_view = 0, True
        self._has_signed = any(is_signed(item.message) for item in conversation.shown)
        self._collect()
        if kept is not None:
            self._take_step(kept, ClearingCost(conversation.tally.estimate_of(kept.weight), 0))

    def _collect(self) -> None:
        conversation = self._conversation
        estimate, shown = conversation.tally.estimate_of, conversation.shown
        self._account.start_over()
        place = conversation.tokens - estimate(sum(item.weight for item in shown))
        for item in shown:
            at = ResultPosition(conversation.rounds, place, 0)
            self._account.add(item, conversation.tools, at, estimate)
            place += estimate(item.weight)

    def request_answered(self, idle: timedelta | None) -> None:
        last = self._conversation.last
        if last.started is not None:
            is_cold = is_cache_cold(idle, self._tools.ttl)
            self._account.sent(last.tokens, last.started, is_cold=is_cold)

    def _is_clearable(self, use: ToolUse) -> bool:
        """Whether the result of this call may be cleared. The provider knows the tool's own name alone."""
        by_name = uses_server_edits(self._conversation.capabilities, self._tools.server_edits)
        return self.clearable.allows(use.name if by_name else find_called_tool(use))

    def _clear_deeper(self, thresholds: Thresholds) -> None:
        """The provider clears more of the oldest results from now on; ours stay as they are."""
        conversation, server, settings = self._conversation, self._server, self._tools.settings
        if not settings.enabled or not takes_our_edit(conversation.frame.params):
            return
        facts = self._facts(thresholds.warning)
        if settings.policy in PRICE_POLICIES and self._tariff is not None:
            plan = self._choose(facts, choose_prefix_by_price)
            depth = server.depth_at(plan.ids[-1]) if plan else 0
        else:
            plan, estimate = None, conversation.tally.estimate_of
            depth = server.choose_by_trigger(facts.view_tokens, thresholds.auto_compact, estimate)
        step = server.deepen(depth)
        if step is None:
            return
        saved = plan.saved_tokens if plan else conversation.tally.estimate_of(step.weight)
        cost = ClearingCost(saved, plan.rewrite_tokens if plan else 0)
        self._take_step(step, cost)
        place = conversation.shown.place(step.first)
        reason = f"the provider clears {len(step.ids)} old results, about {saved:,} tokens"
        detail = {SAVED_KEY: cost.saved_tokens, REWRITTEN_KEY: cost.rewrite_tokens}
        described = f"{reason}: {plan.reason}" if plan else reason
        conversation.announce(Cut(2, described, place or 0, freeze_object(detail)))
        self._tools.emit(ResultsCleared(plan.by if plan else "provider", len(step.ids), saved))

    def _find_why_ended(self) -> str | None:
        """Why the provider no longer clears what it was told to; None: it does."""
        conversation = self._conversation
        if not self._provider_clears:
            return f"{conversation.frame.model} is not told to clear results on the provider's side"
        if not takes_our_edit(conversation.frame.params):
            return "the caller sends edits of tool results itself"
        return None if self._server.is_reached else "the provider clears nothing where one tool use is left"

    async def _end_there(self, reason: str) -> None:
        """What the provider cleared is cleared here from now on, or sent whole where that cannot be."""
        conversation, ids = self._conversation, self._server.cleared
        markers: dict[ToolUseId, str] = {}
        if self._rewrites_results:
            markers = await run_blocking(lambda: dict(self._markers(ids)))
        whole = [use for use in ids if use not in markers]
        step = self._release(markers)
        place = conversation.shown.place(ids[0])
        described = f"{reason}: {len(markers)} results are cleared here, {len(whole)} are sent whole again"
        detail = {CLEARED_KEY: markers} if markers else {}
        conversation.announce(Cut(2, described, place or 0, freeze_object(detail)))
        tokens = conversation.tally.estimate_of(step.weight) if step and whole else 0
        self._tools.emit(ProviderClearingEnded(reason, len(markers), len(whole), tokens))

    def _release(self, texts: dict[ToolUseId, str]) -> ClearingStep | None:
        """The provider clears nothing any more; these texts stand in for results instead."""
        step = self._server.release()
        self._cleared_there, self._expected = 0, set()
        if step is not None:
            self._conversation.tally.discount(-step.weight)
        self._replace_results(texts, ClearingCost(0, 0))
        if step is not None and any(use not in texts for use in step.ids):
            self._collect()
        return step

    def _take_step(self, step: ClearingStep, cost: ClearingCost) -> None:
        """These results are cleared on the provider's side."""
        self._cleared_there += len(step.ids)
        self._expected = {self._cleared_there, len(step.ids)}
        self._conversation.tally.discount(step.weight)
        self._account.cut(cost, step.ids)

    def _choose(self, facts: ClearingFacts, by_price: PriceRule) -> ClearingPlan | None:
        self._account.prices = facts.prices
        if facts.is_cold:
            self._account.results.reset_anchors()
        return self._account.choose(facts, by_price)

    async def _clear_here(self, warning: int) -> None:
        chosen = self._choose(self._facts(warning), choose_by_price)
        if chosen is None:
            return
        markers = await run_blocking(lambda: dict(self._markers(chosen.ids, is_bare=chosen.is_bare)))
        self._account.forget(use for use in chosen.ids if use not in markers)
        if not markers:
            return
        cost = self._account.estimate_cost(chosen, markers)
        memories = self._memories_before(markers) if chosen.by == PRESSURE_TRIGGER else []
        self._clear_memories(memories)
        places = sorted([*memories, *self._replace_results(markers, cost)])
        if places:
            self._announce(chosen.reason, places[0], markers, cost, len(memories))
        self._tools.emit(ResultsCleared(chosen.by, len(markers), cost.saved_tokens, len(memories)))

    def _announce(
        self, reason: str, first: int, markers: dict[ToolUseId, str], cost: ClearingCost, memories: int
    ) -> None:
        detail = {CLEARED_KEY: markers, SAVED_KEY: cost.saved_tokens, REWRITTEN_KEY: cost.rewrite_tokens}
        more = {MEMORIES_KEY: memories} if memories else {}
        self._conversation.announce(Cut(2, reason, first, freeze_object({**detail, **more})))

    def _replace_results(self, markers: dict[ToolUseId, str], cost: ClearingCost) -> list[int]:
        places = self._conversation.replace_results(markers)
        self._account.cut(cost, markers)
        return places

    def _memories_before(self, markers: Iterable[ToolUseId]) -> list[int]:
        """Where memories stand that were recalled before the last result that goes."""
        places = (self._conversation.shown.place(use) for use in markers)
        last = max(place for place in places if place is not None)
        return [place for place in self._find_memories() if place < last]

    def _find_memories(self) -> list[int]:
        """Where recalled memories stand in the view, the oldest first."""
        return [
            place
            for place, item in enumerate(self._conversation.shown.items)
            if item.origin == "memory" and self._tools.clear_memories(item.message) is not None
        ]

    def _clear_memories(self, places: Iterable[int]) -> None:
        """Replace memories with a marker. They can be recalled again."""
        for place in places:
            marker = self._tools.clear_memories(self._conversation.shown.items[place].message)
            if marker is not None:
                self._conversation.replace_message(place, marker)

    def _facts(self, warning: int) -> ClearingFacts:
        conversation, ttl = self._conversation, self._tools.ttl
        tokens, now = conversation.tokens, self._tools.clock.now()
        return ClearingFacts(
            now=now,
            last_request=conversation.cached_at,
            last_answer=conversation.last.ended,
            ttl=ttl,
            prices=self._cache_prices(tokens),
            view_tokens=tokens,
            cached_tokens=conversation.last.tokens,
            round=conversation.rounds,
            warning_tokens=warning,
            live_tokens=self._account.live_tokens(now, ttl),
            marked_tokens=self._account.marked_tokens,
        )

    def _cache_prices(self, tokens: int) -> CachePrices:
        """What a prompt of this size pays for reading and writing the cache, against fresh input."""
        tariff = self._tariff
        if tariff is None:
            return DEFAULT_CACHE_PRICES
        return compute_cache_prices(tariff.for_prompt(tokens), self._tools.ttl)

    @property
    def _tariff(self) -> Tariff | None:
        return self._conversation.model.prices_at(self._tools.clock.now())

    def _markers(self, ids: Iterable[ToolUseId], *, is_bare: bool = False) -> Iterator[tuple[ToolUseId, str]]:
        """What stands in for each of these results, once its original is kept. Blocks on the disk."""
        store, tools = self._tools.store_result, self._conversation.tools
        for use in ids:
            result = self._conversation.shown.result(use)
            if result is None:
                continue
            where = store(result) if store is not None else None
            if store is not None and where is None:
                continue  # it could not be stored, which was reported, so it stays
            about = describe_clearable(tools[use], 0)
            yield use, BARE_MARKER if is_bare else render_cleared_marker(about, where)


def _count(value: Json, key: str) -> int:
    count = value.get(key) if isinstance(value, JsonObject) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else 0
