"""Clearing by price (SPEC C6): what a cut costs now against what it will save, and what it may cost later.

All sums are in tokens at the price of fresh input. While the cache is warm, clearing a result costs writing
again everything behind it, and saves reading it in every round to come. While it is cold everything is
written anyway, so that clearing is free. Either way the agent may need the result again: that costs a round.

The chances below were counted on real coding sessions; `docs/economics.md` says how, and how little the
outcome depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from sevenfold.layers.clear_facts import Clearing, CutFacts, MicrocompactSettings
from sevenfold.layers.shelf import FILE_KINDS, Kind, Shelf, Standing
from sevenfold.layers.stakes import LONG_TTL, Stakes

LEAST_SAVED = 30
"""Tokens: below this a marker and a look at the spill are no gain."""

REREAD_CHANCE = 0.1
"""That a thousand tokens of a file just seen are quoted by a later edit; grows with the root of the size."""
REREAD_HALF_LIFE = 20.0
"""Results after which that chance has halved."""
OTHER_SHARE = 0.1
"""Of that chance, for what searches and commands print: edits hardly ever quote it."""

USE_CHANCE: dict[Kind, float] = {
    "read": 0.33,
    "edit": 0.3,
    "write": 0.5,
    "list": 0.5,
    "search": 0.19,
    "shell": 0.2,
}
"""That a later call uses a path, a name or a line of a result just seen."""
USE_HALF_LIFE = 10.0
SUPERSEDED_SHARE = 0.3
"""Of that chance, for a file that was read or written again since."""

PAID_SHARE = 0.5
"""Of a rewrite that must have been paid in reads first: a cut in every round would rewrite the same tail."""
RISKED_SHARE = 0.01
"""Of what keeping everything would have cost: a loss of that much may be risked before anything was won."""

SCANNED = 64
"""Results that are looked at in every round; older ones every `SCAN_ROUNDS`, for they change no more."""
SCAN_ROUNDS = 16


@dataclass(frozen=True, slots=True)
class Temper:
    """What a policy gives for having things in view, and how it bears risk."""

    lost_rounds: float
    """Rounds that it takes the agent to find again what it wants to use and no longer sees."""
    margin: float
    """How often a rewrite must pay back within the rounds expected."""
    unwon_margin: float
    """The same for the part of a rewrite that nothing won before pays for."""


TEMPERS: dict[str, Temper] = {
    "thrift": Temper(lost_rounds=0.0, margin=1.75, unwon_margin=2.0),
    "balanced": Temper(lost_rounds=2.0, margin=2.0, unwon_margin=3.0),
}


@dataclass(frozen=True, slots=True)
class _Outlook:
    """One round's figures."""

    facts: CutFacts
    temper: Temper
    ahead: int
    """Rounds for which a clearing is expected to save."""
    fund: float
    """What may be lost on a rewrite without being worse off than with everything kept."""

    def worth(self, item: Standing, shelf: Shelf) -> float:
        """What clearing this result is expected to save, apart from the rewrite."""
        facts, result, age = self.facts, item.result, shelf.age(item)
        prices, saved = facts.prices, result.saved_tokens
        gain = prices.read * saved * (self.ahead + 1)
        if facts.is_cold:
            gain += prices.write * saved
        round_cost = prices.read * facts.view_tokens
        reread = reread_chance(item, age) * (round_cost + prices.write * result.tokens)
        if not self.temper.lost_rounds:
            return gain - reread
        lost = use_chance(item, age, is_superseded=shelf.is_superseded(item)) * round_cost
        return gain - reread - lost * self.temper.lost_rounds

    def risk(self, rewrite_cost: float) -> float:
        """A rewrite as this policy weighs it."""
        paid_for = min(rewrite_cost, max(0.0, self.fund))
        return self.temper.margin * paid_for + self.temper.unwon_margin * (rewrite_cost - paid_for)


def reread_chance(item: Standing, age: int) -> float:
    """That the agent will have to ask again for this result, once it is cleared."""
    share = 1.0 if item.result.kind in FILE_KINDS else OTHER_SHARE
    size = sqrt(item.result.tokens / 1_000)
    return min(1.0, REREAD_CHANCE * share * size * 0.5 ** (age / REREAD_HALF_LIFE))


