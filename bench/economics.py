"""What clearing old results by price saves on real sessions, beside the best that hindsight could have done.

Every session of more than 50,000 tokens is played under every policy, at three prices of a cache read and for
both lifetimes of the cache. A ratio is a session's cost over that of the cheapest cuts that clear all but the
last five results (`replay/policies/optimum.py`); "vs keep" is the worst session against clearing nothing; "in
view" is the share of what later calls use that some result still shows. The rules are in `docs/economics.md`.

    python bench/economics.py --data DIR                    # the table; exit code 1 if a bar is missed
    python bench/economics.py --data DIR --picture FILE     # and the frontier, as SVG
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path

from economics_picture import Panel, Spot, draw

from sevenfold.layers.microcompact.policy import CachePrices, MicrocompactSettings
from sevenfold.replay.policies import CLEARING_POLICIES
from sevenfold.replay.policies.counterfactual import CacheRates, PolicyOutcome, play_recording
from sevenfold.replay.policies.optimum import find_optimum
from sevenfold.replay.policies.recording import Recording, read_recordings
from sevenfold.store.foreign.transcripts import detect_agent

LEAST_TOKENS = 50_000
PLAIN_CHARS = 4
"""A token, where no index says how large a session is."""
LIFETIMES = {
    "5m": CacheRates(timedelta(minutes=5), CachePrices(0.1, 1.25)),
    "1h": CacheRates(timedelta(hours=1), CachePrices(0.1, 2.0)),
}
READS = (0.1, 0.05, 0.025)
KEEPS = (1, 2, 3, 5, 8, 12)
"""Of the frontier's lines: how many of the last results stay."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A column of the table."""

    ttl: str
    read: float

    @property
    def rates(self) -> CacheRates:
        usual = LIFETIMES[self.ttl]
        return CacheRates(usual.ttl, CachePrices(self.read, usual.prices.write))


RATES = tuple(Rate(ttl, read) for ttl in LIFETIMES for read in READS)


