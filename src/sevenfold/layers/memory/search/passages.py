"""BM25 over texts as wholes and in parts, so that a long text is found by what one part of it says.

A text of pages holds a few words of any question somewhere. Where they stand together in one part, it is
more likely to be meant: docs/decisions/028-ranking.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sevenfold.layers.memory.search.lexical import (
    LexicalIndex,
    MemoryHead,
    QueryOverlap,
    WeightedQuery,
    hold_back,
    split_words,
    weigh_word,
)
from sevenfold.layers.memory.search.vectors import cut_text

WORDS_PART_CHARS = 1_000
"""Of a part. With 600 or 800 single questions are lost where whole texts are short; 1,200 find less."""


@dataclass(slots=True)
class PassageIndex:
    """Documents by key. Of a document without parts, the part is the whole."""

    _whole: LexicalIndex = field(default_factory=LexicalIndex)
    _parts: LexicalIndex = field(default_factory=LexicalIndex)
    """Of long documents alone."""
    _part_keys: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Of each long document."""
    _long_total: int = 0
    """Words of all long documents."""

    def __len__(self) -> int:
        return len(self._whole)

    def add(self, key: str, parts: Sequence[Mapping[str, int]]) -> None:
        """A document by the words of its parts. Adding a key again replaces its document."""
        self.remove(key)
        if len(parts) == 1:
            self._whole.add_counts(key, parts[0])
            return
        whole = Counter[str]()
        part_keys = tuple(f"{key}\n{at}" for at in range(len(parts)))
        for part_key, counts in zip(part_keys, parts, strict=True):
            whole.update(counts)
            self._parts.add_counts(part_key, counts)
        self._whole.add_counts(key, whole)
        self._part_keys[key] = part_keys
        self._long_total += whole.total()

    def remove(self, key: str) -> None:
        """Forget a document; one that is not there is forgotten already."""
        part_keys = self._part_keys.pop(key, ())
        if part_keys:
            self._long_total -= self._whole.length(key)
        for part_key in part_keys:
            self._parts.remove(part_key)
        self._whole.remove(key)

    def score(self, question: str) -> dict[str, float]:
        """Every document that holds a word of the question: half for the whole, half for its best part."""
        whole = self._whole.score(question)
        if not self._part_keys or not whole:
            return whole
        parts = self._score_parts(question)
        best_whole, best_part = max(whole.values()), max(parts.values())
        return {key: score / best_whole + parts[key] / best_part for key, score in whole.items()}

    def weigh_query(self, question: str) -> WeightedQuery:
        return self._whole.weigh_query(question)

    def measure_shared(self, asked: WeightedQuery, keys: Iterable[str]) -> float:
        """The most that one of these documents shares of a question."""
        return self._whole.measure_shared(asked, keys)

    def overlap(self, asked: WeightedQuery, head: MemoryHead) -> QueryOverlap:
        """How much of a question a document answers."""
        return self._whole.overlap(asked, head)

    def _score_parts(self, question: str) -> dict[str, float]:
        """Every document with the score of its best part, among the parts of all."""
        count = len(self._whole) - len(self._part_keys) + len(self._parts)
        mean = (self._whole.total - self._long_total + self._parts.total) / count
        scores: dict[str, float] = {}
        of_parts: dict[str, float] = {}
        for word, asked in Counter(split_words(question)).items():
            short = [item for item in self._whole.holders(word).items() if item[0] not in self._part_keys]
            parts = self._parts.holders(word)
            if not short and not parts:
                continue
            weight = weigh_word(word, asked, count, len(short) + len(parts))
            for key, times in short:
                held_back = hold_back(self._whole.length(key), mean)
                scores[key] = scores.get(key, 0.0) + weight * times / (times + held_back)
            for key, times in parts.items():
                held_back = hold_back(self._parts.length(key), mean)
                of_parts[key] = of_parts.get(key, 0.0) + weight * times / (times + held_back)
        for key, score in of_parts.items():
            owner = key[: key.rindex("\n")]
            scores[owner] = max(scores.get(owner, 0.0), score)
        return scores


def count_parts(text: str) -> list[Counter[str]]:
    """How often each word stands in each part of a text."""
    return [Counter(split_words(part)) for part in cut_text(text, WORDS_PART_CHARS)]
