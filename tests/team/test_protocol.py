"""The rule that both ends run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import InputError
from sevenfold.team.protocol import (
    MAX_CHANGES,
    Checksum,
    Commit,
    CommitApplied,
    CommitConflicts,
    CommitId,
    TeamChange,
    TeamEntry,
    TeamKey,
    apply_commit,
    check_commit,
    compute_checksum,
    is_checksum,
    make_commit_id,
)

A, B = TeamKey("a.md"), TeamKey("b.md")
ONE, TWO = compute_checksum("one"), compute_checksum("two")


def commit(*changes: TeamChange) -> Commit:
    return Commit(make_commit_id("laptop", changes), changes)


def test_a_commit_on_what_was_seen_is_applied_and_its_version_is_the_new_seq() -> None:
    done = apply_commit({A: TeamEntry(3, ONE)}, 7, commit(TeamChange(A, 3, TWO), TeamChange(B, 0, ONE)))
    assert done == CommitApplied(8, {A: TeamEntry(8, TWO), B: TeamEntry(8, ONE)})


def test_a_commit_on_anything_else_changes_nothing_and_names_what_moved() -> None:
    done = apply_commit({A: TeamEntry(3, ONE)}, 7, commit(TeamChange(A, 2, TWO), TeamChange(B, 5, ONE)))
    assert done == CommitConflicts({A: TeamEntry(3, ONE), B: TeamEntry(0, None)})


def test_a_delete_leaves_a_tombstone_whose_version_counts() -> None:
    gone = apply_commit({A: TeamEntry(3, ONE)}, 7, commit(TeamChange(A, 3, None)))
    assert gone == CommitApplied(8, {A: TeamEntry(8, None)})
    assert isinstance(
        apply_commit({A: TeamEntry(8, None)}, 8, commit(TeamChange(A, 0, TWO))), CommitConflicts
    )
    assert isinstance(apply_commit({A: TeamEntry(8, None)}, 8, commit(TeamChange(A, 8, TWO))), CommitApplied)


KEYS = st.sampled_from([TeamKey(f"{name}.md") for name in "abc"])
CHANGES = st.lists(
    st.builds(TeamChange, KEYS, st.integers(0, 4), st.sampled_from([None, ONE, TWO])),
    min_size=1,
    unique_by=lambda change: change.key,
).map(tuple)
ENTRIES = st.dictionaries(
    KEYS, st.builds(TeamEntry, st.integers(1, 4), st.sampled_from([None, ONE, TWO])), max_size=3
)


@given(ENTRIES, CHANGES)
def test_all_of_a_commit_happens_or_nothing(
    entries: dict[TeamKey, TeamEntry], changes: tuple[TeamChange, ...]
) -> None:
    done = apply_commit(entries, 9, commit(*changes))
    moved = {one.key for one in changes if entries.get(one.key, TeamEntry(0, None)).version != one.expected}
    if moved:
        assert isinstance(done, CommitConflicts)
        assert set(done.entries) == moved
    else:
        assert isinstance(done, CommitApplied)
        assert done.entries == {one.key: TeamEntry(10, one.checksum) for one in changes}


def test_the_id_of_a_commit_tells_devices_versions_and_texts_apart_and_not_the_order() -> None:
    first, second = TeamChange(A, 1, ONE), TeamChange(B, 0, None)
    assert make_commit_id("laptop", [first, second]) == make_commit_id("laptop", [second, first])
    others = {
        make_commit_id("laptop", [first]),
        make_commit_id("desktop", [first]),
        make_commit_id("laptop", [TeamChange(A, 2, ONE)]),
        make_commit_id("laptop", [TeamChange(A, 1, TWO)]),
        make_commit_id("laptop", [TeamChange(B, 1, ONE)]),
    }
    assert len(others) == 5


@pytest.mark.parametrize(
    "changes",
    [
        (),
        (TeamChange(A, 0, ONE), TeamChange(A, 0, TWO)),
        (TeamChange(TeamKey("../a.md"), 0, ONE),),
        (TeamChange(A, -1, ONE),),
        (TeamChange(A, 0, None),),
        (TeamChange(A, 0, Checksum("sha256:12")),),
        tuple(TeamChange(TeamKey(f"k{number}.md"), 0, ONE) for number in range(MAX_CHANGES + 1)),
    ],
)
def test_a_commit_that_nobody_may_apply_is_refused(changes: tuple[TeamChange, ...]) -> None:
    with pytest.raises(InputError):
        check_commit(commit(*changes))


@pytest.mark.parametrize("name", ["", "ü", "x" * 201])
def test_an_id_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no id"):
        check_commit(Commit(CommitId(name), (TeamChange(A, 0, ONE),)))


@given(st.text())
def test_every_text_has_a_checksum(text: str) -> None:
    assert is_checksum(compute_checksum(text))


def test_a_sound_commit_is_not_refused() -> None:
    sound = commit(TeamChange(A, 0, ONE), TeamChange(B, 4, None))
    check_commit(sound)
    assert len(sound.id) == 64
