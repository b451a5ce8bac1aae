"""What the contract leaves open: the default, and that its switch turns it."""

from __future__ import annotations

import pytest

from sevenfold.core.cache.prompt_blocks import PromptLevel
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolResult
from sevenfold.core.models import Model
from sevenfold.testing import Choices, Prompt, RateLimits, Reply, Simulator, call_tool
from tests.simulator.asking import MARK, MODEL, PROSE, Asker, Fields, assistant, result, text, tool, use, user

EDITS = "context-management-2025-06-27"
CLEAR: Fields = {
    "type": "clear_tool_uses_20250919",
    "trigger": {"type": "tool_uses", "value": 1},
    "keep": {"type": "tool_uses", "value": 1},
}
DELETING = "sevenfold-cache-edits"


def rounds(count: int) -> list[object]:
    said: list[object] = [user("Look at it.")]
    for number in range(count):
        said.append(assistant(use(f"toolu_{number}")))
        said.append(user(result(f"toolu_{number}", PROSE)))
    return said


def results_seen(prompt: Prompt) -> str:
    """A brain that says what it can see of each tool result."""
    blocks = [block for message in prompt.messages for block in message.blocks]
    return " ".join(str(block.content)[:9] for block in blocks if isinstance(block, ToolResult))


@pytest.mark.rule("choices-1")
def test_the_text_of_a_cleared_result_can_be_chosen(ask: Asker) -> None:
    for choices, seen in (
        (Choices(), "[tool res The quick"),
        (Choices(cleared_text="gone"), "gone The quick"),
    ):
        ask.sim.reset(results_seen, choices=choices)
        fields: dict[str, object] = {"betas": [EDITS], "context_management": {"edits": [CLEAR]}}
        answer = ask.create(*rounds(2), tools=[tool()], **fields)
        assert answer.at("content", 0, "text") == seen


@pytest.mark.rule("choices-2")
@pytest.mark.parametrize(("sticky", "cleared"), [(False, [2, 2, None]), (True, [2, None, None])])
def test_clearing_can_be_made_to_last(ask: Asker, sticky: bool, cleared: list[int | None]) -> None:
    ask.sim.reset(results_seen, choices=Choices(sticky_clearing=sticky))
    edit = {**CLEAR, "keep": {"type": "tool_uses", "value": 1}}
    late = {**edit, "trigger": {"type": "tool_uses", "value": 9}}
    fields: dict[str, object] = {"betas": [EDITS], "tools": [tool()]}
    told: list[object] = []
    for each in (edit, edit, late):
        answer = ask.create(*rounds(3), context_management={"edits": [each]}, **fields)
        told.append(answer.at("context_management", "applied_edits", 0, "cleared_tool_uses"))
    assert told == cleared
    last = answer.at("content", 0, "text")
    assert last == ("[tool res [tool res The quick" if sticky else "The quick The quick The quick")


@pytest.mark.rule("choices-3")
def test_unknown_fields_can_be_let_through(ask: Asker) -> None:
    ask.sim.reset(choices=Choices(strict=False))
    assert ask.create({"role": "user", "content": "Hi", "id": "x"}, n=1).status == 200
    assert ask.create("Hi", thread={"type": "create"}).status == 400


@pytest.mark.rule("choices-4")
@pytest.mark.parametrize("model", ["claude-opus-5-5", MODEL])
def test_signatures_made_elsewhere_can_be_kept(ask: Asker, model: str) -> None:
    foreign = assistant({"type": "thinking", "thinking": "Hm.", "signature": "RXJ..."}, "Yes.")
    fields: dict[str, object] = {"model": model}
    assert ask.create("Hi", foreign, "And?", **fields).status == 400
    ask.sim.reset(choices=Choices(foreign_signatures="keep"))
    assert ask.create("Hi", foreign, "And?", **fields).status == 200


@pytest.mark.rule("choices-5")
@pytest.mark.parametrize(
    ("model", "chosen", "shown"),
    [
        ("claude-opus-4-6", None, True),
        ("claude-opus-4-7", None, False),
        ("claude-opus-5-5", None, False),
        ("claude-opus-4-6", False, False),
        ("claude-opus-5-5", True, True),
    ],
)
def test_whether_thinking_is_shown_unasked(ask: Asker, model: str, chosen: bool | None, shown: bool) -> None:
    ask.sim.reset(choices=Choices(shows_thinking=chosen))
    answer = ask.create("Hi", model=model, thinking={"type": "adaptive"})
    assert bool(answer.at("content", 0, "thinking")) is shown


