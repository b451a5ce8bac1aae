"""Fields of a request beside its messages."""

from __future__ import annotations

import pytest

from tests.simulator.asking import (
    MARK,
    MODEL,
    NEWER,
    OLDER,
    PROSE,
    Asker,
    assistant,
    text,
    tool,
    user,
)

GOOD = {"x-api-key": "k", "anthropic-version": NEWER}
OLD_MODELS = ["claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5"]
SCHEMA = {"type": "json_schema", "schema": {"type": "object"}}


@pytest.mark.rule("validation-1")
@pytest.mark.parametrize("missing", ["model", "messages", "max_tokens"])
def test_a_field_that_is_missing_is_named(ask: Asker, missing: str) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
    del body[missing]
    answer = ask.post("/v1/messages", body, GOOD)
    assert (answer.status, answer.message) == (400, f"{missing}: Field required")


@pytest.mark.rule("validation-2")
@pytest.mark.parametrize("name", ["claude-opus-9", "gpt-5", ""])
def test_an_unknown_model_is_not_found(ask: Asker, name: str) -> None:
    answer = ask.create("Hi", model=name)
    assert (answer.status, answer.at("error", "type")) == (404, "not_found_error")
    assert answer.message == f"model: {name}"


@pytest.mark.rule("validation-3")
@pytest.mark.parametrize("field", ["max_token", "functions", "n"])
def test_an_unknown_field_is_refused(ask: Asker, field: str) -> None:
    answer = ask.create("Hi", **{field: 1})
    assert (answer.status, answer.message) == (400, f"{field}: Extra inputs are not permitted")


@pytest.mark.rule("validation-3")
def test_an_unknown_field_of_a_message_is_refused(ask: Asker) -> None:
    answer = ask.create({"role": "user", "content": "Hi", "id": "msg_1"})
    assert answer.message == "messages.0.id: Extra inputs are not permitted"


@pytest.mark.rule("validation-4")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_tokens", "many"),
        ("max_tokens", -1),
        ("max_tokens", True),
        ("messages", "Hi"),
        ("messages", ["Hi"]),
        ("model", 5),
        ("stream", "yes"),
        ("tools", {"name": "look"}),
        ("tool_choice", "auto"),
        ("thinking", "adaptive"),
        ("output_config", []),
        ("stop_sequences", "END"),
        ("metadata", "me"),
        ("metadata", {"user_id": 5}),
        ("diagnostics", "msg_1"),
        ("diagnostics", {"previous_message_id": 5}),
        ("inference_geo", 1),
        ("cache_control", "ephemeral"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(ask: Asker, field: str, value: object) -> None:
    answer = ask.create("Hi", **{field: value})
    assert (answer.status, answer.at("error", "type")) == (400, "invalid_request_error")
    assert answer.message.startswith(field)


@pytest.mark.rule("validation-5")
@pytest.mark.parametrize(("model", "most"), [("claude-haiku-4-5", 64_000), ("claude-opus-5-5", 128_000)])
def test_asking_for_more_than_a_model_says_is_refused(ask: Asker, model: str, most: int) -> None:
    assert ask.create("Hi", model=model, max_tokens=most).status == 200
    answer = ask.create("Hi", model=model, max_tokens=most + 1)
    assert answer.message == (
        f"max_tokens: {most + 1} > {most}, "
        "which is the maximum allowed number of output tokens for this model"
    )


@pytest.mark.rule("validation-6")
@pytest.mark.parametrize("model", [MODEL, "claude-haiku-4-5"])
@pytest.mark.parametrize("field", ["temperature", "top_p", "top_k"])
def test_the_newer_version_takes_no_sampling_parameters(ask: Asker, model: str, field: str) -> None:
    answer = ask.create("Hi", model=model, **{field: 1})
    assert answer.status == 400
    assert answer.message.startswith(f"{field}: ")


@pytest.mark.rule("validation-7")
@pytest.mark.parametrize("model", [*OLD_MODELS, "claude-opus-4-6"])
def test_the_older_version_takes_them_on_older_models(ask: Asker, model: str) -> None:
    assert ask.create("Hi", model=model, version=OLDER, temperature=0.5, top_k=5).status == 200


@pytest.mark.rule("validation-7")
@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("claude-opus-4-7", {"temperature": 0.5}),
        ("claude-haiku-5-5", {"top_p": 0.5}),
        ("claude-haiku-4-5", {"temperature": 1.5}),
        ("claude-haiku-4-5", {"top_p": -0.1}),
        ("claude-haiku-4-5", {"top_k": "ten"}),
    ],
)
def test_the_older_version_refuses_them_elsewhere(ask: Asker, model: str, fields: dict[str, object]) -> None:
    assert ask.create("Hi", model=model, version=OLDER, **fields).status == 400


