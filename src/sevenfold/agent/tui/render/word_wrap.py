"""Where a line of text is broken: between words, and within a long path or address after one of its parts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

_WORD = re.compile(r"\S+\s*|\s+")
_SEPARATOR = re.compile(r"[/\\&?=,;:_.@-]+")
"""What a part of a path or an address ends with."""
_LEAST_USED = 0.5
"""Of a line: a part that would leave more of it empty is broken at the edge instead."""


def find_line_breaks(text: str, columns: int) -> list[int]:
    """Where new lines begin, as offsets."""
    from rich.cells import cell_len

    breaks: list[int] = []
    at, used = 0, 0
    for found in _WORD.finditer(text):
        word = found[0]
        size = cell_len(word.rstrip())
        if used and used + size > columns:
            breaks.append(at)
            used = 0
        if size > columns:
            inner, used = _break_word(word.rstrip(), at, columns)
            breaks += inner
            used += len(word) - len(word.rstrip())
        else:
            used += cell_len(word)
        at += len(word)
    return breaks


def _break_word(word: str, start: int, columns: int) -> tuple[list[int], int]:
    """Breaks in a word that is longer than a line, and the columns that its last line takes."""
    from rich.cells import cell_len

    breaks: list[int] = []
    used, begins = 0, 0
    for ends in (*(found.end() for found in _SEPARATOR.finditer(word)), len(word)):
        if used + cell_len(word[begins:ends]) > columns and used >= _LEAST_USED * columns:
            breaks.append(start + begins)
            used = 0
        for at in range(begins, ends):
            width = cell_len(word[at])
            if used + width > columns:
                breaks.append(start + at)
                used = 0
            used += width
        begins = ends
    return breaks, used


def find_hanging_breaks(text: str, columns: int, hang: int) -> list[int]:
    """The same where what goes on in a new line stands behind so many columns."""
    first = find_line_breaks(text, columns)[:1]
    if not first or not text[first[0] :].strip():
        return []
    return [first[0], *(first[0] + at for at in find_line_breaks(text[first[0] :], columns - hang))]


def wrap_text(text: Text, columns: int) -> list[Text]:
    """Styled text in lines of at most so many columns; its own line breaks stay."""
    wrapped: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        wrapped += line.divide(find_line_breaks(line.plain, columns))
    for line in wrapped:
        line.rstrip()
    return wrapped
