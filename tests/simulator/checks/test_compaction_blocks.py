"""Compaction blocks: made at a threshold or on demand, and sent back."""

from __future__ import annotations

import pytest

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Compaction
from sevenfold.testing import Prompt, Reply, say
from tests.simulator.asking import (
    MARK,
    MODEL,
    PROSE,
    Answer,
    Asker,
    Fields,
    assistant,
    blocks_of,
    reply,
    result,
    system,
    text,
    tool,
    use,
    user,
)

THRESHOLD, DEMAND = "compact-2026-01-12", "compact-2026-09-04"
LONG = PROSE * 90
"""Over the least threshold."""
SUMMARISE: Fields = {"type": "summarize"}


def brain(prompt: Prompt) -> Reply:
    if prompt.purpose == "summary":
        return say(f"Summary of {len(prompt.messages)}. {prompt.instructions or ''}".strip())
    return say(f"Seen {len(prompt.messages)}.")


def at_threshold(ask: Asker, *said: object, **edit: object) -> Answer:
    told = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}, **edit}
    return ask.create(*said, betas=[THRESHOLD], context_management={"edits": [told]})


def on_demand(ask: Asker, *said: object, **fields: object) -> Answer:
    told: dict[str, object] = {"betas": [DEMAND], "compaction": SUMMARISE, **fields}
    return ask.create(*said, **told)


@pytest.fixture(autouse=True)
def summariser(ask: Asker) -> None:
    ask.sim.reset(brain)


@pytest.mark.rule("compaction-1")
@pytest.mark.parametrize(
    ("model", "status"), [("claude-opus-4-5", 400), ("claude-opus-4-6", 200), (MODEL, 200)]
)
def test_compaction_is_for_models_from_4_6_on(ask: Asker, model: str, status: int) -> None:
    management = {"edits": [{"type": "compact_20260112"}]}
    assert ask.create("Hi", model=model, betas=[THRESHOLD], context_management=management).status == status
    assert on_demand(ask, "Hi", model=model).status == status
    assert (
        ask.create("Hi", betas=["context-management-2025-06-27"], context_management=management).status == 400
    )


@pytest.mark.rule("compaction-2")
@pytest.mark.parametrize(("value", "status"), [(49_999, 400), (50_000, 200)])
def test_the_threshold_has_a_least(ask: Asker, value: int, status: int) -> None:
    assert at_threshold(ask, "Hi", trigger={"type": "input_tokens", "value": value}).status == status


@pytest.mark.rule("compaction-2")
def test_the_threshold_is_a_hundred_and_fifty_thousand_unless_told(ask: Asker) -> None:
    size = ask.count(LONG).at("input_tokens")
    assert isinstance(size, int)
    below = 150_000 // size
    assert at_threshold(ask, *[LONG] * below, trigger=None).kinds == ["text"]
    assert at_threshold(ask, *[LONG] * (below + 1), trigger=None).kinds == ["compaction", "text"]


@pytest.mark.rule("compaction-3")
def test_at_the_threshold_the_answer_goes_on_from_a_summary(ask: Asker) -> None:
    answer = at_threshold(ask, LONG, assistant("Yes."), "And now?")
    assert answer.kinds == ["compaction", "text"]
    assert answer.at("content", 0, "content") == "Summary of 3."
    assert (answer.at("content", 1, "text"), answer.at("stop_reason")) == ("Seen 1.", "end_turn")
    assert at_threshold(ask, "Hi").kinds == ["text"]


@pytest.mark.rule("compaction-3")
def test_the_model_sees_the_summary_and_nothing_else(ask: Asker) -> None:
    seen: list[Prompt] = []

    def look(prompt: Prompt) -> Reply:
        seen.append(prompt)
        return brain(prompt)

    ask.sim.reset(look)
    at_threshold(ask, LONG)
    (message,) = seen[1].messages
    assert message.blocks == (Compaction("Summary of 1."),)


@pytest.mark.rule("compaction-4")
def test_a_compaction_is_billed_beside_the_totals(ask: Asker) -> None:
    usage = at_threshold(ask, LONG).usage
    compacted, answered = usage.iterations
    assert (compacted.kind, answered.kind) == ("compaction", "message")
    assert compacted.fresh > 50_000 > answered.fresh
    assert (usage.fresh, usage.output) == (answered.fresh, answered.output)
    assert usage.context_tokens == answered.prompt + answered.output
    cost = ask.sim.last.cost
    assert cost is not None
    assert cost.fresh > 0.25
    assert ask.create("Hi").at("usage", "iterations") is None


@pytest.mark.rule("compaction-5")
def test_a_pause_returns_the_block_alone(ask: Asker) -> None:
    answer = at_threshold(ask, LONG, pause_after_compaction=True)
    assert (answer.kinds, answer.at("stop_reason")) == (["compaction"], "compaction")
    assert (answer.usage.prompt, answer.usage.output) == (0, 0)
    assert [run.kind for run in answer.usage.iterations] == ["compaction"]


