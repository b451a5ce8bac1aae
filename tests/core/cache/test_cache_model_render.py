"""A request's hashes change when, and only from where, the provider's cache would notice."""

from __future__ import annotations

import pytest

from sevenfold.core.cache.prompt_cache import (
    DEFAULT_CACHE_CHOICES,
    CacheChoices,
    PromptLevel,
    render_prompt,
)
from sevenfold.core.errors import WireError
from sevenfold.core.json import JsonObject
from tests.core.cache_cases import (
    LONG,
    OPUS,
    SHORT,
    STRIPS,
    Wire,
    ask,
    assistant,
    hashes,
    parts,
    rendered,
    request,
    result,
    text,
    thought,
    tool,
    user,
)

SEARCH: Wire = {"type": "web_search_20250305", "name": "web_search"}
IMAGE: Wire = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def paper(*, cited: bool) -> Wire:
    source = {"type": "text", "media_type": "text/plain", "data": "a paper"}
    return {"type": "document", "source": source, "citations": {"enabled": cited}}


def talk(*extra: Wire, **fields: object) -> JsonObject:
    """Two tools, a system prompt and a turn with a tool call, and whatever else."""
    whole: Wire = {"tools": [tool("look"), tool("hear")], "system": [text("Be kind."), text("Be brief.")]}
    turn = (user(text("Where?")), assistant(ask("a")), user(result("a")))
    return request(*turn, *extra, **(whole | fields))


def spoilt(
    before: JsonObject, after: JsonObject, choices: CacheChoices = DEFAULT_CACHE_CHOICES
) -> PromptLevel | None:
    """The first level of which no hash is left; a level with one hash left in common is not spoilt."""
    kept = set(hashes(before, choices))
    for level in ("tools", "system", "messages"):
        own = [part.digest for part in parts(after, choices) if part.level == level]
        if own and not kept & set(own):
            return level
    return None


@pytest.mark.rule("cache-1")
def test_parts_come_tools_first_then_system_then_messages() -> None:
    paths = [part.path for part in parts(talk())]
    assert paths == [
        "tools.0",
        "tools.1",
        "system.0",
        "system.1",
        "messages.0.content.0",
        "messages.1.content.0",
        "messages.2.content.0",
    ]
    assert [part.kind for part in parts(talk())][-3:] == ["text", "tool_use", "tool_result"]


@pytest.mark.rule("cache-1")
def test_appending_leaves_every_earlier_hash_as_it_was() -> None:
    before = hashes(talk())
    assert hashes(talk(assistant(text("There.")), user(text("Thanks."))))[: len(before)] == before


@pytest.mark.rule("cache-2")
@pytest.mark.parametrize(
    ("written", "blocks"),
    [
        (request({"role": "user", "content": "Hi"}), request(user(text("Hi")))),
        (talk(system="Be kind."), talk(system=[text("Be kind.")])),
        (request(user(result("a", "seen"))), request(user(result("a", [text("seen")])))),
    ],
    ids=["message", "system", "tool result"],
)
def test_text_is_one_text_block(written: JsonObject, blocks: JsonObject) -> None:
    assert hashes(written) == hashes(blocks)


@pytest.mark.rule("cache-2")
@pytest.mark.parametrize("empty", [None, "", []])
def test_a_system_prompt_of_nothing_is_none(empty: object) -> None:
    assert hashes(talk(system=empty)) == hashes(talk(system=None))


@pytest.mark.rule("cache-3")
def test_how_one_role_splits_its_blocks_into_messages_does_not_count() -> None:
    apart = request(user(text("One.")), user(text("Two.")), assistant(text("Three.")))
    merged = request(user(text("One."), text("Two.")), assistant(text("Three.")))
    assert hashes(apart) == hashes(merged)
    assert [part.path for part in parts(apart)][1] == "messages.1.content.0"


@pytest.mark.rule("cache-3")
def test_who_says_it_counts() -> None:
    assert hashes(request(user(text("One.")))) != hashes(request(assistant(text("One."))))


