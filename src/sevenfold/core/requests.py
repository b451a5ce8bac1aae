"""What is sent to a model and what comes back, as values that are the same for every provider.

A request holds frozen messages; a provider writes them in its own dialect. Messages of an earlier request
are the same objects in the next one, so that a provider need not write them again. `Capabilities` says what
a model accepts through a provider. The view holds the messages as they are sent: it grows with the history,
and only a cut rewrites it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, cast, overload

from sevenfold.core.canonical import Digest, canonical_bytes, digest, strip_cache_control
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.core.messages import (
    Message,
    Text,
    ToolResult,
    ToolUse,
    ToolUseId,
    without_message_compaction,
    without_message_thinking,
)
from sevenfold.core.models import Model
from sevenfold.core.usage import Usage

if TYPE_CHECKING:
    from sevenfold.core.tokens import TextOrigin

Dialect: TypeAlias = Literal["anthropic", "openai"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestParams:
    """All of a request but its messages: what a caller chose, and what stands before the conversation."""

    model: str
    max_tokens: int
    system: str | tuple[JsonObject, ...] = ()
    """Text, or text blocks, as the Messages API takes them."""
    tools: tuple[JsonObject, ...] = ()
    params: JsonObject = EMPTY_OBJECT
    """Every other field of the body (thinking, tool_choice, output_config, …), passed on as it came."""
    betas: tuple[str, ...] = ()


def is_same_opening(one: RequestParams, other: RequestParams) -> bool:
    """Whether two requests have the same model, system prompt and tools: breakpoints do not count, nor does
    whether a lone text is written as a block."""
    return one.model == other.model and _opening(one) == _opening(other)


def _opening(frame: RequestParams) -> Json:
    system = frame.system
    blocks = (JsonObject({"type": "text", "text": system}),) if isinstance(system, str) and system else system
    return (strip_cache_control(blocks or ()), strip_cache_control(frame.tools))


def compute_thinking_binding(frame: RequestParams) -> Digest:
    """What thinking is bound to besides the messages. Breakpoints and the order of tools do not count."""
    system = (frame.system,) if isinstance(frame.system, str) else [part.get("text") for part in frame.system]
    tools = {str(tool.get("name") or tool.get("type")): strip_cache_control(tool) for tool in frame.tools}
    texts = [text.strip() for text in system if isinstance(text, str) and text.strip()]
    return digest(canonical_bytes({"model": frame.model, "system": texts, "tools": tools}))


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A place whose prefix the provider is asked to cache."""

    level: Literal["tools", "system", "messages"]
    index: int
    """Which tool, part of the system prompt, or message."""
    block: int = 0
    """Which block of that message."""
    ttl: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    frame: RequestParams
    messages: Sequence[Message]
    """As sent, without breakpoints. Never changed after the request was made."""
    breakpoints: tuple[Breakpoint, ...] = ()
    purpose: str = "main"
    """Whose call it is, for the bill: `main`, or the kind of fork."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """A model's whole answer."""

    message: Message
    usage: Usage
    usage_wire: JsonObject
    """As the provider said it, for the transcript."""
    stop_reason: str | None = None
    id: str = ""
    model: str = ""
    extra: JsonObject = field(default=EMPTY_OBJECT)
    """What else the answer said: `diagnostics`, `context_management`, `input_transformations`."""
    dialect: Dialect = "anthropic"

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.message.blocks if isinstance(block, ToolUse))

    @property
    def text(self) -> str:
        """All text of the answer, joined."""
        return "".join(block.text for block in self.message.blocks if isinstance(block, Text))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRequest:
    """The last request that was answered."""

    tokens: int = 0
    messages: int = 0
    """So many messages at the start of the view were in it, and have not changed since."""
    started: datetime | None = None
    """An entry of the provider's cache lives from then."""
    ended: datetime | None = None
    """When the answer came: after a time-to-live, what it left in the cache is gone."""
    binding: str = ""
    """A digest of its model, system prompt and tools. An older version wrote none."""


MAX_CACHED_PARAMS = 16
"""Models, system prompts and tools in use side by side; a caller may send another prompt each time."""


@dataclass(slots=True)
class CachedRequests:
    """When the last request started with each model, system prompt and tools: each has a cache of its own."""

    started: dict[str, datetime] = field(default_factory=dict[str, datetime])
    """By the digest of these, the latest at the end."""

    def add(self, binding: str, started: datetime | None) -> None:
        self.started.pop(binding, None)
        if started is not None:
            self.started[binding] = started
        for old in list(self.started)[:-MAX_CACHED_PARAMS]:
            del self.started[old]


# What a layer may do to a request. Appending is always possible; everything else only where it is safe.
MAX_BREAKPOINTS = 4
"""Of the Messages API, the automatic one included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    rewrites_history: bool
    """Old turns may be rewritten on our side. Not where thinking is signed over everything before it."""
    has_server_edits: bool = False
    """`context_management` clears old results on the provider's side."""
    compacts_on_demand: bool = False
    """A request can ask for a compaction block that stands for everything before it."""
    takes_system_role: bool = False
    """Reminders go as `role: "system"` messages; elsewhere as text of the user's side."""
    breakpoints: int = 0
    """How many breakpoints a prompt may have; 0: the provider caches by itself or not at all."""


