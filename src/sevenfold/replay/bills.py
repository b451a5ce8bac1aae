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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(slots=True, kw_only=True)
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
            model=model,
            calls=self.calls,
            tokens=self.tokens,
            estimated_calls=self.estimated_calls,
            estimated_output_tokens=self.estimated_output,
            cost=None if self.gap else self.cost,
            estimated_usd=self.estimated_usd,
            uncached_usd=None if self.gap else self.uncached_usd,
            gap=self.gap,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
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
            calls=total.calls + bill.calls,
            tokens=sum_counts(total.tokens, bill.tokens),
            cost=total.cost + (bill.cost or NO_COST),
            uncached_usd=total.uncached_usd + (bill.uncached_usd or ZERO),
            estimated_output_tokens=total.estimated_output_tokens + bill.estimated_output_tokens,
            estimated_usd=total.estimated_usd + bill.estimated_usd,
            unpriced_calls=total.unpriced_calls + (0 if is_priced else bill.calls),
            unpriced_tokens=total.unpriced_tokens
            + (0 if is_priced else bill.tokens.prompt + bill.tokens.output),
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
        fresh=one.fresh + other.fresh,
        read=one.read + other.read,
        written_5m=one.written_5m + other.written_5m,
        written_1h=one.written_1h + other.written_1h,
        output=one.output + other.output,
        thinking=one.thinking + other.thinking,
    )


def _together(one: ModelBill, other: ModelBill) -> ModelBill:
    return ModelBill(
        model=one.model,
        calls=one.calls + other.calls,
        tokens=sum_counts(one.tokens, other.tokens),
        estimated_calls=one.estimated_calls + other.estimated_calls,
        estimated_output_tokens=one.estimated_output_tokens + other.estimated_output_tokens,
        cost=one.cost + other.cost if one.cost and other.cost else one.cost or other.cost,
        estimated_usd=one.estimated_usd + other.estimated_usd,
        uncached_usd=one.uncached_usd + other.uncached_usd
        if one.uncached_usd is not None and other.uncached_usd is not None
        else one.uncached_usd or other.uncached_usd,
        gap=one.gap or other.gap,
    )


def _usd(bill: ModelBill) -> Decimal:
    return bill.cost.total if bill.cost else ZERO
