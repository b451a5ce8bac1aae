"""Layer 2, microcompaction: which old tool results leave the view, and when.

`balanced` and `thrift` decide by price (`choose_by_price`): what a cut costs now, what it will save, and what
it may cost later. `fixed`, `ski` and `keep` are simpler policies, for comparison and for those who prefer
them. Every clearing is a cut: the caller registers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import inf, sqrt

from sevenfold.layers.microcompact.facts import (
    LONG_TTL,
    CachePrices,
    ClearableResults,
    ClearingFacts,
    ClearingLedger,
    ClearingPlan,
    ClearingPolicy,
    MicrocompactSettings,
    PlacedResult,
    ResultKind,
    compute_cache_prices,
)

# All sums are in tokens at the price of fresh input. With a warm cache, clearing a result means writing
# everything behind it again, and saves reading it in every later round; with a cold cache, clearing is free.
# Either way the agent may need the result again, which costs a round. The chances below were counted on real
# coding sessions; see `docs/economics.md`.

MIN_SAVED_TOKENS = 30
"""Tokens: below this a marker and a look at the spill are no gain."""

REREAD_CHANCE = 0.1
"""That a thousand tokens of a file just seen are quoted by a later edit; grows with the root of the size."""
REREAD_HALF_LIFE = 16.0
"""Results after which that chance has halved."""
REREAD_SHARE: dict[ResultKind, float] = {
    "read": 1.0,
    "edit": 1.0,
    "write": 3.0,
    "list": 0.05,
    "search": 0.05,
    "shell": 0.1,
}
"""Of that chance, by what showed the lines: edits hardly ever quote what searches and commands print."""
REREAD_SUPERSEDED_SHARE = 0.4
"""Of that chance, for a file that was read or written again since."""

USE_CHANCE: dict[ResultKind, float] = {
    "read": 0.33,
    "edit": 0.3,
    "write": 0.5,
    "list": 0.5,
    "search": 0.19,
    "shell": 0.2,
}
"""That a later call uses a path, a name or a line of a result just seen."""
USE_HALF_LIFE = 8.0
USE_SUPERSEDED_SHARE = 0.3

PAID_READS_SHARE = 0.5
"""Of a rewrite that must have been paid in reads first: a cut in every round would rewrite the same tail."""
MAX_RISK_SHARE = 0.01
"""Of what keeping everything would have cost: a loss of that much may be risked before anything was won."""
RECOVERY_ROUNDS = 8
"""In which what is spent beyond that and beyond what was won must be back: a session may end before."""
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
    margin: float
    """How often a rewrite must pay back within the rounds expected."""
    unwon_margin: float
    """The same for the part of a rewrite that nothing won before pays for."""
    unwon_share: float
    """The most that such a part may be, of what keeping everything would have cost so far."""
    reread_margin: float
    """How often the chance of reading a result again is counted; once where lost rounds are counted too."""


CLEARING_WEIGHTS: dict[str, ClearingWeights] = {
    "thrift": ClearingWeights(
        lost_rounds=0.0, margin=1.75, unwon_margin=2.0, unwon_share=0.06, reread_margin=1.75
    ),
    "balanced": ClearingWeights(
        lost_rounds=2.5, margin=2.0, unwon_margin=4.0, unwon_share=0.03, reread_margin=1.0
    ),
}


@dataclass(frozen=True, slots=True)
class _Outlook:
    """One round's figures."""

    facts: ClearingFacts
    weights: ClearingWeights
    ahead: int
    """Rounds for which a clearing is expected to save."""
    ledger: ClearingLedger

    @property
    def fund(self) -> float:
        """What a rewrite may cost without costing more in total than keeping everything."""
        return max(0.0, self.ledger.net_saved + MAX_RISK_SHARE * self.ledger.kept_cost)

    def worth(self, item: PlacedResult, results: ClearableResults) -> float:
        """What clearing this result is expected to save, apart from the rewrite."""
        facts, result, age = self.facts, item.result, results.age(item)
        is_superseded = results.is_superseded(item)
        prices, saved = facts.prices, result.saved_tokens
        gain = prices.read * saved * (self.ahead + 1)
        if facts.is_cold:
            gain += prices.write * saved
        round_cost = prices.read * facts.view_tokens
        chance = estimate_reread_chance(item, age, is_superseded=is_superseded)
        reread = self.weights.reread_margin * chance * (round_cost + prices.write * result.tokens)
        if not self.weights.lost_rounds:
            return gain - reread
        lost = estimate_use_chance(item, age, is_superseded=is_superseded) * round_cost
        return gain - reread - lost * self.weights.lost_rounds

    def risk(self, rewrite_cost: float, saved_tokens: int) -> float:
        """A rewrite that saves so much as this policy weighs it: infinite where it must not be."""
        unwon = max(0.0, rewrite_cost - self.fund)
        if unwon:
            saved_a_round = self.facts.prices.read * (saved_tokens + self.ledger.cleared_tokens)
            if unwon > min(RECOVERY_ROUNDS * saved_a_round, self.weights.unwon_share * self.ledger.kept_cost):
                return inf
        return self.weights.margin * (rewrite_cost - unwon) + self.weights.unwon_margin * unwon


