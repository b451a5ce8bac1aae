"""The wire form of the Responses API: a request as a body, and an answer, whole or streamed, as a response.

A request holds all items of the history, because the provider stores none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sevenfold.core.errors import ReplyBroken
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, freeze, write_json
from sevenfold.core.messages import Block, Message, Opaque, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.providers.error_map import map_fault, read_provider_fault
from sevenfold.providers.openai.chat_wire import make_tool_use, read_reported_usage
from sevenfold.providers.openai.request_parts import (
    RESPONSES_NAMES,
    MediaPart,
    list_result_parts,
    list_visible_parts,
    system_text,
    write_params,
    write_tool,
)
from sevenfold.providers.provider import Delta, ListMemo, TextDelta, ThinkingDelta, ToolDelta, join_object

_ITEMS = frozenset({"reasoning", "compaction", "item_reference"})
"""Items that have to come back as they were, and have no block of their own here."""
_CALLS = ("_call", "_call_output")
"""What the types of the provider's own tools end in, which travel the same way."""
ENCRYPTED = "reasoning.encrypted_content"


def is_response_item(block: Block) -> bool:
    """Whether a block is an item of this API, to be sent back untouched."""
    return isinstance(block, Opaque) and (block.type in _ITEMS or block.type.endswith(_CALLS))


class ResponsesBodyWriter:
    """Writes the bodies of one provider's requests. What was in the last request is not written again."""

    def __init__(self, *, asks_reasoning: bool) -> None:
        self._asks_reasoning = asks_reasoning
        self._messages = ListMemo[Message, bytes](_message_bytes)
        self._tools = ListMemo[JsonObject, bytes](lambda tool: write_json(write_tool(tool, RESPONSES_NAMES)))

    def write(self, request: ModelRequest, *, streams: bool) -> bytes:
        frame = request.frame
        plain: dict[str, Json] = {
            "model": frame.model,
            RESPONSES_NAMES.max_tokens: frame.max_tokens,
            "store": False,
        }
        if self._asks_reasoning:
            plain["include"] = (ENCRYPTED,)
        plain |= write_params(frame.params, RESPONSES_NAMES)
        system = system_text(frame)
        if system:
            plain["instructions"] = system
        if streams:
            plain["stream"] = True
        fields: dict[str, bytes | list[bytes]] = {key: write_json(item) for key, item in plain.items()}
        if frame.tools:
            fields["tools"] = self._tools.of(frame.tools)
        fields["input"] = [data for data in self._messages.of(request.messages) if data]
        return join_object(fields)


def _message_bytes(message: Message) -> bytes:
    return b",".join([write_json(item) for item in write_input_items(message)])


def write_input_items(message: Message) -> Iterator[JsonObject]:
    """One message of ours as items, in the order of its blocks: text that stands together is one item."""
    spoken: list[Block] = []
    for block in message.blocks:
        item = _item(block)
        if item is None:
            spoken.append(block)
            continue
        yield from _said(message, spoken)
        spoken = []
        yield item
    yield from _said(message, spoken)


def _item(block: Block) -> JsonObject | None:
    if isinstance(block, ToolUse):
        arguments = write_json(block.input).decode()
        return JsonObject(
            {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments}
        )
    if isinstance(block, ToolResult):
        output = {"type": "function_call_output", "call_id": block.tool_use_id, "output": _output(block)}
        return JsonObject(output)
    return block.wire if isinstance(block, Opaque) and is_response_item(block) else None


def _said(message: Message, blocks: list[Block]) -> Iterator[JsonObject]:
    is_ours = message.role == "assistant"
    parts = [part for part in list_visible_parts(blocks) if part != ""]
    if not parts:
        return
    fields: dict[str, Json] = {"type": "message", "role": message.role}
    fields["content"] = tuple(_part(part, "output_text" if is_ours else "input_text") for part in parts)
    phase = next((block.extra.get("phase") for block in blocks if isinstance(block, Text)), None)
    if is_ours and phase is not None:
        fields["phase"] = phase
    yield JsonObject(fields)


def _output(block: ToolResult) -> Json:
    parts = list_result_parts(block)
    if all(isinstance(part, str) for part in parts):
        return "\n".join(part for part in parts if isinstance(part, str))
    return tuple(_part(part, "input_text") for part in parts)


def _part(part: str | MediaPart, text_type: str) -> JsonObject:
    if isinstance(part, str):
        return JsonObject({"type": text_type, "text": part})
    if text_type == "output_text":
        return JsonObject({"type": text_type, "text": f"[{part.kind}]"})
    if part.kind == "image":
        return JsonObject({"type": "input_image", "image_url": part.url})
    return JsonObject({"type": "input_file", "filename": part.name, "file_data": part.url})


