"""What the last request wrote is read by the next, however much a round adds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sevenfold.core.cache.prompt_cache import (
    DEFAULT_CACHE_CHOICES,
    CacheChoices,
    find_breakpoint_problems,
    find_breakpoints,
)
from sevenfold.core.canonical import CACHE_CONTROL
from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import (
    Compaction,
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUseId,
)
from sevenfold.core.prices import CATALOG
from sevenfold.core.requests import Breakpoint, RequestParams, choose_capabilities
from sevenfold.session.cache.placement import (
    INITIAL_BREAKPOINT_STATE,
    BreakpointFacts,
    BreakpointPlan,
    BreakpointState,
    CacheSettings,
    collect_breakpoint_facts,
    find_params_end,
    plan_breakpoints,
)
from tests.examples import up_to
from tests.session.cache.talks import FRAME, SETTINGS, Line, random_round, spoken, wire

HOUR, MINUTES = timedelta(hours=1), timedelta(minutes=5)
FACTS = BreakpointFacts(
    breakpoints=4, frame=Breakpoint("system", 0), frame_tokens=2_000, cache_min_tokens=512
)
OPENING = (spoken("Go."),)


def texts(count: int) -> Message:
    return Message("user", tuple(Text(f"{at}") for at in range(count)))


def answered(view: tuple[Message, ...], state: BreakpointState = INITIAL_BREAKPOINT_STATE) -> BreakpointState:
    return plan_breakpoints(view, FACTS, SETTINGS, state).answered()


def places(placement: BreakpointPlan) -> list[str]:
    return [f"{mark.level}.{mark.index}.{mark.block}" for mark in placement.breakpoints]


def misses(line: Line, seed: int, most: int) -> int:
    """How many requests of a random conversation read less than was promised them."""
    random = Random(seed)
    line.view.append(spoken("x" * 3_000))
    missed = 0
    for at in range(12):
        line.view += random_round(random, f"{seed}.{at}", random.randint(1, most), thinks=not at % 3)
        sender = line.fork() if random.random() < 0.3 else line
        for again in range(random.randint(1, 3) if sender is not line else 1):
            if again:
                sender.view += random_round(random, f"{seed}.{at}.fork{again}", most)
            promised = sender.promised
            bill = sender.send(fails=random.random() < 0.2)
            missed += bill.read < promised
        if sender is not line:
            line.now = sender.now
    return missed


@settings(max_examples=up_to(25), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 2**32), st.integers(1, 100), st.booleans())
def test_all_that_was_written_is_read_whatever_a_round_adds(seed: int, most: int, collapses: bool) -> None:
    assert misses(Line(choices=CacheChoices(collapses_runs=collapses)), seed, most) == 0


@pytest.mark.story
def test_marking_the_last_block_alone_misses_where_rounds_are_long() -> None:
    ours = sum(misses(Line(), seed, 100) for seed in range(6))
    naive = sum(misses(Line(naive=True), seed, 100) for seed in range(6))
    assert ours == 0
    assert naive > 30


@pytest.mark.parametrize("count", [18, 19, 20, 21, 100])
def test_the_place_marked_last_is_marked_again_where_the_look_back_ends(count: int) -> None:
    view = (*OPENING, texts(count))
    found = places(plan_breakpoints(view, FACTS, SETTINGS, answered(OPENING)))
    end = f"messages.1.{count - 1}"
    assert found == (["system.0.0", end] if count < 20 else ["system.0.0", "messages.0.0", end])


def test_a_request_that_failed_has_written_nothing() -> None:
    failed = plan_breakpoints((*OPENING, texts(30)), FACTS, SETTINGS, answered(OPENING))
    view = (*OPENING, texts(30), texts(1))
    assert "messages.0.0" in places(plan_breakpoints(view, FACTS, SETTINGS, failed.state))
    assert "messages.0.0" not in places(plan_breakpoints(view, FACTS, SETTINGS, failed.answered()))


def test_after_a_cut_the_last_place_before_it_is_marked() -> None:
    first = (*OPENING, texts(3))
    state = answered((*first, texts(40)), answered(first, answered(OPENING)))
    view = (*first, *(texts(1) for _ in range(30)))
    found = plan_breakpoints(view, FACTS, SETTINGS, state.cut(2))
    assert places(found) == ["system.0.0", "messages.1.2", "messages.31.0"]
    assert state.cut(0).written == ()


def test_a_view_that_got_shorter_unannounced_is_marked_where_there_is_something() -> None:
    state = answered((*OPENING, texts(40)))
    found = plan_breakpoints((*OPENING, spoken("")), FACTS, SETTINGS, state)
    assert places(found) == ["system.0.0", "messages.0.0"]
    held = answered((*OPENING, texts(5)))
    swapped = (*OPENING, texts(1), texts(30))
    assert "messages.1.4" not in places(plan_breakpoints(swapped, FACTS, SETTINGS, held))


def test_thinking_and_empty_text_are_never_marked() -> None:
    ends = (Thinking("hm", "signed"), RedactedThinking("x"), Text(""))
    view = (*OPENING, Message("assistant", (Text("Yes."), *ends)))
    assert places(plan_breakpoints(view, FACTS, SETTINGS)) == ["system.0.0", "messages.1.0"]
    cleared = Message("system", (Text("soon gone"),), JsonObject({"clear_at": "next_user_message"}))
    assert places(plan_breakpoints((*OPENING, cleared), FACTS, SETTINGS))[-1] == "messages.0.0"


def test_nothing_before_a_compaction_block_is_marked_again() -> None:
    state = answered((*OPENING, texts(3)))
    view = (*OPENING, texts(3), Message("assistant", (Compaction("In short."),)), texts(40))
    assert places(plan_breakpoints(view, FACTS, SETTINGS, state)) == ["system.0.0", "messages.3.39"]


def test_only_new_messages_are_looked_at() -> None:
    class Guarded(list[Message]):
        """A view that tells which messages were looked at."""

        def __init__(self, messages: list[Message]) -> None:
            super().__init__(messages)
            self.asked: set[int] = set()

        def __getitem__(self, index: int) -> Message:  # pyright: ignore[reportIncompatibleMethodOverride]
            self.asked.add(index)
            return super().__getitem__(index)

    messages = [texts(1) for _ in range(1_000)]
    state = answered(tuple(messages))
    view = Guarded([*messages, texts(30)])
    assert plan_breakpoints(view, FACTS, SETTINGS, state).state.blocks == 1_030
    assert view.asked == {999, 1_000}


@pytest.mark.parametrize("goes_on", [True, False])
def test_the_only_round_of_a_fork_writes_nothing(goes_on: bool) -> None:
    facts = replace(FACTS, goes_on=goes_on)
    found = plan_breakpoints((*OPENING, texts(1)), facts, SETTINGS, answered(OPENING))
    assert places(found)[-1] == ("messages.1.0" if goes_on else "messages.0.0")


def test_where_thinking_is_dropped_reading_goes_on_from_the_turns_beginning() -> None:
    line = Line(replace(FRAME, model="claude-haiku-4-5"))
    random = Random(7)
    line.view.append(spoken("x" * 6_000))
    promised = 0
    for turn in range(6):
        for at in range(8):
            bill = line.send()
            assert bill.read >= promised
            opened = line.promised if not at else promised
            promised = line.promised
            said = random_round(random, f"{turn}.{at}", 30)
            results = tuple(block for block in said[1].blocks if isinstance(block, ToolResult))
            line.view += [said[0], Message("user", results or (ToolResult(ToolUseId("none"), "-"),))]
            if not at:
                turn_began = opened
        line.view.append(spoken(f"turn {turn}"))
        promised = turn_began  # pyright: ignore[reportPossiblyUnboundVariable]
    assert turn_began > 6_000  # pyright: ignore[reportPossiblyUnboundVariable]


def test_the_frame_is_marked_only_where_it_is_long_enough() -> None:
    short = replace(FACTS, frame_tokens=300)
    assert places(plan_breakpoints(OPENING, short, SETTINGS)) == ["messages.0.0"]
    nearly = replace(FACTS, frame_tokens=400)
    assert places(plan_breakpoints(OPENING, nearly, SETTINGS)) == ["system.0.0", "messages.0.0"]


def test_the_end_of_the_frame_is_its_last_part_that_can_be_marked() -> None:
    part, empty = JsonObject({"type": "text", "text": "Be."}), JsonObject({"type": "text", "text": ""})
    plain = JsonObject({"name": "look"})
    later = JsonObject({"name": "walk", "defer_loading": True})
    assert find_params_end(RequestParams(model="m", max_tokens=1, system="Be.")) == Breakpoint("system", 0)
    assert find_params_end(RequestParams(model="m", max_tokens=1, system=(part, part, empty))) == Breakpoint(
        "system", 1
    )
    assert find_params_end(
        RequestParams(model="m", max_tokens=1, system="", tools=(plain, plain, later))
    ) == Breakpoint("tools", 1)
    assert find_params_end(RequestParams(model="m", max_tokens=1, system=(empty,), tools=(later,))) is None


@pytest.mark.parametrize("facts", [BreakpointFacts(breakpoints=0), FACTS], ids=["no markers", "switched off"])
def test_nothing_is_marked_where_nobody_asks_for_it(facts: BreakpointFacts) -> None:
    assert plan_breakpoints(OPENING, facts, CacheSettings(enabled=facts.breakpoints == 0)).breakpoints == ()
    assert plan_breakpoints((), FACTS, SETTINGS).breakpoints == ()


def test_one_marker_is_left_to_a_caller_who_sets_none() -> None:
    facts = replace(FACTS, drops_thinking=True)
    thought = Message("assistant", (Thinking("hm", "signed"), Text("Yes.")))
    view = (texts(1), thought, texts(1), thought, texts(30))
    state = answered((texts(1),))
    assert len(plan_breakpoints(view, facts, SETTINGS, state).breakpoints) == 3
    assert len(plan_breakpoints(view, facts, CacheSettings(free_markers=0), state).breakpoints) == 3


@given(
    st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=4, unique_by=lambda item: item[0]),
    st.sampled_from([None, "5m", "1h"]),
    st.sampled_from(["5m", "1h"]),
    st.booleans(),
)
def test_what_a_caller_marked_stays_legal(
    marked: list[tuple[int, bool]], automatic: str | None, ttl: str, starts: bool
) -> None:
    spots = [Breakpoint("system", 0), *(Breakpoint("messages", at // 3, at % 3) for at in range(9))]
    caller = sorted(((at, is_long) for at, is_long in marked), key=lambda item: item[0])
    lasting = [HOUR if is_long else MINUTES for _, is_long in caller]
    legal = tuple(
        replace(spots[at], ttl=life)
        for (at, _), life in zip(caller, sorted(lasting, reverse=True), strict=True)
    )
    params = EMPTY_OBJECT
    is_sound = not legal or legal[-1].ttl == HOUR or automatic != "1h"
    if automatic is not None and is_sound and len(legal) < 4 and 8 not in dict(caller):
        params = JsonObject({CACHE_CONTROL: JsonObject({"type": "ephemeral", "ttl": automatic})})
    frame = replace(FRAME, params=params)
    view = (texts(3), texts(3), texts(3))
    model = CATALOG.find(frame.model)
    facts = collect_breakpoint_facts(
        frame, model, choose_capabilities(model, "anthropic"), 2_000, caller=legal
    )
    state = answered(view[:1]) if starts else INITIAL_BREAKPOINT_STATE
    ours = plan_breakpoints(view, facts, CacheSettings(ttl=ttl), state).breakpoints
    body = wire(frame, view, (*legal, *ours))
    assert find_breakpoint_problems(body, replace(DEFAULT_CACHE_CHOICES, full_auto_fails=True)) == ()
    assert find_breakpoint_problems(body) == ()
    assert len(find_breakpoints(body)) <= 4
    assert not set(ours) & set(legal)


def test_markers_on_the_callers_frame_are_counted() -> None:
    mark = JsonObject({"type": "ephemeral", "ttl": "1h"})
    tool = JsonObject({"name": "look", CACHE_CONTROL: mark})
    part = JsonObject({"type": "text", "text": "Be.", CACHE_CONTROL: mark})
    frame = RequestParams(
        model="claude-opus-5",
        max_tokens=1,
        system=(part,),
        tools=(tool,),
        params=JsonObject({CACHE_CONTROL: JsonObject({"type": "ephemeral"})}),
    )
    model = CATALOG.find(frame.model)
    facts = collect_breakpoint_facts(frame, model, choose_capabilities(model, "anthropic"), 2_000)
    assert facts.caller == (Breakpoint("tools", 0, ttl=HOUR), Breakpoint("system", 0, ttl=HOUR))
    assert facts.automatic == MINUTES
    assert plan_breakpoints(OPENING, facts, SETTINGS).breakpoints == ()
