"""Counting tokens without sending anything to a model."""

from __future__ import annotations

import pytest
from anthropic import Anthropic

from sevenfold.core.models import MODELS
from sevenfold.testing import Choices, RateLimits, Simulator
from tests.simulator.asking import MARK, MODEL, PROSE, Asker, assistant, reply, result, text, tool, use, user

LOOKING: list[object] = ["Look.", assistant("I will.", use()), user(result(content=PROSE), "And?")]


@pytest.mark.rule("counting-1")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_count_is_what_is_billed(ask: Asker, model: object) -> None:
    name = next(item.name for item in MODELS if item == model)
    fields: dict[str, object] = {"model": name, "tools": [tool()], "system": "Be brief."}
    counted = ask.count(*LOOKING, **fields).at("input_tokens")
    assert counted == ask.create(*LOOKING, **fields).usage.prompt


@pytest.mark.rule("counting-1")
def test_the_sdk_counts(sim: Simulator, client: Anthropic) -> None:
    plain = client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": PROSE}])
    beta = client.beta.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": PROSE}])
    assert plain.input_tokens == beta.input_tokens > 500


@pytest.mark.rule("counting-2")
def test_counting_costs_nothing_and_leaves_the_cache_alone(ask: Asker) -> None:
    said = user(text(PROSE, cache_control=MARK))
    assert list(ask.count(said).body) == ["input_tokens"]
    entry = ask.sim.last
    assert (entry.endpoint, entry.cost, entry.usage.prompt, entry.message_id) == (
        "count_tokens",
        None,
        0,
        None,
    )
    assert ask.create(said).usage.read == 0


@pytest.mark.rule("counting-3")
@pytest.mark.parametrize("field", ["max_tokens", "stream"])
def test_counting_takes_no_limit_and_no_stream(ask: Asker, field: str) -> None:
    assert ask.count("Hi").status == 200
    assert ask.count("Hi", **{field: 1}).message == f"{field}: Extra inputs are not permitted"


@pytest.mark.rule("counting-4")
@pytest.mark.parametrize(
    ("said", "fields"),
    [
        (["Hi"], {"model": "nobody"}),
        (["Hi", assistant(use())], {}),
        ([], {}),
        (["Hi"], {"tools": [tool(), tool()]}),
        (["Hi"], {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ([user(*(text(f"{n}", cache_control=MARK) for n in range(5)))], {}),
    ],
)
def test_what_cannot_be_sent_cannot_be_counted(
    ask: Asker, said: list[object], fields: dict[str, object]
) -> None:
    assert ask.count(*said, **fields).status == ask.create(*said, **fields).status >= 400


@pytest.mark.rule("counting-5")
def test_what_is_left_after_edits_is_counted(ask: Asker) -> None:
    edit = {"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 0}}
    keep = {"keep": {"type": "tool_uses", "value": 0}}
    fields: dict[str, object] = {
        "tools": [tool()],
        "betas": ["context-management-2025-06-27"],
        "context_management": {"edits": [{**edit, **keep}]},
    }
    counted = ask.count(*LOOKING, **fields)
    whole = ask.count(*LOOKING, tools=[tool()]).at("input_tokens")
    assert counted.at("context_management", "original_input_tokens") == whole
    assert counted.at("input_tokens") == ask.create(*LOOKING, **fields).usage.prompt
    assert counted.at("input_tokens") != whole


@pytest.mark.rule("counting-6")
def test_counting_applies_compactions_and_makes_none(ask: Asker) -> None:
    long, betas = PROSE * 90, ["compact-2026-01-12", "compact-2026-09-04"]
    block = {"type": "compaction", "content": "It was long."}
    after = ask.count(long, assistant(block, "Yes."), "And now?", betas=betas).at("input_tokens")
    assert isinstance(after, int)
    assert after < 100
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}
    plain = ask.count(long).at("input_tokens")
    assert ask.count(long, betas=betas, context_management={"edits": [edit]}).at("input_tokens") == plain
    assert ask.count(long, betas=betas, compaction={"type": "summarize"}).at("input_tokens") == plain
    assert isinstance(plain, int)
    assert plain > 50_000


@pytest.mark.rule("counting-7")
def test_a_prompt_over_the_window_is_counted(ask: Asker) -> None:
    counted = ask.count(*[PROSE * 60] * 12, model="claude-haiku-4-5").at("input_tokens")
    assert isinstance(counted, int)
    assert counted > 200_000


@pytest.mark.rule("counting-8")
def test_markers_do_not_count(ask: Asker) -> None:
    marked = ask.count(
        user(text(PROSE, cache_control=MARK)), tools=[tool(cache_control=MARK)], cache_control=MARK
    )
    assert marked.at("input_tokens") == ask.count(PROSE, tools=[tool()]).at("input_tokens")


@pytest.mark.rule("counting-9")
def test_counting_has_a_limit_of_its_own(ask: Asker) -> None:
    ask.sim.reset(choices=Choices(limits=RateLimits(requests=1)))
    assert [ask.count("Hi").status, ask.create("Hi").status] == [200, 200]
    assert [ask.count("Hi").status, ask.create("Hi").status] == [429, 429]


def test_thinking_is_counted_once_it_is_sent_back(ask: Asker) -> None:
    fields: dict[str, object] = {"model": "claude-opus-5-5"}
    answer = ask.create("Hi", **fields)
    grown = ask.count("Hi", reply(answer), "And?", **fields).at("input_tokens")
    assert isinstance(grown, int)
    assert grown > ask.sim.last.usage.prompt + answer.usage.thinking
