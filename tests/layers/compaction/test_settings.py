"""Layer 4's switches."""

from __future__ import annotations

import pytest

from sevenfold.core.tokens import WindowFacts, WindowSettings, plan_thresholds
from sevenfold.layers.compaction.policy import CompactSettings


@pytest.mark.parametrize(
    ("enabled", "auto", "is_automatic"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_compaction_is_automatic_only_while_both_switches_are_on(
    enabled: bool, auto: bool, is_automatic: bool
) -> None:
    settings = CompactSettings(enabled=enabled, auto_compact_enabled=auto)
    assert settings.is_automatic == is_automatic
    facts = WindowFacts(200_000, 64_000, settings.is_automatic, settings.auto_compact_pct)
    assert plan_thresholds(facts, WindowSettings()).is_compact_due(167_000) == is_automatic
