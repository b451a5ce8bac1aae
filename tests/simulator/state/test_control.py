"""Faults on demand and the virtual clock, from Python and over HTTP."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import InputError
from sevenfold.core.json import JsonObject
from sevenfold.simulator.faults import FaultPlan, SimulatedFault, parse_simulated_fault
from sevenfold.simulator.simulator_state import LATEST_TIME, VirtualClock
from sevenfold.testing import DropFault, SlowFault, StatusFault, StreamFault
from tests.simulator.asking import MARK, PROSE, Asker, text, user

CLOCK, FAULTS = "/_sevenfold/clock", "/_sevenfold/faults"


@pytest.mark.parametrize(
    ("wire", "fault"),
    [
        ({"status": 529}, StatusFault(status=529)),
        (
            {
                "status": 429,
                "retry_after": 1.5,
                "code": "ramp_limit_exceeded",
                "message": "Slow.",
                "should_retry": True,
            },
            StatusFault(
                status=429,
                message="Slow.",
                code="ramp_limit_exceeded",
                retry_after=timedelta(seconds=1.5),
                should_retry=True,
            ),
        ),
        ({}, StatusFault(status=500)),
        ({"fault": "stream_error", "after_events": 2}, StreamFault(2)),
        ({"fault": "drop", "after_events": 1}, DropFault(1)),
        ({"fault": "slow", "first": 1, "each": 0.5}, SlowFault(timedelta(seconds=1), timedelta(seconds=0.5))),
    ],
)
def test_a_fault_is_read_from_json(wire: dict[str, object], fault: SimulatedFault) -> None:
    assert parse_simulated_fault(_object(wire)) == fault


@pytest.mark.parametrize(
    ("wire", "told"),
    [
        ({"status": 418}, "never answers with status 418"),
        ({"fault": "flood"}, "fault 'flood' is unknown"),
        ({"status": 529, "retry_after": -1}, "retry_after must be seconds"),
        ({"status": 529, "retry_after": "soon"}, "retry_after must be seconds"),
        ({"status": 529, "message": 5}, "message must be text"),
        ({"status": 529, "should_retry": "yes"}, "should_retry must be true or false"),
        ({"fault": "drop", "after_events": -1}, "after_events must be a whole number"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(wire: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        parse_simulated_fault(_object(wire))


def _object(wire: dict[str, object]) -> JsonObject:
    from sevenfold.core.json import freeze

    return JsonObject({key: freeze(value) for key, value in wire.items()})


def test_faults_are_met_in_order_and_then_no_more() -> None:
    plan = FaultPlan()
    plan.add(StatusFault(status=529), times=2)
    plan.add(DropFault())
    assert len(plan) == 3
    assert [plan.take() for _ in range(4)] == [
        StatusFault(status=529),
        StatusFault(status=529),
        DropFault(),
        None,
    ]
    with pytest.raises(InputError):
        plan.add(DropFault(), times=0)


def test_faults_are_planned_over_http(ask: Asker) -> None:
    planned = ask.post(FAULTS, {"status": 529, "times": 2}, {})
    assert planned.at("waiting", 1) is not None
    assert [ask.create("Hi").status for _ in range(3)] == [529, 529, 200]
    ask.post(FAULTS, {"status": 500, "times": 5}, {})
    assert ask.send("DELETE", FAULTS, {}).at("waiting") == ()
    assert ask.create("Hi").status == 200
    assert ask.send("GET", FAULTS, {}).at("waiting") == ()


@pytest.mark.parametrize("body", [{"status": 1}, {"status": 529, "times": 0}, {"times": "x"}, []])
def test_a_bad_plan_is_refused_over_http(ask: Asker, body: object) -> None:
    assert ask.post(FAULTS, body, {}).status == 400
    assert ask.create("Hi").status == 200


def test_an_hour_costs_no_time_over_http(ask: Asker) -> None:
    said = user(text(PROSE, cache_control={**MARK, "ttl": "1h"}))
    ask.create(said)
    before = ask.sim.now()
    told = ask.post(CLOCK, {"advance_seconds": 3600}, {})
    assert told.at("now") == (before + timedelta(hours=1)).isoformat()
    assert ask.create(said).usage.read > 0
    ask.post(CLOCK, {"advance_seconds": 3600.5}, {})
    assert ask.create(said).usage.read == 0
    assert ask.send("GET", CLOCK, {}).at("now") == ask.sim.now().isoformat()


@pytest.mark.parametrize(
    "body", [{}, {"advance_seconds": -1}, {"advance_seconds": "1"}, {"advance_seconds": True}]
)
def test_a_clock_goes_forward_alone(ask: Asker, body: dict[str, object]) -> None:
    before = ask.sim.now()
    assert ask.post(CLOCK, body, {}).status == 400
    assert ask.sim.now() == before


@given(st.lists(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=400)), max_size=5))
def test_skipped_time_adds_up(steps: list[timedelta]) -> None:
    under = ManualClock()
    clock = VirtualClock(under)
    for step in steps:
        clock.advance(step)
    assert clock.now() - under.now() == clock.uptime() - under.uptime() == sum(steps, timedelta())


def test_a_virtual_clock_follows_the_one_under_it() -> None:
    under = ManualClock()
    clock = VirtualClock(under)
    clock.advance(timedelta(hours=1))
    before = clock.now()
    under.pass_time(timedelta(minutes=1))
    assert clock.now() - before == timedelta(minutes=1)


@pytest.mark.parametrize("seconds", [10**12, 1e300, 10**700])
def test_a_clock_has_an_end_and_says_so(ask: Asker, seconds: float) -> None:
    before = ask.sim.now()
    refused = ask.post(CLOCK, {"advance_seconds": seconds}, {})
    assert (refused.status, refused.at("error", "type")) == (400, "invalid_request_error")
    most = int((LATEST_TIME - before).total_seconds())
    assert refused.message.startswith(f"advance_seconds must be from 0 to {most}, not 1")
    assert ask.sim.now() == before
    assert ask.post(CLOCK, {"advance_seconds": most}, {}).status == 200
    assert ask.create(user(text(PROSE, cache_control=MARK))).status == 200
    with pytest.raises(InputError, match="at most"):
        ask.sim.advance(timedelta(days=1))
