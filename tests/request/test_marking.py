"""After a cut the cache is read up to a place that is still in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sevenfold.core.capabilities import choose_capabilities
from sevenfold.core.catalog import CATALOG
from sevenfold.core.messages import Message
from sevenfold.core.requests import Frame
from sevenfold.request.marking import Marking
from sevenfold.request.placement import CacheSettings
from tests.request.talks import spoken

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
MODEL = CATALOG.find("claude-opus-4-5")
ROUNDS = 40
"""More than a marker looks back, in every sense."""


def marks_after_cut(ttl: str, between: timedelta, first: int) -> set[int]:
    """The messages marked by the request after so many rounds, when the view changes from this message on."""
    frame = Frame(MODEL.name, 8_000, "system")
    marking = Marking(CacheSettings(ttl=ttl))
    marking.use(frame, MODEL, choose_capabilities(MODEL, "anthropic"), 20_000)
    view: list[Message] = []
    now = NOON
    for number in range(ROUNDS):
        view += [spoken(f"asked {number}"), Message("assistant", spoken(f"said {number}").blocks)]
        marking.plan(view, (), now)
        marking.answered(now)
        now += between
    marking.cut(first)
    return {mark.index for mark in marking.plan(view, (), now) if mark.level == "messages"}


@pytest.mark.parametrize("back", [12, 20, 35])
def test_however_far_back_a_cut_begins_reading_goes_on_right_before_it(back: int) -> None:
    first = 2 * (ROUNDS - back)
    assert first - 1 in marks_after_cut("1h", timedelta(seconds=30), first)


def test_a_place_that_nobody_touched_for_a_lifetime_is_not_marked() -> None:
    first = 2 * (ROUNDS - 20)
    # Ten minutes back: only the frame and the ends of the last five minutes are in the cache.
    assert marks_after_cut("5m", timedelta(seconds=30), first) == {2 * ROUNDS - 1}
    assert first - 1 in marks_after_cut("5m", timedelta(seconds=10), first)
