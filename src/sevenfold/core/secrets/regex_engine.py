"""Regular expressions that take time in proportion to the text, whatever the text is: RE2, and nothing else.

A backtracking engine can be held up for minutes by a file written for that, so there is no second engine to
fall back on: without RE2 nothing is found clean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Protocol, cast


class RegexMatch(Protocol):
    def start(self, group: int = 0, /) -> int: ...
    def end(self, group: int = 0, /) -> int: ...
    def group(self, group: int = 0, /) -> str: ...


class RegexPattern(Protocol):
    def finditer(self, text: str, /) -> Iterator[RegexMatch]: ...


class _Set(Protocol):
    def Add(self, pattern: str, /) -> int: ...  # noqa: N802 - the library's own names
    def Compile(self) -> None: ...  # noqa: N802
    def Match(self, text: str, /) -> list[int] | None: ...  # noqa: N802


def has_re2() -> bool:
    """Whether the package `google-re2` is installed; it comes with `sevenfold[team]`."""
    return find_spec("re2") is not None


@cache
def compile_pattern(pattern: str) -> RegexPattern:
    import re2  # pyright: ignore[reportMissingTypeStubs]

    return cast("RegexPattern", re2.compile(pattern))  # pyright: ignore[reportUnknownMemberType]


class HintMatcher:
    """Which of these words a text has in it, in one pass, upper and lower case alike."""

    def __init__(self, words: Sequence[str]) -> None:
        import re2  # pyright: ignore[reportMissingTypeStubs]

        self._set = cast("_Set", re2.Set.SearchSet())  # pyright: ignore[reportUnknownMemberType]
        self._words = tuple(words)
        for word in words:
            quoted = cast("str", re2.escape(word))  # pyright: ignore[reportUnknownMemberType]
            self._set.Add(f"(?i){quoted}")
        self._set.Compile()

    def words_in(self, text: str) -> frozenset[str]:
        return frozenset(self._words[index] for index in self._set.Match(text) or ())
