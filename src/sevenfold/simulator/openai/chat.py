"""Chat Completions: parses requests; renders responses and chunks.

Also what both OpenAI endpoints share: requests and replies as values, and parsing.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sevenfold.core.errors import WireError
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_json, write_json
from sevenfold.core.messages import (
    Block,
    Document,
    Image,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.core.usage import Usage
from sevenfold.simulator.wire.error_response import RequestRefused, make_invalid_request

# Shared by both OpenAI endpoints.

INVALID_ARGUMENTS_KEY = "invalid_json"
"""The key under which a brain finds arguments that are no JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIRequest:
    """A request of either endpoint."""

    model: str
    system: str
    tools: tuple[JsonObject, ...]
    messages: tuple[Message, ...]
    max_tokens: int | None
    stops: tuple[str, ...] = ()
    streams: bool = False
    tells_usage: bool = True
    """Of a stream: whether its last chunk says what was used."""
    thinks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIReply:
    """What is returned, before either shape is given to it."""

    id: str
    created: int
    model: str
    blocks: tuple[Block, ...]
    stop_reason: str
    usage: Usage


def require_object(path: str, value: Json) -> JsonObject:
    if not isinstance(value, JsonObject):
        raise make_invalid_request(
            f"Invalid type for '{path}': expected an object, but got {_kind(value)} instead."
        )
    return value


def require_list(path: str, value: Json) -> tuple[Json, ...]:
    if not isinstance(value, tuple):
        raise make_invalid_request(
            f"Invalid type for '{path}': expected an array, but got {_kind(value)} instead."
        )
    return value


def require_text(path: str, value: Json) -> str:
    if not isinstance(value, str):
        raise make_invalid_request(
            f"Invalid type for '{path}': expected a string, but got {_kind(value)} instead."
        )
    return value


def read_count(path: str, value: Json) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise make_invalid_request(
            f"Invalid value for '{path}': expected an integer of at least 1, but got {value}."
        )
    return value


def parse_tool_call(path: str, call_id: Json, name: Json, arguments: Json) -> ToolUse:
    """A tool request of the history. Arguments are text, which need not be JSON: models err."""
    text = require_text(f"{path}.arguments", arguments)
    try:
        value = read_json(text) if text else EMPTY_OBJECT
    except WireError:
        value = None
    given = value if isinstance(value, JsonObject) else JsonObject({INVALID_ARGUMENTS_KEY: text})
    return ToolUse(ToolUseId(require_text(f"{path}.id", call_id)), require_text(f"{path}.name", name), given)


def parse_content(path: str, content: Json) -> tuple[Block, ...]:
    """Text, or a list of parts of either endpoint."""
    if isinstance(content, str):
        return (Text(content),)
    parts = require_list(path, content)
    return tuple(
        _part(f"{path}[{at}]", require_object(f"{path}[{at}]", part)) for at, part in enumerate(parts)
    )


def _part(path: str, part: JsonObject) -> Block:
    kind = require_text(f"{path}.type", part.get("type"))
    match kind:
        case "text" | "input_text" | "output_text":
            return Text(require_text(f"{path}.text", part.get("text")))
        case "refusal":
            return Text(require_text(f"{path}.refusal", part.get("refusal")))
        case "image_url" | "input_image":
            value = part.get("image_url")
            url = value.get("url") if isinstance(value, JsonObject) else value
            return Image(_source(require_text(f"{path}.image_url", url)))
        case "file" | "input_file":
            value = part.get("file", part)
            data = value.get("file_data") if isinstance(value, JsonObject) else None
            return Document(_source(require_text(f"{path}.file_data", data)))
        case _:
            raise make_invalid_request(
                f"Invalid value: '{kind}'. '{path}.type' is no part that is known here."
            )


def _source(url: str) -> JsonObject:
    head, comma, data = url.partition(";base64,")
    if not comma:
        return JsonObject({"type": "url", "url": url})
    return JsonObject({"type": "base64", "media_type": head.removeprefix("data:"), "data": data})


def seal_reasoning(text: str) -> str:
    """Reasoning as it travels: not secret here, and not to be read by accident."""
    return base64.b64encode(text.encode("utf-8", "backslashreplace")).decode()


