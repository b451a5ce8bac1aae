"""A text as the words that a search compares: stemmed, in lower case, names of programs taken apart.

`parseHeader` and `parse_header` are found by "header" and by themselves; two words that stand side by side
count as a word of their own, so that a phrase weighs more than its words in two places.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Protocol, cast

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
