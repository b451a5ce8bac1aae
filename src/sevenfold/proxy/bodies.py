"""The body of a request as the layers see it: the same reading and the same few edits for three wire formats.

An edit replaces the content of a tool result, adds a text behind a message, leaves out messages at the
beginning, or adds a breakpoint. Nothing else can be changed: tools, system prompt, ids, order, thinking and
encrypted content have no operation here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.errors import WireError
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import Block, Message, Opaque, Text, ToolResult, ToolUse, ToolUseId, read_message
from sevenfold.core.requests import MAX_BREAKPOINTS
from sevenfold.layers.microcompact.server_clearing import CONTEXT_MANAGEMENT_PARAM
from sevenfold.proxy.requests import (
    Fields,
    KeptMessage,
    RequestFacts,
    WireFormat,
    is_instruction,
    list_kept,
    list_said,
    split_moving,
)

EPHEMERAL: Fields = {"type": "ephemeral"}

_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_MARKED_BLOCKS = frozenset({"text", "tool_result", "tool_use", "image", "document"})


class UnfitBody(Exception):
    """A body that can be forwarded, but not written again as it came."""


@dataclass(frozen=True, slots=True)
class BodyMessage:
    """A message of the client's, and what it is known by."""

    at: int
    """Its place in the body."""
    key: str
    """Its digest, and how many equal ones stand before it."""
    role: str
    """`model` for everything that the model said."""


@dataclass(frozen=True, slots=True)
class BodyResult:
    """A tool result in a body."""

    entry: BodyMessage
    block: int
    """Its place among the blocks of the message; -1: it is the message itself."""
    value: ToolResult

    @property
    def key(self) -> str:
        """Ids of tool uses may come again in another message."""
        return f"{self.entry.key}/{self.value.tool_use_id}"


