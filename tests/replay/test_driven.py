"""Recorded sessions through the real request path."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sevenfold.layers.microcompact import CachePrices
from sevenfold.replay.driven import drive, read_stretches
from sevenfold.replay.policies import POLICIES

FIVE_MINUTES, PRICES = timedelta(minutes=5), CachePrices(0.1, 1.25)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Thirty rounds of reading, a pause over the cache's life after twenty, as plain messages."""
    lines: list[object] = [{"role": "user", "content": "read", "meta": {"ts": stamp(0)}}]
    for number in range(30):
        at = number * 20 + (600 if number >= 20 else 0)
        use = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Read",
            "input": {"file_path": f"/s/{number}.py"},
        }
        found = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"x = {number}\n" * 800}
        usage = {"input_tokens": 50_000, "output_tokens": 10}
        meta = {"ts": stamp(at + 5), "model": "claude-opus-5", "usage": usage}
        lines += [
            {"role": "assistant", "content": [use], "meta": meta},
            {"role": "user", "content": [found], "meta": {"ts": stamp(at + 10)}},
        ]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def stamp(seconds: int) -> str:
    return (datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat()


def test_every_policy_sends_every_round_and_breaks_nothing_unannounced(recording: Path) -> None:
    stretches = read_stretches(recording, "messages")
    runs = {name: drive(stretches, policy, FIVE_MINUTES, PRICES) for name, policy in POLICIES.items()}
    assert {run.requests for run in runs.values()} == {30}
    assert {run.unannounced for run in runs.values()} == {0}
    assert runs["keep"].cuts == 0
    assert runs["thrift"].cuts > 0


def test_clearing_costs_less_than_keeping_where_the_cache_went_cold(recording: Path) -> None:
    stretches = read_stretches(recording, "messages")
    keep = drive(stretches, POLICIES["keep"], FIVE_MINUTES, PRICES)
    thrift = drive(stretches, POLICIES["thrift"], FIVE_MINUTES, PRICES)
    assert thrift.cost < keep.cost
    assert thrift.peak_tokens < keep.peak_tokens


def test_a_pause_within_the_caches_life_costs_no_rewrite(recording: Path) -> None:
    stretches = read_stretches(recording, "messages")
    short = drive(stretches, POLICIES["keep"], FIVE_MINUTES, PRICES)
    long = drive(stretches, POLICIES["keep"], timedelta(hours=1), PRICES)
    assert long.cost < short.cost
    assert (short.missed, long.missed) == (1, 0)
