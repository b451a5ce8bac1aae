"""`context_management`: old tool results and old thinking cleared on the server."""

from __future__ import annotations

import pytest

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolResult
from sevenfold.testing import Prompt
from tests.simulator.asking import (
    MARK,
    PROSE,
    Answer,
    Asker,
    Fields,
    assistant,
    reply,
    result,
    text,
    tool,
    use,
    user,
)

BETA = "context-management-2025-06-27"
TOOLS = "clear_tool_uses_20250919"
THINKING = "clear_thinking_20251015"


def rounds(count: int, content: object = PROSE, name: str = "look") -> list[object]:
    """A task, and so many tool requests with their results."""
    said: list[object] = [user("Look at it.")]
    for number in range(count):
        said.append(assistant(use(f"toolu_{number}", name, at=f"place {number}")))
        said.append(user(result(f"toolu_{number}", content)))
    return said


def edited(ask: Asker, said: list[object], *edits: Fields, **fields: object) -> Answer:
    management: Fields = {"edits": list(edits)}
    told = {"tools": [tool("look"), tool("keep")], "betas": [BETA], **fields}
    return ask.create(*said, context_management=management, **told)


def clearing(**fields: object) -> Fields:
    return {"type": TOOLS, "trigger": {"type": "input_tokens", "value": 100}, **fields}


def uses(count: int) -> Fields:
    return {"type": "tool_uses", "value": count}


def applied(answer: Answer) -> object:
    return answer.at("context_management", "applied_edits")


@pytest.mark.rule("edits-1")
@pytest.mark.parametrize(
    ("edits", "betas"),
    [
        ([{"type": TOOLS}], ["compact-2026-01-12"]),
        ([{"type": "clear_everything"}], [BETA]),
        ([{"type": TOOLS}, {"type": TOOLS}], [BETA]),
        ([{"kind": TOOLS}], [BETA]),
        (["clear"], [BETA]),
        ([{"type": TOOLS, "keep": 3}], [BETA]),
        ([{"type": TOOLS, "keep": {"type": "input_tokens", "value": 3}}], [BETA]),
        ([{"type": TOOLS, "trigger": {"type": "input_tokens"}}], [BETA]),
        ([{"type": TOOLS, "exclude_tools": "look"}], [BETA]),
        ([{"type": TOOLS, "clear_tool_inputs": "look"}], [BETA]),
    ],
)
def test_an_edit_that_cannot_be_made_is_refused(ask: Asker, edits: list[object], betas: list[str]) -> None:
    answer = ask.create("Hi", betas=betas, context_management={"edits": edits})
    assert answer.status == 400
    assert answer.message.startswith("context_management.edits.")


@pytest.mark.rule("edits-1")
def test_no_edits_are_no_trouble(ask: Asker) -> None:
    nothing: list[Fields] = [{"edits": []}, {}]
    for management in nothing:
        assert ask.create("Hi", betas=[BETA], context_management=management).status == 200


@pytest.mark.rule("edits-2")
def test_results_are_cleared_over_a_hundred_thousand_tokens(ask: Asker) -> None:
    plain = {"type": TOOLS}
    size = ask.create(*rounds(1, PROSE * 20), tools=[tool()]).usage.prompt
    below, above = 100_000 // size, 100_000 // size + 1
    assert applied(edited(ask, rounds(below, PROSE * 20), plain)) == ()
    assert applied(edited(ask, rounds(above, PROSE * 20), plain)) != ()


@pytest.mark.rule("edits-3")
@pytest.mark.parametrize(("count", "cleared"), [(4, None), (5, 2), (6, 3)])
def test_a_number_of_uses_can_trigger(ask: Asker, count: int, cleared: int | None) -> None:
    answer = edited(ask, rounds(count, "Short."), {"type": TOOLS, "trigger": uses(4)})
    assert answer.at("context_management", "applied_edits", 0, "cleared_tool_uses") == cleared


