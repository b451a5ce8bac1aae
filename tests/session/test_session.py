"""A session: history in, view out, and nothing forgotten between two processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.core.errors import DiskFull, WindowFull, WireError
from sevenfold.core.events import BillLost, HistoryChanged, ResultSpilled, SpillFailed, TranscriptFailed
from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import Message, Text, ToolResult, ToolUseId, write_message
from sevenfold.core.requests import PreparedRequest
from sevenfold.core.usage import NO_USAGE
from sevenfold.session.blocking import BlockingSession
from sevenfold.store.transcript.transcript import Transcript
from tests.session.talk import FRAME, Listener, call, reply, result

LARGE = "line\n" * 20_000

Open = Callable[..., BlockingSession]


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def opened(tmp_path: Path, listener: Listener, request: pytest.FixtureRequest) -> Open:
    """Opens sessions of one project in a home of its own, and closes them."""

    def open_one(session: str | None = None, **settings: dict[str, object]) -> BlockingSession:
        found = BlockingSession.open(
            FRAME,
            project=tmp_path,
            session=session,
            settings=settings,
            environ={"HOME": str(tmp_path)},
            emit=listener,
        )
        request.addfinalizer(found.close)
        return found

    return open_one


def wires(*messages: Message) -> list[dict[str, Any]]:
    return [write_message(message) for message in messages]


def test_a_view_is_the_history_as_long_as_nothing_is_due() -> None:
    with BlockingSession.open(FRAME, project=None) as session:
        session.history.append(Message("user", "hello"))
        view = session.prepare()
        assert view.request.messages == (Message("user", "hello"),)
        assert view.level == "fine"
        session.record(reply(Message("assistant", "hi"), 1))
        session.history.append(Message("user", "more"))
        assert session.prepare().request.messages == tuple(session.history)


def test_asked_twice_a_session_answers_the_same_and_stores_nothing_twice(
    opened: Open, listener: Listener
) -> None:
    session = opened()
    session.history.append(Message("user", "go"))
    session.prepare()
    session.record(call(1))
    session.history.append(result(1, LARGE))
    first, again = session.prepare(), session.prepare()
    assert first == again
    assert listener.names() == ["ResultSpilled"]


def test_a_reply_recorded_twice_counts_once(opened: Open) -> None:
    session = opened()
    session.history.append(Message("user", "go"))
    session.prepare()
    session.record(call(1))
    session.record(call(1))
    assert len(session.history) == 2


def test_a_server_that_gives_every_answer_the_same_id_is_recorded_and_billed_each_time(opened: Open) -> None:
    session = opened()
    session.history.append(Message("user", "go"))
    for number in range(1, 4):
        session.prepare()
        session.record(replace(call(number), id="chatcmpl-0"))
        session.history.append(result(number, "fine"))
    assert [message.role for message in session.history] == ["user", *["assistant", "user"] * 3]
    assert session.prepare().request.messages == tuple(session.history)
    assert sum(spent.calls for spent in session.spent) == 3


def test_a_large_result_is_stored_before_its_preview_is_sent(opened: Open, listener: Listener) -> None:
    session = opened()
    session.history.append(Message("user", "go"))
    session.prepare()
    session.record(call(1))
    session.history.append(result(1, LARGE))
    sent = session.prepare().request.messages[-1].blocks[0]
    assert isinstance(sent, ToolResult)
    (event,) = listener.events
    assert isinstance(event, ResultSpilled)
    assert Path(event.path).read_text() == LARGE
    assert event.path in str(sent.content)
    assert len(str(sent.content)) < 3_000


def test_a_tool_that_opted_out_keeps_its_results_in_the_context(opened: Open, listener: Listener) -> None:
    session = opened()
    session.history.append(Message("user", "go"))
    session.prepare()
    session.record(call(1, "Read", file_path="a.py"))
    session.history.append(result(1, LARGE))
    assert session.prepare().request.messages[-1] == result(1, LARGE)
    assert listener.events == []


def test_without_a_folder_a_large_result_stays_whole_and_an_event_says_so(listener: Listener) -> None:
    with BlockingSession.open(FRAME, project=None, emit=listener) as session:
        session.history.append(Message("user", "go"))
        session.prepare()
        session.record(call(1))
        session.history.append(result(1, LARGE))
        assert session.prepare().request.messages[-1] == result(1, LARGE)
    assert [type(event) for event in listener.events] == [SpillFailed]


def test_a_session_taken_up_again_sends_the_same_bytes(opened: Open) -> None:
    session = opened()
    session.history.append(Message("user", "go"))
    for number in range(4):
        session.prepare()
        session.record(call(number))
        session.history.append(result(number, LARGE if number == 1 else "" if number == 2 else "short"))
    before = session.prepare()
    session.close()
    after = opened(session.id).prepare()
    assert after.request == before.request
    assert after.tokens == before.tokens


def test_an_answer_without_a_bill_is_told_once_and_so_is_one_that_is_read_again(
    opened: Open, listener: Listener
) -> None:
    session = opened()
    session.history.append(Message("user", "go"))
    for number in range(3):
        session.prepare()
        session.record(replace(call(number), usage=NO_USAGE, usage_wire=EMPTY_OBJECT))
        session.history.append(result(number, "short"))
    session.close()
    assert [(spent.calls, spent.cost) for spent in session.spent] == [(3, None)]
    assert [event for event in listener.events if isinstance(event, BillLost)] == [
        BillLost(FRAME.model, "none came")
    ]
    listener.events.clear()
    again = opened(session.id)
    assert "names no count" in next(event.reason for event in listener.events if isinstance(event, BillLost))
    assert len(again.prepare().request.messages) == 7


def test_a_system_message_at_the_end_of_a_request_comes_back_once(opened: Open) -> None:
    session = opened()
    session.history.append(Message("user", "go"))
    session.history.append(Message("system", "Be brief."))
    before = session.prepare().request.messages
    session.record(reply(Message("assistant", "ok"), 1))
    session.close()
    again = opened(session.id)
    again.history.append(Message("user", "more"))
    assert again.prepare().request.messages == (*before, *list(again.history)[2:])


def test_the_latest_session_can_be_taken_up_without_its_name(opened: Open) -> None:
    session = opened()
    session.history.append(Message("user", "go"))
    session.prepare()
    session.close()
    assert opened("latest").id == session.id


def test_a_disk_that_fails_costs_no_round_and_is_caught_up_with(
    opened: Open, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened()
    with monkeypatch.context() as patch:
        patch.setattr(Transcript, "append_all", _full)
        session.history.append(Message("user", "go"))
        assert session.prepare().request.messages == (Message("user", "go"),)
    assert [type(event) for event in listener.events] == [TranscriptFailed]
    session.record(call(1))
    session.close()
    assert len(opened(session.id).history) == 2


def _full(*_: object, **__: object) -> None:
    raise DiskFull("no space left")


def test_a_list_of_the_callers_own_is_followed(opened: Open) -> None:
    session = opened()
    ask = Message("user", "go")
    session.prepare(wires(ask))
    answer = call(1)
    session.record(answer)
    view = session.prepare(wires(ask, answer.message, result(1, "done")))
    assert view.request.messages == (ask, answer.message, result(1, "done"))
    assert view.cuts == ()


def test_an_old_message_changed_in_place_is_followed_and_announced(opened: Open, listener: Listener) -> None:
    session = opened()
    answer = call(1)
    messages = wires(Message("user", "go"), answer.message, result(1, "done"))
    session.prepare(messages)
    messages[0]["content"] = "stop"
    view = session.prepare(messages)
    assert view.request.messages[0] == Message("user", "stop")
    assert view.request.messages[1:] == (answer.message, result(1, "done"))
    assert [(cut.layer, cut.first) for cut in view.cuts] == [(0, 0)]
    assert [event.first for event in listener.events if isinstance(event, HistoryChanged)] == [0]


def test_a_reply_the_caller_wrote_down_otherwise_is_taken_as_written(opened: Open) -> None:
    session = opened()
    ask, short = Message("user", "go"), Message("assistant", (Text("short"),))
    session.prepare(wires(ask))
    session.record(reply(Message("assistant", (Text("long"),)), 1))
    more = Message("user", "more")
    view = session.prepare(wires(ask, short, more))
    assert view.request.messages == (ask, short, more)
    assert view.cuts == ()
    session.close()
    assert tuple(opened(session.id).history) == (ask, short, more)


def test_other_content_under_an_old_id_is_another_result(opened: Open) -> None:
    session = opened()
    messages = wires(Message("user", "go"), call(1).message, result(1, LARGE))
    session.prepare(messages)
    messages[2] = wires(result(1, "x\n" * 60_000))[0]
    sent = session.prepare(messages).request.messages[2].blocks[0]
    assert isinstance(sent, ToolResult)
    assert "120,000 bytes" in str(sent.content)


def test_a_full_window_refuses_new_input_where_nothing_may_compact() -> None:
    switched_off = {"compact": {"auto_compact_enabled": False}}
    with BlockingSession.open(FRAME, project=None, settings=switched_off) as session:
        session.history.append(Message("user", "x " * 2_000_000))
        with pytest.raises(WindowFull, match="compact by hand"):
            session.prepare()


STEPS = st.lists(st.sampled_from(["small", "large", "empty", "speak"]), min_size=2, max_size=6)


@settings(max_examples=10)
@given(steps=STEPS, at=st.integers(1, 5))
def test_taken_up_at_any_point_a_session_goes_on_as_if_never_left(
    steps: list[str], at: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    homes = [tmp_path_factory.mktemp("home") for _ in range(2)]
    whole, parted = (_run(home, steps, leave) for home, leave in zip(homes, (None, at), strict=True))
    assert whole == parted


def _run(home: Path, steps: list[str], leave_at: int | None) -> list[list[str]]:
    sent: list[list[str]] = []
    session = _session(home, None)
    try:
        session.history.append(Message("user", "go"))
        for number, step in enumerate(steps):
            if number == leave_at:
                session.close()
                session = _session(home, session.id)
            view = session.prepare()
            sent.append([_without_home(message, home) for message in view.request.messages])
            session.record(call(number))
            session.history.append(_result(number, step))
    finally:
        session.close()
    return sent


def _session(home: Path, name: str | None) -> BlockingSession:
    return BlockingSession.open(FRAME, project=home, session=name, environ={"HOME": str(home)})


def _result(number: int, step: str) -> Message:
    texts = {"small": "ok", "large": LARGE, "empty": "", "speak": "ok"}
    found = ToolResult(ToolUseId(f"t{number}"), texts[step])
    return Message("user", (found, Text("and more")) if step == "speak" else (found,))


def _without_home(message: Message, home: Path) -> str:
    """Spill paths hold the home's name and the session's."""
    texts = [block.text for block in message.blocks if isinstance(block, Text)]
    results = [str(block.content) for block in message.blocks if isinstance(block, ToolResult)]
    return f"{message.role} {texts} {[text.partition(str(home))[0] for text in results]}"


@pytest.mark.parametrize("form", ["text", "nulls", "thoughtless", "same"])
def test_a_reply_in_the_callers_own_form_joins_the_view_as_it_is_written(opened: Open, form: str) -> None:
    session = opened()
    ask, more = Message("user", "go"), Message("user", "more")
    session.prepare(wires(ask))
    told = Message("assistant", (Text("well"),))
    session.record(reply(told, 1, tokens=5_000))
    written: dict[str, object] = {
        "text": {"role": "assistant", "content": "well"},
        "nulls": {"role": "assistant", "content": [{"type": "text", "text": "well", "citations": None}]},
        "thoughtless": {"role": "assistant", "content": [{"type": "text", "text": "well"}]},
        "same": wires(told)[0],
    }
    view = session.prepare([*wires(ask), written[form], *wires(more)])
    assert len(view.request.messages) == 3
    assert view.cuts == ()
    assert 5_000 < view.tokens < 5_100
    session.close()
    again = opened(session.id)
    assert len(again.history) == 3
    assert again.prepare().request.messages == view.request.messages


def test_a_reply_the_caller_dropped_leaves_the_bill_and_nothing_else(opened: Open) -> None:
    session = opened()
    ask = Message("user", "go")
    before = session.prepare(wires(ask))
    session.record(call(1, tokens=5_000))
    assert session.prepare(wires(ask)) == before
    more = session.prepare(wires(ask, Message("user", "never mind")))
    assert [message.content for message in more.request.messages] == ["go", "never mind"]
    assert 5_000 <= more.tokens < 5_100


def test_an_answer_asked_for_again_after_a_restart_is_as_if_there_was_no_restart(
    opened: Open, listener: Listener
) -> None:
    asked = [Message("user", "go"), call(1).message, result(1, "done")]
    session = opened()
    before = session.prepare(wires(*asked))
    session.record(call(2, tokens=5_000))
    session.close()
    again = opened(session.id)
    assert tuple(again.history) == (*asked, call(2).message)
    # The caller asks again without the answer, which no request has carried.
    view = again.prepare(wires(*asked))
    assert view.request.messages == before.request.messages
    assert (view.cuts, listener.events) == ((), [])
    again.record(call(3, tokens=5_000))
    assert again.prepare(wires(*asked, call(3).message, result(3, "done"))).cuts == ()
    again.close()
    assert tuple(opened(session.id).history) == (*asked, call(3).message, result(3, "done"))


def test_an_answer_before_a_restart_stands_in_what_goes_on(opened: Open) -> None:
    session, go = opened(), Message("user", "go")
    session.history.append(go)
    session.prepare()
    session.record(call(1))
    session.close()
    again = opened(session.id)
    again.history.append(result(1, "done"))
    assert again.prepare().request.messages == (go, call(1).message, result(1, "done"))
    again.record(call(2))
    again.close()
    once_more = opened(session.id)
    # Without a `prepare`: another answer for the same session.
    once_more.record(call(3))
    assert tuple(once_more.history)[-2:] == (call(2).message, call(3).message)


def test_a_breakpoint_of_the_callers_own_is_sent_also_after_a_restart(opened: Open) -> None:
    said = [
        Message("user", LARGE),
        *(m for n in range(3) for m in (call(n).message, result(n, LARGE[:9_000]))),
    ]
    messages = wires(*said)
    messages[2]["content"][0]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}

    def own(view: PreparedRequest) -> list[int]:
        return [at.index for at in view.request.breakpoints if at.ttl == timedelta(hours=1)]

    session = opened()
    assert own(session.prepare(messages)) == [2]
    session.close()
    assert own(opened(session.id).prepare(messages)) == [2]


def test_an_answer_after_a_restart_and_a_list_that_cannot_be_read_is_recorded(opened: Open) -> None:
    session, go = opened(), Message("user", "go")
    session.history.append(go)
    session.prepare()
    session.record(call(1))
    session.close()
    again = opened(session.id)
    with pytest.raises(WireError):
        again.prepare([{"role": 5}])
    again.record(call(2))
    sent = again.prepare(wires(go, call(1).message, result(1, "done"))).request.messages
    assert sent == (go, call(1).message, result(1, "done"))
