"""What a caller may hand in that is wrong: each has a defined result, which docs/engine.md names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sevenfold.core.errors import InputError, SettingsError, WindowFull
from sevenfold.core.events import BreakerOpened, HistoryRepaired, ResultSpilled, SpillFailed, TranscriptFailed
from sevenfold.core.messages import Message, Text, ToolResult, ToolUseId
from sevenfold.core.requests import RequestParams
from sevenfold.session.blocking import BlockingSession
from sevenfold.store import files
from tests.session.talk import FRAME, Listener, call, reply, result

LARGE = "line\n" * 20_000
HUGE = "x" * (50 * 2**20)

Open = Callable[..., BlockingSession]


class SetClock:
    """A wall clock that somebody sets; what has passed since the start it tells rightly."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 15, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def uptime(self) -> timedelta:
        return timedelta(seconds=1)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def opened(tmp_path: Path, listener: Listener, request: pytest.FixtureRequest) -> Open:
    def open_one(session: str | None = None, **given: Any) -> BlockingSession:
        home = {"HOME": str(tmp_path)}
        found = BlockingSession.open(
            FRAME, project=tmp_path, session=session, environ=home, emit=listener, **given
        )
        request.addfinalizer(found.close)
        return found

    return open_one


def start(session: BlockingSession, *messages: Message) -> None:
    for message in messages:
        session.history.append(message)


def repairs(listener: Listener) -> list[str]:
    return [event.repair for event in listener.events if isinstance(event, HistoryRepaired)]


def roles(messages: Any) -> list[str]:
    return [message.role for message in messages]


def test_a_result_that_answers_no_call_is_sent_as_text_and_told(opened: Open, listener: Listener) -> None:
    session = opened()
    start(session, Message("user", "go"), result(7, "42 degrees"))
    sent = session.prepare().request.messages
    assert not any(isinstance(block, ToolResult) for message in sent for block in message.blocks)
    assert "42 degrees" in str(sent[-1].blocks[0])
    assert repairs(listener) == ["stray result"]


def test_two_assistant_messages_in_a_row_stay_and_a_missing_result_is_named_lost(
    opened: Open, listener: Listener
) -> None:
    session = opened()
    start(session, Message("user", "go"), call(1).message, Message("assistant", (Text("and"),)))
    start(session, Message("user", "well?"))
    sent = session.prepare().request.messages
    assert roles(sent)[:2] == ["user", "assistant"]
    found = [block for message in sent for block in message.blocks if isinstance(block, ToolResult)]
    assert [block.is_error for block in found] == [True]
    assert "lost result" in repairs(listener)


def test_a_result_of_50_mb_goes_to_disk_and_its_preview_is_sent(opened: Open, listener: Listener) -> None:
    session = opened()
    start(session, Message("user", "go"), call(1).message, result(1, HUGE))
    view = session.prepare()
    assert view.tokens < 5_000
    # On a busy machine a search for memories may run out of time, which is an event too.
    assert listener.names().count("ResultSpilled") == 1
    session.close()
    assert opened(session.id).prepare().request.messages == view.request.messages


@pytest.mark.story
def test_without_a_disk_a_result_of_50_mb_is_cut_to_fit_the_window(listener: Listener) -> None:
    with BlockingSession.open(FRAME, project=None, emit=listener) as session:
        start(session, Message("user", "go"), call(1).message, result(1, HUGE))
        view = session.prepare()
        assert view.tokens < 1_000_000
        assert view.level != "blocked"
        assert sum(len(str(message)) for message in view.request.messages) < 4_000_000
    assert "SpillFailed" in listener.names()
    assert "HistoryCompacted" in listener.names()


