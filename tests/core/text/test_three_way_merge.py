"""Two changes of one text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.team.client.ports import MAX_MERGE_LINES, merge_lines

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "e"]), max_size=8).map("".join)


def test_changes_of_lines_that_lie_apart_are_both_in_the_result() -> None:
    base = "one\ntwo\nthree\nfour\n"
    merged = merge_lines(base, "ONE\ntwo\nthree\nfour\n", "one\ntwo\nthree\nFOUR\nfive\n")
    assert merged == "ONE\ntwo\nthree\nFOUR\nfive\n"


def test_a_line_taken_out_and_a_line_changed_elsewhere_are_both_done() -> None:
    assert merge_lines("1\n2\n3\n4\n5\n", "2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n") == "2\n3\n4\nfive\n"


def test_changes_of_the_same_or_of_neighbouring_lines_do_not_merge() -> None:
    assert merge_lines("1\n2\n3\n", "1\nx\n3\n", "1\ny\n3\n") is None
    assert merge_lines("1\n2\n3\n", "1\nx\n3\n", "1\n2\ny\n") is None
    assert merge_lines("1\n", "1\nmine\n", "1\ntheirs\n") is None


def test_the_same_change_twice_is_one_change() -> None:
    assert merge_lines("1\n2\n3\n4\n", "1\nx\n3\n4\n5\n", "1\nx\n3\n4\n5\n") == "1\nx\n3\n4\n5\n"
    assert merge_lines("1\n2\n3\n4\n", "1\nx\n3\n4\n", "1\nx\n3\n4\n5\n") == "1\nx\n3\n4\n5\n"


@given(LINES, LINES)
def test_a_change_of_one_side_alone_is_the_result(base: str, changed: str) -> None:
    assert merge_lines(base, changed, base) == changed
    assert merge_lines(base, base, changed) == changed
    assert merge_lines(base, changed, changed) == changed


@given(LINES, LINES, LINES)
def test_it_does_not_matter_who_is_who(base: str, ours: str, theirs: str) -> None:
    assert merge_lines(base, ours, theirs) == merge_lines(base, theirs, ours)


@given(LINES, st.lists(st.integers(0, 9).map("new {}\n".format), max_size=3), st.integers(0, 8))
def test_no_new_line_of_either_side_is_lost_in_a_merge(base: str, added: list[str], at: int) -> None:
    lines = base.splitlines(keepends=True)
    ours = "".join([*lines[:at], *added, *lines[at:]])
    theirs = base + "\ntheir last line\n"
    merged = merge_lines(base, ours, theirs)
    if merged is not None:
        assert all(line in merged for line in (*added, "their last line\n"))


def test_texts_of_more_work_than_any_ordinary_one_are_not_merged() -> None:
    same = "x\n" * 3_000
    assert merge_lines(same, same + "mine\n", "theirs\n" + same) is None
    long = "".join(f"{number}\n" for number in range(MAX_MERGE_LINES + 1))
    assert merge_lines(long, long + "mine\n", "theirs\n" + long) is None
