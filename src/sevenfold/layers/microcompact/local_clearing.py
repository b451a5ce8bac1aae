"""Layer 2 on our side: chooses the old tool results of a conversation that markers replace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sevenfold.core.messages import ToolResult, ToolUse, ToolUseId
from sevenfold.core.tool_kinds import is_clearable
from sevenfold.core.view import ViewMessage
from sevenfold.layers.microcompact.facts import ClearableResult, describe_clearable
from sevenfold.layers.microcompact.policy import (
    CachePrices,
    ClearableResults,
    ClearingFacts,
    ClearingLedger,
    ClearingPlan,
    MicrocompactSettings,
    choose_clearing,
)

DEFAULT_CACHE_PRICES = CachePrices(0.1, 1.25)
"""Of most models; for one whose price nobody knows."""


@dataclass(frozen=True, slots=True)
class ResultPosition:
    """Where a result comes into the view."""

    round: int
    place: int
    """Tokens of the view before it."""
    cached: int
    """Tokens of the last request."""


@dataclass(frozen=True, slots=True)
class ClearingCost:
    """What a clearing saves in every request to come, and what it had to write again."""

    saved_tokens: int
    rewrite_tokens: int


@dataclass(frozen=True, slots=True)
class _End:
    """Where a request ended, which is where the cache can be read up to."""

    tokens: int
    touched: datetime
    """When a request last wrote or found it: the next one does."""


@dataclass(slots=True, kw_only=True)
class LocalClearing:
    """The clearable results of one conversation, and what clearing has saved so far."""

    settings: MicrocompactSettings
    results: ClearableResults = field(default_factory=ClearableResults)
    ledger: ClearingLedger = field(default_factory=ClearingLedger)
    prices: CachePrices = DEFAULT_CACHE_PRICES
    _calls: dict[ToolUseId, ClearableResult] = field(default_factory=dict[ToolUseId, ClearableResult])
    _ends: deque[_End] = field(default_factory=deque[_End])

    def add(
        self,
        item: ViewMessage,
        tools: Mapping[ToolUseId, ToolUse],
        at: ResultPosition,
        estimate: Callable[[float], int],
    ) -> None:
        """A message of the view. Its results share its weight by their length."""
        results = [block for block in item.message.blocks if isinstance(block, ToolResult)]
        total = sum(_length(result) for result in results) or 1
        place = at.place
        for result in results:
            tokens = estimate(item.weight * _length(result) / total)
            use = tools.get(result.tool_use_id)
            if use is not None and is_clearable(use.name):
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

    def choose(self, facts: ClearingFacts) -> ClearingPlan | None:
        return choose_clearing(facts, self.results, self.ledger, self.settings)

    def call(self, use: ToolUseId) -> ClearableResult:
        """What is known of a result that is chosen."""
        return self._calls[use]

    def cut(self, stake: ClearingCost, ids: Iterable[ToolUseId]) -> None:
        """These were cleared."""
        self.ledger.cut(stake.saved_tokens, (self.prices.write - self.prices.read) * stake.rewrite_tokens)
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
        self._ends.append(_End(view_tokens, started))

    def start_over(self) -> None:
        """Another view begins."""
        self.results.start_over()
        self.ledger.start_over()
        self._calls.clear()
        self._ends.clear()


def is_cache_cold(idle: timedelta | None, ttl: timedelta) -> bool:
    """Whether nothing of the last request can be read any more. A clock that was set back proves nothing."""
    return idle is None or idle > ttl


def _length(result: ToolResult) -> int:
    content = result.content
    if isinstance(content, tuple):
        # An image weighs what some thousand characters do.
        return sum(len(getattr(block, "text", "x" * 4_000)) for block in content)
    return len(content or "") + 1
