"""Following a list of messages that somebody else owns and may change in place.

What was seen is kept as a copy of its dicts and lists that shares their texts. Comparing the two is a single
`==` in which every unchanged text is recognised by identity: a million tokens take a millisecond or two, and
a changed letter is found. Cache markers are the caller's to move: they are taken out before comparing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast

from sevenfold.core.cache_choices import FIVE_MINUTES, ONE_HOUR
from sevenfold.core.canonical import MARKER
from sevenfold.core.errors import WireError
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Block, Message, Opaque, ToolResult
from sevenfold.core.wire import read_message

NO_FIELDS: dict[str, object] = {}
"""What most objects have beside the fields of their class: one for all, so that there is less to look at."""

MOST_LOOKS = 8
"""A caller has four markers: so many messages differ at most where they moved."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A cache marker of the caller's own."""

    message: int
    block: int
    ttl: timedelta


@dataclass(frozen=True, slots=True)
class Synced:
    """What a list of messages turned out to be against what was seen of it before."""

    kept: int
    """Messages from the start that mean what they did."""
    dropped: int
    """Messages seen before that are gone or changed: all from `kept` on."""
    added: tuple[Message, ...]
    """What stands after `kept` now."""
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True, order=True)
class Shared:
    """How much two lists have in common."""

    prefix: int
    """Messages from the start on."""
    total: int
    """All that stand at the same place in both."""