@pytest.mark.rule("choices-6")
@pytest.mark.parametrize(
    "block",
    [
        {"type": "compaction", "content": "It was long."},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": "x"},
    ],
    ids=["compaction", "server tool"],
)
def test_a_conversation_may_end_with_some_blocks(ask: Asker, block: Fields) -> None:
    fields: dict[str, object] = {"betas": ["compact-2026-01-12"]}
    assert ask.create("Hi", assistant(block), **fields).status == 200
    ask.sim.reset(choices=Choices(prefill_after_blocks=False))
    assert ask.create("Hi", assistant(block), **fields).status == 400


@pytest.mark.rule("choices-7")
def test_the_user_speaks_first(ask: Asker) -> None:
    assert ask.create(assistant("Hello."), "Hi").message == 'messages: first message must use the "user" role'
    ask.sim.reset(choices=Choices(opens_with_user=False))
    assert ask.create(assistant("Hello."), "Hi").status == 200


@pytest.mark.rule("choices-8")
@pytest.mark.parametrize(("pings", "count"), [(True, 1), (False, 0)])
def test_pings_can_be_left_out(ask: Asker, pings: bool, count: int) -> None:
    ask.sim.reset(choices=Choices(pings=pings))
    headers = {"x-api-key": "k", "anthropic-version": "2026-10-21"}
    body = {"model": MODEL, "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    answer = ask.http.post(f"{ask.sim.url}/v1/messages", json=body, headers=headers)
    assert answer.text.count("event: ping") == count


@pytest.mark.rule("choices-9")
def test_more_betas_can_be_made_known(ask: Asker) -> None:
    ask.sim.reset(choices=Choices(extra_betas=frozenset({"flying-2027-01-01"})))
    assert ask.create("Hi", betas=["flying-2027-01-01"]).status == 200


@pytest.mark.rule("choices-10")
def test_an_account_is_new_unless_told() -> None:
    assert Choices().is_new_account


@pytest.mark.rule("choices-11")
def test_limits_are_wide_unless_told(ask: Asker) -> None:
    headers = ask.create("Hi").headers
    assert headers["anthropic-ratelimit-requests-limit"] == str(RateLimits().requests)
    assert int(headers["anthropic-ratelimit-input-tokens-limit"]) >= 1_000_000


@pytest.mark.rule("choices-12")
def test_cache_edits_are_off_unless_told(ask: Asker) -> None:
    edits = {"delete_tool_results": ["toolu_0"]}
    fields: dict[str, object] = {"tools": [tool()], "cache_edits": edits}
    assert ask.create(*rounds(1), **fields).message == "cache_edits: Extra inputs are not permitted"
    assert ask.create(*rounds(1), betas=[DELETING], **fields).status == 400
    ask.sim.reset(choices=Choices(cache_edits=True))
    assert ask.create(*rounds(1), **fields).status == 400
    assert ask.create(*rounds(1), betas=[DELETING], **fields).status == 200
    wrong: dict[str, object] = {"tools": [tool()], "cache_edits": {"delete_tool_results": "all"}}
    assert ask.create(*rounds(1), betas=[DELETING], **wrong).status == 400


@pytest.mark.rule("choices-12")
def test_deleting_from_the_cached_prefix_keeps_the_prefix(ask: Asker) -> None:
    ask.sim.reset(results_seen, choices=Choices(cache_edits=True))
    fields: dict[str, object] = {"tools": [tool()], "betas": [DELETING], "cache_control": MARK}
    whole = ask.create(*rounds(3), **fields).usage
    edits = {"delete_tool_results": ["toolu_0", "toolu_1"]}
    less = ask.create(*rounds(3), user("And?"), cache_edits=edits, **fields)
    told = less.at("context_management", "applied_edits", 0)
    assert isinstance(told, JsonObject)
    freed = told["deleted_input_tokens"]
    assert told == JsonObject(
        {"type": "cache_edits", "deleted_tool_results": 2, "deleted_input_tokens": freed}
    )
    assert isinstance(freed, int)
    assert less.usage.read == whole.written_5m - freed
    assert less.at("content", 0, "text") == "[tool res [tool res The quick"
    again = ask.create(*rounds(3), user("And?"), **fields)
    assert again.usage.read == less.usage.read + less.usage.written_5m + freed


@pytest.mark.rule("choices-13")
@pytest.mark.parametrize(("model", "status"), [("claude-opus-5-5", 200), (MODEL, 400)])
def test_fast_mode_is_for_models_with_a_fast_price(ask: Asker, model: str, status: int) -> None:
    answer = ask.create("Hi", model=model, speed="fast")
    assert answer.status == status
    if status == 200:
        fast, plain = ask.sim.last.cost, ask.create("Hi", model=model) and ask.sim.last.cost
        assert fast is not None
        assert plain is not None
        assert fast.total == 2 * plain.total
        assert answer.usage.speed == "fast"


@pytest.mark.rule("choices-14")
@pytest.mark.parametrize("field", ["container", "mcp_servers", "fallbacks", "fallback_credit_token"])
def test_what_is_not_simulated_says_so(ask: Asker, field: str) -> None:
    assert ask.create("Hi", **{field: "x"}).message == f"{field}: this field is not simulated; leave it out"
    assert ask.create("Hi", **{field: None}).status == 200


@pytest.mark.rule("choices-15")
def test_a_tool_request_that_does_not_fit_is_left_out(ask: Asker) -> None:
    ask.sim.reset(lambda _: Reply((call_tool("look", {}), call_tool("look", {"at": PROSE}))))
    answer = ask.create("Hi", tools=[tool()], max_tokens=200)
    assert (answer.kinds, answer.at("stop_reason")) == (["tool_use"], "max_tokens")


@pytest.mark.rule("choices-16")
def test_the_tokenizer_can_be_replaced() -> None:
    def ten(_model: Model, _level: PromptLevel, _block: JsonObject) -> int:
        return 10

    with Simulator(tokenizer=ten) as sim:
        sim.client().messages.create(
            model=MODEL,
            max_tokens=100,
            system="Be brief.",
            messages=[{"role": "user", "content": "Hi"}, {"role": "user", "content": "there"}],
        )
        assert (sim.last.usage.prompt, sim.last.usage.output) == (30, 10)


@pytest.mark.rule("choices-16")
def test_a_block_counts_the_same_wherever_it_stands(ask: Asker) -> None:
    def count(*said: object, **fields: object) -> int:
        counted = ask.count(*said, **fields).at("input_tokens")
        assert isinstance(counted, int)
        return counted

    one, two = count("Hello there."), count("And what now?")
    assert count("Hello there.", "And what now?") == count("And what now?", "Hello there.") == one + two
    assert count(user(text("Hello there.", cache_control=MARK))) == one
    assert count("Hello there.", model="claude-haiku-4-5") < one


@pytest.mark.rule("choices-13")
def test_fast_mode_can_be_let_pass_without_a_price(ask: Asker) -> None:
    ask.sim.reset(choices=Choices(fast_unpriced=True))
    assert ask.create("Hi", speed="fast").status == 200
    assert ask.sim.last.cost is None


@pytest.mark.rule("choices-14")
def test_what_is_not_simulated_can_be_ignored(ask: Asker) -> None:
    ask.sim.reset(choices=Choices(unsimulated="ignore"))
    assert ask.create("Hi", mcp_servers=[{"name": "x"}], container="c").status == 200


@pytest.mark.rule("choices-15")
def test_a_tool_request_that_does_not_fit_can_be_returned_empty(ask: Asker) -> None:
    ask.sim.reset(lambda _: Reply((call_tool("look", {"at": PROSE}),)), choices=Choices(cut_tools="empty"))
    answer = ask.create("Hi", tools=[tool()], max_tokens=200)
    assert (answer.kinds, answer.at("stop_reason")) == (["tool_use"], "max_tokens")
    assert (answer.at("content", 0, "input"), answer.usage.output) == (JsonObject(), 200)


@pytest.mark.rule("choices-19")
def test_empty_text_can_be_refused(ask: Asker) -> None:
    assert ask.create(user("", "Hi")).status == 200
    ask.sim.reset(choices=Choices(empty_text=False))
    refused = ask.create(user("", "Hi"))
    assert (refused.status, refused.message) == (400, "messages: text content blocks must be non-empty")