def unseal_reasoning(path: str, sealed: Json) -> str:
    try:
        return base64.b64decode(require_text(path, sealed), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise make_invalid_request(
            f"The encrypted content at '{path}' could not be verified.", "invalid_encrypted_content"
        ) from error


class ToolCallPairing:
    """Checks that every tool request is answered, and every answer asked for."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}

    def ask(self, calls: tuple[ToolUse, ...]) -> None:
        for call in calls:
            self._open[call.id] = None

    def answer(self, result: ToolResult, refusal: str) -> None:
        if result.tool_use_id not in self._open:
            raise make_invalid_request(refusal)
        del self._open[result.tool_use_id]

    def close(self) -> str | None:
        """The first request that nobody answered."""
        return next(iter(self._open), None)


def make_too_long_refusal(tokens: int, window: int) -> RequestRefused:
    return make_invalid_request(
        f"This model's maximum context length is {window} tokens. However, your messages resulted in "
        f"{tokens} tokens. Please reduce the length of the messages.",
        "context_length_exceeded",
    )


def _kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case str():
            return "a string"
        case bool():
            return "a boolean"
        case tuple():
            return "an array"
        case JsonObject():
            return "an object"
        case _:
            return "a number"


_CHUNK_CHARS = 32
FINISH_BY_STOP: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_ROLES = "'system', 'developer', 'user', 'assistant' and 'tool'"
UNASKED_RESULT_TEXT = (
    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
)
UNANSWERED_CALL_TEXT = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: "
)


def parse_chat_request(body: JsonObject) -> OpenAIRequest:
    """The conversation of a request; what is wrong with it is refused in the API's words."""
    stop = body.get("stop")
    stops = (stop,) if isinstance(stop, str) else require_list("stop", stop) if stop is not None else ()
    options = body.get("stream_options")
    effort = body.get("reasoning_effort")
    tools = require_list("tools", body.get("tools", ()))
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    reader = _Reader()
    for at, item in enumerate(require_list("messages", body.get("messages"))):
        reader.add(f"messages[{at}]", require_object(f"messages[{at}]", item))
    reader.finish()
    return OpenAIRequest(
        model=require_text("model", body.get("model")),
        system="\n\n".join(reader.system),
        tools=tuple(
            _tool(f"tools[{at}]", require_object(f"tools[{at}]", tool)) for at, tool in enumerate(tools)
        ),
        messages=tuple(reader.messages),
        max_tokens=read_count("max_completion_tokens", most),
        stops=tuple(require_text("stop", item) for item in stops),
        streams=body.get("stream") is True,
        tells_usage=isinstance(options, JsonObject) and options.get("include_usage") is True,
        thinks=effort not in (None, "none"),
    )


def render_chat_completion(answer: OpenAIReply) -> JsonObject:
    """The whole completion."""
    text = "".join(block.text for block in answer.blocks if isinstance(block, Text))
    calls = tuple(_call(block) for block in answer.blocks if isinstance(block, ToolUse))
    message: dict[str, Json] = {"role": "assistant", "content": text or None, "refusal": None}
    thought = "".join(block.thinking for block in answer.blocks if isinstance(block, Thinking))
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    finish = FINISH_BY_STOP.get(answer.stop_reason, answer.stop_reason)
    choice = {"index": 0, "message": JsonObject(message), "logprobs": None, "finish_reason": finish}
    return _completion(
        answer, "chat.completion", choices=(JsonObject(choice),), usage=render_chat_usage(answer.usage)
    )


def iter_chat_chunks(answer: OpenAIReply, *, tells_usage: bool) -> Iterator[JsonObject]:
    """The same answer as a stream."""
    yield _chunk(answer, JsonObject({"role": "assistant", "content": ""}))
    at = 0
    for block in answer.blocks:
        match block:
            case Text():
                for text in split_chunks(block.text):
                    yield _chunk(answer, JsonObject({"content": text}))
            case Thinking():
                for text in split_chunks(block.thinking):
                    yield _chunk(answer, JsonObject({"reasoning_content": text}))
            case ToolUse():
                yield from _call_chunks(answer, block, at)
                at += 1
            case _:
                pass
    yield _chunk(answer, EMPTY_OBJECT, FINISH_BY_STOP.get(answer.stop_reason, answer.stop_reason))
    if tells_usage:
        yield _completion(answer, "chat.completion.chunk", choices=(), usage=render_chat_usage(answer.usage))


def render_chat_usage(usage: Usage) -> JsonObject:
    """The whole, with its parts inside it: unlike Anthropic's, where they stand side by side."""
    return JsonObject(
        {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.output,
            "total_tokens": usage.prompt + usage.output,
            "prompt_tokens_details": JsonObject({"cached_tokens": usage.read, "audio_tokens": 0}),
            "completion_tokens_details": JsonObject({"reasoning_tokens": usage.thinking, "audio_tokens": 0}),
        }
    )


class _Reader:
    """Chat messages to messages of ours: results that follow each other are one message of the user's."""

    def __init__(self) -> None:
        self.system: list[str] = []
        self.messages: list[Message] = []
        self._results: list[Block] = []
        self._pairing = ToolCallPairing()

    def add(self, path: str, wire: JsonObject) -> None:
        role = require_text(f"{path}.role", wire.get("role"))
        if role == "tool":
            self._add_result(path, wire)
            return
        self.finish()
        match role:
            case "system" | "developer" if not self.messages:
                self.system.append(_text(path, wire))
            case "system" | "developer":
                self.messages.append(Message("system", _text(path, wire)))
            case "user":
                self.messages.append(Message("user", parse_content(f"{path}.content", wire.get("content"))))
            case "assistant":
                self.messages.append(self._assistant(path, wire))
            case _:
                raise make_invalid_request(
                    f"Invalid value: '{role}' at '{path}.role'. Supported values are: {_ROLES}."
                )

    def finish(self) -> None:
        """Another role begins, or the conversation ends: nothing may be left unanswered."""
        if self._results:
            self.messages.append(Message("user", tuple(self._results)))
            self._results = []
        left = self._pairing.close()
        if left is not None:
            raise make_invalid_request(f"{UNANSWERED_CALL_TEXT}{left}")

    def _add_result(self, path: str, wire: JsonObject) -> None:
        call_id = ToolUseId(require_text(f"{path}.tool_call_id", wire.get("tool_call_id")))
        result = ToolResult(call_id, parse_content(f"{path}.content", wire.get("content")))
        self._pairing.answer(result, f"Invalid parameter: {UNASKED_RESULT_TEXT}")
        self._results.append(result)

    def _assistant(self, path: str, wire: JsonObject) -> Message:
        thought, content = wire.get("reasoning_content"), wire.get("content")
        blocks: list[Block] = [Thinking(thought)] if isinstance(thought, str) and thought else []
        if content is not None and content != "":
            blocks += parse_content(f"{path}.content", content)
        calls = require_list(f"{path}.tool_calls", wire.get("tool_calls", ()))
        used = tuple(self._call(f"{path}.tool_calls[{at}]", call) for at, call in enumerate(calls))
        if not blocks and not used and content is None:
            raise make_invalid_request(f"Invalid value for '{path}.content': expected a string, got null.")
        self._pairing.ask(used)
        return Message("assistant", (*blocks, *used))

    @staticmethod
    def _call(path: str, value: Json) -> ToolUse:
        call = require_object(path, value)
        function = require_object(f"{path}.function", call.get("function"))
        return parse_tool_call(path, call.get("id"), function.get("name"), function.get("arguments"))


def _text(path: str, wire: JsonObject) -> str:
    blocks = parse_content(f"{path}.content", wire.get("content"))
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def _tool(path: str, tool: JsonObject) -> JsonObject:
    function = require_object(f"{path}.function", tool.get("function"))
    require_text(f"{path}.function.name", function.get("name"))
    return function


def _call(block: ToolUse) -> JsonObject:
    function = JsonObject({"name": block.name, "arguments": write_json(block.input).decode()})
    return JsonObject({"id": block.id, "type": "function", "function": function})


def _call_chunks(answer: OpenAIReply, block: ToolUse, at: int) -> Iterator[JsonObject]:
    opening = {"index": at, "id": block.id, "type": "function"}
    function = JsonObject({"name": block.name, "arguments": ""})
    yield _chunk(answer, JsonObject({"tool_calls": (JsonObject({**opening, "function": function}),)}))
    for text in split_chunks(write_json(block.input).decode()):
        piece = JsonObject({"index": at, "function": JsonObject({"arguments": text})})
        yield _chunk(answer, JsonObject({"tool_calls": (piece,)}))


def split_chunks(text: str) -> Iterator[str]:
    """A text as it is streamed."""
    for at in range(0, len(text), _CHUNK_CHARS):
        yield text[at : at + _CHUNK_CHARS]


def _chunk(answer: OpenAIReply, delta: JsonObject, finish: str | None = None) -> JsonObject:
    choice = JsonObject({"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish})
    return _completion(answer, "chat.completion.chunk", choices=(choice,), usage=None)


def _completion(answer: OpenAIReply, kind: str, **fields: Json) -> JsonObject:
    return JsonObject(
        {"id": answer.id, "object": kind, "created": answer.created, "model": answer.model, **fields}
    )
