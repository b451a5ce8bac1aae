"""Text cut to a number of bytes, lines or tokens, and escaped for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias


def truncate_bytes(text: str, max_bytes: int) -> str:
    """As much of the beginning of `text` as fits in `max_bytes` of UTF-8."""
    max_bytes = max(0, max_bytes)
    # No character takes less than a byte, so what lies beyond cannot fit and need not be encoded.
    data = text[:max_bytes].encode("utf-8", "surrogatepass")
    if len(data) <= max_bytes:
        return text[:max_bytes]
    end = max_bytes
    while end > 0 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end].decode("utf-8", "surrogatepass")


def truncate_lines(text: str, max_bytes: int) -> str:
    """The same, ending with a whole line unless that would lose half of what fits."""
    kept = truncate_bytes(text, max_bytes)
    if len(kept) == len(text):
        return text
    end = kept.rfind("\n")
    return kept[: end + 1] if end + 1 > len(kept) // 2 else kept


def escape_controls(text: str) -> str:
    """Without what would move a cursor or change a colour: such characters are spelled out instead."""
    if text.isprintable():
        return text
    return "".join(item if item.isprintable() or item == "\n" else repr(item)[1:-1] for item in text)


CountTokens: TypeAlias = Callable[[str], int]
"""Tokens of a text."""


def truncate_tokens(text: str, max_tokens: int, count: CountTokens) -> str:
    """As much of the beginning as has about that many tokens, in whole lines."""
    tokens = count(text)
    if tokens <= max_tokens:
        return text
    size = len(text.encode("utf-8", "surrogatepass"))
    return truncate_lines(text, size * max(0, max_tokens) // tokens)
