"""A few dozen of a caller's messages as they were seen, so kept that looking again is quick.

What was seen is a copy of its dicts and lists that shares their texts: in one `==` every unchanged text is
recognised by identity. Numbers that Python takes to be equal (1 and True) are no change to it.

What a comparison takes is not arithmetic but waiting for memory, since each thing looked at names the next,
and in a long conversation none of them is near any more. So our own side is touched in a row first, which
lets the processor fetch many at a time, and few enough at once that they are still near when they are
compared. Of the caller's side only objects of an SDK are held: a dict or list that was dropped is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import cast

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message

CHUNK_SIZE = 64
"""Messages of a facet. Both sides of so many fit into a processor's second cache."""

NO_FIELDS: dict[str, object] = {}
"""What most objects have beside the fields of their class: one for all, so that there is less to look at."""

IMMUTABLE_TYPES = (bool, int, float, Decimal, type(None), JsonObject, Message)
"""What cannot change in place, beside texts."""


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
            # Where a field goes that its class does not declare, such as a cache marker.
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
    """Messages in a row, at most `SIZE` of them."""

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
        # Nobody wants this list: making it reads every part, one right after the other.
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