@pytest.mark.rule("compaction-6")
@pytest.mark.parametrize(
    ("given", "said"), [("Be short.", "Summary of 1. Be short."), ("  ", "Summary of 1.")]
)
def test_instructions_reach_the_summariser(ask: Asker, given: str, said: str) -> None:
    answer = on_demand(ask, "Hi", compaction={**SUMMARISE, "instructions": given})
    assert answer.at("content", 0, "content") == said
    assert (
        at_threshold(ask, LONG, instructions="Be short.").at("content", 0, "content")
        == "Summary of 1. Be short."
    )


@pytest.mark.rule("compaction-7")
def test_nothing_before_a_summary_is_shown_or_billed(ask: Asker) -> None:
    block = {"type": "compaction", "content": "It was long."}
    after: list[object] = [assistant(block, "Yes."), "And now?"]
    whole = ask.create(LONG, *after, betas=[THRESHOLD])
    alone = ask.create(*after, betas=[THRESHOLD])
    assert whole.at("content", 0, "text") == "Seen 2."
    assert whole.usage.prompt == alone.usage.prompt < 100


@pytest.mark.rule("compaction-7")
def test_the_last_of_several_summaries_counts(ask: Asker) -> None:
    blocks = [{"type": "compaction", "content": f"Part {number}."} for number in (1, 2)]
    said: list[object] = [LONG, assistant(blocks[0], "Yes."), LONG, assistant(blocks[1], "Yes."), "And now?"]
    assert ask.create(*said, betas=[THRESHOLD]).usage.prompt < 100


@pytest.mark.rule("compaction-8")
def test_a_failed_compaction_means_nothing(ask: Asker) -> None:
    failed = {"type": "compaction", "content": None}
    with_it = ask.create(PROSE, assistant(failed, "Yes."), "And now?", betas=[THRESHOLD])
    without = ask.create(PROSE, assistant("Yes."), "And now?")
    assert with_it.usage.prompt == without.usage.prompt
    empty = {"type": "compaction", "content": ""}
    assert ask.create(PROSE, assistant(empty, "Yes."), "And now?", betas=[THRESHOLD]).status == 400


@pytest.mark.rule("compaction-9")
def test_without_a_summary_the_whole_conversation_is_answered(ask: Asker) -> None:
    ask.sim.reset(lambda prompt: say() if prompt.purpose == "summary" else brain(prompt))
    answer = at_threshold(ask, LONG, assistant("Yes."), "And now?")
    assert answer.content[0] == JsonObject({"type": "compaction", "content": None})
    assert answer.at("content", 1, "text") == "Seen 3."
    assert answer.usage.fresh > 50_000


@pytest.mark.rule("compaction-10")
def test_on_demand_the_answer_is_one_signed_block(ask: Asker) -> None:
    answer = on_demand(ask, "Hi", assistant("Hello."), "And?")
    assert (answer.kinds, answer.at("stop_reason")) == (["compaction"], "compaction")
    assert answer.at("content", 0, "content") == "Summary of 3."
    assert answer.at("content", 0, "signature")
    assert on_demand(ask, "Hi", compaction={"type": "drop"}).status == 400
    assert on_demand(ask, "Hi", compaction={}).status == 400


@pytest.mark.rule("compaction-11")
def test_on_demand_the_totals_are_nothing_and_the_cache_is_read(ask: Asker) -> None:
    said = user(text(PROSE, cache_control=MARK))
    written = ask.create(said).usage.written_5m
    usage = on_demand(ask, said).usage
    (run,) = usage.iterations
    assert (usage.prompt, usage.output, usage.context_tokens) == (0, 0, None)
    assert (run.kind, run.read) == ("compaction", written)
    assert run.fresh > 0
    assert run.output > 0


@pytest.mark.rule("compaction-12")
@pytest.mark.parametrize(
    "fields",
    [
        {"context_management": {"edits": []}},
        {"stop_sequences": ["END"]},
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        {"tools": [tool()], "tool_choice": {"type": "any"}},
        {"thread": {"type": "create"}},
        {"output_config": {"task_budget": {"type": "tokens", "total": 20_000, "remaining": 5}}},
    ],
    ids=["context_management", "stop_sequences", "format", "tool_choice", "thread", "task_budget.remaining"],
)
def test_on_demand_some_fields_are_refused(
    ask: Asker, fields: dict[str, object], request: pytest.FixtureRequest
) -> None:
    betas = [DEMAND, "context-management-2025-06-27", "message-threads-2026-08-12", "task-budgets-2026-03-13"]
    answer = on_demand(ask, "Hi", betas=betas, **fields)
    assert answer.status == 400
    assert answer.message.startswith("compaction: cannot be combined with ")
    assert request.node.callspec.id in answer.message