_INCOMPLETE: Mapping[str, str] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
_STATUSES: Mapping[str, int] = {"server_error": 500, "rate_limit_exceeded": 429, "vector_store_timeout": 504}
"""The status that the code of a failed answer stands for; with the others, the request is at fault."""
_NAMED = ("id", "object", "model", "output", "usage")
ENDINGS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


def read_response(wire: Json) -> ModelResponse:
    """A whole answer. One that failed is raised as the error that it is."""
    body = _object(wire)
    error, output = body.get("error"), body.get("output")
    if body.get("status") == "failed" or isinstance(error, JsonObject):
        said = _object(error)
        status = _STATUSES.get(_word(said.get("code")), 400)
        raise map_fault(read_provider_fault("the answer failed, and does not say why", status, said, {}))
    if not isinstance(output, tuple):
        raise ReplyBroken(f"the answer has no output: got {', '.join(list(body)[:8]) or 'an empty object'}")
    blocks = tuple(_blocks(output))
    used = read_reported_usage(body.get("usage"))
    return ModelResponse(
        message=Message("assistant", blocks),
        usage=used.usage,
        usage_wire=used.wire,
        stop_reason=_stop_reason(body, output, blocks),
        id=_word(body.get("id")),
        model=_word(body.get("model")),
        extra=JsonObject({**body.without(*_NAMED), **used.extra}),
        dialect="openai",
    )


class ResponsesAssembler:
    """An answer that comes in events. The last holds it whole, or, on some servers, all but its items."""

    def __init__(self) -> None:
        self._whole: JsonObject | None = None
        self._items: dict[int, Json] = {}
        self._calls: dict[int, ToolDelta] = {}

    def add(self, event: object) -> Iterator[Delta]:
        wire = _object(freeze(event))
        kind, place = _word(wire.get("type")), wire.get("output_index")
        at = place if isinstance(place, int) else len(self._items)
        if kind in ENDINGS:
            self._whole = _object(wire.get("response"))
        elif kind == "error":
            raise map_fault(
                read_provider_fault("the stream ended in an error", None, wire.without("type"), {})
            )
        elif kind == "response.output_item.done":
            self._items[at] = wire.get("item")
        elif kind == "response.output_item.added":
            yield from self._opened(at, _object(wire.get("item")))
        else:
            yield from self._grown(kind, at, _word(wire.get("delta")))

    def reply(self) -> ModelResponse:
        if self._whole is None:
            raise ReplyBroken("the stream ended before the answer did; send the request again")
        if self._whole.get("output"):
            return read_response(self._whole)
        items = tuple(self._items[at] for at in sorted(self._items))
        return read_response(JsonObject({**self._whole, "output": items}))

    def _opened(self, at: int, item: JsonObject) -> Iterator[Delta]:
        if item.get("type") == "function_call":
            self._calls[at] = ToolDelta(ToolUseId(_word(item.get("call_id"))), _word(item.get("name")))
            yield self._calls[at]

    def _grown(self, kind: str, at: int, text: str) -> Iterator[Delta]:
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                yield TextDelta(text)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield ThinkingDelta(text)
            case "response.function_call_arguments.delta" if at in self._calls:
                call = self._calls[at]
                yield ToolDelta(call.id, call.name, text)
            case _:
                pass


def _blocks(output: tuple[Json, ...]) -> Iterator[Block]:
    taken: set[str] = set()
    for item in output:
        wire = _object(item)
        match wire.get("type"):
            case "message":
                yield from read_item_texts(wire)
            case "function_call":
                name, text = _word(wire.get("name")), _word(wire.get("arguments"))
                yield make_tool_use(_word(wire.get("call_id")), name, text, taken)
            case _:
                # Reasoning, above all: encrypted, and wanted back as it is.
                yield Opaque(wire)


def read_item_texts(item: JsonObject) -> Iterator[Text]:
    """The texts of a message item."""
    phase = item.get("phase")
    extra = EMPTY_OBJECT if phase is None else JsonObject({"phase": phase})
    content = item.get("content")
    for part in content if isinstance(content, tuple) else ():
        wire = _object(part)
        text = _word(wire.get("text")) or _word(wire.get("refusal"))
        if text:
            yield Text(text, extra)


def _stop_reason(body: JsonObject, output: tuple[Json, ...], blocks: tuple[Block, ...]) -> str | None:
    if body.get("status") == "incomplete":
        reason = _word(_object(body.get("incomplete_details")).get("reason"))
        return _INCOMPLETE.get(reason, reason or None)
    if any(_refuses(_object(item)) for item in output):
        return "refusal"
    return "tool_use" if any(isinstance(block, ToolUse) for block in blocks) else "end_turn"


def _refuses(item: JsonObject) -> bool:
    content = item.get("content")
    parts = content if isinstance(content, tuple) else ()
    return any(_object(part).get("type") == "refusal" for part in parts)


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, JsonObject) else EMPTY_OBJECT


def _word(value: Json) -> str:
    return value if isinstance(value, str) else ""
