"""The history of a session: everything that happened, in order, never shortened.

`History` is our own, append-only. `MessageListTracker` follows a list that the caller owns and may change in
place: it keeps a copy of what it saw and finds any change, in a millisecond or two for a million tokens.
Messages that the API reads alike are the same: breakpoints are the caller's to move, and a lone text may be
written as a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import cast, overload

from sevenfold.core.cache.prompt_blocks import FIVE_MINUTES, ONE_HOUR
from sevenfold.core.errors import InputError, WireError
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import (
    Message,
    find_breakpoint,
    is_same_message,
    read_message,
    without_breakpoints,
)


class History(Sequence[Message]):
    """Messages to which you can only add, so that old ones are never compared again."""

    __slots__ = ("_messages",)

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._messages = list(messages)

    def append(self, message: Message) -> None:
        """Add a message. Anything else is refused here, because it could not be removed again."""
        _refuse_if_none(message)
        self._messages.append(message)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)


def check_history(history: object) -> History | Sequence[object]:
    """The history that a caller hands in; `InputError` if it is not a list of messages."""
    if isinstance(history, (History, Sequence)) and not isinstance(history, (str, bytes)):
        return cast("History | Sequence[object]", history)
    raise InputError(f"a history is a list of messages, and this is a {type(history).__name__}")


def _refuse_if_none(said: object) -> None:
    if not isinstance(said, Message):
        raise InputError(
            f"a history takes a Message, not a {type(said).__name__}; sevenfold.core.messages.read_message "
            "makes one of a dict, and prepare takes a list of dicts as it is"
        )
    content: object = getattr(said, "content")  # noqa: B009 - what its type says is what is in doubt
    if not isinstance(content, (str, tuple)):
        found = type(content).__name__
        raise InputError(f"a message's content is text or a tuple of blocks, not a {found}")


# A snapshot copies dicts and lists and shares their strings, so one `==` recognizes an unchanged string by
# identity. Values that Python considers equal (1 and True) count as unchanged. The time goes to waiting for
# memory, not to arithmetic. So a chunk first touches its own copies in a row, which lets the processor
# prefetch them, and is small enough to stay in its cache until the comparison. Of the caller's side only SDK
# objects are kept alive: a dict or list that was dropped is gone.

CHUNK_SIZE = 64
"""Messages of a `SnapshotChunk`. Both sides of so many fit into the L2 cache of a processor."""

NO_FIELDS: dict[str, object] = {}
"""What most objects have beside the fields of their class: one for all, so that there is less to look at."""

IMMUTABLE_TYPES = (bool, int, float, Decimal, type(None), JsonObject, Message)
"""Types whose values cannot change in place, besides texts."""


class MessageSnapshot:
    """One message as it was seen."""

    __slots__ = ("copy", "fields", "seen")

    def __init__(self, message: object) -> None:
        self.fields: list[dict[str, object]] = []
        """The fields of each SDK object in it, alive. Beside them what they were, so that one comparison goes
        through all of them."""
        self.seen: list[dict[str, object]] = []
        self.copy = self._copy(message)

    def is_same(self, message: object) -> bool:
        return self.copy == message and self.fields == self.seen

    def _copy(self, value: object) -> object:
        if isinstance(value, str):
            return value
        if isinstance(value, dict):
            return {key: self._copy(item) for key, item in cast("dict[object, object]", value).items()}
        if isinstance(value, list):
            return [self._copy(item) for item in cast("list[object]", value)]
        if isinstance(value, tuple):
            return tuple([self._copy(item) for item in cast("tuple[object, ...]", value)])
        if isinstance(value, IMMUTABLE_TYPES):
            return value
        if _shows_fields(value):
            return self._copy_object(value)
        # What cannot be looked into equals nothing, and so is read again each time.
        return object()

    def _copy_object(self, value: object) -> object:
        """In the list it is known by identity; whether its fields were set since is looked at apart."""
        self._watch(vars(value))
        extra: dict[str, object] | None = getattr(value, "__pydantic_extra__", None)
        if extra is not None:
            # Where a field goes that its class does not declare, such as `cache_control`.
            self._watch(extra)
        return value

    def _watch(self, fields: dict[str, object]) -> None:
        self.fields.append(fields)
        self.seen.append({key: self._copy(item) for key, item in fields.items()} or NO_FIELDS)


def _shows_fields(value: object) -> bool:
    """Whether all that it says stands in fields that stay where they are.

    A model that checks what it is given puts new ones in their place.
    """
    config: object = getattr(type(value), "model_config", None)
    is_checking = isinstance(config, dict) and cast("dict[str, object]", config).get("validate_assignment")
    return hasattr(value, "__pydantic_fields_set__") and not is_checking


class SnapshotChunk:
    """At most `CHUNK_SIZE` consecutive messages."""

    __slots__ = ("_copies", "_fields", "_parts", "_seen", "messages")

    def __init__(self, messages: Sequence[MessageSnapshot] = ()) -> None:
        self.messages: list[MessageSnapshot] = []
        self._copies: list[object] = []
        self._fields: list[dict[str, object]] = []
        self._seen: list[dict[str, object]] = []
        self._parts: list[object] = []
        """All that our copies are made of, side by side."""
        for message in messages:
            self.append(message)

    def append(self, message: MessageSnapshot) -> None:
        self.messages.append(message)
        self._copies.append(message.copy)
        self._fields += message.fields
        self._seen += message.seen
        self._parts += (*_parts(message.copy), *_parts(message.seen))

    def is_same(self, messages: list[object]) -> bool:
        """Whether these are the messages, all of them, as they were."""
        # The list is not used: making it reads every part in a row, which prefetches them.
        self._parts.copy()
        return self._copies == messages and self._fields == self._seen


def _parts(value: object) -> Iterator[object]:
    """A copy and all that is in it, but for objects, whose fields are copied apart."""
    if isinstance(value, dict):
        yield cast("object", value)
        for item in cast("dict[object, object]", value).values():
            yield from _parts(item)
    elif isinstance(value, list | tuple):
        yield cast("object", value)
        for item in cast("Sequence[object]", value):
            yield from _parts(item)
    elif isinstance(value, str):
        yield value


MAX_CLOSE_COMPARISONS = 8
"""A caller has four breakpoints, so moving them changes at most this many messages."""


@dataclass(frozen=True, slots=True)
class CallerBreakpoint:
    """A breakpoint that the caller set."""

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
    """The list of one caller, as it was at the last call."""

    __slots__ = ("_chunks", "_marks", "_messages")

    def __init__(self) -> None:
        self._chunks: list[SnapshotChunk] = []
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
        same = self._compare(messages)
        return SharedCount(same.index(False) if False in same else len(same), sum(same))

    def is_edited(self, messages: Sequence[object], end: int) -> bool:
        """Whether this is the same conversation up to that message, unchanged or with some messages changed.

        One that only begins alike differs in most of what either side says after that.
        """
        same = self._compare(messages)[:end]
        if False not in same:
            return True
        rest = range(same.index(False), len(same))
        return all(
            2 * sum(same[at] for at in said) > len(said)
            for is_answer in (True, False)
            if (said := [at for at in rest if (self._messages[at].role == "assistant") == is_answer])
        )

    def _compare(self, messages: Sequence[object]) -> list[bool]:
        """For each message that was seen, and that the list is long enough for, whether it stands there."""
        copied = (message.copy for chunk in self._chunks for message in chunk.messages)
        same = [copy == message for copy, message in zip(copied, messages, strict=False)]
        differing = [index for index, is_same in enumerate(same) if not is_same]
        # A message whose breakpoint moved still means the same, but finding that out means reading it.
        for index in differing[:MAX_CLOSE_COMPARISONS]:
            same[index] = self._means(index, messages)
        return same

    def _means(self, index: int, messages: Sequence[object]) -> bool:
        if self._chunks[index // CHUNK_SIZE].messages[index % CHUNK_SIZE].copy == messages[index]:
            return True
        return is_same_message(_read(messages[index], index), self._messages[index])

    def _take(self, wire: object, message: Message, index: int) -> None:
        marks = tuple(_marks(message, index))
        if marks:
            self._marks[index] = marks
        self._messages.append(without_breakpoints(message))
        if index % CHUNK_SIZE == 0:
            self._chunks.append(SnapshotChunk())
        self._chunks[-1].append(MessageSnapshot(wire))

    def forget(self, kept: int) -> None:
        """Forget this message and all after it."""
        if kept >= len(self):
            return
        whole, rest = divmod(kept, CHUNK_SIZE)
        left = self._chunks[whole].messages[:rest]
        self._chunks[whole:] = [SnapshotChunk(left)] if left else []
        del self._messages[kept:]
        self._marks = {index: marks for index, marks in self._marks.items() if index < kept}

    def _count_kept(self, messages: Sequence[object]) -> int:
        """How many messages still mean the same. A breakpoint that moved is updated on the way."""
        for number, chunk in enumerate(self._chunks):
            start = number * CHUNK_SIZE
            # A tuple equals no list, whatever is in it.
            part = list(messages[start : start + len(chunk.messages)])
            if not chunk.is_same(part):
                same = self._count_same(part, start, chunk)
                if same < len(chunk.messages):
                    return start + same
        return len(self)

    def _count_same(self, part: list[object], start: int, chunk: SnapshotChunk) -> int:
        messages, moved = chunk.messages.copy(), dict[int, tuple[CallerBreakpoint, ...]]()
        same = 0
        for place, (copied, wire) in enumerate(zip(messages, part, strict=False)):
            index = start + place
            if not copied.is_same(wire):
                now = _read(wire, index)
                if not is_same_message(now, self._messages[index]):
                    break
                # The old value stays: whoever holds it recognises it by identity.
                moved[index] = tuple(_marks(now, index))
                messages[place] = MessageSnapshot(wire)
            same += 1
        # All at once: a message that cannot be read leaves everything as it was.
        self._chunks[start // CHUNK_SIZE] = SnapshotChunk(messages)
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
        marker = find_breakpoint(block)
        if marker is not None:
            yield CallerBreakpoint(index, place, ONE_HOUR if marker.get("ttl") == "1h" else FIVE_MINUTES)