@pytest.mark.rule("validation-8")
@pytest.mark.parametrize(("version", "status"), [(NEWER, 400), (OLDER, 200)])
def test_a_document_of_the_assistants_depends_on_the_version(ask: Asker, version: str, status: int) -> None:
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
    assert ask.create("Hi", assistant(document, "There."), "Go on.", version=version).status == status
    assert ask.create(user(document, "Read it."), version=version).status == 200


@pytest.mark.rule("validation-9")
@pytest.mark.parametrize(("version", "status"), [(NEWER, 400), (OLDER, 200)])
def test_citations_in_a_users_text_depend_on_the_version(ask: Asker, version: str, status: int) -> None:
    cited = text("As it says.", citations=[{"type": "char_location", "cited_text": "x"}])
    assert ask.create(user(cited), version=version).status == status
    assert ask.create(user(text("As it says.", citations=[])), version=version).status == 200


@pytest.mark.rule("validation-10")
@pytest.mark.parametrize(
    ("model", "enabled", "adaptive"),
    [
        ("claude-haiku-4-5", 200, 400),
        ("claude-opus-4-5", 200, 400),
        ("claude-opus-4-6", 200, 200),
        ("claude-opus-4-7", 400, 200),
        ("claude-sonnet-5", 400, 200),
        ("claude-haiku-5-5", 400, 200),
    ],
)
def test_how_thinking_is_asked_for_depends_on_the_model(
    ask: Asker, model: str, enabled: int, adaptive: int
) -> None:
    budget = {"type": "enabled", "budget_tokens": 1024}
    assert ask.create("Hi", model=model, max_tokens=2000, thinking=budget).status == enabled
    assert ask.create("Hi", model=model, thinking={"type": "adaptive"}).status == adaptive


@pytest.mark.rule("validation-11")
@pytest.mark.parametrize("kind", ["disabled", "enabled"])
@pytest.mark.parametrize("model", ["claude-fable-5", "claude-mythos-5-2", "claude-opus-5-5"])
def test_models_that_always_think_cannot_be_stopped(ask: Asker, model: str, kind: str) -> None:
    thinking = {"type": kind, "budget_tokens": 1024} if kind == "enabled" else {"type": kind}
    answer = ask.create("Hi", model=model, max_tokens=2000, thinking=thinking)
    assert answer.status == 400
    assert answer.message.startswith("thinking.type: ")


@pytest.mark.rule("validation-11")
@pytest.mark.parametrize("model", ["claude-fable-5", "claude-opus-5-5"])
def test_models_that_always_think_need_not_be_asked(ask: Asker, model: str) -> None:
    assert ask.create("Hi", model=model).kinds == ["thinking", "text"]
    assert ask.create("Hi", model=MODEL).kinds == ["text"]


@pytest.mark.rule("validation-12")
@pytest.mark.parametrize(
    ("model", "status"), [("claude-sonnet-5-5", 200), ("claude-sonnet-5", 400), ("claude-opus-5-5", 400)]
)
def test_thinking_between_tools_is_for_one_model(ask: Asker, model: str, status: int) -> None:
    assert ask.create("Hi", model=model, thinking={"type": "between_tools"}).status == status


@pytest.mark.rule("validation-12")
def test_sonnet_5_5_thinks_unless_it_is_turned_off_that_way(ask: Asker) -> None:
    model = "claude-sonnet-5-5"
    assert ask.create("Hi", model=model).kinds == ["thinking", "text"]
    assert ask.create("Hi", model=model, thinking={"type": "between_tools"}).kinds == ["text"]
    assert ask.create("Hi", model=model, thinking={"type": "disabled"}).status == 400


@pytest.mark.rule("validation-13")
@pytest.mark.parametrize(("budget", "status"), [(1023, 400), (1024, 200), (1999, 200), (2000, 400)])
def test_a_thinking_budget_has_bounds(ask: Asker, budget: int, status: int) -> None:
    thinking = {"type": "enabled", "budget_tokens": budget}
    answer = ask.create("Hi", model="claude-haiku-4-5", max_tokens=2000, thinking=thinking)
    assert answer.status == status


@pytest.mark.rule("validation-13")
@pytest.mark.parametrize(
    "thinking", [{}, {"type": "deep"}, {"type": "enabled"}, {"type": "adaptive", "display": "updates"}]
)
def test_thinking_that_says_nothing_known_is_refused(ask: Asker, thinking: dict[str, object]) -> None:
    assert ask.create("Hi", model="claude-opus-4-6", thinking=thinking).status == 400


