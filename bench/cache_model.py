"""How well the cache model foretells what real sessions read from the prompt cache.

Every call of the Claude sessions is put together again from the transcript and billed by the model. The share
of the input that it reads stands against the logged share, and against the rule of three lines that people
use: all of the previous prompt is read, unless the pause was longer than the cache lives. Sizes are
estimates, scaled so that each prompt is as long as its bill; markers stand where Claude Code puts them, on
the system prompt and at the end, for as long as the bill says. A session's first call is left out of the
shares: what it finds was written by sessions that are in no log.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

from cache_sessions import Session, read_sessions
from cache_simulation import BREAK_TOKENS, Call, Simulation, body

from sevenfold.core.cache.prompt_cache import (
    DEFAULT_CACHE_CHOICES,
    CacheChoices,
    PromptLevel,
    render_prompt,
)
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import read_block
from sevenfold.core.tokens.estimation import weigh_by_shape

NEAR_POINTS = 2.0
"""A session is foretold when the share is off by no more than this."""
BY_PAUSE = "idle beyond TTL"
TIMED_CALLS = 40
LISTED = 20

CHOSEN: Mapping[str, CacheChoices] = {
    "as shipped": DEFAULT_CACHE_CHOICES,
    "runs not collapsed": CacheChoices(collapses_runs=False),
    "only the hit is refreshed": CacheChoices(refresh="hit", writes_below_hit=False),
    "a hit needs its own TTL": CacheChoices(hit_needs_ttl=True),
    "minimum for the last marker alone": CacheChoices(gates_each_marker=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What part of a session's input was read from the cache, in per cent."""

    session: str
    calls: int
    logged: float
    ours: float
    rule: float
    is_unbroken: bool
    """Nothing was cut, and every break was one by a pause."""


@dataclass(frozen=True, slots=True)
class Closeness:
    """How near one way of foretelling came, over some sessions."""

    sessions: int
    near: float
    """The share of them within two points."""
    median_points: float
    mean_points: float


@dataclass(frozen=True, slots=True)
class Speed:
    parts: int
    anew_ms: float
    after_ms: float
    """With the prompt of the call before at hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    sessions: tuple[Shares, ...]
    closeness: Mapping[str, Closeness]
    explained: Mapping[str, int]
    """Logged breaks that the model foretells, by cause."""
    unexplained: tuple[Call, ...]
    foretold_only: Mapping[str, int]
    """Breaks that the model foretells and the log does not show."""
    turns: int
    primed_turns: int
    """Turns whose first call read more than the previous prompt held: somebody had sent its answer before."""
    speed: Speed
    failures: tuple[str, ...]


def run_report(sessions: Sequence[Session]) -> Report:
    calls = [simulate(session, at, len(sessions)) for at, session in enumerate(sessions)]
    shares = tuple(
        measure(session.name, found) for session, found in zip(sessions, calls, strict=True) if found
    )
    every = [call for found in calls for call in found]
    broken = [call for call in every if call.is_break]
    closeness = compare(shares) | compare_bare(sessions)
    return Report(
        sessions=shares,
        closeness=closeness,
        explained=dict(Counter(call.cause for call in broken if call.cause)),
        unexplained=tuple(call for call in broken if not call.cause),
        foretold_only=dict(Counter(call.cause for call in every if call.cause and not call.is_break)),
        turns=sum(call.opens_turn for call in every),
        primed_turns=sum(call.opens_turn and call.logged > call.previous for call in every),
        speed=measure_speed(max(sessions, key=lambda session: len(session.lines))),
        failures=check(closeness),
    )


def simulate(
    session: Session, at: int, count: int, choices: CacheChoices = DEFAULT_CACHE_CHOICES
) -> list[Call]:
    if at % 10 == 0:
        say(f"simulating session {at + 1} of {count}")
    return Simulation(session, choices).calls()


def measure(session: str, calls: Sequence[Call]) -> Shares:
    total = sum(call.total for call in calls)

    def share(read: Callable[[Call], int]) -> float:
        return 100 * sum(map(read, calls)) / total

    is_unbroken = all(call.cause in ("", BY_PAUSE) and (call.cause or not call.is_break) for call in calls)
    return Shares(
        session=session,
        calls=len(calls),
        logged=share(lambda call: call.logged),
        ours=share(lambda call: call.ours),
        rule=share(lambda call: call.rule),
        is_unbroken=is_unbroken,
    )


def compare(shares: Sequence[Shares]) -> dict[str, Closeness]:
    """Ours and the rule, on all sessions and on the unbroken ones."""
    found: dict[str, Closeness] = {}
    for group, some in (("all", shares), ("unbroken", [item for item in shares if item.is_unbroken])):
        if some:
            found[f"{group}, ours"] = _closeness([item.ours - item.logged for item in some])
            found[f"{group}, the rule"] = _closeness([item.rule - item.logged for item in some])
    return found


def compare_bare(sessions: Sequence[Session]) -> dict[str, Closeness]:
    """Ours again, by messages, times and totals alone: how much of the closeness is the model's own."""
    say("simulating once more without the hints of the bills")
    calls = [(session.name, Simulation(session, is_bare=True).calls()) for session in sessions]
    shares = [measure(name, found) for name, found in calls if found]
    return {"all, ours without hints": _closeness([item.ours - item.logged for item in shares])}


def _closeness(errors: Sequence[float]) -> Closeness:
    off = [abs(error) for error in errors]
    near = sum(error <= NEAR_POINTS for error in off) / len(off)
    return Closeness(len(off), near, median(off), fmean(off))


