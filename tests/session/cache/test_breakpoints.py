"""After a cut the cache is read up to a place that is still in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from sevenfold.core.cache.prompt_blocks import FIVE_MINUTES
from sevenfold.core.messages import Message
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import (
    ENGINE_ENTRY,
    RequestParams,
    ViewMessage,
    ViewMessages,
    choose_capabilities,
)
from sevenfold.session.cache.breakpoints import BreakpointPlanner, find_caller_breakpoints
from sevenfold.session.cache.placement import CacheSettings
from sevenfold.session.history import CallerBreakpoint
from tests.session.cache.talks import spoken

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
MODEL = CATALOG.find("claude-opus-4-5")
ROUNDS = 40
"""More than a marker looks back, in every sense."""


def marks_after_cut(ttl: str, between: timedelta, first: int) -> set[int]:
    """The messages marked by the request after so many rounds, when the view changes from this message on."""
    frame = RequestParams(model=MODEL.name, max_tokens=8_000, system="system")
    marking = BreakpointPlanner(settings=CacheSettings(ttl=ttl))
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
    # Twenty rounds back is five minutes back, and no more.
    assert first - 1 in marks_after_cut("5m", timedelta(seconds=15), first)
    assert first - 1 not in marks_after_cut("5m", timedelta(seconds=15, microseconds=1), first)


def shown_of(*entries: int) -> ViewMessages:
    shown = ViewMessages()
    for entry in entries:
        shown.append(ViewMessage(spoken(f"message {entry}"), 1.0, entry))
    return shown


def spots(marks: tuple[CallerBreakpoint, ...], shown: ViewMessages, most: int = 4) -> list[tuple[int, int]]:
    return [(one.index, one.block) for one in find_caller_breakpoints(marks, shown, most)]


def mark(message: int, block: int = 0) -> CallerBreakpoint:
    return CallerBreakpoint(message, block, FIVE_MINUTES)


def test_a_callers_marker_stands_wherever_the_view_shows_its_message() -> None:
    # A note of our own is in front, and the history's first two messages were cut away.
    shown = shown_of(ENGINE_ENTRY, 2, 3, 3, 4)
    assert spots((mark(4), mark(2)), shown) == [(1, 0), (4, 0)]
    assert spots((mark(3),), shown) == [(2, 0), (3, 0)]


@pytest.mark.parametrize("gone", [mark(0), mark(ENGINE_ENTRY), mark(-3), mark(9), mark(2, block=1)])
def test_a_callers_marker_on_what_is_not_shown_stands_nowhere(gone: CallerBreakpoint) -> None:
    assert spots((gone,), shown_of(ENGINE_ENTRY, 2)) == []


def test_markers_stand_in_the_order_of_the_view() -> None:
    # What a system message said was held back behind a result.
    assert spots((mark(2), mark(3)), shown_of(0, 1, 3, 2)) == [(2, 0), (3, 0)]


def test_of_more_markers_than_a_request_may_have_the_last_ones_stand() -> None:
    shown = shown_of(0, 1, 2, 3)
    assert spots((mark(3), mark(0), mark(2)), shown, most=2) == [(2, 0), (3, 0)]
    assert spots((mark(3),), shown, most=0) == []


def test_a_view_that_starts_over_forgets_where_messages_stood() -> None:
    shown = shown_of(0, 1, 2)
    shown.start_over(shown_of(ENGINE_ENTRY, 2))
    assert spots((mark(0), mark(2)), shown) == [(1, 0)]


def test_a_callers_marker_costs_no_look_at_the_rest_of_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shown_of(*range(50))
    monkeypatch.delattr(ViewMessages, "__iter__")
    shown.items = Unlooped(shown.items)
    assert spots((mark(7),), shown) == [(7, 0)]


class Unlooped(list[ViewMessage]):
    """A list that nobody may go through."""

    def __iter__(self) -> Iterator[ViewMessage]:
        raise AssertionError("somebody goes through the whole view")
