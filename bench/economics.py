"""What clearing old results by price saves on real sessions, beside the best that hindsight could have done.

Every session of more than 50,000 tokens is played under every policy, at three prices of a cache read and for
both lifetimes of the cache. A ratio is a session's cost over that of the cheapest cuts that clear all but the
last five results (`replay/policies/policy_trial.py`); "in view" is the share of what later calls use that
some result still shows. The rules are in `docs/economics.md`.

    python bench/economics.py --data DIR                    # the report; exit code 1 if a bar is missed
    python bench/economics.py --data DIR --shipped          # without cross-validation, in a fifth of the time
    python bench/economics.py --data DIR --picture FILE     # and the frontier, as SVG

The report: the policies as they are shipped; how rules that were chosen on other sessions do on sessions that
the choice has not seen (`economics_folds.py`), which is what the bars are for; what it costs that `balanced`
keeps recent turns; and the sessions that are dearest against keeping everything.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path

from economics_folds import (
    KINDS,
    Choice,
    Counted,
    Rule,
    Session,
    count_chances,
    cross_validate,
    describe_session,
    played_rules,
)
from economics_picture import Panel, Spot, draw

from sevenfold.layers.microcompact.policy import CLEARING_WEIGHTS, CachePrices, MicrocompactSettings
from sevenfold.replay.policies import CLEARING_POLICIES
from sevenfold.replay.policies.counterfactual import CacheRates, PolicyOutcome, play_recording
from sevenfold.replay.policies.policy_trial import find_optimum
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
_ALL = 10**9
RECENT: Mapping[str, Mapping[str, int]] = {
    "nothing": {"recent_turn_tokens": 0},
    "as shipped": {},
    "all, to 80,000": {"recent_result_tokens": _ALL},
    "all": {"recent_turn_tokens": _ALL, "recent_result_tokens": _ALL},
}
"""What `balanced` may keep of recent turns; in views below 80,000 tokens, or up to the window's warning."""
DEARER = 1.01
"""Against keeping everything: what counts as dearer."""
WORST_SHOWN = 8


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

    session: Session
    rate: Rate
    optimum: float
    outcomes: Mapping[str, PolicyOutcome]
    counted: Counted

    def ratio(self, policy: str) -> float:
        return self.outcomes[policy].cost / self.optimum

    def against_keep(self, policy: str) -> float:
        return self.outcomes[policy].cost / self.outcomes["keep"].cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One policy at one rate, over some sessions."""

    policy: str
    ttl: str
    read: float
    sessions: int
    median: float
    p95: float
    dearer: int
    """Sessions that cost over 1% more than with everything kept."""
    p99_against_keep: float
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
    tolerance: float
    """A miss by this much is as bad as any other by its own."""
    is_floor: bool = False

    @property
    def miss(self) -> float:
        """By how much it is missed; 0: it is met."""
        over = self.limit - self.value if self.is_floor else self.value - self.limit
        return max(0.0, over) / self.tolerance


OutcomeName = Callable[[Played], str]
"""Under which name a session's outcome counts."""


def main() -> int:
    options = read_options()
    started = time.monotonic()
    jobs = [
        Job(file, not options.shipped, options.picture is not None) for file in session_files(options.data)
    ]
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        played = [each for found in pool.imap(play_file, jobs) for each in found]
    if not played:
        print(f"error: no session of over {LEAST_TOKENS:,} tokens in {options.data}", file=sys.stderr)
        return 1
    sessions = sorted({each.session for each in played}, key=lambda session: session.name)
    rows = [summarise(policy, rate, played) for rate in RATES for policy in CLEARING_POLICIES]
    choices = [] if options.shipped else cross_validate(sessions, Shortfalls(played))
    unseen = score_unseen(played, choices)
    if options.json:
        found = {"sessions": len(sessions), "rows": rows, "unseen": unseen}
        print(json.dumps(found, default=asdict))
    else:
        print_report(played, rows, choices, unseen)
        print(f"\n{time.monotonic() - started:.0f} s")
    if options.picture is not None:
        options.picture.write_text(draw(panels(played)), encoding="utf-8")
    return 1 if any(bar.miss for bar in bars(unseen or rows)) else 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What clearing by price saves on recorded sessions.")
    parser.add_argument("--data", type=Path, required=True, help="a folder with sessions/**/*.jsonl")
    parser.add_argument("--shipped", action="store_true", help="only the policies as they are shipped")
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
    return sorted(large, key=lambda file: (-found[file], file.stem))


@dataclass(frozen=True, slots=True)
class Job:
    file: Path
    with_grid: bool
    with_lines: bool


def play_file(job: Job) -> list[Played]:
    agent = detect_agent(job.file)
    recordings = read_recordings(job.file, agent) if agent else []
    wanted = wanted_settings(job)
    return [
        play_at(recording, describe_session(job.file, recording), rate, wanted)
        for recording in recordings[:1]
        for rate in RATES
    ]


