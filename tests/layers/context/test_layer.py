"""Context in a session: said first, appended to, said again after a boundary, and never edited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import anthropic
import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import PromptTooLong
from sevenfold.core.events import ContextCut, InstructionSkipped
from sevenfold.core.messages import Message, Text
from sevenfold.core.requests import ModelResponse, RequestParams
from sevenfold.integrations.attached_client import attach
from sevenfold.layers.compaction.job import Part
from sevenfold.layers.context import ContextFile, ContextSource, is_context_message
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session import Session as AsyncSession
from sevenfold.session.blocking import BlockingSession
from sevenfold.testing import Simulator
from tests.session.talk import FRAME, Listener, call, reply, result
from tests.session.working import CATALOGUE, STRICTEST, Moody, Work, brain, frame_of, results

DEAF = RequestParams(model="claude-sonnet-4-5", max_tokens=8_000, system="You are helpful.")
"""A model that takes no system messages."""

Open = Callable[..., BlockingSession]


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The project's instruction file."""
    path = tmp_path / "AGENTS.md"
    path.write_text("Write tests first.")
    return path


@pytest.fixture
def opened(tmp_path: Path, listener: Listener, clock: ManualClock, request: pytest.FixtureRequest) -> Open:
    def open_one(
        session: str | None = None,
        *,
        frame: RequestParams = FRAME,
        provider: ScriptedProvider | None = None,
        wants: bool = True,
        **settings: dict[str, object],
    ) -> BlockingSession:
        found = BlockingSession.open(
            frame,
            project=tmp_path,
            session=session,
            provider=provider,
            settings=settings,
            environ={"HOME": str(tmp_path / "home")},
            emit=listener,
            clock=clock,
        )
        request.addfinalizer(found.close)
        if wants:
            found.add_context()
        return found

    return open_one


def ask(session: BlockingSession, text: str = "go") -> tuple[Message, ...]:
    session.history.append(Message("user", text))
    return tuple(session.prepare().request.messages)


def answer(session: BlockingSession, number: int) -> None:
    session.record(reply(Message("assistant", f"answer {number}"), number))


def text_of(message: Message) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, Text))


def test_the_first_message_is_the_context_and_the_history_does_not_hold_it(opened: Open, rules: Path) -> None:
    session = opened()
    first, second = ask(session)
    assert is_context_message(first)
    assert "Write tests first." in text_of(first)
    assert str(rules) in text_of(first)
    assert second == Message("user", "go")
    assert tuple(session.history) == (second,)


def test_without_asking_for_it_there_is_none(opened: Open, rules: Path) -> None:
    assert rules.exists()
    assert ask(opened(wants=False)) == (Message("user", "go"),)


def test_switched_off_there_is_none_whoever_asks(opened: Open, rules: Path) -> None:
    assert rules.exists()
    session = opened(context={"enabled": False})
    session.add_context(ContextSource("todo", "1. parser"))
    assert ask(session) == (Message("user", "go"),)


def test_asked_for_late_it_is_appended(opened: Open, rules: Path) -> None:
    session = opened(wants=False)
    before = ask(session)
    answer(session, 1)
    session.add_context()
    after = ask(session, "more")
    assert after[: len(before)] == before
    assert rules.read_text() in text_of(after[-1])


def test_where_nobody_wrote_instructions_nothing_is_said(opened: Open) -> None:
    assert ask(opened()) == (Message("user", "go"),)


def test_nothing_is_said_before_the_history_begins(opened: Open, rules: Path) -> None:
    session = opened()
    assert session.prepare().request.messages == ()
    assert is_context_message(ask(session)[0])
    assert rules.exists()


def test_asked_again_the_view_is_the_same(opened: Open, rules: Path) -> None:
    session = opened()
    first = ask(session)
    rules.write_text("changed meanwhile")
    assert tuple(session.prepare().request.messages) == first


def test_two_sessions_of_a_project_start_with_the_same_bytes_on_any_day(
    opened: Open, rules: Path, clock: ManualClock
) -> None:
    first = ask(opened())
    clock.pass_time(timedelta(days=3))
    assert ask(opened()) == first
    assert rules.exists()


