"""What every rig is given and what it gives back."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias, TypeVar

Size: TypeAlias = Literal["tiny", "short", "long"]
"""A few seconds inside the test suite; a minute for all in CI; half an hour for all before a release."""

T = TypeVar("T")

MOST_SHOWN = 20
"""Violations kept word for word; the rest are only counted."""


@dataclass(frozen=True, slots=True)
class Orders:
    """How much to do, from which seed, and where."""

    size: Size
    seed: int
    place: Path
    """A folder on the disk under test; everything a rig makes is in it."""
    progress: Progress

    def pick(self, tiny: T, short: T, long: T) -> T:
        return {"tiny": tiny, "short": short, "long": long}[self.size]

    def random(self, purpose: str) -> Random:
        """Random numbers that depend on the seed and the purpose alone."""
        return Random(f"{self.seed}/{purpose}")

    @contextmanager
    def scratch(self, name: str) -> Generator[Path]:
        """A folder for the length of a block."""
        folder = self.place / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """One line of the final table."""

    name: str
    unit: str
    count: int = 0
    violations: int = 0
    shown: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    """Figures beside the count: comparisons, and what happened along the way."""
    seconds: float = 0.0
    skipped: str | None = None

    def wrong(self, what: str) -> None:
        """Something happened that never may."""
        self.violations += 1
        if len(self.shown) < MOST_SHOWN:
            self.shown.append(what)


@contextmanager
def outcome(name: str, unit: str) -> Generator[Outcome]:
    """A line of the table, timed over the block."""
    found = Outcome(name=name, unit=unit)
    began = time.monotonic()
    try:
        yield found
    finally:
        found.seconds = time.monotonic() - began


class Progress:
    """How far a run is, on stderr: rewritten in place on a terminal, a line now and then elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._pause = 0.2 if self._live else 5.0
        self._next = time.monotonic() + min(1.0, self._pause)

    def __call__(self, name: str, done: int, total: int, unit: str) -> None:
        if self._quiet or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._pause
        self._write(f"{name}: {done:,} of {total:,} {unit}")

    def clear(self) -> None:
        if self._live and not self._quiet:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _write(self, text: str) -> None:
        start, end = ("\r\033[K", "") if self._live else ("", "\n")
        print(f"{start}{text}", end=end, file=sys.stderr, flush=True)


Rig: TypeAlias = Callable[[Orders], list[Outcome]]
