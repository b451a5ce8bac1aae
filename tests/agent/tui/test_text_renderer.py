"""What is painted fits the terminal, in its colours or without any."""

from __future__ import annotations

import re
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sevenfold.agent.tui.render.markdown_stream import CodeBlock, MarkdownBlock, ProseBlock
from sevenfold.agent.tui.text_renderer import TextRenderer, is_light_terminal

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
    renderer = TextRenderer(columns, has_colour)
    for painted in (
        renderer.markdown(ProseBlock(text)),
        renderer.markdown(CodeBlock(text, "python")),
        renderer.line(text, "error", indent=2),
        renderer.line(text, "error", hang=4),
        renderer.diff(text, 10),
    ):
        plain = SGR.sub("", painted)
        assert all(item.isprintable() or item in "\n\u200c\u200d" or category(item) == "Zs" for item in plain)
        assert all(cell_len(line) <= columns for line in plain.split("\n"))


@pytest.mark.parametrize("block", [ProseBlock("**bold** `x`\n\n- a"), CodeBlock("def f(): ...", "python")])
def test_without_colour_there_is_not_one_escape(block: MarkdownBlock) -> None:
    assert "\x1b" not in TextRenderer().markdown(block)
    assert "\x1b" in TextRenderer(has_colour=True).markdown(block)


def test_markdown_reads_as_what_it_means() -> None:
    renderer = TextRenderer(40)
    assert renderer.markdown(ProseBlock("# Head")) == "Head"
    assert renderer.markdown(ProseBlock("- one\n- **two**")) == " • one\n • two"
    assert renderer.markdown(ProseBlock("see [docs](https://a.b)")) == "see docs (https://a.b)"
    assert [line.split() for line in renderer.markdown(ProseBlock(TABLE)).splitlines() if "a" in line][1] == [
        "a",
        "1",
    ]


def test_code_keeps_its_lines_and_is_set_in() -> None:
    assert TextRenderer().markdown(CodeBlock("if x:\n\treturn 1", "python")) == "  if x:\n      return 1"


def test_a_terminal_that_knows_ascii_alone_gets_ascii_alone() -> None:
    painted = TextRenderer(signs="ascii").markdown(ProseBlock("- one\n\n> said"))
    assert painted.isascii()
    assert "* one" in painted


def test_a_diff_has_line_numbers_and_says_how_much_it_folds() -> None:
    assert TextRenderer().diff(DIFF, 10) == "  1  one\n  2 -two\n  2 +2"
    assert TextRenderer().diff(DIFF, 2) == "  1  one\n  2 -two\n  … 1 more lines"


