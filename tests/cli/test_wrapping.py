"""What was laid out for 80 columns can be read in fewer."""

from __future__ import annotations

import json
import sys
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.cli.screen import DEFAULT_COLUMNS, MIN_COLUMNS, Screen, TableCell, wrap_lines


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


LINES = st.text(st.sampled_from("ab cd  ░█\n"), max_size=200)


@given(LINES, st.integers(1, 120))
def test_no_line_is_wider_and_no_word_is_lost(text: str, columns: int) -> None:
    fitted = wrap_lines(text, columns)
    if columns < DEFAULT_COLUMNS:
        assert all(len(line) <= max(columns, MIN_COLUMNS) for line in fitted.split("\n"))
    assert _letters(fitted) == _letters(text)


def _letters(text: str) -> str:
    return "".join(sign for sign in text if sign in "abcd")


@pytest.mark.parametrize("columns", [80, 200])
def test_where_there_is_room_nothing_changes(columns: int) -> None:
    line = "  word " * 40
    assert wrap_lines(line, columns) == line


def test_a_bar_is_shorter_and_keeps_its_share() -> None:
    (line,) = wrap_lines("  " + "█" * 15 + "░" * 45 + "  fine", 60).split("\n")
    assert (line.count("█"), line.count("░"), line.endswith("  fine")) == (12, 33, True)


def test_words_are_whole_and_what_follows_is_set_in() -> None:
    told = "  kept word for word: 8 messages, 12.3K tokens; the view would have 15.2K"
    assert wrap_lines(told, 40).split("\n") == [
        "  kept word for word: 8 messages, 12.3K",
        "    tokens; the view would have 15.2K",
    ]
    assert wrap_lines(" " * 60 + "^ warning at 960K", 40) == "     ^ warning at 960K"


def test_a_terminal_of_40_columns_gets_lines_that_fit_and_json_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", "40")
    Screen().show_cells(
        [TableCell("a long line of words that goes on, "), TableCell("and is painted", "warning")]
    )
    assert max(map(len, stream.getvalue().split("\n"))) <= 40
    stream.truncate(0)
    stream.seek(0)
    value = {"text": "word " * 30}
    Screen().show_json(value)
    assert json.loads(stream.getvalue()) == value


@pytest.mark.parametrize("columns", [10, 40, 80])
def test_how_far_something_is_stays_on_one_line(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", str(columns))
    Screen().show_progress("sending 3 again", 0.5)
    assert len(stream.getvalue().removeprefix("\r").removesuffix("\x1b[K")) <= max(columns, 25)
