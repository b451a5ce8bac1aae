from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.canonical import canonical_bytes
from sevenfold.core.errors import WireError
from sevenfold.core.json import MAX_NESTING, JsonObject, freeze, read_json, write_json
from sevenfold.core.messages import (
    MAX_MESSAGE_NESTING,
    Block,
    Compaction,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
    read_block,
    read_message,
    write_block,
    write_message,
)
from tests.core import wires

SOURCE = {"type": "base64", "media_type": "image/png", "data": "aGk="}
FROZEN_SOURCE = JsonObject({"type": "base64", "media_type": "image/png", "data": "aGk="})

READ: list[tuple[wires.Wire, Block]] = [
    ({"type": "text", "text": "hi"}, Text("hi")),
    (
        {"type": "text", "text": "hi", "citations": None},
        Text("hi", JsonObject({"citations": None})),
    ),
    ({"type": "thinking", "thinking": "hm", "signature": "s"}, Thinking("hm", "s")),
    ({"type": "thinking", "thinking": "hm"}, Thinking("hm")),
    ({"type": "redacted_thinking", "data": "x"}, RedactedThinking("x")),
    (
        {"type": "tool_use", "id": "t", "name": "Read", "input": {"path": "a"}},
        ToolUse(ToolUseId("t"), "Read", JsonObject({"path": "a"})),
    ),
    ({"type": "tool_result", "tool_use_id": "t"}, ToolResult(ToolUseId("t"), None)),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": "ok", "is_error": False},
        ToolResult(ToolUseId("t"), "ok", False),
    ),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": SOURCE}]},
        ToolResult(ToolUseId("t"), (Image(FROZEN_SOURCE),)),
    ),
    ({"type": "image", "source": SOURCE}, Image(FROZEN_SOURCE)),
    (
        {"type": "document", "source": SOURCE, "title": "A"},
        Document(FROZEN_SOURCE, JsonObject({"title": "A"})),
    ),
    ({"type": "compaction", "content": "so far"}, Compaction("so far")),
    ({"type": "compaction", "content": None}, Compaction(None)),
    (
        {"type": "server_tool_use", "id": "s"},
        Opaque(JsonObject({"type": "server_tool_use", "id": "s"})),
    ),
    ({"type": "text", "text": 7}, Opaque(JsonObject({"type": "text", "text": 7}))),
]
NULLS: list[wires.Wire] = [
    {"type": "thinking", "thinking": "hm", "signature": None},
    {"type": "tool_result", "tool_use_id": "t", "content": None},
    {"type": "tool_result", "tool_use_id": "t", "content": "x", "is_error": None},
]


def round_trip(text: str | bytes) -> bytes:
    return canonical_bytes(write_message(read_message(read_json(text))))


@given(st.data(), wires.messages)
def test_any_message_in_any_spelling_survives_byte_for_byte(data: st.DataObject, wire: wires.Wire) -> None:
    text = data.draw(wires.spelled(wire))
    sent = canonical_bytes(read_json(text))
    assert round_trip(text) == sent
    assert round_trip(wires.as_bytes(text)) == sent
    assert round_trip(sent) == sent


@given(wires.messages)
def test_a_message_read_from_its_own_wire_form_is_equal(wire: wires.Wire) -> None:
    message = read_message(wire)
    assert read_message(write_message(message)) == message


@given(wires.blocks)
def test_any_block_survives_byte_for_byte(wire: wires.Wire) -> None:
    assert canonical_bytes(write_block(read_block(wire))) == canonical_bytes(wire)


@given(wires.right_blocks)
def test_a_block_as_the_api_writes_it_is_understood(wire: wires.Wire) -> None:
    understood = not isinstance(read_block(wire), Opaque)
    assert understood == (wire["type"] in wires.KNOWN)


@given(wires.messages)
def test_writing_shares_nothing_with_the_value(wire: wires.Wire) -> None:
    message = read_message(wire)
    before = canonical_bytes(write_message(message))
    spoil(write_message(message))
    assert canonical_bytes(write_message(message)) == before