@pytest.mark.rule("validation-14")
@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "look"}])
@pytest.mark.parametrize(
    ("model", "status"),
    [
        ("claude-fable-5", 200),
        ("claude-fable-5-1", 400),
        ("claude-mythos-5-2", 400),
        ("claude-opus-5", 200),
        ("claude-opus-5-5", 400),
        ("claude-sonnet-5-5", 400),
        ("claude-haiku-5-5", 200),
    ],
)
def test_the_newest_models_take_no_forced_choice(
    ask: Asker, model: str, status: int, choice: dict[str, str]
) -> None:
    assert ask.create("Hi", model=model, tools=[tool()], tool_choice=choice).status == status
    assert ask.count("Hi", model=model, tools=[tool()], tool_choice=choice).status == status


@pytest.mark.rule("validation-15")
@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"tool_choice": {"type": "auto"}}, 400),
        ({"tool_choice": {"type": "none"}}, 200),
        ({"tools": [tool()], "tool_choice": {"type": "auto"}}, 200),
        ({"tools": [tool()], "tool_choice": {"type": "tool", "name": "other"}}, 400),
        ({"tools": [tool()], "tool_choice": {"type": "tool"}}, 400),
        ({"tools": [tool()], "tool_choice": {"type": "all"}}, 400),
        ({"tools": [tool()], "tool_choice": {}}, 400),
    ],
)
def test_a_choice_needs_a_tool_to_choose(ask: Asker, fields: dict[str, object], status: int) -> None:
    assert ask.create("Hi", **fields).status == status


@pytest.mark.rule("validation-16")
@pytest.mark.parametrize(
    "tools",
    [
        [tool(), tool()],
        [tool("look at")],
        [tool("")],
        [tool("x" * 129)],
        [{"name": "look"}],
        [{"name": "look", "input_schema": {}}],
        [{"name": "look", "input_schema": {"type": "array"}}],
        [{"input_schema": {"type": "object"}}],
        ["look"],
    ],
)
def test_a_tool_that_cannot_be_called_is_refused(ask: Asker, tools: list[object]) -> None:
    answer = ask.create("Hi", tools=tools)
    assert answer.status == 400
    assert answer.message.startswith("tools")


@pytest.mark.rule("validation-16")
def test_the_providers_own_tools_need_no_schema(ask: Asker) -> None:
    assert ask.create("Hi", tools=[{"type": "memory_20250818", "name": "memory"}, tool()]).status == 200


@pytest.mark.rule("validation-17")
@pytest.mark.parametrize("model", ["claude-opus-4-6", "claude-sonnet-5", MODEL, "claude-haiku-5-5"])
def test_newer_models_take_no_prefill(ask: Asker, model: str) -> None:
    answer = ask.create("Hi", assistant("The answer is"), model=model)
    assert answer.status == 400
    assert answer.message == (
        "This model does not support assistant message prefill. "
        "The conversation must end with a user message."
    )


@pytest.mark.rule("validation-18")
@pytest.mark.parametrize("model", OLD_MODELS)
def test_older_models_take_a_prefill(ask: Asker, model: str) -> None:
    assert ask.create("Hi", assistant("The answer is"), model=model).status == 200
    for said in (assistant("The answer is "), {"role": "assistant", "content": "So\n"}):
        refused = ask.create("Hi", said, model=model)
        assert refused.message == "messages: final assistant content cannot end with trailing whitespace"


@pytest.mark.rule("validation-19")
def test_asking_for_nothing_fills_the_cache(ask: Asker) -> None:
    said = user(text(PROSE, cache_control=MARK))
    warmed = ask.create(said, max_tokens=0)
    assert (warmed.content, warmed.at("stop_reason"), warmed.usage.output) == ((), "max_tokens", 0)
    assert warmed.usage.written_5m > 0
    read = ask.create(said, max_tokens=0).usage
    assert (read.read, read.written, read.output) == (warmed.usage.written_5m, 0, 0)


@pytest.mark.rule("validation-20")
@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (MODEL, {"stream": True}),
        ("claude-haiku-4-5", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        (MODEL, {"output_config": {"format": SCHEMA}}),
        (MODEL, {"tools": [tool()], "tool_choice": {"type": "any"}}),
        (MODEL, {"compaction": {"type": "summarize"}}),
    ],
    ids=["stream", "thinking", "format", "tool_choice", "compaction"],
)
def test_asking_for_nothing_and_for_something_is_refused(
    ask: Asker, model: str, fields: dict[str, object]
) -> None:
    betas = ["compact-2026-09-04"]
    answer = ask.create("Hi", model=model, max_tokens=0, betas=betas, **fields)
    assert answer.status == 400
    assert answer.message.startswith("max_tokens: 0 cannot be combined with ")


@pytest.mark.rule("validation-21")
@pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh", "max"])
def test_five_efforts_are_known(ask: Asker, effort: str) -> None:
    assert ask.create("Hi", output_config={"effort": effort}).status == 200


