"""BM25 over memories, in memory and updated one document at a time.

It suits about ten thousand documents, more than any project has written by hand. `large_index` puts the same
words into an index on disk.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from heapq import nsmallest
from typing import Protocol, cast

# Words are stemmed and in lower case. `parseHeader` and `parse_header` also match "header"; each pair of
# neighbours counts as a word, so that a phrase weighs more than its words apart.

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_WORD = 64
"""Characters. Longer ones are hashes and encoded data, which nobody asks for by a part of them."""

# fmt: off
STOP_WORDS = frozenset((
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i",
    "if", "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "she",
    "should", "so", "some", "such", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "to", "was", "we", "were", "what", "when", "where", "which", "who", "will", "with", "would",
    "you", "your",
))


# fmt: on
class _Stemmer(Protocol):
    """What is used of the library, which has no types."""

    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the library's word


@cache
def _stemmer() -> _Stemmer:
    # Not at the top: only who searches needs it.
    import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

    made = snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType]
    return cast("_Stemmer", made)


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    return _stemmer().stemWord(word)


def split_words(text: str) -> list[str]:
    """In the order of the text: each word, its parts, and each pair of neighbours as `one two`."""
    found: list[str] = []
    before = ""
    for match in _WORD.finditer(text):
        forms = _forms(match.group())
        found += forms
        if forms:
            if before:
                found.append(f"{before} {forms[-1]}")
            before = forms[-1]
    return found


def _forms(word: str) -> list[str]:
    """What a word is known by: itself where it is a compound, and the stems of its parts."""
    if len(word) > _MAX_WORD:
        return []
    plain = word.lower()
    parts = [part.lower() for part in _PART.findall(word)] if word.isascii() else [plain]
    stems = [_stem(part) for part in parts if part not in STOP_WORDS]
    return [plain, *stems] if len(parts) > 1 else stems


BM25_K1 = 1.2
BM25_B = 0.75
"""The usual two: how soon more of a word stops counting, and how much a long document is held back. Other
values were tried on five sets of questions and none was better on all of them."""

MOST_REPEATS = 3
"""How often a word of the question counts. A question that is a whole report repeats itself."""


LEAST_DOCUMENTS = 50
"""A handful of documents says little of how rare a word is, so an overlap takes them to be as many."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    key: str
    score: float


@dataclass(frozen=True, slots=True)
class QueryOverlap:
    """What a question and a document have in common."""

    share: float
    """Of what the question asks, rare words counting more; 1: all of it."""
    rare_words: float
    """The same as a number of words that hardly any document holds."""
    words: tuple[str, ...]
    """The words, rarest first."""


@dataclass(frozen=True, slots=True)
class WeightedQuery:
    """The words of a question, pairs of them aside, each with its weight."""

    words: Mapping[str, float]
    rarest: float
    """What a word weighs that no document holds."""

    def overlap(self, held: Container[str]) -> QueryOverlap:
        shared = sorted(
            (word for word in self.words if word in held), key=lambda word: (-self.words[word], word)
        )
        found = sum(self.words[word] for word in shared)
        return QueryOverlap(found / (sum(self.words.values()) or 1.0), found / self.rarest, tuple(shared))


@dataclass(slots=True)
class LexicalIndex:
    """Documents by key. Adding a key again replaces its document."""

    _words: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """For each word the documents that hold it, and how often."""
    _documents: dict[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    _lengths: dict[str, int] = field(default_factory=dict[str, int])
    _total: int = 0

    def __len__(self) -> int:
        return len(self._documents)

    def add(self, key: str, text: str) -> None:
        self.add_counts(key, Counter(split_words(text)))

    def add_counts(self, key: str, counts: Mapping[str, int]) -> None:
        """The same for a text whose words were counted before."""
        self.remove(key)
        total = sum(counts.values())
        self._documents[key], self._lengths[key] = counts, total
        self._total += total
        for word, count in counts.items():
            self._words.setdefault(word, {})[key] = count

    def remove(self, key: str) -> None:
        """Forget a document; one that is not there is forgotten already."""
        for word in self._documents.pop(key, {}):
            holders = self._words[word]
            del holders[key]
            if not holders:
                del self._words[word]
        self._total -= self._lengths.pop(key, 0)

    def score(self, question: str) -> dict[str, float]:
        """Every document that holds a word of the question, with its score."""
        scores: dict[str, float] = {}
        count = len(self._documents)
        mean = self._total / count if count else 1.0
        for word, asked in Counter(split_words(question)).items():
            holders = self._words.get(word)
            if not holders:
                continue
            weight = min(asked, MOST_REPEATS) * rarity(count, len(holders)) * (BM25_K1 + 1)
            for key, times in holders.items():
                held_back = BM25_K1 * (1 - BM25_B + BM25_B * self._lengths[key] / mean)
                scores[key] = scores.get(key, 0.0) + weight * times / (times + held_back)
        return scores

    def weigh_query(self, question: str) -> WeightedQuery:
        """The words of a question, for `overlap`."""
        return weigh_query(question, len(self), self._held_by)

    def overlap(self, asked: WeightedQuery, key: str) -> QueryOverlap:
        """How much of a question a document answers."""
        return asked.overlap(self._documents.get(key, {}))

    def rank(self, question: str, limit: int) -> list[SearchHit]:
        """The best, best first; of equals the first by key, so that the same question has one answer."""
        return choose_best(self.score(question), limit)

    def _held_by(self, word: str) -> int:
        return len(self._words.get(word, ()))


def rarity(count: int, holders: int) -> float:
    """What a word weighs that so many of the documents hold."""
    return math.log(1 + (count - holders + 0.5) / (holders + 0.5))


def weigh_query(question: str, count: int, held_by: Callable[[str], int]) -> WeightedQuery:
    """The words of a question among so many documents."""
    count = max(count, LEAST_DOCUMENTS)
    words = (word for word in split_words(question) if " " not in word)
    return WeightedQuery({word: rarity(count, held_by(word)) for word in words}, rarity(count, 0))


def choose_best(scores: Mapping[str, float], limit: int) -> list[SearchHit]:
    found = nsmallest(limit, scores.items(), key=lambda item: (-item[1], item[0]))
    return [SearchHit(key, score) for key, score in found]


def build_lexical_index(documents: Iterable[tuple[str, str]]) -> LexicalIndex:
    index = LexicalIndex()
    for key, text in documents:
        index.add(key, text)
    return index
