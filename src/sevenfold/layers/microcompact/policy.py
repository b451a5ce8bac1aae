"""Layer 2, microcompaction: which old tool results leave the view, and when.

`balanced` and `thrift` decide by price (`choose_by_price`): what a cut costs now, what it will save, and what
it may cost later. `fixed`, `ski` and `keep` are simpler policies, for comparison and for those who prefer
them. Every clearing is a cut: the caller registers it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate
from math import sqrt
from typing import TypeAlias

from sevenfold.layers.microcompact.facts import (
    FILE_RESULT_KINDS,
    LONG_TTL,
    CachePrices,
    ClearableResult,
    ClearableResults,
    ClearingFacts,
    ClearingLedger,
    ClearingPlan,
    ClearingPolicy,
    MicrocompactSettings,
    PlacedResult,
    compute_cache_prices,
)

# All sums are in tokens at the price of fresh input. With a warm cache, clearing a result means writing
# everything behind it again, and saves reading it in every later round; with a cold cache, clearing is free.
# Either way the agent may need the result again, which costs a round. The chances below were counted on real
# coding sessions, and `CLEARING_WEIGHTS` chosen by cross-validation; see `docs/economics.md`.

MIN_SAVED_TOKENS = 30
"""Tokens: below this a marker and a look at the spill are no gain."""

USE_CHANCE = 0.3
"""That a later call uses a path, a name or a line of a thousand tokens just seen, whatever tool showed them.
Chances grow with the root of the size."""
QUOTE_CHANCE = 0.12
"""That a later edit quotes a line of a thousand tokens of a file just seen, so that it must be read again."""
OTHER_QUOTE_SHARE = 0.1
"""Of that chance, for results that show no file: edits hardly ever quote what searches and logs print."""
SUPERSEDED_SHARE = 0.4
"""Of both chances, for a file that was read or written again since."""
HALF_AGE = 10.0
"""Results after which both chances have halved; after three times as many, they are a quarter."""

PAID_READS_SHARE = 0.5
"""Of a rewrite that must have been paid in reads first: a cut in every round would rewrite the same tail."""
EXPECTED_ROUNDS_FACTOR = 1.5
"""Rounds to come that a session may hope for, for each that it has had."""

MAX_SCANNED_RESULTS = 96
"""Results that are looked at in every round; older ones every `FULL_SCAN_ROUNDS`: they rarely change."""
FULL_SCAN_ROUNDS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingWeights:
    """How a policy values results in view, and how much risk it takes."""

    lost_rounds: float
    """Rounds that it takes the agent to find again what it wants to use and no longer sees."""
    caution: float
    """How often losses count that nothing won before pays for: the rewrite, and what may be read again."""
    keeps_recent_turns: bool
    """Whether the newest results of this turn and the one before stay while the cache is warm and the view
    small."""


CLEARING_WEIGHTS: dict[str, ClearingWeights] = {
    "thrift": ClearingWeights(lost_rounds=0.0, caution=2.0, keeps_recent_turns=False),
    "balanced": ClearingWeights(lost_rounds=3.5, caution=2.0, keeps_recent_turns=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A result, and what clearing it is expected to win and to lose, apart from the rewrite."""

    item: PlacedResult
    saved: float
    """What its absence saves over the rounds ahead."""
    lost_rounds: float
    """Rounds that it is likely to take to find again what is used of it."""
    reread_rounds: float
    """Rounds that it is likely to take to ask for it again: its chance."""
    reread: float
    """What it then costs to write and carry it."""


class _Outlook:
    """One round's figures."""

    __slots__ = ("_reread_price", "_saved_price", "_weights", "_won", "ahead", "facts")

    def __init__(
        self, facts: ClearingFacts, ledger: ClearingLedger, weights: ClearingWeights, ahead: int
    ) -> None:
        self.facts, prices = facts, facts.prices
        self.ahead = ahead
        """Rounds for which a clearing is expected to save."""
        self._weights, self._won = weights, max(0.0, ledger.net_saved)
        self._saved_price = prices.read * (ahead + 1) + (prices.write if facts.is_cold else 0.0)
        # On average it is back halfway through the rounds ahead, and is carried again.
        self._reread_price = prices.write + prices.read * ahead / 2

    def judge(self, item: PlacedResult, results: ClearableResults) -> _Candidate:
        result = item.result
        chances = estimate_chances(result, results.age(item), is_superseded=results.is_superseded(item))
        return _Candidate(
            item=item,
            saved=self._saved_price * result.saved_tokens,
            lost_rounds=chances.used * self._weights.lost_rounds,
            reread_rounds=chances.quoted,
            reread=chances.quoted * self._reread_price * result.tokens,
        )

    def price_round(self, saved: int) -> float:
        """What another round reads, which is needed for what is gone, once so many tokens are cleared."""
        return self.facts.prices.read * max(0, self.facts.view_tokens - saved)

    def weigh(self, loss: float) -> float:
        """A loss as this policy counts it, given what was won before."""
        return loss + (self._weights.caution - 1) * max(0.0, loss - self._won)


