"""Recorded sessions made up for tests: rounds with results of given sizes, and what later rounds use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.layers.microcompact.facts import describe_clearable
from sevenfold.layers.microcompact.policy import CachePrices
from sevenfold.replay.policies.counterfactual import CacheRates
from sevenfold.replay.policies.fidelity import ResultUse
from sevenfold.replay.policies.recording import RecordedResult, RecordedRound, RecordedSegment, Recording

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
FRAME_TOKENS = 1_000
FIVE = CacheRates(timedelta(minutes=5), CachePrices(0.1, 1.25))
HOUR = CacheRates(timedelta(hours=1), CachePrices(0.05, 2.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A round: what is said before its request, which results join it, and which its answer quotes."""

    said_tokens: int = 100
    results: tuple[int, ...] = ()
    """Their sizes."""
    minutes: int = 1
    """Since the request before."""
    quotes: tuple[int, ...] = ()
    """Results, counted from the session's first, of which a line is quoted. Those not shown yet are none."""
    tool: str = "Read"


def segment(made: Sequence[Made], previous: datetime | None = None) -> RecordedSegment:
    """These rounds, one after another."""
    at, tokens = NOON, FRAME_TOKENS
    rounds: list[RecordedRound] = []
    results: list[RecordedResult] = []
    for number, each in enumerate(made):
        at += timedelta(minutes=each.minutes)
        tokens += each.said_tokens
        first = len(results)
        for size in each.results:
            name = f"/file{len(results)}"
            use = ToolUse(ToolUseId(f"use {len(results)}"), each.tool, JsonObject({"file_path": name}))
            results.append(RecordedResult(describe_clearable(use, size), number, tokens))
            tokens += size
        shown = range(first, len(results))
        uses = tuple(ResultUse("span", (quote,)) for quote in each.quotes if quote < len(results))
        rounds.append(
            RecordedRound(
                started=at, answered=at + timedelta(seconds=9), tokens=tokens, results=shown, uses=uses
            )
        )
    return RecordedSegment(tuple(rounds), tuple(results), FRAME_TOKENS, previous)


def recording(*segments: RecordedSegment) -> Recording:
    return Recording("made up", segments, sum(each.rounds[-1].tokens for each in segments))


def busy_round(chance: Random) -> Made:
    """A round of a kind of which many are worth a cut, warm and cold.

    Drawn by chance, not by hypothesis, which likes sessions too short for two cuts and a pause.
    """
    return Made(
        said_tokens=chance.randint(0, 400),
        results=tuple(chance.choice([30, 60, 900, 5_000]) for _ in range(chance.randint(0, 2))),
        minutes=chance.choice([1, 1, 1, 6]),
        quotes=tuple(chance.randint(0, 12) for _ in range(chance.randint(0, 1))),
        tool=chance.choice(["Read", "Bash", "Grep"]),
    )


made_rounds = st.builds(
    Made,
    said_tokens=st.integers(0, 900),
    results=st.lists(st.integers(1, 4_000), max_size=3).map(tuple),
    minutes=st.sampled_from([1, 2, 6, 70]),
    quotes=st.lists(st.integers(0, 9), max_size=2).map(tuple),
    tool=st.sampled_from(["Read", "Bash", "Grep"]),
)
"""Rounds of every kind."""
