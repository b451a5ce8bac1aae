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
from sevenfold.integrations import conversations
from sevenfold.integrations.anthropic_sdk import attach
from sevenfold.session import Session
from sevenfold.session.opening import SessionResources
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
        attached: Any = attach(wrong, project=None)
        with pytest.raises(InputError, match=r"takes an anthropic\.Anthropic or .* not a (object|str)"):
            _ = attached.messages


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
    whole, close = SessionResources.open, conversations.ConversationPool.close

    async def close_late(pool: conversations.ConversationPool) -> None:
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
