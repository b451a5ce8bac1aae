"""A request as the body of a chat completion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sevenfold.core.json import Json, JsonObject, write_json
from sevenfold.core.messages import Block, Message, Text, Thinking, ToolResult, ToolUse
from sevenfold.core.requests import ModelRequest
from sevenfold.providers.json_bytes import join_object
from sevenfold.providers.memo import ListMemo
from sevenfold.providers.openai.content import MediaPart, join_parts, list_result_parts, list_visible_parts
from sevenfold.providers.openai.params import make_chat_names, system_text, write_params, write_tool

REASONING_KEY = "reasoning_field"
"""In the `extra` of thinking that came from a chat completion: the field of the message that held it."""


class ChatBodyWriter:
    """Writes the bodies of one provider's requests. What was in the last request is not written again."""

    def __init__(self, *, max_tokens_field: str, replays_reasoning: bool) -> None:
        self._words = make_chat_names(max_tokens_field)
        self._replays = replays_reasoning
        self._messages = ListMemo[Message, bytes](self._message_bytes)
        self._tools = ListMemo[JsonObject, bytes](lambda tool: write_json(write_tool(tool, self._words)))

    def write(self, request: ModelRequest, *, streams: bool) -> bytes:
        frame = request.frame
        fields: dict[str, bytes | list[bytes]] = {
            "model": write_json(frame.model),
            self._words.max_tokens: write_json(frame.max_tokens),
        }
        fields |= {key: write_json(item) for key, item in write_params(frame.params, self._words).items()}
        if frame.tools:
            fields["tools"] = self._tools.of(frame.tools)
        system = system_text(frame)
        opening = [write_json(_message("system", content=system))] if system else []
        said = self._messages.of(_turns(request.messages))
        fields["messages"] = [*opening, *(data for data in said if data)]
        if streams:
            fields["stream"] = b"true"
            fields["stream_options"] = b'{"include_usage":true}'
        return join_object(fields)

    def _message_bytes(self, message: Message) -> bytes:
        return b",".join(
            [write_json(wire) for wire in write_chat_messages(message, replays_reasoning=self._replays)]
        )


def _turns(messages: Iterable[Message]) -> list[Message]:
    """Who speaks twice in a row speaks once: a call must be followed by its result here, and the templates of
    many models take nothing but turns."""
    turns: list[Message] = []
    for message in messages:
        if turns and turns[-1].role == message.role != "system":
            turns[-1] = _joined_turn(turns[-1], message)
        else:
            turns.append(message)
    return turns


def _joined_turn(one: Message, other: Message) -> Message:
    # Texts of one answer follow each other without a gap, and these are two.
    has_gap = one.role == "assistant" and _has_text(one) and _has_text(other)
    return Message(one.role, (*one.blocks, *((Text("\n\n"),) if has_gap else ()), *other.blocks))


def _has_text(message: Message) -> bool:
    return any(isinstance(block, Text) for block in message.blocks)


def write_chat_messages(message: Message, *, replays_reasoning: bool = False) -> Iterator[JsonObject]:
    """One message of ours as those of a chat: each tool result is one of its own, and stands first."""
    if message.role == "assistant":
        yield _assistant(message, replays_reasoning=replays_reasoning)
        return
    shown: list[str | MediaPart] = []
    for block in message.blocks:
        if isinstance(block, ToolResult):
            parts = list_result_parts(block)
            yield _message("tool", tool_call_id=block.tool_use_id, content=join_parts(parts))
            # A tool's message holds text alone: what a tool shows is shown by the user.
            shown += [part for part in parts if isinstance(part, MediaPart)]
    if isinstance(message.content, str):
        yield _message(message.role, content=message.content)
        return
    said = [*shown, *list_visible_parts(_spoken(message.content))]
    if said:
        yield _message(message.role, content=_content(said))


def _assistant(message: Message, *, replays_reasoning: bool) -> JsonObject:
    text = "".join(part for part in list_visible_parts(_spoken(message.blocks)) if isinstance(part, str))
    calls = tuple(_call(block) for block in message.blocks if isinstance(block, ToolUse))
    fields: dict[str, Json] = {"content": text if text or not calls else None}
    if replays_reasoning:
        fields |= _reasoning(message.blocks)
    if calls:
        fields["tool_calls"] = calls
    return _message("assistant", **fields)


def _reasoning(blocks: Iterable[Block]) -> dict[str, Json]:
    """Reasoning goes back in the field it came in. Another provider's thinking, which is signed, does not."""
    held: dict[str, str] = {}
    for block in blocks:
        name = block.extra.get(REASONING_KEY) if isinstance(block, Thinking) else None
        if isinstance(block, Thinking) and isinstance(name, str):
            held[name] = held.get(name, "") + block.thinking
    return dict(held)


def _call(block: ToolUse) -> JsonObject:
    function = JsonObject({"name": block.name, "arguments": write_json(block.input).decode()})
    return JsonObject({"id": block.id, "type": "function", "function": function})


def _spoken(blocks: Iterable[Block]) -> list[Block]:
    """Empty texts, which some servers refuse, say nothing."""
    return [block for block in blocks if not (isinstance(block, Text) and not block.text)]


def _content(parts: list[str | MediaPart]) -> Json:
    """Text alone where it is; some servers take nothing else."""
    if all(isinstance(part, str) for part in parts):
        return "\n".join(part for part in parts if isinstance(part, str))
    return tuple(_part(part) for part in parts)


def _part(part: str | MediaPart) -> JsonObject:
    if isinstance(part, str):
        return JsonObject({"type": "text", "text": part})
    if part.kind == "image":
        return JsonObject({"type": "image_url", "image_url": JsonObject({"url": part.url})})
    file = JsonObject({"filename": part.name, "file_data": part.url})
    return JsonObject({"type": "file", "file": file})


def _message(role: str, **fields: Json) -> JsonObject:
    return JsonObject({"role": role, **fields})