@pytest.mark.rule("cache-4")
@pytest.mark.parametrize("marker", [SHORT, LONG, None])
def test_a_marker_changes_no_hash_wherever_it_stands(marker: Wire | None) -> None:
    plain = talk()
    marked = request(
        user(text("Where?", cache_control=marker)),
        assistant(ask("a", cache_control=marker)),
        user(result("a", [text("seen", cache_control=marker)], cache_control=marker)),
        tools=[tool("look", cache_control=marker), tool("hear")],
        system=[text("Be kind.", cache_control=marker), text("Be brief.")],
        cache_control=marker,
    )
    assert hashes(marked) == hashes(plain)


@pytest.mark.rule("cache-4")
def test_a_key_of_that_name_in_a_tool_input_is_no_marker() -> None:
    asked = {**ask("a"), "input": {"at": "a", "cache_control": SHORT}}
    assert hashes(request(assistant(asked))) != hashes(request(assistant(ask("a"))))


@pytest.mark.rule("cache-5")
@pytest.mark.parametrize(
    ("said", "left_out"),
    [
        (text("Hi", citations=None), text("Hi")),
        (result("a", is_error=False), result("a")),
        (result("a", None), result("a", "")),
        (result("a", []), result("a", "")),
    ],
)
def test_a_default_that_is_spelled_out_is_the_same_as_none(said: Wire, left_out: Wire) -> None:
    assert hashes(request(user(said))) == hashes(request(user(left_out)))


@pytest.mark.rule("cache-5")
def test_a_tool_that_says_it_is_custom_and_not_deferred_is_the_same_tool() -> None:
    said = tool("look", type="custom", defer_loading=False, description=None)
    assert hashes(talk(tools=[said])) == hashes(talk(tools=[tool("look")]))


@pytest.mark.rule("cache-6")
def test_the_order_of_keys_counts_in_what_the_model_reads_as_json() -> None:
    ordered = {**ask("a"), "input": {"at": "a", "by": "b"}}
    shuffled = {**ask("a"), "input": {"by": "b", "at": "a"}}
    assert hashes(request(assistant(ordered))) != hashes(request(assistant(shuffled)))
    schema: Wire = {"type": "object", "properties": {"at": {}}}
    turned: Wire = {"properties": {"at": {}}, "type": "object"}
    assert spoilt(talk(tools=[tool("x", input_schema=schema)]), talk(tools=[tool("x", input_schema=turned)]))


@pytest.mark.rule("cache-6")
def test_the_order_of_keys_counts_nowhere_when_so_chosen() -> None:
    blind = CacheChoices(key_order_counts=False)
    ordered = {**ask("a"), "input": {"at": "a", "by": "b"}}
    shuffled = {**ask("a"), "input": {"by": "b", "at": "a"}}
    assert hashes(request(assistant(ordered)), blind) == hashes(request(assistant(shuffled)), blind)


@pytest.mark.rule("cache-6")
def test_the_order_of_a_block_own_fields_never_counts() -> None:
    turned = {"text": "Hi", "type": "text"}
    assert hashes(request(user(turned))) == hashes(request(user(text("Hi"))))


@pytest.mark.rule("cache-7")
@pytest.mark.parametrize(
    "tools",
    [
        [tool("hear"), tool("look")],
        [tool("look", description="Looks."), tool("hear")],
        [tool("see"), tool("look"), tool("hear")],
    ],
    ids=["reordered", "edited", "added in front"],
)
def test_a_change_of_tools_spoils_everything(tools: list[Wire]) -> None:
    assert spoilt(talk(), talk(tools=tools)) == "tools"


@pytest.mark.rule("cache-7")
@pytest.mark.parametrize(
    "tools", [[tool("look")], [tool("look"), tool("hear"), tool("see")]], ids=["removed", "added"]
)
def test_a_tool_more_or_less_at_the_end_spoils_from_there(tools: list[Wire]) -> None:
    assert spoilt(talk(), talk(tools=tools)) == "system"
    assert hashes(talk())[0] == hashes(talk(tools=tools))[0]


