"""How far the simulator's token counts are from what was billed, on real sessions.

The simulator counts block by block and learns nothing: a test has to get the same count every time. So this
is the error of its default tokenizer as it is used. A session starts from the bill of its first call, whose
system prompt and tool schemas are in no log; from there on every prompt is counted anew from its blocks. Two
figures come of it: the new part of each call against the growth of the bill, and the whole prompt against the
whole bill. A boundary rewrites the prompt, so counting starts again from the bill after it; a call whose
prompt did not grow does the same. Beside ours stands the rule of four bytes a token, on the same calls.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

from token_replay import Line, Session, block_bytes, read_claude_sessions

from sevenfold.core.messages import Block, RedactedThinking, Thinking, ToolResult
from sevenfold.core.models import Model
from sevenfold.core.prices import CATALOG
from sevenfold.simulator.checks.blocks import render_block_wire
from sevenfold.simulator.simulator_state import estimate_tokens

Weigh = Callable[[Model, Block], float]

BAR_NEW_MEDIAN = 0.08
"""Of the new part: what the estimator must hold when calibrated, and here it is not."""
BAR_WHOLE_MEDIAN = 0.02
"""Of the whole prompt: what decides whether a simulated threshold is met when the real one would be."""


@dataclass(frozen=True, slots=True)
class Call:
    counted_new: float
    billed_new: int
    counted: float
    billed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Errors as shares of what was billed."""

    calls: int
    new_median: float
    new_p95: float
    new_bias: float
    """The sum of the counts against the sum of the bills."""
    whole_median: float
    whole_p95: float


@dataclass(frozen=True, slots=True)
class Report:
    sessions: int
    simulator: Figures
    four_bytes: Figures
    times_closer: float

    @property
    def is_met(self) -> bool:
        ours = self.simulator
        return ours.new_median <= BAR_NEW_MEDIAN and ours.whole_median <= BAR_WHOLE_MEDIAN


def count_block(model: Model, block: Block) -> float:
    return estimate_tokens(model, "messages", render_block_wire(block))


def count_bytes(_model: Model, block: Block) -> float:
    return block_bytes(block) / 4


def run_report(data: Path, limit: int | None) -> Report:
    sessions = read_claude_sessions(data)[:limit]
    ours = measure([call for at, item in enumerate(sessions) for call in replay(item, count_block, at)])
    plain = measure([call for item in sessions for call in replay(item, count_bytes)])
    return Report(len(sessions), ours, plain, plain.new_median / ours.new_median)


def replay(session: Session, weigh: Weigh, number: int | None = None) -> Iterator[Call]:
    """The calls of a session, each counted as the simulator would count it."""
    if number is not None:
        print(f"\r· session {number + 1}", end="", file=sys.stderr, flush=True)
    blocks: list[Placed] = []
    frame: float | None = None
    before = 0
    counted_before = 0.0
    for line in session.lines:
        if line.has_boundary:
            blocks, frame = [], None
        if line.usage is not None and line.message.role == "assistant":
            billed = line.usage.prompt
            counted = total(blocks, model_of(line), weigh)
            if frame is not None and billed > before:
                yield Call(counted - counted_before, billed - before, frame + counted, billed)
            else:
                frame = billed - counted
            before, counted_before = billed, counted
        blocks.append(Placed(line))


class Placed:
    """A message and what it weighs, weighed once a rule."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.starts_turn = line.message.role == "user" and not all(
            isinstance(block, ToolResult) for block in line.message.blocks
        )
        self._spoken: float | None = None
        self._thought = 0.0

    def tokens(self, model: Model, weigh: Weigh, *, thinks: bool) -> float:
        if self._spoken is None:
            blocks = self.line.message.blocks
            thoughts = [block for block in blocks if isinstance(block, (Thinking, RedactedThinking))]
            self._thought = sum(weigh(model, block) for block in thoughts)
            self._spoken = sum(weigh(model, block) for block in blocks) - self._thought
        return self._spoken + (self._thought if thinks else 0.0)


def total(messages: Sequence[Placed], model: Model, weigh: Weigh) -> float:
    """A whole prompt; models that leave earlier thinking out do so here too."""
    spoken = max((at for at, item in enumerate(messages) if item.starts_turn), default=-1)
    return sum(
        item.tokens(model, weigh, thinks=not model.drops_thinking or at > spoken)
        for at, item in enumerate(messages)
    )


def model_of(line: Line) -> Model:
    return CATALOG.find(line.model)


def measure(calls: Sequence[Call]) -> Figures:
    new = [abs(call.counted_new - call.billed_new) / call.billed_new for call in calls]
    whole = [abs(call.counted - call.billed) / call.billed for call in calls]
    billed = sum(call.billed_new for call in calls)
    return Figures(
        calls=len(calls),
        new_median=median(new),
        new_p95=quantiles(new, n=20)[-1],
        new_bias=sum(call.counted_new for call in calls) / billed - 1,
        whole_median=median(whole),
        whole_p95=quantiles(whole, n=20)[-1],
    )


def print_report(report: Report) -> None:
    print(
        f"{report.sessions} Claude sessions, sub-agents included; {report.simulator.calls:,} calls measured."
    )
    print(f"\n{'':22}{'new part':>10}{'95th':>8}{'bias':>8}{'whole prompt':>15}{'95th':>8}")
    for name, row in (("simulator (default)", report.simulator), ("4 bytes a token", report.four_bytes)):
        print(
            f"  {name:20}{row.new_median:10.1%}{row.new_p95:8.1%}{row.new_bias:+8.1%}"
            f"{row.whole_median:15.2%}{row.whole_p95:8.2%}"
        )
    print(f"\nThe simulator's count of a new part is {report.times_closer:.1f} times closer in the median.")
    verdict = "met   " if report.is_met else "MISSED"
    print(f"{verdict} medians of at most {BAR_NEW_MEDIAN:.0%} (new part) and {BAR_WHOLE_MEDIAN:.0%} (whole)")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example:\n  python bench/simulator_tokens.py --data ../shared/data\n\n"
        "Ends with 1 when a bar is missed.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder that holds sessions/claude*/*.jsonl")
    parser.add_argument("--limit", type=int, metavar="N", help="measure the first N sessions only")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    arguments = parser.parse_args()
    report = run_report(arguments.data, arguments.limit)
    print(file=sys.stderr)
    if arguments.json:
        print(json.dumps(asdict(report), indent=2))
    else:
        print_report(report)
    return 0 if report.is_met else 1


if __name__ == "__main__":
    sys.exit(main())
