"""What calls cost, exactly: `CallPricer` prices one call, bills add calls up by model.

A call is priced at its own model's price on its day, or at another model's current price. A tool result is
written once, then read with every call until it left the context: that is what it cost.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Literal, TypeAlias

from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Block, ToolUse, ToolUseId
from sevenfold.core.models import ONE, Model
from sevenfold.core.prices import CATALOG, NO_COST, Catalog, Cost, compute_cost, compute_uncached_cost
from sevenfold.core.usage import TokenCounts, Usage

UNNAMED_MODEL = "(unnamed)"
"""Where a log does not say which model answered. A user may give it a price like any other."""

PriceGap: TypeAlias = Literal["model", "speed", "runs"]
"""What has no price: the model; the speed at which a priced model ran; or runs inside a request, of which one
was on a model without a price, or which do not add up to the bill."""

FAST_SPEED = "fast"
ROW_REMARKS = (" (fast)", " (several models)")
"""What may stand behind the name of a model."""
_ROWS: Mapping[PriceGap, str] = {"model": "{}", "speed": "{}" + ROW_REMARKS[0], "runs": "{}" + ROW_REMARKS[1]}
"""Calls of a priced model that have no price stand in a row of their own: its others keep theirs."""

NANO_USD = Decimal("0.000000001")
"""Shares of a bill are rounded to billionths of a dollar, so that their sums are exact."""


@dataclass(frozen=True, slots=True)
class CallRates:
    """US dollars a prompt token of one call: read from the cache, and on average not."""

    read: Decimal
    paid: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPrice:
    """One call's price. Without one, all is None: a model that no table knows is not free."""

    row: str
    """Under which name it is counted: a dated id goes to its family."""
    gap: PriceGap | None = None
    cost: Cost | None = None
    uncached: Cost | None = None
    """What it would have cost with no prompt cache."""
    rates: CallRates | None = None


class CallPricer:
    """Prices calls. Remembers the models it has looked up: a session asks for the same one all the time.

    `emit` is called once for each model that no table knows, or that has no price.
    """

    __slots__ = ("_catalog", "_emit", "_known", "_reprice")

    def __init__(
        self, catalog: Catalog = CATALOG, reprice: Model | None = None, emit: Emit = ignore_event
    ) -> None:
        self._catalog = catalog
        self._reprice = reprice
        self._emit = emit
        self._known: dict[str, Model] = {}

    def find(self, name: str) -> Model:
        """The model of that name, whatever prices are asked for."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._catalog.find(name or UNNAMED_MODEL)
            if not found.tariffs:  # of a model that is only on the price list, what counts here is known
                self._catalog.find(name or UNNAMED_MODEL, self._emit)
        return found

    def price(self, usage: Usage, name: str, when: datetime | None) -> CallPrice:
        model = self.find(name)
        if self._reprice is not None:
            return self._at(_as_standard(usage), self._reprice, None, model.name)
        for run in usage.iterations:
            if run.model:
                self.find(run.model)  # so that a model without a price is reported
        return self._at(usage, model, when, model.name)

    def _at(self, usage: Usage, model: Model, when: datetime | None, row: str) -> CallPrice:
        spent = compute_cost(usage, model, when=when, catalog=self._catalog)
        if spent is None:
            gap = _gap(usage, model)
            return CallPrice(row=_ROWS[gap].format(row), gap=gap)
        bare = compute_uncached_cost(usage, model, when=when, catalog=self._catalog)
        return CallPrice(row=row, gap=None, cost=spent, uncached=bare, rates=self._rates(usage, model, when))

    def _rates(self, usage: Usage, model: Model, when: datetime | None) -> CallRates | None:
        """Of the request's own tokens: what was billed beside them (compaction) says nothing of theirs."""
        own = replace(usage, iterations=())
        tariff, spent = model.prices_at(when), compute_cost(own, model, when=when, catalog=self._catalog)
        if tariff is None or spent is None:
            return None
        prices = tariff.for_prompt(own.prompt)
        written = own.written_5m * prices.written_5m + own.written_1h * prices.written_1h
        unread = own.fresh * prices.fresh + written
        listed = unread + own.read * prices.read + own.output * prices.output
        # Batch, region and speed: they hold for what was not read, too.
        factor = spent.total * 1_000_000 / listed if listed else ONE
        read, count = factor * prices.read, own.fresh + own.written
        return CallRates(read / 1_000_000, (factor * unread / count if count else read) / 1_000_000)


def _gap(usage: Usage, model: Model) -> PriceGap:
    if not model.tariffs:
        return "model"
    return "speed" if usage.speed == FAST_SPEED and model.fast_factor is None else "runs"


def _as_standard(usage: Usage) -> Usage:
    """Without what only its own model has: its fast mode, and other models beside it."""
    runs = tuple(replace(run, model=None) for run in usage.iterations)
    return replace(usage, speed=None, iterations=runs)


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
        for run in (usage, *usage.untotaled):
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


# What each tool result cost.

