"""What is written for each API, and that a long history is written once."""

from __future__ import annotations

from typing import Literal, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import InputError
from sevenfold.core.json import Json, JsonObject, read_object, write_json
from sevenfold.core.messages import (
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
    read_message,
)
from sevenfold.core.requests import Breakpoint, ModelRequest
from sevenfold.providers.anthropic.wire import MessagesBodyWriter
from sevenfold.providers.openai.chat_wire import ChatBodyWriter, write_chat_messages
from sevenfold.providers.openai.request_parts import (
    RESPONSES_NAMES,
    make_chat_names,
    write_params,
    write_tool,
)
from sevenfold.providers.openai.responses_wire import ResponsesBodyWriter, write_input_items
from sevenfold.providers.provider import ListMemo, join_object
from tests.providers.asking import ask, assistant, frozen, result, tool, used, user

Kind: TypeAlias = Literal["chat", "responses"]
PIXEL = frozen({"type": "base64", "media_type": "image/png", "data": "AAAA"})
PAGE = frozen({"type": "base64", "media_type": "application/pdf", "data": "BBBB"})
CHAT = make_chat_names("max_tokens")

texts = st.text(max_size=20)
messages = st.lists(
    st.one_of(
        st.builds(Message, st.sampled_from(["user", "assistant"]), texts),
        st.builds(Message, st.just("assistant"), st.lists(st.builds(Text, texts), max_size=3).map(tuple)),
    ),
    min_size=1,
    max_size=8,
)


def body(request: ModelRequest, writer: MessagesBodyWriter | None = None) -> JsonObject:
    return read_object((writer or MessagesBodyWriter()).write(request, streams=False))


def sent(body: JsonObject, key: str) -> tuple[Json, ...]:
    value = body.get(key)
    assert isinstance(value, tuple)
    return value


def chat(message: Message) -> list[object]:
    return [dict(wire) for wire in write_chat_messages(message)]


@given(messages, st.data())
def test_what_is_written_says_what_was_meant_whatever_was_written_before(
    history: list[Message], data: st.DataObject
) -> None:
    writer = MessagesBodyWriter()
    for _ in range(3):
        start = data.draw(st.integers(0, len(history)))
        shown = [*history[start:], *data.draw(messages)]
        mark = Breakpoint("messages", data.draw(st.integers(0, len(shown) - 1)))
        marks = (mark,) if shown[mark.index].blocks else ()
        written = sent(body(ask(*shown, breakpoints=marks), writer), "messages")
        plain = sent(body(ask(*shown)), "messages")
        assert [read_message(wire) for wire in plain] == shown
        for at, (ours, theirs) in enumerate(zip(written, plain, strict=True)):
            if marks and at == mark.index:
                assert ours != theirs
            else:
                assert ours == theirs


def test_only_new_messages_are_written() -> None:
    made: list[Message] = []
    memo = ListMemo[Message, int](lambda message: (made.append(message), len(made))[1])
    history = [user(str(number)) for number in range(100)]
    assert memo.of(history) == list(range(1, 101))
    grown = [*history, user("new")]
    assert memo.of(grown)[:100] == list(range(1, 101))
    assert len(made) == 101
    equal = [user("0"), *grown[1:]]
    memo.of(equal)
    assert made[101:] == [user("0")]


def test_a_short_fork_leaves_what_is_kept_and_a_deep_cut_lets_it_go() -> None:
    made: list[str] = []
    memo = ListMemo[str, str](lambda item: (made.append(item), item)[1])
    history = [f"message {number}" for number in range(10)]
    memo.of(history)
    memo.of(history[:6])
    memo.of(history)
    assert len(made) == 10
    memo.of(history[:2])
    memo.of(history)
    assert len(made) == 18


def test_an_item_that_cannot_be_made_is_not_taken_for_one_that_was() -> None:
    def make(item: str) -> str:
        if item == "bad":
            raise InputError("bad")
        return item

    memo = ListMemo[str, str](make)
    memo.of(["good"])
    for _ in range(2):
        with pytest.raises(InputError):
            memo.of(["bad"])
    assert memo.of(["good"]) == ["good"]


def test_a_list_that_was_handed_out_is_the_callers_own() -> None:
    memo = ListMemo[str, str](str)
    history = ["one", "two"]
    memo.of(history)[0] = "spoilt"
    assert memo.of(history) == ["one", "two"]


@given(
    st.dictionaries(
        st.text(max_size=4),
        st.one_of(st.integers(), st.lists(st.integers(), max_size=4).map(tuple)),
        max_size=4,
    )
)
def test_an_object_is_joined_as_it_would_be_written(fields: dict[str, int | tuple[int, ...]]) -> None:
    parts = {
        key: [write_json(item) for item in value] if isinstance(value, tuple) else write_json(value)
        for key, value in fields.items()
    }
    assert join_object(parts) == write_json(JsonObject(fields))


