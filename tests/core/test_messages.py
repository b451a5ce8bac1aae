from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import pytest
from hypothesis import given

from sevenfold.core.json import EMPTY_OBJECT, JsonObject, freeze
from sevenfold.core.messages import (
    THINKING_PLACEHOLDER,
    Block,
    Compaction,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
    find_breakpoint,
    has_user_text,
    is_breakpoint_allowed,
    is_same_message,
    read_block,
    read_message,
    without_breakpoints,
    without_message_compaction,
    without_message_thinking,
)
from tests.core import wires


@given(wires.blocks)
def test_no_field_of_a_block_can_be_changed(wire: wires.Wire) -> None:
    block = read_block(wire)
    for field in fields(block):
        with pytest.raises(FrozenInstanceError):
            setattr(block, field.name, None)


@given(wires.messages)
def test_messages_of_the_same_content_are_one_value(wire: wires.Wire) -> None:
    one, other = read_message(wire), read_message(wire)
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1


def test_a_change_gives_another_value_and_leaves_the_first() -> None:
    one = Message("user", (Text("a"),))
    other = replace(one, content=(Text("b"),))
    assert one != other
    assert one.content == (Text("a"),)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, True), (1, 1.0), (0, False), (0.0, -0.0)],
    ids=["true", "float", "false", "minus zero"],
)
def test_tool_input_that_differs_on_the_wire_makes_different_blocks(left: float, right: float) -> None:
    one, other = (ToolUse(ToolUseId("t"), "n", JsonObject({"x": (value,)})) for value in (left, right))
    assert one != other


def test_text_alone_counts_as_one_block_and_stays_text() -> None:
    assert Message("user", "hello").blocks == (Text("hello"),)
    assert Message("user", "hello") != Message("user", (Text("hello"),))
    assert Message("user", ()).blocks == ()


def test_an_absent_result_is_not_an_empty_one() -> None:
    assert ToolResult(ToolUseId("t"), None) != ToolResult(ToolUseId("t"), "")


@pytest.mark.parametrize(("wire", "kind"), [({"type": "new"}, "new"), ({"type": 7}, ""), ({}, "")])
def test_an_opaque_block_tells_its_type_if_it_has_one(wire: dict[str, str | int], kind: str) -> None:
    assert Opaque(JsonObject(wire)).type == kind


RESULT = ToolResult(ToolUseId("t"), "done")
THOUGHT, HIDDEN = Thinking("Hm.", "signed"), RedactedThinking("x")


@pytest.mark.parametrize(
    ("block", "is_allowed"),
    [
        *((block, False) for block in (THOUGHT, HIDDEN, Text(""))),
        *((block, True) for block in (Text("a"), RESULT, Image(EMPTY_OBJECT), Compaction("so far"))),
    ],
)
def test_thinking_and_empty_texts_take_no_breakpoint(block: Block, is_allowed: bool) -> None:
    assert is_breakpoint_allowed(block) is is_allowed


@pytest.mark.parametrize(
    ("message", "has_text"),
    [
        (Message("user", "words"), True),
        (Message("user", (RESULT, Text("words"))), True),
        (Message("user", (RESULT, RESULT)), False),
        (Message("user", ()), False),
        (Message("assistant", "words"), False),
    ],
)
def test_a_user_who_hands_in_results_alone_says_nothing(message: Message, has_text: bool) -> None:
    assert has_user_text(message) is has_text


def test_thinking_is_taken_out_and_what_was_nothing_else_says_so() -> None:
    more = JsonObject({"id": "msg_1"})
    thought = Message("assistant", (THOUGHT, Text("Yes."), HIDDEN), more)
    assert without_message_thinking(thought) == Message("assistant", (Text("Yes."),), more)
    alone = without_message_thinking(Message("assistant", (THOUGHT, HIDDEN)))
    assert alone.content == (Text(THINKING_PLACEHOLDER),)
    for message in (Message("user", "words"), Message("assistant", (Text("a"), RESULT)), Message("user", ())):
        assert without_message_thinking(message) is message


def test_a_compaction_block_becomes_the_users_text() -> None:
    summed = Message("assistant", (Compaction("so far"), Text("Yes."), Compaction(None)))
    assert without_message_compaction(summed) == Message(
        "user", (Text("so far"), Text("Yes."), Text(THINKING_PLACEHOLDER))
    )
    for message in (Message("user", "words"), Message("assistant", (Text("a"), THOUGHT))):
        assert without_message_compaction(message) is message


def test_breakpoints_are_taken_off_wherever_they_stand_and_nothing_else_changes() -> None:
    mark = JsonObject({"cache_control": JsonObject({"type": "ephemeral"})})
    plain, marked = Text("a"), Text("b", mark)
    message = Message("user", (plain, marked, ToolResult(ToolUseId("u"), (plain, marked))))
    found = without_breakpoints(message)
    assert found.content == (plain, Text("b"), ToolResult(ToolUseId("u"), (plain, Text("b"))))
    assert found.blocks[0] is plain
    for unmarked in (Message("user", "text"), Message("user", (plain,)), found):
        assert without_breakpoints(unmarked) is unmarked


def marked(text: str) -> Text:
    return Text(text, JsonObject({"cache_control": JsonObject({"type": "ephemeral"})}))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Hello", (Text("Hello"),), True),
        ((Text("Hello"),), (marked("Hello"),), True),
        (
            (ToolResult(ToolUseId("t"), "ok"),),
            (ToolResult(ToolUseId("t"), (marked("ok"),)),),
            True,
        ),
        ("Hello", "Hallo", False),
        ("Hello", (Text("Hel"), Text("lo")), False),
        ((ToolResult(ToolUseId("t"), "ok"),), (ToolResult(ToolUseId("u"), "ok"),), False),
    ],
)
def test_the_form_of_a_text_and_breakpoints_make_no_other_message(
    one: str | tuple[Block, ...], other: str | tuple[Block, ...], is_same: bool
) -> None:
    assert is_same_message(Message("user", one), Message("user", other)) is is_same
    assert not is_same_message(Message("user", one), Message("assistant", one))


def test_a_breakpoint_is_found_on_a_block_and_inside_it_the_last_one() -> None:
    first = JsonObject({"type": "ephemeral"})
    last = JsonObject({"type": "ephemeral", "ttl": "1h"})
    inner = (Text("a", JsonObject({"cache_control": first})), Text("b", JsonObject({"cache_control": last})))
    assert find_breakpoint(Text("a")) is None
    assert find_breakpoint(inner[0]) == first
    assert find_breakpoint(ToolResult(ToolUseId("t"), inner)) == last
    assert find_breakpoint(ToolResult(ToolUseId("t"), (inner[0], Text("c")))) == first
    assert find_breakpoint(ToolResult(ToolUseId("t"), "text")) is None
    own = ToolResult(ToolUseId("t"), inner, extra=JsonObject({"cache_control": first}))
    assert find_breakpoint(own) == first
    opaque = freeze({"type": "new", "content": [{"type": "text", "text": "a", "cache_control": last}]})
    assert isinstance(opaque, JsonObject)
    assert find_breakpoint(Opaque(opaque)) == last


def test_a_message_without_breakpoints_is_left_alone_and_one_with_some_loses_them_alone() -> None:
    plain = Message("user", (Text("a"), ToolResult(ToolUseId("t"), (Text("b"),))))
    assert without_breakpoints(plain) is plain
    assert without_breakpoints(Message("user", "a")) == Message("user", "a")
    result = ToolResult(ToolUseId("t"), (marked("b"),), extra=marked("").extra)
    assert without_breakpoints(Message("user", (marked("a"), result))) == plain