def test_an_edited_file_is_appended_when_the_user_next_speaks(opened: Open, rules: Path) -> None:
    session = opened()
    before = ask(session)
    session.record(call(1))
    rules.write_text("Write docs first.")
    session.history.append(result(1, "done"))
    during = tuple(session.prepare().request.messages)
    assert len(during) == len(before) + 2
    session.record(reply(Message("assistant", "ok"), 2))
    after = ask(session, "more")
    assert after[: len(during)] == during
    assert after[-2] == Message("user", "more")
    assert after[-1].role == "user"
    assert "Write docs first." in text_of(after[-1])
    assert not is_context_message(after[-1])
    answer(session, 3)
    assert ask(session, "again")[-1] == Message("user", "again")


def test_a_file_that_goes_away_is_said_to_be_gone_once(opened: Open, rules: Path) -> None:
    session = opened()
    ask(session)
    answer(session, 1)
    rules.unlink()
    assert "No longer there" in text_of(ask(session, "next")[-1])
    answer(session, 2)
    assert ask(session, "again")[-1] == Message("user", "again")


def test_a_new_date_is_a_message_of_the_systems_where_the_model_takes_one(
    opened: Open, rules: Path, clock: ManualClock
) -> None:
    session = opened()
    before = ask(session)
    answer(session, 1)
    clock.pass_time(timedelta(days=1))
    after = ask(session, "morning")
    assert after[: len(before)] == before
    today = clock.now().astimezone().date().isoformat()
    assert after[-1] == Message("system", f"The date is now {today}.")
    answer(session, 2)
    assert ask(session, "more")[-1] == Message("user", "more")
    assert rules.exists()


def test_a_new_date_is_text_of_the_users_side_elsewhere(opened: Open, clock: ManualClock) -> None:
    session = opened(frame=DEAF)
    ask(session)
    answer(session, 1)
    clock.pass_time(timedelta(days=1))
    said = ask(session, "morning")[-1]
    assert said.role == "user"
    assert text_of(said).startswith("<system-reminder>\nThe date is now ")


def test_a_plan_named_by_its_path_is_read_and_what_changes_in_it_is_appended(
    opened: Open, listener: Listener, tmp_path: Path
) -> None:
    plan = tmp_path / "docs/plan.md"
    session = opened()
    session.add_context(ContextFile("plan", "docs/plan.md"))
    before = ask(session)
    assert [event.path for event in listener.events if isinstance(event, InstructionSkipped)] == [str(plan)]
    plan.parent.mkdir()
    plan.write_text("1. mend the parser\n")
    answer(session, 1)
    after = ask(session, "go on")
    assert after[: len(before)] == before
    assert "1. mend the parser" in text_of(after[-1])
    assert str(plan) in text_of(after[-1])
    for number in range(2, 9):
        session.record(call(number, "Read", 2_000, file_path=str(plan)))
        session.history.append(result(number, "1. mend the parser\n" * 200))
        session.prepare()
    session.compact()
    text = "\n".join(text_of(message) for message in session.prepare().request.messages)
    assert "# The plan" in text
    assert f'<restored-file name="{plan}"' not in text
    plan.unlink()
    answer(session, 9)
    assert "No longer there" in text_of(ask(session, "and now?")[-1])
    assert len([event for event in listener.events if isinstance(event, InstructionSkipped)]) == 2


def test_what_the_caller_hands_in_is_in_the_context_or_appended_to_it(opened: Open, rules: Path) -> None:
    session = opened()
    session.add_context(ContextSource("todo", "1. parser"), ContextSource("selection", "x = 1", "a.py"))
    first = ask(session)
    assert "1. parser" in text_of(first[0])
    assert text_of(first[0]).index("Write tests first.") < text_of(first[0]).index("1. parser")
    session.add_context(ContextSource("todo", "2. tests"))
    again = tuple(session.prepare().request.messages)
    assert again[:-1] == first
    assert "2. tests" in text_of(again[-1])
    assert "1. parser" not in text_of(again[-1])
    assert tuple(session.prepare().request.messages) == again
    assert rules.exists()


@pytest.mark.parametrize("days", [0, 1])
def test_a_session_taken_up_again_sends_the_same_bytes_and_reads_nothing(
    opened: Open, rules: Path, clock: ManualClock, days: int
) -> None:
    session = opened()
    ask(session)
    answer(session, 1)
    rules.write_text("Second version.")
    clock.pass_time(timedelta(days=days))
    before = ask(session, "more")
    session.close()
    rules.write_text("Third version.")
    again = opened(session.id)
    assert tuple(again.prepare().request.messages) == before
    answer(again, 2)
    after = ask(again, "and more")
    assert after == (*before, Message("assistant", "answer 2"), Message("user", "and more"))