class Mirror:
    """One caller's list, as it was the last time."""

    __slots__ = ("_copies", "_fields", "_marks", "_messages", "_owners", "_seen")

    def __init__(self) -> None:
        self._copies: list[object] = []
        self._owners: list[int] = []
        """The message that each SDK object stands in, in order. Beside it in the next two lists its own
        fields, alive, and what they were: so one comparison goes through all of them."""
        self._fields: list[dict[str, object]] = []
        self._seen: list[dict[str, object]] = []
        self._messages: list[Message] = []
        self._marks: dict[int, tuple[Mark, ...]] = {}

    def sync(self, messages: Sequence[object]) -> Synced:
        """Take in the list as it is now. The work grows with what changed, after one cheap comparison."""
        known = len(self._copies)
        beginning = messages[:known]
        # A tuple equals no list, whatever is in it.
        held = beginning if isinstance(beginning, list) else list(beginning)
        is_same = self._copies == held and self._fields == self._seen
        kept = known if is_same else self._first_change(messages)
        # All of it is read first: a list with something in it that is no message was not taken at all.
        read = [_read(messages[index], index) for index in range(kept, len(messages))]
        self.forget(kept)
        for index, message in enumerate(read, kept):
            self._take(messages[index], message, index)
        marks = tuple(mark for found in self._marks.values() for mark in found)
        return Synced(kept, known - kept, tuple(self._messages[kept:]), marks)

    def __len__(self) -> int:
        """Messages seen."""
        return len(self._copies)

    def count_shared(self, messages: Sequence[object]) -> Shared:
        """How much of this list stands where it was seen here. Changes nothing.

        A list that agrees at both ends of what was seen is taken to agree between them: `sync` looks closer.
        """
        known = len(self._copies)
        if 0 < known <= len(messages) and self._means(0, messages) and self._means(known - 1, messages):
            return Shared(known, known)
        same = [copy == message for copy, message in zip(self._copies, messages, strict=False)]
        differing = [index for index, is_same in enumerate(same) if not is_same]
        # Where a cache marker moved the messages still mean the same; a look at each costs reading it.
        for index in differing[:MOST_LOOKS]:
            same[index] = self._means(index, messages)
        return Shared(same.index(False) if False in same else len(same), sum(same))

    def _means(self, index: int, messages: Sequence[object]) -> bool:
        if self._copies[index] == messages[index]:
            return True
        return without_marks(_read(messages[index], index)) == self._messages[index]

    def _take(self, wire: object, message: Message, index: int) -> None:
        marks = tuple(_marks(message, index))
        if marks:
            self._marks[index] = marks
        self._messages.append(without_marks(message) if marks else message)
        self._copies.append(self._copy(wire, index))

    def forget(self, kept: int) -> None:
        """As if nothing from this message on had been seen."""
        del self._copies[kept:], self._messages[kept:]
        self._forget_objects(bisect_left(self._owners, kept), len(self._owners))
        self._marks = {index: marks for index, marks in self._marks.items() if index < kept}

    def _forget_objects(self, start: int, stop: int) -> None:
        del self._owners[start:stop], self._fields[start:stop], self._seen[start:stop]

    def _first_change(self, messages: Sequence[object]) -> int:
        """How many messages still mean the same. A marker that moved is taken over on the way."""
        pairs = zip(self._owners, self._fields, self._seen, strict=True)
        touched = {owner for owner, fields, seen in pairs if fields != seen}
        for index, copy in enumerate(self._copies):
            if index >= len(messages):
                return index
            if index not in touched and copy == messages[index]:
                continue
            now = _read(messages[index], index)
            if without_marks(now) != self._messages[index]:
                return index
            # The old value stays: whoever holds it recognises it by identity.
            self._marks[index] = tuple(_marks(now, index))
            self._take_again(messages[index], index)
        return len(self._copies)

    def _take_again(self, wire: object, index: int) -> None:
        """Another wire form of a message that means the same."""
        start, stop = bisect_left(self._owners, index), bisect_left(self._owners, index + 1)
        after = self._owners[stop:], self._fields[stop:], self._seen[stop:]
        self._forget_objects(start, len(self._owners))
        self._copies[index] = self._copy(wire, index)
        self._owners += after[0]
        self._fields += after[1]
        self._seen += after[2]

    def _copy(self, value: object, index: int) -> object:
        if isinstance(value, str):
            return value
        if isinstance(value, dict):
            items = cast("dict[object, object]", value).items()
            return {key: self._copy(item, index) for key, item in items}
        if isinstance(value, list):
            return [self._copy(item, index) for item in cast("list[object]", value)]
        if isinstance(value, tuple):
            return tuple([self._copy(item, index) for item in cast("tuple[object, ...]", value)])
        if hasattr(value, "model_dump"):
            if not hasattr(value, "__dict__"):
                # What cannot be looked into is read again each time.
                return object()
            # In the list it is known by identity; whether its fields were set since is looked at apart.
            self._watch(vars(value), index)
            extra: dict[str, object] | None = getattr(value, "__pydantic_extra__", None)
            if extra is not None:
                # Where a field goes that its class does not declare, such as a cache marker.
                self._watch(extra, index)
        return value

    def _watch(self, fields: dict[str, object], index: int) -> None:
        copy = {key: self._copy(item, index) for key, item in fields.items()}
        self._owners.append(index)
        self._fields.append(fields)
        self._seen.append(copy or NO_FIELDS)


def _read(wire: object, index: int) -> Message:
    if isinstance(wire, Message):
        return wire
    try:
        return read_message(wire)
    except WireError as error:
        raise WireError(f"messages[{index}]: {error}") from error


def _marks(message: Message, index: int) -> Iterator[Mark]:
    if isinstance(message.content, str):
        return
    for place, block in enumerate(message.content):
        marker = _fields(block).get(MARKER)
        if isinstance(marker, JsonObject):
            yield Mark(index, place, ONE_HOUR if marker.get("ttl") == "1h" else FIVE_MINUTES)


def without_marks(message: Message) -> Message:
    """The message with no cache marker on its blocks, nor on blocks inside a result."""
    if isinstance(message.content, str):
        return message
    return replace(message, content=tuple(_without_mark(block) for block in message.content))


def _without_mark(block: Block) -> Block:
    if isinstance(block, ToolResult) and isinstance(block.content, tuple):
        block = replace(block, content=tuple(_without_mark(item) for item in block.content))
    if MARKER not in _fields(block):
        return block
    if isinstance(block, Opaque):
        return Opaque(block.wire.without(MARKER))
    return replace(block, extra=block.extra.without(MARKER))


def _fields(block: Block) -> JsonObject:
    return block.wire if isinstance(block, Opaque) else block.extra
