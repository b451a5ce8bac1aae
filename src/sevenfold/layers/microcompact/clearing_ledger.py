"""What clearing has won so far against keeping everything, in tokens at the price of fresh input."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sevenfold.core.models import Prices

LONG_TTL = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CachePrices:
    """What a token costs that is read from the cache, or written to it; a fresh one costs 1."""

    read: float
    write: float


def compute_cache_prices(prices: Prices, ttl: timedelta) -> CachePrices:
    """A model's prices as multiples of its fresh one. A model that is free has those of most models."""
    if not prices.fresh:
        return CachePrices(0.1, 2.0 if ttl >= LONG_TTL else 1.25)
    written = prices.written_1h if ttl >= LONG_TTL else prices.written_5m
    return CachePrices(float(prices.read / prices.fresh), float(written / prices.fresh))


class ClearingLedger:
    """One conversation's account, kept request by request."""

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
        """The agent asked again for what was cleared: a round more, and the result once more."""
        self.won -= prices.read * view_tokens + prices.write * tokens
        self.gone_tokens -= tokens

    def start_over(self) -> None:
        """A compaction: nothing that was cleared would be in view any more."""
        self.gone_tokens = 0
        self._before_tokens = None
