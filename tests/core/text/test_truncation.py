from __future__ import annotations

from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.text.safe_text import escape_controls, truncate_bytes, truncate_lines

texts = st.text(
    st.characters() | st.characters(categories=["Cs"]) | st.sampled_from("aé€😀\n\n"), max_size=60
)
sizes = st.integers(0, 120)


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


@given(texts, sizes)
def test_a_cut_is_the_longest_beginning_that_fits(text: str, max_bytes: int) -> None:
    kept = truncate_bytes(text, max_bytes)
    assert text.startswith(kept)
    assert size(kept) <= max_bytes
    assert kept == text or size(text[: len(kept) + 1]) > max_bytes


@given(texts, sizes)
def test_a_cut_at_lines_fits_and_keeps_most_of_what_would_fit(text: str, max_bytes: int) -> None:
    kept, most = truncate_lines(text, max_bytes), truncate_bytes(text, max_bytes)
    assert most.startswith(kept)
    assert kept in (text, most) or kept.endswith("\n")
    assert len(kept) >= len(most) // 2


@given(texts)
def test_what_fits_is_left_as_it_is(text: str) -> None:
    assert truncate_bytes(text, size(text)) == text
    assert truncate_lines(text, size(text)) == text


@pytest.mark.parametrize(
    ("text", "max_bytes", "kept"),
    [
        ("aé€😀", 10, "aé€😀"),
        ("aé€😀", 9, "aé€"),
        ("aé€😀", 6, "aé€"),
        ("aé€😀", 5, "aé"),
        ("aé€😀", 2, "a"),
        ("aé€😀", 0, ""),
        ("aé€😀", -3, ""),
        ("\ud800\ud800", 5, "\ud800"),
        ("", 5, ""),
    ],
)
def test_no_character_is_cut_in_two(text: str, max_bytes: int, kept: str) -> None:
    assert truncate_bytes(text, max_bytes) == kept


@pytest.mark.parametrize(
    ("text", "max_bytes", "kept"),
    [
        ("one\ntwo\nthree\n", 13, "one\ntwo\n"),
        ("one\ntwo\nthree\n", 14, "one\ntwo\nthree\n"),
        ("one\ntwo\nthree", 8, "one\ntwo\n"),
        ("a\n" + "b" * 100, 50, "a\n" + "b" * 48),
        ("a" * 100, 50, "a" * 50),
        ("\n" * 100, 50, "\n" * 50),
        ("one\ntwo", -1, ""),
    ],
)
def test_a_cut_ends_with_a_line_unless_that_would_lose_half(text: str, max_bytes: int, kept: str) -> None:
    assert truncate_lines(text, max_bytes) == kept


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    class Watched(str):
        __slots__ = ()

        def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
            raise AssertionError("all of it was encoded")

    assert truncate_bytes(Watched("x" * 1000), 10) == "x" * 10


@given(texts)
def test_nothing_that_a_terminal_would_obey_is_left_and_nothing_that_it_shows_is_lost(text: str) -> None:
    shown = escape_controls(text)
    assert all(item.isprintable() or item in "\n\u200c\u200d" or category(item) == "Zs" for item in shown)
    assert escape_controls(shown) == shown
    if all(item.isprintable() or item == "\n" for item in text):
        assert shown == text


def test_an_escape_is_spelled_out() -> None:
    assert escape_controls("a\x1b[31mb\rc") == "a\\x1b[31mb\\rc"


@pytest.mark.parametrize(
    "text", ["👩\u200d👩\u200d👧", "👩🏽\u200d🚀", "🏳\ufe0f\u200d🌈", "نمی\u200cخواهم", "क्\u200dष"]
)
def test_joiners_that_shape_an_emoji_or_a_word_are_shown(text: str) -> None:
    assert escape_controls(text) == text


@pytest.mark.parametrize(
    "text", ["pass\u200dword", "a\u200c", "\u200d👩", "👩\u200d", "👩\u200cx", "م\u200d\u200dم"]
)
def test_joiners_that_could_only_hide_something_are_spelled_out(text: str) -> None:
    shown = escape_controls(text)
    assert "\u200c" not in shown
    assert "\u200d" not in shown
