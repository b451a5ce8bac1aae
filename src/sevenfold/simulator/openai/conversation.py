"""What both OpenAI endpoints share: requests and replies as values, and parsing."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from sevenfold.core.errors import WireError
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_json
from sevenfold.core.messages import Block, Document, Image, Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.usage import Usage
from sevenfold.simulator.wire.error_response import RequestRefused, make_invalid_request

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
            held = part.get("image_url")
            url = held.get("url") if isinstance(held, JsonObject) else held
            return Image(_source(require_text(f"{path}.image_url", url)))
        case "file" | "input_file":
            held = part.get("file", part)
            data = held.get("file_data") if isinstance(held, JsonObject) else None
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
