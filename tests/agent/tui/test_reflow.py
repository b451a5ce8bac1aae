"""Rows that a narrowed terminal has wrapped."""

from __future__ import annotations

import pytest
from prompt_toolkit.layout.screen import Char

from sevenfold.agent.tui.render.reflow import count_wrapped_rows, wraps_when_narrowed


def draw(text: str) -> dict[int, Char]:
    """As the library keeps a row: behind a wide sign stands an empty cell."""
    cells: list[Char] = []
    for sign in text:
        cell = Char(sign)
        cells += [cell, *([Char("")] if cell.width == 2 else [])]
    return dict(enumerate(cells))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", 1),
        ("x" * 10, 1),
        ("x" * 11, 2),
        ("x" * 9 + "  ", 1),
        ("漢" * 5, 1),
        ("x漢漢漢漢漢", 2),
        ("x" * 31, 4),
    ],
)
def test_a_row_takes_the_rows_that_its_signs_need(text: str, rows: int) -> None:
    assert count_wrapped_rows(draw(text), 10) == rows


def test_a_terminal_that_is_not_known_is_taken_to_keep_its_rows() -> None:
    assert wraps_when_narrowed({"TERM": "tmux-256color", "TMUX": "/tmp/tmux,1,0"})
    assert wraps_when_narrowed({"TERM": "xterm-kitty"})
    assert not wraps_when_narrowed({"TERM": "xterm-256color", "TMUX": ""})
