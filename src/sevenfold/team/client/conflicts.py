"""Conflicts: the keys of conflict copies, which every device can tell from the name, and a line merge."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import sha256
from itertools import count, pairwise

from sevenfold.core.memories import MAX_KEY_PART_CHARS
from sevenfold.team.client.ports import LocalText
from sevenfold.team.protocol import Checksum, TeamKey

_COPY = re.compile(r"(.+)-conflict-[0-9a-f]{8}\.md", re.ASCII)


def is_conflict_copy(key: str) -> bool:
    return _COPY.fullmatch(key) is not None


def original_key(key: str) -> TeamKey:
    """The key beside which a copy was kept; as far as a very long name allows."""
    match = _COPY.fullmatch(key)
    return TeamKey(f"{match[1]}.md" if match else key)


def choose_copy_key(key: TeamKey, checksum: Checksum, here: Mapping[TeamKey, LocalText]) -> TeamKey:
    """Where the text is kept: under a name that follows from it, unless that holds another text by now."""
    for name in _names(original_key(key), checksum):
        there = here.get(name)
        if name != key and (there is None or there.checksum == checksum):
            return name
    raise AssertionError("the names never end")


def _names(key: TeamKey, checksum: Checksum) -> Iterator[TeamKey]:
    above, slash, name = key.removesuffix(".md").rpartition("/")
    digits = checksum.removeprefix("sha256:")
    for turn in count():
        mark = f"-conflict-{digits[:8]}"
        yield TeamKey(f"{above}{slash}{name[: MAX_KEY_PART_CHARS - len(mark)]}{mark}.md")
        digits = sha256(f"{digits} {turn}".encode()).hexdigest()


# The merge is pure and bounded by counts, because texts from others must not keep a device busy.

MAX_PAIRS = 300_000
"""Pairs of equal lines that the comparison may meet: a file of 500 equal lines, or any ordinary one."""
MAX_MERGE_LINES = 20_000


def merge_lines(base: str, ours: str, theirs: str) -> str | None:
    """Both changes of `base` in one text; None where they touch the same or neighbouring lines.

    Neighbours count as the same place: two people who each add a line at the end mean an order that nobody
    can tell from here.
    """
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    old = base.splitlines(keepends=True)
    mine, other = ours.splitlines(keepends=True), theirs.splitlines(keepends=True)
    if not (_is_bounded(old, mine) and _is_bounded(old, other)):
        return None
    edits = sorted({*_edits(old, mine), *_edits(old, other)}, key=lambda edit: (edit.start, edit.end))
    for before, after in pairwise(edits):
        if after.start <= before.end:
            return None
    merged = list(old)
    for edit in reversed(edits):
        merged[edit.start : edit.end] = edit.lines
    return "".join(merged)


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    lines: tuple[str, ...]
    """What stands in place of the lines from `start` to before `end`."""


def _edits(old: Sequence[str], new: Sequence[str]) -> list[_Edit]:
    return [
        _Edit(start, end, tuple(new[first:last]))
        for tag, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
    ]


def _is_bounded(old: Sequence[str], new: Sequence[str]) -> bool:
    if max(len(old), len(new)) > MAX_MERGE_LINES:
        return False
    counts = Counter(new)
    return sum(counts[line] for line in old) <= MAX_PAIRS