def wanted_settings(job: Job) -> dict[str, MicrocompactSettings]:
    wanted = dict(CLEARING_POLICIES)
    balanced = CLEARING_POLICIES["balanced"]
    wanted |= {recent_name(kept): replace(balanced, **given) for kept, given in RECENT.items()}
    if job.with_grid:
        wanted |= {rule.name: rule.settings for rule in played_rules()}
    for policy in ("thrift", "balanced") if job.with_lines else ():
        wanted |= {f"{policy} {keep}": replace(CLEARING_POLICIES[policy], keep_last=keep) for keep in KEEPS}
    return wanted


def recent_name(kept: str) -> str:
    return f"recent: {kept}"


def play_at(
    recording: Recording, session: Session, rate: Rate, wanted: Mapping[str, MicrocompactSettings]
) -> Played:
    played: dict[object, PolicyOutcome] = {}
    outcomes: dict[str, PolicyOutcome] = {}
    for name, settings in wanted.items():
        relevant = without_other_rounds(settings, rate)
        weights = CLEARING_WEIGHTS.get(settings.policy, settings.policy)
        key = weights, replace(relevant, policy="")
        if key not in played:
            played[key] = play_recording(recording, relevant, rate.rates)
        outcomes[name] = played[key]
    optimum = find_optimum(recording, rate.rates).cost
    return Played(session, rate, optimum, outcomes, count_chances(recording))


def without_other_rounds(settings: MicrocompactSettings, rate: Rate) -> MicrocompactSettings:
    """The same settings, but for the rounds of the lifetime that is not played."""
    usual = MicrocompactSettings()
    if rate.ttl == "1h":
        return replace(settings, rounds_ahead_5m=usual.rounds_ahead_5m)
    return replace(settings, rounds_ahead_1h=usual.rounds_ahead_1h)


def summarise(policy: str, rate: Rate, played: Sequence[Played], name: OutcomeName | None = None) -> Row:
    """The figures of a policy; `name` says which outcome of each session counts, if not the policy's own."""
    here = [(each, name(each) if name else policy) for each in played if each.rate == rate]
    ratios = [each.ratio(key) for each, key in here]
    against = [each.against_keep(key) for each, key in here]
    outcomes = [each.outcomes[key] for each, key in here]
    wanted = sum(each.wanted for each in outcomes) or 1
    in_view = sum(each.in_view for each in outcomes)
    return Row(
        policy=policy,
        ttl=rate.ttl,
        read=rate.read,
        sessions=len(here),
        median=statistics.median(ratios),
        p95=percentile_95(ratios),
        dearer=sum(each > DEARER for each in against),
        p99_against_keep=percentile(against, 0.99),
        in_view=in_view / wanted,
        reachable=(in_view + sum(each.one_pointer_away for each in outcomes)) / wanted,
        cuts=sum(each.cuts for each in outcomes),
        reread_share=sum(each.reread_cost for each in outcomes) / sum(each.cost for each in outcomes),
    )


def percentile_95(values: Sequence[float]) -> float:
    return percentile(values, 0.95)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[round(share * (len(values) - 1))]


def bars(rows: Sequence[Row]) -> list[Bar]:
    """What is claimed, row by row."""
    ski = {(row.ttl, row.read): row for row in rows if row.policy == "ski"}
    found: list[Bar] = []
    for row in rows:
        if row.policy == "thrift":
            found += _thrift_bars(row, ski.get((row.ttl, row.read)))
        if row.policy == "balanced":
            found.append(_bar(row, "median", row.median, 1.06, 0.01))
            found.append(replace(_bar(row, "in view", row.in_view, 0.90, 0.01), is_floor=True))
        if row.policy in {"thrift", "balanced"}:
            found.append(_bar(row, "share over 1% dearer", row.dearer / row.sessions, 0.03, 0.01))
            found.append(_bar(row, "p99 against keep", row.p99_against_keep, 1.05, 0.02))
    return found


def _bar(row: Row, name: str, value: float, limit: float, tolerance: float) -> Bar:
    return Bar(
        policy=row.policy,
        ttl=row.ttl,
        read=row.read,
        name=name,
        value=value,
        limit=limit,
        tolerance=tolerance,
    )


def _thrift_bars(row: Row, ski: Row | None) -> list[Bar]:
    is_short = row.ttl == "5m"
    found = [
        _bar(row, "median", row.median, 1.02 if is_short else 1.03, 0.01),
        _bar(row, "p95", row.p95, 1.10 if is_short else 1.12, 0.02),
    ]
    if ski is not None:
        found.append(_bar(row, "median against ski", row.median, ski.median, 0.01))
        found.append(_bar(row, "p95 against ski", row.p95, ski.p95, 0.02))
    return found


