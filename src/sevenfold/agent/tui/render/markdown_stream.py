"""Markdown that is still being written, as blocks that will not change any more.

A complete block is printed once, so that nothing moves or flickers; only the growing one is redrawn.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Protocol
from unicodedata import east_asian_width

MAX_CODE_LINES = 24
"""Lines of code that wait for their end; longer code is handed on in parts, so that a reader sees it come."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`]*)$")
_ITEM = re.compile(r"^ {0,3}([-*+]|\d{1,9}[.)])( |\t|$)")
_HEADING = re.compile(r"^ {0,3}#{1,6}( |$)")


@dataclass(frozen=True, slots=True)
class ProseBlock:
    """Anything but code that stands by itself: a paragraph, a heading, a list, a table."""

    text: str
    is_first: bool = True
    """Whether it begins here: a long paragraph or list comes in parts."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    text: str
    language: str = ""
    is_first: bool = True
    is_last: bool = True
    """Whether it begins, or ends, here: long code comes in parts."""


MarkdownBlock = ProseBlock | CodeBlock


class BlockRenderer(Protocol):
    """Whoever draws blocks in rows."""

    @property
    def columns(self) -> int: ...

    def markdown(self, block: MarkdownBlock) -> str: ...


def render_spaced(renderer: BlockRenderer, block: MarkdownBlock) -> str:
    """An empty line before each block, but not between the parts of one."""
    painted = renderer.markdown(block)
    return f"\n{painted}" if block.is_first else painted


@dataclass(frozen=True, slots=True)
class _Fence:
    mark: str
    language: str

    def is_closed_by(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self.mark) and set(bare) == {self.mark[0]}


@dataclass(slots=True, kw_only=True)
class MarkdownStream:
    """Text in, in pieces of any size; blocks out, as soon as they are complete."""

    _partial: str = ""
    _lines: list[str] = field(default_factory=list[str])
    _fence: _Fence | None = None
    _is_begun: bool = False
    """The code that is open was handed on in part."""
    _is_continued: bool = False
    """The paragraph or list that is open was handed on in part."""
    _done: list[MarkdownBlock] = field(default_factory=list[MarkdownBlock])

    def feed(self, text: str) -> tuple[MarkdownBlock, ...]:
        """Take more text; the blocks that it completes."""
        *whole, self._partial = (self._partial + text).split("\n")
        for line in whole:
            self._take(line.removesuffix("\r"))
        return self._handed()

    def end(self) -> tuple[MarkdownBlock, ...]:
        """There is no more: what is left, as it is."""
        if self._partial:
            self._take(self._partial)
            self._partial = ""
        if self._fence is not None:
            self._close_code()
        self._close_prose()
        return self._handed()

    def growing(self, columns: int) -> MarkdownBlock | None:
        """The block that is not complete, as far as it came in whole words: half of one at the right edge may
        have to go to the next line with the rest of it."""
        begins = not self._lines or self._fence is not None
        partial = _without_half_word(self._partial, columns, begins=begins)
        lines = [*self._lines, partial] if partial else self._lines
        if self._fence is not None:
            return CodeBlock("\n".join(lines), self._fence.language, not self._is_begun, is_last=False)
        text = "\n".join(lines).rstrip()
        return ProseBlock(text, not self._is_continued) if text else None

    def settle(self, renderer: BlockRenderer, most_rows: int) -> ProseBlock | None:
        """The beginning of a paragraph or list that grew longer than so many rows, in rows that nothing which
        follows can change. What is left is shorter."""
        if self._fence is not None:
            return None
        text = "\n".join([*self._lines, self._partial])
        cut = find_settled_end(text, renderer, most_rows)
        if not cut:
            return None
        settled = ProseBlock(text[:cut].rstrip(), not self._is_continued)
        *self._lines, self._partial = text[cut:].lstrip(" ").removeprefix("\n").split("\n")
        self._is_continued = True
        return settled

    def _handed(self) -> tuple[MarkdownBlock, ...]:
        done, self._done = tuple(self._done), []
        return done

    def _take(self, line: str) -> None:
        if self._fence is not None:
            self._take_code(self._fence, line)
        elif opening := _FENCE.match(line):
            self._close_prose()
            self._fence = _Fence(opening[1], opening[2].strip().partition(" ")[0])
        else:
            self._take_prose(line)

    def _take_code(self, fence: _Fence, line: str) -> None:
        if fence.is_closed_by(line):
            self._close_code()
            return
        self._lines.append(line)
        if len(self._lines) >= MAX_CODE_LINES:
            self._hand_code(is_last=False)

    def _take_prose(self, line: str) -> None:
        is_list = bool(self._lines) and _ITEM.match(self._lines[0]) is not None
        if not line.strip():
            # What follows an empty line may still belong to a list, and to nothing else.
            if is_list:
                self._lines.append("")
            else:
                self._close_prose()
            return
        is_gap = bool(self._lines) and not self._lines[-1]
        if is_gap and not (line.startswith((" ", "\t")) or _ITEM.match(line)):
            self._close_prose()
        self._lines.append(line)
        if len(self._lines) == 1 and _HEADING.match(line):
            self._close_prose()

    def _close_prose(self) -> None:
        text = "\n".join(self._lines).rstrip()
        self._lines = []
        if text:
            self._done.append(ProseBlock(text, not self._is_continued))
        self._is_continued = False

    def _close_code(self) -> None:
        self._hand_code(is_last=True)
        self._fence, self._is_begun = None, False

    def _hand_code(self, *, is_last: bool) -> None:
        language = self._fence.language if self._fence else ""
        self._done.append(CodeBlock("\n".join(self._lines), language, not self._is_begun, is_last))
        self._lines, self._is_begun = [], True


def _without_half_word(line: str, columns: int, *, begins: bool) -> str:
    """The line less its last word, unless that stands where it is for good: at the beginning, or longer than
    any line. Text without spaces, as in Chinese, does not wait for one."""
    at = max(line.rfind(" "), line.rfind("\t")) + 1
    is_placed = (begins and not line[:at].strip()) or len(line) - at > columns
    return line if is_placed or any(east_asian_width(sign) in "WF" for sign in line[at:]) else line[:at]


_PENDING_ROWS = 3
"""Rows at the end of a long paragraph that wait: the markup around a word may not be closed yet."""
_BLOCK_START = re.compile(r"^ {0,3}(?:(?:[-*+]|\d{1,9}[.)]|#{1,6})(?:\s|$)|>|\||=+\s*$|-+\s*$|`{3}|~{3})")
_INLINE_PAIRS = ("`", "**", "__", "~~")


def find_settled_end(text: str, renderer: BlockRenderer, most_rows: int) -> int:
    """How much of a growing paragraph or list can be printed for good: nothing while it is short, and nothing
    of a table."""
    lines = text.split("\n")
    # At most so many: two rows that follow each other hold more than one can. Wide signs take two columns.
    if sum(1 + 2 * _count_columns(line) // renderer.columns for line in lines) <= most_rows:
        return 0
    if _ITEM.match(lines[0]):
        return _find_item_end(lines)
    is_paragraph = not any(_BLOCK_START.match(line) or line.startswith(("    ", "\t")) for line in lines)
    return _find_row_end(text, renderer, most_rows) if is_paragraph else 0


def _count_columns(line: str) -> int:
    return len(line) if line.isascii() else sum(1 + (east_asian_width(sign) in "WF") for sign in line)


def _find_item_end(lines: list[str]) -> int:
    """Where the last item of a list begins."""
    at, last = 0, 0
    for line in lines:
        if at and _ITEM.match(line) and not line.startswith(" "):
            last = at
        at += len(line) + 1
    return last


def _find_row_end(text: str, renderer: BlockRenderer, most_rows: int) -> int:
    """Where a row of a paragraph ends: the rows before it are the same whether the rest follows or not."""
    rows = renderer.markdown(ProseBlock(text)).split("\n")
    if len(rows) <= most_rows:
        return 0
    ends = [match.start() for match in re.finditer(r"\s+", text)]
    for settled in range(len(rows) - _PENDING_ROWS, max(0, len(rows) - most_rows), -1):
        # The most words that fit in so many rows; more words never take fewer.
        fits = bisect_right(ends, settled, key=lambda end: _count_rows(text[:end], renderer))
        end = ends[fits - 1] if fits else 0
        head = text[:end]
        if _is_closed(head, text[end:]) and renderer.markdown(ProseBlock(head)).split("\n") == rows[:settled]:
            return end
    return 0


def _count_rows(text: str, renderer: BlockRenderer) -> int:
    return renderer.markdown(ProseBlock(text)).count("\n") + 1


def _is_closed(head: str, rest: str) -> bool:
    """Whether no markup is open at the end of a text, and what follows begins no block of its own."""
    is_balanced = all(head.count(mark) % 2 == 0 for mark in _INLINE_PAIRS)
    return is_balanced and head.count("[") <= head.count("]") and not _BLOCK_START.match(rest.lstrip())
