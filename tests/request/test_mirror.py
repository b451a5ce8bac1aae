"""A list of messages that its owner changes in place."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from anthropic.types import TextBlock, ToolUseBlock
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.cache_choices import FIVE_MINUTES, ONE_HOUR
from sevenfold.core.errors import WireError
from sevenfold.core.messages import Message, Text
from sevenfold.core.wire import read_message
from sevenfold.request.mirror import Mark, Mirror

Wire = dict[str, Any]


def ask(text: str = "hello") -> Wire:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def answer(use: str = "t1") -> Wire:
    blocks = [
        TextBlock(type="text", text="ok"),
        ToolUseBlock(type="tool_use", id=use, name="Read", input={"path": "a"}),
    ]
    return {"role": "assistant", "content": blocks}


def result(use: str = "t1", text: str = "body") -> Wire:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use, "content": text}]}


def test_a_longer_list_adds_its_end_only() -> None:
    mirror, messages = Mirror(), [ask()]
    assert mirror.sync(messages).added == (Message("user", (Text("hello"),)),)
    messages.append(answer())
    synced = mirror.sync(messages)
    assert (synced.kept, synced.dropped, len(synced.added)) == (1, 0, 1)
    again = mirror.sync(messages)
    assert (again.kept, again.dropped, again.added) == (2, 0, ())


def test_a_text_changed_in_place_is_found() -> None:
    mirror, messages = Mirror(), [ask(), answer(), result()]
    mirror.sync(messages)
    messages[0]["content"][0]["text"] = "hullo"
    synced = mirror.sync(messages)
    assert (synced.kept, synced.dropped) == (0, 3)
    assert synced.added[0] == Message("user", (Text("hullo"),))


def test_a_field_set_on_an_object_of_the_sdk_is_found() -> None:
    mirror, messages = Mirror(), [ask(), answer(), result()]
    mirror.sync(messages)
    messages[1]["content"][0].text = "no"
    synced = mirror.sync(messages)
    assert (synced.kept, synced.dropped) == (1, 2)


def test_a_field_that_an_object_of_the_sdk_does_not_declare_is_found() -> None:
    mirror, messages = Mirror(), [ask(), answer(), result()]
    mirror.sync(messages)
    messages[1]["content"][0].cache_control = {"type": "ephemeral"}
    synced = mirror.sync(messages)
    assert (synced.kept, synced.dropped, synced.marks) == (3, 0, (Mark(1, 0, FIVE_MINUTES),))
    messages[1]["content"][0].source = "elsewhere"
    assert mirror.sync(messages).kept == 1


class Sealed:
    """An object that shows none of its fields."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def say(self, text: str) -> None:
        self._text = text

    def model_dump(self, **_: object) -> dict[str, str]:
        return {"type": "text", "text": self._text}


def test_a_change_of_an_object_that_shows_no_fields_is_found() -> None:
    sealed = Sealed("hello")
    mirror, messages = Mirror(), [{"role": "user", "content": [sealed]}, answer()]
    assert mirror.sync(messages).added[0] == Message("user", (Text("hello"),))
    assert mirror.sync(messages).kept == 2
    sealed.say("no")
    synced = mirror.sync(messages)
    assert (synced.kept, synced.added[0]) == (0, Message("user", (Text("no"),)))


def test_an_input_changed_inside_an_object_of_the_sdk_is_found() -> None:
    mirror, messages = Mirror(), [ask(), answer(), result()]
    mirror.sync(messages)
    messages[1]["content"][1].input["path"] = "b"
    assert mirror.sync(messages).kept == 1


def test_a_shorter_list_drops_its_end() -> None:
    mirror = Mirror()
    mirror.sync([ask(), answer(), result()])
    synced = mirror.sync([ask()])
    assert (synced.kept, synced.dropped, synced.added) == (1, 2, ())


def test_a_marker_that_moves_changes_nothing_but_where_it_stands() -> None:
    mirror, messages = Mirror(), [ask()]
    mirror.sync(messages)
    messages[0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    synced = mirror.sync(messages)
    assert (synced.kept, synced.added, synced.marks) == (1, (), (Mark(0, 0, FIVE_MINUTES),))
    del messages[0]["content"][0]["cache_control"]
    messages.append(result())
    messages[1]["content"][0]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    synced = mirror.sync(messages)
    assert (synced.kept, synced.marks) == (1, (Mark(1, 0, ONE_HOUR),))
    assert synced.added[0] == read_message(result())
    assert mirror.sync(messages).dropped == 0


def test_an_equal_copy_of_the_list_is_the_same_history() -> None:
    mirror, messages = Mirror(), [ask(), answer(), result()]
    mirror.sync(messages)
    synced = mirror.sync(copy.deepcopy(messages))
    assert (synced.kept, synced.dropped, synced.added) == (3, 0, ())


def test_what_is_no_message_is_named_with_its_place() -> None:
    with pytest.raises(WireError, match=r"messages\[1\]: message role 'robot' is unknown"):
        Mirror().sync([ask(), {"role": "robot", "content": "x"}])


MESSAGES = st.lists(
    st.builds(ask, st.text(max_size=3))
    | st.builds(result, st.just("t1"), st.text(max_size=3))
    | st.builds(answer),
    max_size=6,
)


@given(MESSAGES, MESSAGES)
def test_two_lists_one_after_the_other_end_in_the_second(one: list[Wire], other: list[Wire]) -> None:
    mirror = Mirror()
    before = mirror.sync(one)
    after = mirror.sync(other)
    plain = Mirror().sync(other)
    assert (*before.added[: after.kept], *after.added) == plain.added
    assert after.kept + after.dropped == len(one)
