"""A request that a client of OpenAI's APIs wrote, as values of ours.

Each message keeps the items that it was read from, so that what no layer changed is sent as the client wrote
it (`client_body`). Messages that were read before are the same objects again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject
from sevenfold.core.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
    change_blocks,
)
from sevenfold.core.requests import RequestParams
from sevenfold.providers.openai.chat_wire import REASONING_KEY, read_said_blocks
from sevenfold.providers.openai.responses_wire import read_item_texts
from sevenfold.providers.provider import read_tool_input

OpenAIApi: TypeAlias = Literal["chat", "responses"]

UNSAID_MAX_TOKENS = 16_384
"""What an answer is taken to need where a request sets no limit: a long one, and little of a window."""
MAX_REMEMBERED_REQUESTS = 32
"""Whose messages are known again; one that is forgotten is read anew."""

LIST_FIELDS: Mapping[OpenAIApi, str] = {"chat": "messages", "responses": "input"}
LIMIT_FIELDS: Mapping[OpenAIApi, tuple[str, ...]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "responses": ("max_output_tokens",),
}
_FRAME_FIELDS = frozenset(
    {"model", "messages", "input", "instructions", "tools", "stream", "stream_options"}
    | {name for names in LIMIT_FIELDS.values() for name in names}
)
_ROLES: Mapping[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
REASONING_BLOCK = "chat_reasoning"
"""The type of a block that holds a field of a chat message."""
_KEPT_ELSEWHERE = ("previous_response_id", "conversation", "prompt")
"""Fields that name a part of the conversation which the provider keeps."""


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One element of the client's list, and the blocks that it was read as."""

    wire: JsonObject
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A message, and what it was read from."""

    message: Message
    items: tuple[SourceItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    api: OpenAIApi
    body: JsonObject
    opening: tuple[JsonObject, ...]
    """System messages of a chat that stand before everything else."""
    sources: tuple[SourceMessage, ...]
    frame: RequestParams

    @property
    def messages(self) -> list[Message]:
        return [source.message for source in self.sources]

    @property
    def streams(self) -> bool:
        return self.body.get("stream") is True


def explain_untouched(api: OpenAIApi, body: JsonObject) -> str:
    """Why a request cannot be read as a whole conversation; empty where it can."""
    items = body.get(LIST_FIELDS[api])
    if not items or not isinstance(items, (str, tuple)) or (api == "chat" and isinstance(items, str)):
        return f"it has no {LIST_FIELDS[api]}"
    if any(body.get(name) is not None for name in _KEPT_ELSEWHERE) and api == "responses":
        return "a part of its conversation is kept by the provider"
    if body.get("background") is True:
        return "it runs in the background"
    if body.get("context_management") is not None:
        return "it asks for a compaction of its own"
    listed = items if isinstance(items, tuple) else ()
    if any(not isinstance(item, JsonObject) for item in listed):
        return f"something in its {LIST_FIELDS[api]} is no object"
    is_older = any(isinstance(item, JsonObject) and _is_older(item) for item in listed)
    if api == "chat" and (is_older or body.get("functions") is not None):
        return "it uses the older form of tool calls"
    return ""


def _is_older(item: JsonObject) -> bool:
    return item.get("role") == "function" or item.get("function_call") is not None


@dataclass(slots=True)
class ClientRequestReader:
    """Reads the requests of one client. Not for sharing between threads."""

    _recent: list[tuple[SourceMessage, ...]] = field(default_factory=list[tuple[SourceMessage, ...]])

    def read(self, api: OpenAIApi, body: JsonObject) -> ClientRequest:
        """A request of which `explain_untouched` says nothing."""
        listed = body.get(LIST_FIELDS[api])
        if isinstance(listed, str):
            listed = (JsonObject({"role": "user", "content": listed}),)
        items = [item for item in listed if isinstance(item, JsonObject)] if isinstance(listed, tuple) else []
        opening = tuple(_opening(items)) if api == "chat" else ()
        sources = self._read_items(items[len(opening) :])
        return ClientRequest(
            api=api, body=body, opening=opening, sources=sources, frame=_read_frame(api, body, opening)
        )

    def _read_items(self, items: Sequence[JsonObject]) -> tuple[SourceMessage, ...]:
        place, known = max(
            ((at, _shared(earlier, items)) for at, earlier in enumerate(self._recent)),
            key=lambda found: len(found[1]),
            default=(-1, ()),
        )
        count = sum(len(source.items) for source in known)
        ids = _CallIds.after(known)
        sources = (*known, *(_read_group(group, ids) for group in _groups(items[count:])))
        if known and len(known) == len(self._recent[place]):
            del self._recent[place]
        self._recent.append(sources)
        del self._recent[:-MAX_REMEMBERED_REQUESTS]
        return sources


def _shared(earlier: Sequence[SourceMessage], items: Sequence[JsonObject]) -> tuple[SourceMessage, ...]:
    """The messages that a list begins with again. The last one may have grown, and is read again then."""
    at = 0
    for number, source in enumerate(earlier):
        end = at + len(source.items)
        same = end <= len(items) and all(
            known.wire == item for known, item in zip(source.items, items[at:end], strict=True)
        )
        if not same or (end < len(items) and _belongs(source.items[-1].wire, items[end])):
            return tuple(earlier[:number])
        at = end
    return tuple(earlier)


_REPEATED = "~"


@dataclass(slots=True)
class _CallIds:
    """Ids of tool calls. Some servers count from 0 in every answer: the second call of an id gets another."""

    counts: Counter[str] = field(default_factory=Counter[str])

    @classmethod
    def after(cls, sources: Iterable[SourceMessage]) -> _CallIds:
        used = (
            block.id for source in sources for block in source.message.blocks if isinstance(block, ToolUse)
        )
        return cls(Counter(call_id.partition(_REPEATED)[0] for call_id in used))

    def open(self, call_id: str) -> ToolUseId:
        self.counts[call_id] += 1
        return self.current(call_id)

    def current(self, call_id: str) -> ToolUseId:
        count = self.counts[call_id]
        return ToolUseId(call_id if count <= 1 else f"{call_id}{_REPEATED}{count}")


def _opening(items: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for item in items:
        if item.get("role") not in ("system", "developer"):
            return
        yield item


def _read_frame(api: OpenAIApi, body: JsonObject, opening: Sequence[JsonObject]) -> RequestParams:
    model, tools, instructions = body.get("model"), body.get("tools"), body.get("instructions")
    limits = [body.get(name) for name in LIMIT_FIELDS[api]]
    limit = next((value for value in limits if isinstance(value, int) and value > 0), UNSAID_MAX_TOKENS)
    texts = ["\n".join(_texts(item.get("content"))) for item in opening]
    if isinstance(instructions, str) and api == "responses":
        texts = [instructions]
    return RequestParams(
        model=model if isinstance(model, str) else "",
        max_tokens=limit,
        system=tuple(JsonObject({"type": "text", "text": text}) for text in texts if text),
        tools=tuple(tool for tool in tools if isinstance(tool, JsonObject))
        if isinstance(tools, tuple)
        else (),
        params=body.without(*_FRAME_FIELDS),
    )


def _texts(content: Json) -> Iterator[str]:
    for block in _read_content(content):
        if isinstance(block, Text):
            yield block.text


def _groups(items: Sequence[JsonObject]) -> Iterator[list[JsonObject]]:
    """Items that are one message: the parts of one answer, and the results of its calls."""
    group: list[JsonObject] = []
    for item in items:
        if group and not _belongs(group[-1], item):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _belongs(one: JsonObject, other: JsonObject) -> bool:
    """Whether two items that follow each other are one message."""
    kind = _kind(one)
    if kind != _kind(other):
        return False
    # Assistant messages of a chat are whole answers.
    return kind == "results" or (kind == "answer" and "type" in one and "type" in other)


def _kind(item: JsonObject) -> str:
    role, of_type = item.get("role"), _word(item.get("type"))
    if role == "tool" or of_type.endswith("_output"):
        return "results"
    if role == "assistant":
        return "answer"
    return _word(role) or "answer"


def _read_group(group: Sequence[JsonObject], ids: _CallIds) -> SourceMessage:
    first = group[0]
    kind = _kind(first)
    if kind in ("results", "answer"):
        items = tuple(SourceItem(item, tuple(_read_blocks(item, ids))) for item in group)
        role: Role = "user" if kind == "results" else "assistant"
        return SourceMessage(Message(role, tuple(block for item in items for block in item.blocks)), items)
    content = first.get("content")
    message = Message(
        _ROLES.get(kind, "user"), content if isinstance(content, str) else _read_content(content)
    )
    return SourceMessage(message, (SourceItem(first, message.blocks),))


def _read_blocks(item: JsonObject, ids: _CallIds) -> Iterator[Block]:
    match item.get("type"), item.get("role"):
        case _, "tool":
            yield ToolResult(ids.current(_word(item.get("tool_call_id"))), _read_result(item.get("content")))
        case "function_call_output", _:
            yield ToolResult(ids.current(_word(item.get("call_id"))), _read_result(item.get("output")))
        case "function_call", _:
            call_id = ids.open(_word(item.get("call_id")))
            yield ToolUse(call_id, _call_name(item), read_tool_input(_word(item.get("arguments"))))
        case "message", "assistant":
            yield from read_item_texts(_with_parts(item))
        case None, "assistant":
            said = Message("assistant", tuple(read_said_blocks(item.without("tool_calls"))))
            yield from keep_reasoning(said).blocks
            calls = item.get("tool_calls")
            for call in calls if isinstance(calls, tuple) else ():
                yield _read_call(call, ids)
        case _:
            # Reasoning, and calls and results of tools that the provider runs: they go back as they are.
            yield Opaque(JsonObject({key: value for key, value in item.items() if value is not None}))


def keep_reasoning(message: Message) -> Message:
    """The reasoning of a chat completion as a block that goes back as it is: it has no signature."""
    return change_blocks(message, _keep_block)


def _keep_block(block: Block) -> Block:
    name = block.extra.get(REASONING_KEY) if isinstance(block, Thinking) else None
    if isinstance(block, Thinking) and isinstance(name, str):
        return Opaque(JsonObject({"type": REASONING_BLOCK, name: block.thinking}))
    return block


def _read_call(call: Json, ids: _CallIds) -> Block:
    wire = call if isinstance(call, JsonObject) else EMPTY_OBJECT
    function = wire.get("function")
    if not isinstance(function, JsonObject):
        return Opaque(wire)
    text = _word(function.get("arguments"))
    return ToolUse(ids.open(_word(wire.get("id"))), _word(function.get("name")), read_tool_input(text))


def _call_name(item: JsonObject) -> str:
    space, name = _word(item.get("namespace")), _word(item.get("name"))
    return f"{space}.{name}" if space else name


def _with_parts(item: JsonObject) -> JsonObject:
    """A message item; text alone is one part."""
    content = item.get("content")
    if not isinstance(content, str):
        return item
    part = JsonObject({"type": "output_text", "text": content})
    return JsonObject({**item, "content": (part,)})


def _read_result(content: Json) -> str | tuple[Block, ...]:
    return content if isinstance(content, str) else _read_content(content)


def _read_content(content: Json) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),)
    parts = content if isinstance(content, tuple) else ()
    return tuple(_read_part(part) for part in parts if isinstance(part, JsonObject))


def _read_part(part: JsonObject) -> Block:
    match part.get("type"):
        case "text" | "input_text" | "output_text":
            return Text(_word(part.get("text")))
        case "image_url" | "input_image":
            value = part.get("image_url")
            url = value.get("url") if isinstance(value, JsonObject) else value
            return Image(_read_source(url)) if isinstance(url, str) else Opaque(part)
        case "file" | "input_file":
            value = part.get("file", part)
            data = value.get("file_data") if isinstance(value, JsonObject) else None
            return Document(_read_source(data)) if isinstance(data, str) else Opaque(part)
        case _:
            return Opaque(part)


def _read_source(url: str) -> JsonObject:
    head, comma, data = url.partition(";base64,")
    if not comma:
        return JsonObject({"type": "url", "url": url})
    return JsonObject({"type": "base64", "media_type": head.removeprefix("data:"), "data": data})


def _word(value: Json) -> str:
    return value if isinstance(value, str) else ""
