"""Request bodies, and what was computed about messages that every request of a conversation repeats.

`BodyReader` parses bodies: the same bytes give the same object. `MessageCache` keeps results under that
object, never under its content, so a lookup costs nothing however long the message is.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from sevenfold.core.cache.prompt_blocks import (
    EFFORT_KIND,
    PromptBlock,
    list_blocks,
    list_message_blocks,
    list_tools_and_system,
)
from sevenfold.core.canonical import Digest
from sevenfold.core.errors import WireError
from sevenfold.core.json import MAX_NESTING, Json, JsonObject, nesting_depth, read_json
from sevenfold.core.messages import Message

# Bodies: each one repeats the whole conversation. Known messages are recognized by their bytes, so a request
# costs only what is new in it.

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


MAX_CACHED_MESSAGES = 100_000
"""Messages to know; beyond that all are forgotten. A long conversation has thousands."""
MAX_CACHED_FRAMES = 256
"""Tools and system prompts to know: an agent has a few, each of them large."""


@dataclass(slots=True, kw_only=True)
class CachedMessage:
    """One message at its place in a request."""

    message: JsonObject
    """Held, so that its id stays its own."""
    blocks: tuple[PromptBlock, ...]
    spoken: tuple[PromptBlock, ...]
    """Without a change of effort, which is no block of the API's."""
    keys: tuple[int, ...] | None = None
    """What its blocks are known again by (see `state/request_records`)."""
    value: Message | None = None
    """As a `Brain` gets it."""
    in_order: set[Hashable] = field(default_factory=set[Hashable])
    """The circumstances under which its shape was found to be in order."""
    tools: MessageTools | None = None
    """Which tools it asks for or answers (see `checks/validate`)."""


@dataclass(frozen=True, slots=True)
class MessageTools:
    """What a message has to do with tools."""

    asked: tuple[str, ...]
    answered: tuple[str, ...]
    is_late: bool
    """A result stands behind something else."""


@dataclass(frozen=True, slots=True)
class _Frame:
    tools: Json
    """Held, as is the system prompt, so that their ids stay their own."""
    system: Json
    blocks: tuple[PromptBlock, ...]


@dataclass(frozen=True, slots=True)
class ChainLink:
    """What a block made of a chain of hashes."""

    wire: JsonObject
    """Held, so that its id stays its own."""
    digest: Digest


class MessageCache:
    """Belongs to the loop that serves."""

    __slots__ = ("_bodies", "_frames", "_generation", "_known", "_links")

    def __init__(self) -> None:
        self._bodies = BodyReader()
        self._forget()

    def _forget(self) -> None:
        self._generation = self._bodies.generation
        self._known: dict[tuple[int, int], CachedMessage] = {}
        self._links: dict[tuple[Digest, str, int], ChainLink] = {}
        self._frames: dict[tuple[int, int], _Frame] = {}

    def read(self, data: bytes) -> Json:
        """A request's body."""
        value = self._bodies.read(data)
        is_full = (
            max(len(self._known), len(self._links)) > MAX_CACHED_MESSAGES
            or len(self._frames) > MAX_CACHED_FRAMES
        )
        if is_full or self._generation != self._bodies.generation:
            self._forget()
        return value

    def frame(self, body: JsonObject) -> tuple[PromptBlock, ...]:
        """The blocks of a request's tools and system prompt."""
        tools, system = body.get("tools"), body.get("system")
        known = self._frames.get((id(tools), id(system)))
        if known is None:
            known = _Frame(tools, system, list_tools_and_system(body))
            self._frames[id(tools), id(system)] = known
        return known.blocks

    def about(self, turn: int, message: JsonObject) -> CachedMessage:
        """What is known of the `turn`-th message of a request."""
        known = self._known.get((id(message), turn))
        if known is None:
            blocks = tuple(list_message_blocks(turn, message))
            spoken = tuple(block for block in blocks if block.kind != EFFORT_KIND)
            known = CachedMessage(
                message=message, blocks=blocks, spoken=blocks if len(spoken) == len(blocks) else spoken
            )
            self._known[id(message), turn] = known
        return known

    def is_in_order(self, turn: int, message: JsonObject, circumstances: Hashable) -> bool:
        """Whether it was checked before, and passed."""
        known = self._known.get((id(message), turn))
        return known is not None and circumstances in known.in_order

    def link(self, before: Digest, block: PromptBlock) -> Digest | None:
        """Where a chain of hashes got to with this block, the last time that it came here."""
        link = self._links.get((before, block.role, id(block.wire)))
        return None if link is None else link.digest

    def add_link(self, before: Digest, block: PromptBlock, after: Digest) -> None:
        self._links[before, block.role, id(block.wire)] = ChainLink(block.wire, after)


class BlockListing:
    """The blocks of one request, listed when somebody asks: by then its shape has been checked."""

    __slots__ = ("_blocks", "_body", "_messages", "_spoken", "knowledge")

    def __init__(self, body: JsonObject, knowledge: MessageCache) -> None:
        self._body, self.knowledge = body, knowledge
        self._messages: tuple[CachedMessage, ...] | None = None
        self._blocks: tuple[PromptBlock, ...] | None = None
        self._spoken: tuple[PromptBlock, ...] | None = None

    @property
    def messages(self) -> tuple[CachedMessage, ...]:
        if self._messages is None:
            self._messages = tuple(self._known())
        return self._messages

    @property
    def blocks(self) -> tuple[PromptBlock, ...]:
        """Every block of the body, as `list_blocks` has them."""
        if self._blocks is None:
            inside = chain.from_iterable(known.blocks for known in self.messages)
            self._blocks = (*self.knowledge.frame(self._body), *inside)
        return self._blocks

    @property
    def spoken(self) -> tuple[PromptBlock, ...]:
        """Every block of the messages, in order; text alone is one text block."""
        if self._spoken is None:
            self._spoken = tuple(chain.from_iterable(known.spoken for known in self.messages))
        return self._spoken

    def _known(self) -> Iterator[CachedMessage]:
        messages = self._body.get("messages")
        if not isinstance(messages, tuple):
            # What is wrong with it is said by who lists any body.
            list_blocks(self._body)
            return
        for turn, message in enumerate(messages):
            if not isinstance(message, JsonObject):
                raise WireError(f"messages.{turn}: expected an object, not {type(message).__name__}")
            yield self.knowledge.about(turn, message)
