from __future__ import annotations

import pytest
from hypothesis import given

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import (
    Block,
    Compaction,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
    read_block,
)
from sevenfold.core.tokens.estimation import (
    ESTIMATORS,
    MEASURED_WEIGHTS,
    MEDIA_TOKENS,
    estimate_message,
    estimate_text_tokens,
    weigh_by_shape,
    weigh_plainly,
)
from tests.core import wires

ID = ToolUseId("toolu_1")
PICTURE = Image(JsonObject({"type": "base64", "data": "A" * 9_000}))


def use(**arguments: str | int) -> ToolUse:
    return ToolUse(ID, "Edit", JsonObject(arguments))


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        (Text("x" * 400), 100),
        (Text("é" * 400), 200),
        (Thinking("x" * 400, "S" * 9_000), 100),
        (RedactedThinking("x" * 400), 100),
        (use(path="x" * 89), 50),
        (ToolResult(ID, "x" * 400), 100),
        (ToolResult(ID, '{"a": 1}' * 50), 200),
        (ToolResult(ID, " \n[" + "1," * 200), 201.5),
        (ToolResult(ID, None), 0),
        (ToolResult(ID, (Text("x" * 400), PICTURE)), 2_100),
        (PICTURE, 2_000),
        (Document(JsonObject({"type": "url"})), 2_000),
        (Compaction("x" * 400), 100),
        (Compaction(None), 0),
        (Opaque(JsonObject({"type": "x" * 189})), 100),
    ],
)
def test_the_plain_rule_is_four_bytes_for_text_two_for_json_and_flat_for_media(
    block: Block, tokens: float
) -> None:
    assert weigh_plainly(block) == tokens


def test_estimators_go_by_name() -> None:
    assert {name: (item.name, item.calibrates) for name, item in ESTIMATORS.items()} == {
        "calibrated": ("calibrated", True),
        "plain": ("plain", False),
    }


@given(wires.blocks)
def test_every_block_a_provider_may_send_has_a_weight(wire: wires.Wire) -> None:
    block = read_block(wire)
    assert 0 <= weigh_by_shape(block) < 1e6
    assert 0 <= weigh_plainly(block) < 1e6


def test_tool_input_is_weighed_as_the_text_it_is_not_as_escaped_json() -> None:
    code = 'if x:\n\tprint("a")\n' * 30
    around = MEASURED_WEIGHTS.tool_block + MEASURED_WEIGHTS.argument
    assert weigh_by_shape(use(text=code)) == around + estimate_text_tokens(code)


def test_each_argument_costs_its_markup() -> None:
    assert weigh_by_shape(use(a=1, b=2)) - weigh_by_shape(use(a=1)) == pytest.approx(
        MEASURED_WEIGHTS.argument + MEASURED_WEIGHTS.number + MEASURED_WEIGHTS.digit + MEASURED_WEIGHTS.line
    )


def test_a_result_of_blocks_weighs_what_they_weigh() -> None:
    result = ToolResult(ID, (Text("some words here"), PICTURE))
    assert (
        weigh_by_shape(result)
        == MEASURED_WEIGHTS.tool_block + weigh_by_shape(Text("some words here")) + MEDIA_TOKENS
    )


THOUGHT = "A thought of some length, as prose. " * 20


def signature_over(size_bytes: int) -> str:
    return "S" * ((size_bytes + 175) * 4 // 3)


def test_a_short_thought_is_billed_as_shown() -> None:
    shown = MEASURED_WEIGHTS.thinking_block + estimate_text_tokens(THOUGHT)
    assert weigh_by_shape(Thinking(THOUGHT)) == pytest.approx(shown)
    assert weigh_by_shape(Thinking(THOUGHT, signature_over(len(THOUGHT)))) == pytest.approx(shown, rel=0.01)


def test_the_signature_tells_how_long_a_summarised_thought_was() -> None:
    weight = weigh_by_shape(Thinking(THOUGHT, signature_over(3 * len(THOUGHT))))
    assert weight == pytest.approx(
        MEASURED_WEIGHTS.thinking_block + 3 * estimate_text_tokens(THOUGHT), rel=0.01
    )


def test_without_a_signature_a_long_thought_counts_as_partly_summarised() -> None:
    long = THOUGHT * 5
    beyond = len(long) - 2_000
    assert beyond > 0
    expected = estimate_text_tokens(long) * (len(long) + beyond) / len(long)
    assert weigh_by_shape(Thinking(long)) == pytest.approx(MEASURED_WEIGHTS.thinking_block + expected)


@pytest.mark.parametrize(
    "withheld", [Thinking("", signature_over(4_300)), RedactedThinking(signature_over(4_300))]
)
def test_withheld_thinking_is_weighed_by_its_encrypted_form(withheld: Block) -> None:
    assert weigh_by_shape(withheld) == pytest.approx(MEASURED_WEIGHTS.thinking_block + 1_000, rel=0.01)


def test_a_signature_of_another_make_never_shrinks_what_is_shown() -> None:
    assert weigh_by_shape(Thinking(THOUGHT, "short")) == weigh_by_shape(Thinking(THOUGHT))


def test_a_message_weighs_what_its_blocks_weigh() -> None:
    said, done = Text("Run the tests. " * 40), ToolResult(ToolUseId("toolu_1"), "3 passed " * 40)
    parts = [estimate_message(Message("user", (block,))) for block in (said, done)]
    assert min(parts) > 50
    assert estimate_message(Message("user", (said, done))) == pytest.approx(sum(parts), abs=1)
