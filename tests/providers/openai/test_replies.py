"""Answers as servers really give them: cut, odd, without ids, without usage, without JSON."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sevenfold.core.errors import Overloaded, PromptTooLong, ProviderRefused, RateLimited, ReplyBroken
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.messages import Opaque, Text, Thinking, ToolUse, write_message
from sevenfold.core.requests import ModelResponse
from sevenfold.core.usage import NO_USAGE
from sevenfold.providers.anthropic.wire import MessagesAssembler, read_messages_response
from sevenfold.providers.openai.chat_wire import ChatAssembler, read_chat_completion
from sevenfold.providers.openai.responses_wire import ResponsesAssembler, read_response
from sevenfold.providers.provider import (
    INVALID_INPUT_KEY,
    UNREADABLE_USAGE,
    find_invalid_text,
    read_tool_input,
)
from tests.providers.asking import frozen

USAGE = {"input_tokens": 5, "output_tokens": 2}


def message(*content: object, **fields: object) -> JsonObject:
    base = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": USAGE}
    return frozen({**base, "content": list(content), "stop_reason": "end_turn", **fields})


def completion(said: Mapping[str, object], finish: str | None = "stop", **fields: object) -> JsonObject:
    choice = {"index": 0, "message": said, "finish_reason": finish}
    return frozen(
        {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice], **fields}
    )


def chunk(delta: dict[str, object], finish: str | None = None) -> dict[str, object]:
    return {
        "id": "chatcmpl-1",
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def assembled(*events: object) -> ModelResponse:
    assembly = MessagesAssembler()
    for event in events:
        list(assembly.add(event))
    return assembly.reply()


def chatted(*chunks: object) -> ModelResponse:
    assembly = ChatAssembler()
    for item in chunks:
        list(assembly.add(item))
    return assembly.reply()


def response(*output: object, **fields: object) -> JsonObject:
    base = {"id": "resp_1", "object": "response", "model": "m", "status": "completed", "error": None}
    return frozen({**base, "output": list(output), **fields})


def test_a_block_nobody_knows_is_kept_and_sent_again_as_it_came() -> None:
    odd = {"type": "hologram", "depth": 3, "parts": [{"a": None}]}
    cited = {"type": "text", "text": "So.", "citations": [{"type": "page", "n": 1}]}
    reply = read_messages_response(message(odd, cited, container={"id": "c"}, stop_sequence=None))
    assert reply.message.blocks[0] == Opaque(frozen(odd))
    assert write_message(reply.message)["content"] == [odd, cited]
    assert reply.extra == frozen({"container": {"id": "c"}, "stop_sequence": None})


@pytest.mark.parametrize(
    "wire", [None, (), "text", JsonObject(), message(), frozen({"content": 7, "usage": USAGE})]
)
def test_what_is_no_answer_is_broken(wire: Json) -> None:
    spoilt = JsonObject({**wire, "usage": None}) if isinstance(wire, JsonObject) else wire
    with pytest.raises(ReplyBroken):
        read_messages_response(spoilt)


def test_a_stream_is_put_together_field_by_field() -> None:
    reply = assembled(
        {
            "type": "message_start",
            "message": {"id": "msg_1", "model": "m", "content": [], "usage": {**USAGE, "x": 1}},
        },
        {"type": "ping"},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": "A", "citations": None},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "B"}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "citations_delta", "citation": {"n": 1}},
        },
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "compaction", "content": None, "signature": "s"},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "compaction_delta", "content": "So far.", "encrypted_content": "e"},
        },
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "t", "name": "look", "input": {}},
        },
        {"type": "novelty", "anything": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 9, "input_tokens": None},
            "context_management": {"applied_edits": []},
        },
        {"type": "message_stop"},
    )
    assert write_message(reply.message)["content"] == [
        {"type": "text", "text": "AB", "citations": [{"n": 1}]},
        {"type": "compaction", "content": "So far.", "signature": "s", "encrypted_content": "e"},
        {"type": "tool_use", "id": "t", "name": "look", "input": {}},
    ]
    assert reply.usage_wire == frozen({"input_tokens": 5, "output_tokens": 9, "x": 1})
    assert reply.stop_reason == "tool_use"
    assert reply.extra["context_management"] == frozen({"applied_edits": []})


def test_a_tool_request_that_was_cut_off_keeps_its_text() -> None:
    reply = assembled(
        {"type": "message_start", "message": {"id": "m", "usage": USAGE}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "t", "name": "look", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": '{"at": "i'},
        },
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )
    assert find_invalid_text(reply.tool_uses[0]) == '{"at": "i'


def test_a_stream_that_ends_early_or_makes_no_sense_is_broken() -> None:
    start = {"type": "message_start", "message": {"id": "m", "usage": USAGE}}
    with pytest.raises(ReplyBroken, match="before the answer did"):
        assembled(start)
    with pytest.raises(ReplyBroken, match="block 3"):
        assembled(
            start, {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}}
        )
    with pytest.raises(ReplyBroken):
        assembled({"type": "message_stop"})


@pytest.mark.parametrize("text", ["{not json", "[1, 2]", '"text"', "null", "{'a': 1}"])
def test_arguments_that_are_no_object_have_a_form_that_can_be_sent_again(text: str) -> None:
    said = {"tool_calls": [{"id": "call_123456", "function": {"name": "look", "arguments": text}}]}
    call = read_chat_completion(completion(said, "tool_calls")).tool_uses[0]
    assert call.input == frozen({INVALID_INPUT_KEY: text})
    assert find_invalid_text(call) == text
    assert find_invalid_text(ToolUse(call.id, call.name, read_tool_input('{"a": 1}'))) is None


@pytest.mark.parametrize("text", ["", "  ", "{}"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    assert read_tool_input(text) == JsonObject()


def test_every_request_gets_an_id_that_no_other_has() -> None:
    function = {"name": "look", "arguments": "{}"}
    ids = ["", "0", "call_0", "call_123456", "call_123456"]
    said: dict[str, object] = {
        "content": None,
        "tool_calls": [{"id": given, "function": function} for given in ids],
        "function_call": {"name": "old", "arguments": {"a": 1}},
    }
    reply = read_chat_completion(completion(said))
    given = [call.id for call in reply.tool_uses]
    assert len(set(given)) == 6
    assert given[3] == "call_123456"
    assert reply.tool_uses[5].input == frozen({"a": 1})
    assert reply.stop_reason == "tool_use"


def test_a_refusal_is_one_whatever_the_finish() -> None:
    reply = read_chat_completion(completion({"content": None, "refusal": "I will not."}))
    assert (reply.text, reply.stop_reason) == ("I will not.", "refusal")


@pytest.mark.parametrize(
    ("finish", "expected"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("novelty", "novelty")],
)
def test_each_finish_has_a_stop_reason(finish: str, expected: str) -> None:
    assert read_chat_completion(completion({"content": "Hi"}, finish)).stop_reason == expected


def test_usage_that_is_missing_or_cannot_be_is_none_and_says_so() -> None:
    assert read_chat_completion(completion({"content": "Hi"})).usage is NO_USAGE
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}}
    reply = read_chat_completion(completion({"content": "Hi"}, usage=usage))
    assert reply.usage is NO_USAGE
    assert reply.usage_wire == frozen(usage)
    assert "cached" in str(reply.extra[UNREADABLE_USAGE])


def test_reasoning_is_found_in_either_field_and_content_in_parts() -> None:
    said = {"reasoning": "Hmm.", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}
    reply = read_chat_completion(completion(said))
    assert reply.message.blocks == (
        Thinking("Hmm.", None, frozen({"reasoning_field": "reasoning"})),
        Text("AB"),
    )


@pytest.mark.parametrize(
    "wire", [None, JsonObject(), frozen({"choices": []}), frozen({"choices": [{"delta": "x"}]})]
)
def test_a_completion_without_a_message_is_broken(wire: Json) -> None:
    with pytest.raises(ReplyBroken, match="no message"):
        read_chat_completion(wire)


def test_chunks_are_joined_by_place_or_by_id_where_a_server_gives_no_good_one() -> None:
    def call(arguments: str, **fields: object) -> dict[str, object]:
        return chunk({"tool_calls": [{**fields, "function": {"arguments": arguments}}]})

    def opened(call_id: str, **fields: object) -> dict[str, object]:
        function = {"name": "look", "arguments": ""}
        return chunk({"tool_calls": [{**fields, "id": call_id, "type": "function", "function": function}]})

    end = chunk({}, "tool_calls")
    first, second = "call_aaaaaa", "call_bbbbbb"
    good = [
        opened(first, index=0),
        opened(second, index=1),
        call('{"a":', index=0),
        call("{}", index=1),
        call("1}", index=0),
    ]
    same = [opened(first, index=0), call('{"a":1}', index=0), opened(second, index=0), call("{}", index=0)]
    none = [opened(first), call('{"a":1}'), opened(second), call("{}")]
    for chunks in (good, same, none):
        reply = chatted(*chunks, end)
        assert [(call.id, call.input) for call in reply.tool_uses] == [
            (first, frozen({"a": 1})),
            (second, frozen({})),
        ]


def test_a_chat_that_never_finishes_is_broken() -> None:
    with pytest.raises(ReplyBroken, match="before the answer did"):
        chatted(chunk({"content": "Hi"}))


def test_the_last_chunk_tells_what_was_used() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    reply = chatted(chunk({"content": "Hi"}), chunk({}, "stop"), {"choices": [], "usage": usage})
    assert (reply.text, reply.usage.prompt, reply.usage.output) == ("Hi", 3, 1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": "server_error", "message": "Oops"}, Overloaded),
        ({"code": "rate_limit_exceeded", "message": "Slow down"}, RateLimited),
        ({"code": "invalid_prompt", "message": "No"}, ProviderRefused),
        ({"code": "context_length_exceeded", "message": "Too long"}, PromptTooLong),
        (None, ProviderRefused),
    ],
)
def test_a_response_that_failed_is_the_error_that_it_names(
    error: dict[str, object] | None, expected: type[Exception]
) -> None:
    with pytest.raises(expected):
        read_response(response(status="failed", error=error))


def test_a_response_without_output_is_broken_and_a_cut_one_says_why() -> None:
    with pytest.raises(ReplyBroken, match="no output"):
        read_response(frozen({"status": "completed"}))
    cut = read_response(response(status="incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert cut.stop_reason == "max_tokens"
    refused = {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
    reply = read_response(response(refused))
    assert (reply.text, reply.stop_reason) == ("No.", "refusal")


def test_a_server_whose_last_event_has_no_items_is_understood_by_the_others() -> None:
    assembly = ResponsesAssembler()
    item = {"type": "message", "phase": "final_answer", "content": [{"type": "output_text", "text": "Hi"}]}
    for event in (
        {"type": "response.created", "response": None},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": None}},
    ):
        list(assembly.add(event))
    assert assembly.reply().message.blocks == (Text("Hi", frozen({"phase": "final_answer"})),)


def test_a_response_stream_that_ends_early_or_in_an_error_is_broken() -> None:
    with pytest.raises(ReplyBroken, match="before the answer did"):
        ResponsesAssembler().reply()
    with pytest.raises(ReplyBroken, match="Oops"):
        list(ResponsesAssembler().add({"type": "error", "code": "server_error", "message": "Oops"}))
    with pytest.raises(PromptTooLong):
        list(ResponsesAssembler().add({"type": "error", "code": "context_length_exceeded", "message": "x"}))
