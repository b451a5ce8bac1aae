"""A few dozen of a caller's messages as they were seen, so kept that looking again is quick.

What was seen is a copy of its dicts and lists that shares their texts: in one `==` every unchanged text is
recognised by identity. What that takes is not arithmetic but waiting for memory, since each thing looked at
names the next, and in a long conversation none of them is near any more. So everything is touched in a row
first, which lets the processor fetch many at a time, and few enough at once that they are still near when
they are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

SIZE = 64
"""Messages of a facet. Both sides of so many fit into a processor's second cache."""

NO_FIELDS: dict[str, object] = {}
"""What most objects have beside the fields of their class: one for all, so that there is less to look at."""


class Copied:
    """One message as it was seen."""

    __slots__ = ("copy", "fields", "seen", "touched")

    def __init__(self, message: object) -> None:
        self.fields: list[dict[str, object]] = []
        """The fields of each SDK object in it, alive. Beside them what they were, so that one comparison goes
        through all of them."""
        self.seen: list[dict[str, object]] = []
        self.touched: list[object] = []
        """All that a comparison looks at, on both sides."""
        self.copy = self._copy(message)

    def is_same(self, message: object) -> bool:
        return self.copy == message and self.fields == self.seen

    def _copy(self, value: object) -> object:
        if isinstance(value, str):
            self.touched.append(value)
            return value
        if isinstance(value, dict):
            copy = {key: self._copy(item) for key, item in cast("dict[object, object]", value).items()}
        elif isinstance(value, list):
            copy = [self._copy(item) for item in cast("list[object]", value)]
        elif isinstance(value, tuple):
            copy = tuple([self._copy(item) for item in cast("tuple[object, ...]", value)])
        elif hasattr(value, "model_dump"):
            return self._copy_object(value)
        else:
            return value
        self.touched += (cast("object", value), copy)
        return copy

    def _copy_object(self, value: object) -> object:
        if not hasattr(value, "__dict__"):
            # What cannot be looked into is read again each time.
            return object()
        # In the list it is known by identity; whether its fields were set since is looked at apart.
        self._watch(vars(value))
        extra: dict[str, object] | None = getattr(value, "__pydantic_extra__", None)
        if extra is not None:
            # Where a field goes that its class does not declare, such as a cache marker.
            self._watch(extra)
        return value

    def _watch(self, fields: dict[str, object]) -> None:
        copy = {key: self._copy(item) for key, item in fields.items()} or NO_FIELDS
        self.fields.append(fields)
        self.seen.append(copy)
        self.touched += (fields, copy)


class Facet:
    """Messages in a row, at most `SIZE` of them."""

    __slots__ = ("_copies", "_fields", "_seen", "_touched", "messages")

    def __init__(self, messages: Sequence[Copied] = ()) -> None:
        self.messages: list[Copied] = []
        self._copies: list[object] = []
        self._fields: list[dict[str, object]] = []
        self._seen: list[dict[str, object]] = []
        self._touched: list[object] = []
        for message in messages:
            self.append(message)

    def append(self, message: Copied) -> None:
        self.messages.append(message)
        self._copies.append(message.copy)
        self._fields += message.fields
        self._seen += message.seen
        self._touched += message.touched

    def is_same(self, messages: list[object]) -> bool:
        """Whether these are the messages, all of them, as they were."""
        self._touched.copy()
        return self._copies == messages and self._fields == self._seen
