"""Background work spends what it may: caps, pauses and the switch hold for all processes and survive them."""

from __future__ import annotations

import asyncio
import multiprocessing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import Overloaded, PromptTooLong, ReplyBroken, SpendRefused
from sevenfold.core.events import (
    CallCharged,
    CallRefused,
    Emit,
    Event,
    KindPaused,
    SpendStateLost,
    ignore_event,
)
from sevenfold.core.fields import read_fields
from sevenfold.core.messages import Message
from sevenfold.core.requests import Breakpoint, ModelRequest, RequestParams
from sevenfold.core.usage import Iteration, Usage
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session.budget import (
    MAX_HOLD_AGE,
    SPEND_DAY,
    SPEND_HOUR,
    Expense,
    SpendHold,
    SpendRefusal,
    SpendSettings,
    SpendState,
    add_strike,
    drop_expired,
    plan_hold,
    settle_hold,
    write_spend_state,
)
from sevenfold.session.cache.monitor import UsageLedger
from sevenfold.session.governor import GovernedProvider, Governor, SpendStore
from sevenfold.store.files.folder import Folder

MODEL = "claude-opus-5-5"
NOTES = ModelRequest(
    RequestParams(model=MODEL, max_tokens=1_000), (Message("user", "note this"),), purpose="notes"
)
TALK = ModelRequest(RequestParams(model=MODEL, max_tokens=1_000), (Message("user", "hello"),))
NOW = ManualClock().now()
EXPENSES = st.builds(Expense, st.integers(0, 10**12), st.integers(0, 10**12))

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def governor(
    home: Path,
    settings: SpendSettings | None = None,
    *,
    clock: ManualClock | None = None,
    seen: list[Event] | None = None,
) -> Governor:
    emit: Emit = seen.append if seen is not None else ignore_event
    return Governor(
        SpendStore.open(home, emit=emit),
        settings or SpendSettings(),
        session="s1",
        clock=clock or ManualClock(),
        emit=emit,
    )


async def test_a_background_call_is_charged_at_its_price_and_written_down(tmp_path: Path) -> None:
    seen: list[Event] = []
    ruler = governor(tmp_path, seen=seen)
    said = make_response("done", usage=Usage(fresh=1_000, read=9_000, output=500))
    await GovernedProvider(ScriptedProvider([said]), ruler).send(NOTES)
    [charged] = [event for event in seen if isinstance(event, CallCharged)]
    assert (charged.kind, charged.model, charged.tokens, charged.read) == ("notes", MODEL, 10_500, 9_000)
    assert charged.micro_usd is not None
    assert ruler.state().used(NOW, SPEND_HOUR) == Expense(10_500, charged.micro_usd)
    [line] = SpendStore.open(tmp_path).charges(NOW.date(), NOW.date())
    assert (line.kind, line.session, line.tokens, line.micro_usd) == (
        "notes",
        "s1",
        10_500,
        charged.micro_usd,
    )


async def test_the_share_that_was_cached_is_the_one_of_the_sessions_own_bill(tmp_path: Path) -> None:
    # A compaction block is billed beside the totals, which are nearly nothing.
    block = Iteration(fresh=1_000, read=59_000, output=900, kind="compaction")
    usage = Usage(fresh=20, output=5, iterations=(block,))
    bill = UsageLedger()
    bill.add_usage("summary", MODEL, usage, NOW.date())
    asked = replace(NOTES, purpose="summary")
    await GovernedProvider(ScriptedProvider([make_response("done", usage=usage)]), governor(tmp_path)).send(
        asked
    )
    [line] = SpendStore.open(tmp_path).charges(NOW.date(), NOW.date())
    assert line.prompt == bill.total().usage.prompt == 60_020
    assert line.read == bill.total().usage.read == 59_000


async def test_the_conversation_itself_is_never_refused(tmp_path: Path) -> None:
    ruler = governor(tmp_path, SpendSettings(background=False, cents_per_hour=0))
    reply = await GovernedProvider(ScriptedProvider(["hello"]), ruler).send(TALK)
    assert reply.text == "hello"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (SpendSettings(background=False), "spend.background"),
        (SpendSettings(cents_per_hour=0), "spend.cents_per_hour"),
        (SpendSettings(cents_per_day=0), "spend.cents_per_day"),
        (SpendSettings(tokens_per_hour=1), "spend.tokens_per_hour"),
        (SpendSettings(tokens_per_day=1), "spend.tokens_per_day"),
    ],
)
async def test_a_refusal_names_the_setting_is_an_event_and_asks_no_model(
    tmp_path: Path, settings: SpendSettings, named: str
) -> None:
    seen: list[Event] = []
    models = ScriptedProvider([])
    with pytest.raises(SpendRefused, match=named):
        await GovernedProvider(models, governor(tmp_path, settings, seen=seen)).send(NOTES)
    assert models.requests == []
    assert [type(event) for event in seen] == [CallRefused]