@pytest.mark.rule("edits-4")
@pytest.mark.parametrize(
    ("keep", "left"), [(None, 3), (uses(1), 1), (uses(0), 0), (uses(5), 5), (uses(9), 6)]
)
def test_the_newest_uses_are_kept(ask: Asker, keep: Fields | None, left: int) -> None:
    seen: list[bool] = []

    def look(prompt: Prompt) -> str:
        results = [block for message in prompt.messages for block in message.blocks]
        seen.extend(item.content == PROSE for item in results if isinstance(item, ToolResult))
        return "Seen."

    ask.sim.reset(look)
    edited(ask, rounds(6), clearing(keep=keep) if keep else clearing())
    assert seen == [False] * (6 - left) + [True] * left


@pytest.mark.rule("edits-5")
def test_nothing_is_cleared_for_too_little(ask: Asker) -> None:
    freed = edited(ask, rounds(5), clearing()).at(
        "context_management", "applied_edits", 0, "cleared_input_tokens"
    )
    assert isinstance(freed, int)
    enough = clearing(clear_at_least={"type": "input_tokens", "value": freed})
    too_much = clearing(clear_at_least={"type": "input_tokens", "value": freed + 1})
    assert applied(edited(ask, rounds(5), enough)) != ()
    assert applied(edited(ask, rounds(5), too_much)) == ()


@pytest.mark.rule("edits-6")
def test_excluded_tools_are_left_alone(ask: Asker) -> None:
    said = [*rounds(2, name="keep")[:-4], *rounds(4)]
    mixed = [*said, assistant(use("toolu_k", "keep")), user(result("toolu_k", PROSE))]
    all_but = edited(ask, mixed, clearing(keep=uses(0), exclude_tools=["keep"]))
    assert all_but.at("context_management", "applied_edits", 0, "cleared_tool_uses") == 4


@pytest.mark.rule("edits-6")
def test_uses_of_tools_that_the_api_runs_count_and_can_be_excluded(ask: Asker) -> None:
    searched = assistant(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "Found nothing."},
    )
    said = [*rounds(3), searched, user("Go on.")]
    counted = edited(ask, said, clearing(keep=uses(2), exclude_tools=["web_search"]))
    assert counted.at("context_management", "applied_edits", 0, "cleared_tool_uses") == 2


@pytest.mark.rule("edits-7")
@pytest.mark.parametrize(
    ("inputs", "gone"), [(None, False), (False, False), (True, True), (["look"], True), (["x"], False)]
)
def test_what_tools_were_asked_can_go_too(ask: Asker, inputs: object, gone: bool) -> None:
    seen: list[str] = []

    def look(prompt: Prompt) -> str:
        seen.append(str(prompt.messages[1].blocks[0]))
        return "Seen."

    ask.sim.reset(look)
    edited(ask, rounds(5), clearing(clear_tool_inputs=inputs))
    assert ("place 0" in seen[0]) is not gone


@pytest.mark.rule("edits-8")
def test_what_was_cleared_is_told(ask: Asker) -> None:
    answer = edited(ask, rounds(5), clearing())
    whole = ask.create(*rounds(5), tools=[tool("look"), tool("keep")])
    freed = whole.usage.prompt - answer.usage.prompt
    told = answer.at("context_management", "applied_edits", 0)
    assert told == JsonObject({"type": TOOLS, "cleared_tool_uses": 2, "cleared_input_tokens": freed})
    assert ask.sim.ledger.entries[0].applied_edits == (told,)


@pytest.mark.rule("edits-8")
def test_nothing_done_and_nothing_asked_are_told_apart(ask: Asker) -> None:
    assert applied(edited(ask, rounds(1), clearing())) == ()
    assert "context_management" not in ask.create("Hi").body


@pytest.mark.rule("edits-9")
def test_the_bill_is_for_what_the_model_sees(ask: Asker) -> None:
    said = rounds(6)
    whole = ask.create(*said, tools=[tool("look"), tool("keep")]).usage.prompt
    less = edited(ask, said, clearing()).usage.prompt
    assert less < whole * 0.6
    assert ask.create(*said, tools=[tool("look"), tool("keep")]).usage.prompt == whole