@dataclass(slots=True, kw_only=True)
class RequestBody:
    """A body that was parsed, and the edits that it is to be written with."""

    wire: WireFormat
    fields: Fields
    moving: str = ""
    """The tag of a block that is put behind the last message; empty: every message stays as it is."""
    messages: list[Any] = field(default_factory=list[Any])
    entries: list[BodyMessage] = field(default_factory=list[BodyMessage])
    """Those that say something, without the system prompt."""
    keys: tuple[str, ...] = ()
    """Of the entries."""
    parsed: dict[int, Message] = field(default_factory=dict[int, Message])
    """Messages that were read as values already, by their place."""
    is_changed: bool = False
    _texts: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    _joined: dict[int, Any] = field(default_factory=dict[int, Any])
    """Messages that a moving block splits in two, by the place of the second part."""
    _dropped: int = 0
    _head: list[Any] = field(default_factory=list[Any])
    _moved: str = ""

    @classmethod
    def read(cls, facts: RequestFacts, fields: Fields, *, tag: str = "", moves: bool = False) -> RequestBody:
        """`tag`: of the block that an agent moves; `moves`: whether it may be put behind the last message."""
        wire, said = facts.wire, list_said(facts.wire, fields)
        body = cls(wire=wire, fields=fields, moving=tag if moves else "", messages=list(said))
        kept, seen = list_kept(wire, said, tag), Counter[str]()
        for one, digest in zip(kept, facts.messages, strict=True):
            body.entries.append(BodyMessage(one.at, f"{digest}.{seen[digest]}", _role_of(one.message)))
            seen[digest] += 1
            if one.is_joined:
                body._joined[one.at] = one.message
        body.keys = tuple(entry.key for entry in body.entries)
        if body.moving:
            body._move_block(kept)
        return body

    @property
    def fresh(self) -> list[BodyMessage]:
        """What stands behind the last words of the model."""
        last = max((at for at, entry in enumerate(self.entries) if entry.role == "model"), default=-1)
        return self.entries[last + 1 :]

    @property
    def system_text(self) -> str:
        """The system prompt, wherever this format has it."""
        named = self.fields.get("system", self.fields.get("instructions"))
        said = [message for message in self.messages if is_instruction(self.wire, message)]
        return "\n".join(
            [*_texts_of(named), *(text for one in said for text in _texts_of(one.get("content")))]
        )

    @property
    def tools(self) -> tuple[JsonObject, ...]:
        return tuple(freeze_object(_fields(tool)) for tool in _blocks(self.fields.get("tools")))

    def read_edits(self) -> JsonObject:
        """What the client itself tells the provider to clear."""
        found = _fields(self.fields.get(CONTEXT_MANAGEMENT_PARAM))
        return freeze_object({CONTEXT_MANAGEMENT_PARAM: found} if found else {})

    @property
    def tool_names(self) -> list[str]:
        declared = map(_fields, _blocks(self.fields.get("tools")))
        return [str(tool.get("name") or _fields(tool.get("function")).get("name") or "") for tool in declared]

    def results(self, entries: Iterable[BodyMessage]) -> Iterator[BodyResult]:
        for entry in entries:
            known = self.parsed.get(entry.at) or self.read_message(entry)
            for at, block in enumerate(known.blocks):
                if isinstance(block, ToolResult):
                    place = at if self.wire == "messages" else -1
                    yield BodyResult(entry, place, block)

    def read_message(self, entry: BodyMessage) -> Message:
        return read_entry(self.wire, self._joined.get(entry.at, self.messages[entry.at]))

    # Edits.

    def replace_result(self, result: BodyResult, text: str) -> None:
        """Put this text in place of what a tool returned."""
        message = dict(_fields(self.messages[result.entry.at]))
        if result.block < 0:
            message["output" if self.wire == "responses" else "content"] = text
        else:
            blocks = list(cast("list[Any]", message["content"]))
            blocks[result.block] = {**blocks[result.block], "content": text}
            message["content"] = blocks
        self.messages[result.entry.at] = message
        self.is_changed = True

    def append_text(self, at: int, text: str) -> None:
        """Add a text behind a message of the user's side."""
        self._texts.setdefault(at, []).append(text)
        self.is_changed = True

    def replace_beginning(self, last: int, head: str) -> None:
        """Leave out all messages up to this one, and begin with this text."""
        self._dropped, self._head = last + 1, [_user_message(self.wire, head)]
        self.is_changed = True

    def set_field(self, name: str, value: Any) -> None:
        self.fields[name] = value
        self.is_changed = True

    @property
    def breakpoints(self) -> int:
        """How many the request uses; a field of the request itself is one too."""
        marked = [self.fields, *_blocks(self.fields.get("system")), *_blocks(self.fields.get("tools"))]
        marked += [block for message in self.messages for block in _blocks(_fields(message).get("content"))]
        return sum(bool(_fields(one).get(CACHE_CONTROL)) for one in marked)

    @property
    def is_tail_marked(self) -> bool:
        """Whether what the last message says is cached up to there."""
        if self.fields.get(CACHE_CONTROL) or not self.entries:
            return True
        blocks = _blocks(_fields(self.messages[self.entries[-1].at]).get("content"))
        return any(_fields(block).get(CACHE_CONTROL) for block in blocks)

    def mark(self, at: int) -> bool:
        """Add a breakpoint behind a message; False where there can be none."""
        message = dict(_fields(self.messages[at]))
        content = message.get("content")
        if isinstance(content, str) and content:
            message["content"] = [{"type": "text", "text": content, CACHE_CONTROL: EPHEMERAL}]
        else:
            blocks = list(_blocks(content))
            if not blocks or self.breakpoints >= MAX_BREAKPOINTS or not _can_mark(_fields(blocks[-1])):
                return False
            blocks[-1] = {**blocks[-1], CACHE_CONTROL: EPHEMERAL}
            message["content"] = blocks
        self.messages[at] = message
        self.is_changed = True
        return True

    def write(self) -> bytes:
        """The body with all edits. The order of keys stays."""
        written: list[Any] = []
        for at, message in enumerate(self.messages):
            if self._head and at == self._dropped:
                written += self._head
            if (at < self._dropped and not is_instruction(self.wire, message)) or message is None:
                continue
            written += _with_texts(self.wire, message, self._texts.get(at, []))
        if self._moved:
            last = written.pop()
            written += _with_texts(self.wire, last, [self._moved])
        fields = {**self.fields, "input" if self.wire == "responses" else "messages": written}
        try:
            return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except UnicodeEncodeError:  # a lone surrogate has no UTF-8, only its escape
            return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode()

    def _move_block(self, kept: Iterable[KeptMessage]) -> None:
        blocks = [block for message in self.messages if (block := split_moving(message, self.moving).block)]
        if blocks:
            left = {one.at: one.message for one in kept}
            self.messages = [
                message if is_instruction(self.wire, message) else left.get(at)
                for at, message in enumerate(self.messages)
            ]
            self._moved, self.is_changed = blocks[-1], True


