"""Layer 3: when notes are due, and how they are kept within their limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.tokens.estimation import estimate_text_tokens
from sevenfold.layers.session_notes.policy import (
    NotesFacts,
    NotesSettings,
    NotesTask,
    OverLimit,
    build_notes_brief,
    find_over_limit,
    has_grown,
    needs_update,
    truncate_notes,
)
from sevenfold.layers.session_notes.sections import split_notes

SETTINGS = NotesSettings()
MODEL = NotesSettings(writer="model")
SMALL = NotesSettings(section_limit_tokens=100, limit_tokens=500)


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        (NotesFacts(9_999), False),
        (NotesFacts(10_000), True),
        (NotesFacts(10_000, has_tool_call=True), True),
        (NotesFacts(14_999, 10_000, 30), False),
        (NotesFacts(15_000, 10_000, 3, has_tool_call=True), True),
        (NotesFacts(15_000, 10_000, 2, has_tool_call=True), False),
        (NotesFacts(15_000, 10_000, 0, has_tool_call=False), True),
        (NotesFacts(14_999, 10_000, 0, has_tool_call=False), False),
    ],
    ids=[
        "too little for a first time",
        "first time",
        "first time in mid-turn",
        "many calls but no growth",
        "growth and calls",
        "growth and too few calls",
        "growth and a turn that ended",
        "a turn that ended but no growth",
    ],
)
def test_a_model_notes_when_enough_was_said_and_something_happened(facts: NotesFacts, due: bool) -> None:
    assert needs_update(facts, MODEL) == due
    assert has_grown(facts, SETTINGS) == due


def test_structural_notes_are_always_due() -> None:
    assert needs_update(NotesFacts(1), SETTINGS)
    assert needs_update(NotesFacts(10_001, 10_000, has_tool_call=True), SETTINGS)


def test_notes_that_are_switched_off_are_never_due() -> None:
    assert not needs_update(NotesFacts(1_000_000), NotesSettings(enabled=False))


def test_notes_within_their_limits_come_back_as_they_are() -> None:
    text = "# Title\nA thing\n\n# Worklog\n- one\n"
    assert truncate_notes(text, SETTINGS, estimate_text_tokens).text == text
    assert truncate_notes(text, SETTINGS, estimate_text_tokens).cut == ()


def test_a_long_section_loses_its_last_lines_to_a_notice_and_the_others_stay_whole() -> None:
    long = "".join(f"- step number {number} was taken\n" for number in range(100))
    text = f"# Title\nA thing\n\n# Worklog\n{long}\n# Extra\nkept\n"
    cut = truncate_notes(text, SMALL, estimate_text_tokens)
    assert cut.cut == ("Worklog",)
    assert "- step number 0 was taken\n" in cut.text
    assert "number 99" not in cut.text
    assert "of 101 lines shown" in cut.text
    assert split_notes(cut.text).body("Title") == "A thing\n\n"
    assert split_notes(cut.text).body("Extra") == "kept\n"
    assert find_over_limit(cut.text, SMALL, estimate_text_tokens) == ()


def test_a_section_of_one_endless_line_keeps_its_beginning() -> None:
    cut = truncate_notes(f"# Title\n{'word ' * 1_000}\n", SMALL, estimate_text_tokens)
    assert cut.text.startswith("# Title\nword word")
    assert cut.tokens <= 100


def test_a_cut_inside_a_quote_closes_it_so_that_later_headings_still_count() -> None:
    quoted = "~~~\n" + "some quoted line\n" * 100 + "~~~\n"
    cut = truncate_notes(f"# Title\n{quoted}# Worklog\n- one\n", SMALL, estimate_text_tokens)
    assert [section.name for section in split_notes(cut.text).sections] == ["Title", "Worklog"]


def test_what_is_over_its_limit_is_named_the_file_last() -> None:
    text = (
        "".join(f"# Section {number}\n{'word ' * 70}\n" for number in range(9)) + f"# Long\n{'word ' * 200}\n"
    )
    found = find_over_limit(text, SMALL, estimate_text_tokens)
    assert [item.section for item in found] == ["Long", ""]
    assert found[0].limit_tokens == 100
    assert found[1].limit_tokens == 500


@given(
    st.lists(
        st.one_of(
            st.sampled_from(["# Title", "# Worklog", "~~~", "```", "", "# ", "#x", "- a b c"]),
            st.text(alphabet="ab #~`.\n", max_size=30),
            st.integers(1, 400).map(lambda size: "word " * size),
        ),
        max_size=60,
    )
)
def test_cut_notes_are_never_over_a_limit(lines: list[str]) -> None:
    cut = truncate_notes("\n".join(lines), SMALL, estimate_text_tokens)
    assert cut.tokens <= SMALL.limit_tokens
    assert all(
        round(estimate_text_tokens(section.text)) <= SMALL.section_limit_tokens
        for section in split_notes(cut.text).sections
    )


def test_the_model_writer_may_use_one_tool_on_one_path() -> None:
    task = NotesTask("/s/notes.md", "# Title\n{tool} stays\n", "Edit", (OverLimit("Worklog", 2_500, 2_000),))
    made = build_notes_brief(task, "{path} by {tool}:\n{notes}\n{condense}")
    assert [(permit.tool, permit.path) for permit in made.allow] == [("Edit", "/s/notes.md")]
    assert made.kind == "notes"
    assert "/s/notes.md by Edit:" in made.directive
    assert "# Title\n{tool} stays\n" in made.directive
    assert 'The section "Worklog" has 2,500 tokens and may have 2,000' in made.directive
