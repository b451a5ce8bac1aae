"""The beginning of a list that only grows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.requests import ListPrefix

NUMBERS = st.lists(st.integers())
PLACES = st.none() | st.integers(-12, 12)


@given(NUMBERS, NUMBERS)
def test_what_the_list_gains_later_is_not_in_it(first: list[int], later: list[int]) -> None:
    items = list(first)
    taken = ListPrefix(items)
    items += later
    assert taken == tuple(first)
    assert len(taken) == len(first)
    assert ListPrefix(items) == (*first, *later)


@given(NUMBERS, NUMBERS, PLACES, PLACES, st.sampled_from((None, 1, 2, -1, -3)))
def test_a_slice_is_that_of_the_same_tuple(
    first: list[int], later: list[int], start: int | None, stop: int | None, step: int | None
) -> None:
    items = list(first)
    taken = ListPrefix(items)
    items += later
    assert taken[start:stop:step] == tuple(first)[start:stop:step]


@given(st.lists(st.integers(), min_size=1), NUMBERS, st.data())
def test_a_place_counts_from_either_end_and_none_is_beyond(
    first: list[int], later: list[int], data: st.DataObject
) -> None:
    items = list(first)
    taken = ListPrefix(items)
    items += later
    place = data.draw(st.integers(-len(first) - 2, len(first) + 1))
    if -len(first) <= place < len(first):
        assert taken[place] == first[place]
    else:
        try:
            found = taken[place]
        except IndexError:
            found = None
        assert found is None


def test_two_are_of_one_list_by_what_they_are_taken_from_and_not_by_what_they_hold() -> None:
    items = [1, 2]
    early = ListPrefix(items)
    items.append(3)
    assert early.shares_list_with(ListPrefix(items))
    assert not early.shares_list_with(ListPrefix([1, 2]))
    assert not early.shares_list_with((1, 2))
    assert early == ListPrefix([1, 2])
    assert hash(early) == hash((1, 2))
