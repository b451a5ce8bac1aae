"""Colour is for terminals, and nobody else's text can bring its own."""

from __future__ import annotations

import io
import sys

import pytest

from sevenfold.cli.screen import Screen, TableCell


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Called inside a test: pytest puts its own streams back after every fixture."""
    screen = Terminal()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def test_a_terminal_gets_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    Screen().show_line("careful", "warning")
    Screen().fail("broken")
    assert screen.getvalue() == "\x1b[33mcareful\x1b[0m\n\x1b[31merror:\x1b[0m broken\n"


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_whoever_wants_no_colour_gets_none(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setenv(variable, value)
    Screen().show_line("careful", "warning")
    assert screen.getvalue() == "careful\n"


def test_a_pipe_gets_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().show_line("careful", "warning")
    assert capsys.readouterr().out == "careful\n"


def test_columns_line_up_and_the_last_runs_free(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().show_table(
        [
            [TableCell("a"), TableCell("bbb"), TableCell("c")],
            [TableCell("aaa"), TableCell("b"), TableCell("")],
        ]
    )
    assert capsys.readouterr().out == "a    bbb  c\naaa  b\n"


def test_an_empty_table_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().show_table([])
    assert capsys.readouterr().out == ""


def test_control_characters_are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().show_line("a\x1b[2Jb\x07\u202ec")
    Screen().show_table([[TableCell("\x1b]0;x\x07"), TableCell("y")]])
    assert capsys.readouterr().out == "a\\x1b[2Jb\\x07\\u202ec\n\\x1b]0;x\\x07  y\n"


def test_json_is_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().show_json({"name": "tée"})
    assert capsys.readouterr().out == '{\n  "name": "tée"\n}\n'
