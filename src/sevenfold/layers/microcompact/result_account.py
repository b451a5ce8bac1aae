"""The account of layer 2: the results that may be cleared, and what clearing has saved so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sevenfold.core.messages import ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import ViewMessage
from sevenfold.layers.microcompact.facts import (
    DEFAULT_CACHE_PRICES,
    CachePrices,
    ClearableResult,
    ClearableResults,
    ClearingCost,
    ClearingFacts,
    ClearingLedger,
    ClearingPlan,
    MicrocompactSettings,
    RequestEnd,
    ResultPosition,
    describe_clearable,
)
from sevenfold.layers.microcompact.policy import PriceRule, choose_clearing
from sevenfold.layers.microcompact.server_clearing import share_weight


@dataclass(slots=True, kw_only=True)
class ResultAccount:
    """The clearable results of one conversation, and what clearing has saved so far."""

    settings: MicrocompactSettings
    is_clearable: Callable[[ToolUse], bool]
    results: ClearableResults = field(default_factory=ClearableResults)
    ledger: ClearingLedger = field(default_factory=ClearingLedger)
    prices: CachePrices = DEFAULT_CACHE_PRICES
    _calls: dict[ToolUseId, ClearableResult] = field(default_factory=dict[ToolUseId, ClearableResult])
    _ends: deque[RequestEnd] = field(default_factory=deque[RequestEnd])

    def add(
        self,
        item: ViewMessage,
        tools: Mapping[ToolUseId, ToolUse],
        at: ResultPosition,
        estimate: Callable[[float], int],
    ) -> None:
        """A message of the view. Its results share its weight by their length."""
        message = item.message
        if message.role == "assistant":
            self.results.take_answer()
            return
        has_results = any(isinstance(block, ToolResult) for block in message.blocks)
        if not has_results and message.role == "user" and item.origin == "human":
            self.results.begin_turn()
        place = at.place
        for result, weight in share_weight(item.message, item.weight):
            tokens = estimate(weight)
            use = tools.get(result.tool_use_id)
            if use is not None and self.is_clearable(use):
                call = self._calls[use.id] = describe_clearable(use, tokens)
                if self.results.add(call, round_=at.round, place=place, anchor=at.cached):
                    self.ledger.record_reread(tokens, at.place, self.prices)
            place += tokens

    @property
    def oldest(self) -> ToolUseId | None:
        """Of the results that may still be cleared."""
        return self.results.live[0].result.id if self.results.live else None

    @property
    def marked_tokens(self) -> int:
        """Of the view before that result: there the cache is marked in every request."""
        return self.results.live[0].edge if self.results.live else 0

    def live_tokens(self, now: datetime, ttl: timedelta) -> int:
        """Of the shortest request whose end can still be read from the cache."""
        while self._ends and now - self._ends[0].touched > ttl:
            self._ends.popleft()
        return self._ends[0].tokens if self._ends else 0

    def choose(self, facts: ClearingFacts, by_price: PriceRule) -> ClearingPlan | None:
        return choose_clearing(facts, self.results, self.ledger, self.settings, by_price)

    def cut(self, cost: ClearingCost, ids: Iterable[ToolUseId]) -> None:
        """These were cleared."""
        self.ledger.cut(cost.saved_tokens, (self.prices.write - self.prices.read) * cost.rewrite_tokens)
        gone = frozenset(ids)
        first = next((item.place for item in self.results.live if item.result.id in gone), None)
        while first is not None and self._ends and self._ends[-1].tokens > first:
            self._ends.pop()
        self.results.clear(gone)

    def estimate_cost(self, chosen: ClearingPlan, ids: Iterable[ToolUseId]) -> ClearingCost:
        """What clearing these results saves and costs."""
        saved = sum(self._calls[use].saved_tokens for use in ids)
        return ClearingCost(saved, chosen.rewrite_tokens)

    def forget(self, ids: Iterable[ToolUseId]) -> None:
        """These cannot be cleared: do not choose them again."""
        self.results.clear(frozenset(ids))

    def sent(self, view_tokens: int, started: datetime, *, is_cold: bool) -> None:
        self.ledger.send(view_tokens, self.prices, is_cold=is_cold)
        if is_cold:
            self._ends.clear()
        if self._ends:
            self._ends.append(replace(self._ends.pop(), touched=started))
        self._ends.append(RequestEnd(view_tokens, started))

    def start_over(self) -> None:
        """Another view begins."""
        self.results.start_over()
        self.ledger.start_over()
        self._calls.clear()
        self._ends.clear()
