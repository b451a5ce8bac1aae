"""Requests as values: what of one is cached, what thinking is signed over, and what another model takes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sevenfold.core.json import JsonObject, freeze
from sevenfold.core.messages import Compaction, Message, Text, Thinking, ToolUse, ToolUseId
from sevenfold.core.requests import (
    ENGINE_ENTRY,
    MAX_CACHED_PARAMS,
    CachedRequests,
    Capabilities,
    ModelResponse,
    RequestParams,
    ViewMessage,
    adapt_messages,
    compute_thinking_binding,
    find_first_change,
    is_same_opening,
)
from sevenfold.core.usage import NO_USAGE

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MARK = freeze({"type": "ephemeral"})


def tool(name: str, **fields: object) -> JsonObject:
    found = freeze({"name": name, "input_schema": {"type": "object"}, **fields})
    assert isinstance(found, JsonObject)
    return found


def block(text: str, **fields: object) -> JsonObject:
    found = freeze({"type": "text", "text": text, **fields})
    assert isinstance(found, JsonObject)
    return found


FRAME = RequestParams(
    model="claude-opus-5-5", max_tokens=100, system="Be brief.", tools=(tool("Bash"), tool("Read"))
)


@pytest.mark.parametrize(
    "same",
    [
        replace(FRAME, system=(block("Be brief."),)),
        replace(FRAME, system=(block("Be brief.", cache_control=MARK),)),
        replace(FRAME, tools=(tool("Bash", cache_control=MARK), tool("Read"))),
        replace(FRAME, max_tokens=5, betas=("x",), params=JsonObject({"temperature": 1})),
    ],
)
def test_breakpoints_and_other_parameters_leave_an_opening_as_it_is(same: RequestParams) -> None:
    assert is_same_opening(FRAME, same)
    assert compute_thinking_binding(FRAME) == compute_thinking_binding(same)


@pytest.mark.parametrize(
    "other",
    [
        replace(FRAME, model="claude-opus-5"),
        replace(FRAME, system="Be long."),
        replace(FRAME, system=(block("Be brief."), block("And kind."))),
        replace(FRAME, tools=(tool("Bash"),)),
        replace(FRAME, tools=(tool("Bash"), tool("Read", description="Reads."))),
    ],
)
def test_a_model_a_prompt_or_a_tool_makes_another_opening(other: RequestParams) -> None:
    assert not is_same_opening(FRAME, other)
    assert compute_thinking_binding(FRAME) != compute_thinking_binding(other)


def test_the_order_of_tools_is_cached_and_thinking_is_not_signed_over_it() -> None:
    turned = replace(FRAME, tools=FRAME.tools[::-1])
    assert not is_same_opening(FRAME, turned)
    assert compute_thinking_binding(FRAME) == compute_thinking_binding(turned)


def test_no_system_prompt_and_an_empty_one_are_alike() -> None:
    empty, none = replace(FRAME, system=""), replace(FRAME, system=())
    assert is_same_opening(empty, none)
    assert compute_thinking_binding(empty) == compute_thinking_binding(none)
    assert compute_thinking_binding(empty) == compute_thinking_binding(replace(FRAME, system=(block("  "),)))


def test_tools_without_a_name_count_by_their_type() -> None:
    first = JsonObject({"type": "web_search_20250305"})
    second = JsonObject({"type": "web_search_20260209"})
    bindings = {compute_thinking_binding(replace(FRAME, tools=tools)) for tools in ((first,), (second,), ())}
    assert len(bindings) == 3


def test_an_answer_tells_its_text_and_its_calls() -> None:
    use = ToolUse(ToolUseId("t1"), "Bash", JsonObject({}))
    message = Message("assistant", (Thinking("Hm.", "s"), Text("I "), use, Text("look.")))
    answer = ModelResponse(message=message, usage=NO_USAGE, usage_wire=JsonObject({}))
    assert answer.text == "I look."
    assert answer.tool_uses == (use,)


def test_the_parameters_used_last_stay_known_and_no_more_than_are_counted() -> None:
    cached = CachedRequests()
    for number in range(MAX_CACHED_PARAMS):
        cached.add(str(number), NOON + timedelta(seconds=number))
    cached.add("0", NOON + timedelta(hours=1))
    cached.add("new", NOON)
    assert "1" not in cached.started
    assert cached.started["0"] == NOON + timedelta(hours=1)
    assert len(cached.started) == MAX_CACHED_PARAMS
    cached.add("0", None)
    assert "0" not in cached.started


SUMMARY = ViewMessage(
    Message("assistant", (Compaction("What was said."),)), weight=1.0, entry=ENGINE_ENTRY, origin="attachment"
)
THOUGHT = ViewMessage(
    Message("assistant", (Thinking("Hm.", "s"), Text("Yes."))), weight=1.0, entry=0, origin="human"
)
PLAIN = ViewMessage(Message("user", "Hello"), weight=1.0, entry=1, origin="human")


def test_a_model_that_takes_everything_gets_the_very_messages() -> None:
    items = [SUMMARY, THOUGHT, PLAIN]
    adapted = adapt_messages(
        items, Capabilities(rewrites_history=False, compacts_on_demand=True), drops_thinking=False
    )
    assert all(one is other for one, other in zip(items, adapted, strict=True))


def test_a_compaction_block_becomes_text_for_a_model_that_makes_none() -> None:
    summary, thought, plain = adapt_messages(
        [SUMMARY, THOUGHT, PLAIN], Capabilities(rewrites_history=False), drops_thinking=False
    )
    assert not any(isinstance(one, Compaction) for one in summary.message.blocks)
    assert "What was said." in repr(summary.message)
    assert (thought, plain) == (THOUGHT, PLAIN)


def test_thinking_that_no_longer_holds_is_dropped_and_the_rest_stays() -> None:
    capabilities = Capabilities(rewrites_history=False, compacts_on_demand=True)
    summary, thought, plain = adapt_messages([SUMMARY, THOUGHT, PLAIN], capabilities, drops_thinking=True)
    assert thought.message.blocks == (Text("Yes."),)
    assert (thought.entry, thought.origin) == (0, "human")
    assert summary is SUMMARY
    assert plain is PLAIN


def test_the_first_change_of_a_view_is_a_message_that_is_another_or_gone() -> None:
    one, two, three = Message("user", "1"), Message("assistant", "2"), Message("user", "3")
    assert find_first_change([one, two], [one, two, three]) is None
    assert find_first_change([one, two, three], [one, two]) == 2
    assert find_first_change([one, two, three], [one, three]) == 1
    assert find_first_change([], [one]) is None
