"""Recall in a session: appended once behind the prompt, in time or later, known again after a resume."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from threading import Event as Gate

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import DiskFull
from sevenfold.core.events import ClaimsBroken, MemoryRecalled, RecallSkipped, ResultsCleared
from sevenfold.core.memories import Origin, write_memory
from sevenfold.core.messages import Message, Text
from sevenfold.core.prices import CATALOG, find_cheapest_model
from sevenfold.layers.context import is_context_message
from sevenfold.layers.memory.recall.finder import MemoryFinder
from sevenfold.layers.memory.recall.layer import RecallLayer
from sevenfold.layers.memory.recall.policy import RecallCandidate, find_surfaced
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session.blocking import BlockingSession
from sevenfold.store.memory.changes import ANYTHING, Remove, Write
from sevenfold.store.memory.directory import MemoryDir
from tests.session.talk import FRAME, Listener, call, reply, result

ASKED = "How many attempts does the retrier make?"
SAID = Origin(who="agent", why="the user asked for it", said_by="user")
PATIENT = {"budget_ms": 60_000, "vectors": False}
Open = Callable[..., BlockingSession]


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(tmp_path: Path, clock: ManualClock) -> Generator[MemoryDir]:
    environ = {"HOME": str(tmp_path / "home")}
    with MemoryDir.for_project(tmp_path, environ=environ, clock=clock) as memory:
        yield memory


def write(memory: MemoryDir, **bodies: str) -> None:
    changes = [
        Write(f"{name}.md", write_memory(name, body.partition(".")[0], "project", body), ANYTHING)
        for name, body in bodies.items()
    ]
    memory.commit(changes, SAID)


@pytest.fixture
def filled(memory: MemoryDir) -> MemoryDir:
    write(
        memory,
        retries="The retrier makes seven attempts, and the upstream counts them.",
        colours="Charts use the palette of the brand.",
    )
    return memory


@pytest.fixture
def opened(tmp_path: Path, listener: Listener, clock: ManualClock, request: pytest.FixtureRequest) -> Open:
    def open_one(
        session: str | None = None,
        *,
        provider: ScriptedProvider | None = None,
        is_agent: bool = False,
        model: str = FRAME.model,
        **recall: object,
    ) -> BlockingSession:
        found = BlockingSession.open(
            replace(FRAME, model=model),
            project=tmp_path,
            session=session,
            provider=provider,
            is_agent=is_agent,
            settings={"recall": PATIENT | recall},
            environ={"HOME": str(tmp_path / "home")},
            emit=listener,
            clock=clock,
        )
        request.addfinalizer(found.close)
        return found

    return open_one


def ask(session: BlockingSession, text: str = ASKED) -> tuple[Message, ...]:
    session.history.append(Message("user", text))
    return tuple(session.prepare().request.messages)


def answer(session: BlockingSession, number: int) -> None:
    session.record(reply(Message("assistant", f"answer {number}"), number))


def keys(messages: tuple[Message, ...]) -> list[str]:
    return [one.key for one in find_surfaced(messages)]


def text_of(message: Message) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, Text))


@pytest.mark.usefixtures("filled")
def test_what_the_prompt_is_about_is_appended_behind_it(opened: Open, listener: Listener) -> None:
    session = opened()
    prompt, recalled = ask(session)
    assert prompt == Message("user", ASKED)
    assert keys((recalled,)) == ["retries.md"]
    assert "seven attempts" in text_of(recalled)
    assert recalled.role == "user"
    assert tuple(session.history) == (prompt,)
    told = [event for event in listener.events if isinstance(event, MemoryRecalled)]
    assert [(one.key, one.ranked_by, one.is_late) for one in told] == [("retries.md", "words", False)]


@pytest.mark.usefixtures("filled")
def test_a_prompt_about_nothing_known_brings_nothing(opened: Open, listener: Listener) -> None:
    assert ask(opened(), "Please rename the module of the parser") == (
        Message("user", "Please rename the module of the parser"),
    )
    assert not [event for event in listener.events if isinstance(event, (MemoryRecalled, RecallSkipped))]


def test_a_project_without_memories_is_left_alone(opened: Open, tmp_path: Path) -> None:
    assert ask(opened()) == (Message("user", ASKED),)
    assert not list((tmp_path / "home").rglob("recall"))


@pytest.mark.usefixtures("filled")
def test_switched_off_nothing_is_recalled(opened: Open) -> None:
    assert ask(opened(enabled=False)) == (Message("user", ASKED),)


@pytest.mark.usefixtures("filled")
def test_a_view_that_is_full_of_memories_takes_no_more_and_that_is_told(
    opened: Open, listener: Listener, memory: MemoryDir
) -> None:
    write(memory, retries="The retrier makes seven attempts. " * 10)
    assert ask(opened(session_bytes=200)) == (Message("user", ASKED),)
    told = [event for event in listener.events if isinstance(event, RecallSkipped)]
    assert "recall.session_bytes" in told[0].reason


@pytest.mark.usefixtures("filled")
def test_asked_again_the_same_view_is_handed_out(opened: Open) -> None:
    session = opened()
    first = ask(session)
    assert tuple(session.prepare().request.messages) == first


@pytest.mark.usefixtures("filled")
def test_a_memory_is_recalled_once_and_everything_stays_where_it_was(opened: Open) -> None:
    session = opened()
    views: list[tuple[Message, ...]] = []
    for number in range(3):
        views.append(ask(session))
        answer(session, number)
    assert keys(views[-1]) == ["retries.md"]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(views))


def test_results_of_tools_are_no_prompt(opened: Open, memory: MemoryDir) -> None:
    session = opened()
    ask(session, "go on")
    session.record(call(1))
    write(memory, retries="The retrier makes seven attempts.")
    session.history.append(result(1, ASKED))
    assert keys(tuple(session.prepare().request.messages)) == []


def test_a_memory_that_was_written_meanwhile_is_found_and_one_that_is_gone_is_not(
    opened: Open, filled: MemoryDir
) -> None:
    session = opened()
    ask(session, "hello")
    answer(session, 1)
    write(filled, deploys="Deploys to staging go through the blue pipeline.")
    filled.commit([Remove("retries.md", ANYTHING)], SAID)
    assert keys(ask(session, f"{ASKED} And how do deploys reach staging, by which pipeline?")) == [
        "deploys.md"
    ]


@pytest.mark.usefixtures("filled")
def test_a_session_that_is_taken_up_again_knows_what_it_recalled(opened: Open) -> None:
    session = opened()
    first = ask(session)
    answer(session, 1)
    session.close()
    again = ask(opened(session.id))
    assert again[: len(first)] == first
    assert keys(again) == ["retries.md"]


@pytest.mark.usefixtures("filled")
def test_after_a_boundary_a_memory_that_is_no_longer_in_view_may_come_again(opened: Open) -> None:
    session = opened()
    ask(session)
    session.record(reply(Message("assistant", "It makes seven. " * 2_000), 1))
    session.compact()
    assert keys(ask(session)) == ["retries.md"]


@pytest.mark.usefixtures("filled")
def test_what_is_found_too_late_comes_with_the_next_request(
    opened: Open, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, find = Gate(), MemoryFinder.find

    def slowly(self: MemoryFinder, prompt: str, limit: int) -> tuple[RecallCandidate, ...]:
        gate.wait(60)
        return find(self, prompt, limit)

    monkeypatch.setattr(MemoryFinder, "find", slowly)
    session = opened(budget_ms=1)
    first = ask(session)
    assert first == (Message("user", ASKED),)
    assert any(isinstance(event, RecallSkipped) for event in listener.events)
    session.record(call(1))
    gate.set()
    view = first
    for number in range(1, 100):
        # A request waits a millisecond, so it takes some until the search has had its turn.
        session.history.append(result(number, "done"))
        view = tuple(session.prepare().request.messages)
        session.record(call(number + 1))
        if keys(view):
            break
    assert view[0] == Message("user", ASKED)
    assert keys(view) == ["retries.md"]
    assert [event.is_late for event in listener.events if isinstance(event, MemoryRecalled)] == [True]


@pytest.mark.usefixtures("filled")
def test_recall_may_be_closed_before_what_it_does_beside_has_begun(
    opened: Open, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    append = RecallLayer.append

    async def append_and_close(self: RecallLayer) -> None:
        await append(self)
        # No other task has run since the memory was appended, so counting its use has not begun.
        await self.close()

    monkeypatch.setattr(RecallLayer, "append", append_and_close)
    assert keys(ask(opened())) == ["retries.md"]
    gc.collect()
    assert [str(one.message) for one in recwarn if "never awaited" in str(one.message)] == []


@pytest.mark.usefixtures("filled")
def test_a_disk_that_fails_costs_the_memory_and_not_the_request(
    opened: Open, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DiskFull("no space left")

    monkeypatch.setattr(MemoryFinder, "find", fail)
    assert ask(opened()) == (Message("user", ASKED),)
    told = [event for event in listener.events if isinstance(event, RecallSkipped)]
    assert "no space left" in told[0].reason


@pytest.mark.usefixtures("filled")
def test_an_old_memory_says_how_old_it_is(opened: Open, clock: ManualClock) -> None:
    clock.pass_time(timedelta(days=40))
    recalled = ask(opened())[-1]
    assert "the user's words, written 40 days ago" in text_of(recalled)
    assert "verify" in text_of(recalled)


def test_a_memory_that_names_a_file_which_is_gone_says_so(
    opened: Open, memory: MemoryDir, listener: Listener
) -> None:
    write(memory, retries="The retrier makes seven attempts, see `src/net/retrier.py`.")
    assert "could not be confirmed: src/net/retrier.py" in text_of(ask(opened())[-1])
    told = [event for event in listener.events if isinstance(event, ClaimsBroken)]
    assert told == [ClaimsBroken("retries.md", "src/net/retrier.py")]


def test_the_side_query_chooses_among_what_was_found(opened: Open, filled: MemoryDir) -> None:
    write(filled, budget="The upstream bans whoever asks an eighth time.")
    asked = "Wer sperrt uns aus, und warum?"
    provider = ScriptedProvider([make_response('{"files": ["budget.md", "nowhere.md"]}')])
    session = opened(provider=provider, side_query="on")
    view = ask(session, asked)
    assert keys(view) == ["budget.md"]
    request = provider.requests[0]
    assert request.purpose == "recall"
    assert request.frame.max_tokens == 256
    assert request.frame.model != FRAME.model
    assert "output_config" in request.frame.params
    assert [spent.who for spent in session.spent] == ["recall"]


@pytest.mark.usefixtures("filled")
def test_with_room_for_one_memory_the_one_that_words_found_is_shown(opened: Open, listener: Listener) -> None:
    with ScriptedProvider([]) as provider:
        assert keys(ask(opened(provider=provider, side_query="on", max_files=1))) == ["retries.md"]
    assert not [event for event in listener.events if isinstance(event, RecallSkipped)]


@pytest.mark.usefixtures("filled")
def test_nobody_is_asked_about_small_talk(opened: Open) -> None:
    provider = ScriptedProvider([])
    assert keys(ask(opened(provider=provider, side_query="on"), "go on, please")) == []
    assert provider.requests == []


@pytest.mark.usefixtures("filled")
def test_an_answer_aside_that_names_no_files_is_told_and_what_words_found_stays(
    opened: Open, listener: Listener
) -> None:
    provider = ScriptedProvider([make_response("I could not find any.")])
    assert keys(ask(opened(provider=provider, side_query="on"))) == ["retries.md"]
    (told,) = (event for event in listener.events if isinstance(event, RecallSkipped))
    assert "answered with 21 characters that are no list of names" in told.reason
    assert "find any" not in str(told)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("is_agent", "asked_for", "calls"),
    [(True, "auto", 1), (False, "auto", 0), (False, "on", 1), (True, "off", 0)],
)
def test_an_agent_asks_aside_by_itself_and_a_loop_of_somebody_elses_when_told_to(
    opened: Open, is_agent: bool, asked_for: str, calls: int
) -> None:
    provider = ScriptedProvider([make_response('{"files": ["retries.md"]}')])
    ask(opened(provider=provider, is_agent=is_agent, side_query=asked_for), "Wann ist Betriebsruhe?")
    assert len(provider.requests) == calls


@pytest.mark.usefixtures("filled")
def test_a_model_that_is_the_cheapest_itself_is_not_asked_twice(opened: Open, clock: ManualClock) -> None:
    provider = ScriptedProvider()
    cheap = find_cheapest_model(CATALOG.find(FRAME.model), CATALOG, clock.now().date())
    assert cheap is not None
    session = opened(provider=provider, is_agent=True, model=cheap.name)
    ask(session, "Wann ist Betriebsruhe?")
    assert provider.requests == []


def test_the_side_query_is_asked_about_the_newest_too_where_no_word_is_shared(
    opened: Open, filled: MemoryDir
) -> None:
    write(filled, holidays="Nobody deploys between Christmas and New Year.")
    provider = ScriptedProvider([make_response('{"files": ["holidays.md"]}')])
    view = ask(opened(provider=provider, side_query="on"), "Wann ist Betriebsruhe?")
    assert keys(view) == ["holidays.md"]


def test_what_words_and_a_model_find_for_one_prompt_is_five_memories_together(
    opened: Open, memory: MemoryDir
) -> None:
    sure = [f"sure{number}" for number in range(6)]
    others = [f"other{number}" for number in range(9)]
    write(memory, **{name: f"The retrier makes seven attempts, says {name}." for name in sure})
    write(memory, **{name: f"Charts use the palette of {name}." for name in others})
    provider = ScriptedProvider([make_response(json.dumps({"files": [f"{name}.md" for name in others]}))])
    view = ask(opened(provider=provider, side_query="on"), "retrier attempts")
    assert keys(view) == [*(f"{name}.md" for name in sure[:4]), "other0.md"]
    offered = text_of(provider.requests[0].messages[0])
    assert [name for name in sure if f"{name}.md" in offered] == sure[4:]


def test_the_index_is_context_and_only_its_new_lines_are_appended(opened: Open, filled: MemoryDir) -> None:
    session = opened(enabled=False)
    session.add_context()
    first = ask(session, "hello")
    assert is_context_message(first[0])
    assert "(retries.md)" in text_of(first[0])
    answer(session, 1)
    write(filled, deploys="Deploys go through the blue pipeline.")
    second = ask(session, "more")
    assert second[: len(first)] == first
    assert "(deploys.md)" in text_of(second[-1])
    assert "(retries.md)" not in text_of(second[-1])


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("policy", ["fixed", "balanced"])
def test_near_the_end_of_the_window_old_memories_go_and_can_be_recalled_again(
    tmp_path: Path, listener: Listener, clock: ManualClock, policy: str
) -> None:
    settings = {
        "models": {FRAME.model: {"window_tokens": 120_000}},
        "microcompact": {"policy": policy, "rounds_ahead_5m": 1},
        "recall": PATIENT,
        "compact": {"auto_compact_enabled": False},
    }

    def open_one(name: str | None = None) -> BlockingSession:
        environ = {"HOME": str(tmp_path / "home")}
        return BlockingSession.open(
            FRAME,
            project=tmp_path,
            session=name,
            settings=settings,
            environ=environ,
            emit=listener,
            clock=clock,
        )

    with open_one() as session:
        assert keys(ask(session)) == ["retries.md"]
        number = 0
        while "ResultsCleared" not in listener.names():
            number += 1
            session.record(call(number, "Read", tokens=number * 9_000, file_path=f"/src/{number}.py"))
            session.history.append(result(number, "word " * 9_000))
            session.prepare()
        sent = tuple(session.prepare().request.messages)
        assert keys(sent) == []
        assert "Memories recalled here were cleared: retries.md." in text_of(sent[1])
        name = session.id
    (cleared,) = (event for event in listener.events if isinstance(event, ResultsCleared))
    assert (cleared.by, cleared.memories) == ("pressure", 1)
    with open_one(name) as again:
        assert tuple(again.prepare().request.messages) == sent
        again.record(reply(Message("assistant", "on"), 99))
        assert keys(ask(again)) == ["retries.md"]


@pytest.mark.usefixtures("filled")
@pytest.mark.moves_prefix(reason="the caller goes back")
def test_a_prompt_after_going_back_is_searched_for(opened: Open) -> None:
    session = opened()
    ask(session, "Hello.")
    for number in range(2):
        answer(session, number)
        ask(session, "Go on.")
    session.rewind(1, "the user went back")
    session.history.append(Message("assistant", "answer"))
    assert keys(ask(session)[-1:]) == ["retries.md"]


@pytest.mark.moves_prefix(reason="the caller goes back")
def test_after_going_back_earlier_prompts_are_not_searched_for_again(opened: Open, memory: MemoryDir) -> None:
    write(memory, other="Nothing to do with it.")
    session = opened()
    ask(session)
    write(memory, retries="The retrier makes seven attempts, and the upstream counts them.")
    answer(session, 0)
    ask(session, "Go on.")
    session.rewind(1, "the user went back")
    session.history.append(Message("assistant", "answer"))
    assert keys(ask(session, "Hello.")[-1:]) == []