@dataclass(frozen=True, slots=True)
class UseChances:
    """What is likely to happen to a result yet."""

    used: float
    """That something in it will be used again."""
    quoted: float
    """That the agent will have to ask for it again, once it is cleared."""


def estimate_chances(result: ClearableResult, age: int, *, is_superseded: bool) -> UseChances:
    """The chances of a result, by its size, its age and what it shows."""
    scale = sqrt(result.tokens / 1_000) * HALF_AGE / (HALF_AGE + age)
    scale *= SUPERSEDED_SHARE if is_superseded else 1.0
    quoted = QUOTE_CHANCE * (1.0 if result.kind in FILE_RESULT_KINDS else OTHER_QUOTE_SHARE)
    return UseChances(min(1.0, USE_CHANCE * scale), min(1.0, quoted * scale))


def estimate_rounds_ahead(facts: ClearingFacts, settings: MicrocompactSettings) -> int:
    """Rounds to come with this cache. A young session may be a short one."""
    usual = settings.rounds_ahead_1h if facts.ttl >= LONG_TTL else settings.rounds_ahead_5m
    return min(usual, int(EXPECTED_ROUNDS_FACTOR * facts.round) + 1)


def keeps_recent_turns(facts: ClearingFacts, settings: MicrocompactSettings) -> bool:
    """Whether the newest results of this turn and the one before stay, whatever they cost: while the cache is
    warm and the window does not press."""
    pressing = min(settings.recent_turn_tokens, facts.warning_tokens)
    weights = CLEARING_WEIGHTS.get(settings.policy)
    return bool(weights and weights.keeps_recent_turns and not facts.is_cold and facts.view_tokens < pressing)


def count_rewrite_tokens(facts: ClearingFacts, saved: int, first: PlacedResult) -> int:
    """What is in the cache, stays in the view and has to be written again when the first result goes."""
    anchor = first.anchor
    if anchor < facts.live_tokens:
        anchor = min(anchor, facts.marked_tokens)
    return max(0, facts.cached_tokens - saved - anchor)


def choose_by_price(
    facts: ClearingFacts, results: ClearableResults, ledger: ClearingLedger, settings: MicrocompactSettings
) -> ClearingPlan | None:
    """With a cold cache, all results worth clearing; with a warm one, the most profitable cut, if any."""
    weights, ahead = CLEARING_WEIGHTS[settings.policy], estimate_rounds_ahead(facts, settings)
    outlook = _Outlook(facts, ledger, weights, ahead)
    is_whole = facts.is_cold or facts.round % FULL_SCAN_ROUNDS == 0
    stale = results.find_stale(settings.keep_last, facts.round, None if is_whole else MAX_SCANNED_RESULTS)
    first_kept = find_first_kept(facts, results, settings)
    judged = [
        outlook.judge(item, results)
        for item in stale
        if item.order < first_kept and item.result.saved_tokens >= MIN_SAVED_TOKENS
    ]
    price = outlook.price_round(_count_saved(judged))
    found = [each for each in judged if _net(each, price) > 0]
    if not found:
        return None
    if facts.is_cold:
        return _cold_cut([each.item for each in found], settings.policy)
    return _warm_cut(found, outlook, results, settings)


