"""Following a list of messages that somebody else owns and may change in place.

What was seen is kept as a copy, and comparing a million tokens with it takes a millisecond or two: a changed
letter is found. Cache markers are the caller's to move: they are taken out before comparing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import is_

from sevenfold.core.cache.assumptions import FIVE_MINUTES, ONE_HOUR
from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.errors import WireError
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Block, Message, Opaque, ToolResult
from sevenfold.core.wire import read_message
from sevenfold.session.message_snapshot import CHUNK_SIZE, MessageSnapshot, SnapshotChunk

MAX_CLOSE_COMPARISONS = 8
"""A caller has four markers: so many messages differ at most where they moved."""


@dataclass(frozen=True, slots=True)
class CallerBreakpoint:
    """A cache marker of the caller's own."""

    message: int
    block: int
    ttl: timedelta


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a list of messages turned out to be against what was seen of it before."""

    kept: int
    """Messages from the start that mean what they did."""
    dropped: int
    """Messages seen before that are gone or changed: all from `kept` on."""
    added: tuple[Message, ...]
    """What stands after `kept` now."""
    marks: tuple[CallerBreakpoint, ...]


@dataclass(frozen=True, slots=True, order=True)
class SharedCount:
    """How much two lists have in common."""

    prefix: int
    """Messages from the start on."""
    total: int
    """All that stand at the same place in both."""


class MessageListTracker:
    """One caller's list, as it was the last time."""

    __slots__ = ("_facets", "_marks", "_messages")

    def __init__(self) -> None:
        self._facets: list[SnapshotChunk] = []
        self._messages: list[Message] = []
        self._marks: dict[int, tuple[CallerBreakpoint, ...]] = {}

    def sync(self, messages: Sequence[object]) -> SyncResult:
        """Take in the list as it is now. The work grows with what changed, after one cheap comparison."""
        known = len(self)
        kept = self._count_kept(messages)
        # All of it is read first: a list with something in it that is no message was not taken at all.
        read = [_read(messages[index], index) for index in range(kept, len(messages))]
        self.forget(kept)
        for index, message in enumerate(read, kept):
            self._take(messages[index], message, index)
        marks = tuple(mark for found in self._marks.values() for mark in found)
        return SyncResult(kept, known - kept, tuple(self._messages[kept:]), marks)

    def __len__(self) -> int:
        """Messages seen."""
        return len(self._messages)

    def count_shared(self, messages: Sequence[object]) -> SharedCount:
        """How much of this list stands where it was seen here. Changes nothing.

        A list that agrees at both ends of what was seen is taken to agree between them: `sync` looks closer.
        """
        known = len(self)
        if 0 < known <= len(messages) and self._means(0, messages) and self._means(known - 1, messages):
            return SharedCount(known, known)
        copied = (message.copy for facet in self._facets for message in facet.messages)
        same = [copy == message for copy, message in zip(copied, messages, strict=False)]
        differing = [index for index, is_same in enumerate(same) if not is_same]
        # Where a cache marker moved the messages still mean the same; a look at each costs reading it.
        for index in differing[:MAX_CLOSE_COMPARISONS]:
            same[index] = self._means(index, messages)
        return SharedCount(same.index(False) if False in same else len(same), sum(same))

    def _means(self, index: int, messages: Sequence[object]) -> bool:
        if self._facets[index // CHUNK_SIZE].messages[index % CHUNK_SIZE].copy == messages[index]:
            return True
        return without_breakpoints(_read(messages[index], index)) == self._messages[index]

    def _take(self, wire: object, message: Message, index: int) -> None:
        marks = tuple(_marks(message, index))
        if marks:
            self._marks[index] = marks
        self._messages.append(without_breakpoints(message))
        if index % CHUNK_SIZE == 0:
            self._facets.append(SnapshotChunk())
        self._facets[-1].append(MessageSnapshot(wire))

    def forget(self, kept: int) -> None:
        """As if nothing from this message on had been seen."""
        if kept >= len(self):
            return
        whole, rest = divmod(kept, CHUNK_SIZE)
        left = self._facets[whole].messages[:rest]
        self._facets[whole:] = [SnapshotChunk(left)] if left else []
        del self._messages[kept:]
        self._marks = {index: marks for index, marks in self._marks.items() if index < kept}

    def _count_kept(self, messages: Sequence[object]) -> int:
        """How many messages still mean the same. A marker that moved is taken over on the way."""
        for number, facet in enumerate(self._facets):
            start = number * CHUNK_SIZE
            # A tuple equals no list, whatever is in it.
            held = list(messages[start : start + len(facet.messages)])
            if not facet.is_same(held):
                same = self._count_same(held, start, facet)
                if same < len(facet.messages):
                    return start + same
        return len(self)

    def _count_same(self, held: list[object], start: int, facet: SnapshotChunk) -> int:
        messages, moved = facet.messages.copy(), dict[int, tuple[CallerBreakpoint, ...]]()
        same = 0
        for place, (copied, wire) in enumerate(zip(messages, held, strict=False)):
            index = start + place
            if not copied.is_same(wire):
                now = _read(wire, index)
                if without_breakpoints(now) != self._messages[index]:
                    break
                # The old value stays: whoever holds it recognises it by identity.
                moved[index] = tuple(_marks(now, index))
                messages[place] = MessageSnapshot(wire)
            same += 1
        # All at once: a message that cannot be read leaves everything as it was.
        self._facets[start // CHUNK_SIZE] = SnapshotChunk(messages)
        self._marks = {index: marks for index, marks in (self._marks | moved).items() if marks}
        return same


def _read(wire: object, index: int) -> Message:
    if isinstance(wire, Message):
        return wire
    try:
        return read_message(wire)
    except WireError as error:
        raise WireError(f"messages[{index}]: {error}") from error


def _marks(message: Message, index: int) -> Iterator[CallerBreakpoint]:
    if isinstance(message.content, str):
        return
    for place, block in enumerate(message.content):
        marker = _find_marker(block)
        if marker is not None:
            yield CallerBreakpoint(index, place, ONE_HOUR if marker.get("ttl") == "1h" else FIVE_MINUTES)


def _find_marker(block: Block) -> JsonObject | None:
    """A block's own, or the last inside a result, which ends hardly before the result does."""
    inside = block.content if isinstance(block, ToolResult) and isinstance(block.content, tuple) else ()
    for one in (block, *reversed(inside)):
        marker = _fields(one).get(CACHE_CONTROL)
        if isinstance(marker, JsonObject):
            return marker
    return None


def without_breakpoints(message: Message) -> Message:
    """The message with no cache marker on its blocks, nor on blocks inside a result; itself where none is."""
    if isinstance(message.content, str):
        return message
    blocks = tuple([_without_mark(block) for block in message.content])
    return message if _are_same(blocks, message.content) else replace(message, content=blocks)


def _are_same(blocks: tuple[Block, ...], before: tuple[Block, ...]) -> bool:
    return all(map(is_, blocks, before))


def _without_mark(block: Block) -> Block:
    if isinstance(block, ToolResult) and isinstance(block.content, tuple):
        inside = tuple([_without_mark(item) for item in block.content])
        if not _are_same(inside, block.content):
            block = replace(block, content=inside)
    if CACHE_CONTROL not in _fields(block):
        return block
    if isinstance(block, Opaque):
        return Opaque(block.wire.without(CACHE_CONTROL))
    return replace(block, extra=block.extra.without(CACHE_CONTROL))


def _fields(block: Block) -> JsonObject:
    return block.wire if isinstance(block, Opaque) else block.extra