def spoil(wire: object) -> None:
    """Change every list and dict in place."""
    if isinstance(wire, dict):
        for item in wire.values():  # pyright: ignore[reportUnknownVariableType]
            spoil(item)  # pyright: ignore[reportUnknownArgumentType]
        wire.clear()
    elif isinstance(wire, list):
        for item in wire:  # pyright: ignore[reportUnknownVariableType]
            spoil(item)  # pyright: ignore[reportUnknownArgumentType]
        wire.clear()


@pytest.mark.parametrize(("wire", "block"), READ, ids=lambda part: str(part)[:50])
def test_a_block_is_read_as_its_class_and_written_back(wire: wires.Wire, block: Block) -> None:
    assert read_block(wire) == block
    assert write_block(block) == wire


@pytest.mark.parametrize("wire", NULLS, ids=lambda wire: list(wire)[-1])
def test_an_explicit_null_is_understood_and_kept(wire: wires.Wire) -> None:
    block = read_block(wire)
    assert not isinstance(block, Opaque)
    assert write_block(block) == wire
    absent = {key: value for key, value in wire.items() if value is not None}
    assert block != read_block(absent)


def test_a_field_that_was_null_takes_a_new_value() -> None:
    block = read_block({"type": "tool_result", "tool_use_id": "t", "content": None})
    assert isinstance(block, ToolResult)
    assert write_block(replace(block, content="found"))["content"] == "found"


@pytest.mark.parametrize("content", [["text"], [1], [[{"type": "text", "text": "a"}]], 7, {"type": "text"}])
def test_a_tool_result_of_no_known_shape_is_carried_untouched(content: object) -> None:
    wire = {"type": "tool_result", "tool_use_id": "t", "content": content}
    assert read_block(wire) == Opaque(JsonObject({key: freeze(value) for key, value in wire.items()}))
    assert write_block(read_block(wire)) == wire


def test_fields_beside_the_message_are_kept() -> None:
    wire = {"id": "msg_1", "role": "assistant", "content": "hi", "usage": {"output_tokens": 3}}
    message = read_message(wire)
    assert message == Message("assistant", "hi", JsonObject({"id": "msg_1", "usage": freeze(wire["usage"])}))
    assert write_message(message) == wire


@pytest.mark.parametrize(
    ("wire", "told"),
    [
        ([], "message must be an object"),
        ({"content": "a"}, "role None"),
        ({"role": "robot", "content": "a"}, "'robot'.*user, assistant, system"),
        ({"role": 1, "content": "a"}, "role 1"),
        ({"role": "user"}, "content must be text or a list"),
        ({"role": "user", "content": None}, "NoneType"),
        ({"role": "user", "content": {"type": "text"}}, "content must be text or a list"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, "b"]}, r"content\[1\].*str"),
    ],
)
def test_what_is_no_message_is_refused_and_the_place_is_told(wire: object, told: str) -> None:
    with pytest.raises(WireError, match=told):
        read_message(wire)


@pytest.mark.parametrize("wire", ["text", 7, None, ["a"]])
def test_what_is_no_block_is_refused(wire: object) -> None:
    with pytest.raises(WireError, match="object"):
        read_block(wire)


def deep_message(levels: int) -> bytes:
    """A message `levels` deep, by way of a tool's input."""
    inner = "[" * (levels - 4) + "]" * (levels - 4)
    block = f'{{"type":"tool_use","id":"t","name":"n","input":{{"a":{inner}}}}}'
    return f'{{"role":"assistant","content":[{block}]}}'.encode()


def test_a_message_as_deep_as_allowed_is_still_readable_inside_a_record() -> None:
    message = read_message(read_json(deep_message(MAX_MESSAGE_NESTING)))
    record: object = write_message(message)
    for _ in range(MAX_NESTING - MAX_MESSAGE_NESTING):
        record = {"held": record}
    assert read_json(write_json(freeze(record))) == freeze(record)


def test_a_message_deeper_than_a_record_could_hold_is_refused() -> None:
    with pytest.raises(WireError, match=str(MAX_MESSAGE_NESTING)):
        read_message(read_json(deep_message(MAX_MESSAGE_NESTING + 1)))
