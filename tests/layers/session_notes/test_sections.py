"""The notes file taken apart and put together."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sevenfold.layers
from sevenfold.layers.session_notes.sections import (
    SECTION_NAMES,
    is_blank_notes,
    render_code_block,
    render_notes,
    split_notes,
)

TEMPLATE = (
    Path(sevenfold.layers.__file__).parent / "session_notes" / "prompts" / "notes_template.md"
).read_text(encoding="utf-8")

MARKED = st.text(alphabet="ab# ~`\n\u2028\r-", max_size=80)


@given(MARKED)
def test_no_character_is_lost_by_taking_notes_apart(text: str) -> None:
    assert split_notes(text).text == text


@given(MARKED)
def test_a_quoted_text_never_makes_a_heading_of_its_own(text: str) -> None:
    notes = split_notes(f"# Title\n{render_code_block(text)}\n# Worklog\nx\n")
    assert [section.name for section in notes.sections] == ["Title", "Worklog"]
    assert text in notes.body("Title")


def test_the_template_has_the_ten_sections_in_order() -> None:
    assert tuple(section.name for section in split_notes(TEMPLATE).sections) == SECTION_NAMES
    assert len(SECTION_NAMES) == 10


def test_rendered_notes_show_what_the_template_says_of_an_empty_section() -> None:
    text = render_notes({"Title": ["A thing"], "Worklog": ["- one", "- two"]}, TEMPLATE)
    notes = split_notes(text)
    assert notes.body("Title") == "A thing\n\n"
    assert notes.body("worklog") == "- one\n- two\n"
    assert notes.body("Learnings") == split_notes(TEMPLATE).body("Learnings")


@pytest.mark.parametrize(
    ("text", "blank"),
    [
        (TEMPLATE, True),
        ("", True),
        (render_notes({}, TEMPLATE), True),
        (render_notes({}, ""), True),
        (render_notes({"Title": ["A thing"]}, TEMPLATE), False),
        (TEMPLATE + "\nA person's line\n", False),
    ],
    ids=["template", "empty", "rendered", "rendered without", "one line", "by hand"],
)
def test_notes_are_blank_until_something_was_noted(text: str, blank: bool) -> None:
    assert is_blank_notes(text, TEMPLATE) == blank