async def test_three_failures_in_a_row_stop_a_kind_across_restarts_and_others_go_on(tmp_path: Path) -> None:
    seen: list[Event] = []
    for _ in range(3):
        models = GovernedProvider(ScriptedProvider([Overloaded("busy")]), governor(tmp_path, seen=seen))
        with pytest.raises(Overloaded):
            await models.send(NOTES)
    again = GovernedProvider(ScriptedProvider(["fine"]), governor(tmp_path, seen=seen))
    with pytest.raises(SpendRefused, match="forgive notes"):
        await again.send(NOTES)
    assert [event.strikes for event in seen if isinstance(event, KindPaused)] == [3]
    other = ModelRequest(NOTES.frame, NOTES.messages, purpose="summary")
    assert (await again.send(other)).text == "fine"


async def test_a_pause_ends_doubles_after_another_failure_and_is_forgotten_after_a_success(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    ruler = governor(tmp_path, clock=clock)
    models = GovernedProvider(
        ScriptedProvider([*[Overloaded("busy")] * 4, "fine", Overloaded("busy"), "fine"]), ruler
    )
    for _ in range(3):
        with pytest.raises(Overloaded):
            await models.send(NOTES)
    clock.pass_time(timedelta(minutes=10))
    with pytest.raises(Overloaded):
        await models.send(NOTES)
    clock.pass_time(timedelta(minutes=19))
    with pytest.raises(SpendRefused):
        await models.send(NOTES)
    clock.pass_time(timedelta(minutes=1))
    assert (await models.send(NOTES)).text == "fine"
    assert ruler.state().strikes == {}
    with pytest.raises(Overloaded):
        await models.send(NOTES)
    assert (await models.send(NOTES)).text == "fine"


async def test_a_prompt_that_is_too_long_is_no_strike_since_it_is_cut_and_asked_again(tmp_path: Path) -> None:
    ruler = governor(tmp_path)
    models = GovernedProvider(ScriptedProvider([PromptTooLong("too long")] * 4), ruler)
    for _ in range(4):
        with pytest.raises(PromptTooLong):
            await models.send(NOTES)
    assert ruler.state() == SpendState(slots={slot: Expense() for slot in ruler.state().slots})


async def test_an_answer_that_broke_off_or_was_cancelled_counts_as_expected(tmp_path: Path) -> None:
    ruler = governor(tmp_path)

    async def hang(_request: ModelRequest) -> str:
        await asyncio.Event().wait()
        return ""

    models = GovernedProvider(ScriptedProvider([ReplyBroken("cut off"), hang]), ruler)
    with pytest.raises(ReplyBroken):
        await models.send(NOTES)
    once = ruler.state().used(NOW, SPEND_HOUR)
    assert once.tokens > 1_000
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(models.send(NOTES), 0.2)
    assert ruler.state().used(NOW, SPEND_HOUR) == once + once
    assert ruler.state().held == ()


async def test_calls_at_the_same_time_do_not_use_the_same_rest_twice(tmp_path: Path) -> None:
    arrived = asyncio.Event()

    async def wait(_request: ModelRequest) -> str:
        await arrived.wait()
        return "done"

    # Room for three of them: each is expected to answer with 1,000 tokens and is asked with a few.
    models = GovernedProvider(
        ScriptedProvider([wait] * 3), governor(tmp_path, SpendSettings(tokens_per_hour=3_100))
    )
    calls = [asyncio.create_task(models.send(NOTES)) for _ in range(8)]
    done, _ = await asyncio.wait(calls, timeout=5, return_when=asyncio.FIRST_EXCEPTION)
    while len(done) < 5:
        done = {call for call in calls if call.done()}
        await asyncio.sleep(0)
    arrived.set()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(result, SpendRefused) for result in results) == 5


def _spend(home: Path, calls: int) -> None:
    async def run() -> None:
        clock = ManualClock()
        ruler = governor(home, SpendSettings(tokens_per_hour=20_000), clock=clock)
        steps = [make_response("ok", usage=Usage(fresh=500, output=500))] * calls
        models = GovernedProvider(ScriptedProvider(steps), ruler)
        for _ in range(calls):
            try:
                await models.send(NOTES)
            except SpendRefused:
                return

    asyncio.run(run())


