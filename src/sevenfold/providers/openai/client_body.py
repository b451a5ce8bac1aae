"""Writes the view of a client's conversation for OpenAI's APIs, in the client's own words.

What no layer changed is written as the client wrote it. A message that a layer changed is written from its
blocks, of which those that are still the client's keep their form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from sevenfold.core.json import Json, JsonObject, write_json
from sevenfold.core.messages import Block, Message, Opaque, Text, ToolResult
from sevenfold.core.requests import ModelRequest
from sevenfold.providers.openai.chat_wire import write_chat_messages
from sevenfold.providers.openai.client_request import (
    LIMIT_FIELDS,
    LIST_FIELDS,
    REASONING_BLOCK,
    ClientRequest,
    OpenAIApi,
    SourceItem,
    SourceMessage,
)
from sevenfold.providers.openai.request_parts import (
    RESPONSES_NAMES,
    join_parts,
    list_result_parts,
    make_chat_names,
    write_params,
)
from sevenfold.providers.openai.responses_wire import write_input_items
from sevenfold.providers.provider import join_object

_ANSWER_PARAMS = ("response_format", "text", "n", "stream_options", "background")
"""Fields about the form of the client's answer, which a fork does not share."""
INCLUDE_USAGE = JsonObject({"include_usage": True})


