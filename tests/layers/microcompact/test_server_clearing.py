"""Clearing on the provider's side: how deep, what a request says of it, and what a fork keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import Capabilities, RequestParams, ViewMessage
from sevenfold.layers.microcompact.server_clearing import (
    CLEAR_TOOL_USES,
    CONTEXT_MANAGEMENT_BETA,
    CONTEXT_MANAGEMENT_PARAM,
    ServerClearing,
    ServerEditFacts,
    ServerEditSettings,
    choose_clearing_depth,
    choose_trigger_tokens,
    render_context_management,
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
        (True, False, "auto", True),
        (True, True, "auto", False),
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


def test_a_request_says_what_to_keep_and_which_tools_are_spared() -> None:
    assert render_context_management(0, 5, (), SETTINGS) is None
    rendered = render_context_management(3, 5, ("Bash",), replace(SETTINGS, thinking_turns=2))
    assert rendered is not None
    thinking, tools = rendered["edits"]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    assert thinking == JsonObject(
        {"type": "clear_thinking_20251015", "keep": JsonObject({"type": "thinking_turns", "value": 2})}
    )
    assert tools == JsonObject(
        {
            "type": CLEAR_TOOL_USES,
            "trigger": JsonObject({"type": "tool_uses", "value": 1}),
            "keep": JsonObject({"type": "tool_uses", "value": 2}),
            "exclude_tools": ("Bash",),
        }
    )
    plain = render_context_management(3, 5, (), SETTINGS)
    assert plain is not None
    assert "exclude_tools" not in str(plain)


def test_a_step_is_taken_once_and_again_when_enough_came_after_it() -> None:
    made = clearing(*uses(6))
    assert made.choose(9_999, AUTO, round) is None
    assert made.oldest is None
    step = made.choose(20_000, AUTO, round)
    assert step is not None
    assert (step.first, step.results, step.weight, step.tokens) == ("u0", 4, 12_000.0, 12_000)
    assert (made.depth, made.oldest) == (4, "u4")
    assert made.choose(20_000, AUTO, round) is None
    for item in uses(3, start=6):
        made.add(item.message, item.weight)
    again = made.choose(20_000, AUTO, round)
    assert again is not None
    assert (again.first, again.results, made.depth) == ("u4", 3, 7)


def test_results_of_a_tool_that_is_never_cleared_free_nothing() -> None:
    made = clearing(*uses(6, tool="Ask"))
    assert made.choose(20_000, AUTO, round) is None
    mixed = clearing(*uses(3), *uses(2, tool="Ask", start=3), *uses(2, start=5))
    step = mixed.choose(20_000, AUTO, round)
    assert step is not None
    assert (step.results, step.tokens) == (5, 9_000)
    sent = mixed.apply(FRAME).params[CONTEXT_MANAGEMENT_PARAM]
    assert "Ask" in str(sent)


def test_results_of_one_message_share_its_weight() -> None:
    calls = tuple(ToolUse(ToolUseId(name), "Read", EMPTY_OBJECT) for name in "abcd")
    results = tuple(ToolResult(use.id, "found") for use in calls)
    made = clearing(
        ViewMessage(Message("assistant", calls), 1.0), ViewMessage(Message("user", results), 24_000.0)
    )
    step = made.choose(30_000, AUTO, round)
    assert step is not None
    assert (step.results, step.tokens) == (2, 12_000)


def test_the_parameters_say_so_and_what_the_caller_set_stays() -> None:
    made = clearing(*uses(6))
    assert made.apply(FRAME) is FRAME
    made.choose(20_000, AUTO, round)
    sent = made.apply(FRAME)
    assert sent.betas == ("mine", CONTEXT_MANAGEMENT_BETA)
    assert sent.params[CONTEXT_MANAGEMENT_PARAM] == render_context_management(4, 6, (), SETTINGS)
    assert made.apply(sent) is sent
    own = replace(FRAME, params=JsonObject({CONTEXT_MANAGEMENT_PARAM: JsonObject({"edits": ()})}))
    assert made.apply(own) is own


def test_another_view_keeps_what_is_cleared_only_if_it_begins_the_same() -> None:
    made = clearing(*uses(6))
    made.choose(20_000, AUTO, round)
    made.start_over(uses(5), keeps=True)
    assert (made.depth, made.oldest) == (4, "u4")
    made.start_over(uses(2), keeps=True)
    assert (made.depth, made.oldest) == (2, None)
    made.start_over(uses(6), keeps=False)
    assert (made.depth, made.oldest) == (0, None)


def test_a_depth_that_is_restored_weighs_what_it_clears() -> None:
    made = clearing(*uses(6))
    assert made.restore_depth(2) == 6_000.0
    assert made.restore_depth(3) == 3_000.0
    assert (made.depth, made.oldest) == (3, "u3")


def test_a_fork_keeps_as_many_more_as_it_adds() -> None:
    made = clearing(*uses(6), settings=replace(SETTINGS, thinking_turns=2))
    made.choose(20_000, AUTO, round)
    params = made.apply(FRAME).params
    more = with_more_kept(params, 3)
    wanted = render_context_management(4, 9, (), replace(SETTINGS, thinking_turns=2))
    assert more[CONTEXT_MANAGEMENT_PARAM] == wanted
    assert with_more_kept(params, 0) is params
    for odd in (
        EMPTY_OBJECT,
        JsonObject({CONTEXT_MANAGEMENT_PARAM: 1}),
        JsonObject({CONTEXT_MANAGEMENT_PARAM: EMPTY_OBJECT}),
    ):
        assert with_more_kept(odd, 3) is odd
    strange = JsonObject({"edits": (1, JsonObject({"type": CLEAR_TOOL_USES}))})
    assert with_more_kept(JsonObject({CONTEXT_MANAGEMENT_PARAM: strange}), 3) == JsonObject(
        {CONTEXT_MANAGEMENT_PARAM: strange}
    )