def test_an_anthropic_body_has_its_fields_and_no_empty_ones() -> None:
    bare = body(ask(user("Hi")))
    assert set(bare) == {"model", "max_tokens", "messages"}
    full = body(ask(user("Hi"), system="Be brief.", tools=(tool("look"),), params=frozen({"speed": "fast"})))
    assert full["system"] == (frozen({"type": "text", "text": "Be brief."}),)
    assert full["tools"] == (tool("look"),)
    assert full["speed"] == "fast"


def test_a_chat_has_each_result_as_a_message_and_before_the_rest() -> None:
    both = Message(
        "user", (Text("And?"), ToolResult(ToolUseId("a"), "one"), ToolResult(ToolUseId("b"), None))
    )
    assert chat(both) == [
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "user", "content": "And?"},
    ]


def test_a_failed_result_says_so_in_words() -> None:
    assert chat(result("no such file", is_error=True))[0] == {
        "role": "tool",
        "tool_call_id": "toolu_1",
        "content": "Error: no such file",
    }
    assert [dict(item) for item in write_input_items(result("Error: no", is_error=True))] == [
        {"type": "function_call_output", "call_id": "toolu_1", "output": "Error: no"}
    ]


def test_what_a_tool_shows_in_a_chat_is_shown_by_the_user() -> None:
    shown = Message("user", (ToolResult(ToolUseId("a"), (Text("see"), Image(PIXEL))),))
    picture = frozen({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})
    assert chat(shown) == [
        {"role": "tool", "tool_call_id": "a", "content": "see\n[image]"},
        {"role": "user", "content": (picture,)},
    ]
    (item,) = write_input_items(shown)
    assert item["output"] == (
        frozen({"type": "input_text", "text": "see"}),
        frozen({"type": "input_image", "image_url": "data:image/png;base64,AAAA"}),
    )


def test_media_have_a_form_or_a_word() -> None:
    away = frozen({"type": "url", "url": "https://example.org/a.png"})
    page = Document(PAGE, frozen({"title": "a.pdf"}))
    note = Document(
        frozen({"type": "text", "media_type": "text/plain", "data": "Hello"}), frozen({"title": "n"})
    )
    lost = Document(away)
    message = Message(
        "user", (Image(away), page, note, lost, Image(frozen({"type": "file", "file_id": "f"})))
    )
    (wire,) = write_chat_messages(message)
    assert wire["content"] == (
        frozen({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}),
        frozen(
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB"}}
        ),
        frozen({"type": "text", "text": "n\n\nHello"}),
        frozen({"type": "text", "text": "[document at https://example.org/a.png]"}),
        frozen({"type": "text", "text": "[image]"}),
    )
    (item,) = write_input_items(message)
    assert sent(item, "content")[1] == frozen(
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB"}
    )


def test_another_providers_thinking_is_left_out_and_other_blocks_are_named() -> None:
    blocks = (
        Thinking("Hmm.", "signed"),
        RedactedThinking("xx"),
        Text("Yes."),
        Compaction("So far: nothing."),
        Opaque(frozen({"type": "server_tool_use", "id": "s"})),
        Text(""),
    )
    message = Message("assistant", blocks)
    (wire,) = write_chat_messages(message, replays_reasoning=True)
    assert wire == frozen({"role": "assistant", "content": "Yes.So far: nothing.[server_tool_use block]"})
    (item,) = write_input_items(message)
    assert [part.get("text") for part in sent(item, "content") if isinstance(part, JsonObject)] == [
        "Yes.",
        "So far: nothing.",
        "[server_tool_use block]",
    ]


def test_a_request_alone_has_no_text_and_thought_alone_an_empty_one() -> None:
    (call,) = write_chat_messages(used("look", at="it"))
    assert call["content"] is None
    assert call["tool_calls"] == (
        frozen(
            {"id": "toolu_1", "type": "function", "function": {"name": "look", "arguments": '{"at":"it"}'}}
        ),
    )
    assert chat(Message("assistant", (Thinking("Hmm."),))) == [{"role": "assistant", "content": ""}]


