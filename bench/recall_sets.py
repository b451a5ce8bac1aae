"""Public sets of questions, scores of every document for each, and what they come to."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from sevenfold.layers.memory.search.lexical import build_lexical_index
from sevenfold.layers.memory.search.memory_index import shorten_query
from sevenfold.layers.memory.search.vectors import TextEncoder

Scores: TypeAlias = "NDArray[np.float64]"

CUT = 5
FLIPS = 20_000
"""Of the permutation test: enough for two digits of a p of .01."""


@dataclass(frozen=True, slots=True)
class Question:
    space: str
    text: str
    gold: frozenset[str]


@dataclass(slots=True, kw_only=True)
class QuestionSet:
    """Documents by space, and what is asked of them."""

    name: str
    spaces: dict[str, dict[str, str]]
    questions: list[Question]
    plain: list[Scores] = field(default_factory=list[Scores])
    words: list[Scores] = field(default_factory=list[Scores])
    meanings: list[Scores] = field(default_factory=list[Scores])


def read_sets(data: Path) -> list[QuestionSet]:
    folders = sorted(path for path in (data / "retrieval").iterdir() if (path / "queries.jsonl").is_file())
    return [_read_set(folder) for folder in folders]


def _read_set(folder: Path) -> QuestionSet:
    spaces: dict[str, dict[str, str]] = {}
    for line in _lines(folder / "docs.jsonl"):
        spaces.setdefault(str(line["space"]), {})[str(line["id"])] = str(line["text"])
    questions = [
        Question(str(line["space"]), str(line["query"]), frozenset(cast("list[str]", line["gold"])))
        for line in _lines(folder / "queries.jsonl")
    ]
    return QuestionSet(name=folder.name, spaces=spaces, questions=[one for one in questions if one.gold])


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class PlainIndex:
    """BM25 as anybody would write it down: words in lower case, no more."""

    def __init__(self, documents: dict[str, str], k1: float, b: float) -> None:
        self._counts = [Counter(re.findall(r"\w+", text.lower())) for text in documents.values()]
        self._holders = Counter(word for counts in self._counts for word in counts)
        lengths = [counts.total() for counts in self._counts]
        mean = sum(lengths) / max(1, len(lengths))
        self._held_back = [k1 * (1 - b + b * length / mean) for length in lengths]
        self._k1 = k1

    def score(self, question: str) -> Scores:
        scores = np.zeros(len(self._counts))
        for word, asked in Counter(re.findall(r"\w+", question.lower())).items():
            held = self._holders.get(word, 0)
            weight = asked * math.log(1 + (len(self._counts) - held + 0.5) / (held + 0.5)) * (self._k1 + 1)
            for at, counts in enumerate(self._counts):
                if times := counts.get(word, 0):
                    scores[at] += weight * times / (times + self._held_back[at])
        return scores


def score_words(found: QuestionSet) -> None:
    """Plain BM25 by whichever of two usual constants is better on the set, and ours."""
    rivals: list[list[Scores]] = []
    for k1 in (1.2, 1.5):
        plain = {name: PlainIndex(documents, k1, 0.75) for name, documents in found.spaces.items()}
        rivals.append([plain[question.space].score(question.text) for question in found.questions])
    found.plain = max(rivals, key=lambda scores: float(recalls(found, scores).mean()))
    ours = {name: build_lexical_index(documents.items()) for name, documents in found.spaces.items()}
    for question in found.questions:
        by_key = ours[question.space].score(shorten_query(question.text))
        found.words.append(np.array([by_key.get(key, 0.0) for key in found.spaces[question.space]]))


def score_meanings(found: QuestionSet, encoder: TextEncoder, cache: Path | None) -> None:
    documents = [text for each in found.spaces.values() for text in each.values()]
    vectors = _encoded(encoder, documents, cache)
    starts: dict[str, int] = {}
    for name in found.spaces:
        starts[name] = sum(len(found.spaces[before]) for before in starts)
    asked = _encoded(encoder, [shorten_query(question.text) for question in found.questions], cache)
    for question, vector in zip(found.questions, asked, strict=True):
        start = starts[question.space]
        near = vectors[start : start + len(found.spaces[question.space])] @ vector
        found.meanings.append(near.astype(np.float64))


def _encoded(encoder: TextEncoder, texts: Sequence[str], cache: Path | None) -> NDArray[np.float32]:
    if cache is None:
        return encoder.encode(texts)
    name = hashlib.sha256("\0".join([encoder.name, *texts]).encode()).hexdigest()
    path = cache / f"{name}.npy"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        np.save(path, encoder.encode(texts))
    return np.load(path)


def standard(scores: Scores) -> Scores:
    spread = scores.std()
    return (scores - scores.mean()) / spread if spread else scores * 0


def scaled(scores: Scores) -> Scores:
    reach = scores.max() - scores.min()
    return (scores - scores.min()) / reach if reach else scores * 0


def fused(
    words: Sequence[Scores], meanings: Sequence[Scores], share: float, measure: Callable[[Scores], Scores]
) -> list[Scores]:
    pairs = zip(words, meanings, strict=True)
    return [share * measure(word) + (1 - share) * measure(near) for word, near in pairs]


def recalls(found: QuestionSet, scores: Sequence[Scores]) -> Scores:
    """Of each question, the share of its right documents among the first five."""
    each: list[float] = []
    for question, scored in zip(found.questions, scores, strict=True):
        keys = list(found.spaces[question.space])
        first = np.argsort(-scored, kind="stable")[:CUT]
        each.append(len(question.gold & {keys[at] for at in first.tolist()}) / len(question.gold))
    return np.array(each)


def chance_of(better: Scores, worse: Scores) -> float:
    """How likely a difference this large in this direction would be by chance: signs flipped at random."""
    differences = [value for value in (better - worse).tolist() if value]
    if not differences:
        return 1.0
    flips, seen = random.Random(7), sum(differences)
    signs = np.array([[flips.choice((-1, 1)) for _ in differences] for _ in range(FLIPS // 10)])
    return float(((signs @ np.array(differences)) >= seen - 1e-12).mean())


def resample_mean(differences: Scores) -> tuple[float, float]:
    """Between which the mean of nine in ten resamples lies."""
    draws = np.random.default_rng(7).choice(differences, (2_000, len(differences)))
    low, high = np.percentile(draws.mean(axis=1), [5, 95])
    return float(low), float(high)
