"""Layer 2, microcompaction: which old tool results leave the view, and when.

`balanced` and `thrift` decide by price (`clear_economy`); `fixed`, `ski` and `keep` are there to compare
with, and for those who want their plain behaviour. Every clearing is a cut: the caller registers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sevenfold.layers.microcompact.clearable_results import ClearableResults, PlacedResult
from sevenfold.layers.microcompact.clearing_ledger import CachePrices, ClearingLedger, compute_cache_prices
from sevenfold.layers.microcompact.economics import choose_by_price, choose_ski_rental, count_rewrite_tokens
from sevenfold.layers.microcompact.facts import (
    ClearingFacts,
    ClearingPlan,
    ClearingPolicy,
    MicrocompactSettings,
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
    facts: ClearingFacts, shelf: ClearableResults, stakes: ClearingLedger, settings: MicrocompactSettings
) -> ClearingPlan | None:
    """What to clear before this request; None: nothing."""
    if not settings.enabled or settings.policy == "keep" or not shelf.live:
        return None
    found: ClearingPlan | None = None
    if settings.policy == "ski":
        found = choose_ski_rental(facts, shelf, settings)
    elif settings.policy != "fixed":
        found = choose_by_price(facts, shelf, stakes, settings)
    if found is None and (settings.by_time or settings.policy == "fixed"):
        found = choose_by_time(facts, shelf, settings)
    if found is None and (settings.by_pressure or settings.policy == "fixed"):
        found = choose_by_pressure(facts, shelf, settings)
    return found


def choose_by_time(
    facts: ClearingFacts, shelf: ClearableResults, settings: MicrocompactSettings
) -> ClearingPlan | None:
    """After a long pause the cache has expired, so clearing breaks nothing."""
    if facts.idle <= timedelta(minutes=settings.idle_minutes):
        return None
    stale = _worthwhile(shelf.stale(settings.idle_keep, facts.round))
    if not stale:
        return None
    minutes = facts.idle // timedelta(minutes=1)
    return _clearing("idle", f"{minutes:,} minutes passed since the last answer", stale, facts, is_bare=True)


def choose_by_pressure(
    facts: ClearingFacts, shelf: ClearableResults, settings: MicrocompactSettings
) -> ClearingPlan | None:
    """Near the end of the window, clearing much at once is better than a summary."""
    if facts.view_tokens <= facts.warning_tokens:
        return None
    if sum(item.result.tokens for item in shelf.live) < settings.pressure_tokens:
        return None
    stale = _worthwhile(shelf.stale(settings.pressure_keep, facts.round))
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
