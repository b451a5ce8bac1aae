"""What every provider offers, the deltas that it reports while it streams, and what providers share.

Shared are bodies made from bytes that were written before (`join_object`), what was made of each item of a
list (`ListMemo`), and tool input as a model wrote it (`read_tool_input`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from sevenfold.core.errors import WireError
from sevenfold.core.json import EMPTY_OBJECT, JsonObject, read_json, write_json
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.models import Model
from sevenfold.core.requests import Capabilities, Dialect, ModelRequest, ModelResponse


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More of the thinking, where the provider shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolDelta:
    """A tool request begins (`json` is empty), or more of its input came: JSON text, whole at the end."""

    id: ToolUseId
    name: str
    json: str = ""


Delta: TypeAlias = TextDelta | ThinkingDelta | ToolDelta
OnDelta: TypeAlias = Callable[[Delta], None]
"""Who watches an answer being written. Called on the loop that awaits it."""


UNREADABLE_USAGE = "unreadable_usage"
"""In a reply's `extra`: why its usage, which then counts as none, could not be read."""

MAX_UNSTREAMED_TOKENS = 21_333
"""Max tokens above which an answer may take more than ten minutes, after which the SDKs give up waiting.
Anthropic's refuses such a request unless it is streamed."""


def ignore_delta(delta: Delta) -> None:
    """For a stream that nobody watches."""


class Provider(Protocol):
    """Sends a request and returns the whole answer. Every failure is a `ProviderError`, whoever raised it."""

    @property
    def dialect(self) -> Dialect: ...

    def capabilities(self, model: Model) -> Capabilities:
        """By which means a layer may act on this model through this provider."""
        ...

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        """Ask the model. Retries of a passing failure are the provider's own; what is raised is final."""
        ...

    async def close(self) -> None:
        """Let go of connections that this provider opened itself. Again does nothing."""
        ...


class ProviderWrapper:
    """A provider around another one. What a subclass does not say itself is the inner one's."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    @property
    def dialect(self) -> Dialect:
        return self._inner.dialect

    def capabilities(self, model: Model) -> Capabilities:
        return self._inner.capabilities(model)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        return await self._inner.send(request, on_delta)

    async def close(self) -> None:
        await self._inner.close()


# A long history is megabytes, so a body is put together in one copy.


def join_object(fields: Mapping[str, bytes | Sequence[bytes]]) -> bytes:
    """A JSON object from the bytes of its values; a list of them is an array."""
    chunks: list[bytes] = []
    for key, value in fields.items():
        chunks += (b"," if chunks else b"{", write_json(key), b":")
        if isinstance(value, bytes):
            chunks.append(value)
            continue
        chunks.append(b"[")
        for at, item in enumerate(value):
            if at:
                chunks.append(b",")
            chunks.append(item)
        chunks.append(b"]")
    return b"".join((*chunks, b"}")) if chunks else b"{}"


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
        known = self._items
        if len(items) < len(known) // 2:
            # A fork is a little longer or shorter than its parent; a cut this deep is one for good.
            del known[len(items) :], self._made[len(items) :]
        # Made first, then held: an item that cannot be written must not stand for what was made of another.
        for at, (item, old) in enumerate(zip(items, known, strict=False)):
            if item is not old:
                self._made[at] = self.make(item)
                known[at] = item
        for item in items[len(known) :]:
            self._made.append(self.make(item))
            known.append(item)
        return self._made[: len(items)]


# A weak model, or one that was cut off, may write input that is no JSON.

INVALID_INPUT_KEY = "__invalid_json__"
"""The one key of an input that could not be read; its value is the text as it came."""


def read_tool_input(text: str) -> JsonObject:
    """The input of a tool request. Text that is no JSON object is kept under `INVALID_INPUT_KEY`, so that the
    request can be answered, stored and sent again like any other."""
    if not text.strip():
        return EMPTY_OBJECT
    try:
        value = read_json(text)
    except WireError:
        return JsonObject({INVALID_INPUT_KEY: text})
    return value if isinstance(value, JsonObject) else JsonObject({INVALID_INPUT_KEY: text})


def find_invalid_text(call: ToolUse) -> str | None:
    """What the model wrote in place of an input that can be read; None when all is well.

    A loop answers such a request with an error and does not run the tool.
    """
    text = call.input.get(INVALID_INPUT_KEY) if len(call.input) == 1 else None
    return text if isinstance(text, str) else None