def parse_body(data: bytes) -> Fields:
    """A body that can be written again without a loss; `UnfitBody` says why it cannot."""

    def read_pairs(pairs: list[tuple[str, Any]]) -> Fields:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise UnfitBody("a key stands in it twice")
        return found

    def refuse(name: str) -> Any:
        raise UnfitBody(f"{name} is no JSON")

    try:
        value = json.loads(data, object_pairs_hook=read_pairs, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise UnfitBody("it is no JSON") from error
    if not isinstance(value, dict):
        raise UnfitBody("it is no JSON object")
    return cast("Fields", value)


def read_entry(wire: WireFormat, message: Any) -> Message:
    """A message of any wire format as the layers know it; what cannot be read says nothing."""
    fields = _fields(message)
    if wire == "messages":
        try:
            return read_message(fields)
        except WireError:
            return Message("assistant" if fields.get("role") == "assistant" else "user", ())
    output = _read_output(fields)
    if output is not None:
        return Message("user", (output,))
    calls = [fields] if fields.get("type") in _CALLS else _blocks(fields.get("tool_calls"))
    uses: list[Block] = [_read_call(_fields(call)) for call in calls]
    texts: list[Block] = [Text(text) for text in _texts_of(fields.get("content"))]
    role = str(fields.get("role") or "")
    if role in ("system", "developer"):
        return Message("system", tuple(texts))
    return Message("user" if role == "user" else "assistant", (*texts, *uses))


def _read_output(fields: Fields) -> ToolResult | None:
    if fields.get("role") == "tool":
        use, content = fields.get("tool_call_id"), fields.get("content")
    elif fields.get("type") in _OUTPUTS:
        use, content = fields.get("call_id"), fields.get("output")
    else:
        return None
    if isinstance(content, list):
        parts = [_fields(part) for part in cast("list[Any]", content)]
        blocks: list[Block] = [
            Text(part["text"]) if isinstance(part.get("text"), str) else Opaque(freeze_object(part))
            for part in parts
        ]
        return ToolResult(ToolUseId(str(use)), tuple(blocks))
    return ToolResult(ToolUseId(str(use)), content if isinstance(content, str) else "")


def _read_call(call: Fields) -> ToolUse:
    """A call of Chat Completions or of Responses."""
    made = _fields(call.get("function")) or call
    given = made.get("arguments", made.get("input", made.get("action")))
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        parsed = {"input": given}
    found = freeze_object(cast("Fields", parsed)) if isinstance(parsed, dict) else JsonObject()
    return ToolUse(
        ToolUseId(str(call.get("call_id") or call.get("id"))), str(made.get("name") or "shell"), found
    )


def _texts_of(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content] if content else []
    parts = (_fields(part).get("text") for part in _blocks(content))
    return [text for text in parts if isinstance(text, str)]


def _with_texts(wire: WireFormat, message: Any, texts: list[str]) -> list[Any]:
    """A message with texts behind it: in it where it is the user's, as a message of the user otherwise."""
    if not texts:
        return [message]
    fields = _fields(message)
    if wire == "responses" or fields.get("role") != "user":
        return [message, *(_user_message(wire, text) for text in texts)]
    content = fields.get("content")
    if isinstance(content, str) and wire == "chat":  # servers that copy the API may take texts alone
        return [{**fields, "content": "\n\n".join([content, *texts])}]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(_blocks(content))
    blocks += [{"type": "text", "text": text} for text in texts]
    return [{**fields, "content": blocks}]


def _user_message(wire: WireFormat, text: str) -> Fields:
    if wire == "responses":
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"role": "user", "content": text}


def _can_mark(block: Fields) -> bool:
    if block.get("type") not in _MARKED_BLOCKS or block.get(CACHE_CONTROL):
        return False
    return block.get("type") != "text" or bool(block.get("text"))


def _role_of(message: Any) -> str:
    fields = _fields(message)
    kind, role = fields.get("type"), fields.get("role")
    if role == "assistant" or kind in _CALLS or kind == "reasoning":
        return "model"
    return "tool" if role == "tool" or kind in _OUTPUTS else str(role or "user")


def _blocks(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _fields(value: Any) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}