class Shortfalls:
    """By how much rules of the grid miss the bars on some sessions."""

    def __init__(self, played: Sequence[Played]) -> None:
        self._played = played
        self._known: dict[tuple[Rule, Rate, frozenset[str]], list[Row]] = {}

    def __call__(self, rule: Rule, sessions: frozenset[str]) -> float:
        rows = [row for rate in RATES for row in self._rows(rule.at(rate.ttl), rate, sessions)]
        ours = [row for row in rows if row.policy == rule.policy]
        # Between rules that miss as much, the cheaper one.
        return sum(bar.miss for bar in bars(rows)) + statistics.mean(row.median for row in ours)

    def _rows(self, rule: Rule, rate: Rate, sessions: frozenset[str]) -> list[Row]:
        key = rule, rate, sessions
        if key not in self._known:
            here = [each for each in self._played if each.rate == rate and each.session.name in sessions]
            self._known[key] = [
                summarise(rule.policy, rate, here, lambda _: rule.name),
                summarise("ski", rate, here),
            ]
        return self._known[key]


def score_unseen(played: Sequence[Played], choices: Sequence[Choice], kind: str | None = None) -> list[Row]:
    """Every session under the rule that was chosen without it, and under the policies that need no choice."""
    rule_of = {name: choice.rules for choice in choices for name in choice.held_out}
    here = [each for each in played if kind in {None, each.session.kind}]
    if not choices or not here:
        return []

    def chosen(policy: str) -> OutcomeName:
        return lambda each: rule_of[each.session.name][policy].at(each.rate.ttl).name

    return [
        summarise(policy, rate, here, chosen(policy) if policy in {"thrift", "balanced"} else None)
        for rate in RATES
        for policy in CLEARING_POLICIES
    ]


def print_report(
    played: Sequence[Played], rows: Sequence[Row], choices: Sequence[Choice], unseen: Sequence[Row]
) -> None:
    print(f"As shipped: sessions of over {LEAST_TOKENS:,} tokens; cost ÷ optimum")
    print_table(rows)
    for kind in KINDS:
        here = [each for each in played if each.session.kind == kind]
        if here:
            shown = [summarise(policy, rate, here) for rate in RATES for policy in CLEARING_POLICIES]
            print(f"\n{kind} alone, as shipped")
            print_table(shown)
    if choices:
        print("\nUnseen: every session under the rule that was chosen without its block of time")
        for choice in choices:
            known = [
                each.counted
                for each in played
                if each.rate == RATES[0]
                and each.session.kind != "codex"
                and each.session.name not in choice.held_out
            ]
            print(f"  {len(choice.held_out)} held out; on the {len(known)} others:")
            print(f"    counted: {sum(known, Counted()).describe()}")
            print("".join(f"    {rule.name}\n" for rule in choice.rules.values()), end="")
        print_table(unseen)
        for kind in KINDS:
            apart = score_unseen(played, choices, kind)
            if apart:
                print(f"\n{kind} alone, unseen")
                print_table([row for row in apart if row.policy in {"thrift", "balanced"}])
    print_recent(played)
    print_worst(played)
    print_bars(bars(unseen or rows))


def print_table(rows: Sequence[Row]) -> None:
    print("\ncache  read   policy    sessions  median    p95  >1%    p99  in view  reach   cuts  re-reads")
    last = rows[0].ttl, rows[0].read
    for row in rows:
        if (row.ttl, row.read) != last:
            print()
            last = row.ttl, row.read
        print(
            f"{row.ttl:5}  {row.read:<5}  {row.policy:9} {row.sessions:8}  {row.median:6.3f}  {row.p95:5.3f}"
            f"  {row.dearer:3}  {row.p99_against_keep:5.3f}    {row.in_view:5.3f}  {row.reachable:5.3f}"
            f"  {row.cuts:5}    {row.reread_share:5.1%}"
        )


def print_recent(played: Sequence[Played]) -> None:
    print("\nWhat it costs that `balanced` keeps of this turn and the one before: median, in view")
    print("cache  read   " + "   ".join(f"{kept:>14}" for kept in RECENT))
    for rate in RATES:
        rows = [summarise(recent_name(kept), rate, played) for kept in RECENT]
        shown = "   ".join(f"{f'{row.median:.3f} {row.in_view:.3f}':>14}" for row in rows)
        print(f"{rate.ttl:5}  {rate.read:<5}  {shown}")


def print_worst(played: Sequence[Played]) -> None:
    print("\nDearest against keeping everything, as shipped")
    found = [
        (each.against_keep(policy), policy, each) for each in played for policy in ("thrift", "balanced")
    ]
    for against, policy, each in sorted(found, key=lambda item: -item[0])[:WORST_SHOWN]:
        outcome = each.outcomes[policy]
        print(
            f"  {against:.3f}  {policy:9} {each.rate.ttl} {each.rate.read:<5}  {each.session.name[:8]}"
            f" ({each.session.kind}): {outcome.cuts} cuts, {outcome.rereads} re-reads,"
            f" {outcome.reread_cost / outcome.cost:.1%} of the cost"
        )


def print_bars(found: Sequence[Bar]) -> None:
    missed = [bar for bar in found if bar.miss]
    print(f"\n{len(found) - len(missed)} of {len(found)} bars are met")
    for bar in missed:
        sign = "<" if bar.is_floor else ">"
        print(f"MISSED  {bar.policy} {bar.ttl} {bar.read}: {bar.name} {bar.value:.3f} {sign} {bar.limit:.3f}")


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