@pytest.mark.rule("compaction-13")
def test_an_unfinished_turn_cannot_be_summarised(ask: Asker) -> None:
    refused = on_demand(ask, "Look.", assistant(use()), tools=[tool()])
    assert (refused.status, refused.code) == (400, "compaction_incomplete_turn")
    assert on_demand(ask, "Look.", assistant("I did."), tools=[tool()]).status == 200
    assert on_demand(ask, "Look.", assistant(use()), user(result()), tools=[tool()]).status == 200


@pytest.mark.rule("compaction-14")
def test_nothing_said_cannot_be_summarised(ask: Asker) -> None:
    block = reply(on_demand(ask, "Hi"))
    refused = on_demand(ask, block)
    assert (refused.status, refused.code) == (400, "compaction_nothing_to_summarize")


@pytest.mark.rule("compaction-15")
@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "end_turn"])
def test_no_summary_is_an_empty_answer(ask: Asker, reason: str) -> None:
    ask.sim.reset(lambda _: Reply((), reason))
    answer = on_demand(ask, "Hi")
    assert (answer.status, answer.content, answer.at("stop_reason")) == (200, (), reason)


@pytest.mark.rule("compaction-16")
def test_a_signed_block_stands_first(ask: Asker) -> None:
    block = blocks_of(reply(on_demand(ask, "Hi")))[0]
    assert ask.create(assistant(block), "Go on.", betas=[DEMAND]).status == 200
    for said in (["Hi", assistant(block), "Go on."], [assistant("So.", block), "Go on."]):
        refused = ask.create(*said, betas=[DEMAND])
        assert (refused.status, refused.code) == (400, "compaction_block_misplaced")
    refused = ask.create("Hi", system(block), betas=[DEMAND])
    assert (refused.status, refused.code) == (400, "compaction_block_misplaced")


@pytest.mark.rule("compaction-17")
def test_two_signed_blocks_are_one_too_many(ask: Asker) -> None:
    block = blocks_of(reply(on_demand(ask, "Hi")))[0]
    refused = ask.create(assistant(block), "Go on.", assistant(block), "Go on.", betas=[DEMAND])
    assert (refused.status, refused.code) == (400, "compaction_block_ambiguous")


@pytest.mark.rule("compaction-18")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"content": "Another summary."}, "compaction_content_mismatch"),
        ({"signature": "bm90IG91cnM="}, "compaction_signature_invalid"),
        ({"signature": "!"}, "compaction_signature_invalid"),
    ],
)
def test_a_block_is_sent_back_as_it_came(ask: Asker, change: Fields, code: str) -> None:
    block = blocks_of(reply(on_demand(ask, "Hi")))[0]
    refused = ask.create(assistant({**block, **change}), "Go on.", betas=[DEMAND])
    assert (refused.status, refused.code) == (400, code)


@pytest.mark.rule("compaction-19")
def test_tool_changes_come_with_the_block(ask: Asker) -> None:
    def change(kind: str, name: str) -> Fields:
        return {"type": kind, "tool": {"type": "tool_reference", "name": name}}

    fields: dict[str, object] = {
        "tools": [tool("look"), tool("late", defer_loading=True)],
        "betas": [DEMAND, "mid-conversation-tool-changes-2026-07-01"],
    }
    notes = system(change("tool_addition", "late"), change("tool_removal", "look"))
    block = blocks_of(reply(on_demand(ask, "Hi", notes, **fields)))[0]
    assert block["tool_changes"] == [change("tool_addition", "late"), change("tool_removal", "look")]
    assert ask.create(assistant(block), "Go on.", **fields).status == 200
    altered = {**block, "tool_changes": [change("tool_addition", "late")]}
    assert ask.create(assistant(altered), "Go on.", **fields).code == "compaction_tool_changes_mismatch"
    again = on_demand(ask, assistant(block), "Go on.", system(change("tool_removal", "late")), **fields)
    assert blocks_of(reply(again))[0]["tool_changes"] == [
        change("tool_removal", "look"),
        change("tool_removal", "late"),
    ]


@pytest.mark.rule("compaction-20")
@pytest.mark.parametrize(("betas", "status"), [([DEMAND], 200), ([THRESHOLD], 400), ([], 400)])
def test_a_signed_block_needs_its_beta_every_time(ask: Asker, betas: list[str], status: int) -> None:
    block = reply(on_demand(ask, "Hi"))
    assert ask.create(block, "Go on.", betas=betas).status == status


@pytest.mark.rule("compaction-21")
def test_the_system_prompts_marker_survives_a_compaction(ask: Asker) -> None:
    frame: dict[str, object] = {"system": [text(PROSE, cache_control=MARK)], "betas": [DEMAND]}
    written = ask.create("Hi", **frame).usage.written_5m
    block = blocks_of(reply(on_demand(ask, "Hi", **frame)))[0]
    after = ask.create(assistant({**block, "cache_control": MARK}), "Go on.", **frame).usage
    again = ask.create(assistant({**block, "cache_control": MARK}), "Go on.", "More.", **frame).usage
    assert after.read == written
    assert after.written_5m > 0
    assert again.read == written + after.written_5m
