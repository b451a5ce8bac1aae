"""Sentences that speak of the sentence before them."""

from __future__ import annotations

import pytest

from sevenfold.layers.memory.trust.frames import depends_on_last
from sevenfold.layers.memory.trust.languages import choose_grammar
from sevenfold.layers.memory.trust.phrases import parse_sentence
from sevenfold.layers.memory.trust.replies import points_back


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("That was for the other window.", True),
        ("So scope decisions to one page.", False),
        ("Releases need a signed tag.", False),
        ("それは別の話です。", True),
        ("这是另一件事。", True),
        ("リリースには署名が必要です。", False),
    ],
)
def test_a_word_that_stands_for_what_was_said_points_back(text: str, points: bool) -> None:
    words = tuple(text.lower().rstrip(".").split())
    assert points_back(text, choose_grammar(words, words)) == points


@pytest.mark.parametrize(
    ("text", "depends"),
    [("Final decision.", False), ("Important!", False), ("Only on Fridays.", True), ("But not here.", True)],
)
def test_a_sentence_that_only_approves_takes_nothing_back(text: str, depends: bool) -> None:
    words = tuple(text.lower().rstrip(".!").split())
    assert depends_on_last(text, parse_sentence(text, choose_grammar(words, words))) == depends
