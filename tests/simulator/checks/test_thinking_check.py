"""Preserved thinking: what a block is bound to, and what happens when that changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

import pytest

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import RedactedThinking, Text
from sevenfold.core.models import MODELS
from sevenfold.testing import Choices, Prompt, Reply, say
from tests.simulator.asking import (
    MARK,
    PROSE,
    Answer,
    Asker,
    Fields,
    assistant,
    blocks_of,
    plain,
    reply,
    role_of,
    text,
    tool,
    user,
)

BINDING = "thinking-binding-controls-2026-08-01"
SIGNING = [model.name for model in MODELS if model.has_preserved_thinking]
ALWAYS = ["claude-fable-5-2", "claude-mythos-5-2", "claude-mythos-5-1"]
OLD = Choices(account_created=date(2026, 8, 30))
NEW = Choices(account_created=date(2026, 8, 31))
BOUND = (
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}

Messages: TypeAlias = list[object]
Change: TypeAlias = Callable[["Talk"], "Talk"]


@dataclass(frozen=True)
class Talk:
    """A conversation with three answers in it, each of which thought."""

    messages: Messages
    fields: dict[str, object]

    def ask(self, ask: Asker, **more: object) -> Answer:
        return ask.create(*self.messages, "And now?", **{**self.fields, **more})

    def count(self, ask: Asker, **more: object) -> Answer:
        return ask.count(*self.messages, "And now?", **{**self.fields, **more})


def talk(ask: Asker, model: str = "claude-opus-5-5", **fields: object) -> Talk:
    told: dict[str, object] = {
        "model": model,
        "system": "Be brief.",
        "tools": [tool("look"), tool("walk")],
        "thinking": {"type": "adaptive"},
        **fields,
    }
    messages: Messages = []
    for said in ("One?", "Two?", "Three?"):
        messages.append({"role": "user", "content": said})
        messages.append(reply(ask.create(*messages, **told)))
    return Talk(messages, told)


def without_thinking(message: object) -> object:
    return assistant(*(block for block in blocks_of(message) if block["type"] != "thinking"))


def stripped(messages: Messages, *places: int) -> Messages:
    """The messages with the thinking of those answers left out."""
    return [without_thinking(item) if at in places else item for at, item in enumerate(messages)]


def replaced(messages: Messages, at: int, message: object) -> Messages:
    return [*messages[:at], message, *messages[at + 1 :]]


BREAKING: dict[str, Change] = {
    "an earlier turn edited": lambda it: Talk(replaced(it.messages, 0, user("One!")), it.fields),
    "an answer edited": lambda it: Talk(replaced(it.messages, 1, assistant("Other.")), it.fields),
    "turns removed": lambda it: Talk(it.messages[2:], it.fields),
    "a turn inserted": lambda it: Talk([it.messages[0], user("Well?"), *it.messages[1:]], it.fields),
    "system changed": lambda it: Talk(it.messages, {**it.fields, "system": "Be long."}),
    "system removed": lambda it: Talk(it.messages, {**it.fields, "system": ""}),
    "a tool added": lambda it: Talk(
        it.messages, {**it.fields, "tools": [tool("look"), tool("walk"), tool("run")]}
    ),
    "a tool removed": lambda it: Talk(it.messages, {**it.fields, "tools": [tool("look")]}),
    "a tool changed": lambda it: Talk(
        it.messages, {**it.fields, "tools": [tool("look", strict=True), tool("walk")]}
    ),
    "thinking taken from the middle": lambda it: Talk(stripped(it.messages, 3), it.fields),
}

HARMLESS: dict[str, Change] = {
    "nothing": lambda it: it,
    "a marker added": lambda it: Talk(
        replaced(it.messages, 0, user(text("One?", cache_control=MARK))), {**it.fields, "cache_control": MARK}
    ),
    "tools reordered": lambda it: Talk(it.messages, {**it.fields, "tools": [tool("walk"), tool("look")]}),
    "text as a block": lambda it: Talk(replaced(it.messages, 0, user("One?")), it.fields),
    "system as a block": lambda it: Talk(it.messages, {**it.fields, "system": [text("Be brief.")]}),
    "outer white space": lambda it: Talk(replaced(it.messages, 0, user("\n One?  ")), it.fields),
    "another effort": lambda it: Talk(it.messages, {**it.fields, "output_config": {"effort": "low"}}),
    "another limit": lambda it: Talk(it.messages, {**it.fields, "max_tokens": 50}),
    "a tool for later": lambda it: Talk(
        it.messages, {**it.fields, "tools": [tool("look"), tool("walk"), tool("run", defer_loading=True)]}
    ),
    "the last turn taken back": lambda it: Talk(it.messages[:4], it.fields),
    "a turn split in two": lambda it: Talk(
        [*it.messages[:1], *_split(it.messages[1]), *it.messages[2:]], it.fields
    ),
}


def _split(message: object) -> list[object]:
    return [assistant(block) for block in blocks_of(message)]


@pytest.mark.rule("thinking-1")
@pytest.mark.parametrize(
    "model", ["claude-opus-5-5", "claude-haiku-5-5", "claude-opus-4-6", "claude-haiku-4-5"]
)
def test_thinking_comes_back_signed(ask: Asker, model: str) -> None:
    adaptive = (
        {"type": "adaptive"} if model != "claude-haiku-4-5" else {"type": "enabled", "budget_tokens": 1024}
    )
    answer = ask.create("Hi", model=model, thinking=adaptive, max_tokens=2000)
    assert answer.kinds == ["thinking", "text"]
    assert len(str(answer.at("content", 0, "signature"))) > 200


@pytest.mark.rule("thinking-2")
@pytest.mark.parametrize(("display", "shown"), [("omitted", ""), ("summarized", "Say it back.")])
def test_thinking_is_shown_or_withheld(ask: Asker, display: str, shown: str) -> None:
    answer = ask.create("Hi", thinking={"type": "adaptive", "display": display})
    assert answer.at("content", 0, "thinking") == shown
    assert answer.at("content", 0, "signature")


@pytest.mark.rule("thinking-2")
def test_withheld_thinking_is_billed_like_shown_thinking(ask: Asker) -> None:
    def brain(prompt: Prompt) -> Reply:
        return say("Yes.", think=PROSE)

    ask.sim.reset(brain)
    bills = {
        ask.create("Hi", max_tokens=2000, thinking={"type": "adaptive", "display": display}).usage.output
        for display in ("omitted", "summarized")
    }
    assert len(bills) == 1
    assert bills.pop() > 500


@pytest.mark.rule("thinking-3")
@pytest.mark.parametrize("model", [*SIGNING, "claude-opus-5", "claude-opus-4-6"])
def test_a_conversation_that_only_grows_passes(ask: Asker, model: str) -> None:
    assert talk(ask, model).ask(ask).status == 200


@pytest.mark.rule("thinking-4")
@pytest.mark.parametrize("change", BREAKING.values(), ids=BREAKING)
def test_a_change_before_a_block_is_refused(ask: Asker, change: Change) -> None:
    answer = change(talk(ask)).ask(ask, betas=[BINDING])
    assert answer.status == 400
    assert answer.message.partition(": ")[2] == BOUND


@pytest.mark.rule("thinking-4")
def test_the_first_block_out_of_place_is_named(ask: Asker) -> None:
    it = talk(ask)
    edited = Talk(replaced(it.messages, 2, user("Two!")), it.fields)
    assert edited.ask(ask).message.startswith("messages.3.content.0: ")


@pytest.mark.rule("thinking-5")
def test_the_header_is_named_when_it_was_not_sent(ask: Asker) -> None:
    it = talk(ask)
    broken = Talk(it.messages[2:], it.fields)
    assert broken.ask(ask).message.endswith(f"This needs the `anthropic-beta: {BINDING}` header.")
    assert broken.ask(ask, betas=[BINDING]).message.endswith('"drop_block".')


@pytest.mark.rule("thinking-6")
@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_what_changes_nothing_passes(ask: Asker, change: Change) -> None:
    assert change(talk(ask)).ask(ask).status == 200


@pytest.mark.rule("thinking-6")
def test_a_tool_for_later_counts_from_where_it_is_brought_in(ask: Asker) -> None:
    betas = ["mid-conversation-tool-changes-2026-07-01"]
    late = tool("run", defer_loading=True)
    it = talk(ask, tools=[tool("look"), late], betas=betas)
    brought: object = {
        "role": "system",
        "content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "run"}}],
    }
    grown = [*it.messages, user("Four?"), brought]
    grown.append(reply(ask.create(*grown, **it.fields)))
    assert Talk(grown, it.fields).ask(ask).status == 200
    changed = [tool("look"), {**late, "description": "Runs."}]
    assert Talk(grown, {**it.fields, "tools": changed}).ask(ask).status == 400
    assert Talk(it.messages, {**it.fields, "tools": changed}).ask(ask).status == 200


@pytest.mark.rule("thinking-7")
@pytest.mark.parametrize(
    ("places", "status"),
    [((1,), 200), ((1, 3), 200), ((5,), 200), ((3, 5), 200), ((1, 3, 5), 200), ((3,), 400)],
)
def test_thinking_may_be_left_out_at_the_ends(ask: Asker, places: tuple[int, ...], status: int) -> None:
    it = talk(ask)
    assert Talk(stripped(it.messages, *places), it.fields).ask(ask).status == status


@pytest.mark.rule("thinking-8")
def test_dropping_takes_the_first_bad_block_and_all_after_it(ask: Asker) -> None:
    it = talk(ask)
    edited = Talk(replaced(it.messages, 2, user("Two!")), {**it.fields, "thinking": DROP})
    answer = edited.ask(ask, betas=[BINDING])
    assert answer.at("input_transformations") == tuple(
        JsonObject({"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"})
        for path in ("messages.3.content.0", "messages.5.content.0")
    )
    bare = Talk(stripped(edited.messages, 3, 5), edited.fields)
    assert answer.usage.prompt == bare.ask(ask, betas=[BINDING]).usage.prompt
    assert ask.sim.ledger.entries[-2].dropped_thinking == ("messages.3.content.0", "messages.5.content.0")


@pytest.mark.rule("thinking-8")
def test_what_follows_a_drop_is_bound_to_what_was_left(ask: Asker) -> None:
    it = talk(ask)
    edited = Talk(replaced(it.messages, 2, user("Two!")), {**it.fields, "thinking": DROP})
    answer = edited.ask(ask, betas=[BINDING])
    grown = Talk([*edited.messages, user("And now?"), reply(answer)], edited.fields)
    paths = grown.ask(ask, betas=[BINDING]).at("input_transformations")
    assert isinstance(paths, tuple)
    assert len(paths) == 3


@pytest.mark.rule("thinking-9")
def test_transformations_are_told_with_the_beta_alone(ask: Asker) -> None:
    assert ask.create("Hi", model="claude-opus-5-5", betas=[BINDING]).at("input_transformations") == ()
    assert "input_transformations" not in ask.create("Hi", model="claude-opus-5-5").body


@pytest.mark.rule("thinking-10")
@pytest.mark.parametrize("choices", [OLD, NEW], ids=["old account", "new account"])
@pytest.mark.parametrize("model", SIGNING)
def test_an_old_account_is_checked_on_three_models(ask: Asker, model: str, choices: Choices) -> None:
    ask.sim.reset(choices=choices)
    it = talk(ask, model)
    enforced = choices is NEW or model in ALWAYS
    assert Talk(it.messages[2:], it.fields).ask(ask).status == (400 if enforced else 200)


@pytest.mark.rule("thinking-10")
def test_a_mismatch_that_is_allowed_is_told(ask: Asker) -> None:
    ask.sim.reset(choices=OLD)
    it = talk(ask)
    answer = Talk(it.messages[2:], it.fields).ask(ask, betas=[BINDING])
    assert answer.at("input_transformations") == tuple(
        JsonObject({"type": "thinking_mismatch_allowed", "path": path, "reason": "prefix_binding_mismatch"})
        for path in ("messages.1.content.0", "messages.3.content.0")
    )


@pytest.mark.rule("thinking-11")
@pytest.mark.parametrize(("behaviour", "status"), [("error", 400), ("drop_block", 200), (None, 200)])
def test_saying_what_to_do_asks_for_the_check(ask: Asker, behaviour: str | None, status: int) -> None:
    ask.sim.reset(choices=OLD)
    it = talk(ask)
    thinking = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": behaviour}}
    broken = Talk(it.messages[2:], {**it.fields, "thinking": thinking})
    assert broken.ask(ask, betas=[BINDING]).status == status


@pytest.mark.rule("thinking-11")
def test_an_unknown_behaviour_is_refused(ask: Asker) -> None:
    thinking = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "ignore"}}
    assert ask.create("Hi", betas=[BINDING], thinking=thinking).status == 400


@pytest.mark.rule("thinking-12")
@pytest.mark.parametrize("other", ["claude-fable-5-2", "claude-opus-5"])
def test_another_models_thinking_is_dropped(ask: Asker, other: str) -> None:
    it = talk(ask)
    switched = Talk(it.messages, {**it.fields, "model": other})
    answer = switched.ask(ask, betas=[BINDING])
    assert answer.status == 200
    assert answer.at("input_transformations", 0) == JsonObject(
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "model_binding_mismatch"}
    )
    bare = Talk(stripped(it.messages, 1, 3, 5), switched.fields)
    assert answer.usage.prompt == bare.ask(ask, betas=[BINDING]).usage.prompt


@pytest.mark.rule("thinking-12")
def test_models_can_be_switched_there_and_back(ask: Asker) -> None:
    it = talk(ask)
    away = {**it.fields, "model": "claude-sonnet-5-5"}
    said = [*it.messages, user("Four?")]
    said.append(reply(ask.create(*said, **away)))
    assert Talk(said, away).ask(ask).status == 200
    assert Talk(said, it.fields).ask(ask).status == 200


@pytest.mark.rule("thinking-13")
@pytest.mark.parametrize("model", ["claude-opus-5", "claude-fable-5", "claude-opus-4-6"])
def test_models_without_preserved_thinking_overlook_the_prefix(ask: Asker, model: str) -> None:
    it = talk(ask, model)
    assert Talk(it.messages[2:], it.fields).ask(ask).status == 200
    forged = user("x"), assistant({"type": "thinking", "thinking": "x", "signature": "forged"}, "y")
    assert Talk([*forged, *it.messages], it.fields).ask(ask).status == 400


@pytest.mark.rule("thinking-14")
@pytest.mark.parametrize("field", ["thinking", "signature"])
@pytest.mark.parametrize(
    ("place", "told"), [(1, "Invalid `signature` in `thinking` block"), (5, "cannot be modified")]
)
def test_an_edited_block_is_refused(ask: Asker, field: str, place: int, told: str) -> None:
    it = talk(ask, thinking={"type": "adaptive", "display": "summarized"})
    first, *rest = blocks_of(it.messages[place])
    edited = assistant({**first, field: "Something else."}, *rest)
    answer = Talk(replaced(it.messages, place, edited), it.fields).ask(ask)
    assert answer.status == 400
    assert answer.message.startswith(f"messages.{place}.content.0: ")
    assert told in answer.message


@pytest.mark.rule("thinking-15")
def test_redacted_thinking_is_bound_too(ask: Asker) -> None:
    def brain(prompt: Prompt) -> Reply:
        return Reply((RedactedThinking("hidden"), Text("Yes.")))

    ask.sim.reset(brain)
    it = talk(ask)
    assert ask.create("Hi", model="claude-opus-5-5").kinds == ["redacted_thinking", "text"]
    assert it.ask(ask).status == 200
    refused = Talk(it.messages[2:], it.fields).ask(ask)
    assert "Invalid `signature` in `redacted_thinking` block" in refused.message


@pytest.mark.rule("thinking-16")
def test_counting_checks_too(ask: Asker) -> None:
    it = talk(ask)
    assert it.count(ask).status == 200
    refused = Talk(it.messages[2:], it.fields).count(ask, betas=[BINDING])
    assert (refused.status, refused.message.partition(": ")[2]) == (400, BOUND)


@pytest.mark.rule("thinking-17")
def test_edits_of_the_server_break_nothing(ask: Asker) -> None:
    it = talk(ask)
    keep = {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}
    edits = {"context_management": {"edits": [keep]}, "betas": ["context-management-2025-06-27"]}
    answer = it.ask(ask, **edits)
    assert answer.at("context_management", "applied_edits", 0, "cleared_thinking_turns") == 2
    grown = Talk([*it.messages, user("And now?"), reply(answer)], it.fields)
    assert grown.ask(ask, **edits).status == 200
    assert grown.ask(ask).status == 200


@pytest.mark.rule("thinking-18")
@pytest.mark.parametrize(("kept", "status"), [(4, 200), (2, 200), (3, 400), (1, 400)])
def test_turns_kept_after_a_compaction_stay_valid_if_they_follow_directly(
    ask: Asker, kept: int, status: int
) -> None:
    betas = ["compact-2026-09-04"]
    it = talk(ask)
    summarised, tail = it.messages[:-kept], it.messages[-kept:]
    done = ask.create(*summarised, betas=betas, compaction={"type": "summarize"}, **it.fields)
    block = reply(done)
    if role_of(summarised[-1]) == "user":
        # The first kept message is an answer, whose thinking followed directly; the summary cannot stand in.
        tail = [user("Well?"), *tail]
    answer = Talk([block, *tail], it.fields).ask(ask, betas=betas)
    assert answer.status == status


@pytest.mark.rule("thinking-18")
@pytest.mark.parametrize(
    "change", [{"system": "Be long."}, {"tools": [tool("look")]}], ids=["system", "tools"]
)
def test_kept_turns_need_the_same_system_and_tools(ask: Asker, change: Fields) -> None:
    betas = ["compact-2026-09-04"]
    it = talk(ask)
    done = ask.create(*it.messages[:4], betas=betas, compaction={"type": "summarize"}, **it.fields)
    kept = [reply(done), *it.messages[4:]]
    assert Talk(kept, it.fields).ask(ask, betas=betas).status == 200
    assert Talk(kept, {**it.fields, **change}).ask(ask, betas=betas).status == 400
    bare = [reply(done), *stripped(it.messages, 5)[4:]]
    assert Talk(bare, {**it.fields, **change}).ask(ask, betas=betas).status == 200


@pytest.mark.rule("thinking-18")
def test_thinking_after_a_compaction_is_bound_from_there(ask: Asker) -> None:
    betas = ["compact-2026-09-04"]
    it = talk(ask)
    done = ask.create(*it.messages, betas=betas, compaction={"type": "summarize"}, **it.fields)
    said: Messages = [reply(done), user("Go on.")]
    said.append(reply(ask.create(*said, betas=betas, **it.fields)))
    assert Talk(said, it.fields).ask(ask, betas=betas).status == 200
    other = Talk([assistant(plain(JsonObject({"type": "text", "text": "x"}))), *said[1:]], it.fields)
    ask.sim.reset(choices=Choices(opens_with_user=False))
    assert other.ask(ask, betas=betas).status == 400


@pytest.mark.rule("thinking-18")
def test_thinking_after_a_threshold_compaction_is_bound_from_there(ask: Asker) -> None:
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}
    fields: dict[str, object] = {
        "model": "claude-opus-5-5",
        "betas": ["compact-2026-01-12"],
        "context_management": {"edits": [edit]},
    }
    long = user(PROSE * 90)
    answer = ask.create(long, **fields)
    assert answer.kinds == ["compaction", "thinking", "text"]
    grown: Messages = [long, reply(answer), user("And now?")]
    assert ask.create(*grown, **fields).kinds == ["thinking", "text"]
    shortened: Messages = [user("Long ago."), *grown[1:]]
    assert ask.create(*shortened, **fields).status == 200
    first, *rest = blocks_of(grown[1])
    edited = assistant({**first, "content": "Another summary."}, *rest)
    assert ask.create(long, edited, "And now?", **fields).status == 400


@pytest.mark.rule("thinking-19")
def test_dropped_thinking_changes_the_cache_from_there_on(ask: Asker) -> None:
    fields = {"model": "claude-opus-5-5", "thinking": DROP, "betas": [BINDING]}
    first = ask.create(user(text(PROSE, cache_control=MARK)), **fields)
    said: Messages = [user(text(PROSE, cache_control=MARK)), reply(first), user("Well?")]
    second = ask.create(*said, **fields)
    grown = [*said, reply(second), user(text("And?", cache_control=MARK))]
    whole = ask.create(*grown, **fields)
    edited = replaced(grown, 2, user("Well!"))
    broken = ask.create(*edited, **fields)
    assert broken.at("input_transformations", 0, "path") == "messages.3.content.0"
    assert broken.usage.read == first.usage.written_5m
    assert whole.usage.read == first.usage.written_5m
