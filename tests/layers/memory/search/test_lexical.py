"""The index answers as a fresh one over the same documents would, however it came to hold them."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.layers.memory.search.lexical import (
    BM25_B,
    BM25_K1,
    TALK_RANKS,
    LexicalIndex,
    SearchHit,
    build_lexical_index,
    is_talk,
    split_words,
)

WORDS = st.lists(st.sampled_from(["retry", "budget", "header", "parser", "cache", "the"]), max_size=6).map(
    " ".join
)
KEYS = st.sampled_from(["a.md", "b.md", "c.md", "d.md"])


def plainly(documents: dict[str, str], question: str) -> dict[str, float]:
    """BM25 as it is written down, with no index."""
    counts = {key: Counter(split_words(text)) for key, text in documents.items()}
    mean = sum(each.total() for each in counts.values()) / len(counts) if counts else 1.0
    scores: dict[str, float] = {}
    for word, asked in Counter(split_words(question)).items():
        holders = [key for key in counts if word in counts[key]]
        rarity = math.log(1 + (len(counts) - len(holders) + 0.5) / (len(holders) + 0.5))
        share = TALK_RANKS if is_talk(word) else 1.0
        for key in holders:
            times, length = counts[key][word], counts[key].total()
            part = times * (BM25_K1 + 1) / (times + BM25_K1 * (1 - BM25_B + BM25_B * length / mean))
            scores[key] = scores.get(key, 0.0) + min(asked, 3) * rarity * part * share
    return scores


@given(st.lists(st.tuples(KEYS, st.one_of(st.none(), WORDS)), max_size=20), WORDS)
def test_scores_are_those_of_bm25_after_any_changes(
    changes: list[tuple[str, str | None]], question: str
) -> None:
    index, documents = LexicalIndex(), dict[str, str]()
    for key, text in changes:
        if text is None:
            index.remove(key)
            documents.pop(key, None)
        else:
            index.add(key, text)
            documents[key] = text
    expected = plainly(documents, question)
    found = index.score(question)
    assert found.keys() == expected.keys()
    assert all(math.isclose(found[key], expected[key]) for key in found)
    assert len(index) == len(documents)


def test_the_document_that_holds_the_phrase_comes_first() -> None:
    index = build_lexical_index(
        [("a.md", "the budget of the attempt"), ("b.md", "an attempt budget"), ("c.md", "nothing at all")]
    )
    assert [hit.key for hit in index.rank("attempt budget", 5)] == ["b.md", "a.md"]


def test_of_equals_the_first_by_key_comes_first_whatever_came_in_first() -> None:
    index = build_lexical_index([("b.md", "cache"), ("a.md", "cache"), ("c.md", "cache")])
    assert [hit.key for hit in index.rank("cache", 2)] == ["a.md", "b.md"]


def test_nothing_is_found_where_nothing_fits() -> None:
    assert LexicalIndex().rank("anything", 5) == []
    assert build_lexical_index([("a.md", "cache")]).rank("the of and", 5) == []
    [hit] = build_lexical_index([("a.md", "cache")]).rank("caches", 5)
    assert hit == SearchHit("a.md", hit.score)
    assert hit.score > 0


def test_of_two_words_as_rare_the_one_of_everyday_talk_ranks_lower() -> None:
    index = build_lexical_index({"a.md": "tomorrow lunch", "b.md": "kestrel lunch", "c.md": "lunch"}.items())
    assert [hit.key for hit in index.rank("tomorrow on kestrel", 2)] == ["b.md", "a.md"]
