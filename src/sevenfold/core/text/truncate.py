"""Text cut to a number of tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sevenfold.core.text.truncation import truncate_lines

CountTokens: TypeAlias = Callable[[str], int]
"""Tokens of a text."""


def truncate_tokens(text: str, max_tokens: int, count: CountTokens) -> str:
    """As much of the beginning as has about that many tokens, in whole lines."""
    tokens = count(text)
    if tokens <= max_tokens:
        return text
    size = len(text.encode("utf-8", "surrogatepass"))
    return truncate_lines(text, size * max(0, max_tokens) // tokens)
