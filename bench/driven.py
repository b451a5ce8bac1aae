"""The fast accounting of a policy against the real request path, on recorded sessions.

    python bench/driven.py --data FOLDER

Every session over 50,000 tokens is sent again through `Session.prepare`, with markers, under each policy, and
billed by the cache model. Printed: what a policy costs against keeping everything, by both ways, and how far
they lie apart; breaks of the prefix that nobody announced (bar: none).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path

from sevenfold.layers.microcompact import CachePrices
from sevenfold.replay.counterfactual import Rates, play
from sevenfold.replay.counterfactual_record import read_recordings
from sevenfold.replay.driven import drive, read_stretches
from sevenfold.replay.policies import POLICIES

LEAST_TOKENS = 50_000
NAMES = ("balanced", "thrift", "ski", "fixed")
RATES = {
    "5m 0.1": Rates(timedelta(minutes=5), CachePrices(0.1, 1.25)),
    "1h 0.1": Rates(timedelta(hours=1), CachePrices(0.1, 2.0)),
}


@dataclass(frozen=True)
class Row:
    session: str
    rates: str
    policy: str
    driven: float
    """Cost against keeping everything, through the request path."""
    fast: float
    """The same by figures alone."""
    unannounced: int
    requests: int


def measure(path: Path) -> list[Row]:
    found = read_recordings(path, "messages")
    if not found or found[0].tokens < LEAST_TOKENS:
        return []
    recording, stretches = found[0], read_stretches(path, "messages")
    frame = recording.stretches[0].frame_tokens
    rows: list[Row] = []
    for name, rates in RATES.items():
        keep = drive(stretches, POLICIES["keep"], rates.ttl, rates.prices, frame_tokens=frame)
        kept = play(recording, POLICIES["keep"], rates)
        for policy in NAMES:
            done = drive(stretches, POLICIES[policy], rates.ttl, rates.prices, frame_tokens=frame)
            played = play(recording, POLICIES[policy], rates)
            # What has to be read again is charged by the fast way alone: here nobody asks for it.
            fast = (played.cost - played.reread_cost) / kept.cost
            broken = done.unannounced + keep.unannounced
            rows.append(Row(path.stem, name, policy, done.cost / keep.cost, fast, broken, done.requests))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder with sessions/*/*.jsonl")
    parser.add_argument("--limit", type=int, help="so many sessions, the largest first")
    parser.add_argument("--json", action="store_true", help="every session, for machines")
    given = parser.parse_args()
    paths = sorted(given.data.glob("sessions/*/*.jsonl"), key=lambda path: -path.stat().st_size)[
        : given.limit
    ]
    if not paths:
        parser.error(f"no sessions/*/*.jsonl in {given.data}")
    rows: list[Row] = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for number, found in enumerate(pool.map(measure, paths), 1):
            rows += found
            print(f"\r· {number} of {len(paths)} sessions", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
        return 0
    return report(rows)


def report(rows: list[Row]) -> int:
    print(f"{'cache':8} {'policy':10} {'driven ÷ keep':>14} {'fast ÷ keep':>12} {'apart, median':>14}")
    for rates in RATES:
        for policy in NAMES:
            here = [row for row in rows if (row.rates, row.policy) == (rates, policy)]
            driven = statistics.median(row.driven for row in here)
            fast = statistics.median(row.fast for row in here)
            apart = statistics.median(abs(row.driven - row.fast) for row in here)
            print(f"{rates:8} {policy:10} {driven:14.3f} {fast:12.3f} {apart:14.3f}")
    broken = sum(row.unannounced for row in rows)
    sent = sum(row.requests for row in rows)
    print(
        f"{'met' if not broken else 'MISSED'}    {broken} unannounced breaks in {sent:,} requests (bar: none)"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
