"""A list of messages that its owner changes in place."""

from __future__ import annotations

import copy
import itertools
import weakref
from collections import UserDict
from types import MappingProxyType
from typing import Any

import pytest
from anthropic.types import TextBlock, ToolUseBlock
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from pydantic import BaseModel

from sevenfold.core.cache.prompt_blocks import FIVE_MINUTES, ONE_HOUR
from sevenfold.core.errors import WireError
from sevenfold.core.messages import Message, Text, read_message
from sevenfold.session import history
from sevenfold.session.history import CHUNK_SIZE, CallerBreakpoint, MessageListTracker

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
    mirror, messages = MessageListTracker(), [ask()]
    assert mirror.sync(messages).added == (Message("user", (Text("hello"),)),)
    messages.append(answer())
    synced = mirror.sync(messages)
    assert (synced.kept, synced.dropped, len(synced.added)) == (1, 0, 1)
    again = mirror.sync(messages)
    assert (again.kept, again.dropped, again.added) == (2, 0, ())


def test_a_text_changed_in_place_is_found() -> None:
    mirror, messages = MessageListTracker(), [ask(), answer(), result()]
    mirror.sync(messages)
    messages[0]["content"][0]["text"] = "hullo"
    synced = mirror.sync(messages)
    assert (synced.kept, synced.dropped) == (0, 3)
    assert synced.added[0] == Message("user", (Text("hullo"),))


def test_a_field_set_on_an_object_of_the_sdk_is_found() -> None:
    mirror, messages = MessageListTracker(), [ask(), answer(), result()]
    mirror.sync(messages)
    messages[1]["content"][0].text = "no"
    synced = mirror.sync(messages)
    assert (synced.kept, synced.dropped) == (1, 2)


def test_a_field_that_an_object_of_the_sdk_does_not_declare_is_found() -> None:
    mirror, messages = MessageListTracker(), [ask(), answer(), result()]
    mirror.sync(messages)
    messages[1]["content"][0].cache_control = {"type": "ephemeral"}
    synced = mirror.sync(messages)
    assert (synced.kept, synced.dropped, synced.marks) == (3, 0, (CallerBreakpoint(1, 0, FIVE_MINUTES),))
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
    mirror, messages = MessageListTracker(), [{"role": "user", "content": [sealed]}, answer()]
    assert mirror.sync(messages).added[0] == Message("user", (Text("hello"),))
    assert mirror.sync(messages).kept == 2
    sealed.say("no")
    synced = mirror.sync(messages)
    assert (synced.kept, synced.added[0]) == (0, Message("user", (Text("no"),)))


def test_an_input_changed_inside_an_object_of_the_sdk_is_found() -> None:
    mirror, messages = MessageListTracker(), [ask(), answer(), result()]
    mirror.sync(messages)
    messages[1]["content"][1].input["path"] = "b"
    assert mirror.sync(messages).kept == 1


def test_a_shorter_list_drops_its_end() -> None:
    mirror = MessageListTracker()
    mirror.sync([ask(), answer(), result()])
    synced = mirror.sync([ask()])
    assert (synced.kept, synced.dropped, synced.added) == (1, 2, ())


