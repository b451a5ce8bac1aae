"""Layer 1's decisions: what stands in for a stored result, and what is sent instead of an empty one."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Image, Text, ToolResult, ToolUseId
from sevenfold.core.settings.kinds import LimitTable
from sevenfold.core.spills import SpillDecision
from sevenfold.layers.tool_results.policy import (
    EMPTY_RESULT,
    PREVIEW_CLOSING,
    PREVIEW_OPENING,
    FreshResult,
    ToolResultSettings,
    apply_spill_decision,
    choose_inline,
    choose_spilled,
    count_result_chars,
    is_empty_result,
    read_preview,
    render_preview,
)

USE = ToolUseId("toolu_1")
SETTINGS = ToolResultSettings()
PATH = "/srv/home/tool-results/toolu_1.txt"
IMAGE = Image(JsonObject({"type": "base64", "data": "AAAA"}))


def preview(text: str, preview_bytes: int = 2_000) -> str:
    return render_preview(text, PATH, len(text), replace(SETTINGS, preview_bytes=preview_bytes))


def test_a_preview_says_how_large_where_and_how_it_begins() -> None:
    text = "".join(f"line {n}\n" for n in range(10_000))
    shown = preview(text)
    assert shown.startswith(PREVIEW_OPENING)
    assert shown.endswith(PREVIEW_CLOSING)
    assert f"{len(text):,} bytes" in shown
    assert f"\n{PATH}\n" in shown
    assert "line 0\nline 1\n" in shown
    assert re.search(r"\nline \d+\n…\n", shown), "cut at a line's end, and it says that there is more"


def test_a_preview_of_all_there_is_does_not_say_that_there_is_more() -> None:
    assert preview("all of it\n").endswith("all of it\n</persisted-output>")


@given(st.text(), st.integers(1, 200))
def test_a_preview_is_about_as_long_as_it_is_set_to_be(text: str, preview_bytes: int) -> None:
    frame = len(preview("").encode())
    # A tag of ours that is made harmless takes a byte more.
    assert len(preview(text, preview_bytes).encode()) <= frame + preview_bytes + text.count("<") + 20


@pytest.mark.parametrize(
    "tag",
    [
        PREVIEW_OPENING,
        PREVIEW_CLOSING,
        "</PERSISTED-OUTPUT>",
        "</ persisted-output >",
        "< /persisted-output>",
        "<\n/persisted-output>",
        "<persisted-output x='1'>",
    ],
    ids=ascii,
)
def test_a_result_cannot_speak_from_outside_the_block(tag: str) -> None:
    shown = preview(f"before {tag} after\n")
    inside = shown.removeprefix(PREVIEW_OPENING).removesuffix(PREVIEW_CLOSING)
    assert not re.search(r"<\s*/?\s*persisted-output", inside, re.IGNORECASE)
    assert "before" in inside
    assert "after" in inside


@given(st.lists(st.sampled_from(["<", "/", " ", "persisted-output", ">", "\\", "\n"])).map("".join))
def test_no_mixture_of_tags_closes_the_block_early(text: str) -> None:
    shown = preview(text)
    assert len(re.findall(r"<\s*/\s*persisted-output", shown, re.IGNORECASE)) == 1


@pytest.mark.parametrize("content", [None, "", (), (Text(""),), (Text(""), Text(""))])
def test_nothing_to_read_is_empty(content: str | tuple[Text, ...] | None) -> None:
    result = ToolResult(USE, content)
    assert is_empty_result(result)
    decision = choose_inline(result)
    assert decision == SpillDecision(tool_use_id=USE, preview=EMPTY_RESULT), (
        "frozen with the decision, whatever the marker says later"
    )
    assert apply_spill_decision(result, decision).content == EMPTY_RESULT


@pytest.mark.parametrize("content", [" ", "0", (Text(" "),), (IMAGE,), (Text(""), IMAGE)])
def test_anything_to_read_is_not_empty_and_left_as_it_came(content: str | tuple[Text | Image, ...]) -> None:
    result = ToolResult(USE, content)
    assert not is_empty_result(result)
    assert apply_spill_decision(result, choose_inline(result)) is result


def test_a_preview_takes_the_place_of_the_content_and_of_nothing_else() -> None:
    result = ToolResult(USE, "long " * 1000, is_error=True, extra=JsonObject({"cache_control": None}))
    decision = SpillDecision(tool_use_id=USE, preview="short", spill="tool-results/toolu_1.txt")
    assert apply_spill_decision(result, decision) == replace(result, content="short")


def test_a_decision_is_applied_to_the_same_bytes_however_often() -> None:
    result, decision = (
        ToolResult(USE, "long " * 1000),
        SpillDecision(tool_use_id=USE, preview=preview("long " * 1000)),
    )
    once = apply_spill_decision(result, decision)
    assert apply_spill_decision(once, decision) == once
    empty = choose_inline(ToolResult(USE, ""))
    marked = apply_spill_decision(ToolResult(USE, ""), empty)
    assert apply_spill_decision(marked, empty) == marked


def test_a_decision_is_frozen() -> None:
    decision = SpillDecision(tool_use_id=USE)
    with pytest.raises(FrozenInstanceError):
        setattr(decision, "preview", "other")  # noqa: B010 - a checker would not let it stand otherwise
    assert decision == SpillDecision(tool_use_id=USE)


def test_the_settings_have_their_documented_defaults() -> None:
    assert SETTINGS.enabled
    assert (SETTINGS.limit_chars, SETTINGS.round_limit_chars, SETTINGS.preview_bytes) == (
        50_000,
        200_000,
        2_000,
    )
    assert SETTINGS.opted_out == ("Read", "read")
    assert len(SETTINGS.limits) == 0


def fresh(**sizes: int) -> list[FreshResult]:
    """One result a tool, of so many characters, under the tool's name."""
    return [FreshResult(ToolResult(ToolUseId(tool), "x" * size), tool) for tool, size in sizes.items()]


