"""How many tokens a text is, from its shape alone.

A byte-pair tokenizer first splits text where its kind of character changes: words, numbers, runs of
punctuation, white space. Common pieces then become one token each. Counting those places gives the token
count to within a few per cent, in a handful of C-speed passes and with no vocabulary (docs/tokens.md).
"""

from __future__ import annotations

import string
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeWeights:
    """Tokens for each place, measured on the bills of Claude up to 4.6 (`bench/token_weights.py`)."""

    word: float = 1.07
    """A run of letters: mostly one token with its leading space, sometimes two."""
    hump: float = 1.6
    """A lower-case letter before a capital: identifiers split there, and seldom into known words."""
    capitals: float = 0.6
    """Each two capitals side by side: shouted words are rarer, so they break into more pieces."""
    random: float = 9.0
    """Sixteen lower-case letters without a break: no language does that, keys and encoded bytes do."""
    number: float = 0.9
    digit: float = 0.3
    """A number costs a token to start with, and then one for about every three digits."""
    punctuation: float = 1.12
    """A run of marks; the frequent runs, such as `);` or `":"`, are single tokens."""
    line: float = 0.94
    gap: float = 0.77
    """Two or more white-space characters together, as in indentation; a single space belongs to its word."""
    beyond_ascii: float = 1 / 3
    """Each byte: most scripts take a token for one character of three bytes, or for two of two."""

    text_block: float = 2.0
    thinking_block: float = 10.0
    tool_block: float = 26.0
    """A request, and again its result: markup, name and ids around what they say."""
    argument: float = 16.0
    """Each argument of a request has a name and markup of its own."""


MEASURED_WEIGHTS = ShapeWeights()


def _classes(**members: bytes) -> bytes:
    """A translation table that turns every byte into the letter of its class, or `_`."""
    table = bytearray(b"_" * 256)
    for name, chars in members.items():
        for char in chars:
            table[char] = ord(name)
    return bytes(table)


_LOWER, _UPPER = string.ascii_lowercase.encode(), string.ascii_uppercase.encode()
_CASES = _classes(a=_LOWER, A=_UPPER, x=bytes(range(128, 256)))
_WORDS = _classes(a=_LOWER + _UPPER)
_NUMBERS = _classes(n=string.digits.encode())
_MARKS = _classes(m=string.punctuation.encode())
_GAPS = _classes(s=string.whitespace.encode())


def estimate_text_tokens(text: str, weights: ShapeWeights = MEASURED_WEIGHTS) -> float:
    """The estimate for one text, without what the block around it costs."""
    # In front stands a byte that belongs to no run, so that a run at the very start counts too.
    data = b"\0" + text.encode("utf-8", "surrogatepass")
    cases = data.translate(_CASES)
    numbers = data.translate(_NUMBERS)
    tokens = (
        weights.word * data.translate(_WORDS).count(b"_a")
        + weights.hump * cases.count(b"aA")
        + weights.capitals * cases.count(b"AA")
        + weights.random * cases.count(b"a" * 16)
        + weights.number * numbers.count(b"_n")
        + weights.digit * numbers.count(b"n")
        + weights.punctuation * data.translate(_MARKS).count(b"_m")
        + weights.line * data.count(b"\n")
        + weights.gap * data.translate(_GAPS).count(b"_ss")
    )
    return tokens if text.isascii() else tokens + weights.beyond_ascii * cases.count(b"x")
