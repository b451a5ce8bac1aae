"""What a person changed in the notes stays changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.layers.session_notes.sections import (
    NO_HAND_EDITS,
    HandEdits,
    apply_hand_edits,
    find_hand_edits,
)

WRITTEN = "# Title\nA thing\n\n# Worklog\n- first step taken\n- second step taken\n"


def test_a_file_as_it_was_written_has_no_edits() -> None:
    assert find_hand_edits(WRITTEN, WRITTEN) == NO_HAND_EDITS
    assert apply_hand_edits(WRITTEN, NO_HAND_EDITS) == WRITTEN


def test_an_added_line_comes_back_at_the_head_of_its_section() -> None:
    edits = find_hand_edits(WRITTEN, WRITTEN + "- mine\n")
    assert (
        apply_hand_edits("# Title\nB\n\n# Worklog\n- third\n", edits)
        == "# Title\nB\n\n# Worklog\n- mine\n- third\n"
    )


def test_a_removed_line_stays_away() -> None:
    edits = find_hand_edits(WRITTEN, WRITTEN.replace("- first step taken\n", ""))
    assert "- first step taken" not in apply_hand_edits(WRITTEN, edits)
    assert "- second step taken" in apply_hand_edits(WRITTEN, edits)


def test_an_added_line_that_its_person_removes_again_is_gone() -> None:
    edits = find_hand_edits(WRITTEN, WRITTEN + "- mine\n")
    shown = apply_hand_edits(WRITTEN, edits)
    later = find_hand_edits(shown, shown.replace("- mine\n", ""), edits)
    assert later == NO_HAND_EDITS


def test_a_section_of_a_persons_own_is_kept_once_however_often_notes_are_written() -> None:
    shown, edits = WRITTEN, NO_HAND_EDITS
    found = WRITTEN + "\n# Mine\nkept\n"
    for _ in range(3):
        edits = find_hand_edits(shown, found, edits)
        shown = found = apply_hand_edits(WRITTEN, edits)
    assert shown.count("# Mine\nkept\n") == 1


def test_fences_and_rules_are_never_taken_for_removed_lines() -> None:
    written = "# Title\n~~~~~~~~~~\nquoted\n~~~~~~~~~~\n----------\n"
    assert find_hand_edits(written, "# Title\nquoted\n").removed == frozenset()


LINES = st.lists(st.text(alphabet="abc -", min_size=1, max_size=12).filter(str.strip), max_size=6)


@given(LINES, LINES, LINES)
def test_every_line_a_person_adds_is_in_the_next_writing(
    old: list[str], mine: list[str], new: list[str]
) -> None:
    written = "# Worklog\n" + "".join(f"{line}\n" for line in old)
    found = written + "".join(f"{line}\n" for line in mine)
    rendered = "# Worklog\n" + "".join(f"{line}\n" for line in new)
    edits: HandEdits = find_hand_edits(written, found)
    shown = [line.strip() for line in apply_hand_edits(rendered, edits).splitlines()]
    known = {line.strip() for line in old}
    assert all(line.strip() in shown for line in mine if line.strip() not in known)
