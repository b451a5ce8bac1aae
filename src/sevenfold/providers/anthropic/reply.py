"""An answer of the Messages API, whole or in events, as a reply. What has no name here is kept as it came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sevenfold.core.errors import ReplyBroken, WireError
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, freeze
from sevenfold.core.messages import ToolUseId
from sevenfold.core.requests import ModelResponse
from sevenfold.core.usage import read_usage
from sevenfold.core.wire import read_message
from sevenfold.providers.openai.tool_inputs import read_tool_input
from sevenfold.providers.provider import Delta, TextDelta, ThinkingDelta, ToolDelta

_NAMED = ("id", "type", "role", "model", "content", "stop_reason", "usage")
"""Fields of an answer that a `Reply` has a place for; all others are its `extra`."""

_GROWING: Mapping[str, str] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Kinds of delta whose texts are joined, with the field that holds the text."""


def read_messages_response(wire: Json) -> ModelResponse:
    """A whole answer. One that is no message is a `ReplyBroken`."""
    if not isinstance(wire, JsonObject):
        raise ReplyBroken(f"an answer must be an object, not {type(wire).__name__}")
    stop = wire.get("stop_reason")
    try:
        usage_wire = wire.get("usage")
        return ModelResponse(
            message=read_message({"role": "assistant", "content": wire.get("content", ())}),
            usage=read_usage(usage_wire),
            usage_wire=usage_wire if isinstance(usage_wire, JsonObject) else EMPTY_OBJECT,
            stop_reason=stop if isinstance(stop, str) else None,
            id=_word(wire, "id"),
            model=_word(wire, "model"),
            extra=wire.without(*_NAMED),
        )
    except WireError as error:
        raise ReplyBroken(f"the answer is no message that can be read: {error}") from error


class MessagesAssembler:
    """An answer that comes in events: add each, then ask for the reply."""

    def __init__(self) -> None:
        self._message: dict[str, Json] = {}
        self._usage: dict[str, Json] = {}
        self._blocks: dict[int, _Block] = {}
        self._is_whole = False

    def add(self, event: object) -> Iterator[Delta]:
        """Take in one event of the stream, and say what it tells a watcher."""
        wire = _object(freeze(event))
        match wire.get("type"):
            case "message_start":
                message = _object(wire.get("message"))
                self._message |= message.without("usage")
                self._usage |= _object(message.get("usage"))
            case "content_block_start":
                block = self._blocks[_index(wire)] = _Block(_object(wire.get("content_block")))
                yield from block.opening()
            case "content_block_delta":
                block = self._blocks.get(_index(wire))
                if block is None:
                    raise ReplyBroken(f"a delta came for block {_index(wire)}, which never began")
                yield from block.add(_object(wire.get("delta")))
            case "message_delta":
                self._message |= _object(wire.get("delta"))
                self._message |= wire.without("type", "delta", "usage")
                # Counts are totals so far; what is not repeated still holds.
                self._usage |= {
                    key: item for key, item in _object(wire.get("usage")).items() if item is not None
                }
            case "message_stop":
                self._is_whole = True
            case _:
                pass

    def reply(self) -> ModelResponse:
        """The whole answer; `ReplyBroken` when the stream ended before it did."""
        if not self._is_whole:
            raise ReplyBroken("the stream ended before the answer did; send the request again")
        content = tuple(self._blocks[index].wire() for index in sorted(self._blocks))
        return read_messages_response(
            JsonObject({**self._message, "content": content, "usage": JsonObject(self._usage)})
        )


class _Block:
    """One block while its deltas come."""

    def __init__(self, start: JsonObject) -> None:
        self._start = start
        self._texts: dict[str, list[str]] = {}
        self._citations: list[Json] = []
        self._fields: dict[str, Json] = {}
        self._id = ToolUseId(_word(start, "id"))
        self._name = _word(start, "name")

    def opening(self) -> Iterator[Delta]:
        if self._start.get("type") == "tool_use":
            yield ToolDelta(self._id, self._name)

    def add(self, delta: JsonObject) -> Iterator[Delta]:
        kind = delta.get("type")
        grows = _GROWING.get(kind) if isinstance(kind, str) else None
        if grows is not None:
            text = _word(delta, grows)
            self._texts.setdefault(grows, []).append(text)
            yield from self._told(grows, text)
        elif kind == "citations_delta":
            self._citations.append(delta.get("citation"))
        else:
            # A compaction comes in one delta; of a kind we do not know, the fields are all there is to keep.
            self._fields |= delta.without("type")

    def wire(self) -> JsonObject:
        """The block as it would have come in one piece."""
        fields = {**self._start, **self._fields}
        for name, parts in self._texts.items():
            text = "".join(parts)
            if name == "partial_json":
                # Cut off at max_tokens it is no JSON, and has a form for that.
                fields["input"] = read_tool_input(text) if text else fields.get("input")
            else:
                fields[name] = f"{_word(self._start, name)}{text}"
        if self._citations:
            held = fields.get("citations")
            fields["citations"] = (*(held if isinstance(held, tuple) else ()), *self._citations)
        return JsonObject(fields)

    def _told(self, name: str, text: str) -> Iterator[Delta]:
        match name:
            case "text":
                yield TextDelta(text)
            case "thinking":
                yield ThinkingDelta(text)
            case "partial_json" if self._start.get("type") == "tool_use":
                yield ToolDelta(self._id, self._name, text)
            case _:
                pass


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, JsonObject) else EMPTY_OBJECT


def _index(wire: JsonObject) -> int:
    index = wire.get("index")
    return index if isinstance(index, int) else -1


def _word(wire: JsonObject, key: str) -> str:
    value = wire.get(key)
    return value if isinstance(value, str) else ""