@pytest.mark.rule("cache-9")
def test_another_system_prompt_spoils_system_and_messages() -> None:
    other = talk(system=[text("Be rude."), text("Be brief.")])
    assert spoilt(talk(), other) == "system"
    assert hashes(talk())[:2] == hashes(other)[:2]


@pytest.mark.rule("cache-10")
def test_speed_spoils_system_and_messages_and_standard_is_the_default() -> None:
    assert spoilt(talk(), talk(speed="fast")) == "system"
    assert hashes(talk()) == hashes(talk(speed="standard"))


@pytest.mark.rule("cache-11")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_web_search_spoils_system_and_messages_wherever_it_is_listed(place: int) -> None:
    tools = [tool("look"), tool("hear")]
    tools.insert(place, SEARCH)
    searching = talk(tools=tools)
    assert spoilt(talk(), searching) == "system"
    assert hashes(talk())[:2] == hashes(searching)[:2]
    assert parts(searching)[2].path == f"tools.{place}"


@pytest.mark.rule("cache-12")
def test_citations_switched_on_spoil_system_and_messages() -> None:
    assert spoilt(talk(user(paper(cited=False))), talk(user(paper(cited=True)))) == "system"


@pytest.mark.rule("cache-13")
@pytest.mark.parametrize(
    "choice", [{"type": "any"}, {"type": "none"}, {"type": "auto", "disable_parallel_tool_use": True}]
)
def test_tool_choice_spoils_messages_alone(choice: Wire) -> None:
    assert spoilt(talk(), talk(tool_choice=choice)) == "messages"


@pytest.mark.rule("cache-13")
@pytest.mark.parametrize("choice", [{"type": "auto"}, {"type": "auto", "disable_parallel_tool_use": False}])
def test_automatic_tool_choice_is_the_default(choice: Wire) -> None:
    assert hashes(talk()) == hashes(talk(tool_choice=choice))


@pytest.mark.rule("cache-14")
@pytest.mark.parametrize("picture", [IMAGE, result("b", [IMAGE])], ids=["sent", "in a result"])
def test_an_image_at_the_end_spoils_nothing(picture: Wire) -> None:
    before, seen = hashes(talk()), talk(user(picture))
    assert hashes(seen)[: len(before)] == before
    assert hashes(talk(user(picture), user(IMAGE)))[: len(hashes(seen))] == hashes(seen)


@pytest.mark.rule("cache-15")
@pytest.mark.parametrize("thinking", [{"type": "adaptive"}, {"type": "enabled", "budget_tokens": 2048}])
def test_thinking_spoils_messages_alone(thinking: Wire) -> None:
    assert spoilt(talk(), talk(thinking=thinking)) == "messages"


@pytest.mark.rule("cache-15")
def test_another_budget_spoils_messages_and_another_display_nothing() -> None:
    small, large = ({"type": "enabled", "budget_tokens": size} for size in (2048, 4096))
    assert spoilt(talk(thinking=small), talk(thinking=large)) == "messages"
    shown, hidden = ({"type": "adaptive", "display": how} for how in ("summarized", "omitted"))
    assert hashes(talk(thinking=shown)) == hashes(talk(thinking=hidden))


@pytest.mark.rule("cache-15")
def test_thinking_that_changes_nothing_is_the_same_as_none() -> None:
    assert hashes(talk()) == hashes(talk(thinking={"type": "disabled"}))
    always = {"model": "claude-opus-5-5"}
    assert hashes(talk(**always)) == hashes(talk(**always, thinking={"type": "adaptive"}))