@pytest.mark.story
def test_processes_share_one_cap(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_spend, args=(tmp_path, 20)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    used = governor(tmp_path).state().used(NOW, SPEND_HOUR)
    assert 15_000 <= used.tokens <= 20_000
    lines = list(SpendStore.open(tmp_path).charges(NOW.date(), NOW.date()))
    assert sum(line.tokens for line in lines) == used.tokens


async def test_the_switch_stops_every_process_until_it_is_thrown_back(tmp_path: Path) -> None:
    governor(tmp_path).stop("by a test")
    models = GovernedProvider(ScriptedProvider(["fine"]), governor(tmp_path))
    with pytest.raises(SpendRefused, match="by a test"):
        await models.send(NOTES)
    governor(tmp_path).resume()
    assert (await models.send(NOTES)).text == "fine"


@pytest.mark.parametrize("damage", [b"not json", b'{"slots": {"x": 1}}', b'{"held": 3}', b'{"strikes": []}'])
async def test_a_damaged_state_is_told_and_rebuilt_from_the_ledger(tmp_path: Path, damage: bytes) -> None:
    said = make_response("done", usage=Usage(fresh=1_000, output=500))
    await GovernedProvider(ScriptedProvider([said]), governor(tmp_path)).send(NOTES)
    before = governor(tmp_path).state().used(NOW, SPEND_HOUR)
    with Folder.open(tmp_path / "spend") as folder:
        folder.replace("spend.json", damage)
    seen: list[Event] = []
    assert governor(tmp_path, seen=seen).state().used(NOW, SPEND_HOUR) == before
    assert [type(event) for event in seen] == [SpendStateLost]


async def test_a_marked_prompt_is_expected_to_be_read_and_any_other_paid_in_full(
    tmp_path: Path,
) -> None:
    ruler = governor(tmp_path, SpendSettings(cents_per_hour=20))
    long = (Message("user", "some words " * 60_000),)
    fork = ModelRequest(NOTES.frame, long, (Breakpoint("messages", 0),), "notes")
    models = GovernedProvider(ScriptedProvider(["fine"]), ruler)
    with pytest.raises(SpendRefused):
        await models.send(ModelRequest(NOTES.frame, long, purpose="notes"))
    assert (await models.send(fork)).text == "fine"


def hold(id: str, tokens: int, minutes: int = 30) -> SpendHold:  # noqa: A002 - its own word
    return SpendHold(id, "notes", Expense(tokens), NOW + timedelta(minutes=minutes))


def test_what_a_dead_process_held_counts_as_spent_once_its_time_is_over() -> None:
    held = plan_hold(SpendState(), hold("a", 700), NOW, SpendSettings())
    assert isinstance(held, SpendState)
    later = drop_expired(held, NOW + MAX_HOLD_AGE)
    assert later.held == ()
    assert later.used(NOW + MAX_HOLD_AGE, SPEND_HOUR) == Expense(700)
    assert (
        drop_expired(held, NOW + SPEND_DAY + SPEND_HOUR).used(NOW + SPEND_DAY + SPEND_HOUR, SPEND_DAY)
        == Expense()
    )


def test_a_clock_that_was_far_ahead_blocks_nothing_for_good() -> None:
    ahead = NOW + timedelta(days=400)
    spent = settle_hold(SpendState(), hold("a", 0), Expense(10**9), ahead)
    struck = add_strike(spent, "notes", "busy", ahead, SpendSettings(strikes=1))
    assert isinstance(plan_hold(drop_expired(spent, NOW), hold("b", 1), NOW, SpendSettings()), SpendState)
    refused = plan_hold(drop_expired(struck, NOW), hold("b", 1), NOW, SpendSettings(strikes=1))
    assert isinstance(refused, SpendState)


@given(
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 120), st.booleans()), min_size=1, max_size=40)
)
def test_no_hour_ever_sees_more_than_its_cap(calls: list[tuple[int, int, bool]]) -> None:
    """Whatever is asked for and whenever, the sum over any sliding hour stays within the cap."""
    settings, state, now = SpendSettings(tokens_per_hour=5_000), SpendState(), NOW
    spent: list[tuple[int, int]] = []
    minutes = 0
    for at, (tokens, passed, ends) in enumerate(calls):
        minutes += passed
        now = NOW + timedelta(minutes=minutes)
        state = drop_expired(state, now)
        asked = SpendHold(str(at), "notes", Expense(tokens), now + MAX_HOLD_AGE)
        planned = plan_hold(state, asked, now, settings)
        if isinstance(planned, SpendRefusal):
            assert state.used(now, SPEND_HOUR).tokens + tokens > 5_000
            continue
        state = settle_hold(planned, asked, Expense(tokens), now) if ends else planned
        spent.append((minutes, tokens))
        for begin, _ in spent:
            assert sum(each for when, each in spent if begin <= when < begin + 60) <= 5_000


@given(
    st.dictionaries(
        st.integers(0, 10**7), st.builds(Expense, st.integers(0, 10**12), st.integers(0, 10**12))
    ),
    st.lists(st.integers(0, 10**9)),
    st.text(),
)
def test_a_state_reads_back_as_it_was_written(
    slots: dict[int, Expense], held: list[int], stopped: str
) -> None:
    holds = tuple(hold(str(at), tokens) for at, tokens in enumerate(held))
    struck = add_strike(SpendState(slots, holds, stopped=stopped), "dream", "busy", NOW, SpendSettings())
    assert read_fields(SpendState, write_spend_state(struck)) == struck
