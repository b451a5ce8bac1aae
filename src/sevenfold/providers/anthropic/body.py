"""A request as the body that the Messages API takes.

Everything is written to bytes once. A message that was at the same place of the last request is the same
object, and its bytes are used again: a long history costs a comparison of pointers a message. No marker, SDK
or middleware can change what is kept, because bytes cannot be changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar, cast

from sevenfold.core.cache.breakpoints import TTLS
from sevenfold.core.cache.prompt_blocks import THINKING_TYPES
from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.errors import InputError
from sevenfold.core.json import Json, JsonObject, freeze, write_json
from sevenfold.core.messages import Message
from sevenfold.core.requests import Breakpoint, ModelRequest, RequestParams
from sevenfold.core.wire import write_message
from sevenfold.providers.json_bytes import join_object
from sevenfold.providers.memo import ListMemo

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
        if not marks:
            return write_json(system)
        system = (JsonObject({"type": "text", "text": system}),)
    parts: list[Json] = list(system)
    for mark in marks:
        place = f"system[{mark.index}]"
        parts[mark.index] = _marked(_cacheable(_item(parts, mark.index, place), place), mark.ttl)
    return write_json(tuple(parts))


def _marked(wire: Json, ttl: timedelta) -> Json:
    """A copy with a marker. One that the caller put there stays as it is."""
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