@dataclass(slots=True, kw_only=True)
class ClientBodyWriter:
    """Writes the requests of one conversation: the client's own and those of forks."""

    api: OpenAIApi
    limit_field: str = ""
    """What a chat calls the limit of an answer, where the client names none."""
    _sources: dict[int, SourceMessage] = field(default_factory=dict[int, SourceMessage])
    _equals: dict[Message, SourceMessage] = field(default_factory=dict[Message, SourceMessage])
    _items: dict[int, SourceItem] = field(default_factory=dict[int, SourceItem])
    _results: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    _opening: tuple[JsonObject, ...] = ()

    def learn(self, request: ClientRequest) -> None:
        """Remember how the client wrote its messages."""
        self._opening = request.opening
        named = [name for name in LIMIT_FIELDS[self.api] if request.body.get(name) is not None]
        self.limit_field = named[0] if named else self.limit_field or LIMIT_FIELDS[self.api][0]
        for source in request.sources:
            if id(source.message) in self._sources:
                continue
            self._sources[id(source.message)] = source
            self._equals[source.message] = source
            for item in source.items:
                self._items |= {id(block): item for block in item.blocks}
                self._results |= {
                    block.tool_use_id: item.wire for block in item.blocks if isinstance(block, ToolResult)
                }

    def write_view(
        self, view: ModelRequest, request: ClientRequest, *, asks_usage: bool = False
    ) -> bytes | None:
        """The client's request with this view for its list; None: it is the client's own list.

        `asks_usage` makes a streamed chat report what it used.
        """
        found = [self._find(message) for message in view.messages]
        is_own = len(found) == len(request.sources) and all(
            one is not None and _same_items(one, other)
            for one, other in zip(found, request.sources, strict=True)
        )
        if is_own and not asks_usage:
            return None
        fields: dict[str, bytes | list[bytes]] = {
            key: write_json(value) for key, value in request.body.items() if key != LIST_FIELDS[self.api]
        }
        if asks_usage:
            given = request.body.get("stream_options")
            options = {**(given if isinstance(given, JsonObject) else {}), **INCLUDE_USAGE}
            fields["stream_options"] = write_json(JsonObject(options))
        fields[LIST_FIELDS[self.api]] = [write_json(item) for item in self._list(view.messages)]
        return join_object(fields)

    def write(self, request: ModelRequest, *, streams: bool) -> bytes:
        """A request of a fork: the client's opening, tools and parameters as they were."""
        frame = request.frame
        names = make_chat_names(self.limit_field) if self.api == "chat" else RESPONSES_NAMES
        params = frame.params.without(*_ANSWER_PARAMS)
        if _forces_tool(params.get("tool_choice")):
            params = params.without("tool_choice")
        plain: dict[str, Json] = {"model": frame.model, self.limit_field: frame.max_tokens}
        plain |= write_params(params, names)
        if frame.tools:
            plain["tools"] = frame.tools
        if streams:
            plain["stream"] = True
            plain |= {"stream_options": INCLUDE_USAGE} if self.api == "chat" else {}
        if self.api == "responses":
            texts = [part.get("text") for part in frame.system] if isinstance(frame.system, tuple) else []
            system = frame.system if isinstance(frame.system, str) else "\n\n".join(map(str, texts))
            plain |= {"store": False} | ({"instructions": system} if system else {})
        fields: dict[str, bytes | list[bytes]] = {key: write_json(value) for key, value in plain.items()}
        fields[LIST_FIELDS[self.api]] = [write_json(item) for item in self._list(request.messages)]
        return join_object(fields)

    def _list(self, messages: Iterable[Message]) -> Iterator[JsonObject]:
        yield from self._opening
        for message in self._joined(messages) if self.api == "chat" else messages:
            source = self._find(message)
            if source is not None:
                yield from (item.wire for item in source.items)
            elif self.api == "chat":
                yield from self._write_chat(message)
            else:
                yield from self._write_items(message)

    def _find(self, message: Message) -> SourceMessage | None:
        return self._sources.get(id(message)) or self._equals.get(message)

    def _joined(self, messages: Iterable[Message]) -> Iterator[Message]:
        """What a layer added beside a user's message joins it: many models take nothing but turns."""
        last: Message | None = None
        for message in messages:
            is_one = last is not None and last.role == message.role == "user"
            if is_one and last is not None and (self._find(last) is None or self._find(message) is None):
                last = Message("user", (*last.blocks, *message.blocks))
                continue
            if last is not None:
                yield last
            last = message
        if last is not None:
            yield last

    def _write_chat(self, message: Message) -> Iterator[JsonObject]:
        if message.role != "user":
            yield from _write_spoken(message)
            return
        for block in message.blocks:
            if isinstance(block, ToolResult):
                yield self._write_result(block, "content", join_parts(list_result_parts(block)))
        rest = [block for block in message.blocks if not isinstance(block, ToolResult)]
        if rest and all(isinstance(block, Text) for block in rest):
            yield from write_chat_messages(Message("user", tuple(rest)))
        elif rest:
            parts = [part for block in rest for part in self._write_parts(block)]
            yield JsonObject({"role": "user", "content": tuple(parts)})

    def _write_parts(self, block: Block) -> Iterator[Json]:
        """A part of a user's message, as the client wrote it where it did."""
        item = self._items.get(id(block))
        content = item.wire.get("content") if item is not None else None
        if item is not None and isinstance(content, tuple) and len(content) == len(item.blocks):
            at = next(index for index, other in enumerate(item.blocks) if other is block)
            yield content[at]
            return
        for wire in write_chat_messages(Message("user", (block,))):
            said = wire.get("content")
            yield from said if isinstance(said, tuple) else (JsonObject({"type": "text", "text": said}),)

    def _write_items(self, message: Message) -> Iterator[JsonObject]:
        blocks = list(message.blocks)
        while blocks:
            item = self._items.get(id(blocks[0]))
            size = len(item.blocks) if item is not None else 1
            is_whole = item is not None and all(
                one is other for one, other in zip(blocks[:size], item.blocks, strict=False)
            )
            if item is not None and is_whole and len(blocks) >= size:
                yield item.wire
                del blocks[:size]
                continue
            block = blocks.pop(0)
            if isinstance(block, ToolResult):
                yield self._write_result(block, "output", join_parts(list_result_parts(block)))
            else:
                yield from write_input_items(Message(message.role, (block,)))

    def _write_result(self, block: ToolResult, name: str, text: str) -> JsonObject:
        """A result in the client's words, with other content."""
        known = self._items.get(id(block))
        if known is not None:
            return known.wire
        wire = self._results.get(block.tool_use_id)
        if wire is not None:
            return JsonObject({**wire, name: text})
        if self.api == "chat":
            return JsonObject({"role": "tool", "tool_call_id": block.tool_use_id, "content": text})
        return JsonObject({"type": "function_call_output", "call_id": block.tool_use_id, "output": text})


def _write_spoken(message: Message) -> Iterator[JsonObject]:
    """A message of the assistant or the system, with its reasoning in the field that it came in."""
    reasons = [
        block for block in message.blocks if isinstance(block, Opaque) and block.type == REASONING_BLOCK
    ]
    rest = replace(message, content=tuple(block for block in message.blocks if block not in reasons))
    for wire in write_chat_messages(rest):
        fields = {key: value for block in reasons for key, value in block.wire.without("type").items()}
        yield JsonObject({**wire, **fields})


def _same_items(one: SourceMessage, other: SourceMessage) -> bool:
    return one is other or [item.wire for item in one.items] == [item.wire for item in other.items]


def _forces_tool(choice: Json) -> bool:
    if isinstance(choice, JsonObject):
        return choice.get("type") in ("function", "custom", "allowed_tools", "any", "tool")
    return choice == "required"