MAX_COSTLY_RESULTS = 10
MAX_LABEL_CHARS = 120
LABEL_ARGUMENTS = (
    *("file_path", "notebook_path", "pattern", "path", "filename", "command", "cmd", "query", "url"),
    *("description", "prompt", "arguments", "input"),
)
"""Which argument tells a reader best what a tool was asked, most telling first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostlyResult:
    session: str
    tool: str
    label: str
    """What it was asked: a path, a command, a pattern."""
    at: datetime | None
    tokens: int
    """Estimated."""
    sent: int
    """How many calls carried it."""
    usd: Decimal | None
    """Its share of their bills; None where the model has no price."""

    @property
    def rank(self) -> tuple[Decimal, int]:
        """Dollars first; without a price, tokens sent."""
        return (self.usd or Decimal(0), self.tokens * self.sent)


@dataclass(slots=True, kw_only=True)
class _Tracked:
    tool: str
    label: str
    at: datetime | None
    tokens: float
    after_tokens: int
    """How much of the prompt stands before it, at least."""
    first_call: int = 0
    first_total: float = 0.0
    usd: float = 0.0
    is_sent: bool = False


@dataclass(frozen=True, slots=True)
class _Asked:
    tool: str
    label: str


class ResultCosts:
    """Follows the tool results of one conversation. A call costs the same however many there are."""

    __slots__ = (
        "_asked",
        "_calls",
        "_costly",
        "_is_priced",
        "_live",
        "_prompt",
        "_read_total",
        "_serial",
        "_unsent",
    )

    def __init__(self) -> None:
        self._asked: dict[ToolUseId, _Asked] = {}
        self._live: dict[ToolUseId, _Tracked] = {}
        self._unsent: list[_Tracked] = []
        self._read_total = 0.0
        """The sum of all calls' read prices: what one token costs from a call to another is a difference."""
        self._calls = 0
        self._prompt = 0
        self._is_priced = False
        self._serial = 0
        self._costly: list[tuple[Decimal, int, int, CostlyResult]] = []

    def ask(self, blocks: Iterable[Block]) -> None:
        """Tools were called."""
        for block in blocks:
            if isinstance(block, ToolUse):
                self._asked[block.id] = _Asked(block.name, label_tool_input(block.input))

    def label(self, id: ToolUseId) -> str:  # noqa: A002 - the wire's own name
        asked = self._asked.get(id)
        return asked.label if asked else ""

    def add(self, id: ToolUseId, tokens: float, at: datetime | None) -> None:  # noqa: A002
        """A result joined the context."""
        asked = self._asked.pop(id, _Asked("", ""))
        tracked = _Tracked(
            tool=asked.tool, label=asked.label, at=at, tokens=tokens, after_tokens=self._prompt
        )
        self._live[id] = tracked
        self._unsent.append(tracked)

    def bill(self, prompt_tokens: int, read_tokens: int, rates: CallRates | None, *, is_break: bool) -> None:
        """A call carried all that is here."""
        read, paid = (float(rates.read), float(rates.paid)) if rates else (0.0, 0.0)
        self._is_priced = self._is_priced or rates is not None
        if is_break:
            for tracked in self._live.values():
                if tracked.is_sent and tracked.after_tokens >= read_tokens:
                    tracked.usd += tracked.tokens * (paid - read)
        self._read_total += read
        self._calls += 1
        for tracked in self._unsent:
            tracked.is_sent = True
            tracked.usd += tracked.tokens * paid
            tracked.first_call, tracked.first_total = self._calls - 1, self._read_total
        self._unsent.clear()
        self._prompt = prompt_tokens

    def skip(self, prompt_tokens: int) -> None:
        """A call carried all that is here, and is counted elsewhere."""
        for tracked in self._unsent:
            tracked.is_sent = True
            tracked.first_call, tracked.first_total = self._calls, self._read_total
        self._unsent.clear()
        self._prompt = prompt_tokens

    def drop(self, ids: Iterable[ToolUseId]) -> None:
        """Results left the context: what they cost is final."""
        for id in ids:  # noqa: A001
            tracked = self._live.pop(id, None)
            if tracked and tracked.is_sent:
                self._keep(self._finished(tracked))

    def finish(self, session: str) -> tuple[CostlyResult, ...]:
        """The most expensive of all, those still in the context included."""
        self.drop(list(self._live))
        ordered = sorted(self._costly, key=lambda entry: entry[:3], reverse=True)
        return tuple(replace(item, session=session) for *_, item in ordered)

    def _finished(self, tracked: _Tracked) -> CostlyResult:
        usd = tracked.usd + tracked.tokens * (self._read_total - tracked.first_total)
        return CostlyResult(
            session="",
            tool=tracked.tool,
            label=tracked.label,
            at=tracked.at,
            tokens=round(tracked.tokens),
            sent=self._calls - tracked.first_call,
            usd=Decimal(usd).quantize(NANO_USD) if self._is_priced else None,
        )

    def _keep(self, item: CostlyResult) -> None:
        if not item.sent:
            return
        self._serial -= 1  # of equals the first stays; results themselves have no order
        entry = (*item.rank, self._serial, item)
        if len(self._costly) < MAX_COSTLY_RESULTS:
            heapq.heappush(self._costly, entry)
        elif entry[:3] > self._costly[0][:3]:
            heapq.heapreplace(self._costly, entry)


def choose_costliest(results: Iterable[CostlyResult]) -> tuple[CostlyResult, ...]:
    """The most expensive of several sessions'."""
    return tuple(heapq.nlargest(MAX_COSTLY_RESULTS, results, key=lambda item: item.rank))


def label_tool_input(asked: JsonObject) -> str:
    """A tool's request in a few words: its most telling argument, on one line."""
    for key in LABEL_ARGUMENTS:
        value = asked.get(key)
        if isinstance(value, tuple):
            value = " ".join(item for item in value if isinstance(item, str))
        if isinstance(value, str) and value.strip():
            return " ".join(value[: 4 * MAX_LABEL_CHARS].split())[:MAX_LABEL_CHARS]
    return ""
