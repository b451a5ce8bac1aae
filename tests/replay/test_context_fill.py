"""What filled the context, and what each tool result cost."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Block, Text, Thinking, ToolUseId
from sevenfold.core.prices import CATALOG
from sevenfold.replay.bills import (
    MAX_COSTLY_RESULTS,
    CallRates,
    ResultCosts,
    choose_costliest,
    label_tool_input,
)
from sevenfold.replay.context_fill import (
    MAX_SERIES_POINTS,
    ContextFill,
    ContextTracker,
    FillShare,
    PointMark,
    PointSeries,
    SeriesPoint,
    sum_fills,
)
from sevenfold.store.foreign.entries import NO_LINE_KEY, ForeignSource, LineKey
from tests.replay.steps import at, result, use

OPUS = CATALOG.find("claude-opus-5-5")
OLDER = CATALOG.find("claude-sonnet-4-5")
WORDS = "The tide comes in and the tide goes out, and nobody asks the harbour master why. " * 20
RATES = CallRates(Decimal("0.0000002"), Decimal("0.000005"))


def add(contents: ContextTracker, *blocks: Block, key: str = "", source: ForeignSource = "human") -> None:
    contents.add(LineKey(key), "user", blocks, source)


def carried(contents: ContextTracker) -> dict[str, int]:
    return {f"{share.kind} {share.tool}".strip(): share.carried_tokens for share in contents.fill().shares}


def test_what_no_line_accounts_for_is_the_rest_of_the_bill() -> None:
    contents = ContextTracker()
    add(contents, Text(WORDS))
    contents.bill(10_000, OPUS, is_counted=True)
    found = carried(contents)
    assert found["human"] + found["unlogged"] == 10_000
    assert 300 < found["human"] < 900


def test_an_estimate_over_the_bill_is_scaled_down_to_it() -> None:
    contents = ContextTracker()
    add(contents, Text(WORDS))
    contents.bill(50, OPUS, is_counted=True)
    assert carried(contents) == {"human": 50, "unlogged": 0}


def test_what_stays_is_carried_by_every_call_and_entered_once() -> None:
    contents = ContextTracker()
    add(contents, Text(WORDS))
    for _ in range(3):
        contents.bill(5_000, OPUS, is_counted=True)
    (human,) = [share for share in contents.fill().shares if share.kind == "human"]
    assert human.carried_tokens == pytest.approx(3 * human.entered_tokens, abs=2)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("human", "human"),
        ("attachment", "attachment"),
        ("memory", "memory"),
        ("summary", "summary"),
        ("system_prompt", "system_prompt"),
    ],
)
def test_text_counts_as_what_its_source_says(source: ForeignSource, kind: str) -> None:
    contents = ContextTracker()
    add(contents, Text(WORDS), source=source)
    contents.bill(9_000, OPUS, is_counted=True)
    assert carried(contents)[kind] > 300


def test_requests_and_results_count_for_their_tool() -> None:
    contents = ContextTracker()
    contents.add(NO_LINE_KEY, "assistant", (use("t1", "Grep", pattern="tide"), Thinking("Hm.")))
    add(contents, result("t1", WORDS))
    contents.bill(9_000, OPUS, is_counted=True)
    assert {"tool_request Grep", "tool_result Grep", "thinking", "unlogged"} == set(carried(contents))


def test_calls_that_are_not_counted_carry_nothing() -> None:
    contents = ContextTracker()
    add(contents, Text(WORDS))
    contents.bill(9_000, OPUS, is_counted=False)
    assert contents.fill() == ContextFill()


def read_file(contents: ContextTracker, name: str, content: str, path: str = "/a.py") -> bool:
    contents.add(NO_LINE_KEY, "assistant", (use(name, file_path=path),))
    (item,) = contents.add(NO_LINE_KEY, "user", (result(name, content),))
    return item.is_repeated


def test_a_file_read_again_with_the_same_content_is_a_repetition() -> None:
    contents = ContextTracker()
    assert not read_file(contents, "t1", WORDS)
    assert read_file(contents, "t2", WORDS)
    assert not read_file(contents, "t3", WORDS + "changed")
    assert not read_file(contents, "t4", WORDS, path="/b.py")
    contents.bill(9_000, OPUS, is_counted=True)
    assert contents.fill().repeated_entered_tokens > 300
    assert contents.fill().repeated_carried_tokens == contents.fill().repeated_entered_tokens


def test_a_file_read_again_after_it_left_the_context_is_none() -> None:
    contents = ContextTracker()
    read_file(contents, "t1", WORDS)
    contents.clear(frozenset({ToolUseId("t1")}))
    assert not read_file(contents, "t2", WORDS)
    contents.cut(frozenset(), NO_LINE_KEY)
    assert not read_file(contents, "t3", WORDS)


def test_compaction_drops_all_but_the_lines_it_kept() -> None:
    contents = ContextTracker()
    for name in ("u1", "u2", "u3"):
        add(contents, Text(WORDS + name), key=name)
    left = contents.cut(frozenset({LineKey("u3")}), NO_LINE_KEY)
    assert [item.key for item in left] == ["u1", "u2"]
    contents.bill(9_000, OPUS, is_counted=True)
    once = carried(contents)["human"]
    assert 300 < once < 900


def test_compaction_keeps_a_run_from_its_first_line_on() -> None:
    contents = ContextTracker()
    for name in ("u1", "u2", "u3"):
        add(contents, Text(name), key=name)
    assert [item.key for item in contents.cut(frozenset(), LineKey("u2"))] == ["u1"]
    assert [item.key for item in contents.cut(frozenset(), LineKey("unheard of"))] == ["u2", "u3"]


def test_models_that_drop_earlier_thinking_carry_none_after_a_person_speaks() -> None:
    def thinking_after_a_turn(model: str) -> int:
        contents = ContextTracker()
        contents.bill(1_000, CATALOG.find(model), is_counted=True)
        contents.add(NO_LINE_KEY, "assistant", (Thinking(WORDS),))
        add(contents, Text("And now?"))
        contents.bill(2_000, CATALOG.find(model), is_counted=True)
        return carried(contents).get("thinking", 0)

    assert thinking_after_a_turn("claude-sonnet-4-5") == 0
    assert thinking_after_a_turn("claude-opus-5-5") > 300


@given(
    st.lists(
        st.tuples(st.text(max_size=300), st.integers(0, 200_000), st.sampled_from(["say", "cut", "clear"])),
        max_size=20,
    )
)
def test_the_rows_add_up_to_what_was_billed(turns: list[tuple[str, int, str]]) -> None:
    contents = ContextTracker()
    for place, (text, prompt, what) in enumerate(turns):
        if what == "cut":
            contents.cut(frozenset(), NO_LINE_KEY)
        elif what == "clear":
            contents.clear(frozenset({ToolUseId(f"t{place - 1}")}))
        contents.add(NO_LINE_KEY, "assistant", (use(f"t{place}", file_path="/x"),))
        add(contents, result(f"t{place}", text), Text(text))
        contents.bill(prompt, OPUS if place % 2 else OLDER, is_counted=True)
    assert contents.fill().carried_tokens == sum(prompt for _, prompt, _ in turns)


def test_fills_of_several_sessions_add_up_by_row() -> None:
    one = ContextFill((FillShare("human", "", 10, 100), FillShare("tool_result", "Read", 5, 50)), 1, 2)
    two = ContextFill((FillShare("tool_result", "Read", 7, 700),), 3, 4)
    assert sum_fills([one, two]) == ContextFill(
        (FillShare("tool_result", "Read", 12, 750), FillShare("human", "", 10, 100)), 4, 6
    )


def test_a_result_is_written_once_and_read_with_every_call_after() -> None:
    costs = ResultCosts()
    costs.ask([use("t1", file_path="/srv/a.py")])
    costs.add(ToolUseId("t1"), 1_000, at(0))
    for _ in range(5):
        costs.bill(20_000, 19_000, RATES, is_break=False)
    (found,) = costs.finish("s1")
    assert (found.session, found.tool, found.label) == ("s1", "Read", "/srv/a.py")
    assert (found.tokens, found.sent) == (1_000, 5)
    assert found.usd == pytest.approx(1_000 * (RATES.paid + 4 * RATES.read))


def test_a_break_pays_again_for_what_stands_behind_it() -> None:
    costs = ResultCosts()
    costs.bill(10_000, 0, RATES, is_break=False)
    costs.add(ToolUseId("early"), 1_000, at(0))
    costs.bill(30_000, 10_000, RATES, is_break=False)
    costs.add(ToolUseId("late"), 1_000, at(0))
    costs.bill(40_000, 30_000, RATES, is_break=False)
    costs.bill(41_000, 15_000, RATES, is_break=True)
    late, early = costs.finish("s1")
    assert early.usd == pytest.approx(1_000 * (RATES.paid + 2 * RATES.read))
    assert late.usd == pytest.approx(1_000 * 2 * RATES.paid)


def test_a_result_that_left_costs_nothing_more() -> None:
    costs = ResultCosts()
    costs.add(ToolUseId("t1"), 1_000, at(0))
    costs.bill(20_000, 19_000, RATES, is_break=False)
    costs.drop([ToolUseId("t1"), ToolUseId("unheard of")])
    costs.bill(20_000, 19_000, RATES, is_break=False)
    (found,) = costs.finish("s1")
    assert found.sent == 1


def test_a_result_that_was_never_sent_is_not_listed() -> None:
    costs = ResultCosts()
    costs.add(ToolUseId("t1"), 1_000, at(0))
    assert costs.finish("s1") == ()


def test_calls_counted_elsewhere_cost_a_result_nothing() -> None:
    costs = ResultCosts()
    costs.add(ToolUseId("t1"), 1_000, at(0))
    costs.skip(20_000)
    costs.bill(21_000, 20_000, RATES, is_break=False)
    (found,) = costs.finish("s1")
    assert (found.sent, found.usd) == (1, pytest.approx(1_000 * RATES.read))


def test_only_the_ten_most_expensive_are_kept() -> None:
    costs = ResultCosts()
    for place in range(40):
        costs.add(ToolUseId(f"t{place}"), (place * 7) % 40 + 1, at(place))
    costs.bill(20_000, 19_000, RATES, is_break=False)
    found = costs.finish("s1")
    assert [item.tokens for item in found] == list(range(40, 40 - MAX_COSTLY_RESULTS, -1))
    assert choose_costliest([*found, *found])[:2] == (found[0], found[0])


def test_without_a_price_results_are_ranked_by_tokens_sent() -> None:
    costs = ResultCosts()
    costs.add(ToolUseId("small"), 10, at(0))
    costs.add(ToolUseId("large"), 90, at(0))
    costs.bill(20_000, 19_000, None, is_break=False)
    assert [(item.tokens, item.usd) for item in costs.finish("s1")] == [(90, None), (10, None)]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"command": "ls  -l\n /srv", "description": "List"}, "ls -l /srv"),
        ({"pattern": "tide", "path": "src"}, "tide"),
        ({"command": ("git", "diff")}, "git diff"),
        ({"limit": 3}, ""),
        ({"prompt": "x" * 999}, "x" * 120),
    ],
)
def test_a_request_is_labelled_by_its_most_telling_argument(asked: dict[str, object], text: str) -> None:
    assert label_tool_input(JsonObject(asked)) == text  # pyright: ignore[reportArgumentType]


@given(st.lists(st.tuples(st.integers(0, 200_000), st.booleans()), max_size=3_000))
def test_a_series_is_bounded_and_keeps_its_ends_and_its_peak(calls: list[tuple[int, bool]]) -> None:
    series = PointSeries()
    for place, (tokens, _) in enumerate(calls):
        series.add(SeriesPoint(call=place, at=None, prompt_tokens=tokens, read_tokens=0))
    points = series.points()
    assert len(points) <= MAX_SERIES_POINTS + 2
    assert [point.call for point in points] == sorted({point.call for point in points})
    if calls:
        assert (points[0].call, points[-1].call) == (0, len(calls) - 1)
        assert max(point.prompt_tokens for point in points) == max(tokens for tokens, _ in calls)


def test_a_marked_point_outlives_its_larger_neighbours() -> None:
    series = PointSeries()
    marked: PointMark = "break"
    for place in range(4 * MAX_SERIES_POINTS):
        series.add(
            SeriesPoint(
                call=place,
                at=None,
                prompt_tokens=100 + place % 3,
                read_tokens=0,
                mark=marked if place == 777 else "",
            )
        )
    assert [point.call for point in series.points() if point.mark] == [777]
