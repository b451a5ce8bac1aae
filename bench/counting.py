"""What counting one turn costs, after 10 thousand, 100 thousand and 1 million tokens of history.

A turn is a tool request, its result and a bill, about 1,300 tokens; it is added, counted and broken down by
kind. The time must depend on the turn alone: the ratio of the largest history to the smallest is the figure.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.prices import Catalog
from sevenfold.core.tokens import Tally
from sevenfold.core.usage import Usage

SIZES = (10_000, 100_000, 1_000_000)
SESSIONS = 25
"""Built anew at each size; the median leaves out what the machine did meanwhile."""
TURNS = 3
"""Timed in each: few, so that the smallest history stays about as small as it says."""
BAR = 1.5
"""Flat, with room for a busy machine: a count that walks the history would show a ratio near 100."""


@dataclass(frozen=True, slots=True)
class Timing:
    history_tokens: int
    microseconds: float
    """The median turn."""


def measure_counting(sizes: Sequence[int] = SIZES, sessions: int = SESSIONS) -> list[Timing]:
    """Time turns after histories of these sizes. The sizes take turns, so that none has a quieter machine."""
    times: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(sessions):
        for size in sizes:
            session = _Session(size)
            times[size] += [session.time_turn() for _ in range(TURNS)]
    return [Timing(size, median(times[size]) * 1e6) for size in sizes]


def ratio_of(timings: Sequence[Timing]) -> float:
    """The largest history against the smallest: 1 is flat."""
    return timings[-1].microseconds / timings[0].microseconds


class _Session:
    def __init__(self, history_tokens: int) -> None:
        self._tally = Tally(Catalog().find("claude-opus-4-6"))
        self._turns = _turns()
        self._prompt = 0
        while self._tally.count().tokens < history_tokens:
            self.time_turn()

    def time_turn(self) -> float:
        reply, results = next(self._turns)
        started = time.perf_counter()
        self._tally.bill(Usage(fresh=self._prompt), reply, is_output_known=False)
        self._tally.add(results)
        count = self._tally.count()
        self._tally.breakdown()
        elapsed = time.perf_counter() - started
        self._prompt = count.tokens
        return elapsed


def _turns() -> Iterator[tuple[Message, Message]]:
    lines = [
        f"{n:6}\tdef handler_{n}(request, session): return session.answer(request.path)" for n in range(60)
    ]
    number = 0
    while True:
        number += 1
        use = ToolUseId(f"toolu_{number:08}")
        asked = ToolUse(use, "Read", JsonObject({"file_path": f"/src/module_{number}.py"}))
        thought = Thinking(f"Module {number} may hold the handler that fails, so it is the next one to read.")
        yield (
            Message("assistant", (thought, Text(f"Reading module {number}."), asked)),
            Message("user", (ToolResult(use, "\n".join(lines) + f"\n# {number}"),)),
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"Ends with 1 when the ratio is over {BAR}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    arguments = parser.parse_args()
    print("· building the histories and timing turns", file=sys.stderr)
    timings = measure_counting()
    ratio = ratio_of(timings)
    if arguments.json:
        rows = [asdict(timing) for timing in timings]
        print(json.dumps({"timings": rows, "ratio": ratio, "bar": BAR}))
    else:
        for timing in timings:
            print(f"{timing.history_tokens:>10,} tokens of history: {timing.microseconds:7.0f} µs a turn")
        print(f"ratio of the largest to the smallest: {ratio:.2f} (flat is 1, bar {BAR})")
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
