"""The rule that both ends run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import InputError
from sevenfold.sync.protocol import (
    MAX_CHANGES,
    Applied,
    Change,
    Checksum,
    Commit,
    CommitId,
    Conflicts,
    Entry,
    TeamKey,
    apply_commit,
    check_commit,
    checksum_of,
    commit_id,
    is_checksum,
)

A, B = TeamKey("a.md"), TeamKey("b.md")
ONE, TWO = checksum_of("one"), checksum_of("two")


def commit(*changes: Change) -> Commit:
    return Commit(commit_id("laptop", changes), changes)


def test_a_commit_on_what_was_seen_is_applied_and_its_version_is_the_new_seq() -> None:
    done = apply_commit({A: Entry(3, ONE)}, 7, commit(Change(A, 3, TWO), Change(B, 0, ONE)))
    assert done == Applied(8, {A: Entry(8, TWO), B: Entry(8, ONE)})


def test_a_commit_on_anything_else_changes_nothing_and_names_what_moved() -> None:
    done = apply_commit({A: Entry(3, ONE)}, 7, commit(Change(A, 2, TWO), Change(B, 5, ONE)))
    assert done == Conflicts({A: Entry(3, ONE), B: Entry(0, None)})


def test_a_delete_leaves_a_tombstone_whose_version_counts() -> None:
    gone = apply_commit({A: Entry(3, ONE)}, 7, commit(Change(A, 3, None)))
    assert gone == Applied(8, {A: Entry(8, None)})
    assert isinstance(apply_commit({A: Entry(8, None)}, 8, commit(Change(A, 0, TWO))), Conflicts)
    assert isinstance(apply_commit({A: Entry(8, None)}, 8, commit(Change(A, 8, TWO))), Applied)


KEYS = st.sampled_from([TeamKey(f"{name}.md") for name in "abc"])
CHANGES = st.lists(
    st.builds(Change, KEYS, st.integers(0, 4), st.sampled_from([None, ONE, TWO])),
    min_size=1,
    unique_by=lambda change: change.key,
).map(tuple)
ENTRIES = st.dictionaries(
    KEYS, st.builds(Entry, st.integers(1, 4), st.sampled_from([None, ONE, TWO])), max_size=3
)


@given(ENTRIES, CHANGES)
def test_all_of_a_commit_happens_or_nothing(
    entries: dict[TeamKey, Entry], changes: tuple[Change, ...]
) -> None:
    done = apply_commit(entries, 9, commit(*changes))
    moved = {one.key for one in changes if entries.get(one.key, Entry(0, None)).version != one.expected}
    if moved:
        assert isinstance(done, Conflicts)
        assert set(done.entries) == moved
    else:
        assert isinstance(done, Applied)
        assert done.entries == {one.key: Entry(10, one.checksum) for one in changes}


def test_the_id_of_a_commit_tells_devices_versions_and_texts_apart_and_not_the_order() -> None:
    first, second = Change(A, 1, ONE), Change(B, 0, None)
    assert commit_id("laptop", [first, second]) == commit_id("laptop", [second, first])
    others = {
        commit_id("laptop", [first]),
        commit_id("desktop", [first]),
        commit_id("laptop", [Change(A, 2, ONE)]),
        commit_id("laptop", [Change(A, 1, TWO)]),
        commit_id("laptop", [Change(B, 1, ONE)]),
    }
    assert len(others) == 5


@pytest.mark.parametrize(
    "changes",
    [
        (),
        (Change(A, 0, ONE), Change(A, 0, TWO)),
        (Change(TeamKey("../a.md"), 0, ONE),),
        (Change(A, -1, ONE),),
        (Change(A, 0, None),),
        (Change(A, 0, Checksum("sha256:12")),),
        tuple(Change(TeamKey(f"k{number}.md"), 0, ONE) for number in range(MAX_CHANGES + 1)),
    ],
)
def test_a_commit_that_nobody_may_apply_is_refused(changes: tuple[Change, ...]) -> None:
    with pytest.raises(InputError):
        check_commit(commit(*changes))


@pytest.mark.parametrize("name", ["", "ü", "x" * 201])
def test_an_id_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no id"):
        check_commit(Commit(CommitId(name), (Change(A, 0, ONE),)))


@given(st.text())
def test_every_text_has_a_checksum(text: str) -> None:
    assert is_checksum(checksum_of(text))


def test_a_sound_commit_is_not_refused() -> None:
    sound = commit(Change(A, 0, ONE), Change(B, 4, None))
    check_commit(sound)
    assert len(sound.id) == 64