def test_who_speaks_twice_in_a_row_speaks_once_in_a_chat_and_again_the_same() -> None:
    looks = Message("assistant", (Text("I look."), *used("look").blocks))
    history = [user("go"), user("now"), looks, assistant("And wait."), result("seen"), user("well?")]
    writer = ChatBodyWriter(max_tokens_field="max_tokens", replays_reasoning=False)

    def turns(*messages: Message) -> list[JsonObject]:
        body = read_object(writer.write(ask(*messages), streams=False))
        return [turn for turn in sent(body, "messages") if isinstance(turn, JsonObject)]

    first = turns(*history)
    assert [turn["role"] for turn in first] == ["user", "assistant", "tool", "user"]
    assert [turn["content"] for turn in first] == ["go\nnow", "I look.\n\nAnd wait.", "seen", "well?"]
    assert turns(*history, assistant("Yes."))[:4] == first


def test_items_keep_the_order_of_blocks_and_a_texts_phase() -> None:
    phase = frozen({"phase": "commentary"})
    reasoning = frozen({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"})
    call = ToolUse(ToolUseId("call_1"), "look", frozen({}))
    message = Message("assistant", (Opaque(reasoning), Text("First.", phase), call, Text("Then.")))
    items = list(write_input_items(message))
    assert [item["type"] for item in items] == ["reasoning", "message", "function_call", "message"]
    assert items[0] == reasoning
    assert [item.get("phase") for item in items] == [None, "commentary", None, None]


def test_a_message_of_nothing_but_thought_is_no_item() -> None:
    assert list(write_input_items(Message("assistant", (Thinking("Hmm."),)))) == []
    writer = ResponsesBodyWriter(asks_reasoning=False)
    request = ask(user("Hi"), Message("assistant", (Thinking("Hmm."),)), user("So?"), system="Be brief.")
    written = read_object(writer.write(request, streams=True))
    assert len(sent(written, "input")) == 2
    assert (written["instructions"], written["stream"], written["store"]) == ("Be brief.", True, False)
    assert "include" not in written


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_a_chat_body_names_its_limit_as_its_server_does(field: str) -> None:
    writer = ChatBodyWriter(max_tokens_field=field, replays_reasoning=False)
    system = (frozen({"type": "text", "text": "One."}), frozen({"type": "text", "text": "Two."}))
    written = read_object(writer.write(ask(user("Hi"), assistant("Ho"), system=system), streams=True))
    assert written[field] == 1_000
    assert written["stream_options"] == frozen({"include_usage": True})
    assert sent(written, "messages")[0] == frozen({"role": "system", "content": "One.\n\nTwo."})


@pytest.mark.parametrize(
    ("params", "chat_form", "responses_form"),
    [
        ({"tool_choice": {"type": "auto"}}, {"tool_choice": "auto"}, {"tool_choice": "auto"}),
        ({"tool_choice": {"type": "any"}}, {"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"tool_choice": "none"}, {"tool_choice": "none"}, {"tool_choice": "none"}),
        (
            {"tool_choice": {"type": "tool", "name": "look", "disable_parallel_tool_use": True}},
            {"tool_choice": {"type": "function", "function": {"name": "look"}}, "parallel_tool_calls": False},
            {"tool_choice": {"type": "function", "name": "look"}, "parallel_tool_calls": False},
        ),
        (
            {
                "output_config": {
                    "effort": "high",
                    "format": {"type": "json_schema", "schema": {"type": "object"}},
                }
            },
            {
                "reasoning_effort": "high",
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": {"type": "object"}},
                },
            },
            {
                "reasoning": {"effort": "high"},
                "text": {"format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}},
            },
        ),
        ({"thinking": {"type": "adaptive"}, "cache_control": {"type": "ephemeral"}}, {}, {}),
        ({"seed": 7}, {"seed": 7}, {"seed": 7}),
    ],
)
def test_params_are_said_in_the_words_of_each_api(
    params: dict[str, object], chat_form: dict[str, object], responses_form: dict[str, object]
) -> None:
    assert JsonObject(write_params(frozen(params), CHAT)) == frozen(chat_form)
    assert JsonObject(write_params(frozen(params), RESPONSES_NAMES)) == frozen(responses_form)


def test_stop_sequences_exist_in_chats_alone() -> None:
    params = frozen({"stop_sequences": ["END"]})
    assert JsonObject(write_params(params, CHAT)) == frozen({"stop": ["END"]})
    with pytest.raises(InputError, match="stop_sequences"):
        write_params(params, RESPONSES_NAMES)


def test_tools_become_functions_and_functions_stay() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    function = {"name": "look", "description": "Does look.", "parameters": schema}
    assert write_tool(tool("look"), CHAT) == frozen({"type": "function", "function": function})
    assert write_tool(tool("look"), RESPONSES_NAMES) == frozen(
        {"type": "function", **function, "strict": False}
    )
    own = frozen({"type": "function", "function": function})
    assert write_tool(own, CHAT) is own
