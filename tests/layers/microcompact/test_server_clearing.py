"""Clearing on the provider's side: how deep, what a request says of it, and what a fork keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import Message, Opaque, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import Capabilities, ModelRequest, RequestParams, ViewMessage
from sevenfold.layers.microcompact.server_clearing import (
    CLEAR_THINKING,
    CLEAR_TOOL_USES,
    CONTEXT_MANAGEMENT_BETA,
    CONTEXT_MANAGEMENT_PARAM,
    ServerClearing,
    ServerEditFacts,
    ServerEditSettings,
    add_clearing,
    choose_clearing_depth,
    choose_trigger_tokens,
    clears_exactly,
    find_cleared_uses,
    takes_our_edit,
    uses_server_edits,
    with_more_kept,
)

SETTINGS = ServerEditSettings(trigger_tokens=10_000, margin_tokens=1_000, keep_results=2, thinking_turns=0)
FRAME = RequestParams(model="claude-opus-5-5", max_tokens=1_000, betas=("mine",))
AUTO = 100_000


def uses(count: int, tool: str = "Read", start: int = 0) -> list[ViewMessage]:
    """So many calls and their results, which weigh 3,000 each."""
    items: list[ViewMessage] = []
    for number in range(start, start + count):
        use = ToolUse(ToolUseId(f"u{number}"), tool, EMPTY_OBJECT)
        items.append(ViewMessage(Message("assistant", (Text("I look."), use)), 10.0))
        items.append(ViewMessage(Message("user", (ToolResult(use.id, "found"),)), 3_000.0))
    return items


def clearing(*items: ViewMessage, settings: ServerEditSettings = SETTINGS) -> ServerClearing:
    made = ServerClearing(settings=settings, is_clearable=lambda name: name == "Read")
    for item in items:
        made.add(item.message, item.weight)
    return made


@pytest.mark.parametrize(
    ("has_edits", "rewrites", "when", "is_used"),
    [
        (True, True, "never", False),
        (True, False, "never", False),
        (True, True, "always", True),
        (False, False, "always", False),
        (True, False, "signed", True),
        (True, True, "signed", False),
    ],
)
def test_the_provider_clears_where_it_can_and_we_may_not(
    has_edits: bool, rewrites: bool, when: str, is_used: bool
) -> None:
    capabilities = Capabilities(rewrites_history=rewrites, has_server_edits=has_edits)
    assert uses_server_edits(capabilities, replace(SETTINGS, clear_results=when)) is is_used


def test_clearing_is_considered_below_the_compaction_by_its_margin() -> None:
    assert choose_trigger_tokens(AUTO, SETTINGS) == 10_000
    assert choose_trigger_tokens(10_999, SETTINGS) == 9_999
    assert choose_trigger_tokens(500, SETTINGS) == 1


@pytest.mark.parametrize(
    ("context", "depth", "sizes", "chosen"),
    [
        (9_999, 0, [9_000] * 9, 0),
        (9_999, 3, [9_000] * 9, 3),
        (10_000, 0, [2_500, 2_500, 1, 1], 2),
        (10_000, 0, [2_500, 2_499, 1, 1], 0),
        (10_000, 2, [9_000, 9_000, 2_500, 2_499, 1, 1], 2),
        (10_000, 2, [9_000, 9_000, 2_500, 2_500, 1, 1], 4),
        (10_000, 5, [9_000] * 6, 5),
    ],
)
def test_a_step_takes_all_but_the_newest_if_it_frees_enough(
    context: int, depth: int, sizes: list[int], chosen: int
) -> None:
    assert choose_clearing_depth(ServerEditFacts(context, AUTO, depth, sizes), SETTINGS) == chosen


def edits_of(params: JsonObject) -> list[JsonObject]:
    management = params[CONTEXT_MANAGEMENT_PARAM]
    assert isinstance(management, JsonObject)
    edits = management["edits"]
    assert isinstance(edits, tuple)
    return [edit for edit in edits if isinstance(edit, JsonObject)]


def managed(*edits: JsonObject, **more: str) -> JsonObject:
    return JsonObject({CONTEXT_MANAGEMENT_PARAM: JsonObject({**more, "edits": edits})})


def test_a_request_says_what_to_keep_and_which_tools_are_excluded() -> None:
    assert add_clearing(EMPTY_OBJECT, 0, 5, (), SETTINGS) is EMPTY_OBJECT
    thinking, tools = edits_of(
        add_clearing(EMPTY_OBJECT, 3, 5, ("Bash",), replace(SETTINGS, thinking_turns=2))
    )
    assert thinking == JsonObject(
        {"type": CLEAR_THINKING, "keep": JsonObject({"type": "thinking_turns", "value": 2})}
    )
    assert tools == JsonObject(
        {
            "type": CLEAR_TOOL_USES,
            "trigger": JsonObject({"type": "tool_uses", "value": 1}),
            "keep": JsonObject({"type": "tool_uses", "value": 2}),
            "exclude_tools": ("Bash",),
        }
    )
    plain = add_clearing(EMPTY_OBJECT, 3, 5, (), SETTINGS)
    assert "exclude_tools" not in edits_of(plain)[0]
    assert clears_exactly(plain)
    assert not takes_our_edit(plain)


def test_an_edit_of_thinking_that_the_caller_sends_stays_before_ours() -> None:
    own = managed(JsonObject({"type": CLEAR_THINKING}), other="x")
    assert takes_our_edit(own)
    assert not clears_exactly(own)
    both = add_clearing(own, 3, 5, (), replace(SETTINGS, thinking_turns=2))
    assert [edit["type"] for edit in edits_of(both)] == [CLEAR_THINKING, CLEAR_TOOL_USES]
    assert "x" in str(both[CONTEXT_MANAGEMENT_PARAM])


def test_a_step_is_taken_once_and_again_when_enough_came_after_it() -> None:
    made = clearing(*uses(6))
    assert made.choose_by_trigger(9_999, AUTO, round) == 0
    assert made.oldest is None
    assert made.choose_by_trigger(20_000, AUTO, round) == 4
    step = made.deepen(4)
    assert step is not None
    assert (step.first, step.ids, step.weight) == ("u0", ("u0", "u1", "u2", "u3"), 12_000.0)
    assert (made.depth, made.oldest) == (4, "u4")
    assert made.choose_by_trigger(20_000, AUTO, round) == 4
    assert made.deepen(4) is made.deepen(2) is None
    assert made.depth == 4, "what is cleared stays cleared"
    for item in uses(3, start=6):
        made.add(item.message, item.weight)
    assert made.choose_by_trigger(20_000, AUTO, round) == 7
    assert made.depth_at(ToolUseId("u6")) == 7


def test_results_of_a_tool_that_is_never_cleared_free_nothing() -> None:
    assert clearing(*uses(6, tool="Ask")).choose_by_trigger(20_000, AUTO, round) == 0
    mixed = clearing(*uses(3), *uses(2, tool="Ask", start=3), *uses(3, start=5))
    step = mixed.deepen(4)
    assert step is not None
    assert (step.ids, step.weight) == (("u0", "u1", "u2"), 9_000.0)
    assert mixed.oldest == "u5"
    assert mixed.excluded == ("Ask",)
    assert edits_of(mixed.apply(FRAME).params)[0]["exclude_tools"] == ("Ask",)


def test_results_of_one_message_share_its_weight_by_length() -> None:
    calls = tuple(ToolUse(ToolUseId(name), "Read", EMPTY_OBJECT) for name in "ab")
    results = (ToolResult(calls[0].id, "x" * 99), ToolResult(calls[1].id, "x" * 299))
    made = clearing(
        ViewMessage(Message("assistant", calls), 1.0), ViewMessage(Message("user", results), 4_000.0)
    )
    step = made.deepen(1)
    assert step is not None
    assert step.weight == pytest.approx(1_000.0)


def test_the_parameters_say_so_and_what_the_caller_clears_stays() -> None:
    made = clearing(*uses(6))
    assert made.apply(FRAME) is FRAME
    made.deepen(4)
    sent = made.apply(FRAME)
    assert sent.betas == ("mine", CONTEXT_MANAGEMENT_BETA)
    assert sent.params == add_clearing(EMPTY_OBJECT, 4, 6, (), SETTINGS)
    assert made.apply(sent) is sent


def test_an_edit_of_thinking_by_the_caller_has_its_header_before_anything_is_cleared() -> None:
    edit = JsonObject({"type": CLEAR_THINKING, "keep": "all"})
    params = JsonObject({CONTEXT_MANAGEMENT_PARAM: JsonObject({"edits": (edit,)})})
    sent = clearing(*uses(6)).apply(replace(FRAME, params=params))
    assert (sent.params, sent.betas) == (params, ("mine", CONTEXT_MANAGEMENT_BETA))


def test_another_view_keeps_what_is_cleared_only_if_it_begins_the_same() -> None:
    made = clearing(*uses(6))
    made.deepen(4)
    step = made.start_over(uses(5), keeps=True)
    assert step is not None
    assert (len(step.ids), made.depth, made.oldest) == (4, 4, "u4")
    made.start_over(uses(2), keeps=True)
    assert (made.depth, made.oldest) == (2, None)
    assert made.start_over(uses(6), keeps=False) is None
    assert (made.depth, made.oldest) == (0, None)


def test_a_depth_that_is_restored_weighs_what_it_clears() -> None:
    made = clearing(*uses(6))
    first = made.restore(2, None)
    assert first is not None
    assert first.weight == 6_000.0
    assert made.restore(99, ("Ask", "Read")) is None, "it left that tool alone"
    assert (made.depth, made.excluded) == (2, ("Ask", "Read")), "and no depth changes without a step"


def test_a_depth_ends_with_the_last_use_that_goes_and_can_be_released() -> None:
    made = clearing(*uses(2), *uses(2, tool="Ask", start=2))
    step = made.deepen(4)
    assert step is not None
    assert made.release() == step
    assert (made.depth, made.cleared, made.release()) == (0, (), None)
    made.deepen(3)
    assert (made.depth, made.cleared) == (2, ("u0", "u1"))
    assert made.is_reached
    made.start_over(uses(1), keeps=True)
    assert (made.depth, made.is_reached) == (1, False)


def test_a_fork_keeps_as_many_more_as_it_adds() -> None:
    made = clearing(*uses(6), settings=replace(SETTINGS, thinking_turns=2))
    made.deepen(4)
    params = made.apply(FRAME).params
    wanted = add_clearing(EMPTY_OBJECT, 4, 9, (), replace(SETTINGS, thinking_turns=2))
    assert with_more_kept(params, 3) == wanted
    assert with_more_kept(params, 0) is params
    for odd in (EMPTY_OBJECT, JsonObject({CONTEXT_MANAGEMENT_PARAM: 1})):
        assert with_more_kept(odd, 3) is odd
    strange = managed(JsonObject({"type": CLEAR_TOOL_USES}))
    assert with_more_kept(strange, 3) == strange


def searches(number: int) -> ViewMessage:
    """An answer in which the provider ran a tool of its own."""
    use = {"type": "server_tool_use", "id": f"s{number}", "name": "web_search", "input": EMPTY_OBJECT}
    found = {"type": "web_search_tool_result", "tool_use_id": f"s{number}", "content": ()}
    return ViewMessage(Message("assistant", (Opaque(JsonObject(use)), Opaque(JsonObject(found)))), 500.0)


def test_uses_of_tools_that_the_provider_runs_count_and_are_never_cleared() -> None:
    made = clearing(*uses(2), searches(1), *uses(3, start=2))
    assert made.deepen(made.depth_at(ToolUseId("u2"))) is not None
    assert made.cleared == ("u0", "u1", "u2")
    (edit,) = edits_of(made.apply(FRAME).params)
    assert (edit["keep"], edit["exclude_tools"]) == (
        JsonObject({"type": "tool_uses", "value": 2}),
        ("web_search",),
    )
    items = (*uses(2), searches(1), *uses(3, start=2), searches(2))
    made.add(items[-1].message, 500.0)
    request = ModelRequest(made.apply(FRAME), tuple(item.message for item in items))
    assert find_cleared_uses(request) == {"u0", "u1", "u2"}, "as many more are kept"
