"""A text as words: contractions are taken apart, and exact things stay whole."""

from __future__ import annotations

import pytest

from sevenfold.layers.memory.trust.tokens import split_tokens


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("can't", ["can", "not"]),
        ("won't", ["will", "not"]),
        ("shan't", ["shall", "not"]),
        ("Don’t", ["do", "not"]),
        ("isn't", ["is", "not"]),
        ("let's", ["let's"]),
        ("it's", ["it", "is"]),
    ],
)
def test_a_contraction_is_its_words(text: str, words: list[str]) -> None:
    assert [token.text for token in split_tokens(text)] == words


def test_a_file_and_a_number_are_exact_and_lose_their_full_stop() -> None:
    tokens = split_tokens("Read src/app.py.")
    assert [(token.text, token.is_exact) for token in tokens if "app" in token.text] == [("src/app.py", True)]