def check(closeness: Mapping[str, Closeness]) -> tuple[str, ...]:
    """Everything in which the rule is closer, in words."""
    failures: list[str] = []
    for group in ("all", "unbroken"):
        ours, rule = closeness.get(f"{group}, ours"), closeness.get(f"{group}, the rule")
        if ours is None or rule is None:
            continue
        if ours.near < rule.near:
            failures.append(
                f"{group}: {ours.near:.1%} of sessions within {NEAR_POINTS} points, rule {rule.near:.1%}"
            )
        if ours.median_points > rule.median_points:
            failures.append(f"{group}: median error {ours.median_points:.3f}, rule {rule.median_points:.3f}")
    return tuple(failures)


def measure_speed(session: Session) -> Speed:
    """Rendering the last calls of a session, anew and after the call before."""
    requests = session.requests(with_unlogged=False)[-TIMED_CALLS:]
    bodies = [body(request.model, request.view) for request in requests] or [body("", ())]
    started = time.perf_counter()
    for each in bodies:
        render_prompt(each, count)
    anew = time.perf_counter() - started
    prompt = render_prompt(bodies[0], count)
    started = time.perf_counter()
    for each in bodies:
        prompt = render_prompt(each, count, after=prompt)
    after = time.perf_counter() - started
    return Speed(len(prompt.parts), anew * 1000 / len(bodies), after * 1000 / len(bodies))


def count(_level: PromptLevel, block: JsonObject) -> int:
    return round(weigh_by_shape(read_block(block)))


def compare_choices(sessions: Sequence[Session]) -> dict[str, Closeness]:
    """What the sessions say of each choice that is not documented."""
    found: dict[str, Closeness] = {}
    for name, choices in CHOSEN.items():
        say(f"simulating: {name}")
        calls = [(session.name, Simulation(session, choices).calls()) for session in sessions]
        shares = [measure(session, some) for session, some in calls if some]
        found[name] = _closeness([item.ours - item.logged for item in shares])
    return found


def print_report(report: Report) -> None:
    print(
        f"{'session':44}{'calls':>6}{'logged':>9}{'ours':>9}{'rule':>9}   (read from the cache, % of input)"
    )
    for item in report.sessions:
        mark = "" if item.is_unbroken else "  broken"
        print(
            f"{item.session[:43]:44}{item.calls:6}{item.logged:9.2f}{item.ours - item.logged:+9.2f}"
            f"{item.rule - item.logged:+9.2f}{mark}"
        )
    print_closeness(report.closeness)
    print_breaks(report)
    speed = report.speed
    print(
        f"\nRendering a prompt of {speed.parts:,} parts: {speed.anew_ms:.1f} ms anew, "
        f"{speed.after_ms:.1f} ms after the one before."
    )
    for failure in report.failures:
        print(f"FAILED: the rule is closer; {failure}")


def print_closeness(rows: Mapping[str, Closeness]) -> None:
    print(f"\n{'':36}{'sessions':>9}{'within 2 points':>17}{'median error':>14}{'mean error':>12}")
    for name, row in rows.items():
        print(f"{name:36}{row.sessions:9}{row.near:17.1%}{row.median_points:14.3f}{row.mean_points:12.3f}")


def print_breaks(report: Report) -> None:
    explained = sum(report.explained.values())
    total = explained + len(report.unexplained)
    print(f"\nBreaks ({BREAK_TOKENS:,} tokens or more of the previous prompt not read): {total} logged.")
    for name, number in sorted(report.explained.items(), key=lambda item: -item[1]):
        print(f"  explained: {name:28}{number:5}")
    print(f"  not explained{len(report.unexplained):31}")
    for call in report.unexplained[:LISTED]:
        print(
            f"    {call.session[:36]:36} call {call.number:3}, after {call.pause.total_seconds():5.0f} s:"
            f" read {call.logged:7,} of {call.previous:7,}"
        )
    if len(report.unexplained) > LISTED:
        print(f"    and {len(report.unexplained) - LISTED} more (--json lists them all)")
    for name, number in sorted(report.foretold_only.items()):
        print(f"  foretold, not in the log: {name:15}{number:5}")
    print(
        f"Of {report.turns} calls that opened a turn, {report.primed_turns} read more than the previous\n"
        "prompt held: a request that is in no log had sent its answer before. The simulation makes\n"
        "one at the end of each turn."
    )


def say(text: str) -> None:
    print(f"· {text}", file=sys.stderr)


def plain(report: Report) -> Mapping[str, object]:
    calls = [asdict(call) | {"pause": call.pause.total_seconds()} for call in report.unexplained]
    return asdict(report) | {"unexplained": calls}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="The columns `ours` and `rule` are points above or below the logged share. A session is\n"
        "broken when something was cut (compaction, clearing, another model), or when a break is not one\n"
        "by a pause. `without hints` leaves out what the bills tell of the requests: where the last\n"
        "marker stood, and that a request in no log ended each turn. Ends with 1 when the rule is closer\n"
        "than the model in any of the figures.\n\n"
        "example: bench/cache_model.py --data ../shared/data --limit 10",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder that holds sessions/claude*/*.jsonl")
    parser.add_argument("--limit", type=int, help="only the first so many sessions")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument(
        "--choices", action="store_true", help="instead: what the sessions say of each undocumented choice"
    )
    arguments = parser.parse_args()
    if arguments.limit is not None and arguments.limit < 1:
        parser.error(f"--limit {arguments.limit}: expected how many sessions to simulate, 1 or more")
    say("reading sessions")
    sessions = read_sessions(arguments.data, arguments.limit)
    if arguments.choices:
        rows = compare_choices(sessions)
        if arguments.json:
            print(json.dumps({name: asdict(row) for name, row in rows.items()}, indent=2))
        else:
            print_closeness(rows)
        return 0
    report = run_report(sessions)
    if arguments.json:
        print(json.dumps(plain(report), indent=2))
    else:
        print_report(report)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
