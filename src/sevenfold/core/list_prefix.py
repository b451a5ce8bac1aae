"""The beginning of a list that only grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar, cast, overload

ItemT = TypeVar("ItemT")


class ListPrefix(Sequence[ItemT]):
    """The first items of a list that nobody changes but by adding at its end.

    To take one costs the same however long it is, and of two it is known without a look whether they are of
    the same list: a request is made from a long conversation, and compared with the one before, in no time.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[ItemT]) -> None:
        self._items, self._length = items, len(items)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> ItemT: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ItemT, ...]: ...
    def __getitem__(self, index: int | slice) -> ItemT | tuple[ItemT, ...]:
        places = range(self._length)[index]
        if isinstance(places, int):
            return self._items[places]
        if places.step == 1:
            return tuple(self._items[places.start : places.stop])
        return tuple([self._items[place] for place in places])

    def __iter__(self) -> Iterator[ItemT]:
        return islice(self._items, self._length)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (ListPrefix, tuple)):
            return NotImplemented
        return tuple(self) == tuple(cast("Sequence[object]", other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Beginning({list(self)!r})"

    def is_of(self, other: Sequence[object]) -> bool:
        """Whether both are beginnings of one list, so that the longer begins with the shorter."""
        return isinstance(other, ListPrefix) and self._items is other._items
