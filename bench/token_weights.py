"""Where the weights of the token estimate come from, and whether they hold on sessions they never saw.

Fits all weights anew on every other session, by least absolute relative error, and measures them on the
rest; then the other way round. The shipped weights are not the plain fit: they were fitted together with
text that coding sessions hardly hold (other scripts, encoded bytes, tables of numbers; docs/tokens.md), which
moves the rare weights and leaves the figures about as they are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

from token_replay import Figures, Session, measure, read_claude_sessions, replay_all

from sevenfold.core.tokens import TokenEstimator
from sevenfold.core.tokens.estimation import MEASURED_WEIGHTS, ShapeWeights, weigh_by_shape

NAMES = tuple(field.name for field in fields(ShapeWeights))
NOTHING = ShapeWeights(**dict.fromkeys(NAMES, 0.0))

ROUNDS = 20
"""Of reweighting: the weights stop moving in the third digit after about fifteen."""
FLOOR_TOKENS = 50
"""Below this a relative error says more about rounding than about weights."""
SMALLEST_ERROR = 0.02
"""Errors under this are as good as none; without it the nearest calls would rule the fit."""


@dataclass(frozen=True, slots=True)
class Equation:
    """One call: what each weight contributes to its estimate, and its bill, as shares of the bill."""

    parts: tuple[float, ...]
    target: float

    def error(self, weights: Sequence[float]) -> float:
        return abs(sum(a * b for a, b in zip(self.parts, weights, strict=True)) - self.target)


def shape_estimator(weights: ShapeWeights, *, calibrates: bool) -> TokenEstimator:
    return TokenEstimator("fitted", partial(weigh_by_shape, weights=weights), calibrates)


def equations(sessions: Sequence[Session]) -> list[Equation]:
    """The estimate is linear in the weights: a weight's part is the estimate with that one alone."""
    alone = [shape_estimator(replace(NOTHING, **{name: 1.0}), calibrates=False) for name in NAMES]
    columns = [replay_all(sessions, estimator) for estimator in alone]
    found: list[Equation] = []
    for calls in zip(*columns, strict=True):
        billed = calls[0].billed
        if billed > 0:
            unit = max(billed, FLOOR_TOKENS)
            found.append(Equation(tuple(call.estimate / unit for call in calls), billed / unit))
    return found


def fit(sessions: Sequence[Session]) -> ShapeWeights:
    """The weights with the least absolute relative error: least squares, reweighted by the errors before."""
    rows = equations(sessions)
    trust = [1.0] * len(rows)
    weights: list[float] = []
    for _ in range(ROUNDS):
        weights = least_squares(rows, trust)
        trust = [1 / max(row.error(weights), SMALLEST_ERROR) for row in rows]
    return ShapeWeights(**dict(zip((field.name for field in fields(ShapeWeights)), weights, strict=True)))


def least_squares(rows: Sequence[Equation], trust: Sequence[float]) -> list[float]:
    """The normal equations, solved by elimination. A weight that no call uses comes out as zero."""
    size = len(NAMES)
    matrix = [[0.0] * (size + 1) for _ in range(size)]
    for row, weight in zip(rows, trust, strict=True):
        used = [(index, part) for index, part in enumerate(row.parts) if part]
        for i, left in used:
            line = matrix[i]
            for j, right in used:
                line[j] += weight * left * right
            line[size] += weight * left * row.target
    for i in range(size):
        pivot = matrix[i][i] or 1.0
        for other in range(size):
            if other != i:
                share = matrix[other][i] / pivot
                matrix[other] = [a - share * b for a, b in zip(matrix[other], matrix[i], strict=True)]
    return [line[size] / (line[i] or 1.0) for i, line in enumerate(matrix)]


def print_figures(name: str, figures: Figures) -> None:
    shares = (figures.median, figures.p95, figures.bias, figures.cold_median)
    print(f"  {name:44}{figures.calls:7,}" + "".join(f"{share:8.1%}" for share in shares))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder that holds sessions/claude*/*.jsonl")
    sessions = read_claude_sessions(parser.parse_args().data)
    halves = {"even": sessions[::2], "odd": sessions[1::2]}
    fitted: dict[str, ShapeWeights] = {}
    for name, half in halves.items():
        print(f"· fitting {len(NAMES)} weights on {len(half)} {name} sessions", file=sys.stderr)
        fitted[name] = fit(half)
    heads = "".join(f"{head:>8}" for head in ("median", "95th", "bias", "cold"))
    print(f"{'calibrated, on sessions the weights never saw':46}{'calls':>7}{heads}")
    for name, other in (("even", "odd"), ("odd", "even")):
        calls = replay_all(halves[other], shape_estimator(fitted[name], calibrates=True))
        print_figures(f"fitted on {name}, measured on {other}", measure(calls))
        shipped = replay_all(halves[other], shape_estimator(MEASURED_WEIGHTS, calibrates=True))
        print_figures(f"as shipped, measured on {other}", measure(shipped))
    print(f"\n{'weight':20}{'shipped':>9}{'even':>9}{'odd':>9}")
    for name in NAMES:
        values = (getattr(weights, name) for weights in (MEASURED_WEIGHTS, fitted["even"], fitted["odd"]))
        print(f"  {name:18}" + "".join(f"{value:9.2f}" for value in values))
    return 0


if __name__ == "__main__":
    sys.exit(main())
