"""Bodies as they come in: each repeats the whole conversation, and what came before is known by its bytes.

The same bytes give the same object. Whoever works something out for a message can keep it under that object,
and a request costs what is new in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from sevenfold.core.json import MAX_NESTING, Json, JsonObject, nesting_depth, read_json

MAX_KEPT_BODY_BYTES = 64 * 2**20
"""Twice the largest request. Beyond it everything is forgotten, and met again as if it were new."""
MAX_FOLLOWERS = 4
"""Ways in which a message was gone on from: that many conversations may branch from one point."""
SCAN_WINDOW_BYTES = 8 * 2**10
"""What is looked at first for the end of a value; most are shorter."""

_BLANK = b" \t\n\r"
_SEPARATORS = {b",{": 1, b", ": 2}
_FRAME = 2
"""Levels of the body around one message."""
_DECODER = json.JSONDecoder()


@dataclass(slots=True)
class _Value:
    """Something that was read, and the bytes it was read from."""

    raw: bytes
    json: Json
    followers: list[_Value] = field(default_factory=list["_Value"])
    """What came next, the latest first."""


class BodyReader:
    """Reads request bodies. Not for sharing between threads: whoever serves requests has one loop."""

    __slots__ = ("_heads", "_messages", "_size", "generation")

    def __init__(self) -> None:
        self.generation = 0
        """Counts how often everything was forgotten: objects of another generation may not come again."""
        self._start()

    def _start(self) -> None:
        self._size = 0
        self._messages: dict[bytes, _Value] = {}
        self._heads: dict[str, _Value] = {}

    def read(self, data: bytes) -> Json:
        """The body as `read_json` gives it; messages that came before are the same objects as then."""
        if self._size > MAX_KEPT_BODY_BYTES:
            self._start()
            self.generation += 1
        try:
            return _Reading(self, data).read()
        except (_Unread, UnicodeDecodeError, RecursionError):
            # Anything out of the ordinary is left to the reader that has a word for it.
            return read_json(data)

    def head(self, key: str) -> _Value:
        """A field of the body, whose followers are the values it had."""
        return self._heads.setdefault(key, _Value(b"", None))

    def message(self, raw: bytes) -> _Value:
        """A message by its bytes."""
        known = self._messages.get(raw)
        if known is None:
            known = self._messages[raw] = self._read(raw)
        return known

    def value(self, raw: bytes) -> _Value:
        """Another value; only messages come again in other places."""
        return self._read(raw)

    def _read(self, raw: bytes) -> _Value:
        self._size += len(raw)
        value = read_json(raw)
        if nesting_depth(value) > MAX_NESTING - _FRAME:
            raise _Unread
        return _Value(raw, value)


class _Unread(Exception):
    """This reader does not go on."""


class _Reading:
    """One body, from its first byte to its last."""

    __slots__ = ("_at", "_bodies", "_data")

    def __init__(self, bodies: BodyReader, data: bytes) -> None:
        self._bodies, self._data, self._at = bodies, data, 0

    def read(self) -> JsonObject:
        fields: dict[str, Json] = {}
        self._expect(b"{")
        while True:
            key = self._scan(self._bodies.head("").followers, is_message=False)
            if not isinstance(key.json, str):
                raise _Unread
            self._expect(b":")
            if key.json == "messages" and self._peek() == b"[":
                fields["messages"] = self._read_messages()
            else:
                followers = self._bodies.head(key.json).followers
                fields[key.json] = self._scan(followers, is_message=False).json
            if self._separator(b"}"):
                break
        if self._peek():
            raise _Unread
        return JsonObject(fields)

    def _read_messages(self) -> tuple[Json, ...]:
        self._expect(b"[")
        found: list[Json] = []
        data, last = self._data, self._bodies.head("messages")
        while True:
            # Nearly all of them came before, at this very place: the short way.
            next_, at = last.followers[0] if last.followers else None, self._at
            if next_ is not None and data.startswith(next_.raw, at):
                end = at + len(next_.raw)
                # With or without a space, as JSON is usually written.
                width = _SEPARATORS.get(data[end : end + 2])
                if width is not None and data[end + width : end + width + 1] == b"{":
                    found.append(next_.json)
                    last, self._at = next_, end + width
                    continue
            last = self._scan(last.followers, is_message=True)
            found.append(last.json)
            if self._separator(b"]"):
                return tuple(found)

    def _scan(self, followers: list[_Value], *, is_message: bool) -> _Value:
        """The value that begins here: one of those that stood here before, or a new one."""
        first = self._peek()
        data, start = self._data, self._at
        # Text, lists and objects end with themselves; of a number there might be more.
        if first in (b"{", b"[", b'"'):
            for at, known in enumerate(followers):
                if data.startswith(known.raw, start):
                    self._at = start + len(known.raw)
                    if at:
                        followers.insert(0, followers.pop(at))
                    return known
        raw = self._measure(start)
        self._at = start + len(raw)
        value = self._bodies.message(raw) if is_message else self._bodies.value(raw)
        if first in (b"{", b"[", b'"'):
            followers.insert(0, value)
            del followers[MAX_FOLLOWERS:]
        return value

    def _measure(self, start: int) -> bytes:
        """The bytes of the value that begins here."""
        width = SCAN_WINDOW_BYTES
        while True:
            window = self._data[start : start + width]
            is_all = start + width >= len(self._data)
            try:
                # A window may end in the middle of a character; what stands in the value is checked below.
                text = window.decode("utf-8", "strict" if is_all else "ignore")
                _, end = _DECODER.raw_decode(text)
            except ValueError as error:
                if is_all:
                    raise _Unread from error
            else:
                raw = text[:end].encode("utf-8", "surrogatepass")
                # A number at the end of a window may go on behind it.
                if (is_all or end < len(text)) and self._data.startswith(raw, start):
                    return raw
                if is_all:
                    raise _Unread
            width *= 8

    def _peek(self) -> bytes:
        """The next byte that is not blank; empty at the end."""
        data, at = self._data, self._at
        while (byte := data[at : at + 1]) and byte in _BLANK:
            at += 1
        self._at = at
        return byte

    def _expect(self, byte: bytes) -> None:
        if self._peek() != byte:
            raise _Unread
        self._at += 1

    def _separator(self, end: bytes) -> bool:
        """Whether the list or object ends here; if not, another value follows."""
        found = self._peek()
        self._at += 1
        if found == end:
            return True
        if found != b",":
            raise _Unread
        return False