@dataclass(frozen=True, slots=True)
class Played:
    """One session at one rate."""

    session: str
    rate: Rate
    optimum: float
    outcomes: Mapping[str, PolicyOutcome]

    def ratio(self, policy: str) -> float:
        return self.outcomes[policy].cost / self.optimum

    def against_keep(self, policy: str) -> float:
        return self.outcomes[policy].cost / self.outcomes["keep"].cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One policy at one rate, over all sessions."""

    policy: str
    ttl: str
    read: float
    median: float
    p95: float
    against_keep: float
    """Of the worst session."""
    dearer: int
    """Sessions that cost over 1% more than with everything kept."""
    in_view: float
    reachable: float
    cuts: int
    reread_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    policy: str
    ttl: str
    read: float
    name: str
    value: float
    limit: float
    is_floor: bool = False

    @property
    def is_met(self) -> bool:
        return self.value >= self.limit if self.is_floor else self.value <= self.limit


def main() -> int:
    options = read_options()
    started = time.monotonic()
    files = session_files(options.data)
    jobs = [(file, options.picture is not None) for file in files]
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        played = [each for found in pool.imap_unordered(play_file, jobs) for each in found]
    if not played:
        print(f"error: no session of over {LEAST_TOKENS:,} tokens in {options.data}", file=sys.stderr)
        return 1
    rows = [summarise(policy, rate, played) for rate in RATES for policy in CLEARING_POLICIES]
    missed = [bar for bar in bars(rows) if not bar.is_met]
    sessions = len({each.session for each in played})
    if options.json:
        print(json.dumps({"sessions": sessions, "rows": [asdict(row) for row in rows]}))
    else:
        print_table(rows, sessions, time.monotonic() - started)
        print_bars(missed)
    if options.picture is not None:
        options.picture.write_text(draw(panels(played)), encoding="utf-8")
    return 1 if missed else 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What clearing by price saves on recorded sessions.")
    parser.add_argument("--data", type=Path, required=True, help="a folder with sessions/**/*.jsonl")
    parser.add_argument("--picture", type=Path, help="write the frontier here, as SVG")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def session_files(data: Path) -> list[Path]:
    """The transcripts that are large enough, largest first. An index knows; without one, length does."""
    sizes: dict[str, int] = {}
    index = data / "sessions" / "index.jsonl"
    if index.exists():
        for line in index.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            sizes[Path(row["file"]).stem] = row["tokens_est"]
    files = [file for file in (data / "sessions").rglob("*.jsonl") if file != index]
    found = {file: sizes.get(file.stem, file.stat().st_size // PLAIN_CHARS) for file in files}
    large = [file for file in files if found[file] > LEAST_TOKENS]
    return sorted(large, key=lambda file: -found[file])


def play_file(job: tuple[Path, bool]) -> list[Played]:
    file, with_lines = job
    agent = detect_agent(file)
    recordings = read_recordings(file, agent) if agent else []
    return [play_at(recording, rate, with_lines) for recording in recordings[:1] for rate in RATES]


def play_at(recording: Recording, rate: Rate, with_lines: bool) -> Played:
    wanted: dict[str, MicrocompactSettings] = dict(CLEARING_POLICIES)
    if with_lines:
        for policy in ("thrift", "balanced"):
            wanted |= {
                f"{policy} {keep}": replace(CLEARING_POLICIES[policy], keep_last=keep) for keep in KEEPS
            }
    outcomes = {name: play_recording(recording, settings, rate.rates) for name, settings in wanted.items()}
    return Played(recording.name, rate, find_optimum(recording, rate.rates).cost, outcomes)


def summarise(policy: str, rate: Rate, played: Sequence[Played]) -> Row:
    here = [each for each in played if each.rate == rate]
    ratios = [each.ratio(policy) for each in here]
    dearer = [each.against_keep(policy) for each in here]
    outcomes = [each.outcomes[policy] for each in here]
    wanted = sum(each.wanted for each in outcomes) or 1
    in_view = sum(each.in_view for each in outcomes)
    return Row(
        policy=policy,
        ttl=rate.ttl,
        read=rate.read,
        median=statistics.median(ratios),
        p95=percentile_95(ratios),
        against_keep=max(dearer),
        dearer=sum(each > 1.01 for each in dearer),
        in_view=in_view / wanted,
        reachable=(in_view + sum(each.one_pointer_away for each in outcomes)) / wanted,
        cuts=sum(each.cuts for each in outcomes),
        reread_share=sum(each.reread_cost for each in outcomes) / sum(each.cost for each in outcomes),
    )


def percentile_95(values: Sequence[float]) -> float:
    return sorted(values)[round(0.95 * (len(values) - 1))]


def bars(rows: Sequence[Row]) -> list[Bar]:
    """What is claimed, row by row."""
    found: list[Bar] = []
    for row in rows:
        if row.policy == "thrift":
            found += _thrift_bars(row)
        if row.policy == "balanced":
            found.append(_bar(row, "median", row.median, 1.06))
            found.append(_bar(row, "in view", row.in_view, 0.90, is_floor=True))
        if row.policy in {"thrift", "balanced"}:
            found.append(_bar(row, "vs keep", row.against_keep, 1.01))
    return found


def _bar(row: Row, name: str, value: float, limit: float, *, is_floor: bool = False) -> Bar:
    return Bar(
        policy=row.policy, ttl=row.ttl, read=row.read, name=name, value=value, limit=limit, is_floor=is_floor
    )


def _thrift_bars(row: Row) -> list[Bar]:
    if row.ttl == "5m":
        return [_bar(row, "median", row.median, 1.02), _bar(row, "p95", row.p95, 1.08)]
    if row.read == min(READS):
        # Keeping everything is near the optimum here, so that the median says nothing.
        return [_bar(row, "p95", row.p95, 1.12)]
    return [_bar(row, "median", row.median, 1.03), _bar(row, "p95", row.p95, 1.10)]


def print_table(rows: Sequence[Row], sessions: int, seconds: float) -> None:
    print(f"{sessions} sessions of over {LEAST_TOKENS:,} tokens, in {seconds:.0f} s; cost ÷ optimum\n")
    print("cache  read   policy     median    p95  vs keep  >1%  in view  reach   cuts  re-reads")
    last = rows[0].ttl, rows[0].read
    for row in rows:
        if (row.ttl, row.read) != last:
            print()
            last = row.ttl, row.read
        print(
            f"{row.ttl:5}  {row.read:<5}  {row.policy:9}  {row.median:6.3f}  {row.p95:5.3f}"
            f"   {row.against_keep:6.3f}  {row.dearer:3}    {row.in_view:5.3f}  {row.reachable:5.3f}"
            f"  {row.cuts:5}    {row.reread_share:5.1%}"
        )
    print("\nBy the fast account, in which every change of a view is a cut: breaks are not measured here.")


def print_bars(missed: Sequence[Bar]) -> None:
    if not missed:
        print("Every bar is met.")
    for bar in missed:
        sign = "<" if bar.is_floor else ">"
        print(f"MISSED  {bar.policy} {bar.ttl} {bar.read}: {bar.name} {bar.value:.3f} {sign} {bar.limit}")


def panels(played: Sequence[Played]) -> list[Panel]:
    """Cost against what stays in view: a panel for each rate."""
    found: list[Panel] = []
    for rate in RATES:
        spots = [_spot(policy, policy, rate, played) for policy in CLEARING_POLICIES]
        lines = {
            policy: [_spot(f"{policy} {keep}", str(keep), rate, played) for keep in KEEPS]
            for policy in ("thrift", "balanced")
        }
        found.append(Panel(f"{rate.ttl} cache, reads at {rate.read}×", spots, lines))
    return found


def _spot(policy: str, name: str, rate: Rate, played: Sequence[Played]) -> Spot:
    row = summarise(policy, rate, played)
    return Spot(name, row.in_view, row.median)


if __name__ == "__main__":
    sys.exit(main())
