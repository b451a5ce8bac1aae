"""A menu that typing filters: the arrows select, Enter chooses, Esc leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sevenfold.agent.tui.choice_menu import Choice, ChoiceMenu, MenuKey
from sevenfold.agent.tui.text_renderer import TextRenderer


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
            self._filter(self.query[:-1])
        elif self.choices or key == "escape":
            ChoiceMenu.press(self, key)

    def type(self, sign: str) -> str | None:
        self._filter(self.query + sign)
        return None

    def find(self, line: str) -> int | None:
        """A number of the list, or words that one row alone has."""
        said = line.strip()
        if said.isascii() and said.isdigit():
            return int(said) - 1 if 1 <= int(said) <= len(self.choices) else None
        found = _match(self._all, said)
        return found[0] if said and len(found) == 1 else None

    def render(self, brush: TextRenderer) -> str:
        title = f"{self.title}  filter: {self.query}" if self.query else self.title
        if not self.choices:
            return "\n".join([brush.line(title, "warning"), brush.line("nothing fits", "faint", indent=2)])
        lines = [brush.line(title, "warning")]
        for at, row in enumerate(self._window, self._first):
            text = f"{'›' if at == self.selected else ' '} {row.label}"
            cut = text if len(text) < brush.columns else f"{text[: max(brush.columns - 2, 1)]}…"
            lines.append(brush.line(cut, "accent" if at == self.selected else "plain"))
        if len(self.choices) > len(self._window):
            lines.append(brush.line(f"  {self.selected + 1} of {len(self.choices)}", "faint"))
        if remark := self._find_remark():
            lines.append(brush.line(remark, "faint", indent=4))
        return "\n".join([*lines, brush.line(self.hint, "faint", indent=2)])

    def _find_remark(self) -> str:
        at = self._shown[self.selected]
        if self.preview is not None and at not in self._previews:
            self._previews[at] = self.preview(at)
        return self._previews.get(at) or self._all[at].remark

    def _filter(self, query: str) -> None:
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
