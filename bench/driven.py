"""The fast accounting of a policy against the real request path, on recorded sessions.

    python bench/driven.py --data FOLDER                    # exit code 1 if a bar is missed
    python bench/driven.py --data FOLDER --limit 6 --json
    python bench/driven.py --data FOLDER --every 4          # a cross-section by size

Every session over 50,000 tokens is sent again through `Session.prepare`, with markers, under each policy, and
billed by the cache model; what was cleared and is needed again is asked for again. Printed: a policy's cost
over the optimum of `bench/economics.py`, median and 95th percentile, both ways; how far apart they lie; and
the worst session against keeping everything. Bars: no break of the prefix that nobody announced, and
`thrift` not dearer than `ski` at any price.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from economics import DEARER, RATES, Rate, percentile_95, session_files

from sevenfold.replay.policies import CLEARING_POLICIES
from sevenfold.replay.policies.counterfactual import play_recording
from sevenfold.replay.policies.policy_trial import find_optimum
from sevenfold.replay.policies.recording import read_message_segments, read_recordings
from sevenfold.replay.policies.resend import resend_session
from sevenfold.store.foreign.transcripts import detect_agent

NAMES = ("balanced", "thrift", "ski", "fixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One session under one policy at one rate. Costs are over the optimum's."""

    session: str
    ttl: str
    read: float
    policy: str
    driven: float
    """Through the request path."""
    fast: float
    """By figures alone."""
    against_keep: float
    """Through the request path, over what keeping everything costs there."""
    fast_against_keep: float
    tax: float
    """Of the driven cost, for what was read again."""
    unannounced: int
    requests: int


def measure(path: Path) -> list[Row]:
    agent = detect_agent(path)
    found = read_recordings(path, agent) if agent else []
    if agent is None or not found:
        return []
    recording, segments = found[0], read_message_segments(path, agent)
    rows: list[Row] = []
    for rate in RATES:
        best = find_optimum(recording, rate.rates).cost
        keep = resend_session(segments, recording, CLEARING_POLICIES["keep"], rate.rates)
        kept = play_recording(recording, CLEARING_POLICIES["keep"], rate.rates)
        for policy in NAMES:
            done = resend_session(segments, recording, CLEARING_POLICIES[policy], rate.rates)
            played = play_recording(recording, CLEARING_POLICIES[policy], rate.rates)
            rows.append(
                Row(
                    session=path.stem,
                    ttl=rate.ttl,
                    read=rate.read,
                    policy=policy,
                    driven=done.cost / best,
                    fast=played.cost / best,
                    against_keep=done.cost / keep.cost,
                    fast_against_keep=played.cost / kept.cost,
                    tax=done.reread_cost / done.cost,
                    unannounced=done.unannounced + keep.unannounced,
                    requests=done.requests,
                )
            )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder with sessions/**/*.jsonl")
    parser.add_argument("--limit", type=int, help="so many sessions, the largest first")
    parser.add_argument("--every", type=int, default=1, help="only every so many of them")
    parser.add_argument("--json", action="store_true", help="every session, for machines")
    given = parser.parse_args()
    paths = session_files(given.data)[given.every - 1 :: given.every][: given.limit]
    if not paths:
        parser.error(f"no session of over 50,000 tokens in {given.data}")
    started = time.monotonic()
    rows: list[Row] = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for number, found in enumerate(pool.map(measure, paths), 1):
            rows += found
            print(f"\r· {number} of {len(paths)} sessions", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
        return 0
    return report(rows, len(paths), time.monotonic() - started)


def report(rows: Sequence[Row], sessions: int, seconds: float) -> int:
    print(f"{sessions} sessions of over 50,000 tokens, in {seconds:.0f} s; cost ÷ optimum\n")
    print(f"{'':24}{'request path':>16}{'figures':>15}{'apart':>8}{'vs keep':>9}{'tax':>7}")
    print(f"{'cache':6} {'read':6} {'policy':10}{'median':>8}{'p95':>8}{'median':>8}{'p95':>7}{'median':>8}")
    is_beaten = True
    for rate in RATES:
        for policy in NAMES:
            print_row(rate, policy, pick(rows, rate, policy))
        thrift = [row.driven for row in pick(rows, rate, "thrift")]
        ski = [row.driven for row in pick(rows, rate, "ski")]
        is_beaten = (
            is_beaten and median(thrift) <= median(ski) and percentile_95(thrift) <= percentile_95(ski)
        )
        print()
    dearer = [row for row in rows if row.policy in {"balanced", "thrift"} and row.against_keep > DEARER]
    for row in sorted(dearer, key=lambda row: -row.against_keep):
        print(
            f"{row.against_keep:.3f} of keeping: {row.policy} {row.ttl} {row.read:<5} {row.session[:8]},"
            f" re-reads {row.tax:.1%}"
        )
    broken, sent = sum(row.unannounced for row in rows), sum(row.requests for row in rows)
    print(f"{told(not broken)}  {broken} unannounced breaks in {sent:,} requests (bar: none)")
    print(f"{told(is_beaten)}  thrift is not dearer than ski, by median and 95th percentile, at any price")
    return 0 if is_beaten and not broken else 1


def pick(rows: Sequence[Row], rate: Rate, policy: str) -> list[Row]:
    return [row for row in rows if (row.ttl, row.read, row.policy) == (rate.ttl, rate.read, policy)]


def print_row(rate: Rate, policy: str, rows: Sequence[Row]) -> None:
    driven, fast = [row.driven for row in rows], [row.fast for row in rows]
    apart = median(abs(row.against_keep - row.fast_against_keep) for row in rows)
    tax = median(row.tax for row in rows)
    print(
        f"{rate.ttl:6} {rate.read:<6} {policy:10}{median(driven):8.3f}{percentile_95(driven):8.3f}"
        f"{median(fast):8.3f}{percentile_95(fast):7.3f}{apart:8.3f}"
        f"{max(row.against_keep for row in rows):9.3f}{tax:7.1%}"
    )


def told(is_met: bool) -> str:
    return "met   " if is_met else "MISSED"


if __name__ == "__main__":
    sys.exit(main())