@pytest.mark.rule("validation-21")
@pytest.mark.parametrize(
    "output",
    [
        {"effort": "huge"},
        {"format": {"type": "text"}},
        {"format": {"type": "json_schema"}},
        {"format": {"schema": {}}},
    ],
)
def test_an_output_nobody_knows_is_refused(ask: Asker, output: dict[str, object]) -> None:
    answer = ask.create("Hi", output_config=output)
    assert answer.status == 400
    assert answer.message.startswith("output_config.")
    assert ask.create("Hi", output_config={"format": SCHEMA}).status == 200


@pytest.mark.rule("validation-22")
@pytest.mark.parametrize(
    ("beta", "fields"),
    [
        ("context-management-2025-06-27", {"context_management": {"edits": []}}),
        ("compact-2026-01-12", {"context_management": {"edits": [{"type": "compact_20260112"}]}}),
        ("compact-2026-09-04", {"compaction": {"type": "summarize"}}),
        ("thinking-binding-controls-2026-08-01", {"thinking": {"type": "adaptive", "block_binding": {}}}),
        ("thinking-display-updates-2026-08-18", {"thinking": {"type": "adaptive", "display": "updates"}}),
        ("task-budgets-2026-03-13", {"output_config": {"task_budget": {"type": "tokens", "total": 20000}}}),
    ],
)
def test_a_beta_field_needs_its_beta(ask: Asker, beta: str, fields: dict[str, object]) -> None:
    assert ask.create("Hi", **fields).status == 400
    assert ask.create("Hi", betas=[beta], **fields).status == 200


@pytest.mark.rule("validation-23")
@pytest.mark.parametrize("budget", [{"total": 19_999}, {}, {"total": "all"}])
def test_a_task_budget_has_a_least(ask: Asker, budget: dict[str, object]) -> None:
    answer = ask.create("Hi", betas=["task-budgets-2026-03-13"], output_config={"task_budget": budget})
    assert answer.status == 400


@pytest.mark.rule("validation-24")
@pytest.mark.parametrize(
    ("blocks", "fields", "told"),
    [
        (
            [text(f"{n}", cache_control=MARK) for n in range(5)],
            {},
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
        (
            [text("a", cache_control=MARK), text("b", cache_control={**MARK, "ttl": "1h"})],
            {},
            "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
            "ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, "
            "`system`, `messages`.",
        ),
        (
            [text("", cache_control=MARK), text("b")],
            {},
            "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
        ),
        (
            [text("a", cache_control={"type": "forever"})],
            {},
            "messages.0.content.0.text.cache_control: Input tag 'forever' found using 'type' does not match "
            "any of the expected tags: 'ephemeral'",
        ),
        (
            [text(f"{n}", cache_control=MARK) for n in range(4)] + [text("last")],
            {"cache_control": MARK},
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
    ],
    ids=["five", "order", "empty", "type", "automatic"],
)
def test_a_problem_with_markers_is_told_in_the_caches_words(
    ask: Asker, blocks: list[object], fields: dict[str, object], told: str
) -> None:
    answer = ask.create(user(*blocks), **fields)
    assert (answer.status, answer.message) == (400, told)


@pytest.mark.rule("validation-25")
@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"service_tier": "auto"}, 200),
        ({"service_tier": "standard_only"}, 200),
        ({"service_tier": "priority"}, 400),
        ({"speed": "standard"}, 200),
        ({"speed": "slow"}, 400),
    ],
)
def test_tiers_and_speeds_are_known_by_name(ask: Asker, fields: dict[str, str], status: int) -> None:
    assert ask.create("Hi", **fields).status == status


@pytest.mark.rule("validation-26")
def test_a_reply_stops_before_a_stop_sequence(ask: Asker) -> None:
    answer = ask.create("One. STOP two. END three.", stop_sequences=["END", "STOP"])
    assert answer.at("content", 0, "text") == "One. "
    assert (answer.at("stop_reason"), answer.at("stop_sequence")) == ("stop_sequence", "STOP")


@pytest.mark.rule("validation-26")
def test_a_reply_that_begins_with_a_stop_sequence_is_empty(ask: Asker) -> None:
    answer = ask.create("STOP", stop_sequences=["STOP"])
    assert (answer.content, answer.at("stop_sequence")) == ((), "STOP")
    assert ask.create("Hi", stop_sequences=["  "]).status == 400
    assert ask.create("Hi", stop_sequences=["not there"]).at("stop_reason") == "end_turn"


@pytest.mark.rule("validation-27")
@pytest.mark.parametrize(
    ("system", "status"),
    [
        ("Be brief.", 200),
        ("", 200),
        ([text("Be brief."), text("Be kind.")], 200),
        ([{"type": "image", "source": "x"}], 400),
        ([{"type": "text"}], 400),
        (["Be brief."], 400),
        (5, 400),
    ],
)
def test_a_system_prompt_is_text(ask: Asker, system: object, status: int) -> None:
    assert ask.create("Hi", system=system).status == status