def test_a_diff_has_the_colours_of_its_language_and_marks_changed_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n def f():\n-    return ten + 10\n+    return ten + 42\n"
    dark = TextRenderer(has_colour=True).diff(diff, 10)
    gone, came = dark.splitlines()[1:]
    assert len(set(re.findall(r"\x1b\[([\d;]+)m", gone))) > 3, "the language has colours"
    assert re.search(r"48;5;88m10\x1b", gone)
    assert re.search(r"48;5;28m42\x1b", came)
    assert dark != TextRenderer(has_colour=True, is_light=True).diff(diff, 10)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[31m-    return ten + 10" in TextRenderer(has_colour=True).diff(diff, 10)


@given(st.lists(st.sampled_from(["-a b", "+a c", " x", "+", "-", "+'''", '-"', "+日本"]), max_size=12))
def test_a_painted_diff_has_the_text_of_a_plain_one(lines: list[str]) -> None:
    diff = "\n".join(["--- a/x.py", "+++ b/x.py", "@@ -1,9 +1,9 @@", *lines])
    painted = TextRenderer(has_colour=True).diff(diff, 10)
    plain = "\n".join(line.rstrip() for line in SGR.sub("", painted).split("\n"))
    assert plain.strip() == TextRenderer().diff(diff, 10).strip()


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_nothing_of_a_table_or_of_code_is_lost_in_a_narrow_terminal(columns: int) -> None:
    words = [f"word{number}" for number in range(40)]
    row = f"| 1 | {' '.join(words)} | {'日本語' * 12} | {'x' * 90} |"
    table = ProseBlock(f"| a | {words[0]} | c | d |\n|---|---|---|---|\n{row}")
    for block in (table, CodeBlock(f"call({', '.join(words)})", "python")):
        shown = TextRenderer(columns).markdown(block)
        assert max(map(cell_len, shown.splitlines())) <= columns
        assert "…" not in shown
        assert all(word in shown for word in words)
    shown = TextRenderer(columns).markdown(table)
    assert sum(shown.count(sign) for sign in "日本語") == 36
    assert shown.count("x") == 90


def test_each_hunk_of_a_diff_counts_from_its_own_place() -> None:
    diff = "--- a\n+++ a\n@@ -9,2 +9,3 @@\n nine\n+new\n ten\n@@ -98 +99 @@\n--- old\n+++ new"
    assert TextRenderer().diff(diff, 20).splitlines() == [
        "   9  nine",
        "  10 +new",
        "  11  ten",
        "     …",
        "  98 --- old",
        "  99 +++ new",
    ]


def test_parts_break_between_them_and_not_within() -> None:
    parts = ("claude-opus-5-5", "mode ask", "session 5b125b4c")
    assert TextRenderer(40).parts(parts) == "claude-opus-5-5  mode ask\nsession 5b125b4c"
    assert TextRenderer(60).parts(parts) == "  ".join(parts)


def test_what_goes_on_in_the_next_line_stands_below_its_beginning() -> None:
    assert TextRenderer(20).line("/cost  what it has cost so far", hang=7).splitlines() == [
        "/cost  what it has",
        "       cost so far",
    ]
    assert TextRenderer(20).line("x" * 45, hang=2).splitlines() == ["x" * 20, "  " + "x" * 18, "  " + "x" * 7]


@given(st.text(st.sampled_from("ab 日本\n"), max_size=80), st.integers(0, 12))
def test_no_sign_is_lost_where_lines_are_set_in(text: str, hang: int) -> None:
    shown = TextRenderer(20).line(text, hang=hang)
    assert "".join(shown.split()) == "".join(text.split())


PATH = "/home/you/projects/sevenfold/src/sevenfold/agent/tui/text_renderer.py"


@pytest.mark.parametrize("columns", [20, 40, 60])
def test_a_long_path_breaks_after_one_of_its_parts(columns: int) -> None:
    renderer = TextRenderer(columns)
    for shown in (
        renderer.line(f"{PATH} on main"),
        renderer.line(f"· {PATH} is gone", hang=2),
        renderer.markdown(ProseBlock(f"See {PATH} and go on.")),
        renderer.markdown(ProseBlock(f"- see {PATH}")),
    ):
        lines = shown.split("\n")
        assert max(map(len, lines)) <= columns
        assert PATH in "".join(line.strip() for line in lines)
        ends = [line.split()[-1] for line in lines[:-1]]
        torn = [end for end in ends if end in PATH and not PATH.endswith(end)]
        assert {end[-1] for end in torn} <= set("/_."), shown
        assert not any(line.startswith(" on") for line in lines)


def test_a_line_of_many_signs_is_broken_at_once() -> None:
    for sign in "-a/":
        assert len(TextRenderer(80).line(sign * 80_000).split("\n")) == 1_000


def test_an_escape_of_a_model_is_shown_and_not_obeyed() -> None:
    assert TextRenderer().line("\x1b]0;title\x07") == "\\x1b]0;title\\x07"


@pytest.mark.parametrize(
    ("theme", "variable", "is_light"),
    [
        ("auto", "", False),
        ("auto", "0;15", True),
        ("auto", "15;0", False),
        ("auto", "0;default;7", True),
        ("auto", "7;8", False),
        ("auto", "x", False),
        ("light", "15;0", True),
        ("dark", "0;15", False),
    ],
)
def test_the_background_is_known_without_asking_the_terminal(
    theme: str, variable: str, *, is_light: bool
) -> None:
    assert is_light_terminal(theme, {"COLORFGBG": variable}) is is_light


def test_a_light_background_gets_colours_that_can_be_read_on_it() -> None:
    dark, light = TextRenderer(40, has_colour=True), TextRenderer(40, has_colour=True, is_light=True)
    assert dark.line("careful", "warning") != light.line("careful", "warning")
    assert "\x1b[33m" not in light.line("careful", "warning"), "no yellow on white"


def test_a_long_diff_shows_its_two_ends_and_how_to_see_the_rest() -> None:
    lines = "".join(f"-old {number}\n" for number in range(50)) + "".join(f"+new {n}\n" for n in range(50))
    shown = TextRenderer().diff(f"@@ -1,50 +1,50 @@\n{lines}", 9, "ctrl-o")
    assert "-old 5" in shown
    assert "… 91 more lines  (ctrl-o)" in shown
    assert shown.endswith("+new 49")
    assert "more lines" not in TextRenderer().diff(f"@@ -1,50 +1,50 @@\n{lines}")


def test_a_cell_that_became_a_row_breaks_within_a_long_address() -> None:
    link = "https://example.com/a/very/long/path/that/does/not/break/anywhere.html"
    block = ProseBlock(f"| Name | Kind | Remark |\n|---|---|---|\n| one | two | see {link} |\n")
    rows = TextRenderer(30).markdown(block).split("\n")
    assert all(len(row) <= 30 for row in rows)
    assert any(row.endswith("/") for row in rows), "after one of its parts, and not in the middle of a word"


def test_a_long_line_of_code_or_of_a_diff_goes_on_behind_its_beginning() -> None:
    renderer = TextRenderer(40)
    diff = f"@@ -10 +10 @@\n+    return {'one ' * 15}one\n"
    assert [line[:8] for line in renderer.diff(diff).split("\n")] == ["  10 +  ", *["      on"] * 2]
    code = renderer.markdown(CodeBlock(f"if x:\n    return {'one ' * 15}one", "python"))
    assert [line[:9] for line in code.split("\n")] == ["  if x:", "      ret", *["        o"] * 2]


def test_a_text_that_is_too_long_says_that_it_goes_on() -> None:
    renderer = TextRenderer(40)
    assert renderer.beginning("one two", 3, indent=4) == "    one two"
    assert renderer.beginning("word " * 100_000, 3, indent=4).split("\n")[2:] == ["    …"]
