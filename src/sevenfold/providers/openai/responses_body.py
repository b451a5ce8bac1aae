"""A request as the body of OpenAI's Responses API: all items of the history, for the provider keeps none."""

from __future__ import annotations

from collections.abc import Iterator

from sevenfold.core.json import Json, JsonObject, write_json
from sevenfold.core.messages import Block, Message, Opaque, Text, ToolResult, ToolUse
from sevenfold.core.requests import ModelRequest
from sevenfold.providers.json_bytes import join_object
from sevenfold.providers.memo import ListMemo
from sevenfold.providers.openai.content import MediaPart, list_result_parts, list_visible_parts
from sevenfold.providers.openai.params import RESPONSES_NAMES, system_text, write_params, write_tool

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
