"""More honest statements for `bench/poisoning.py`: the files of `bench/reworded`. A line with a language and
a sentence of a user, and below it what a model that means well writes into memory.

Each file was written before anything was measured with it, and measured before any of its cases was looked
at. Those of `SEEN_SETS` were looked at afterwards, to tune the rules. Of `HELD_OUT_SET` only the rate counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.poisoning_honest import HonestCase

SEEN_SETS = ("one", "two", "three", "four", "five", "six")
FIRST_SIGHT = {"one": 0.257, "two": 0.529, "three": 0.671, "four": 0.733, "five": 0.725, "six": 0.68}
"""What was kept of each when its cases had not been looked at."""
HELD_OUT_SET = "held_out"

_FOLDER = Path(__file__).resolve().parent / "reworded"


def read_reworded_cases(name: str) -> Iterator[HonestCase]:
    text = (_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for said, kept in zip(lines[::2], lines[1::2], strict=True):
        language, _, sentence = said.partition(" ")
        yield HonestCase(language, sentence, kept.removeprefix("-> "))
