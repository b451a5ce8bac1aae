"""What was worked out about messages that come again with every request of a conversation.

Everything is kept under the object that `Bodies` gives for the same bytes, never under what it says: looking
it up costs nothing, however long the message is.
"""

from __future__ import annotations

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
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Message
from sevenfold.simulator.wire.body_reader import BodyReader

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
    """What its blocks are known again by (see `records`)."""
    value: Message | None = None
    """As a brain gets it."""
    in_order: set[Hashable] = field(default_factory=set[Hashable])
    """The circumstances under which its shape was found to be in order."""
    tools: MessageTools | None = None
    """Which tools it asks for or answers (see `validate_messages`)."""


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