def test_a_date_that_was_sent_stays_where_it_was_though_no_answer_came(
    opened: Open, rules: Path, clock: ManualClock
) -> None:
    session = opened()
    ask(session)
    answer(session, 1)
    clock.pass_time(timedelta(days=1))
    ask(session, "morning")
    before = ask(session, "are you there?")
    session.close()
    assert tuple(opened(session.id).prepare().request.messages) == before
    assert rules.exists()


def fill(session: BlockingSession, start: int = 1, rounds: int = 4) -> None:
    for number in range(start, start + rounds):
        session.prepare()
        session.record(call(number, tokens=4_000 * (number + 1)))
        session.history.append(result(number, f"result {number}\n" * 800))


QUIET: dict[str, dict[str, object]] = {
    "microcompact": {"enabled": False},
    "notes": {"keep_tokens": 500, "keep_messages": 1},
}

UNNOTED: dict[str, dict[str, object]] = {**QUIET, "notes": {"compaction_enabled": False}}


def test_after_a_boundary_the_same_context_is_the_same_bytes(opened: Open, rules: Path) -> None:
    session = opened(**QUIET)
    first = ask(session)[0]
    fill(session)
    session.compact()
    after = tuple(session.prepare().request.messages)
    assert [message for message in after if is_context_message(message)] == [first]
    assert "Context" not in text_of(after[-1])
    session.close()
    again = opened(session.id, **QUIET)
    assert tuple(again.prepare().request.messages) == after
    assert rules.exists()


def test_after_a_boundary_files_are_read_again(opened: Open, rules: Path, clock: ManualClock) -> None:
    session = opened(**QUIET)
    ask(session)
    fill(session)
    session.close()
    rules.write_text("Second version.")
    again = opened(session.id, **QUIET)
    clock.pass_time(timedelta(days=1))
    again.prepare()
    again.compact()
    after = tuple(again.prepare().request.messages)
    (said,) = [message for message in after if is_context_message(message)]
    assert "Second version." in text_of(said)
    assert "Write tests first." not in "".join(map(text_of, after))
    assert after[-1].role == "system"
    again.record(reply(Message("assistant", "ok"), 90))
    rules.write_text("Third version.")
    assert any("Third version." in text_of(message) for message in ask(again, "more")[-2:])


def test_a_view_that_was_refused_is_made_again_with_the_files_as_they_are(opened: Open, rules: Path) -> None:
    session = opened(**QUIET)
    ask(session)
    fill(session)
    session.prepare()
    rules.write_text("Second version.")
    shorter = session.recover(PromptTooLong(tokens=12_000, limit=10_000))
    assert shorter is not None
    (said,) = [message for message in shorter.request.messages if is_context_message(message)]
    assert "Second version." in text_of(said)


@pytest.mark.moves_prefix(reason="a summary is asked for by hand, from a view that was never sent")
def test_a_part_that_keeps_the_beginning_keeps_the_context(opened: Open, rules: Path) -> None:
    summary = "<summary>" + "What was done in the later part, at some length. " * 6 + "</summary>"
    session = opened(provider=ScriptedProvider(by_purpose={"summary": [make_response(summary)]}), **UNNOTED)
    first = ask(session)[0]
    fill(session, rounds=6)
    session.compact(part=Part("from", 4))
    after = tuple(session.prepare().request.messages)
    assert after[0] is first
    assert sum(map(is_context_message, after)) == 1
    assert rules.exists()


def test_too_much_context_is_cut_and_told(opened: Open, rules: Path, listener: Listener) -> None:
    rules.write_text("rule after rule\n" * 5_000)
    first = ask(opened(context={"limit_tokens": 1_000}))[0]
    assert len(text_of(first)) < 6_000
    (event,) = listener.events
    assert event == ContextCut(str(rules), 1_000)


def test_a_small_window_is_not_filled_with_context(opened: Open, rules: Path, listener: Listener) -> None:
    rules.write_text("rule after rule\n" * 5_000)
    session = opened(models={FRAME.model: {"window_tokens": 60_000}})
    assert len(text_of(ask(session)[0])) < 40_000
    assert [type(event) for event in listener.events] == [ContextCut]


