"""Faults in mid-answer: that each is met by somebody, and what is billed of an answer that breaks."""

from __future__ import annotations

import contextlib

import httpx2
import pytest

from sevenfold.simulator.faults import SimulatedFault
from sevenfold.testing import Choices, DropFault, Entry, SlowFault, StreamFault, say
from tests.simulator.asking import PROSE, Asker, stream


@pytest.mark.rule("streaming-15")
@pytest.mark.parametrize("status", [529, 500])
def test_a_stream_fault_refuses_a_request_that_does_not_stream(ask: Asker, status: int) -> None:
    ask.sim.fail(StreamFault(status=status))
    refused = ask.create("Hi")
    assert (refused.status, refused.message) == (status, "Overloaded")
    assert (ask.sim.last.fault, ask.sim.last.message_id) == ("StreamFault", None)
    assert ask.create("Hi").status == 200


@pytest.mark.parametrize("fault", [StreamFault(), DropFault(), SlowFault()])
def test_a_fault_that_a_refused_request_could_not_meet_waits(ask: Asker, fault: SimulatedFault) -> None:
    ask.sim.fail(fault)
    assert ask.create("Hi", model="nobody").status == 404
    assert ask.sim.last.fault is None
    with contextlib.suppress(httpx2.HTTPError):
        stream(ask, "Hi")
    assert ask.sim.last.fault == type(fault).__name__


@pytest.mark.rule("streaming-15")
@pytest.mark.parametrize("fault", [StreamFault(after_events=99_999), DropFault(after_events=99_999)])
def test_a_fault_planned_for_later_than_the_end_takes_the_last_event(
    ask: Asker, fault: SimulatedFault
) -> None:
    ask.sim.fail(fault)
    if isinstance(fault, DropFault):
        with pytest.raises(httpx2.HTTPError):
            stream(ask, "Hi")
    else:
        assert [event["type"] for event in stream(ask, "Hi")][-2:] == ["message_delta", "error"]
    assert len(ask.sim.ledger.entries) == 1


def broken(ask: Asker, events: int, *, bills_unsent: bool = False) -> Entry:
    choices = Choices(bills_unsent=bills_unsent)
    ask.sim.reset(lambda _: say(PROSE[:640], think=PROSE[:320]), choices=choices)
    ask.sim.fail(StreamFault(after_events=events))
    stream(ask, "Hi", model="claude-opus-4-6", thinking={"type": "adaptive"})
    return ask.sim.last


@pytest.mark.rule("choices-18")
def test_a_stream_that_breaks_is_billed_as_far_as_it_got(ask: Asker) -> None:
    whole = broken(ask, 20, bills_unsent=True).usage
    bills = [broken(ask, events).usage for events in range(40)]
    assert [bill.output for bill in bills] == sorted(bill.output for bill in bills)
    assert [bills[at].output for at in (0, 1, 39)] == [0, 1, whole.output]
    assert 1 < bills[20].output < whole.output
    assert all(bill.thinking <= bill.output for bill in bills)
    assert {bill.fresh for bill in bills} == {whole.fresh}
    entry = broken(ask, 20)
    assert (entry.stop_reason, entry.message_id is not None) == (None, True)
    assert entry.cost is not None
    assert entry.cost.output < broken(ask, 39).cost.output  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.rule("choices-18")
def test_a_compaction_in_a_broken_stream_is_billed_whole(ask: Asker) -> None:
    fields: dict[str, object] = {
        "betas": "compact-2026-01-12",
        "context_management": {
            "edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]
        },
    }
    stream(ask, PROSE * 90, **fields)
    whole = ask.sim.last.usage
    ask.sim.reset()
    ask.sim.fail(StreamFault(after_events=1))
    stream(ask, PROSE * 90, **fields)
    cut = ask.sim.last.usage
    assert (cut.untotaled, cut.output, cut.iterations[-1].output) == (whole.untotaled, 1, 1)