@pytest.mark.rule("cache-15")
@pytest.mark.parametrize("level", ["tools", "system", "messages"])
def test_thinking_spoils_from_the_level_that_was_chosen(level: PromptLevel) -> None:
    chosen = CacheChoices(thinking_level=level)
    assert spoilt(talk(), talk(thinking={"type": "adaptive"}), chosen) == level
    assert spoilt(talk(), talk(output_config={"effort": "low"}), chosen) == level


@pytest.mark.rule("cache-16")
@pytest.mark.parametrize(
    ("model", "default"), [(OPUS, "high"), ("claude-opus-5-5", "medium"), ("claude-haiku-5-5", "medium")]
)
def test_effort_spoils_messages_unless_it_is_the_model_default(model: str, default: str) -> None:
    plain = talk(model=model)
    for effort in ("low", "medium", "high", "max"):
        told = talk(model=model, output_config={"effort": effort})
        assert spoilt(plain, told) == (None if effort == default else "messages")


@pytest.mark.rule("cache-17")
@pytest.mark.parametrize(
    "output",
    [
        {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        {"task_budget": {"type": "tokens", "total": 20_000}},
    ],
    ids=["format", "task budget"],
)
def test_output_format_and_task_budget_spoil_from_the_level_that_was_chosen(output: Wire) -> None:
    assert spoilt(talk(), talk(output_config=output)) == "messages"
    assert spoilt(talk(), talk(output_config=output), CacheChoices(output_level="system")) == "system"


@pytest.mark.rule("cache-18")
def test_an_edited_message_spoils_from_there() -> None:
    before = hashes(talk(assistant(text("There.")), user(text("Thanks."))))
    after = hashes(talk(assistant(text("Here.")), user(text("Thanks."))))
    assert before[:7] == after[:7]
    assert not set(before[7:]) & set(after[7:])


@pytest.mark.rule("cache-19")
def test_effort_changed_in_a_system_message_leaves_what_is_before_it() -> None:
    before = talk()
    turned: Wire = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    after = rendered(talk(turned, assistant(text("There."))))
    assert hashes(before) == [part.digest for part in after.parts[:7]]
    assert (after.parts[7].path, after.parts[7].tokens) == ("messages.3.output_config", 0)
    assert after.parts[8].digest != parts(talk(assistant(text("There."))))[7].digest


@pytest.mark.rule("cache-20")
def test_what_is_not_in_the_prompt_changes_no_hash() -> None:
    told = talk(
        max_tokens=5,
        stream=True,
        stop_sequences=["x"],
        metadata={"user_id": "u"},
        service_tier="auto",
        diagnostics={"previous_message_id": None},
        inference_geo="us",
        context_management={"edits": []},
    )
    assert hashes(told) == hashes(talk())


THINKS = (
    user(text("Where?")),
    assistant(thought("Hm."), ask("a")),
    user(result("a")),
    assistant(thought("So."), text("There.")),
)


@pytest.mark.rule("cache-21")
def test_earlier_thinking_goes_when_a_user_speaks_on_models_that_drop_it() -> None:
    asked = request(*THINKS, user(text("Thanks.")), model=STRIPS)
    assert "thinking" not in [part.kind for part in parts(asked)]
    assert hashes(asked)[:1] == hashes(request(*THINKS, model=STRIPS))[:1]
    assert hashes(asked)[1] != hashes(request(*THINKS, model=STRIPS))[1]


@pytest.mark.rule("cache-21")
def test_tool_results_alone_leave_thinking_in_place() -> None:
    working = request(*THINKS[:2], user(result("a")), model=STRIPS)
    assert [part.kind for part in parts(working)] == ["text", "thinking", "tool_use", "tool_result"]


@pytest.mark.rule("cache-21")
def test_other_models_keep_thinking_and_so_does_a_request_that_says_so() -> None:
    kept = request(*THINKS, user(text("Thanks.")))
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    told = request(*THINKS, user(text("Thanks.")), model=STRIPS, context_management=edits)
    for body in (kept, told):
        assert [part.kind for part in parts(body)].count("thinking") == 2


@pytest.mark.rule("cache-22")
def test_nothing_before_the_last_compaction_is_rendered() -> None:
    summary: Wire = {"type": "compaction", "content": "They looked."}
    whole = talk(assistant(summary, text("There.")), user(text("Thanks.")))
    short = request(
        assistant(summary, text("There.")),
        user(text("Thanks.")),
        tools=[tool("look"), tool("hear")],
        system=[text("Be kind."), text("Be brief.")],
    )
    assert hashes(whole) == hashes(short)
    assert parts(whole)[4].path == "messages.3.content.0"


@pytest.mark.rule("cache-22")
def test_a_compaction_that_failed_takes_nothing_away() -> None:
    failed = talk(assistant({"type": "compaction", "content": None}), user(text("Thanks.")))
    assert hashes(failed)[:7] == hashes(talk())


@pytest.mark.rule("cache-23")
def test_a_passing_system_message_is_gone_when_the_user_speaks_again() -> None:
    note: Wire = {"role": "system", "content": [text("Hurry.")], "clear_at": "next_user_message"}
    during = talk(note, assistant(ask("b")), user(result("b")))
    assert "messages.3.content.0" in [part.path for part in parts(during)]
    after = talk(note, assistant(text("There.")), user(text("Thanks.")))
    assert hashes(after) == hashes(talk(assistant(text("There.")), user(text("Thanks."))))


@pytest.mark.rule("cache-24")
def test_a_deferred_tool_is_not_in_the_prefix_unless_so_chosen() -> None:
    later = talk(tools=[tool("look"), tool("hear"), tool("smell", defer_loading=True)])
    assert hashes(later) == hashes(talk())
    assert spoilt(talk(), later, CacheChoices(renders_deferred=True)) == "system"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (request(tools="look"), "tools: expected a list"),
        (request(tools=["look"]), "tools.0: expected an object"),
        (request(user("Hi")), "messages.0.content.0: expected an object"),
        (request({"role": 3, "content": "Hi"}), "messages.0.role: expected user"),
    ],
)
def test_what_is_no_request_is_refused_by_path(body: JsonObject, told: str) -> None:
    with pytest.raises(WireError, match=told):
        parts(body)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (talk(), talk(assistant(text("There.")))),
        (talk(), talk(system=[text("Be rude."), text("Be brief.")])),
        (talk(), talk(tool_choice={"type": "any"})),
        (talk(), talk(user(IMAGE))),
        (request(user(text("Hi")), user(text("Ho"))), request(assistant(text("Hi")), user(text("Ho")))),
        (
            request(assistant({**ask("a"), "input": {"at": "a", "by": "b"}})),
            request(assistant({**ask("a"), "input": {"by": "b", "at": "a"}})),
        ),
        (talk(), talk(cache_control=SHORT)),
        (request(user(text("Hi"))), request(user({"type": "text", "text": "Hi", "citations": None}))),
    ],
    ids=["longer", "system", "knob", "image", "role", "key order", "marker", "null"],
)
def test_rendering_after_an_earlier_prompt_never_shows(before: JsonObject, after: JsonObject) -> None:
    assert rendered(after, after=rendered(before)) == rendered(after)


def test_rendering_after_a_prompt_of_other_choices_does_not_show_either() -> None:
    body, blind = talk(), CacheChoices(key_order_counts=False)
    assert rendered(body, after=rendered(body, blind)) == rendered(body)


def test_what_an_earlier_prompt_has_is_not_counted_again() -> None:
    seen: list[str] = []

    def count(level: PromptLevel, block: JsonObject) -> int:
        seen.append(str(block.get("text") or block.get("name") or block.get("tool_use_id")))
        return 10

    first = render_prompt(talk(), count)
    seen.clear()
    second = render_prompt(talk(assistant(text("There."))), count, after=first)
    assert "There." in seen
    assert "Be kind." not in seen
    assert second.tokens == first.tokens + 10
