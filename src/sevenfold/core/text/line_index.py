"""Lines that a conversation holds, found by the stems in them: whose words a sentence is takes a look-up, not
a walk through all that was ever read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sevenfold.core.provenance import Taint
from sevenfold.core.text.stems import find_stems_uncached, is_negated, split_sentences

_MAX_LINES = 4_000
"""Lines of one text that are compared. Beyond that it is a source all the same."""


@dataclass(frozen=True, slots=True)
class LineSource:
    """Who said a line."""

    taint: Taint
    is_told: bool = False
    """By the program itself."""


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A line and how much of a sentence is in it."""

    source: LineSource
    is_negated: bool
    share: float


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    source: LineSource


@dataclass(frozen=True, slots=True)
class _Kind:
    """What lines of one source have in common. The lines themselves are kept as numbers: a long conversation
    has very many."""

    source: LineSource
    is_negated: bool


class LineIndex:
    """Lines of one text after another. Each is read once, when somebody first asks."""

    def __init__(self) -> None:
        self._unread: list[_Text] = []
        self._kinds: list[_Kind] = []
        self._lines: dict[str, list[int]] = {}

    def add(self, text: str, source: LineSource) -> None:
        self._unread.append(_Text(text, source))

    def find(self, stems: frozenset[str]) -> Iterator[LineMatch]:
        """Every line that has one of these stems or more."""
        self._read()
        found = Counter[int]()
        for stem in stems:
            found.update(self._lines.get(stem, ()))
        for line, count in found.items():
            kind = self._kinds[line]
            yield LineMatch(kind.source, kind.is_negated, count / len(stems))

    def _read(self) -> None:
        while self._unread:
            unread = self._unread.pop()
            kinds = {no: _Kind(unread.source, no) for no in (False, True)}
            for line in split_sentences(unread.text)[:_MAX_LINES]:
                number = len(self._kinds)
                for stem in find_stems_uncached(line):
                    self._lines.setdefault(stem, []).append(number)
                self._kinds.append(kinds[is_negated(line)])
