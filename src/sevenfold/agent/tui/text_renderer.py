"""Text as a terminal shows it: markdown, diffs and plain lines, in the available columns and colours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from sevenfold.agent.tui.render.diff_text import (
    DiffBackground,
    DiffLine,
    find_diff_name,
    number_diff_lines,
    paint_diff_lines,
)
from sevenfold.agent.tui.render.markdown_stream import CodeBlock, MarkdownBlock
from sevenfold.agent.tui.render.word_wrap import find_hanging_breaks, wrap_text
from sevenfold.agent.tui.render.wrapped_text import LabelledText, wrap_plain, wrap_rows
from sevenfold.core.text.safe_text import escape_controls

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.markdown import Markdown, TableRowElement
    from rich.text import Text


TextTone: TypeAlias = Literal["plain", "strong", "faint", "accent", "good", "warning", "error"]

Signs: TypeAlias = Literal["unicode", "ascii", "words"]
"""What is drawn with; `words` draws nothing, for text that is read aloud."""

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
_SPOKEN_SIGNS = {"●": "done: ", "✗": "", "○": "runs: ", "·": "", "›": "you said: ", "…": ""}
"""Whether a tool failed is said in words behind it."""
_SIGN = re.compile(rf"([{''.join(_SPOKEN_SIGNS)}]) ")
_TAB_COLUMNS = 4
MAX_ECHOED_LINES = 4
"""Of what a person sent, after its first."""


@dataclass(frozen=True, slots=True)
class TextRenderer:
    """Paints for one terminal as it is now; a resized one gets another."""

    columns: int = 80
    has_colour: bool = False
    signs: Signs = "unicode"
    is_light: bool = False
    """The background is light."""

    @property
    def has_unicode(self) -> bool:
        return self.signs == "unicode"

    @property
    def is_spoken(self) -> bool:
        """What is printed is read aloud: words stand for signs, and nothing is drawn."""
        return self.signs == "words"

    def line(self, text: str, tone: TextTone = "plain", *, indent: int = 0, hang: int = 0) -> str:
        """Words in one tone, wrapped; `hang` sets in what goes on in the next line."""
        shown = _without_controls(self._spoken(text))
        return self._toned(wrap_plain(shown, self.columns - indent, hang), tone, indent)

    def beginning(self, text: str, rows: int, tone: TextTone = "plain", *, indent: int = 0) -> str:
        """The same of a text that may be long: at most so many rows; the last one says that it goes on."""
        room = self.columns - indent
        lines = wrap_plain(_without_controls(text[: 2 * rows * max(room, 1)]), room)
        return self._toned(lines if len(lines) <= rows else [*lines[: rows - 1], "…"], tone, indent)

    def rows(self, rows: Iterable[LabelledText], tone: TextTone = "plain", *, indent: int = 0) -> str:
        """Labels, and what belongs to each in a column of its own where there is room for one."""
        shown = [LabelledText(_without_controls(row.label), _without_controls(row.text)) for row in rows]
        if self.is_spoken:
            return "\n".join(self.line(f"{row.label}: {row.text}") for row in shown)
        return self._toned(wrap_rows(shown, self.columns - indent), tone, indent)

    def _toned(self, lines: Sequence[str], tone: TextTone, indent: int) -> str:
        from rich.text import Text

        margin = " " * indent
        text = "\n".join(f"{margin}{line}".rstrip() for line in lines)
        return self._painted(Text(text, style=self._styles[tone], overflow="fold"))

    def _spoken(self, text: str) -> str:
        """Signs that a line of ours begins with, as words: a screen reader says their names, or nothing."""
        if not self.is_spoken:
            return text
        sign = _SIGN.match(text)
        return f"{_SPOKEN_SIGNS[sign[1]]}{text[sign.end() :]}" if sign else text

    def prompt(self, typed: str) -> str:
        """What a person sent: its first lines, for a long paste was on the screen once."""
        first, *more = typed.split("\n")
        if len(more) > MAX_ECHOED_LINES:
            more = [*more[:MAX_ECHOED_LINES], f"… {len(more) - MAX_ECHOED_LINES} more lines"]
        lines = [self.line(f"› {first}", "strong", hang=2)]
        return "\n".join([*lines, *(self.line(line, "strong", indent=2) for line in more)])

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
        markdown = _find_markdown_class(is_spoken=self.is_spoken)
        return self._painted(markdown(text, code_theme=_CODE_THEMES[self.is_light], hyperlinks=False))

    def diff(self, text: str, most_lines: int | None = None, unfolding: str = "") -> str:
        """A unified diff: what went and what came, without the heads that only a program needs. Code has the
        colours of its language, and words that changed within a line are marked. Of a long one, the first and
        the last lines; `unfolding` says how to see the others."""
        from rich.padding import Padding
        from rich.text import Text

        text = _without_controls(text)
        lines = number_diff_lines(text)
        width = max((len(line.number) for line in lines), default=0)
        more = None
        if most_lines is not None and (hidden := len(lines) - most_lines) > 0:
            tail = most_lines // 3
            more = DiffLine("", f"… {hidden:,} more lines{f'  ({unfolding})' if unfolding else ''}")
            lines = [*lines[: most_lines - tail], more, *lines[len(lines) - tail :]]
        painted = paint_diff_lines(lines, find_diff_name(text), self._diff_background)
        shown = Text(overflow="fold")
        for line, body in zip(lines, painted, strict=False):
            gutter = f"{line.number:>{width}} " if width and line is not more else ""
            shown.append(gutter, style="dim")
            shown.append_text(self._hung(body, self.columns - 2 - len(gutter), 1, len(gutter)))
            shown.append("\n")
        shown.rstrip()
        return self._painted(Padding(shown, (0, 0, 0, 2)))

    @property
    def _diff_background(self) -> DiffBackground:
        if self._console().color_system not in ("256", "truecolor"):
            return "none"
        return "light" if self.is_light else "dark"

    def _code(self, block: CodeBlock) -> str:
        from rich.padding import Padding
        from rich.syntax import Syntax
        from rich.text import Text

        syntax = Syntax(
            "", block.language or "text", theme=_CODE_THEMES[self.is_light], background_color="default"
        )
        painted = syntax.highlight(_without_controls(block.text))
        painted.rstrip()
        # What does not fit goes on in the next line: the library would cut it off.
        shown = Text("\n", overflow="fold").join(
            self._hung(line, self.columns - 2, len(line.plain) - len(line.plain.lstrip()) + 2)
            for line in painted.split("\n", allow_blank=True)
        )
        return self._painted(Padding(shown, (0, 0, 0, 2)))

    def _hung(self, line: Text, room: int, hang: int, margin: int = 0) -> Text:
        """A line of code in so many columns; what goes on in a new one is set in, and no new line of code."""
        from rich.text import Text

        hang = hang if hang < room // 2 else 0
        first, *more = line.divide(find_hanging_breaks(line.plain, room, hang))
        for part in (first, *more):
            part.truncate(room, overflow="crop")  # of spaces at the end
        return Text("\n").join([first, *(Text.assemble(" " * (margin + hang), part) for part in more)])

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
def _find_markdown_class(*, is_spoken: bool) -> type[Markdown]:
    """The library's markdown, of which nothing gets lost in a narrow terminal: cells of a table wrap, and a
    table that has more columns than there is room for becomes a list. Where it `is_spoken`, all do."""
    from rich.box import SIMPLE_HEAD
    from rich.console import ConsoleOptions, RenderResult
    from rich.markdown import HorizontalRule, ListItem, Markdown, MarkdownElement, Paragraph, TableElement
    from rich.measure import Measurement
    from rich.rule import Rule
    from rich.segment import Segment
    from rich.table import Table
    from rich.text import Text

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
            if rows and (is_spoken or (natural > options.max_width and is_narrow)):
                yield from _list_rows(heads, rows, options.max_width)
            else:
                yield table

    class WrappedParagraph(Paragraph):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            yield Text("\n").join(wrap_text(self.text, options.max_width))

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
            yield Rule(style="markdown.hr", characters=" " if is_spoken else "─")

    class ChatMarkdown(Markdown):
        elements: ClassVar[dict[str, type[MarkdownElement]]] = {
            **Markdown.elements,
            "paragraph_open": WrappedParagraph,
            "table_open": WrappedTable,
            "list_item_open": NumberedItem,
            "hr": PlainRule,
        }

    return ChatMarkdown


def _list_cells(row: TableRowElement | None) -> list[Text]:
    return [cell.content for cell in row.cells] if row else []


def _list_rows(heads: list[Text], rows: list[list[Text]], columns: int) -> Iterable[Text]:
    """The rows of a table one below the other, each cell with the name of its column."""
    from rich.text import Text

    for number, row in enumerate(rows):
        yield from [Text()] if number else []
        for head, cell in zip(heads, row, strict=False):
            name = head.copy()
            name.stylize("markdown.table.header")
            yield Text("\n").join(wrap_text(Text.assemble(name, ": ", cell), columns))


_UNLIMITED = 10_000
_LEAST_CELL_COLUMNS = 14
"""A cell that is narrower is read word by word."""


def _without_controls(text: str) -> str:
    """A model's or a tool's text may hold anything; a terminal must not be told what to do by it."""
    return escape_controls(text.expandtabs(_TAB_COLUMNS))