def test_a_message_too_long_for_any_line_is_left_out_of_the_transcript_and_told(
    opened: Open, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_RECORD_LINE_BYTES", 10_000)
    session = opened()
    start(session, Message("user", "x" * 20_000))
    session.prepare()
    session.record(reply(Message("assistant", "too much"), 1))
    session.close()
    told = [event.reason for event in listener.events if isinstance(event, TranscriptFailed)]
    assert len(told) == 1
    assert "it is left out" in told[0]
    assert Message("assistant", "too much") in list(opened(session.id).history)


@pytest.mark.parametrize("content", ["half \ud83d of it", "\udcff raw byte"])
def test_text_that_is_no_utf_8_is_mended_and_told(opened: Open, listener: Listener, content: str) -> None:
    session = opened()
    start(session, Message("user", content), call(1).message, result(1, content))
    view = session.prepare()
    for message in view.request.messages:
        str(message).encode()
    assert repairs(listener) == ["text", "text"]
    session.close()
    assert opened(session.id).prepare().request.messages == view.request.messages


def test_large_text_that_is_no_utf_8_is_stored_readable(opened: Open, listener: Listener) -> None:
    session = opened()
    start(session, Message("user", "go"), call(1).message, result(1, LARGE + "\udcff"))
    session.prepare()
    (event,) = (event for event in listener.events if isinstance(event, ResultSpilled))
    assert Path(event.path).read_text() == LARGE + "\\udcff"


def test_a_deleted_spill_changes_no_byte_of_what_is_sent(opened: Open, listener: Listener) -> None:
    session = opened()
    start(session, Message("user", "go"), call(1).message, result(1, LARGE))
    before = session.prepare().request
    (event,) = (event for event in listener.events if isinstance(event, ResultSpilled))
    Path(event.path).unlink()
    session.record(call(2))
    start(session, result(2, "ok"))
    assert session.prepare().request.messages[: len(before.messages)] == before.messages
    session.close()
    again = opened(session.id)
    assert again.prepare().request.messages[: len(before.messages)] == before.messages


def test_a_result_that_no_quota_has_room_for_stays_in_the_context_and_is_told(
    opened: Open, listener: Listener
) -> None:
    session = opened(settings={"tool_results": {"session_quota_bytes": 1_000}})
    start(session, Message("user", "go"), call(1).message, result(1, LARGE))
    assert session.prepare().request.messages[-1] == result(1, LARGE)
    assert [type(event) for event in listener.events] == [SpillFailed]


@pytest.mark.parametrize("back", [timedelta(hours=1), timedelta(days=1), timedelta(days=3650)])
def test_a_clock_that_is_set_back_changes_nothing(opened: Open, listener: Listener, back: timedelta) -> None:
    clock = SetClock()
    session = opened(clock=clock)
    start(session, Message("user", "go"))
    for number in range(6):
        session.prepare()
        session.record(call(number, "Look"))
        start(session, result(number, LARGE if number == 1 else "short"))
        clock.time += timedelta(minutes=1) if number != 3 else -back
    sent = session.prepare().request.messages
    assert sent[0] == Message("user", "go")
    assert len(sent) == 13
    assert listener.names() == ["ResultSpilled"], listener.events
    session.close()
    clock.time -= back
    assert opened("latest", clock=clock).prepare().request.messages == sent


CONTRADICTIONS: dict[str, dict[str, dict[str, object]]] = {
    "kept more than fits": {
        "notes": {"keep_tokens": 900_000, "keep_limit_tokens": 5_000_000},
        "compact": {"keep_tokens": 5_000_000},
    },
    "least above most": {"notes": {"keep_tokens": 30_000, "keep_limit_tokens": 1}},
    "nothing kept": {
        "notes": {"keep_tokens": 0, "keep_limit_tokens": 0, "keep_messages": 0},
        "compact": {"keep_tokens": 0},
    },
    "marked by nobody": {"cache": {"enabled": False, "free_markers": 4}},
    "notes off, compaction by notes": {"notes": {"enabled": False, "compaction_enabled": True}},
}


@pytest.mark.parametrize("named", CONTRADICTIONS)
def test_settings_that_contradict_each_other_still_give_views_that_fit(
    opened: Open, listener: Listener, named: str
) -> None:
    settings = {"models": {FRAME.model: {"window_tokens": 60_000}}, **CONTRADICTIONS[named]}
    session = opened(settings=settings)
    start(session, Message("user", "go"))
    for number in range(12):
        view = session.prepare()
        assert view.tokens < 40_000
        session.record(call(number, "Look", tokens=view.tokens))
        start(session, result(number, "word " * 5_000))


def test_a_point_of_compaction_that_nothing_can_reach_is_given_up_and_told(
    opened: Open, listener: Listener
) -> None:
    session = opened(settings={"compact": {"auto_compact_pct": Decimal("0.02")}})
    start(session, Message("user", "go"))
    for number in range(4):
        assert session.prepare().request.messages
        session.record(call(number))
        start(session, result(number, "word " * 500))
    told = [event.breaker for event in listener.events if isinstance(event, BreakerOpened)]
    assert told == ["thrash"]


def test_a_percentage_without_compaction_is_of_no_effect(opened: Open, listener: Listener) -> None:
    session = opened(settings={"compact": {"enabled": False, "auto_compact_pct": 1}})
    start(session, Message("user", "word " * 50_000))
    assert session.prepare().level == "fine"
    assert listener.names() == []


def test_margins_that_leave_nothing_of_the_window_are_refused_at_once(opened: Open) -> None:
    cramped = {"models": {FRAME.model: {"window_tokens": 30_000}}}
    with pytest.raises(SettingsError, match="leave nothing of the 30,000 tokens of claude-opus-5"):
        opened(settings=cramped)
    roomy = {**cramped, "window": {"output_reserve_tokens": 4_000, "auto_compact_margin_tokens": 5_000}}
    session = opened(settings=roomy)
    start(session, Message("user", "go"))
    assert session.prepare().percent_left > 90


def test_a_model_with_too_small_a_window_is_refused_and_the_session_goes_on_with_the_last(
    opened: Open,
) -> None:
    session = opened(settings={"models": {"tiny": {"window_tokens": 8_000}}})
    start(session, Message("user", "go"))
    with pytest.raises(SettingsError, match="tiny"):
        session.prepare(frame=RequestParams(model="tiny", max_tokens=100))
    assert session.prepare(frame=FRAME).request.frame.model == FRAME.model


def test_a_full_window_is_refused_every_time_it_is_asked_for() -> None:
    switched_off = {"compact": {"auto_compact_enabled": False}}
    with BlockingSession.open(FRAME, project=None, settings=switched_off) as session:
        start(session, Message("user", "x " * 2_000_000))
        for _ in range(2):
            with pytest.raises(WindowFull):
                session.prepare()


def test_a_closed_session_says_so(opened: Open) -> None:
    session = opened()
    session.close()
    session.close()
    with pytest.raises(InputError, match="is closed; open it again by its id"):
        session.prepare()
    with pytest.raises(InputError, match="is closed"):
        session.record(call(1))


def test_a_session_taken_up_again_follows_the_callers_own_list_without_saying_it_twice(opened: Open) -> None:
    session = opened()
    listed: list[object] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": LARGE}]},
    ]
    before = session.prepare(listed).request.messages
    session.close()
    again = opened(session.id)
    more = [*listed, {"role": "assistant", "content": "done"}, {"role": "user", "content": "more"}]
    view = again.prepare(more)
    assert view.request.messages[:3] == before
    assert len(view.request.messages) == 5
    assert view.cuts == ()


