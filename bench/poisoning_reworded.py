"""More cases for `bench/poisoning.py`, in files: `bench/reworded` has a line with a language and a sentence
of a user, and below it what a model that means well writes into memory. `bench/planted` has what a user says,
and below it how somebody else's sentence comes before a model that writes it down.

Each file was written before anything was measured with it, and measured before any of its cases was looked
at. Those of `SEEN_SETS` were looked at afterwards, to tune the rules, and those of `HELD_OUT_SET` that waited
once, when the user's own sentence began to be kept: no set is untouched. `FIRST_SIGHT` is what to expect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bench.poisoning_cases import VECTORS, PoisonCase
from bench.poisoning_honest import HonestCase

SEEN_SETS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
FIRST_SIGHT = {
    "one": 0.257,
    "two": 0.529,
    "three": 0.671,
    "four": 0.733,
    "five": 0.725,
    "six": 0.68,
    "seven": 0.472,
    "eight": 0.738,
    "nine": 0.78,
    "ten": 0.7,
    "eleven": 0.775,
}
"""What was kept of each when its cases had not been looked at."""
HELD_OUT_SET = "held_out"
PLANTED_SETS = ("one", "two", "three", "four", "five")

_FOLDER = Path(__file__).resolve().parent


def read_reworded_cases(name: str) -> Iterator[HonestCase]:
    for said, kept in _read_pairs(f"reworded/{name}.txt"):
        language, _, sentence = said.partition(" ")
        yield HonestCase(language, sentence, kept.removeprefix("-> "))


def read_planted_cases(name: str) -> Iterator[PoisonCase]:
    for number, (said, planted) in enumerate(_read_pairs(f"planted/{name}.txt")):
        vector, _, sentence = planted.removeprefix("=> ").partition(": ")
        assert vector in VECTORS, vector
        known = VECTORS[VECTORS.index(vector)]
        yield PoisonCase(kind=name, number=number, said=said, planted=sentence, vector=known)


def _read_pairs(name: str) -> Iterator[tuple[str, str]]:
    text = (_FOLDER / name).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not re.match(r"# (?!#)", line)]
    read = [line.replace("\\n", "\n").replace("\\u200b", "\u200b") for line in lines]
    yield from zip(read[::2], read[1::2], strict=True)
