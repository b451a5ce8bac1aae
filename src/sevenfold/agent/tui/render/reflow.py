"""Rows that were drawn in a wider terminal. Most terminals wrap them when they are narrowed, and a drawing
that is erased by the rows it once had would leave the first of them in the scrollback.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_MARKS = (
    "TMUX",
    "VTE_VERSION",  # GNOME Terminal and its kin
    "KITTY_WINDOW_ID",
    "ALACRITTY_WINDOW_ID",
    "WEZTERM_PANE",
    "WT_SESSION",
    "KONSOLE_VERSION",
    "ITERM_SESSION_ID",
)
_PROGRAMS = frozenset({"Apple_Terminal", "iTerm.app", "WezTerm", "ghostty", "vscode"})
_KINDS = frozenset({"alacritty", "foot", "foot-extra", "wezterm", "xterm-ghostty", "xterm-kitty"})


def wraps_when_narrowed(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is known to. Of one that is not known, no more is erased than was drawn: what
    stands above it is the conversation."""
    is_marked = any(environ.get(name) for name in _MARKS)
    return is_marked or environ.get("TERM_PROGRAM") in _PROGRAMS or environ.get("TERM") in _KINDS


class Cell(Protocol):
    """A place of a row."""

    @property
    def char(self) -> str: ...

    @property
    def width(self) -> int:
        """0 behind a sign that takes two places."""
        ...


def count_wrapped_rows(row: Mapping[int, Cell], columns: int) -> int:
    """How many rows a row takes that is wrapped, without the spaces at its end; a wide sign is not split."""
    last = max((at for at, cell in row.items() if cell.char != " "), default=-1)
    rows, at = 1, 0
    for number in range(last + 1):
        width = row[number].width
        if at + width > columns:
            rows, at = rows + 1, 0
        at += width
    return rows


def count_rows_above(session: PromptSession[str], amount: int, columns: int) -> int:
    """How many rows above the cursor a drawing begins that had `amount`, and was wrapped by the terminal."""
    drawn = session.app.renderer.last_rendered_screen
    if drawn is None:
        return amount
    cursor = drawn.get_cursor_position(session.app.layout.current_window)
    if cursor.y != amount:
        return amount  # the way is not from the cursor to the top
    rows = (drawn.data_buffer[at] for at in range(amount))
    above = sum(count_wrapped_rows(row, columns) for row in rows)
    return min(above + cursor.x // columns, session.app.output.get_size().rows - 1)