def test_a_list_that_differs_from_the_session_taken_up_again_wins_and_is_told(
    opened: Open, listener: Listener
) -> None:
    session = opened()
    session.prepare([{"role": "user", "content": "go"}, {"role": "user", "content": "well"}])
    session.close()
    again = opened(session.id)
    other = [{"role": "user", "content": "go"}, {"role": "user", "content": "other"}]
    sent = again.prepare(other).request.messages
    assert [message.content for message in sent] == ["go", "other"]
    assert "HistoryChanged" in listener.names()


BLOCKS: Any = [Text("go")]


@pytest.mark.parametrize(
    "said",
    ["go", {"role": "user", "content": "go"}, None, Message("user", BLOCKS)],
    ids=["text", "dict", "nothing", "a list of blocks"],
)
def test_what_is_no_message_never_gets_into_the_history(opened: Open, said: Any) -> None:
    session = opened()
    with pytest.raises(InputError):
        session.history.append(said)
    start(session, Message("user", "well then"))
    assert [message.content for message in session.prepare().request.messages] == ["well then"]


def test_a_session_whose_end_fails_is_out_of_the_way_all_the_same(opened: Open) -> None:
    session = opened()
    start(session, Message("user", "go"))
    session.prepare()
    broken: Any = (5,)
    start(session, Message("user", broken))
    with pytest.raises(AttributeError):
        session.close()
    assert [message.content for message in opened(session.id).history] == ["go"]


def test_an_empty_history_gives_an_empty_view() -> None:
    with BlockingSession.open(FRAME, project=None) as session:
        assert session.prepare().request.messages == ()
        assert session.prepare([]).request.messages == ()


def test_the_same_tool_id_twice_is_two_calls(opened: Open, listener: Listener) -> None:
    session = opened()
    start(
        session, Message("user", "go"), call(1).message, result(1, "one"), call(1).message, result(1, "two")
    )
    sent = session.prepare().request.messages
    ids = [block.tool_use_id for message in sent for block in message.blocks if isinstance(block, ToolResult)]
    assert ids == [ToolUseId("t1"), ToolUseId("t1_2")]
    assert repairs(listener) == ["same id"]