@pytest.mark.rule("edits-10")
def test_clearing_breaks_the_cache_from_the_first_cleared_block(ask: Asker) -> None:
    fields = {"tools": [tool("look"), tool("keep")], "cache_control": MARK}
    opening: list[object] = [user(text(PROSE, cache_control=MARK)), assistant("Yes."), *rounds(5)]
    first = ask.create(*opening, **fields)
    cleared = edited(ask, opening, clearing(), cache_control=MARK)
    again = edited(ask, opening, clearing(), cache_control=MARK)
    assert 0 < cleared.usage.read < first.usage.written_5m
    assert again.usage.read == cleared.usage.prompt
    entry = ask.sim.ledger.entries[1]
    assert entry.difference is not None
    assert (entry.difference.cause, entry.difference.path) == ("message", "messages.4.content.0")


@pytest.mark.rule("edits-11")
def test_thinking_is_cleared_first(ask: Asker) -> None:
    assert edited(ask, rounds(1), {"type": THINKING}, clearing()).status == 200
    refused = edited(ask, rounds(1), clearing(), {"type": THINKING})
    assert refused.message == f"context_management.edits.1: `{THINKING}` must be listed first"


def thoughts(ask: Asker, turns: int, **fields: object) -> list[object]:
    said: list[object] = []
    for number in range(turns):
        said.append(user(f"Question {number}"))
        said.append(reply(ask.create(*said, **fields)))
    return [*said, user("And now?")]


@pytest.mark.rule("edits-12")
@pytest.mark.parametrize(
    ("keep", "cleared"),
    [
        ({"type": "thinking_turns", "value": 1}, 2),
        ({"type": "thinking_turns", "value": 2}, 1),
        ({"type": "thinking_turns", "value": 3}, None),
        ({"type": "all"}, None),
        ("all", None),
    ],
)
def test_the_newest_thinking_is_kept(ask: Asker, keep: object, cleared: int | None) -> None:
    fields: dict[str, object] = {"thinking": {"type": "adaptive"}}
    said = thoughts(ask, 3, **fields)
    answer = edited(ask, said, {"type": THINKING, "keep": keep}, **fields)
    assert answer.at("context_management", "applied_edits", 0, "cleared_thinking_turns") == cleared
    whole = edited(ask, said, **fields)
    tokens = answer.at("context_management", "applied_edits", 0, "cleared_input_tokens") or 0
    assert whole.usage.prompt - answer.usage.prompt == tokens


OLDER_THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}


@pytest.mark.rule("edits-13")
@pytest.mark.parametrize(
    ("model", "fields", "cleared"),
    [
        ("claude-opus-4-5", OLDER_THINKING, None),
        ("claude-sonnet-4-6", {"thinking": {"type": "adaptive"}}, None),
        ("claude-haiku-5-5", {"thinking": {"type": "adaptive"}}, None),
        ("claude-haiku-4-5", OLDER_THINKING, 2),
        ("claude-sonnet-4-5", OLDER_THINKING, 2),
    ],
)
def test_how_much_thinking_is_kept_unasked_depends_on_the_model(
    ask: Asker, model: str, fields: dict[str, object], cleared: int | None
) -> None:
    told = {"model": model, **fields}
    answer = edited(
        ask, thoughts(ask, 3, tools=[tool("look"), tool("keep")], **told), {"type": THINKING}, **told
    )
    assert answer.at("context_management", "applied_edits", 0, "cleared_thinking_turns") == cleared


@pytest.mark.rule("edits-14")
@pytest.mark.parametrize(
    "keep", [{"type": "thinking_turns", "value": 0}, {"type": "thinking_turns"}, "none", {}]
)
def test_keeping_no_turn_is_refused(ask: Asker, keep: object) -> None:
    assert edited(ask, rounds(1), {"type": THINKING, "keep": keep}).status == 400


@pytest.mark.rule("edits-15")
@pytest.mark.parametrize(("model", "strips"), [("claude-haiku-4-5", True), ("claude-opus-4-5", False)])
def test_some_models_leave_earlier_thinking_out_by_themselves(ask: Asker, model: str, strips: bool) -> None:
    fields: dict[str, object] = {"model": model, **OLDER_THINKING}
    said = thoughts(ask, 3, **fields)
    plain = ask.create(*said, **fields)
    kept = edited(ask, said, {"type": THINKING, "keep": "all"}, tools=[], **fields)
    assert (plain.usage.prompt < kept.usage.prompt) is strips
    assert "context_management" not in plain.body
