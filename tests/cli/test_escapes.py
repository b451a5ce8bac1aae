"""Nothing that a command prints tells a terminal what to do, whoever wrote it."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.agent.tui.prompt_input import BufferedOutput
from sevenfold.agent.tui.render.markdown_stream import CodeBlock, MarkdownStream
from sevenfold.agent.tui.terminal import PlainTerminal
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.cli import main
from sevenfold.cli.screen import CapturedScreen, Screen, TableCell, ask_secret
from sevenfold.core.text.safe_text import escape_json, escape_painted

ATTACKS = (
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x1b]8;;https://evil.example\x1b\\\\click\x1b]8;;\x1b\\\\",
    "\x9d52;c;ZXZpbA==\x9c",
    "\x9b2J",
    "\x1bP$q q\x1b\\\\",
    "\x1b[6n",
    "\rover\x08\x08written\x0b\x0c\x7f",
    "\u202etxt.exe\u2066\u2069",
    "\x1b[8mhidden\x1b[0m",
    "\x1bc\x1b(0\x05\x0e",
    "\U000e0041\U000e0042\u200b",
)
SHOWS: dict[str, Callable[[Screen, str], object]] = {
    "line": lambda screen, text: screen.show_line(text),
    "warning": lambda screen, text: screen.show_line(text, "warning"),
    "table": lambda screen, text: screen.show_table([[TableCell(text), TableCell(text, "strong")]]),
    "cells": lambda screen, text: screen.show_cells([TableCell(text)]),
    "text": lambda screen, text: screen.show_text(text),
    "json": lambda screen, text: screen.show_json({text: [text]}),
    "help": lambda screen, text: screen.show_help(text),
    "note": lambda screen, text: screen.note(text),
    "fail": lambda screen, text: screen.fail(text),
    "bug": lambda screen, text: screen.report_bug(ValueError(text)),
    "progress": lambda screen, text: screen.show_progress(text, 0.5),
}
PAINT = re.compile(r"\x1b\[[0-9;]*m")


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown_on_terminal(show: Callable[[Screen, str], object], text: str) -> str:
    before = sys.stdout, sys.stderr
    terminal = sys.stdout = sys.stderr = FakeTerminal()
    try:
        show(Screen(), text)
    finally:
        sys.stdout, sys.stderr = before
    return terminal.getvalue()


def is_obeyed(shown: str) -> bool:
    """Whether anything is left that a terminal acts on, apart from our colours and ends of lines."""
    plain = PAINT.sub("", shown).replace("\n", "")
    # The progress line is ours: it goes back and clears the rest of its line.
    plain = plain.removeprefix("\r").removesuffix("\x1b[K")
    # So are the marks around what a terminal draws at once.
    plain = plain.removeprefix("\x1b[?2026h").removesuffix("\x1b[?2026l")
    return any(not sign.isprintable() and not sign.isspace() for sign in plain) or "\r" in plain


@pytest.mark.parametrize("how", SHOWS)
@pytest.mark.parametrize("text", ATTACKS)
def test_no_way_to_print_passes_an_attack(how: str, text: str) -> None:
    shown = shown_on_terminal(SHOWS[how], f"before {text} after")
    assert "before" in shown
    assert not is_obeyed(shown)
    assert "\x1b[8m" not in shown, "foreign colours can hide text"


@pytest.mark.parametrize("how", SHOWS)
@settings(max_examples=40)
@given(text=st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_no_way_to_print_passes_anything_that_is_obeyed(how: str, text: str) -> None:
    assert not is_obeyed(shown_on_terminal(SHOWS[how], text))


def test_an_answer_stays_as_it_is_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    text = "".join(ATTACKS) + "\ttab"
    Screen().show_text(text)
    assert capsys.readouterr().out == f"{text}\n"


def test_an_answer_keeps_its_lines_tabs_and_wide_spaces_for_a_person() -> None:
    shown = shown_on_terminal(SHOWS["text"], "a\tb\n\u3000\u65e5\u672c\u00a0x")
    assert shown == "a       b\n\u3000\u65e5\u672c\u00a0x\n"


@given(text=st.text(max_size=60))
def test_json_that_was_escaped_holds_the_same(text: str) -> None:
    plain = json.dumps({text: text}, ensure_ascii=False)
    assert json.loads(escape_json(plain)) == {text: text}


@pytest.mark.parametrize("text", ATTACKS)
def test_a_captured_screen_is_escaped_too(text: str) -> None:
    screen = CapturedScreen()
    for show in (SHOWS[how] for how in ("line", "table", "text", "json", "note")):
        show(screen, text)
    screen.show(text)
    assert not is_obeyed("\n".join(screen.lines))


@pytest.mark.parametrize("text", [*ATTACKS, "&#27;]52;c;ZXZpbA==&#7;", "&#x9b;2J", "&#155;2J"])
@pytest.mark.parametrize("has_colour", [True, False])
def test_no_block_of_a_chat_passes_an_attack(text: str, has_colour: bool) -> None:
    renderer = TextRenderer(60, has_colour)
    written = (
        f"# {text}\n\nA {text} and `{text}` and [x](https://{text}).\n\n"
        f"| a | {text} |\n|---|---|\n| {text} | b |\n"
    )
    stream = MarkdownStream()
    blocks = [*stream.feed(written), *stream.end(), CodeBlock(text, text)]
    shown = "\n".join(
        [*map(renderer.markdown, blocks), renderer.line(text, "warning"), renderer.diff(f"+{text}", 9)]
    )
    assert not is_obeyed(shown)


@pytest.mark.parametrize("text", ATTACKS)
def test_what_reaches_the_terminal_of_a_chat_is_escaped_again(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = FakeTerminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    plain = object.__new__(PlainTerminal)
    plain._pane = BufferedOutput(terminal)  # pyright: ignore[reportPrivateUsage]
    plain._is_prompted = False  # pyright: ignore[reportPrivateUsage]
    plain.put(text)
    assert not is_obeyed(terminal.getvalue())
    assert "\x1b[8m" not in terminal.getvalue()


def test_colours_are_kept() -> None:
    assert escape_painted("\x1b[1;33mx\x1b[0m\x1b[2J") == "\x1b[1;33mx\x1b[0m\\x1b[2J"


@pytest.mark.parametrize("text", ATTACKS)
def test_arguments_and_names_are_repeated_escaped(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / text.replace("/", "")
    assert main(["doctor", "--project", str(folder)]) == 2
    assert main(["settings", f"x{text}"]) == 2
    assert main(["layers", text]) == 2
    assert main([text]) == 2
    found = capsys.readouterr()
    assert not is_obeyed(found.out + found.err)


@pytest.mark.parametrize("text", ATTACKS)
def test_the_question_for_a_token_is_asked_escaped(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return "typed"

    monkeypatch.setattr("getpass.getpass", answer)
    assert ask_secret(f"token for {text}: ") == "typed"
    assert not is_obeyed(asked[0])
