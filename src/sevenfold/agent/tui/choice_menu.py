"""A menu that is answered with one key: by number, by letter, or with the arrows and Enter.

`ChoiceMenu` is the list and what its keys do. `ChoicePrompt` is the menu that is open, if one is: whoever
asks waits, and whoever reads the keyboard answers. A `FilterMenu` is filtered by typing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from sevenfold.agent.tui.render.wrapped_text import LabelledText
from sevenfold.agent.tui.text_renderer import TextRenderer

MAX_SHOWN_CHOICES = 9
"""Rows that are drawn, and have a number that chooses them: more would push the question off the screen."""

MAX_LABEL_ROWS, MAX_REMARK_ROWS = 3, 10
"""Of what is said below the rows: a long pasted text would push them off the screen too."""

MenuKey: TypeAlias = Literal["up", "down", "pageup", "pagedown", "enter", "escape", "tab", "backspace"]
"""Keys beside characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One row."""

    label: str
    letter: str = ""
    """Selects the row, or chooses it."""
    is_instant: bool = False
    """Its letter chooses it at once. For letters that hardly begin what a person would write instead."""
    remark: str = ""
    """More about it, shown while it is selected."""


@dataclass(slots=True, kw_only=True)
class ChoiceMenu:
    """A list of which one row is selected."""

    title: str
    choices: Sequence[Choice]
    hint: str = "a number or Enter chooses, Esc leaves"
    wraps: bool = False
    """Rows that are too long go on in a second line: they say what is agreed to."""
    selected: int = 0
    chosen: int | None = None
    is_left: bool = False
    """It was closed without a choice."""
    _typed: str = field(default="", init=False)
    """A letter that selected a row: the beginning of a text, should more follow."""

    @property
    def is_over(self) -> bool:
        return self.chosen is not None or self.is_left

    def press(self, key: MenuKey) -> None:
        """One of the keys that are no characters."""
        self._typed = ""
        match key:
            case "up" | "down":
                step = -1 if key == "up" else 1
                self.selected = (self.selected + step) % len(self.choices)
            case "pageup" | "pagedown":
                step = -MAX_SHOWN_CHOICES if key == "pageup" else MAX_SHOWN_CHOICES
                self.selected = min(max(0, self.selected + step), len(self.choices) - 1)
            case "enter":
                self.chosen = self.selected
            case "escape":
                self.is_left = True
            case "tab" | "backspace":
                pass  # for menus that take a text

    def type(self, sign: str) -> str | None:
        """A character: None where the menu has used it, else the text that it is the last of."""
        at = self._first + int(sign) - 1 if sign.isascii() and sign.isdigit() and sign != "0" else -1
        if self._first <= at < self._first + len(self._window):
            self.chosen = at
            return None
        at = next((at for at, row in enumerate(self.choices) if row.letter == sign.lower() != ""), -1)
        if at < 0 or self._typed:
            typed, self._typed = self._typed + sign, ""
            return typed
        if self.choices[at].is_instant:
            self.chosen = at
        else:
            self.selected, self._typed = at, sign
        return None

    def find(self, line: str) -> int | None:
        """The row that a whole line names, by number or letter, for terminals that read lines."""
        said = line.strip().lower()
        if said.isascii() and said.isdigit():
            return int(said) - 1 if 1 <= int(said) <= len(self.choices) else None
        return next((at for at, row in enumerate(self.choices) if said and row.letter == said), None)

    def render(self, renderer: TextRenderer) -> str:
        """The title, the rows around the selected one, and what is to be known of that one."""
        lines, is_cut = [renderer.line(self.title, "warning")] if self.title else [], False
        for at, row in enumerate(self._window, self._first):
            letter = f"{row.letter} " if row.letter else ""
            text = f"{'›' if at == self.selected else ' '} {at - self._first + 1} {letter}{row.label}"
            shown = renderer.cut(text, (2 if self.wraps else 1) * renderer.columns)
            lines.append(renderer.line(shown, "accent" if at == self.selected else "plain", hang=4))
            is_cut = is_cut or (at == self.selected and shown != text)
        if len(self.choices) > len(self._window):
            lines.append(renderer.line(f"  {self.selected + 1} of {len(self.choices)}", "faint"))
        row = self.choices[self.selected]
        lines += _render_remark(row.label if is_cut else "", row.remark, renderer)
        return "\n".join([*lines, renderer.line(self.hint, "faint", indent=2)])

    def list_rows(self) -> list[LabelledText]:
        """All rows with their numbers, for terminals that print lines; of a short list with what is to be
        known of each."""
        is_short = len(self.choices) <= MAX_SHOWN_CHOICES
        return [
            LabelledText(
                f"{at} {row.letter}".rstrip(),
                row.label + (f" ({told})" if is_short and (told := self._tell(at - 1)) else ""),
            )
            for at, row in enumerate(self.choices, 1)
        ]

    def _tell(self, at: int) -> str:
        """What is to be known of a row."""
        return self.choices[at].remark

    @property
    def _first(self) -> int:
        """The first row that is drawn."""
        latest = max(0, len(self.choices) - MAX_SHOWN_CHOICES)
        return min(latest, max(0, self.selected - MAX_SHOWN_CHOICES // 2))

    @property
    def _window(self) -> Sequence[Choice]:
        return self.choices[self._first : self._first + MAX_SHOWN_CHOICES]


def _render_remark(label: str, remark: str, renderer: TextRenderer) -> list[str]:
    """What is to be known of the selected row, and the whole of it where its line is cut."""
    parts = ((label, MAX_LABEL_ROWS), (remark, MAX_REMARK_ROWS))
    return [renderer.beginning(part, rows, "faint", indent=4) for part, rows in parts if part]


class ChoicePrompt:
    """The menu that is open, if one is."""

    def __init__(self) -> None:
        self.menu: ChoiceMenu | None = None
        self._answered: asyncio.Future[None] | None = None
        self.on_change: Callable[[], None] = _nobody

    def open(self, menu: ChoiceMenu) -> asyncio.Future[None]:
        """Open a menu, which takes keys from now on; `wait` has to follow. One at a time."""
        self.menu, answered = menu, asyncio.get_running_loop().create_future()
        self._answered = answered
        self.on_change()
        return answered

    async def ask(self, menu: ChoiceMenu) -> int | None:
        """Open a menu and wait: the row that was chosen, or None."""
        return await self.wait(menu, self.open(menu))

    async def wait(self, menu: ChoiceMenu, answered: asyncio.Future[None]) -> int | None:
        """Until it is over, and close it."""
        try:
            await answered
            return menu.chosen
        finally:
            self.menu = self._answered = None
            self.on_change()

    def settle(self) -> None:
        """The menu may be over now."""
        if self.menu is not None and self.menu.is_over and self._answered and not self._answered.done():
            self._answered.set_result(None)

    def answer(self, line: str) -> bool:
        """Take a line as the answer; False where nothing was asked. Whatever names no row closes the menu."""
        if self.menu is None:
            return False
        self.menu.chosen = self.menu.find(line)
        self.menu.is_left = self.menu.chosen is None
        self.settle()
        return True


@dataclass(slots=True, kw_only=True)
class FilterMenu(ChoiceMenu):
    """All characters go to the filter, digits too: rows have no keys of their own."""

    hint: str = "type to filter, arrows and Enter choose, Esc leaves"
    query: str = ""
    preview: Callable[[int], str] | None = None
    """More about a row, by its number among all rows: read when it is first selected."""
    _all: Sequence[Choice] = field(init=False)
    _shown: list[int] = field(init=False)
    """The rows that the filter lets through, by number among all of them."""
    _previews: dict[int, str] = field(init=False, default_factory=dict[int, str])

    def __post_init__(self) -> None:
        self._all, self._shown = self.choices, list(range(len(self.choices)))

    @property
    def original(self) -> int | None:
        """The row that was chosen, among all of them."""
        return None if self.chosen is None or not self._shown else self._shown[self.chosen]

    def press(self, key: MenuKey) -> None:
        if key == "backspace":
            self.filter(self.query[:-1])
        elif self.choices or key == "escape":
            ChoiceMenu.press(self, key)

    def type(self, sign: str) -> str | None:
        self.filter(self.query + sign)
        return None

    def find(self, line: str) -> int | None:
        """A number of the list, or words that one row alone has."""
        said = line.strip()
        if said.isascii() and said.isdigit():
            return int(said) - 1 if 1 <= int(said) <= len(self.choices) else None
        found = _match(self._all, said)
        return found[0] if said and len(found) == 1 else None

    def render(self, renderer: TextRenderer) -> str:
        title = f"{self.title}  filter: {self.query}" if self.query else self.title
        if not self.choices:
            hint = "nothing fits; Backspace widens the filter, Esc leaves"
            return "\n".join([renderer.line(title, "warning"), renderer.line(hint, "faint", indent=2)])
        lines, is_cut = [renderer.line(title, "warning")], False
        for at, row in enumerate(self._window, self._first):
            text = f"{'›' if at == self.selected else ' '} {row.label}"
            lines.append(renderer.line(renderer.cut(text), "accent" if at == self.selected else "plain"))
            is_cut = is_cut or (at == self.selected and renderer.cut(text) != text)
        if len(self.choices) > len(self._window):
            lines.append(renderer.line(f"  {self.selected + 1} of {len(self.choices)}", "faint"))
        label = self.choices[self.selected].label if is_cut else ""
        lines += _render_remark(label, self._tell(self.selected), renderer)
        return "\n".join([*lines, renderer.line(self.hint, "faint", indent=2)])

    def _tell(self, at: int) -> str:
        at = self._shown[at]
        if self.preview is not None and at not in self._previews:
            self._previews[at] = self.preview(at)
        return self._previews.get(at) or self._all[at].remark

    def filter(self, query: str) -> None:
        """Show the rows that hold every word."""
        self.query, self.selected = query, 0
        self._shown = _match(self._all, query)
        self.choices = [self._all[at] for at in self._shown]


def _match(rows: Sequence[Choice], query: str) -> list[int]:
    """Rows that hold every word."""
    words = query.lower().split()
    return [
        at
        for at, row in enumerate(rows)
        if all(word in f"{row.label} {row.remark}".lower() for word in words)
    ]


class _Chooser(Protocol):
    async def choose(self, menu: ChoiceMenu) -> int | None: ...


async def choose_filtered(chat: _Chooser, menu: FilterMenu) -> int | None:
    """Have the person choose a row; its number among all of them, or None."""
    return menu.original if await chat.choose(menu) is not None else None


def _nobody() -> None:
    """Nobody watches yet."""
