"""The wire form of chat completions: a request as a body, and an answer, whole or streamed, as a response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from sevenfold.core.errors import ReplyBroken, WireError
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, freeze, write_json
from sevenfold.core.messages import Block, Message, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.core.usage import NO_USAGE, Usage, read_openai_usage
from sevenfold.providers.openai.request_parts import (
    MediaPart,
    join_parts,
    list_result_parts,
    list_visible_parts,
    make_chat_names,
    system_text,
    write_params,
    write_tool,
)
from sevenfold.providers.provider import (
    UNREADABLE_USAGE,
    Delta,
    ListMemo,
    TextDelta,
    ThinkingDelta,
    ToolDelta,
    join_object,
    read_tool_input,
)

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
    texts: dict[str, str] = {}
    for block in blocks:
        name = block.extra.get(REASONING_KEY) if isinstance(block, Thinking) else None
        if isinstance(block, Thinking) and isinstance(name, str):
            texts[name] = texts.get(name, "") + block.thinking
    return dict(texts)


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


FINISH_REASONS: Mapping[str, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Where servers that show reasoning put it: DeepSeek, llama.cpp, older vLLM; OpenRouter, newer vLLM."""
SHORTEST_ID = 9
"""Characters. A shorter id is not unique in a session: some servers count from 0 in every answer."""
_NAMED = ("id", "object", "model", "choices", "usage")


def read_chat_completion(wire: Json) -> ModelResponse:
    """A whole completion. One without a message is a `ReplyBroken`."""
    body = _object(wire)
    choices = body.get("choices")
    first = _object(choices[0]) if isinstance(choices, tuple) and choices else EMPTY_OBJECT
    said = first.get("message")
    if not isinstance(said, JsonObject):
        raise ReplyBroken(f"the answer has no message: expected choices[0].message, got {_keys(body)}")
    blocks = tuple(read_said_blocks(said))
    used = read_reported_usage(body.get("usage"))
    return ModelResponse(
        message=Message("assistant", blocks),
        usage=used.usage,
        usage_wire=used.wire,
        stop_reason=_stop_reason(first.get("finish_reason"), said, blocks),
        id=_word(body.get("id")),
        model=_word(body.get("model")),
        extra=JsonObject({**body.without(*_NAMED), **used.extra}),
        dialect="openai",
    )


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    usage: Usage
    wire: JsonObject
    extra: JsonObject = EMPTY_OBJECT


def read_reported_usage(wire: Json) -> ReportedUsage:
    """Usage as far as it is given: a compatible server may give none, or figures that cannot be."""
    if not isinstance(wire, JsonObject):
        return ReportedUsage(NO_USAGE, EMPTY_OBJECT)
    try:
        return ReportedUsage(read_openai_usage(wire), wire)
    except WireError as error:
        return ReportedUsage(NO_USAGE, wire, JsonObject({UNREADABLE_USAGE: str(error)}))


def make_tool_use(call_id: str, name: str, text: str, taken: set[str]) -> ToolUse:
    """A tool request with an id that no other has."""
    unique = call_id
    if len(call_id) < SHORTEST_ID or call_id in taken:
        unique = f"call_{uuid4().hex[:24]}"
    taken.add(unique)
    return ToolUse(ToolUseId(unique), name, read_tool_input(text))


