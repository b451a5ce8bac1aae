"""What layer 2 decides from: its settings, the facts and the plan of a clearing, and the account so far.

`ClearingLedger` counts what clearing has saved compared with keeping everything, in tokens at the price of
fresh input.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Literal, TypeAlias

from sevenfold.core.messages import ToolUseId
from sevenfold.core.models import Prices
from sevenfold.core.settings import amount, choice, switch

LONG_TTL = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CachePrices:
    """What a token costs that is read from the cache, or written to it; a fresh one costs 1."""

    read: float
    write: float


def compute_cache_prices(prices: Prices, ttl: timedelta) -> CachePrices:
    """The cache prices of a model as multiples of fresh input. A free model gets the usual multiples."""
    if not prices.fresh:
        return CachePrices(0.1, 2.0 if ttl >= LONG_TTL else 1.25)
    written = prices.written_1h if ttl >= LONG_TTL else prices.written_5m
    return CachePrices(float(prices.read / prices.fresh), float(written / prices.fresh))


class ClearingLedger:
    """The account of one conversation, updated with each request."""

    __slots__ = ("_before_tokens", "gone_tokens", "kept_cost", "won")

    def __init__(self) -> None:
        self.won = 0.0
        """Saved by clearing so far, less what the cuts cost; below zero when they have not paid back yet."""
        self.kept_cost = 0.0
        """What all requests so far would have cost with everything kept."""
        self.gone_tokens = 0
        """What the view is shorter by."""
        self._before_tokens: int | None = None

    def send(self, view_tokens: int, prices: CachePrices, *, is_cold: bool) -> None:
        """A request goes out with this view."""
        whole = view_tokens + self.gone_tokens
        before = self._before_tokens
        if is_cold or before is None:
            self.kept_cost += prices.write * whole
        else:
            self.kept_cost += prices.read * before + prices.write * max(0, whole - before)
        self.won += self.gone_tokens * (prices.write if is_cold else prices.read)
        self._before_tokens = whole

    def cut(self, saved_tokens: int, rewrite_cost: float) -> None:
        """A cut made the view shorter, at this cost."""
        self.gone_tokens += saved_tokens
        self.won -= rewrite_cost

    def bring_back(self, tokens: int, view_tokens: int, prices: CachePrices) -> None:
        """The agent asked again for a cleared result: one more round, and the result again."""
        self.won -= prices.read * view_tokens + prices.write * tokens
        self.gone_tokens -= tokens

    def start_over(self) -> None:
        """A compaction: nothing that was cleared would be in view any more."""
        self.gone_tokens = 0
        self._before_tokens = None


ClearingPolicy: TypeAlias = Literal["balanced", "thrift", "fixed", "ski", "keep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MicrocompactSettings:
    SECTION: ClassVar[str] = "microcompact"

    enabled: bool = switch(True)
    """On: at most models' prices, old results cost more to carry than to leave behind."""

    policy: str = choice("balanced", "balanced", "thrift", "fixed", "ski", "keep")
    """`balanced` pays a few per cent more than `thrift` to keep in view what will likely be used again."""

    keep_last: int = amount(2, at_least=1)
    """What the agent is working with; a larger number costs more than it keeps of later use."""

    rounds_ahead_5m: int = amount(25, at_least=1)
    """Rounds until a five-minute cache next goes cold: 25 on average, however long it has been warm."""

    rounds_ahead_1h: int = amount(50, at_least=1)
    """The same for an hour's cache, which mostly ends with the session or with a compaction."""

    by_time: bool = switch(False)
    """Off: the economic policies clear as soon as the cache is cold. On: after `idle_minutes`, whatever it
    costs or saves."""

    idle_minutes: int = amount(60, at_least=1)
    """No provider's cache lives longer, so that clearing is free of charge."""

    idle_keep: int = amount(5, at_least=1)
    """After an hour's pause the last few results are the way back into the work."""

    by_pressure: bool = switch(True)
    """On: near the end of the window clearing is cheaper than a summary. Texts of memories that were recalled
    earlier go too."""

    pressure_tokens: int = amount(40_000, at_least=1)
    """Of clearable results: with fewer there is little to win."""

    pressure_keep: int = amount(3, at_least=1)
    """Fewer than after a pause: the window is full and the work goes on."""

    pressure_saves_tokens: int = amount(20_000, at_least=0)
    """A cut that frees less is followed by the next one too soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingFacts:
    """What a clearing depends on, at the moment when a request is made ready."""

    now: datetime
    last_request: datetime | None
    """When the request before this one started, which is when its cache entry was last touched."""
    last_answer: datetime | None
    ttl: timedelta
    prices: CachePrices
    view_tokens: int
    """Of the view as it would be sent now."""
    cached_tokens: int
    """Of the request before."""
    round: int
    """Requests so far; a result of this round has not been shown yet."""
    warning_tokens: int
    """Where the window's warning begins."""
    live_tokens: int = 0
    """The ends of requests shorter than this were not touched for a lifetime of the cache."""
    marked_tokens: int = 0
    """Up to where the cache can be read instead: the mark that every request repeats."""

    @property
    def is_cold(self) -> bool:
        """Whether nothing can be read from the cache. A clock that went back proves nothing."""
        return self.last_request is None or self.now - self.last_request > self.ttl

    @property
    def idle(self) -> timedelta:
        return self.now - self.last_answer if self.last_answer else timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingPlan:
    """Results to clear now."""

    ids: tuple[ToolUseId, ...]
    by: str
    """The policy, as events name it."""
    reason: str
    """With its figures, for a person."""
    saved_tokens: int
    rewrite_tokens: int
    """What was cached and has to be written again behind the first of them."""
    is_bare: bool = False
    """Their marker says only that they were cleared, not where the original is."""
