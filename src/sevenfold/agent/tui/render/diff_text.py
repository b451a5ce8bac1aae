"""A unified diff as a person reads it: numbered lines in the colours of their language, changes marked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True, slots=True)
class DiffLine:
    number: str
    """Where the line stands in the file: in the old one what goes, in the new one all else."""
    text: str


_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def number_diff_lines(diff: str) -> list[DiffLine]:
    """The lines of a unified diff with their numbers, without its headers; `…` between two hunks."""
    found: list[DiffLine] = []
    old = new = 0
    for line in diff.splitlines():
        if hunk := _HUNK.match(line):
            found += [DiffLine("", "…")] if found else []
            old, new = int(hunk[1]), int(hunk[2])
        elif not (old or new):
            # Before the first hunk there are only headers, and without hunks no line has a number.
            found += [] if line.startswith(("---", "+++")) else [DiffLine("", line)]
        else:
            is_old, is_new = not line.startswith("+"), not line.startswith("-")
            found.append(DiffLine(str(new if is_new else old), line))
            old, new = old + is_old, new + is_new
    return found


DiffBackground: TypeAlias = Literal["none", "dark", "light"]
"""What lines have behind them: nothing where there are only the sixteen colours, which could hide text."""


def find_diff_name(diff: str) -> str:
    """The file that a diff is of, which tells the language; empty where it has no headers."""
    return next((line[4:] for line in diff.splitlines() if line.startswith("+++ ")), "")


def paint_diff_lines(lines: Sequence[DiffLine], name: str, background: DiffBackground) -> list[Text]:
    """Each line with its sign, in green or red. Where lines can have a background, code that came or went
    has the colours of its language, and words that changed are marked."""
    from rich.syntax import Syntax
    from rich.text import Text

    if background == "none":
        return [Text(line.text, _diff_style(line.text)) for line in lines]
    look = _LOOKS[background]
    code = "\n".join(line.text[1:] for line in lines)
    lexer = Syntax.guess_lexer(name, code) if name else "text"
    bodies = list(Syntax("", lexer, theme=look.theme).highlight(code).split("\n", allow_blank=True))
    # A lexer may drop an empty line at the end, and no line of the diff may get lost.
    bodies = [*bodies, *(Text() for _ in lines[len(bodies) :])]
    found: list[Text] = []
    for line, body, spans in zip(lines, bodies, mark_changed_words(lines), strict=False):
        shown, colors = Text(line.text, _diff_style(line.text)), look.colors.get(line.text[:1])
        if colors is not None:
            shown.style = look.text
            for span in body.spans:
                shown.stylize(span.style, span.start + 1, span.end + 1)
            shown.stylize(colors.line)
            for start, end in spans:
                shown.stylize(colors.word, start + 1, end + 1)
        found.append(shown)
    return found


@dataclass(frozen=True, slots=True)
class _DiffColors:
    line: str
    word: str


@dataclass(frozen=True, slots=True)
class _Look:
    """Text and background together, so that both can be read whatever the terminal's own colours are."""

    text: str
    theme: str
    colors: Mapping[str, _DiffColors]


_LOOKS = {
    "dark": _Look(
        "color(231)",
        "monokai",
        {"+": _DiffColors("on color(22)", "on color(28)"), "-": _DiffColors("on color(52)", "on color(88)")},
    ),
    "light": _Look(
        "color(16)",
        "default",
        {
            "+": _DiffColors("on color(194)", "on color(157)"),
            "-": _DiffColors("on color(224)", "on color(217)"),
        },
    ),
}
_MOST_CHANGED = 0.6
"""Of a line: where more of it changed, marks say nothing."""


def mark_changed_words(lines: Sequence[DiffLine]) -> list[list[tuple[int, int]]]:
    """For each line, where its text without the sign changed, in lines that took the place of others."""
    found: list[list[tuple[int, int]]] = [[] for _ in lines]
    at = 0
    while at < len(lines):
        gone = _count_run(lines, at, "-")
        came = _count_run(lines, at + gone, "+")
        if gone and gone == came:
            for old in range(at, at + gone):
                found[old], found[old + gone] = _compare(lines[old].text[1:], lines[old + gone].text[1:])
        at += max(1, gone + came)
    return found


def _count_run(lines: Sequence[DiffLine], at: int, sign: str) -> int:
    end = at
    while end < len(lines) and lines[end].text.startswith(sign):
        end += 1
    return end - at


_Spans: TypeAlias = list[tuple[int, int]]


def _compare(old: str, new: str) -> tuple[_Spans, _Spans]:
    """The words that differ, as ranges of characters in both lines."""
    before, after = re.findall(r"\w+|\s+|.", old), re.findall(r"\w+|\s+|.", new)
    steps = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    gone, came = _measure(before), _measure(after)
    changed = [step for step in steps if step[0] != "equal"]
    marked = sum(gone[end] - gone[start] for _, start, end, _, _ in changed)
    if not old.strip() or marked > _MOST_CHANGED * len(old):
        return [], []
    return (
        [(gone[start], gone[end]) for _, start, end, _, _ in changed if end > start],
        [(came[start], came[end]) for _, _, _, start, end in changed if end > start],
    )


def _measure(words: Sequence[str]) -> list[int]:
    """Where each word begins, and where the last one ends."""
    return [0, *accumulate(len(word) for word in words)]


def _diff_style(line: str) -> str:
    if line.startswith("@@"):
        return "cyan"
    return {"+": "green", "-": "red"}.get(line[:1], "dim")
