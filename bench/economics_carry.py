"""How far the figures of `bench/economics.py` carry: to other sessions, and to sessions that end sooner.

    python bench/economics_carry.py --data DIR [--json]

halves  the two economic policies as they are shipped, scored on random halves of the sessions: median over
        the optimum, share in view, and the worst session against keeping everything
stops   had every session been stopped at every round with over 50,000 tokens behind it: the share of the
        stops at which it would have cost over 1% more than with everything kept, mean over the sessions
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from economics import LEAST_TOKENS, RATES, Rate, session_files

from sevenfold.layers.microcompact.policy import MicrocompactSettings
from sevenfold.replay.policies import CLEARING_POLICIES
from sevenfold.replay.policies.counterfactual import PlayedRequest, PolicyOutcome, play_recording
from sevenfold.replay.policies.optimum import find_optimum
from sevenfold.replay.policies.recording import Recording, read_recordings
from sevenfold.store.foreign.transcripts import detect_agent

NAMES = ("thrift", "balanced")
HALVES = 40
DEARER = 1.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One session under one policy at one rate."""

    policy: str
    rate: Rate
    ratio: float
    against_keep: float
    in_view: int
    wanted: int
    stopped: float | None
    """Of the rounds at which it could have ended: how many would have been dearer. None: it is too short."""


@dataclass(frozen=True, slots=True)
class Run:
    outcome: PolicyOutcome
    costs: list[float]
    """Of all requests up to each round's last."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="a folder with sessions/**/*.jsonl")
    parser.add_argument("--json", action="store_true", help="for machines")
    given = parser.parse_args()
    files = session_files(given.data)
    if not files:
        parser.error(f"no session of over {LEAST_TOKENS:,} tokens in {given.data}")
    with multiprocessing.get_context("spawn").Pool(os.cpu_count() or 1) as pool:
        scores = [score for found in pool.imap(score_file, files) for score in found]
    rows = [summarise(policy, rate, scores) for policy in NAMES for rate in RATES]
    if given.json:
        print(json.dumps(rows))
        return 0
    print(f"{len(files)} sessions, {HALVES} random halves; mean (10th to 90th percentile)\n")
    print(f"{'policy':10}{'cache':7}{'read':7}{'median':24}{'in view':24}{'worst vs keep':24}stops")
    for row in rows:
        spans = "".join(f"{row[name]:24}" for name in ("median", "in_view", "against_keep"))
        print(f"{row['policy']:10}{row['ttl']:7}{row['read']:<7}{spans}{row['stops']:.1%}")
    return 0


def score_file(file: Path) -> list[Score]:
    agent = detect_agent(file)
    found = read_recordings(file, agent) if agent else []
    return [score for rate in RATES for recording in found[:1] for score in score_at(recording, rate)]


def score_at(recording: Recording, rate: Rate) -> list[Score]:
    keep, best = run(recording, CLEARING_POLICIES["keep"], rate), find_optimum(recording, rate.rates).cost
    counted = [place for place, tokens in enumerate(said(recording)) if tokens > LEAST_TOKENS]
    scores: list[Score] = []
    for policy in NAMES:
        ours = run(recording, CLEARING_POLICIES[policy], rate)
        dearer = sum(ours.costs[place] > DEARER * keep.costs[place] for place in counted)
        outcome, stopped = ours.outcome, dearer / len(counted) if counted else None
        score = Score(
            policy=policy,
            rate=rate,
            ratio=outcome.cost / best,
            against_keep=outcome.cost / keep.outcome.cost,
            in_view=outcome.in_view,
            wanted=outcome.wanted,
            stopped=stopped,
        )
        scores.append(score)
    return scores


def run(recording: Recording, policy: MicrocompactSettings, rate: Rate) -> Run:
    starts = [each.started for stretch in recording.segments for each in stretch.rounds]
    costs: list[float] = []

    def note(sent: PlayedRequest) -> None:
        prices = rate.rates.prices
        cost = prices.read * sent.read_tokens + prices.write * (sent.view_tokens - sent.read_tokens)
        before = costs[-1] if costs else 0.0
        # What is read again belongs to the round that wants it.
        if len(costs) < len(starts) and sent.at == starts[len(costs)]:
            costs.append(before + cost)
        else:
            costs[-1] = before + cost

    return Run(play_recording(recording, policy, rate.rates, note), costs)


def said(recording: Recording) -> list[int]:
    """Tokens of all messages before each round's request, boundaries or not."""
    found: list[int] = []
    before = 0
    for stretch in recording.segments:
        found += [before + each.tokens - stretch.frame_tokens for each in stretch.rounds]
        before = found[-1] if found else 0
    return found


def summarise(policy: str, rate: Rate, scores: Sequence[Score]) -> dict[str, object]:
    here = [score for score in scores if (score.policy, score.rate) == (policy, rate)]
    dice = random.Random(5)
    halves = [dice.sample(here, max(1, len(here) // 2)) for _ in range(HALVES)]
    stops = [score.stopped for score in here if score.stopped is not None]
    return {
        "policy": policy,
        "ttl": rate.ttl,
        "read": rate.read,
        "median": spread([statistics.median(score.ratio for score in half) for half in halves]),
        "in_view": spread([share_in_view(half) for half in halves]),
        "against_keep": spread([max(score.against_keep for score in half) for half in halves]),
        "stops": statistics.mean(stops) if stops else 0.0,
    }


def share_in_view(half: Sequence[Score]) -> float:
    return sum(score.in_view for score in half) / (sum(score.wanted for score in half) or 1)


def spread(values: Sequence[float]) -> str:
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    return f"{statistics.mean(values):.3f} ({low:.3f}-{high:.3f})"


if __name__ == "__main__":
    sys.exit(main())