def test_a_hostile_file_costs_an_event_and_not_the_session(
    opened: Open, rules: Path, listener: Listener
) -> None:
    rules.unlink()
    rules.symlink_to("/etc/passwd")
    assert ask(opened()) == (Message("user", "go"),)
    (event,) = listener.events
    assert isinstance(event, InstructionSkipped)
    assert event.path == str(rules)


def test_a_caller_who_changes_the_past_keeps_the_context_in_front(opened: Open, rules: Path) -> None:
    session = opened()
    told = [{"role": "user", "content": "one"}]
    first = session.prepare(told).request.messages[0]
    session.record(reply(Message("assistant", "two"), 1))
    rules.write_text("Second version.")
    told += [{"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}]
    session.prepare(told)
    session.record(reply(Message("assistant", "four"), 2))
    told[1:] = [{"role": "assistant", "content": "2"}, {"role": "user", "content": "3"}]
    view = session.prepare(told)
    assert view.request.messages[0] is first
    assert [cut.first for cut in view.cuts] == [2]


def test_the_simulator_takes_it_and_reads_it_from_its_cache(tmp_path: Path) -> None:
    read = asyncio.run(talk_for_days(tmp_path))
    assert read[0] == 0
    assert all(later > sooner for sooner, later in pairwise(read))


async def talk_for_days(tmp_path: Path) -> list[int]:
    """A turn a day, each with other instructions; what was read of the cache."""
    (tmp_path / "AGENTS.md").write_text("Be exact. " * 400)
    clock = ManualClock()
    async with Simulator() as simulator, simulator.async_client() as client:
        provider = AnthropicProvider(client)
        opening = AsyncSession.open(
            RequestParams(model="claude-opus-5-5", max_tokens=2_000, system="You are helpful."),
            project=tmp_path,
            provider=provider,
            environ={"HOME": str(tmp_path / "home")},
            clock=clock,
        )
        read: list[int] = []
        async with await opening as session:
            await session.add_context()
            for turn in range(4):
                session.history.append(Message("user", f"turn {turn}"))
                view = await session.prepare()
                answered = await provider.send(view.request)
                read.append(answered.usage.read)
                await session.record(answered)
                (tmp_path / "AGENTS.md").write_text(f"Be exact, version {turn}. " * 400)
                clock.pass_time(timedelta(days=1))
    return read


@dataclass(slots=True, kw_only=True)
class Told(Work):
    """A session with context, at work."""

    async def _open(self, name: str | None) -> AsyncSession:
        session = await Work._open(self, name)
        await session.add_context(ContextSource("todo", "1. the parser"))
        return session


def edit_rules(number: int, work: Work) -> None:
    (work.home / "AGENTS.md").write_text(f"Be exact, version {number // 4}. " * 20)


def speak_at_times(number: int, reply: ModelResponse) -> tuple[Message, ...]:
    said = (Message("user", f"and then, {number}"),) if number % 3 == 0 else ()
    return (results(number, reply), *said)


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-opus-5", "claude-sonnet-5"])
def test_sessions_with_context_pass_the_strictest_api_over_boundaries_and_restarts(
    tmp_path: Path, model: str
) -> None:
    with Simulator(brain, choices=STRICTEST, catalog=CATALOGUE) as simulator, simulator.client() as client:
        provider = Moody(AnthropicProvider(client))
        work = Told(
            home=tmp_path,
            simulator=simulator,
            provider=provider,
            frame=frame_of(CATALOGUE.find(model)),
            respond=speak_at_times,
            before_round=edit_rules,
            leave_after=frozenset({4, 9, 14}),
        ).run(20)
    assert work.refusals == []
    assert len(work.rungs) >= 2
    assert "PrefixBroken" not in work.listener.names()


def test_an_attached_client_has_context_only_when_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be exact. " * 1_000)
    told: list[anthropic.types.MessageParam] = [{"role": "user", "content": "hi"}]
    with Simulator() as simulator:
        tokens: list[int] = []
        for context in (False, True):
            attached = attach(
                simulator.client(), project=tmp_path, environ={"HOME": str(tmp_path)}, context=context
            )
            with attached as client:
                client.messages.create(model="claude-opus-5-5", max_tokens=100, messages=told)
            tokens.append(simulator.last.usage.prompt)
    assert tokens[1] > tokens[0] + 1_000
