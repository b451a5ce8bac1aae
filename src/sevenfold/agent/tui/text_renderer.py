"""Text as a terminal shows it: markdown, diffs and lines, in as many columns and colours as there are."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Literal, TypeAlias

from sevenfold.agent.tui.markdown_blocks import CodeBlock, MarkdownBlock
from sevenfold.core.text.truncation import escape_controls

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

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
_CODE_THEME = "ansi_dark"
"""The sixteen colours that a person chose for the terminal."""
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

    def line(self, text: str, tone: TextTone = "plain", *, indent: int = 0) -> str:
        """Words in one tone, wrapped."""
        from rich.padding import Padding
        from rich.text import Text

        styled = Text(_tame(text), style=_STYLES[tone], overflow="fold")
        return self._painted(Padding(styled, (0, 0, 0, indent)) if indent else styled)

    def markdown(self, block: MarkdownBlock) -> str:
        """One block of markdown; code keeps its lines and is set in."""
        if isinstance(block, CodeBlock):
            return self._code(block)
        from rich.markdown import Markdown

        text = _tame(block.text)
        # The library centres a heading of the first level, which no chat wants.
        text = f"#{text}" if text.startswith("# ") else text
        return self._painted(Markdown(text, code_theme=_CODE_THEME, hyperlinks=False))

    def diff(self, text: str, most_lines: int) -> str:
        """A unified diff: what went and what came, without the heads that only a program needs."""
        from rich.padding import Padding
        from rich.text import Text

        lines = [line for line in _tame(text).splitlines() if not line.startswith(("---", "+++"))]
        shown = Text(overflow="fold")
        for line in lines[:most_lines]:
            shown.append(f"{line}\n", style=_diff_style(line))
        if len(lines) > most_lines:
            shown.append(f"… {len(lines) - most_lines} more lines", style="dim")
        shown.rstrip()
        return self._painted(Padding(shown, (0, 0, 0, 2)))

    def _code(self, block: CodeBlock) -> str:
        from rich.padding import Padding
        from rich.syntax import Syntax

        syntax = Syntax("", block.language or "text", theme=_CODE_THEME, background_color="default")
        painted = syntax.highlight(_tame(block.text))
        painted.overflow = "fold"
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
            theme=Theme(_MARKDOWN_STYLES),
            legacy_windows=False,
        )


def _tame(text: str) -> str:
    """A model's or a tool's text may hold anything; a terminal must not be told what to do by it."""
    return escape_controls(text.expandtabs(_TAB_COLUMNS))


def _diff_style(line: str) -> str:
    if line.startswith("@@"):
        return "cyan"
    return {"+": "green", "-": "red"}.get(line[:1], "dim")
