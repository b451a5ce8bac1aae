"""Recorded sessions through the real request path."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sevenfold.layers.microcompact.policy import choose_prefix_by_price
from sevenfold.replay.policies import CLEARING_POLICIES
from sevenfold.replay.policies.counterfactual import CacheRates, play_recording
from sevenfold.replay.policies.policy_trial import LIFETIME_RATES
from sevenfold.replay.policies.recording import (
    MessageSegment,
    Recording,
    read_message_segments,
    read_recordings,
)
from sevenfold.replay.policies.resend import ResendOutcome, resend_session

FIVE = LIFETIME_RATES["5m"]
QUOTED = "the line of file number {} that an edit quotes"


@dataclass(frozen=True, slots=True)
class Session:
    segments: list[MessageSegment]
    recording: Recording

    def drive(self, policy: str, rates: CacheRates = FIVE, *, is_signed: bool = False) -> ResendOutcome:
        settings = CLEARING_POLICIES[policy]
        return resend_session(self.segments, self.recording, settings, rates, is_signed=is_signed)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Thirty rounds of reading, a pause over the cache's life after twenty."""
    return read(tmp_path, [reading(number) for number in range(30)])


@pytest.fixture
def editing(tmp_path: Path) -> Session:
    """The same, and at its end two edits of the file that was read first."""
    return read(tmp_path, [*(reading(number) for number in range(30)), edit(30), edit(31)])


def reading(number: int) -> dict[str, object]:
    given = {"file_path": f"/s/{number}.py"}
    return {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": given}


def edit(number: int) -> dict[str, object]:
    given = {"file_path": "/s/0.py", "old_string": QUOTED.format(0), "new_string": "other"}
    return {"type": "tool_use", "id": f"t{number}", "name": "Edit", "input": given}


def read(folder: Path, uses: list[dict[str, object]], *, first_time: int = 0) -> Session:
    """These calls as plain messages; those before `first_time` were logged without one."""
    lines: list[object] = [{"role": "user", "content": "read", "meta": {}}]
    for number, use in enumerate(uses):
        at = number * 20 + (600 if number >= 20 else 0)
        said = f"{QUOTED.format(number)}\n" + f"x = {number}\n" * 800 if use["name"] == "Read" else "done"
        found = {"type": "tool_result", "tool_use_id": use["id"], "content": said}
        usage = {"input_tokens": 50_000, "output_tokens": 10}
        asked: dict[str, object] = {"model": "claude-opus-5", "usage": usage}
        told: dict[str, object] = {}
        if number >= first_time:
            asked["ts"], told["ts"] = stamp(at + 5), stamp(at + 10)
        lines += [
            {"role": "assistant", "content": [use], "meta": asked},
            {"role": "user", "content": [found], "meta": told},
        ]
    path = folder / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Session(read_message_segments(path, "messages"), read_recordings(path, "messages")[0])


def stamp(seconds: int) -> str:
    return (datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat()


def test_every_policy_sends_every_round_and_breaks_nothing_unannounced(session: Session) -> None:
    runs = {name: session.drive(name) for name in CLEARING_POLICIES}
    assert {run.requests for run in runs.values()} == {30}
    assert {run.unannounced for run in runs.values()} == {0}
    assert runs["keep"].cuts == 0
    assert runs["thrift"].cuts > 0


def test_clearing_costs_less_than_keeping_where_the_cache_went_cold(session: Session) -> None:
    keep, thrift = session.drive("keep"), session.drive("thrift")
    assert thrift.cost < keep.cost
    assert thrift.peak_tokens < keep.peak_tokens


def test_a_pause_within_the_caches_life_costs_no_rewrite(session: Session) -> None:
    short, long = session.drive("keep"), session.drive("keep", CacheRates(timedelta(hours=1), FIVE.prices))
    assert long.cost < short.cost
    assert (short.missed, long.missed) == (1, 0)


def test_what_was_cleared_and_is_quoted_is_asked_for_again_once_in_a_round_of_its_own(
    editing: Session,
) -> None:
    keep, thrift = editing.drive("keep"), editing.drive("thrift")
    assert (keep.rereads, keep.reread_cost, keep.requests) == (0, 0.0, 32)
    assert (thrift.rereads, thrift.requests, thrift.unannounced) == (1, 33, 0)


def test_reading_again_costs_a_round_and_the_result_as_the_figures_have_it(editing: Session) -> None:
    driven, played = (
        editing.drive("thrift"),
        play_recording(editing.recording, CLEARING_POLICIES["thrift"], FIVE),
    )
    assert played.rereads == 1
    # The call that asks is written too, which the figures leave out, and a cut may be due before it.
    assert played.reread_cost < driven.reread_cost < 1.3 * played.reread_cost


def test_a_clearing_session_costs_what_the_figures_say(session: Session) -> None:
    played = play_recording(session.recording, CLEARING_POLICIES["thrift"], FIVE)
    assert session.drive("thrift").cost == pytest.approx(played.cost, rel=0.02)


def test_calls_before_the_first_with_a_time_are_sent_and_nothing_is_asked_of_them(tmp_path: Path) -> None:
    found = read(tmp_path, [*(reading(number) for number in range(12)), edit(12)], first_time=3)
    run = found.drive("keep")
    rounds = sum(len(each.rounds) for each in found.recording.segments)
    assert rounds < run.requests == 13
    assert run.rereads == 0


def test_on_a_model_that_signs_the_provider_clears_and_the_figures_agree(editing: Session) -> None:
    keep, thrift = (editing.drive(policy, is_signed=True) for policy in ("keep", "thrift"))
    assert (keep.cuts, keep.unannounced, thrift.unannounced) == (0, 0, 0)
    assert thrift.cuts > 0
    assert thrift.rereads == 1
    assert thrift.cost < keep.cost
    settings = CLEARING_POLICIES["thrift"]
    played = play_recording(editing.recording, settings, FIVE, by_price=choose_prefix_by_price)
    assert thrift.cost == pytest.approx(played.cost, rel=0.03)