def choose_prefix_by_price(
    facts: ClearingFacts, results: ClearableResults, ledger: ClearingLedger, settings: MicrocompactSettings
) -> ClearingPlan | None:
    """The same where the provider clears: it takes the oldest results up to one of them, whatever each is
    worth, and a cut rewrites all that stands behind the first of them."""
    is_whole = facts.is_cold or facts.round % FULL_SCAN_ROUNDS == 0
    if not is_whole and len(results.live) > MAX_SCANNED_RESULTS:
        return None
    weights, ahead = CLEARING_WEIGHTS[settings.policy], estimate_rounds_ahead(facts, settings)
    outlook = _Outlook(facts, ledger, weights, ahead)
    first_kept = find_first_kept(facts, results, settings)
    stale = (item for item in reversed(results.find_stale(settings.keep_last, facts.round)))
    found = [outlook.judge(item, results) for item in stale if item.order < first_kept]
    if not facts.is_cold:
        return _warm_cut(found, outlook, results, settings, is_prefix=True)
    price = outlook.price_round(_count_saved(found))
    worths = list(accumulate(_net(each, price) for each in found))
    best = max(worths, default=0.0)
    if best <= 0:
        return None
    return _cold_cut([each.item for each in reversed(found[: worths.index(best) + 1])], settings.policy)


def _count_saved(found: Sequence[_Candidate]) -> int:
    return sum(each.item.result.saved_tokens for each in found)


def _net(each: _Candidate, round_price: float) -> float:
    return each.saved - (each.lost_rounds + each.reread_rounds) * round_price - each.reread


def find_first_kept(facts: ClearingFacts, results: ClearableResults, settings: MicrocompactSettings) -> int:
    """From which result on, in order, they stay: the newest of this turn and the one before."""
    first, tokens = results.count + 1, 0
    if not keeps_recent_turns(facts, settings):
        return first
    for item in reversed(results.live):
        tokens += item.result.tokens
        if item.turn < results.turn - 1 or tokens > settings.recent_result_tokens:
            break
        first = item.order
    return first


def choose_ski_rental(
    facts: ClearingFacts, results: ClearableResults, settings: MicrocompactSettings
) -> ClearingPlan | None:
    """The plain rule: clear all but the last few once the reads paid on them equal the rewrite."""
    stale = [item for item in results.find_stale(settings.idle_keep, facts.round) if item.result.saved_tokens]
    if not stale:
        return None
    if facts.is_cold:
        return _cold_cut(stale, "ski")
    prices, saved, paid = facts.prices, 0, 0
    for item in stale:
        saved += item.result.saved_tokens
        paid += item.result.saved_tokens * results.count_stale_rounds(item, settings.idle_keep, facts.round)
    rewritten = count_rewrite_tokens(facts, saved, stale[-1])
    if prices.read * paid < (prices.write - prices.read) * rewritten:
        return None
    reason = f"{paid:,} tokens were read of stale results, as dear as writing {rewritten:,} again"
    return ClearingPlan(
        ids=tuple(item.result.id for item in reversed(stale)),
        by="ski",
        reason=reason,
        saved_tokens=saved,
        rewrite_tokens=rewritten,
    )


def _cold_cut(items: Sequence[PlacedResult], policy: str) -> ClearingPlan:
    saved = sum(item.result.saved_tokens for item in items)
    reason = (
        f"the cache is cold: {len(items)} results, {saved:,} tokens, are cleared and nothing is rewritten"
    )
    return ClearingPlan(
        ids=tuple(item.result.id for item in reversed(items)),
        by=policy,
        reason=reason,
        saved_tokens=saved,
        rewrite_tokens=0,
    )


def _warm_cut(
    found: Sequence[_Candidate],
    outlook: _Outlook,
    results: ClearableResults,
    settings: MicrocompactSettings,
    *,
    is_prefix: bool = False,
) -> ClearingPlan | None:
    """The depth that pays best: every candidate up to there goes. They are the newest first; of a prefix, the
    oldest."""
    prices, facts = outlook.facts.prices, outlook.facts
    saved = depth = best_saved = best_rewritten = 0
    paid = won = lost = again = reread = best = best_gain = 0.0
    is_due = False
    for index, each in enumerate(found, 1):
        saved += each.item.result.saved_tokens
        won, lost = won + each.saved, lost + each.lost_rounds
        again, reread = again + each.reread_rounds, reread + each.reread
        stale = results.count_stale_rounds(each.item, settings.keep_last, facts.round)
        paid += prices.read * each.item.result.saved_tokens * stale
        rewritten = count_rewrite_tokens(facts, saved, found[0].item if is_prefix else each.item)
        cost, price = (prices.write - prices.read) * rewritten, outlook.price_round(saved)
        is_due = is_due or paid >= PAID_READS_SHARE * cost
        gain, loss = won - lost * price, again * price + reread
        net = gain - outlook.weigh(cost + loss)
        if net > best:
            best, best_gain, depth, best_saved, best_rewritten = net, gain - loss, index, saved, rewritten
    if not is_due or not depth:
        return None
    chosen = found[:depth] if is_prefix else found[:depth][::-1]
    ids = tuple(each.item.result.id for each in chosen)
    cost = (prices.write - prices.read) * best_rewritten
    reason = (
        f"{depth} results, {best_saved:,} tokens: some {outlook.ahead} rounds without them save about"
        f" {best_gain:,.0f} tokens' price, writing {best_rewritten:,} again costs {cost:,.0f}"
    )
    return ClearingPlan(
        ids=ids, by=settings.policy, reason=reason, saved_tokens=best_saved, rewrite_tokens=best_rewritten
    )


