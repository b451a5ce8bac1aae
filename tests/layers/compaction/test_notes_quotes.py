"""The user's words stand once after a compaction by notes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.messages import Message
from sevenfold.core.tokens.estimation import estimate_text_tokens
from sevenfold.layers.compaction.summary import QUOTES_POINTER, without_quoted_requests
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.session_notes.sections import split_notes
from sevenfold.layers.session_notes.structural_notes import StructuralNotes

LINES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=60)
SAID = st.lists(st.lists(LINES, min_size=1, max_size=4).map("\n".join), min_size=1, max_size=8, unique=True)


def notes_of(*said: str) -> str:
    notes = StructuralNotes()
    for text in said:
        notes.add(Message("user", text))
        notes.add(Message("assistant", "Yes."))
    return notes.render(NotesSettings(), "")


def task(text: str) -> str:
    return split_notes(text).body("Task specification")


@given(SAID)
def test_whatever_was_said_is_left_out_of_the_task_where_it_is_shown(said: list[str]) -> None:
    notes = notes_of(*said)
    left = without_quoted_requests(notes, said)
    rest = task(left).replace(QUOTES_POINTER, "").strip()
    assert not rest
    assert split_notes(left).body("Worklog") == split_notes(notes).body("Worklog")


def test_what_is_not_shown_stays_and_so_does_what_a_person_added() -> None:
    notes = notes_of("Mend the parser", "Then the printer\n# and its tests", "Mend all else")
    notes = notes.replace("# Files and functions", "- by hand: no new dependencies\n\n# Files and functions")
    left = task(without_quoted_requests(notes, ["Mend the parser", "Then the printer\n# and its tests"]))
    assert "Mend the parser" not in left
    assert "printer" not in left
    assert "Mend all else" in left
    assert "- by hand: no new dependencies" in left


def test_a_long_message_is_left_out_by_its_beginning_too() -> None:
    pasted = "\n".join(f"line {number} of what was pasted" for number in range(3_000))
    assert estimate_text_tokens(pasted) > NotesSettings().section_limit_tokens
    notes = notes_of(pasted)
    assert "begins so" in task(notes)
    assert task(without_quoted_requests(notes, [pasted])).strip() == QUOTES_POINTER.strip()
    assert without_quoted_requests(notes, ["something else"]) == notes


def test_notes_without_a_task_stay_as_they_are() -> None:
    assert without_quoted_requests("# Mine\n1. Go\n", ["Go"]) == "# Mine\n1. Go\n"
