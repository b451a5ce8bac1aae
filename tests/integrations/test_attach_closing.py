"""Opening and closing an attached client: in a block, by hand, from threads, as the interpreter ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anthropic
import pytest

from sevenfold.core.errors import ClientClosed, DiskFault, InputError
from sevenfold.core.events import ReplyUnrecorded
from sevenfold.integrations import conversations
from sevenfold.integrations.attached_client import attach
from sevenfold.session import Session
from sevenfold.session.pipeline import SessionResources
from sevenfold.testing import Simulator
from tests.integrations.test_attach import MODEL, ask, create, go_on


@pytest.fixture
def sim() -> Generator[Simulator]:
    with Simulator() as running:
        yield running


def loop_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "sevenfold"}


def test_without_a_block_it_opens_with_its_first_use_and_closes_by_hand(
    sim: Simulator, tmp_path: Path
) -> None:
    before = loop_threads()
    client = attach(sim.client(), project=tmp_path, environ={"HOME": str(tmp_path)})
    assert not hasattr(client, "__fspath__")
    assert loop_threads() == before
    first = client.messages.create(model=MODEL, max_tokens=50, messages=ask())
    messages = ask()
    go_on(messages, first)
    assert client.with_options(max_retries=0).messages.create(model=MODEL, max_tokens=50, messages=messages)
    (session,) = client.sessions
    assert session.followed == 3
    assert loop_threads() != before
    client.close()
    client.close()
    assert loop_threads() == before
    with pytest.raises(InputError, match=r"is closed; attach the client again, or call open\(\)"):
        _ = client.messages
    again = client.open()
    assert type(again) is anthropic.Anthropic
    assert again.messages.create(model=MODEL, max_tokens=50, messages=ask()).role == "assistant"
    client.close()
    with pytest.raises(InputError, match="is closed"):
        create(again, ask())
    with pytest.raises(AttributeError, match="message"):
        _ = attach(sim.client(), project=None).message


def test_without_a_block_an_async_client_is_closed_by_awaiting(sim: Simulator) -> None:
    async def talk() -> None:
        async with sim.async_client() as own:
            client = attach(own, project=None)
            answer = await client.messages.create(model=MODEL, max_tokens=50, messages=ask())
            assert answer.role == "assistant"
            assert len(client.sessions) == 1
            await client.close()
            await client.close()
            with pytest.raises(InputError, match="is closed"):
                _ = client.messages

    asyncio.run(talk())


def test_what_is_no_client_of_the_sdk_is_named() -> None:
    wrongs: list[Any] = [object(), "https://example.invalid"]
    for wrong in wrongs:
        with pytest.raises(InputError, match=r"takes an anthropic\.Anthropic or .* not a (object|str)"):
            attach(wrong, project=None)


SCRIPT = """
import anthropic
from sevenfold import attach

def ask(client):
    said = [{{"role": "user", "content": "hi"}}]
    client.messages.create(model="claude-opus-5", max_tokens=50, messages=said)

client = anthropic.Anthropic(base_url={url!r}, api_key="k")
with attach(client, project={closed!r}) as opened:
    ask(opened)