def test_a_marker_that_moves_changes_nothing_but_where_it_stands() -> None:
    mirror, messages = MessageListTracker(), [ask()]
    mirror.sync(messages)
    messages[0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    synced = mirror.sync(messages)
    assert (synced.kept, synced.added, synced.marks) == (1, (), (CallerBreakpoint(0, 0, FIVE_MINUTES),))
    del messages[0]["content"][0]["cache_control"]
    messages.append(result())
    messages[1]["content"][0]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    synced = mirror.sync(messages)
    assert (synced.kept, synced.marks) == (1, (CallerBreakpoint(1, 0, ONE_HOUR),))
    assert synced.added[0] == read_message(result())
    assert mirror.sync(messages).dropped == 0


def test_an_equal_copy_of_the_list_is_the_same_history() -> None:
    mirror, messages = MessageListTracker(), [ask(), answer(), result()]
    mirror.sync(messages)
    synced = mirror.sync(copy.deepcopy(messages))
    assert (synced.kept, synced.dropped, synced.added) == (3, 0, ())


def test_what_is_no_message_is_named_with_its_place() -> None:
    with pytest.raises(WireError, match=r"messages\[1\]: message role 'robot' is unknown"):
        MessageListTracker().sync([ask(), {"role": "robot", "content": "x"}])


MESSAGES = st.lists(
    st.builds(ask, st.text(max_size=3))
    | st.builds(result, st.just("t1"), st.text(max_size=3))
    | st.builds(answer),
    max_size=6,
)


@given(MESSAGES, MESSAGES)
def test_two_lists_one_after_the_other_end_in_the_second(one: list[Wire], other: list[Wire]) -> None:
    mirror = MessageListTracker()
    before = mirror.sync(one)
    after = mirror.sync(other)
    plain = MessageListTracker().sync(other)
    assert (*before.added[: after.kept], *after.added) == plain.added
    assert after.kept + after.dropped == len(one)


def long_talk(count: int) -> list[Wire]:
    return [ask(f"question {number}") for number in range(count)]


@pytest.mark.parametrize("place", [0, CHUNK_SIZE - 1, CHUNK_SIZE, 2 * CHUNK_SIZE - 1, 2 * CHUNK_SIZE])
def test_in_a_long_list_one_changed_message_is_found_where_it_stands(place: int) -> None:
    mirror, messages = MessageListTracker(), long_talk(2 * CHUNK_SIZE + 1)
    mirror.sync(messages)
    messages[place]["content"][0]["text"] = "no"
    synced = mirror.sync(messages)
    assert (synced.kept, synced.dropped) == (place, 2 * CHUNK_SIZE + 1 - place)
    assert synced.added == MessageListTracker().sync(messages).added[place:]


@pytest.mark.parametrize("left", [0, 1, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 1])
def test_a_long_list_cut_anywhere_goes_on_from_there(left: int) -> None:
    mirror, messages = MessageListTracker(), long_talk(2 * CHUNK_SIZE)
    mirror.sync(messages)
    del messages[left:]
    assert mirror.sync(messages).dropped == 2 * CHUNK_SIZE - left
    messages += long_talk(CHUNK_SIZE)
    synced = mirror.sync(messages)
    assert (synced.kept, len(synced.added), len(mirror)) == (left, CHUNK_SIZE, left + CHUNK_SIZE)


def test_a_list_that_cannot_be_read_leaves_all_as_it_was() -> None:
    mirror, messages = MessageListTracker(), [ask(), ask("more"), ask("last")]
    mirror.sync(messages)
    spoilt = copy.deepcopy(messages)
    spoilt[0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    spoilt[2]["role"] = "nobody"
    with pytest.raises(WireError):
        mirror.sync(spoilt)
    synced = mirror.sync(messages)
    assert (synced.kept, synced.marks) == (3, ())


@pytest.mark.parametrize("marked", [{"type": "ephemeral"}, None])
def test_a_marker_inside_a_result_moves_like_any_other(marked: object) -> None:
    inside: Wire = {"type": "text", "text": "body", "cache_control": marked}
    messages: list[Wire] = [{"role": "user", "content": [{**result()["content"][0], "content": [inside]}]}]
    mirror = MessageListTracker()
    assert mirror.sync(messages).marks == ((CallerBreakpoint(0, 0, FIVE_MINUTES),) if marked else ())
    del inside["cache_control"]
    synced = mirror.sync(messages)
    assert (synced.kept, synced.dropped, synced.marks) == (1, 0, ())
    inside["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    synced = mirror.sync(messages)
    assert (synced.kept, synced.marks) == (1, (CallerBreakpoint(0, 0, ONE_HOUR),))


MARK: Wire = {"cache_control": {"type": "ephemeral"}}
WORDS: Wire = {"type": "text", "text": "body"}
RESULT: Wire = {"type": "tool_result", "tool_use_id": "t1", "content": "body"}
HIT: Wire = {"type": "search_result", "source": "x", "title": "y", "content": [WORDS]}
PAGE: Wire = {"type": "document", "source": {"type": "content", "content": [WORDS]}}
FORMS: list[list[list[Wire] | str]] = [
    ["body", [WORDS], [WORDS | MARK], [{"text": "body", "type": "text", "cache_control": None}]],
    [[RESULT], [RESULT | MARK], [RESULT | {"content": [WORDS]}], [RESULT | {"content": [WORDS | MARK]}]],
    [[PAGE], [PAGE | MARK], [PAGE | {"source": {"type": "content", "content": [WORDS | MARK]}}]],
    [[HIT], [HIT | MARK], [HIT | {"content": [WORDS | MARK]}]],
    [[RESULT | {"content": [HIT]}], [RESULT | {"content": [HIT | {"content": [WORDS | MARK]}]}]],
]
"""Contents of one message each that mean the same."""


@pytest.mark.parametrize("forms", FORMS, ids=["text", "result", "document", "search", "nested"])
@pytest.mark.parametrize("role", ["user", "system"])
def test_a_message_written_in_another_form_is_the_same(role: str, forms: list[list[Wire] | str]) -> None:
    for first, then in itertools.permutations(forms, 2):
        mirror = MessageListTracker()
        (before,) = mirror.sync([{"role": role, "content": first}]).added
        assert "cache_control" not in str(before)
        synced = mirror.sync([{"content": then, "role": role}, ask()])
        assert (synced.kept, synced.dropped, len(synced.added)) == (1, 0, 1)
        has_mark = "ephemeral" in str(then)
        assert synced.marks == ((CallerBreakpoint(0, 0, FIVE_MINUTES),) if has_mark else ())
        assert mirror.count_shared([{"role": role, "content": first}, ask()]).total == 2


OTHERS: list[list[Wire] | str] = [
    "other",
    [WORDS, WORDS],
    [WORDS | {"text": "other"}],
    [WORDS | {"citations": None}],
    [],
]


@pytest.mark.parametrize("other", OTHERS, ids=["text", "two blocks", "block", "field", "nothing"])
def test_another_text_is_another_message_in_every_form(other: list[Wire] | str) -> None:
    for first, then in (("body", other), (other, [WORDS])):
        mirror = MessageListTracker()
        mirror.sync([{"role": "user", "content": first}])
        assert mirror.sync([{"role": "user", "content": then}]).kept == 0
        mirror.sync([{"role": "user", "content": [RESULT | {"content": first}]}])
        assert mirror.sync([{"role": "user", "content": [RESULT | {"content": then}]}]).kept == 0


class Checking(BaseModel, validate_assignment=True):
    """A model that puts new fields in place of the old when one is set."""

    type: str = "text"
    text: str = "hello"


def test_a_model_that_checks_what_it_is_given_is_looked_at_again() -> None:
    block = Checking()
    mirror, messages = MessageListTracker(), [{"role": "user", "content": [block]}]
    mirror.sync(messages)
    block.text = "no"
    assert mirror.sync(messages).kept == 0


def test_a_mapping_that_is_no_dict_is_looked_at_again() -> None:
    block = {"type": "text", "text": "hello"}
    for seen in (MappingProxyType(block), UserDict(block)):
        mirror, messages = MessageListTracker(), [{"role": "user", "content": [seen]}]
        mirror.sync(messages)
        assert mirror.sync(messages).kept == 1
        block["text"] += "!"
        if isinstance(seen, UserDict):
            seen["text"] = "no"
        assert mirror.sync(messages).kept == 0


def test_what_a_caller_has_dropped_is_not_held() -> None:
    class Watched(dict[str, object]):
        """A dict that can be watched."""

    def make() -> list[Wire]:
        return [Watched(ask("a"))]

    mirror, messages = MessageListTracker(), make()
    first = weakref.ref(messages[0])
    mirror.sync(messages)
    messages = make()
    assert mirror.sync(messages).kept == 1
    assert first() is None


def test_to_forget_more_than_was_seen_forgets_nothing() -> None:
    mirror, messages = MessageListTracker(), [ask(), answer()]
    mirror.sync(messages)
    mirror.forget(100)
    assert mirror.sync(messages).kept == 2


class Talk(RuleBasedStateMachine):
    """A caller who does anything with its list, and a mirror that has to know what it holds.

    With facets of three messages most of what happens, happens at an edge of one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(history, "CHUNK_SIZE", 3)
        self.mirror, self.messages = MessageListTracker(), list[Wire]()
        self.known: tuple[Message, ...] = ()

    def teardown(self) -> None:
        self.patch.undo()

    @rule(one=st.builds(ask, st.text(max_size=2)) | st.builds(answer) | st.builds(result))
    def append(self, one: Wire) -> None:
        self.messages.append(one)

    @precondition(lambda self: self.messages)
    @rule(data=st.data(), text=st.text(max_size=2))
    def change_in_place(self, data: st.DataObject, text: str) -> None:
        block = data.draw(st.sampled_from(self.messages))["content"][0]
        match block:
            case TextBlock():
                block.text = text
            case {"type": "text"}:
                block["text"] = text
            case _:
                block["content"] = text

    @precondition(lambda self: self.messages)
    @rule(data=st.data())
    def move_a_marker(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(self.messages))["content"][0]
        if isinstance(block, TextBlock):
            block.cache_control = {"type": "ephemeral"}  # pyright: ignore[reportAttributeAccessIssue]
        elif block.pop("cache_control", None) is None:
            block["cache_control"] = {"type": "ephemeral"}

    @precondition(lambda self: self.messages)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(self.messages) - 1))
        del self.messages[start : start + data.draw(st.integers(1, 4))]

    @precondition(lambda self: self.messages)
    @rule(data=st.data())
    def look_at_a_spoilt_list(self, data: st.DataObject) -> None:
        """A list that cannot be read is refused, and nothing of it stays."""
        spoilt = copy.deepcopy(self.messages)
        spoilt[data.draw(st.integers(0, len(spoilt) - 1))] = {"role": "nobody", "content": "x"}
        marked = data.draw(st.sampled_from(spoilt))["content"]
        if isinstance(marked, list) and isinstance(marked[0], dict):
            marked[0]["cache_control"] = {"type": "ephemeral"}
        with pytest.raises(WireError):
            self.mirror.sync(spoilt)

    @rule()
    def copy_all(self) -> None:
        self.messages = copy.deepcopy(self.messages)

    @rule()
    def look(self) -> None:
        """What was kept and what was added are the list as it is, and the markers stand where it has them."""
        synced = self.mirror.sync(self.messages)
        assert synced.kept + synced.dropped == len(self.known)
        self.known = (*self.known[: synced.kept], *synced.added)
        plain = MessageListTracker().sync(self.messages)
        assert self.known == plain.added
        assert sorted(synced.marks, key=lambda mark: mark.message) == list(plain.marks)
        assert len(self.mirror) == len(self.messages)
        again = self.mirror.sync(self.messages)
        assert (again.kept, again.added) == (len(self.messages), ())


TestTalk = Talk.TestCase
