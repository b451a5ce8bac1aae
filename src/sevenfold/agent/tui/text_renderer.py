"""Text as a terminal shows it: markdown, diffs and plain lines, in the available columns and colours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from sevenfold.agent.tui.render.diff_text import (
    DiffGround,
    find_diff_name,
    number_diff_lines,
    paint_diff_lines,
)
from sevenfold.agent.tui.render.markdown_stream import CodeBlock, MarkdownBlock
from sevenfold.core.text.safe_text import escape_controls

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.markdown import Markdown, TableRowElement
    from rich.text import Text


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

    def line(self, text: str, tone: TextTone = "plain", *, indent: int = 0, hang: int = 0) -> str:
        """Words in one tone, wrapped; `hang` sets in what goes on in the next line."""
        from rich.padding import Padding
        from rich.text import Text

        styled = Text(_without_controls(text), style=self._styles[tone], overflow="fold")
        if 0 < hang < self.columns // 2:
            styled = self._hang(styled, hang)
        return self._painted(Padding(styled, (0, 0, 0, indent)) if indent else styled)

    def _hang(self, text: Text, columns: int) -> Text:
        from rich.text import Text

        console, shown = self._console(), list[Text]()
        for line in text.split("\n", allow_blank=True):
            first, *rest = line.wrap(console, max(self.columns, 10), overflow="fold") or [line]
            shown.append(first)
            if rest:
                left = line[len(first.plain) :]
                left = left[len(left.plain) - len(left.plain.lstrip(" ")) :]
                more = left.wrap(console, max(self.columns, 10) - columns, overflow="fold")
                shown += [Text(" " * columns) + part for part in more]
        return Text("\n").join(shown)

    def cut(self, text: str, columns: int | None = None) -> str:
        """The text on one line, of which an ellipsis stands for what does not fit: rows that wrapped would
        jump when they change."""
        from rich.cells import cell_len, set_cell_size

        line, room = " ".join(_without_controls(text).split("\n")), (columns or self.columns) - 1
        if cell_len(line) <= room:
            return line
        return set_cell_size(line, max(room - 1, 1)).rstrip() + "…"

    def parts(self, parts: Iterable[str], tone: TextTone = "plain") -> str:
        """Parts side by side, or below each other where they have no room."""
        from rich.cells import cell_len

        lines: list[str] = []
        for part in parts:
            if lines and cell_len(f"{lines[-1]}  {part}") <= self.columns:
                lines[-1] += f"  {part}"
            else:
                lines.append(part)
        return self.line("\n".join(lines), tone)

    def fit(self, text: str, columns: int) -> str:
        """The text in exactly so many columns: cut, or followed by spaces."""
        from rich.cells import set_cell_size

        return set_cell_size(self.cut(text, columns + 1), columns)

    @property
    def _styles(self) -> dict[TextTone, str]:
        return _LIGHT_STYLES if self.is_light else _STYLES

    def markdown(self, block: MarkdownBlock) -> str:
        """One block of markdown; code keeps its lines and is set in."""
        if isinstance(block, CodeBlock):
            return self._code(block)
        # Two spaces keep a line break, which people and models mean where they make one.
        text = re.sub(r"(?<=\S)\n(?=[^\n])", "  \n", _without_controls(block.text))
        # The library centres a heading of the first level, which no chat wants.
        text = f"#{text}" if text.startswith("# ") else text
        markdown = _find_markdown_class()
        return self._painted(markdown(text, code_theme=_CODE_THEMES[self.is_light], hyperlinks=False))

    def diff(self, text: str, most_lines: int) -> str:
        """A unified diff: what went and what came, without the heads that only a program needs. Code has the
        colours of its language, and words that changed within a line are marked."""
        from rich.padding import Padding
        from rich.text import Text

        text = _without_controls(text)
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
        painted = syntax.highlight(_without_controls(block.text))
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


def _without_controls(text: str) -> str:
    """A model's or a tool's text may hold anything; a terminal must not be told what to do by it."""
    return escape_controls(text.expandtabs(_TAB_COLUMNS))
