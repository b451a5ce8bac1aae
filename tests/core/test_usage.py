"""Usage is read from every provider's shape into one way of counting."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import WireError
from sevenfold.core.json import freeze
from sevenfold.core.usage import NO_USAGE, Iteration, Usage, read_openai_usage, read_usage, sum_usage

FULL = {
    "input_tokens": 7,
    "cache_creation_input_tokens": 300,
    "cache_read_input_tokens": 5_000,
    "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
    "output_tokens": 90,
    "output_tokens_details": {"thinking_tokens": 40},
    "service_tier": "standard",
    "speed": "fast",
    "inference_geo": "us",
    "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 1},
}


def test_every_field_of_a_full_answer_is_read() -> None:
    usage = read_usage(FULL)
    assert usage == Usage(
        fresh=7,
        read=5_000,
        written_5m=100,
        written_1h=200,
        output=90,
        thinking=40,
        iterations=(),
        web_searches=2,
        web_fetches=1,
        service_tier="standard",
        speed="fast",
        geo="us",
    )
    assert (usage.written, usage.prompt, usage.context_tokens) == (300, 5_307, 5_397)


def test_writes_without_a_split_are_of_the_default_life() -> None:
    usage = read_usage({"input_tokens": 1, "cache_creation_input_tokens": 30, "output_tokens": 2})
    assert (usage.written_5m, usage.written_1h) == (30, 0)


def test_a_split_without_its_sum_counts() -> None:
    split = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}
    assert read_usage({"cache_creation": split}).written == 7
    assert read_usage({"cache_creation": split, "cache_creation_input_tokens": None}).written_1h == 4


def test_what_the_split_leaves_out_is_of_the_default_life() -> None:
    wire = {"cache_creation_input_tokens": 10, "cache_creation": {"ephemeral_1h_input_tokens": 4}}
    usage = read_usage(wire)
    assert (usage.written_5m, usage.written_1h) == (6, 4)


def test_nulls_and_absent_fields_are_zero() -> None:
    wire = dict.fromkeys(FULL) | {"iterations": None}
    assert read_usage(wire) == Usage()
    assert read_usage({"output_tokens": 5}) == Usage(output=5)


def test_frozen_json_is_read_like_plain_json() -> None:
    assert read_usage(freeze(FULL)) == read_usage(FULL)


COMPACTED = {
    "input_tokens": 23_000,
    "output_tokens": 1_000,
    "iterations": [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {"type": "message", "input_tokens": 3_000, "cache_read_input_tokens": 20_000, "output_tokens": 1_000},
    ],
}


def test_a_compaction_stands_beside_the_totals_and_outside_the_context() -> None:
    usage = read_usage(COMPACTED)
    assert usage.fresh == 23_000
    assert usage.untotaled == (Iteration(fresh=180_000, output=3_500, kind="compaction"),)
    assert usage.context_tokens == 24_000


def test_the_last_message_is_the_context_even_when_a_compaction_follows() -> None:
    iterations = [
        {"type": "message", "input_tokens": 100, "output_tokens": 10},
        {"type": "message", "input_tokens": 200, "output_tokens": 20},
        {"type": "compaction", "input_tokens": 900, "output_tokens": 90},
    ]
    assert read_usage({"input_tokens": 300, "iterations": iterations}).context_tokens == 220


def test_the_last_run_is_the_one_whose_prompt_was_the_context() -> None:
    first, second = Iteration(fresh=100, output=10), Iteration(fresh=200, output=20)
    compaction = Iteration(fresh=900, output=90, kind="compaction")
    assert Usage(fresh=5).last_run == Usage(fresh=5)
    assert Usage(fresh=300, iterations=(first, second, compaction)).last_run == second
    assert Usage(iterations=(compaction,)).last_run is None


def test_a_compaction_alone_says_nothing_of_the_context() -> None:
    iterations = [{"type": "compaction", "input_tokens": 900, "output_tokens": 90}]
    assert (
        read_usage({"input_tokens": 0, "output_tokens": 0, "iterations": iterations}).context_tokens is None
    )


def test_an_advisor_keeps_the_name_of_its_model() -> None:
    advisor = {"type": "advisor_message", "input_tokens": 5, "output_tokens": 6, "model": "claude-opus-5-5"}
    usage = read_usage({"input_tokens": 1, "iterations": [advisor]})
    assert [(item.kind, item.model) for item in usage.untotaled] == [("advisor_message", "claude-opus-5-5")]


@pytest.mark.parametrize(
    ("wire", "named"),
    [
        (None, "usage must be an object"),
        ([], "usage must be an object"),
        ({}, "usage names no count.*an empty object"),
        ({"tokens": 5}, "usage names no count.*got tokens"),
        ({"prompt_tokens": 5}, "read_openai_usage"),
        ({"input_tokens": 5, "input_tokens_details": {}}, "read_openai_usage"),
        ({"input_tokens": "5"}, r"usage\.input_tokens"),
        ({"input_tokens": True}, r"usage\.input_tokens"),
        ({"input_tokens": 5.0}, r"usage\.input_tokens"),
        ({"input_tokens": -1}, r"usage\.input_tokens"),
        ({"input_tokens": 10**400}, r"usage\.input_tokens"),
        ({"cache_read_input_tokens": []}, r"usage\.cache_read_input_tokens"),
        ({"input_tokens": 1, "cache_creation": 5}, r"usage\.cache_creation must be an object"),
        (
            {"input_tokens": 1, "cache_creation": {"ephemeral_1h_input_tokens": "x"}},
            r"usage\.cache_creation\.ephemeral_1h_input_tokens",
        ),
        (
            {"cache_creation_input_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 2}},
            r"adds up to 2, over cache_creation_input_tokens",
        ),
        ({"output_tokens": 1, "output_tokens_details": {"thinking_tokens": 2}}, r"usage\.output_tokens is 1"),
        ({"input_tokens": 1, "speed": 5}, r"usage\.speed"),
        ({"input_tokens": 1, "server_tool_use": []}, r"usage\.server_tool_use"),
        ({"input_tokens": 1, "iterations": {}}, r"usage\.iterations must be a list"),
        ({"input_tokens": 1, "iterations": [5]}, r"usage\.iterations\[0\] must be an object"),
        (
            {"input_tokens": 1, "iterations": [{"input_tokens": 5}]},
            r"usage\.iterations\[0\]\.type is missing",
        ),
        (
            {
                "input_tokens": 1,
                "iterations": [{"type": "message"}, {"type": "message", "input_tokens": "x"}],
            },
            r"usage\.iterations\[1\]\.input_tokens",
        ),
    ],
)
def test_a_bad_shape_is_refused_by_the_name_of_its_field(wire: object, named: str) -> None:
    with pytest.raises(WireError, match=named):
        read_usage(wire)


def test_chat_completions_are_counted_apart() -> None:
    usage = read_openai_usage(
        {
            "prompt_tokens": 1_000,
            "completion_tokens": 50,
            "total_tokens": 1_050,
            "prompt_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 300, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 20},
        }
    )
    assert usage == Usage(fresh=100, read=600, written_5m=300, output=50, thinking=20)
    assert usage.prompt == 1_000


def test_responses_are_counted_apart() -> None:
    usage = read_openai_usage(
        {
            "input_tokens": 1_000,
            "output_tokens": 50,
            "input_tokens_details": {"cached_tokens": 1_000},
            "output_tokens_details": {"reasoning_tokens": 50},
        }
    )
    assert usage == Usage(fresh=0, read=1_000, output=50, thinking=50)


def test_a_codex_log_is_counted_apart() -> None:
    wire = {
        "input_tokens": 10,
        "cached_input_tokens": 4,
        "output_tokens": 3,
        "reasoning_output_tokens": 1,
        "total_tokens": 13,
    }
    assert read_openai_usage(wire) == Usage(fresh=6, read=4, output=3, thinking=1)


@pytest.mark.parametrize(
    "wire",
    [
        {
            "prompt_tokens": 5,
            "completion_tokens": 10,
            "completion_tokens_details": {"reasoning_tokens": 40},
        },
        {"input_tokens": 5, "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 40}},
        {"input_tokens": 5, "output_tokens": 10, "reasoning_output_tokens": 40},
    ],
)
def test_reasoning_that_was_counted_apart_is_billed_as_output(wire: object) -> None:
    assert read_openai_usage(wire) == Usage(fresh=5, output=50, thinking=40)


def test_no_details_means_nothing_was_cached() -> None:
    expected = Usage(fresh=10, output=2)
    assert read_openai_usage({"prompt_tokens": 10, "completion_tokens": 2}) == expected
    assert (
        read_openai_usage({"input_tokens": 10, "output_tokens": 2, "input_tokens_details": None}) == expected
    )


@pytest.mark.parametrize(
    ("wire", "named"),
    [
        ("text", "usage must be an object"),
        ({"completion_tokens": 5}, "expected prompt_tokens or input_tokens"),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2}},
            r"usage\.prompt_tokens is 5, less than its cached \(4\) and written \(2\) parts",
        ),
        ({"prompt_tokens": "5"}, r"usage\.prompt_tokens"),
    ],
)
def test_a_bad_openai_shape_is_refused_by_the_name_of_its_field(wire: object, named: str) -> None:
    with pytest.raises(WireError, match=named):
        read_openai_usage(wire)


COUNT = st.integers(0, 10**9)
USAGES = st.builds(
    Usage,
    fresh=COUNT,
    read=COUNT,
    written_5m=COUNT,
    written_1h=COUNT,
    output=COUNT,
    thinking=COUNT,
    iterations=st.lists(st.builds(Iteration, fresh=COUNT, read=COUNT), max_size=2).map(tuple),
    web_searches=COUNT,
    web_fetches=COUNT,
    service_tier=st.sampled_from([None, "standard", "batch"]),
    speed=st.sampled_from([None, "fast"]),
    geo=st.sampled_from([None, "us"]),
)


@given(USAGES, USAGES, USAGES)
def test_adding_loses_no_count_in_any_order(one: Usage, two: Usage, three: Usage) -> None:
    assert (one + two) + three == one + (two + three)
    total = sum_usage([one, two, three])
    assert total.requests == 3
    for name in ("fresh", "read", "written_5m", "written_1h", "output", "thinking", "web_searches"):
        assert getattr(total, name) == sum(getattr(item, name) for item in (one, two, three))
    assert len(total.iterations) == sum(len(item.iterations) for item in (one, two, three))


@given(USAGES)
def test_nothing_added_changes_nothing(usage: Usage) -> None:
    assert NO_USAGE + usage == usage
    assert usage + NO_USAGE == usage
    assert sum_usage([]) == NO_USAGE


def test_a_sum_keeps_only_the_terms_its_parts_share() -> None:
    fast = Usage(speed="fast", geo="us", service_tier="batch")
    assert (fast + fast).speed == "fast"
    mixed = fast + replace(fast, speed=None, geo="eu", service_tier="standard")
    assert (mixed.speed, mixed.geo, mixed.service_tier) == (None, None, None)


@given(COUNT, COUNT, COUNT, COUNT, COUNT)
def test_any_answer_of_the_provider_is_read_whole(
    fresh: int, read: int, short: int, long: int, out: int
) -> None:
    wire = {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": short + long,
        "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
        "output_tokens": out,
    }
    usage = read_usage(wire)
    assert [getattr(usage, item.name) for item in fields(usage)[:5]] == [fresh, read, short, long, out]
