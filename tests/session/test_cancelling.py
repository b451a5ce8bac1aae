"""A call that is cancelled at any place where it waits: asked again, it answers as if it had not been."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
from collections.abc import Coroutine, Generator
from pathlib import Path
from types import coroutine
from typing import Any, TypeVar

import pytest

from sevenfold.core.messages import Message
from sevenfold.core.models import Model
from sevenfold.core.requests import Capabilities, Dialect, ModelRequest, ModelResponse, choose_capabilities
from sevenfold.providers.provider import OnDelta
from sevenfold.session import Session, blocking
from sevenfold.store.project.project import Project
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import MessageRecord
from tests.layers.compaction.overflows import GOOD
from tests.session.talk import FRAME, Listener, call, reply, result

T = TypeVar("T")
LARGE = "line\n" * 20_000
MOST_WAITS = 60


class Summarising:
    """A provider that writes summaries, after a pause."""

    dialect: Dialect = "anthropic"

    def capabilities(self, model: Model) -> Capabilities:
        return choose_capabilities(model, "anthropic")

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        await asyncio.sleep(0)
        return reply(Message("assistant", GOOD), 99)

    async def close(self) -> None: ...


@coroutine
def interrupted(work: Coroutine[Any, Any, T], at: int) -> Generator[Any, Any, T]:
    """Run `work`, and cancel it where it waits for the `at`-th time."""
    waits, value = 0, None
    while True:
        try:
            waited_for = work.send(value)
            while waits == at:
                waits += 1
                waited_for = work.throw(asyncio.CancelledError())
        except StopIteration as end:
            return end.value
        waits += 1
        value = yield waited_for


async def open_at(home: Path, session: str | None = None, emit: Listener | None = None) -> Session:
    return await Session.open(
        FRAME,
        project=home,
        session=session,
        provider=Summarising(),
        settings={
            "models": {FRAME.model: {"window_tokens": 60_000}},
            "notes": {"compaction_enabled": False},
            "compact": {"keep_tokens": 2_000},
        },
        environ={"HOME": str(home)},
        emit=emit or Listener(),
    )


async def run_until_due(session: Session) -> None:
    """To where the next view needs a spill and a compaction."""
    session.history.append(Message("user", "go"))
    for number in range(3):
        await session.prepare()
        await session.record(call(number, "Look", tokens=100 + 6_500 * number))
        session.history.append(result(number, "word " * 5_000))
    session.history.append(Message("user", "and this " * 3_500))
    session.history.append(call(7).message)
    session.history.append(result(7, LARGE))


async def finish(session: Session) -> list[str]:
    """What is sent from then on, without the names of files."""
    view = await session.prepare()
    assert view.tokens < 27_000
    assert len(view.request.messages) < 9
    await session.record(call(8, tokens=5_000))
    session.history.append(result(8, "ok"))
    last = await session.prepare()
    sent = [str(message) for message in (*view.request.messages, *last.request.messages)]
    return [text.replace(session.id, "ID") for text in sent]


def stored(home: Path, session: str) -> list[str]:
    with Project.open(home, home=home / ".sevenfold") as project:
        lines = [
            line for line in scan_transcript(project.sessions, session) if isinstance(line, StoredRecord)
        ]
    return [line.record.id for line in lines if isinstance(line.record.body, MessageRecord)]


async def story(home: Path, at: int | None, *, leaves: bool = False) -> tuple[list[str], bool, str]:
    """The session's end when its `prepare` was cancelled there; whether it was."""
    session = await open_at(home)
    await run_until_due(session)
    is_cancelled = False
    if at is not None:
        try:
            await interrupted(session.prepare(), at)
        except asyncio.CancelledError:
            is_cancelled = True
    if leaves:
        await session.close()
        session = await open_at(home, session.id)
    sent = await finish(session)
    await session.close()
    return [re.sub(r"/\S*/sessions/", "", text) for text in sent], is_cancelled, session.id


@pytest.mark.parametrize(
    "leaves",
    [pytest.param(False, id="goes on", marks=pytest.mark.story), pytest.param(True, id="taken up again")],
)
def test_prepare_may_be_cancelled_wherever_it_waits(tmp_path: Path, leaves: bool) -> None:
    whole, _, _ = asyncio.run(story(tmp_path / "whole", None, leaves=leaves))
    at = 0
    for at in range(MOST_WAITS):
        home = tmp_path / str(at)
        sent, is_cancelled, session = asyncio.run(story(home, at, leaves=leaves))
        assert sent == whole, at
        names = stored(home, session)
        assert len(names) == len(set(names)), at
        if not is_cancelled:
            break
    assert 5 < at < MOST_WAITS - 1


def test_record_may_be_cancelled_wherever_it_waits(tmp_path: Path) -> None:
    async def tell(home: Path, at: int) -> tuple[int, bool]:
        session = await open_at(home)
        session.history.append(Message("user", "go"))
        await session.prepare()
        is_cancelled = False
        try:
            await interrupted(session.record(call(1)), at)
        except asyncio.CancelledError:
            is_cancelled = True
            await session.record(call(1))
        await session.close()
        again = await open_at(home, session.id)
        known = len(again.history)
        await again.close()
        return known, is_cancelled

    at = 0
    for at in range(MOST_WAITS):
        known, is_cancelled = asyncio.run(tell(tmp_path / str(at), at))
        assert known == 2, at
        if not is_cancelled:
            break
    assert 0 < at < MOST_WAITS - 1


def test_a_list_whose_prepare_was_cancelled_is_taken_once(tmp_path: Path) -> None:
    listed: list[object] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": LARGE}]},
    ]

    async def tell(home: Path, at: int) -> tuple[int, bool]:
        session = await open_at(home)
        await session.prepare(listed[:1])
        is_cancelled = False
        try:
            await interrupted(session.prepare(listed), at)
        except asyncio.CancelledError:
            is_cancelled = True
        sent = (await session.prepare(listed)).request.messages
        await session.close()
        return len(sent), is_cancelled

    at = 0
    for at in range(MOST_WAITS):
        sent, is_cancelled = asyncio.run(tell(tmp_path / str(at), at))
        assert sent == 3, at
        if not is_cancelled:
            break
    assert 1 < at < MOST_WAITS - 1


@pytest.fixture
def heard_ctrl_c() -> Generator[None]:
    """A shell that runs the tests in the background makes them deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard_ctrl_c")
def test_ctrl_c_while_a_view_is_made_leaves_a_session_that_goes_on(tmp_path: Path) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    class Slow(Summarising):
        async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
            if not begun.is_set():
                begun.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancelled.set()
                    raise
            return await super().send(request, on_delta)

    def press() -> None:
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    with blocking.BlockingSession.open(
        FRAME,
        project=tmp_path,
        provider=Slow(),
        settings={
            "models": {FRAME.model: {"window_tokens": 60_000}},
            "notes": {"compaction_enabled": False},
        },
        environ={"HOME": str(tmp_path)},
    ) as session:
        session.history.append(Message("user", "go"))
        session.prepare()
        session.record(call(1, "Look"))
        session.history.append(result(1, "ok"))
        session.history.append(Message("user", "word " * 30_000))
        finger = threading.Thread(target=press, daemon=True)
        finger.start()
        with pytest.raises(KeyboardInterrupt):
            session.prepare()
        finger.join()
        assert session.prepare().tokens < 27_000
        assert cancelled.is_set()
        assert len(session.history) == 4
