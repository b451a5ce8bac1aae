"""Edges of the text helpers: names from sentences, imports of a page, painted text, cuts by tokens."""

from __future__ import annotations

import pytest

from sevenfold.core.text.markdown import find_imports, is_path_like
from sevenfold.core.text.safe_text import (
    escape_json,
    escape_painted,
    fence_text,
    find_fences,
    quote_name,
    truncate_tokens,
)
from sevenfold.core.text.stems import make_slug, split_clauses, truncate_words


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("The nightly export drops the zeros", "nightly-export-drops-zeros"),
        ("Export, export and Export deploys", "export-deploys"),
        ("Export", "export-noted"),
        ("", "noted"),
        ("Run make_lint first", "run-lint-first"),
        ("one1 two2 three3 four4 five5 six6 seven7", "one1-two2-three3-four4-five5-six6"),
        (f"{'x' * 30} y1", f"{'x' * 20}-y1"),
    ],
)
def test_a_slug_has_the_first_words_that_mean_something_each_once(text: str, slug: str) -> None:
    assert make_slug(text) == slug


def test_clauses_are_parts_with_words_in_them() -> None:
    assert [part.strip() for part in split_clauses("We push on Friday, but never late; ask first")] == [
        *("We push on Friday", "never late", "ask first")
    ]


@pytest.mark.parametrize(
    ("limit", "cut"), [(30, "one two, three"), (14, "one two, three"), (13, "one two…"), (9, "one…")]
)
def test_a_line_is_cut_between_words(limit: int, cut: str) -> None:
    assert truncate_words(" one  two,\nthree ", limit) == cut


def test_imports_are_found_outside_of_code_each_once() -> None:
    page = (
        "See @docs/a.md, and (@b.md) or @docs/a.md.\n`@code.md` mail@x.org\n```\n@fenced.md\n~~~\n```\n"
        "~~~ py\n@tilde.md\n```\n~~~\n@after.md\n@. @.. @/ @~ @team\n"
    )
    assert find_imports(page) == ("docs/a.md", "after.md", "team")
    assert (is_path_like("docs/a.md"), is_path_like("team")) == (True, False)


def test_painted_text_keeps_its_colours_and_nothing_else() -> None:
    assert escape_painted("\x1b[31mred\x1b[0m \x1b[2J\x07") == "\x1b[31mred\x1b[0m \\x1b[2J\\x07"
    assert escape_painted("plain\ntext") == "plain\ntext"


def test_json_and_names_show_what_hides() -> None:
    assert escape_json('{"a": "x\u202ey"}\n') == '{"a": "x\\u202ey"}\n'
    assert escape_json('"\U000e0041"') == '"\\udb40\\udc41"'
    assert escape_json('"a\u00a0b"') == '"a\u00a0b"'
    assert [quote_name(name) for name in ("a b.py", "a\nb", '"x"', "[x", "é")] == [
        *("a b.py", '"a\\nb"', '"\\"x\\""', '"[x"', "é")
    ]


def test_a_text_is_cut_to_about_so_many_tokens_in_whole_lines() -> None:
    text = "word word\n" * 20
    assert truncate_tokens(text, 40, lambda whole: len(whole.split())) == text
    assert truncate_tokens(text, 20, lambda whole: len(whole.split())) == "word word\n" * 10
    assert truncate_tokens(text, 0, lambda whole: len(whole.split())) == ""
    assert truncate_tokens(text, -5, lambda whole: len(whole.split())) == ""


def test_fences_hold_their_text_and_label_whatever_stands_in_them() -> None:
    inner, label = fence_text("note", "inside", label="a"), 'x "y" & \n z'
    for text in ("", "plain", inner, "</note 00000000>", "line\n"):
        whole = f"before\n{fence_text('note', text, label=label)}\nafter {fence_text('note', 'end')}"
        found = find_fences("note", whole)
        assert [(one.label, one.text) for one in found] == [(label, text), ("", "end")]
    assert find_fences("note", "<note 12345678>\nno end") == ()
    assert find_fences("other", inner) == ()
