"""The wire form of the Messages API: a request as a body, and an answer, whole or streamed, as a response.

Everything is written to bytes once. A message that was at the same place of the last request is the same
object, and its bytes are used again: a long history costs one comparison of pointers per message. No
breakpoint, SDK or middleware can change what is kept, because bytes cannot be changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar, cast

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES, TTLS
from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.errors import InputError, ReplyBroken, WireError
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, freeze, write_json
from sevenfold.core.messages import Message, ToolUseId, read_message, write_message
from sevenfold.core.requests import Breakpoint, ModelRequest, ModelResponse, RequestParams
from sevenfold.core.usage import read_usage
from sevenfold.providers.provider import (
    Delta,
    ListMemo,
    TextDelta,
    ThinkingDelta,
    ToolDelta,
    join_object,
    read_tool_input,
)

_Item = TypeVar("_Item")

_OURS = frozenset({"model", "max_tokens", "system", "tools", "messages", "stream"})
"""Fields of the body that a request says elsewhere than in its params."""


class MessagesBodyWriter:
    """Writes the bodies of one provider's requests, one at a time."""

    def __init__(self) -> None:
        self._messages = ListMemo[Message, bytes](_message_bytes)
        self._tools = ListMemo[JsonObject, bytes](write_json)

    def write(self, request: ModelRequest, *, streams: bool) -> bytes:
        """The whole body. A breakpoint that stands nowhere is an `InputError`."""
        frame = request.frame
        _check_params(frame)
        fields: dict[str, bytes | list[bytes]] = {
            "model": write_json(frame.model),
            "max_tokens": write_json(frame.max_tokens),
        }
        fields |= {key: write_json(value) for key, value in frame.params.items()}
        system = _system(frame, _at(request, "system"))
        if system is not None:
            fields["system"] = system
        tools = self._marked_tools(frame, _at(request, "tools"))
        if tools:
            fields["tools"] = tools
        fields["messages"] = self._marked_messages(request)
        if streams:
            fields["stream"] = b"true"
        return join_object(fields)

    def _marked_tools(self, frame: RequestParams, marks: Sequence[Breakpoint]) -> list[bytes]:
        written = self._tools.of(frame.tools)
        for mark in marks:
            tool = _item(frame.tools, mark.index, f"tools[{mark.index}]")
            written[mark.index] = write_json(_marked(tool, mark.ttl))
        return written

    def _marked_messages(self, request: ModelRequest) -> list[bytes]:
        messages = request.messages
        written = self._messages.of(messages)
        blocks: dict[int, list[Json]] = {}
        for mark in _at(request, "messages"):
            message = _item(messages, mark.index, f"messages[{mark.index}]")
            wires = blocks.setdefault(mark.index, _blocks(message))
            place = f"messages[{mark.index}].content[{mark.block}]"
            block = _item(wires, mark.block, place)
            wires[mark.block] = _marked(_cacheable(block, place), mark.ttl)
        for at, wires in blocks.items():
            wire = {**write_message(messages[at]), "content": tuple(wires)}
            written[at] = write_json(freeze(wire))
        return written


def _message_bytes(message: Message) -> bytes:
    return write_json(freeze(write_message(message)))


def _blocks(message: Message) -> list[Json]:
    """The blocks of a message on the wire; text alone is one block, which the cache takes for the same."""
    content = write_message(message)["content"]
    wires = [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[object]", content)
    return [freeze(wire) for wire in wires]


def _system(frame: RequestParams, marks: Sequence[Breakpoint]) -> bytes | None:
    system = frame.system
    if not system:
        for mark in marks:
            raise _nowhere(f"system[{mark.index}]", 0)
        return None
    if isinstance(system, str):
        # Always a list: a breakpoint that comes or goes does not change its form.
        system = (JsonObject({"type": "text", "text": system}),)
    parts: list[Json] = list(system)
    for mark in marks:
        place = f"system[{mark.index}]"
        parts[mark.index] = _marked(_cacheable(_item(parts, mark.index, place), place), mark.ttl)
    return write_json(tuple(parts))


def _marked(wire: Json, ttl: timedelta) -> Json:
    """A copy with a breakpoint. One that the caller put there stays as it is."""
    if not isinstance(wire, JsonObject) or wire.get(CACHE_CONTROL) is not None:
        return wire
    name = next((name for name, value in TTLS.items() if value == ttl), None)
    if name is None:
        raise InputError(f"a breakpoint cannot last {ttl}; expected one of {', '.join(TTLS)}")
    return JsonObject({**wire, CACHE_CONTROL: JsonObject({"type": "ephemeral", "ttl": name})})


def _cacheable(wire: Json, place: str) -> Json:
    kind = wire.get("type") if isinstance(wire, JsonObject) else None
    if kind in THINKING_TYPES:
        raise InputError(f"{place} is a {kind} block, which takes no breakpoint; mark a block beside it")
    return wire


def _item(items: Sequence[_Item], index: int, place: str) -> _Item:
    if not 0 <= index < len(items):
        raise _nowhere(place, len(items))
    return items[index]


def _nowhere(place: str, count: int) -> InputError:
    return InputError(f"a breakpoint is set at {place}, where there is nothing to mark: there are {count}")


def _at(request: ModelRequest, level: str) -> list[Breakpoint]:
    return [mark for mark in request.breakpoints if mark.level == level]


def _check_params(frame: RequestParams) -> None:
    for key in frame.params:
        if key in _OURS:
            raise InputError(f"params holds {key!r}, which a request says in a field of its own; take it out")


# Fields of an answer that have no name here are kept as they came.

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
        """Add one event of the stream, and return the deltas in it."""
        wire = _object(freeze(event))
        match wire.get("type"):
            case "message_start":
                if self._message:
                    # An endpoint that begins again and again would put every limit off.
                    raise ReplyBroken("the answer began twice; check the address of the provider")
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
            yield from self._read_deltas(grows, text)
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
            citations = fields.get("citations")
            fields["citations"] = (*(citations if isinstance(citations, tuple) else ()), *self._citations)
        return JsonObject(fields)

    def _read_deltas(self, name: str, text: str) -> Iterator[Delta]:
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
