"""Bills: calls added up by model, exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from sevenfold.core.prices import NO_COST, Cost
from sevenfold.core.usage import TokenCounts, Usage
from sevenfold.replay.pricing import CallPrice, PriceGap

ZERO = Decimal(0)
_NOTHING = TokenCounts()


@dataclass(frozen=True, slots=True)
class ModelBill:
    """Calls on one model, added up."""

    model: str
    calls: int
    tokens: TokenCounts
    """What was billed; its output is estimated for some calls."""
    estimated_calls: int
    """Calls whose output count is no final one in the log."""
    estimated_output_tokens: int
    """The part of the output that was estimated for them."""
    cost: Cost | None
    """None where the model has no price."""
    estimated_usd: Decimal
    """The part of the cost that is for estimated output."""
    uncached_usd: Decimal | None
    """What the same calls would have cost with no prompt cache."""
    gap: PriceGap | None = None
    """Where there is no cost: what has no price."""


@dataclass(slots=True)
class BillBuilder:
    """A bill that grows."""

    calls: int = 0
    tokens: TokenCounts = _NOTHING
    estimated_calls: int = 0
    estimated_output: int = 0
    cost: Cost = NO_COST
    estimated_usd: Decimal = ZERO
    uncached_usd: Decimal = ZERO
    gap: PriceGap | None = None

    def add(self, usage: Usage, priced: CallPrice, *, is_estimated: bool) -> None:
        """One more call, with what was billed beside its totals."""
        self.calls += 1
        for run in (usage, *usage.beside):
            self.tokens = sum_counts(self.tokens, run)
        self.estimated_calls += is_estimated
        self.estimated_output += usage.output if is_estimated else 0
        if priced.cost is None or priced.uncached is None:
            self.gap = priced.gap
            return
        self.cost += priced.cost
        self.uncached_usd += priced.uncached.total
        self.estimated_usd += priced.cost.output if is_estimated else ZERO

    def bill(self, model: str) -> ModelBill:
        return ModelBill(
            model,
            self.calls,
            self.tokens,
            self.estimated_calls,
            self.estimated_output,
            None if self.gap else self.cost,
            self.estimated_usd,
            None if self.gap else self.uncached_usd,
            self.gap,
        )


@dataclass(frozen=True, slots=True)
class BillTotals:
    """Bills added up. Tokens are all tokens; dollars are those of the models that have a price."""

    calls: int = 0
    tokens: TokenCounts = _NOTHING
    cost: Cost = NO_COST
    uncached_usd: Decimal = ZERO
    estimated_output_tokens: int = 0
    estimated_usd: Decimal = ZERO
    unpriced_calls: int = 0
    unpriced_tokens: int = 0
    """Prompt and output of models without a price."""

    @property
    def hit_rate(self) -> float | None:
        """Of all prompt tokens, those that came from the cache."""
        return self.tokens.read / self.tokens.prompt if self.tokens.prompt else None

    @property
    def saved_usd(self) -> Decimal:
        """By the prompt cache."""
        return self.uncached_usd - self.cost.total


def sum_bills(bills: Iterable[ModelBill]) -> BillTotals:
    total = BillTotals()
    for bill in bills:
        is_priced = bill.cost is not None
        total = BillTotals(
            total.calls + bill.calls,
            sum_counts(total.tokens, bill.tokens),
            total.cost + (bill.cost or NO_COST),
            total.uncached_usd + (bill.uncached_usd or ZERO),
            total.estimated_output_tokens + bill.estimated_output_tokens,
            total.estimated_usd + bill.estimated_usd,
            total.unpriced_calls + (0 if is_priced else bill.calls),
            total.unpriced_tokens + (0 if is_priced else bill.tokens.prompt + bill.tokens.output),
        )
    return total


def merge_bills(bills: Iterable[ModelBill]) -> tuple[ModelBill, ...]:
    """One bill a model."""
    merged: dict[str, ModelBill] = {}
    for bill in bills:
        before = merged.get(bill.model)
        merged[bill.model] = _together(before, bill) if before else bill
    return tuple(sorted(merged.values(), key=lambda bill: (-_usd(bill), -bill.tokens.prompt, bill.model)))


def sum_counts(one: TokenCounts, other: TokenCounts) -> TokenCounts:
    return TokenCounts(
        one.fresh + other.fresh,
        one.read + other.read,
        one.written_5m + other.written_5m,
        one.written_1h + other.written_1h,
        one.output + other.output,
        one.thinking + other.thinking,
    )


def _together(one: ModelBill, other: ModelBill) -> ModelBill:
    return ModelBill(
        one.model,
        one.calls + other.calls,
        sum_counts(one.tokens, other.tokens),
        one.estimated_calls + other.estimated_calls,
        one.estimated_output_tokens + other.estimated_output_tokens,
        one.cost + other.cost if one.cost and other.cost else one.cost or other.cost,
        one.estimated_usd + other.estimated_usd,
        one.uncached_usd + other.uncached_usd
        if one.uncached_usd is not None and other.uncached_usd is not None
        else one.uncached_usd or other.uncached_usd,
        one.gap or other.gap,
    )


def _usd(bill: ModelBill) -> Decimal:
    return bill.cost.total if bill.cost else ZERO