def estimate_reread_chance(item: PlacedResult, age: int, *, is_superseded: bool) -> float:
    """That the agent will have to ask again for this result, once it is cleared."""
    share = REREAD_SHARE[item.result.kind] * (REREAD_SUPERSEDED_SHARE if is_superseded else 1.0)
    size = sqrt(item.result.tokens / 1_000)
    return min(1.0, REREAD_CHANCE * share * size * 0.5 ** (age / REREAD_HALF_LIFE))


def estimate_use_chance(item: PlacedResult, age: int, *, is_superseded: bool) -> float:
    """That something in this result will be used again."""
    share = USE_SUPERSEDED_SHARE if is_superseded else 1.0
    return USE_CHANCE[item.result.kind] * share * 0.5 ** (age / USE_HALF_LIFE)


def estimate_rounds_ahead(facts: ClearingFacts, settings: MicrocompactSettings) -> int:
    """Rounds to come with this cache. A young session may be a short one."""
    usual = settings.rounds_ahead_1h if facts.ttl >= LONG_TTL else settings.rounds_ahead_5m
    return min(usual, int(EXPECTED_ROUNDS_FACTOR * facts.round) + 1)


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
    outlook = _Outlook(
        facts, CLEARING_WEIGHTS[settings.policy], estimate_rounds_ahead(facts, settings), ledger
    )
    is_whole = facts.is_cold or facts.round % FULL_SCAN_ROUNDS == 0
    stale = results.find_stale(settings.keep_last, facts.round, None if is_whole else MAX_SCANNED_RESULTS)
    found = [
        _Candidate(item, worth)
        for item in stale
        if item.result.saved_tokens >= MIN_SAVED_TOKENS and (worth := outlook.worth(item, results)) > 0
    ]
    if not found:
        return None
    if facts.is_cold:
        return _cold_cut([each.item for each in found], settings.policy)
    return _warm_cut(found, outlook, results, settings)


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


@dataclass(frozen=True, slots=True)
class _Candidate:
    item: PlacedResult
    worth: float


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
    found: Sequence[_Candidate], outlook: _Outlook, results: ClearableResults, settings: MicrocompactSettings
) -> ClearingPlan | None:
    """The depth that pays best: every candidate up to there goes."""
    prices, facts = outlook.facts.prices, outlook.facts
    saved = depth = best_saved = best_rewritten = 0
    paid = gain = best = best_gain = 0.0
    is_due = False
    for index, each in enumerate(found, 1):
        saved += each.item.result.saved_tokens
        gain += each.worth
        stale = results.count_stale_rounds(each.item, settings.keep_last, facts.round)
        paid += prices.read * each.item.result.saved_tokens * stale
        rewritten = count_rewrite_tokens(facts, saved, each.item)
        cost = (prices.write - prices.read) * rewritten
        is_due = is_due or paid >= PAID_READS_SHARE * cost
        net = gain - outlook.risk(cost, saved)
        if net > best:
            best, best_gain, depth, best_saved, best_rewritten = net, gain, index, saved, rewritten
    if not is_due or not depth:
        return None
    ids = tuple(each.item.result.id for each in reversed(found[:depth]))
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
    "compute_cache_prices",
]

PRESSURE_TRIGGER = "pressure"
"""What a clearing near the end of the window is by."""


def choose_clearing(
    facts: ClearingFacts, results: ClearableResults, ledger: ClearingLedger, settings: MicrocompactSettings
) -> ClearingPlan | None:
    """What to clear before this request; None: nothing."""
    if not settings.enabled or settings.policy == "keep" or not results.live:
        return None
    found: ClearingPlan | None = None
    if settings.policy == "ski":
        found = choose_ski_rental(facts, results, settings)
    elif settings.policy != "fixed":
        found = choose_by_price(facts, results, ledger, settings)
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