ask(left_open := attach(client, project={left_open!r}))
"""


@pytest.mark.story
def test_a_script_ends_without_a_word(sim: Simulator, tmp_path: Path) -> None:
    """Closed or not, what was said is on the disk, and no thread is still busy when the interpreter ends."""
    closed, left_open = (str(tmp_path / name) for name in ("closed", "left_open"))
    script = SCRIPT.format(url=sim.url, closed=closed, left_open=left_open)
    environ = {**os.environ, "HOME": str(tmp_path)}
    Path(closed).mkdir()
    Path(left_open).mkdir()
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-c", script], capture_output=True, env=environ, check=False, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "Traceback" not in ran.stderr
    assert "destroyed" not in ran.stderr
    assert ["hi" in file.read_text() for file in tmp_path.rglob("notes.md")] == [True, True]


def test_close_while_another_thread_opens_its_first_conversation_ends_both(
    sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = attach(sim.client(), project=None)
    client.open()
    began, closes, may_go_on = (threading.Event() for _ in range(3))
    ended: list[Exception] = []
    whole, close = SessionResources.open, conversations.ConversationPool[Any].close

    async def close_late(pool: conversations.ConversationPool[Any]) -> None:
        closes.set()
        await close(pool)

    monkeypatch.setattr(conversations.ConversationPool, "close", close_late)

    def slowly(*args: Any, **named: Any) -> SessionResources:
        began.set()
        may_go_on.wait()
        return whole(*args, **named)

    monkeypatch.setattr(SessionResources, "open", slowly)

    def ask_once() -> None:
        try:
            client.messages.create(model=MODEL, max_tokens=50, messages=ask())
        except InputError as error:
            ended.append(error)

    asking, closing = threading.Thread(target=ask_once), threading.Thread(target=client.close)
    asking.start()
    began.wait()
    closing.start()
    closes.wait()
    may_go_on.set()
    asking.join(30)
    closing.join(30)
    assert not asking.is_alive()
    assert not closing.is_alive()
    assert [type(error) for error in ended] == [ClientClosed]
    assert not sim.ledger.entries, "nothing was sent"


class SlowAnswer:
    """Holds an answer back until somebody has closed the client."""

    def __init__(self) -> None:
        self.sent, self.may_go_on = threading.Event(), threading.Event()

    def __call__(self, request: Any, call_next: Any) -> Any:
        response = call_next(request)
        self.sent.set()
        assert self.may_go_on.wait(30)
        return response


def test_an_answer_under_way_when_the_client_is_closed_is_recorded_and_returned(
    sim: Simulator, tmp_path: Path
) -> None:
    slow, answers, before = SlowAnswer(), list[Any](), loop_threads()
    told: list[object] = []
    attached = attach(
        sim.client().with_middleware(slow),
        project=tmp_path,
        environ={"HOME": str(tmp_path)},
        emit=told.append,
    )
    client = attached.open()
    asking = threading.Thread(target=lambda: answers.append(create(client, ask())))
    asking.start()
    assert slow.sent.wait(30)
    attached.close()
    slow.may_go_on.set()
    asking.join(30)
    assert [answer.role for answer in answers] == ["assistant"]
    (transcript,) = (path for path in tmp_path.rglob("*.jsonl") if '"k":"usage"' in path.read_text())
    assert answers[0].content[0].text[:10] in transcript.read_text()
    assert not [event for event in told if isinstance(event, ReplyUnrecorded)]
    assert loop_threads() == before


def test_a_stream_that_ends_after_the_client_was_closed_reaches_its_reader_and_is_told_as_unrecorded(
    sim: Simulator,
) -> None:
    told, before = list[object](), loop_threads()
    attached = attach(sim.client(), project=None, emit=told.append)
    client = attached.open()
    with client.messages.stream(model=MODEL, max_tokens=50, messages=ask()) as stream:
        next(iter(stream))
        attached.close()
        assert stream.get_final_message().role == "assistant"
    assert [type(event) for event in told if isinstance(event, ReplyUnrecorded)] == [ReplyUnrecorded]
    assert loop_threads() == before


def test_an_async_answer_under_way_when_the_client_is_closed_is_returned(
    sim: Simulator, tmp_path: Path
) -> None:
    async def story() -> list[object]:
        sent, may_go_on, told = asyncio.Event(), asyncio.Event(), list[object]()

        async def slowly(request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            sent.set()
            await may_go_on.wait()
            return response

        async with sim.async_client() as bare:
            attached = attach(
                bare.with_middleware(slowly),
                project=tmp_path,
                environ={"HOME": str(tmp_path)},
                emit=told.append,
            )
            client = attached.open()
            asking = asyncio.create_task(client.messages.create(model=MODEL, max_tokens=50, messages=ask()))
            await sent.wait()
            await attached.close()
            may_go_on.set()
            assert (await asking).role == "assistant"
        return told

    assert not [event for event in asyncio.run(story()) if isinstance(event, ReplyUnrecorded)]


def test_every_session_is_closed_where_one_cannot_be(sim: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    client, closed = attach(sim.client(), project=None), list[Session]()
    for word in ("one", "two", "three"):
        create(client.open(), [{"role": "user", "content": word}])
    whole = Session.close

    async def close(session: Session) -> None:
        await whole(session)
        closed.append(session)
        if len(closed) < 3:
            raise DiskFault(f"the disk failed at {len(closed)}")

    monkeypatch.setattr(Session, "close", close)
    before = loop_threads()
    with pytest.raises(DiskFault, match="failed at 1") as caught:
        client.close()
    assert len(closed) == 3
    assert any("failed at 2" in note for note in caught.value.__notes__)
    assert len(loop_threads()) < len(before)
    assert not hasattr(client, "messages")
    client.close()


@pytest.mark.story
@pytest.mark.parametrize("error", ["DiskFull", "RuntimeError"])
def test_an_error_while_the_interpreter_ends_is_told_and_no_traceback(
    sim: Simulator, tmp_path: Path, error: str
) -> None:
    script = SCRIPT.format(url=sim.url, closed=str(tmp_path), left_open=str(tmp_path))
    script += FAILING_END.replace("$ERROR", error)
    environ = {**os.environ, "HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=environ, check=False, text=True
    )
    assert ran.returncode == 0
    assert "Traceback" not in ran.stderr
    assert f"{error}: no room" in ran.stdout


FAILING_END = """
from sevenfold.core.errors import DiskFull
from sevenfold.session import Session

async def close(session):
    raise $ERROR("no room")

Session.close, left_open._emit = close, print
"""
