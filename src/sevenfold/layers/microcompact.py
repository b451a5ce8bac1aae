"""Layer 2, microcompaction: which old tool results leave the view, and when.

`balanced` and `thrift` decide by price (`clear_economy`); `fixed`, `ski` and `keep` are there to compare
with, and for those who want their plain behaviour. Every clearing is a cut: the caller registers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sevenfold.layers.clear_economy import choose_economic, choose_ski, rewrite_tokens
from sevenfold.layers.clear_facts import Clearing, CutFacts, MicrocompactSettings, Policy
from sevenfold.layers.shelf import Shelf, Standing
from sevenfold.layers.stakes import CachePrices, Stakes, cache_prices

__all__ = [
    "PRESSURE",
    "CachePrices",
    "Clearing",
    "CutFacts",
    "MicrocompactSettings",
    "Policy",
    "Shelf",
    "Stakes",
    "cache_prices",
    "choose_by_pressure",
    "choose_by_time",
    "choose_clearing",
]

PRESSURE = "pressure"
"""What a clearing near the end of the window is by."""


def choose_clearing(
    facts: CutFacts, shelf: Shelf, stakes: Stakes, settings: MicrocompactSettings
) -> Clearing | None:
    """What to clear before this request; None: nothing."""
    if not settings.enabled or settings.policy == "keep" or not shelf.live:
        return None
    found: Clearing | None = None
    if settings.policy == "ski":
        found = choose_ski(facts, shelf, settings)
    elif settings.policy != "fixed":
        found = choose_economic(facts, shelf, stakes, settings)
    if found is None and (settings.by_time or settings.policy == "fixed"):
        found = choose_by_time(facts, shelf, settings)
    if found is None and (settings.by_pressure or settings.policy == "fixed"):
        found = choose_by_pressure(facts, shelf, settings)
    return found


def choose_by_time(facts: CutFacts, shelf: Shelf, settings: MicrocompactSettings) -> Clearing | None:
    """After a long pause the cache has expired, so clearing breaks nothing."""
    if facts.idle <= timedelta(minutes=settings.idle_minutes):
        return None
    stale = _worthwhile(shelf.stale(settings.idle_keep, facts.round))
    if not stale:
        return None
    minutes = facts.idle // timedelta(minutes=1)
    return _clearing("idle", f"{minutes:,} minutes passed since the last answer", stale, facts, is_bare=True)


def choose_by_pressure(facts: CutFacts, shelf: Shelf, settings: MicrocompactSettings) -> Clearing | None:
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
    return _clearing(PRESSURE, why, stale, facts)


def _worthwhile(stale: Sequence[Standing]) -> list[Standing]:
    return [item for item in stale if item.result.saved_tokens]


def _clearing(
    by: str, why: str, stale: Sequence[Standing], facts: CutFacts, *, is_bare: bool = False
) -> Clearing:
    saved = sum(item.result.saved_tokens for item in stale)
    reason = f"{why}: {len(stale)} results, {saved:,} tokens, are cleared"
    rewritten = 0 if facts.is_cold else rewrite_tokens(facts, saved, stale[-1])
    return Clearing(tuple(item.result.id for item in reversed(stale)), by, reason, saved, rewritten, is_bare)