__all__ = [
    "PRESSURE_TRIGGER",
    "CachePrices",
    "ClearableResults",
    "ClearingFacts",
    "ClearingLedger",
    "ClearingPlan",
    "ClearingPolicy",
    "MicrocompactSettings",
    "choose_by_pressure",
    "choose_by_time",
    "choose_clearing",
    "choose_prefix_by_price",
    "compute_cache_prices",
]

PRESSURE_TRIGGER = "pressure"
"""What a clearing near the end of the window is by."""


PriceRule: TypeAlias = Callable[
    [ClearingFacts, ClearableResults, ClearingLedger, MicrocompactSettings], ClearingPlan | None
]


def choose_clearing(
    facts: ClearingFacts,
    results: ClearableResults,
    ledger: ClearingLedger,
    settings: MicrocompactSettings,
    by_price: PriceRule = choose_by_price,
) -> ClearingPlan | None:
    """What to clear before this request; None: nothing."""
    if not settings.enabled or settings.policy == "keep" or not results.live:
        return None
    found: ClearingPlan | None = None
    if settings.policy == "ski":
        found = choose_ski_rental(facts, results, settings)
    elif settings.policy != "fixed":
        found = by_price(facts, results, ledger, settings)
    if found is None and (settings.by_time or settings.policy == "fixed"):
        found = choose_by_time(facts, results, settings)
    if found is None and (settings.by_pressure or settings.policy == "fixed"):
        found = choose_by_pressure(facts, results, settings)
    return found


def choose_by_time(
    facts: ClearingFacts, results: ClearableResults, settings: MicrocompactSettings
) -> ClearingPlan | None:
    """After a long pause the cache has expired, so clearing breaks nothing."""
    if facts.idle <= timedelta(minutes=settings.idle_minutes):
        return None
    stale = _worthwhile(results.find_stale(settings.idle_keep, facts.round))
    if not stale:
        return None
    minutes = facts.idle // timedelta(minutes=1)
    return _clearing("idle", f"{minutes:,} minutes passed since the last answer", stale, facts, is_bare=True)


def choose_by_pressure(
    facts: ClearingFacts, results: ClearableResults, settings: MicrocompactSettings
) -> ClearingPlan | None:
    """Near the end of the window, clearing much at once is better than a summary."""
    if facts.view_tokens <= facts.warning_tokens:
        return None
    if sum(item.result.tokens for item in results.live) < settings.pressure_tokens:
        return None
    stale = _worthwhile(results.find_stale(settings.pressure_keep, facts.round))
    saved = sum(item.result.saved_tokens for item in stale)
    if not stale or saved < settings.pressure_saves_tokens:
        return None
    why = f"{facts.view_tokens:,} tokens are over the warning at {facts.warning_tokens:,}"
    return _clearing(PRESSURE_TRIGGER, why, stale, facts)


def _worthwhile(stale: Sequence[PlacedResult]) -> list[PlacedResult]:
    return [item for item in stale if item.result.saved_tokens]


def _clearing(
    by: str, why: str, stale: Sequence[PlacedResult], facts: ClearingFacts, *, is_bare: bool = False
) -> ClearingPlan:
    saved = sum(item.result.saved_tokens for item in stale)
    reason = f"{why}: {len(stale)} results, {saved:,} tokens, are cleared"
    rewritten = 0 if facts.is_cold else count_rewrite_tokens(facts, saved, stale[-1])
    return ClearingPlan(
        ids=tuple(item.result.id for item in reversed(stale)),
        by=by,
        reason=reason,
        saved_tokens=saved,
        rewrite_tokens=rewritten,
        is_bare=is_bare,
    )
