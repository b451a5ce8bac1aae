"""How well the token estimate foretells the bill, on real sessions.

At every API call the estimate of the new part (what was added since the call before) stands against what
was billed for it: the growth of the prompt from one call to the next. The estimator is calibrated on earlier
calls of the same session alone, as in use. Left out are a session's first call, whose system prompt and tool
schemas are in no log, and the call just after a boundary, whose prompt was rewritten; nothing else. Where a
prompt did not grow there is no relative error: such calls are counted and printed apart.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from token_replay import (
    Call,
    Exclusions,
    Figures,
    Session,
    block_bytes,
    exclusions,
    measure,
    measure_each,
    read_claude_sessions,
    read_sessions,
    regrouped,
    replay,
    replay_all,
)

from sevenfold.core.tokens import CALIBRATED_ESTIMATOR, PLAIN_ESTIMATOR, TokenEstimator
from sevenfold.core.tokens.estimation import weigh_by_shape

FIXED = TokenEstimator("uncalibrated", weigh_by_shape, calibrates=False)
BYTES = TokenEstimator("4 bytes", lambda block: block_bytes(block) / 4, calibrates=False)
DRILLS = (1.3, 0.75)
"""Tokenizers that nobody told us of: every bill multiplied by this."""


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    value: float
    limit: float

    @property
    def is_met(self) -> bool:
        return abs(self.value) <= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    sessions: int
    left_out: Exclusions
    rules: Mapping[str, Figures]
    """Ours first, then the rules people use, all on the same calls."""
    parts: Mapping[str, Figures]
    """Ours again, on parts of the data and on bills of other tokenizers."""
    codex: Mapping[str, Figures]
    """No bar: its reasoning is billed and in no log."""
    times_closer: float
    """The median error of the 4-bytes rule over ours."""
    megabytes_per_second: float
    bars: tuple[Bar, ...]


def run_report(data: Path) -> Report:
    say("reading sessions")
    claude = read_claude_sessions(data)
    codex = [regrouped(session) for session in read_sessions(data, "codex")]
    say(f"replaying {len(claude)} sessions under five rules")
    ours, by_bytes = replay_all(claude, CALIBRATED_ESTIMATOR), replay_all(claude, BYTES)
    rules = {
        "calibrated (ours)": measure(ours),
        "uncalibrated (ours)": measure(replay_all(claude, FIXED)),
        **measure_best_constant(by_bytes),
        "4 bytes, JSON 2 (plain)": measure(replay_all(claude, PLAIN_ESTIMATOR)),
        "4 bytes": measure(by_bytes),
    }
    say("replaying with other tokenizers' bills")
    parts = measure_parts(claude, ours)
    say("weighing everything against the clock")
    best, *_, worst = rules.values()
    return Report(
        sessions=len(claude),
        left_out=exclusions(claude),
        rules=rules,
        parts=parts,
        codex=measure_codex(codex),
        times_closer=worst.median / best.median,
        megabytes_per_second=measure_speed(claude),
        bars=(
            Bar("median", best.median, 0.08),
            Bar("95th percentile", best.p95, 0.30),
            Bar("bias", best.bias, 0.02),
            Bar("cold start median", best.cold_median, 0.12),
        ),
    )


def measure_best_constant(calls: Sequence[Call]) -> dict[str, Figures]:
    """The bytes a token with the smallest median error on these very calls: no constant can do better."""

    def figures(bytes_per_token: float) -> Figures:
        factor = 4 / bytes_per_token
        return measure([replace(call, estimate=round(call.estimate * factor)) for call in calls])

    tried = {f"{rate / 100:.2f} bytes (best constant)": figures(rate / 100) for rate in range(220, 400, 5)}
    best = min(tried, key=lambda name: tried[name].median)
    return {best: tried[best]}


def measure_parts(sessions: Sequence[Session], calls: Sequence[Call]) -> dict[str, Figures]:
    order = {session.name: index for index, session in enumerate(sessions)}
    parts = {
        "main sessions": [call for call in calls if "." not in call.session],
        "sub-agents": [call for call in calls if "." in call.session],
        "even sessions": [call for call in calls if order[call.session] % 2 == 0],
        "odd sessions": [call for call in calls if order[call.session] % 2],
    }
    parts |= {name: [c for c in calls if c.model == name] for name in sorted({call.model for call in calls})}
    parts |= {f"all bills x {drill}": replay_all(sessions, CALIBRATED_ESTIMATOR, drill) for drill in DRILLS}
    return measure_each(parts)


def measure_codex(sessions: Sequence[Session]) -> dict[str, Figures]:
    """Also over ten calls together: a log has usage after some results of the response that it belongs to,
    so that what was billed with one call is often estimated with its neighbour."""
    ours = [list(replay(session, CALIBRATED_ESTIMATOR)) for session in sessions]
    others = {item.name: replay_all(sessions, item) for item in (PLAIN_ESTIMATOR, BYTES)}
    calls = [call for session in ours for call in session]
    joined = [call for session in ours for call in join_calls(session, 10)]
    return measure_each({"calibrated": calls, "calibrated, ten calls together": joined, **others})


def join_calls(calls: Sequence[Call], size: int) -> list[Call]:
    """Each so many calls of a session as one."""
    parts = [calls[start : start + size] for start in range(0, len(calls), size)]
    return [
        replace(part[-1], estimate=sum(c.estimate for c in part), billed=sum(c.billed for c in part))
        for part in parts
    ]


def measure_speed(sessions: Sequence[Session]) -> float:
    blocks = [block for session in sessions for line in session.lines for block in line.message.blocks]
    started = time.process_time()
    for block in blocks:
        weigh_by_shape(block)
    elapsed = time.process_time() - started
    return sum(map(block_bytes, blocks)) / 1e6 / elapsed


def print_report(report: Report) -> None:
    ours, *_ = report.rules.values()
    out = report.left_out
    print(f"{report.sessions} Claude sessions, sub-agents included; {ours.calls:,} calls measured.")
    print(
        f"Left out: {out.first_of_session} first calls of a session, {out.after_boundary} after a boundary."
    )
    print(f"Apart: {ours.grew_not} calls whose prompt did not grow (cleared, rewound, resumed): no error.")
    print_table("new part only", report.rules)
    print(f"\nOurs is {report.times_closer:.1f} times closer than the 4-bytes rule in the median.")
    print(
        f"With the calls that did not grow: bias {ours.bias_with_them:+.1%} instead of {ours.bias:+.1%};",
        end=" ",
    )
    print(f"each taken as wholly wrong: 95th {ours.p95_with_them:.1%} instead of {ours.p95:.1%}.")
    print(
        f"Canonical count against the real total: median {ours.whole_median:.2%}, 95th {ours.whole_p95:.2%}."
    )
    print(f"Weighs {report.megabytes_per_second:.0f} MB of text a second.")
    print_table("ours on parts of it, and on bills of other tokenizers", report.parts)
    print_table("Codex, no bar: its reasoning is billed and in no log", report.codex)
    print()
    for bar in report.bars:
        print(f"{'met   ' if bar.is_met else 'MISSED'} {bar.name}: {bar.value:+.1%}, bar {bar.limit:.0%}")


def print_table(title: str, rows: Mapping[str, Figures]) -> None:
    print(f"\n{title:54}{'calls':>7}{'median':>8}{'95th':>8}{'bias':>8}{'mean':>8}{'cold':>8}")
    for name, row in rows.items():
        shares = (row.median, row.p95, row.bias, row.mean_error, row.cold_median)
        print(f"  {name:52}{row.calls:7,}" + "".join(f"{share:8.1%}" for share in shares))


def say(text: str) -> None:
    print(f"· {text}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Columns: median and 95th percentile of the error, sum of estimates against bills (bias), "
        "mean signed error,\nand the median over the first ten calls of each session (cold). "
        "Ends with 1 when a bar is missed.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder that holds sessions/claude*/*.jsonl")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    arguments = parser.parse_args()
    report = run_report(arguments.data)
    if arguments.json:
        print(json.dumps(asdict(report), indent=2))
    else:
        print_report(report)
    return 0 if all(bar.is_met for bar in report.bars) else 1


if __name__ == "__main__":
    sys.exit(main())
