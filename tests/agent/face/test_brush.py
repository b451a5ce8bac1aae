"""What is painted fits the terminal, in its colours or without any."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sevenfold.agent.face.blocks import Code, MarkdownBlock, Prose
from sevenfold.agent.face.brush import Brush

SGR = re.compile(r"\x1b\[[0-9;]*m")
TABLE = "| name | size |\n|---|---|\n| a | 1 |\n| b | 22 |"
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"


@pytest.fixture(autouse=True)
def colourful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@given(st.text(max_size=300), st.integers(10, 100), st.booleans())
def test_no_line_is_wider_than_the_terminal_and_no_control_is_passed_on(
    text: str, columns: int, has_colour: bool
) -> None:
    brush = Brush(columns, has_colour)
    for painted in (
        brush.markdown(Prose(text)),
        brush.markdown(Code(text, "python")),
        brush.line(text, "error", indent=2),
        brush.diff(text, 10),
    ):
        plain = SGR.sub("", painted)
        assert all(item.isprintable() or item == "\n" for item in plain)
        assert all(cell_len(line) <= columns for line in plain.split("\n"))


@pytest.mark.parametrize("block", [Prose("**bold** `x`\n\n- a"), Code("def f(): ...", "python")])
def test_without_colour_there_is_not_one_escape(block: MarkdownBlock) -> None:
    assert "\x1b" not in Brush().markdown(block)
    assert "\x1b" in Brush(has_colour=True).markdown(block)


def test_markdown_reads_as_what_it_means() -> None:
    brush = Brush(40)
    assert brush.markdown(Prose("# Head")) == "Head"
    assert brush.markdown(Prose("- one\n- **two**")) == " • one\n • two"
    assert brush.markdown(Prose("see [docs](https://a.b)")) == "see docs (https://a.b)"
    assert [line.split() for line in brush.markdown(Prose(TABLE)).splitlines() if "a" in line][1] == [
        "a",
        "1",
    ]


def test_code_keeps_its_lines_and_is_set_in() -> None:
    assert Brush().markdown(Code("if x:\n\treturn 1", "python")) == "  if x:\n      return 1"


def test_a_terminal_that_knows_ascii_alone_gets_ascii_alone() -> None:
    painted = Brush(has_unicode=False).markdown(Prose("- one\n\n> said"))
    assert painted.isascii()
    assert "* one" in painted


def test_a_diff_leaves_out_its_heads_and_says_how_much_it_folds() -> None:
    assert Brush().diff(DIFF, 10) == "  @@ -1,2 +1,2 @@\n   one\n  -two\n  +2"
    assert Brush().diff(DIFF, 2) == "  @@ -1,2 +1,2 @@\n   one\n  … 2 more lines"
    assert "\x1b[31m-two" in Brush(has_colour=True).diff(DIFF, 10)


def test_an_escape_of_a_model_is_shown_and_not_obeyed() -> None:
    assert Brush().line("\x1b]0;title\x07") == "\\x1b]0;title\\x07"
