"""What one session would have cost with old tool results cleared, by token counts alone.

Fast enough for every report. `replay/savings.py` makes a range of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sevenfold.core.models import Model
from sevenfold.layers.microcompact.facts import DEFAULT_CACHE_PRICES, compute_cache_prices
from sevenfold.layers.microcompact.policy import choose_by_price, choose_prefix_by_price
from sevenfold.replay.policies import CLEARING_POLICIES, DEFAULT_POLICY
from sevenfold.replay.policies.counterfactual import CacheRates, play_recording
from sevenfold.replay.policies.recording import read_recordings
from sevenfold.replay.report import PlayedSaving
from sevenfold.store.foreign.entries import ForeignAgent


@dataclass(frozen=True, slots=True)
class SavingTask:
    path: Path
    agent: ForeignAgent
    model: Model
    ttl: timedelta


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
