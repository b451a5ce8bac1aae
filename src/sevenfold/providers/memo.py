"""What was made of each item of a list, kept while the item stays the same object at the same place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
Made = TypeVar("Made")


@dataclass(slots=True)
class ListMemo(Generic[_Item, Made]):
    """A long list costs one comparison of pointers an item, and the work for those that are new."""

    make: Callable[[_Item], Made]
    _items: list[_Item] = field(default_factory=list[_Item])
    _made: list[Made] = field(default_factory=list[Made])

    def of(self, items: Sequence[_Item]) -> list[Made]:
        """What was made of each, as a list of the caller's own."""
        held = self._items
        if len(items) < len(held) // 2:
            # A fork is a little longer or shorter than its parent; a cut this deep is one for good.
            del held[len(items) :], self._made[len(items) :]
        # Made first, then held: an item that cannot be written must not stand for what was made of another.
        for at, (item, old) in enumerate(zip(items, held, strict=False)):
            if item is not old:
                self._made[at] = self.make(item)
                held[at] = item
        for item in items[len(held) :]:
            self._made.append(self.make(item))
            held.append(item)
        return self._made[: len(items)]