@pytest.mark.parametrize(
    ("sizes", "spilled"),
    [
        ({"Bash": 50_000}, set[str]()),
        ({"Bash": 50_001}, {"Bash"}),
        ({"Read": 500_000}, set[str]()),
        ({"Loud": 1_001, "Bash": 1_001}, {"Loud"}),
        ({"a": 49_000, "b": 48_000, "c": 47_000, "d": 46_000, "e": 1_000}, set[str]()),
        ({"a": 49_000, "b": 48_000, "c": 47_000, "d": 46_000, "e": 45_000}, {"a"}),
        ({"Read": 199_000, "a": 40_000, "b": 1_500}, {"a"}),
    ],
    ids=[
        "at its limit",
        "over its limit",
        "opted out",
        "a limit of its own",
        "a round within its budget",
        "the largest first",
        "what opted out counts and stays, and so does what is shorter than a preview",
    ],
)
def test_what_is_over_its_limit_goes_and_then_the_largest_until_the_round_fits(
    sizes: dict[str, int], spilled: set[str]
) -> None:
    settings = replace(SETTINGS, limits=LimitTable({"Loud": 1_000}))
    assert choose_spilled(fresh(**sizes), settings) == spilled
    assert choose_spilled(fresh(**sizes), replace(settings, enabled=False)) == frozenset()


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 120_000)), st.integers(2_001, 300_000))
def test_a_round_fits_its_budget_whenever_it_can(sizes: dict[str, int], budget: int) -> None:
    settings = replace(SETTINGS, round_limit_chars=budget)
    round_ = fresh(**sizes)
    spilled = choose_spilled(round_, settings)
    left = [count_result_chars(item.result) for item in round_ if item.result.tool_use_id not in spilled]
    assert sum(left) <= budget or max(left) <= settings.preview_bytes
    assert all(size <= settings.limit_chars for size in left)


def test_a_preview_is_read_back_as_what_it_shows() -> None:
    assert read_preview(preview("all of it\n")) == "all of it"
    shown = read_preview(preview("first\nsecond\nthird\n", preview_bytes=13))
    assert shown == "first\nsecond", "without the mark that there is more"
    assert read_preview(EMPTY_RESULT) == ""


@pytest.mark.parametrize(
    "text", ["plain", f"{PREVIEW_OPENING}\nIt begins:\n\nx", f"x\n{PREVIEW_CLOSING}", ""]
)
def test_what_is_no_whole_preview_is_read_as_it_stands(text: str) -> None:
    assert read_preview(text) == text


def test_only_texts_of_a_result_are_counted() -> None:
    assert count_result_chars(ToolResult(USE, (Text("four"), IMAGE, Text("five5")))) == 9
    assert count_result_chars(ToolResult(USE, "six666")) == 6
    assert count_result_chars(ToolResult(USE, None)) == 0
