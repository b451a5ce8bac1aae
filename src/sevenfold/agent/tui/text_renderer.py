"""Text as a terminal shows it: markdown, diffs and plain lines, in the available columns and colours.

`MarkdownStream` splits markdown that is still being written into blocks that will not change any more. A
complete block is printed once, so that nothing on the screen moves or flickers; only the growing one is
redrawn.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias
from unicodedata import east_asian_width

from sevenfold.agent.tui.diff_text import DiffGround, find_diff_name, number_diff_lines, paint_diff_lines
from sevenfold.core.text.safe_text import escape_controls

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.markdown import Markdown, TableRowElement
    from rich.text import Text


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

    def settle(self, renderer: TextRenderer, most_rows: int) -> ProseBlock | None:
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


def find_settled_end(text: str, renderer: TextRenderer, most_rows: int) -> int:
    """How much of a growing paragraph or list can be printed for good: nothing while it is short, and nothing
    of a table."""
    lines = text.split("\n")
    if sum(1 + len(line) // renderer.columns for line in lines) <= most_rows:
        return 0
    if _ITEM.match(lines[0]):
        return _find_item_end(lines)
    is_paragraph = not any(_BLOCK_START.match(line) or line.startswith(("    ", "\t")) for line in lines)
    return _find_row_end(text, renderer, most_rows) if is_paragraph else 0


def _find_item_end(lines: list[str]) -> int:
    """Where the last item of a list begins."""
    at, last = 0, 0
    for line in lines:
        if at and _ITEM.match(line) and not line.startswith(" "):
            last = at
        at += len(line) + 1
    return last


def _find_row_end(text: str, renderer: TextRenderer, most_rows: int) -> int:
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


def _count_rows(text: str, renderer: TextRenderer) -> int:
    return renderer.markdown(ProseBlock(text)).count("\n") + 1


def _is_closed(head: str, rest: str) -> bool:
    """Whether no markup is open at the end of a text, and what follows begins no block of its own."""
    is_balanced = all(head.count(mark) % 2 == 0 for mark in _INLINE_PAIRS)
    return is_balanced and head.count("[") <= head.count("]") and not _BLOCK_START.match(rest.lstrip())


TextTone: TypeAlias = Literal["plain", "strong", "faint", "accent", "good", "warning", "error"]

_STYLES: dict[TextTone, str] = {
    "plain": "",
    "strong": "bold",
    "faint": "dim",
    "accent": "cyan",
    "good": "green",
    "warning": "yellow",
    "error": "red",
}
_LIGHT_STYLES: dict[TextTone, str] = {**_STYLES, "accent": "blue", "warning": "magenta"}
"""Yellow and cyan cannot be read on white."""
_MARKDOWN_STYLES = {
    # The defaults paint backgrounds, which a light terminal shows as holes.
    "markdown.code": "cyan",
    "markdown.code_block": "none",
    "markdown.h2": "bold underline",
    "markdown.h3": "bold",
    "markdown.block_quote": "dim",
    "markdown.item.bullet": "none",
    "markdown.item.number": "none",
    "markdown.link": "underline",
    "markdown.link_url": "dim underline",
}
_CODE_THEMES = {False: "ansi_dark", True: "ansi_light"}
"""The sixteen colours that a person chose for the terminal."""
_FIRST_LIGHT_COLOUR = 7
"""Of the sixteen: from white on, but for the dark grey after it."""


def is_light_terminal(theme: str, environ: Mapping[str, str]) -> bool:
    """Whether the background is light: as settings say, else by COLORFGBG. Asks the terminal nothing."""
    if theme != "auto":
        return theme == "light"
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return background.isdigit() and int(background) >= _FIRST_LIGHT_COLOUR and int(background) != _GREY


_GREY = 8
_ASCII = str.maketrans(
    {
        "•": "*",
        "●": "*",
        "▌": "|",
        "│": "|",
        "─": "-",
        "━": "-",
        "…": "...",
        "›": ">",
        "✓": "+",
        "✗": "x",
        "·": "-",
    }
)
_TAB_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class TextRenderer:
    """Paints for one terminal as it is now; a resized one gets another."""

    columns: int = 80
    has_colour: bool = False
    has_unicode: bool = True
    is_light: bool = False
    """The background is light."""

    def line(self, text: str, tone: TextTone = "plain", *, indent: int = 0) -> str:
        """Words in one tone, wrapped."""
        from rich.padding import Padding
        from rich.text import Text

        styled = Text(_tame(text), style=self._styles[tone], overflow="fold")
        return self._painted(Padding(styled, (0, 0, 0, indent)) if indent else styled)

    def cut(self, text: str, columns: int | None = None) -> str:
        """The text on one line, of which an ellipsis stands for what does not fit: rows that wrapped would
        jump when they change."""
        from rich.cells import cell_len, set_cell_size

        line, room = " ".join(_tame(text).split("\n")), (columns or self.columns) - 1
        if cell_len(line) <= room:
            return line
        return set_cell_size(line, max(room - 1, 1)).rstrip() + "…"

    @property
    def _styles(self) -> dict[TextTone, str]:
        return _LIGHT_STYLES if self.is_light else _STYLES

    def markdown(self, block: MarkdownBlock) -> str:
        """One block of markdown; code keeps its lines and is set in."""
        if isinstance(block, CodeBlock):
            return self._code(block)
        # Two spaces keep a line break, which people and models mean where they make one.
        text = re.sub(r"(?<=\S)\n(?=[^\n])", "  \n", _tame(block.text))
        # The library centres a heading of the first level, which no chat wants.
        text = f"#{text}" if text.startswith("# ") else text
        markdown = _find_markdown_class()
        return self._painted(markdown(text, code_theme=_CODE_THEMES[self.is_light], hyperlinks=False))

    def diff(self, text: str, most_lines: int) -> str:
        """A unified diff: what went and what came, without the heads that only a program needs. Code has the
        colours of its language, and words that changed within a line are marked."""
        from rich.padding import Padding
        from rich.text import Text

        text = _tame(text)
        lines = number_diff_lines(text)
        width = max((len(line.number) for line in lines), default=0)
        painted = paint_diff_lines(lines[:most_lines], find_diff_name(text), self._diff_ground)
        shown = Text(overflow="fold")
        for line, body in zip(lines, painted, strict=False):
            shown.append(f"{line.number:>{width}} " if width else "", style="dim")
            shown.append_text(body)
            shown.append("\n")
        if len(lines) > most_lines:
            shown.append(f"… {len(lines) - most_lines} more lines", style="dim")
        shown.rstrip()
        return self._painted(Padding(shown, (0, 0, 0, 2)))

    @property
    def _diff_ground(self) -> DiffGround:
        if self._console().color_system not in ("256", "truecolor"):
            return "none"
        return "light" if self.is_light else "dark"

    def _code(self, block: CodeBlock) -> str:
        from rich.padding import Padding
        from rich.syntax import Syntax

        syntax = Syntax(
            "", block.language or "text", theme=_CODE_THEMES[self.is_light], background_color="default"
        )
        painted = syntax.highlight(_tame(block.text))
        # What does not fit goes on in the next line: the library would cut it off.
        painted.overflow, painted.no_wrap = "fold", False
        painted.rstrip()
        return self._painted(Padding(painted, (0, 0, 0, 2)))

    def _painted(self, thing: RenderableType) -> str:
        console = self._console()
        console.print(thing, highlight=False, markup=False)
        file = console.file
        assert isinstance(file, StringIO)
        text = "\n".join(line.rstrip() for line in file.getvalue().splitlines()).strip("\n")
        return text if self.has_unicode else text.translate(_ASCII)

    def _console(self) -> Console:
        from rich.console import Console
        from rich.theme import Theme

        return Console(
            file=StringIO(),
            width=max(self.columns, 10),
            force_terminal=self.has_colour,
            no_color=not self.has_colour,
            color_system="auto" if self.has_colour else None,
            theme=Theme({**_MARKDOWN_STYLES, "markdown.code": self._styles["accent"]}),
            legacy_windows=False,
        )


@cache
def _find_markdown_class() -> type[Markdown]:
    """The library's markdown, of which nothing gets lost in a narrow terminal: cells of a table wrap, and a
    table that has more columns than there is room for becomes a list."""
    from rich.box import SIMPLE_HEAD
    from rich.console import ConsoleOptions, RenderResult
    from rich.markdown import HorizontalRule, ListItem, Markdown, MarkdownElement, TableElement
    from rich.measure import Measurement
    from rich.rule import Rule
    from rich.segment import Segment
    from rich.table import Table

    class WrappedTable(TableElement):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            heads = _list_cells(self.header.row if self.header else None)
            rows = [_list_cells(row) for row in self.body.rows] if self.body else []
            # An edge would be empty lines above and below.
            table = Table(box=SIMPLE_HEAD, show_edge=False, style="markdown.table.border")
            for head in heads:
                name = head.copy()
                name.stylize("markdown.table.header")
                table.add_column(name, overflow="fold")
            for row in rows:
                table.add_row(*row)
            natural = Measurement.get(console, options.update(width=_UNLIMITED), table).maximum
            is_narrow = options.max_width < _LEAST_CELL_COLUMNS * len(heads)
            if rows and natural > options.max_width and is_narrow:
                yield from _list_rows(heads, rows)
            else:
                yield table

    class NumberedItem(ListItem):
        def render_number(
            self, console: Console, options: ConsoleOptions, number: int, last_number: int
        ) -> RenderResult:
            width = len(str(last_number)) + 3
            lines = console.render_lines(self.elements, options.update(width=options.max_width - width))
            for at, line in enumerate(lines):
                yield Segment(" " * width if at else f"{number}. ".rjust(width))
                yield from line
                yield Segment("\n")

    class PlainRule(HorizontalRule):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            yield Rule(style="markdown.hr", characters="─")

    class ChatMarkdown(Markdown):
        elements: ClassVar[dict[str, type[MarkdownElement]]] = {
            **Markdown.elements,
            "table_open": WrappedTable,
            "list_item_open": NumberedItem,
            "hr": PlainRule,
        }

    return ChatMarkdown


def _list_cells(row: TableRowElement | None) -> list[Text]:
    return [cell.content for cell in row.cells] if row else []


def _list_rows(heads: list[Text], rows: list[list[Text]]) -> Iterable[Text]:
    """The rows of a table one below the other, each cell with the name of its column."""
    from rich.text import Text

    for number, row in enumerate(rows):
        yield from [Text()] if number else []
        for head, cell in zip(heads, row, strict=False):
            name = head.copy()
            name.stylize("markdown.table.header")
            line = Text.assemble(name, ": ", cell)
            line.overflow = "fold"
            yield line


_UNLIMITED = 10_000
_LEAST_CELL_COLUMNS = 14
"""A cell that is narrower is read word by word."""


def _tame(text: str) -> str:
    """A model's or a tool's text may hold anything; a terminal must not be told what to do by it."""
    return escape_controls(text.expandtabs(_TAB_COLUMNS))