def use_chance(item: Standing, age: int, *, is_superseded: bool) -> float:
    """That something in this result will be used again."""
    share = SUPERSEDED_SHARE if is_superseded else 1.0
    return USE_CHANCE[item.result.kind] * share * 0.5 ** (age / USE_HALF_LIFE)


def rounds_ahead(facts: CutFacts, settings: MicrocompactSettings) -> int:
    """Rounds to come with this cache. A young session is as likely as not to end before it doubles."""
    usual = settings.rounds_ahead_1h if facts.ttl >= LONG_TTL else settings.rounds_ahead_5m
    return min(usual, facts.round + 1)


def rewrite_tokens(facts: CutFacts, saved: int, first: Standing) -> int:
    """What is in the cache, stays in the view and has to be written again when the first result goes."""
    return max(0, facts.cached_tokens - saved - first.anchor)


def choose_economic(
    facts: CutFacts, shelf: Shelf, stakes: Stakes, settings: MicrocompactSettings
) -> Clearing | None:
    """All that is worth it while the cache is cold; while it is warm, as deep a cut as pays best, if any."""
    fund = stakes.won + RISKED_SHARE * stakes.kept_cost
    outlook = _Outlook(facts, TEMPERS[settings.policy], rounds_ahead(facts, settings), fund)
    is_whole = facts.is_cold or facts.round % SCAN_ROUNDS == 0
    stale = shelf.stale(settings.keep_last, facts.round, None if is_whole else SCANNED)
    found = [
        _Candidate(item, worth)
        for item in stale
        if item.result.saved_tokens >= LEAST_SAVED and (worth := outlook.worth(item, shelf)) > 0
    ]
    if not found:
        return None
    if facts.is_cold:
        return _cold_cut([each.item for each in found], settings.policy)
    return _warm_cut(found, outlook, shelf, settings)


def choose_ski(facts: CutFacts, shelf: Shelf, settings: MicrocompactSettings) -> Clearing | None:
    """The plain rule: clear all but the last few once the reads paid on them equal the rewrite."""
    stale = [item for item in shelf.stale(settings.idle_keep, facts.round) if item.result.saved_tokens]
    if not stale:
        return None
    if facts.is_cold:
        return _cold_cut(stale, "ski")
    prices, saved, paid = facts.prices, 0, 0
    for item in stale:
        saved += item.result.saved_tokens
        paid += item.result.saved_tokens * shelf.stale_rounds(item, settings.idle_keep, facts.round)
    rewritten = rewrite_tokens(facts, saved, stale[-1])
    if prices.read * paid < (prices.write - prices.read) * rewritten:
        return None
    reason = f"{paid:,} tokens were read of stale results, as dear as writing {rewritten:,} again"
    return Clearing(tuple(item.result.id for item in reversed(stale)), "ski", reason, saved, rewritten)


@dataclass(frozen=True, slots=True)
class _Candidate:
    item: Standing
    worth: float


def _cold_cut(items: Sequence[Standing], policy: str) -> Clearing:
    saved = sum(item.result.saved_tokens for item in items)
    reason = (
        f"the cache is cold: {len(items)} results, {saved:,} tokens, are cleared and nothing is rewritten"
    )
    return Clearing(tuple(item.result.id for item in reversed(items)), policy, reason, saved, 0)


def _warm_cut(
    found: Sequence[_Candidate], outlook: _Outlook, shelf: Shelf, settings: MicrocompactSettings
) -> Clearing | None:
    """The depth that pays best: every candidate up to there goes."""
    prices, facts = outlook.facts.prices, outlook.facts
    saved = depth = best_saved = best_rewritten = 0
    paid = gain = best = best_gain = 0.0
    is_due = False
    for index, each in enumerate(found, 1):
        saved += each.item.result.saved_tokens
        gain += each.worth
        stale = shelf.stale_rounds(each.item, settings.keep_last, facts.round)
        paid += prices.read * each.item.result.saved_tokens * stale
        rewritten = rewrite_tokens(facts, saved, each.item)
        cost = (prices.write - prices.read) * rewritten
        is_due = is_due or paid >= PAID_SHARE * cost
        net = gain - outlook.risk(cost)
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
    return Clearing(ids, settings.policy, reason, best_saved, best_rewritten)
