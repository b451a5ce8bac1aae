"""What a request reads, writes and pays fresh, rule by rule."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sevenfold.core.cache.prompt_cache import FIVE_MINUTES, ONE_HOUR, CacheChoices, CacheScope, RefreshRule
from sevenfold.core.json import JsonObject
from sevenfold.core.usage import TokenCounts
from tests.core.cache_cases import (
    LONG,
    MINUTE,
    SHORT,
    START,
    CacheSetup,
    Wire,
    ask,
    assistant,
    counts,
    request,
    result,
    text,
    tool,
    user,
)

SECOND = timedelta(seconds=1)


def blocks(count: int, marks: tuple[int, ...] = (), marker: Wire = SHORT) -> JsonObject:
    """So many text blocks of 100 tokens, numbered from 1, with markers on some."""
    marked = [
        text(f"Block {n}.", 100, **({"cache_control": marker} if n in marks else {})) for n in numbers(count)
    ]
    return request(user(*marked))


def numbers(count: int) -> range:
    return range(1, count + 1)


def system(*extra: Wire, marker: Wire = SHORT, said: str = "Be kind.") -> JsonObject:
    """A marked system prompt of 1,000 tokens, and messages."""
    return request(*extra, system=[text(said, 1_000, cache_control=marker)])


@pytest.mark.rule("cache-8")
def test_another_model_reads_nothing_of_this_one() -> None:
    setup = CacheSetup()
    setup.send(blocks(10, (10,)))
    other = JsonObject({**blocks(10, (10,)), "model": "claude-opus-5-5"})
    assert counts(setup.send(other)) == (0, 0, 1_000, 0)
    assert counts(setup.send(blocks(10, (10,)))) == (1_000, 0, 0, 0)


@pytest.mark.rule("cache-8")
def test_a_dated_name_and_its_family_share_a_cache() -> None:
    setup = CacheSetup()
    setup.send(blocks(10, (10,)))
    dated = JsonObject({**blocks(10, (10,)), "model": "claude-opus-5-20260601"})
    assert setup.send(dated).read == 1_000


@pytest.mark.rule("cache-36")
def test_only_the_marked_prefix_is_written() -> None:
    setup = CacheSetup()
    assert counts(setup.send(blocks(10, (8,)))) == (0, 0, 800, 200)
    assert len(setup.cache) == 1
    assert counts(setup.send(blocks(8, (8,)))) == (800, 0, 0, 0)
    assert counts(setup.send(blocks(7, (7,)))) == (0, 0, 700, 0)


@pytest.mark.rule("cache-36")
def test_each_marker_writes_one_entry() -> None:
    setup = CacheSetup()
    setup.send(blocks(10, (6, 8, 10)))
    assert len(setup.cache) == 3
    for length in (6, 8, 10):
        assert setup.send(blocks(length, (length,))).read == length * 100


@pytest.mark.rule("cache-37")
@pytest.mark.parametrize(("length", "read"), [(15, 1_000), (29, 1_000), (30, 0)])
def test_a_marker_looks_back_over_twenty_positions_its_own_included(length: int, read: int) -> None:
    setup = CacheSetup()
    setup.send(blocks(10, (10,)))
    assert setup.send(blocks(length, (length,))).read == read


@pytest.mark.rule("cache-38")
def test_content_that_stayed_the_same_is_not_found_unless_somebody_wrote_it() -> None:
    setup = CacheSetup()
    varying = [
        request(user(text("Static.", 1_000), text(f"At {n}.", 100, cache_control=SHORT))) for n in (1, 2)
    ]
    setup.send(varying[0])
    assert counts(setup.send(varying[1])) == (0, 0, 1_100, 0)


def parallel(count: int, marker: bool = True) -> JsonObject:
    """A question, so many tool calls at once, and their results."""
    answered = [result(f"{n}") for n in numbers(count)]
    if marker:
        answered[-1]["cache_control"] = SHORT
    return request(
        user(text("Look.", 1_000)), assistant(*(ask(f"{n}") for n in numbers(count))), user(*answered)
    )


@pytest.mark.rule("cache-39")
def test_a_run_of_tool_calls_is_one_position_and_so_is_a_run_of_results() -> None:
    asked = request(user(text("Look.", 1_000, cache_control=SHORT)))
    setup = CacheSetup()
    setup.send(asked)
    assert setup.send(parallel(50)).read == 1_000
    apart = CacheSetup(CacheChoices(collapses_runs=False))
    apart.send(asked)
    assert apart.send(parallel(50)).read == 0
    assert apart.send(parallel(9)).read == 1_000


@pytest.mark.rule("cache-39")
def test_calls_with_something_between_them_are_no_run() -> None:
    setup = CacheSetup()
    setup.send(request(user(text("Look.", 1_000, cache_control=SHORT))))
    said = [block for n in numbers(10) for block in (text(f"{n}"), ask(f"{n}"))]
    body = request(user(text("Look.", 1_000)), assistant(*said), user(result("1", cache_control=SHORT)))
    assert setup.send(body).read == 0


@pytest.mark.rule("cache-39")
def test_an_entry_inside_a_run_is_found() -> None:
    setup = CacheSetup()
    setup.send(parallel(3))
    calls = assistant(*(ask(f"{n}") for n in numbers(3)))
    results = [result(f"{n}") for n in numbers(3)]
    more = request(user(text("Look.", 1_000)), calls, user(*results, result("4", cache_control=SHORT)))
    assert setup.send(more).read == 1_000 + 6 * 10


@pytest.mark.rule("cache-40")
def test_every_marker_looks_back_from_its_own_place() -> None:
    setup = CacheSetup()
    setup.send(blocks(15, (15,)))
    assert setup.send(blocks(35, (35,))).read == 0
    fresh = CacheSetup()
    fresh.send(blocks(15, (15,)))
    assert counts(fresh.send(blocks(35, (16, 35)))) == (1_500, 0, 2_000, 0)


@pytest.mark.rule("cache-41")
def test_the_longest_prefix_that_any_marker_found_is_read() -> None:
    setup = CacheSetup()
    setup.send(blocks(20, (8, 12)))
    bill = setup.send(blocks(20, (8, 14)))
    assert (bill.read, bill.hit) == (1_200, 11)


@pytest.mark.rule("cache-42")
@pytest.mark.parametrize(
    ("warm", "expected"),
    [
        (None, (0, 1_500, 500, 100)),
        (10, (1_000, 500, 500, 100)),
        (15, (1_500, 0, 500, 100)),
        (17, (1_700, 0, 300, 100)),
        (20, (2_000, 0, 0, 100)),
    ],
    ids=["cold", "before the hour", "at the hour", "after the hour", "all"],
)
def test_mixed_lives_are_billed_in_three_stretches(
    warm: int | None, expected: tuple[int, int, int, int]
) -> None:
    setup = CacheSetup()
    if warm:
        setup.send(blocks(warm, (warm,)))
    sizes = {15: LONG, 20: SHORT}
    marked = [
        text(f"Block {n}.", 100, **({"cache_control": sizes[n]} if n in sizes else {})) for n in numbers(21)
    ]
    assert counts(setup.send(request(user(*marked)))) == expected


@pytest.mark.rule("cache-43")
def test_without_a_marker_everything_is_fresh_and_nothing_is_kept() -> None:
    setup = CacheSetup()
    for _ in range(2):
        assert counts(setup.send(blocks(20))) == (0, 0, 0, 2_000)
    assert len(setup.cache) == 0


@pytest.mark.rule("cache-43")
def test_an_empty_request_costs_nothing() -> None:
    assert CacheSetup().send(request()).total == 0


@pytest.mark.rule("cache-43")
def test_a_bill_is_usage() -> None:
    setup = CacheSetup()
    setup.send(blocks(10, (10,)))
    bill = setup.send(blocks(13, (12,), LONG))
    assert bill.counts(output=7) == TokenCounts(fresh=100, read=1_000, written_5m=0, written_1h=200, output=7)


@pytest.mark.rule("cache-44")
@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("claude-opus-5-5", 512),
        ("claude-sonnet-4-6", 1_024),
        ("claude-opus-4-7", 2_048),
        ("claude-opus-4-5", 4_096),
    ],
)
def test_a_prefix_below_the_model_minimum_is_neither_written_nor_read(model: str, least: int) -> None:
    for length, cached in ((least - 1, 0), (least, least)):
        body = request(user(text("Hi", length, cache_control=SHORT), text("more", 50)), model=model)
        setup = CacheSetup()
        assert counts(setup.send(body)) == (0, 0, cached, length - cached + 50)
        assert setup.send(body).read == cached


@pytest.mark.rule("cache-44")
def test_the_minimum_holds_for_each_marker_unless_it_is_chosen_to_hold_for_the_last() -> None:
    each, last = CacheSetup(), CacheSetup(CacheChoices(gates_each_marker=False))
    for setup, kept in ((each, 1), (last, 2)):
        assert setup.send(blocks(10, (2, 10))).written_5m == 1_000
        assert len(setup.cache) == kept
    assert last.send(blocks(5, (2, 5))).read == 0


@pytest.mark.rule("cache-45")
@pytest.mark.parametrize(("marker", "life"), [(SHORT, FIVE_MINUTES), (LONG, ONE_HOUR)])
def test_an_entry_lives_from_the_start_of_the_request_that_wrote_it(marker: Wire, life: timedelta) -> None:
    body = blocks(10, (10,), marker)
    for wait, read in ((life, 1_000), (life + SECOND, 0)):
        setup = CacheSetup()
        bill = setup.start(body)
        # The answer takes four minutes to begin, and they count.
        setup.cache.begin_response(bill, setup.now + 4 * MINUTE)
        assert setup.send(body, wait).read == read


@pytest.mark.rule("cache-45")
def test_a_bill_says_what_a_shorter_pause_would_have_read() -> None:
    setup = CacheSetup()
    setup.send(blocks(10, (8, 10)))
    late = setup.send(blocks(12, (8, 12)), 6 * MINUTE)
    assert (late.read, late.hit, late.expired) == (0, None, 9)
    assert setup.send(blocks(12, (12,))).expired is None


@pytest.mark.rule("cache-46")
def test_a_read_gives_an_entry_its_own_life_again() -> None:
    setup = CacheSetup()
    setup.send(blocks(10, (10,)))
    for _ in range(5):
        assert setup.send(blocks(10, (10,)), 4 * MINUTE).read == 1_000
    assert setup.send(blocks(10, (10,)), 6 * MINUTE).read == 0


@pytest.mark.rule("cache-46")
def test_a_marker_of_an_hour_does_not_lengthen_an_entry_of_five_minutes() -> None:
    setup = CacheSetup()
    setup.send(blocks(10, (10,), SHORT))
    assert counts(setup.send(blocks(10, (10,), LONG))) == (1_000, 0, 0, 0)
    assert counts(setup.send(blocks(10, (10,), LONG), 6 * MINUTE)) == (0, 1_000, 0, 0)


@pytest.mark.rule("cache-47")
@pytest.mark.parametrize(("refresh", "read"), [("hit", 0), ("found", 1_000), ("prefix", 1_000)])
def test_a_system_prompt_in_use_stays_alive_unless_it_is_chosen_that_only_the_hit_does(
    refresh: RefreshRule, read: int
) -> None:
    setup = CacheSetup(CacheChoices(refresh=refresh, writes_below_hit=False))
    for number in range(1, 5):
        turns = [user(text(f"Turn {n}.", 100)) for n in range(number)]
        setup.send(system(*turns, user(text(f"Turn {number}.", 100, cache_control=SHORT))), 2 * MINUTE)
    other = system(user(text("Something else.", 100, cache_control=SHORT)))
    assert setup.send(other).read == read


@pytest.mark.rule("cache-47")
def test_what_no_marker_found_is_refreshed_only_with_the_whole_prefix() -> None:
    chosen: tuple[tuple[RefreshRule, int], ...] = (("found", 0), ("prefix", 600))
    for refresh, read in chosen:
        setup = CacheSetup(CacheChoices(refresh=refresh))
        setup.send(blocks(10, (6, 10)))
        setup.send(blocks(10, (10,)), 4 * MINUTE)
        assert setup.send(blocks(6, (6,)), 4 * MINUTE).read == read


@pytest.mark.rule("cache-48")
def test_requests_side_by_side_all_miss_until_the_first_answer_begins() -> None:
    setup = CacheSetup()
    body = blocks(10, (10,))
    first, second = setup.start(body), setup.start(body)
    assert counts(first) == counts(second) == (0, 0, 1_000, 0)
    setup.cache.begin_response(first, START + 3 * SECOND)
    assert setup.send(body, 2 * SECOND).read == 0
    assert setup.send(body, 1 * SECOND).read == 1_000


@pytest.mark.rule("cache-48")
def test_the_answers_of_requests_side_by_side_leave_one_entry_with_the_later_start() -> None:
    setup = CacheSetup()
    body = blocks(10, (10,))
    first = setup.start(body)
    setup.now += 4 * MINUTE
    second = setup.start(body)
    for bill in (second, first, first):
        setup.cache.begin_response(bill, setup.now)
    assert len(setup.cache) == 1
    assert setup.send(body, FIVE_MINUTES).read == 1_000


@pytest.mark.rule("cache-49")
def test_a_request_that_is_never_answered_leaves_nothing() -> None:
    setup = CacheSetup()
    setup.start(blocks(10, (10,)))
    assert counts(setup.send(blocks(10, (10,)))) == (0, 0, 1_000, 0)


@pytest.mark.rule("cache-50")
def test_workspaces_share_nothing() -> None:
    setup = CacheSetup()
    setup.send(blocks(10, (10,)))
    assert setup.send(blocks(10, (10,)), scope=CacheScope("elsewhere")).read == 0
    assert setup.send(blocks(10, (10,))).read == 1_000


@pytest.mark.rule("cache-51")
def test_a_marker_reads_an_entry_of_another_life_unless_so_chosen() -> None:
    free, strict = CacheSetup(), CacheSetup(CacheChoices(hit_needs_ttl=True))
    for setup, expected in ((free, (1_000, 0, 0, 0)), (strict, (0, 1_000, 0, 0))):
        setup.send(blocks(10, (10,), SHORT))
        assert counts(setup.send(blocks(10, (10,), LONG))) == expected
    assert strict.send(blocks(10, (10,), LONG), 50 * MINUTE).read == 1_000
    assert strict.send(blocks(10, (10,), SHORT)).read == 0


@pytest.mark.rule("cache-52")
def test_a_marker_before_the_hit_writes_its_entry_for_nothing_unless_so_chosen() -> None:
    for free, read in ((True, 600), (False, 0)):
        setup = CacheSetup(CacheChoices(writes_below_hit=free))
        setup.send(blocks(10, (10,)))
        assert counts(setup.send(blocks(10, (6, 10)))) == (1_000, 0, 0, 0)
        assert setup.send(blocks(6, (6,))).read == read


@pytest.mark.rule("cache-53")
def test_what_is_alive_is_not_written_again() -> None:
    setup = CacheSetup()
    setup.send(blocks(10, (6, 10)))
    assert setup.start(blocks(10, (6, 10))).writes == ()
    assert len(setup.start(blocks(12, (6, 12))).writes) == 1


@pytest.mark.rule("cache-36")
def test_tools_can_be_cached_on_their_own() -> None:
    setup = CacheSetup()
    tools = [tool(f"tool {n}", cache_control=SHORT if n == 59 else None) for n in range(60)]
    assert counts(setup.send(request(user(text("Hi", 5)), tools=tools))) == (0, 0, 600, 5)
    assert counts(setup.send(request(user(text("Ho", 7)), tools=tools))) == (600, 0, 0, 7)


def test_entries_long_dead_are_forgotten_and_living_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sevenfold.core.cache.prompt_cache.SWEEP_AT", 4)
    setup = CacheSetup()
    for number in range(20):
        setup.send(request(user(text(f"Talk {number}.", 600, cache_control=SHORT))), timedelta(days=2))
    assert len(setup.cache) < 10
    setup.send(blocks(10, (10,)))
    assert setup.send(blocks(10, (10,))).read == 1_000
