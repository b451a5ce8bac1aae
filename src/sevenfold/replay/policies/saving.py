"""What clearing old tool results would have saved, as a range: fast enough for every report.

The estimate plays a session by token counts alone. `bench/saving.py` compares it with the real request path,
and says how far the two lie apart on sessions that the correction has not seen: that is the range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sevenfold.core.models import Model
from sevenfold.layers.microcompact.facts import DEFAULT_CACHE_PRICES, compute_cache_prices
from sevenfold.layers.microcompact.policy import choose_by_price, choose_prefix_by_price
from sevenfold.replay.policies import CLEARING_POLICIES, DEFAULT_POLICY
from sevenfold.replay.policies.counterfactual import CacheRates, play_recording
from sevenfold.replay.policies.recording import read_recordings
from sevenfold.replay.report import PlayedSaving, SavingRange
from sevenfold.store.foreign.entries import ForeignAgent

ERROR_MEAN = 0.003
"""How much larger the cost through the request path is than the estimate, as a part of keeping everything."""
ERROR_SPREAD = 0.022
"""The standard deviation of that, from session to session. Both by `bench/saving.py`."""
RANGE_DEVIATIONS = 1.64
"""Of nine sessions in ten."""


@dataclass(frozen=True, slots=True)
class SavingTask:
    path: Path
    agent: ForeignAgent
    model: Model
    ttl: timedelta


@dataclass(frozen=True, slots=True)
class WeightedSaving:
    usd: float
    """What the prompts of the session cost."""
    played: PlayedSaving


def play_saving(task: SavingTask, on_bytes: Callable[[int], None]) -> PlayedSaving | None:
    """The main conversation under our default policy; None where the log is not enough to play it."""
    recordings = read_recordings(task.path, task.agent)
    recording = next((item for item in recordings if item.name == task.path.stem), None)
    on_bytes(task.path.stat().st_size)
    if recording is None:
        return None
    tariff = task.model.prices_at()
    prices = compute_cache_prices(tariff.prices, task.ttl) if tariff else DEFAULT_CACHE_PRICES
    rates = CacheRates(task.ttl, prices)
    is_signed = task.model.is_known and task.model.has_preserved_thinking
    by_price = choose_prefix_by_price if is_signed else choose_by_price
    keep = play_recording(recording, CLEARING_POLICIES["keep"], rates)
    done = play_recording(recording, CLEARING_POLICIES[DEFAULT_POLICY], rates, by_price=by_price)
    return PlayedSaving(keep.cost, done.cost)


def sum_savings(sessions: Iterable[WeightedSaving]) -> SavingRange | None:
    """What all of them together would have saved. The sessions of one person err alike, so a range of many is
    as wide as that of one."""
    known = [item for item in sessions if item.usd > 0 and item.played.keep_cost > 0]
    whole = sum(item.usd for item in known)
    if not known or not whole:
        return None
    kept = sum(item.usd * item.played.cost / item.played.keep_cost for item in known)
    mean = 1 - kept / whole - ERROR_MEAN
    reach = RANGE_DEVIATIONS * ERROR_SPREAD
    return SavingRange(max(0.0, mean - reach), max(0.0, mean + reach), whole, len(known))
