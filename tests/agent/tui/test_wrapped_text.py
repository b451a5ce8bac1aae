"""Lines of ours are broken between words, and labels stand beside their texts where there is room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.agent.tui.render.wrapped_text import LabelledText, wrap_plain, wrap_rows
from sevenfold.agent.tui.text_renderer import TextRenderer

WORDS = st.lists(st.text("abc/-é", min_size=1, max_size=30), max_size=20)


@given(WORDS, st.integers(10, 60), st.integers(0, 6))
def test_no_word_is_lost_and_every_line_fits(words: list[str], columns: int, hang: int) -> None:
    lines = wrap_plain(" ".join(words), columns, hang)
    assert max(map(len, lines), default=0) <= columns
    assert "".join("".join(lines).split()) == "".join(words)
    short = [word for word in words if len(word) <= columns - hang]
    assert [word for word in short if word not in " ".join(lines).split()] == [], "short words stay whole"


def test_a_path_is_broken_after_a_separator_and_no_line_begins_with_a_gap() -> None:
    lines = wrap_plain("kept in  /home/somebody/project/.sevenfold/settings.local.toml", 30, hang=2)
    assert lines == ["kept in", "  /home/somebody/project/.", "  sevenfold/settings.local.", "  toml"]
    assert wrap_plain("猫猫猫猫猫猫猫猫", 10) == ["猫猫猫猫猫", "猫猫猫"]


def test_rows_stand_beside_their_labels_or_below_them() -> None:
    rows = [LabelledText("mode", "asks before it changes anything"), LabelledText("key", "")]
    assert wrap_rows(rows, 80) == ["mode  asks before it changes anything", "key"]
    assert wrap_rows(rows, 20)[:2] == ["mode", "  asks before it"]


@pytest.mark.parametrize(
    ("shown", "spoken"),
    [
        ("● shell ls", "done: shell ls"),
        ("✗ shell ls  failed", "shell ls  failed"),
        ("› hello", "you said: hello"),
        ("· layer 4: compacted", "layer 4: compacted"),
        ("no sign", "no sign"),
    ],
)
def test_signs_are_words_where_lines_are_read_aloud(shown: str, spoken: str) -> None:
    assert TextRenderer(80, signs="words").line(shown) == spoken
    assert TextRenderer(80).line(shown) == shown
