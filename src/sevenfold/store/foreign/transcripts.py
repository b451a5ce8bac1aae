"""A whole transcript as a stream of entries, with a count of what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sevenfold.store.foreign.detect import FOREIGN_READERS
from sevenfold.store.foreign.entries import ForeignAgent, ForeignEntry, UnknownLine
from sevenfold.store.foreign.lines import LineFault, scan_lines

MAX_UNKNOWN_TYPES = 50
"""A file of random types would otherwise fill the report; the rest are counted together."""
OTHER_TYPES = "(other types)"


@dataclass(slots=True)
class LineTally:
    """What was met on the way. Grows while a transcript is read."""

    lines: int = 0
    length_bytes: int = 0
    unknown: Counter[str] = field(default_factory=Counter[str])
    """Lines that no reader knows, by type."""
    faults: Counter[LineFault] = field(default_factory=Counter[LineFault])
    """Lines that could not be read, by what is wrong with them."""


def read_transcript(
    path: Path, agent: ForeignAgent, tally: LineTally, on_bytes: Callable[[int], None] | None = None
) -> Iterator[ForeignEntry]:
    """Every entry in file order. Nothing in a line's content stops it; only the disk can."""
    reader = FOREIGN_READERS[agent]()
    for line in scan_lines(path):
        tally.lines += 1
        tally.length_bytes += line.length_bytes
        if on_bytes:
            on_bytes(line.length_bytes)
        if line.fault:
            tally.faults[line.fault] += 1
            continue
        for entry in reader.read(line.fields):
            if isinstance(entry, UnknownLine):
                is_room = entry.type in tally.unknown or len(tally.unknown) < MAX_UNKNOWN_TYPES
                tally.unknown[entry.type if is_room else OTHER_TYPES] += 1
            else:
                yield entry
