"""A text and a question about it come down to the same words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.layers.memory.search.lexical import STOP_WORDS, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("running runs", ["run", "run", "run run"]),
        ("parseHeader", ["parseheader", "pars", "header"]),
        ("parse_header", ["parse_header", "pars", "header"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("What is the budget?", ["budget"]),
        ("the attempt budget", ["attempt", "budget", "attempt budget"]),
        ("Straße prüfen", ["straße", "prüfen", "straße prüfen"]),
        ("x" * 65, []),
        ("", []),
    ],
)
def test_a_text_becomes_these_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@given(st.text(max_size=300))
def test_any_text_becomes_words_that_a_question_can_hold(text: str) -> None:
    words = split_words(text)
    assert all(word and word == word.strip() for word in words)
    assert not STOP_WORDS.intersection(words)
    assert split_words(text) == words


@given(st.lists(st.sampled_from(["budget", "retry", "window", "limit"]), min_size=2, max_size=8))
def test_neighbours_count_as_a_word_of_their_own(words: list[str]) -> None:
    found = split_words(" ".join(words))
    assert sum(" " in word for word in found) == len(words) - 1
