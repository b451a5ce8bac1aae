"""When to try again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.core.errors import TeamError, TeamOffline, TeamRefused
from sevenfold.team.client.sync_policy import (
    FAILURE_WINDOW,
    LONGEST_RETRY_WAIT,
    MAX_FAILURES,
    RetryState,
    after_failure,
    after_success,
    choose_wait,
)
from tests.examples import up_to

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def fail(pace: RetryState, now: datetime, error: TeamError | None = None, mark: str = "m") -> RetryState:
    return after_failure(pace, now, error or TeamOffline("away"), mark)


def test_the_first_attempt_is_made_at_once_and_each_failure_doubles_the_wait() -> None:
    assert choose_wait(RetryState(), NOON, "m") == ""
    pace, now, waits = RetryState(), NOON, list[int]()
    for _ in range(8):
        pace = fail(pace, now)
        waited = 0
        while choose_wait(pace, now, "m"):
            now, waited = now + SECOND, waited + 1
        waits.append(waited)
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]


def test_what_the_server_asks_for_is_waited_for_within_reason() -> None:
    pace = fail(RetryState(), NOON, TeamOffline("busy", retry_after=timedelta(seconds=90)))
    assert choose_wait(pace, NOON + 89 * SECOND, "m")
    assert not choose_wait(pace, NOON + 90 * SECOND, "m")
    pace = fail(RetryState(), NOON, TeamOffline("busy", retry_after=timedelta(days=90)))
    assert not choose_wait(pace, NOON + LONGEST_RETRY_WAIT, "m")


def test_a_refusal_lasts_until_something_changes() -> None:
    pace = fail(RetryState(), NOON, TeamRefused("no such token", status=401))
    assert "no such token" in choose_wait(pace, NOON + timedelta(days=9), "m")
    assert choose_wait(pace, NOON + timedelta(days=9), "another") == ""


def test_a_success_forgets_all_but_how_often_it_failed() -> None:
    pace = after_success(fail(RetryState(), NOON, TeamRefused("no")), NOON + SECOND)
    assert choose_wait(pace, NOON + SECOND, "m") == ""
    assert pace == RetryState(failures=(NOON,))


@settings(max_examples=up_to(20))
@given(st.lists(st.integers(0, 30), min_size=100, max_size=200))
def test_no_more_than_sixty_attempts_fail_in_an_hour_whatever_changes(gaps: list[int]) -> None:
    pace, now, failures = RetryState(), NOON, list[datetime]()
    for number, gap in enumerate(gaps):
        now += timedelta(seconds=gap)
        if not choose_wait(pace, now, str(number)):
            failures.append(now)
            pace = fail(pace, now, TeamRefused("no"), str(number))
    for moment in failures:
        assert sum(1 for other in failures if moment - FAILURE_WINDOW < other <= moment) <= MAX_FAILURES


@given(st.lists(st.integers(-(10**7), 10**7), min_size=1, max_size=80))
def test_a_clock_that_jumps_never_stops_it_for_long(jumps: list[int]) -> None:
    pace, now = RetryState(), NOON
    for jump in jumps:
        now += timedelta(seconds=jump)
        pace = fail(pace, now)
    assert any(not choose_wait(pace, now + hours * FAILURE_WINDOW, "m") for hours in range(3))