def choose_capabilities(model: Model, dialect: Dialect) -> Capabilities:
    """What this model takes through this kind of provider."""
    if dialect == "openai":
        return Capabilities(rewrites_history=True)
    return Capabilities(
        rewrites_history=not model.has_preserved_thinking,
        has_server_edits=True,
        compacts_on_demand=model.is_known and model.has_preserved_thinking,
        takes_system_role=model.takes_system_role,
        breakpoints=MAX_BREAKPOINTS,
    )


# The view, and `ListPrefix`, the first items of a list that only grows.

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

    def shares_list_with(self, other: Sequence[object]) -> bool:
        """Whether both are beginnings of one list, so that the longer begins with the shorter."""
        return isinstance(other, ListPrefix) and self._items is other._items


ENGINE_ENTRY = -1
"""The entry of a message that the engine itself put into the view."""


@dataclass(frozen=True, slots=True)
class ViewMessage:
    """One message of the view."""

    message: Message
    weight: float
    """Tokens before calibration."""
    entry: int = ENGINE_ENTRY
    """Which message of the history it shows."""
    origin: TextOrigin = "human"


WHOLE_PROMPT = -1
"""The `first` of a cut that changes what stands before the messages too."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A change to what was sent before, announced."""

    layer: int
    """Which of the seven made it; 0: the caller."""
    reason: str
    first: int
    """The first message of the view that differs."""
    detail: JsonObject = EMPTY_OBJECT


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRequest:
    """What to send now, and how full the window is with it."""

    request: ModelRequest
    tokens: int
    """Billed where the provider has said so, estimated since."""
    level: Literal["fine", "warning", "blocked"]
    percent_left: float
    cuts: tuple[Cut, ...] = ()
    """What was rewritten since the last view."""


@dataclass(slots=True, kw_only=True)
class ViewMessages:
    """The messages of the view, and where in it each tool result stands."""

    items: list[ViewMessage] = field(default_factory=list[ViewMessage])
    _messages: list[Message] = field(default_factory=list[Message])
    """The items' own, side by side."""
    _is_shared: bool = False
    """Somebody has a beginning of that list: what stands in it may not be changed any more."""
    _places: dict[ToolUseId, int] = field(default_factory=dict[ToolUseId, int])
    _by_entry: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[ViewMessage]:
        return iter(self.items)

    def messages(self) -> ListPrefix[Message]:
        self._is_shared = True
        return ListPrefix(self._messages)

    def place(self, use: ToolUseId) -> int | None:
        """The message that holds this tool's result."""
        return self._places.get(use)

    def places_of(self, entry: int) -> Sequence[int]:
        """The messages that show this one of the history; none where a cut left it out."""
        return self._by_entry.get(entry, ())

    def result(self, use: ToolUseId) -> ToolResult | None:
        """This tool's result as the view has it."""
        place = self._places.get(use)
        blocks = self.items[place].message.blocks if place is not None else ()
        found = (block for block in blocks if isinstance(block, ToolResult) and block.tool_use_id == use)
        return next(found, None)

    def append(self, item: ViewMessage) -> None:
        self._note(len(self.items), item.message)
        if item.entry != ENGINE_ENTRY:
            self._by_entry.setdefault(item.entry, []).append(len(self.items))
        self.items.append(item)
        self._messages.append(item.message)

    def swap(self, index: int, message: Message, weight: float) -> None:
        """Another wording of the same message."""
        self.items[index] = replace(self.items[index], message=message, weight=weight)
        if self._is_shared:
            self._messages, self._is_shared = list(self._messages), False
        self._messages[index] = message

    def start_over(self, items: Iterable[ViewMessage]) -> None:
        self.items, self._messages, self._is_shared = [], [], False
        self._places, self._by_entry = {}, {}
        for item in items:
            self.append(item)

    def _note(self, index: int, message: Message) -> None:
        if message.role != "user" or isinstance(message.content, str):
            return
        for block in message.content:
            if isinstance(block, ToolResult):
                self._places[block.tool_use_id] = index


def with_result_texts(message: Message, texts: dict[ToolUseId, str]) -> Message:
    """The message with these texts in place of the results of these tools; itself where none is in it."""
    if isinstance(message.content, str):
        return message
    blocks = tuple(
        replace(block, content=texts[block.tool_use_id])
        if isinstance(block, ToolResult) and block.tool_use_id in texts
        else block
        for block in message.content
    )
    is_same = all(one is other for one, other in zip(blocks, message.content, strict=True))
    return message if is_same else replace(message, content=blocks)


def adapt_messages(
    items: Iterable[ViewMessage], capabilities: Capabilities, *, drops_thinking: bool
) -> list[ViewMessage]:
    """The same items as this model takes them."""
    return [_adapt(item, capabilities, drops_thinking=drops_thinking) for item in items]


def _adapt(item: ViewMessage, capabilities: Capabilities, *, drops_thinking: bool) -> ViewMessage:
    message = without_message_thinking(item.message) if drops_thinking else item.message
    if item.entry == ENGINE_ENTRY and not capabilities.compacts_on_demand:
        message = without_message_compaction(message)
    return item if message is item.message else replace(item, message=message)


def find_first_change(before: Sequence[Message], after: Sequence[Message]) -> int | None:
    """The first place where two views differ; None where the second only goes on."""
    for index, message in enumerate(before):
        if index >= len(after) or after[index] is not message:
            return index
    return None
