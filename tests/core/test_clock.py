from __future__ import annotations

import time
from datetime import UTC, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.clock import Clock, ManualClock, SystemClock

spans = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=365))
jumps = st.timedeltas(min_value=timedelta(days=-365), max_value=timedelta(days=365))


def test_the_system_clock_tells_the_time_in_utc() -> None:
    assert SystemClock().now().tzinfo is UTC


def test_uptime_never_steps_back() -> None:
    clock: Clock = SystemClock()
    readings = [clock.uptime() for _ in range(1000)]
    assert readings == sorted(readings)
    assert readings[0] > timedelta(0)


def test_uptime_is_that_of_the_clock_that_goes_on_through_sleep() -> None:
    which = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    before = timedelta(microseconds=time.clock_gettime_ns(which) // 1_000)
    found = SystemClock().uptime()
    assert before <= found <= timedelta(microseconds=time.clock_gettime_ns(which) // 1_000)


def test_a_manual_clock_stands_still_until_it_is_told() -> None:
    clock: Clock = ManualClock()
    assert (clock.now(), clock.uptime()) == (clock.now(), clock.uptime())
    assert clock.now().tzinfo is UTC


@given(st.lists(spans))
def test_passing_time_moves_both_clocks_together(steps: list[timedelta]) -> None:
    clock = ManualClock()
    wall, up = clock.now(), clock.uptime()
    for step in steps:
        clock.pass_time(step)
    assert clock.now() - wall == clock.uptime() - up == sum(steps, timedelta(0))


@given(jumps)
def test_setting_the_wall_clock_leaves_uptime_alone(jump: timedelta) -> None:
    clock = ManualClock()
    wall, up = clock.now(), clock.uptime()
    clock.step_wall(jump)
    assert clock.now() - wall == jump
    assert clock.uptime() == up