@dataclass(slots=True)
class _Call:
    """A tool request while its chunks come."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])

    @property
    def wire(self) -> JsonObject:
        function = JsonObject({"name": self.name, "arguments": "".join(self.arguments)})
        return JsonObject({"id": self.id, "type": "function", "function": function})


class ChatAssembler:
    """A completion that comes in chunks: add each, then ask for the reply."""

    def __init__(self) -> None:
        self._body: dict[str, Json] = {}
        self._texts: dict[str, list[str]] = {}
        self._calls: list[_Call] = []
        self._places: dict[int, _Call] = {}
        self._finish: Json = None

    def add(self, event: object) -> Iterator[Delta]:
        chunk = _object(freeze(event))
        self._body |= {key: item for key, item in chunk.items() if key != "choices" and item is not None}
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, tuple) else ():
            wire = _object(choice)
            if wire.get("index", 0) == 0:
                yield from self._add_choice(wire)

    def reply(self) -> ModelResponse:
        if self._finish is None:
            raise ReplyBroken("the stream ended before the answer did; send the request again")
        message: dict[str, Json] = {name: "".join(parts) for name, parts in self._texts.items()}
        if self._calls:
            message["tool_calls"] = tuple(call.wire for call in self._calls)
        choice = JsonObject({"message": JsonObject(message), "finish_reason": self._finish})
        return read_chat_completion(JsonObject({**self._body, "choices": (choice,)}))

    def _add_choice(self, choice: JsonObject) -> Iterator[Delta]:
        delta = _object(choice.get("delta"))
        if choice.get("finish_reason") is not None:
            self._finish = choice["finish_reason"]
        for name in ("content", "refusal", *REASONING_FIELDS):
            text = _word(delta.get(name))
            if text:
                self._texts.setdefault(name, []).append(text)
                yield ThinkingDelta(text) if name in REASONING_FIELDS else TextDelta(text)
        calls = delta.get("tool_calls")
        for item in calls if isinstance(calls, tuple) else ():
            yield from self._add_call(_object(item))

    def _add_call(self, wire: JsonObject) -> Iterator[Delta]:
        function = _object(wire.get("function"))
        call, text = self._call_of(wire), _word(function.get("arguments"))
        is_new = not call.name
        call.id = call.id or _word(wire.get("id"))
        call.name += _word(function.get("name")) if is_new else ""
        if is_new:
            yield ToolDelta(ToolUseId(call.id), call.name)
        if text:
            call.arguments.append(text)
            yield ToolDelta(ToolUseId(call.id), call.name, text)

    def _call_of(self, wire: JsonObject) -> _Call:
        """The request that a chunk belongs to. Some servers leave the place out, or give all the same."""
        place, named = wire.get("index"), _word(wire.get("id"))
        call = self._places.get(place) if isinstance(place, int) else self._calls[-1] if self._calls else None
        if call is None or (named and call.id and call.id != named):
            call = _Call()
            self._calls.append(call)
        if isinstance(place, int):
            self._places[place] = call
        return call


def read_said_blocks(said: JsonObject) -> Iterator[Block]:
    """The blocks of an assistant's message."""
    for name in REASONING_FIELDS:
        thought = _word(said.get(name))
        if thought:
            yield Thinking(thought, None, JsonObject({REASONING_KEY: name}))
    for name in ("content", "refusal"):
        text = _text(said.get(name))
        if text:
            yield Text(text)
    taken: set[str] = set()
    calls = said.get("tool_calls")
    for item in calls if isinstance(calls, tuple) else ():
        wire = _object(item)
        yield _read_call(_word(wire.get("id")), _object(wire.get("function")), taken)
    older = said.get("function_call")
    if isinstance(older, JsonObject):
        yield _read_call("", older, taken)


def _read_call(call_id: str, function: JsonObject, taken: set[str]) -> ToolUse:
    arguments = function.get("arguments")
    call = make_tool_use(call_id, _word(function.get("name")), _word(arguments), taken)
    # Some servers give the object itself where its text belongs.
    return ToolUse(call.id, call.name, arguments) if isinstance(arguments, JsonObject) else call


def _text(content: Json) -> str:
    """Text, or the text of a list of parts."""
    if isinstance(content, tuple):
        return "".join(_word(_object(part).get("text")) for part in content)
    return _word(content)


def _stop_reason(finish: Json, said: JsonObject, blocks: tuple[Block, ...]) -> str | None:
    if said.get("refusal"):
        return "refusal"
    named = _word(finish)
    reason = FINISH_REASONS.get(named, named or None)
    # Some servers say `stop` after a tool request.
    asks = any(isinstance(block, ToolUse) for block in blocks)
    return "tool_use" if asks and reason == "end_turn" else reason


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, JsonObject) else EMPTY_OBJECT


def _word(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _keys(wire: JsonObject) -> str:
    return ", ".join(list(wire)[:8]) or "an empty object"
