"""A view that the provider refused: a shorter one, or one without thinking, once for each reason."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from sevenfold.core.errors import InputError, PromptTooLong, ThinkingRefused
from sevenfold.core.events import HistoryCompacted, WindowLearned
from sevenfold.core.messages import Message, Text, Thinking
from sevenfold.session.blocking import BlockingSession
from tests.session.talk import FRAME, Listener, call, reply, result


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def session(tmp_path: Path, listener: Listener) -> Generator[BlockingSession]:
    opened = BlockingSession.open(FRAME, project=tmp_path, environ={"HOME": str(tmp_path)}, emit=listener)
    yield fill(opened)
    opened.close()


def fill(session: BlockingSession) -> BlockingSession:
    """Rounds of work, and a view of them that is not answered yet."""
    session.history.append(Message("user", "go"))
    for number in range(6):
        session.prepare()
        session.record(call(number, tokens=5_000 * (number + 1)))
        session.history.append(result(number, f"{number} " + "word " * 3_000))
    session.prepare()
    return session


def test_a_prompt_that_was_too_long_becomes_a_shorter_one_once(
    session: BlockingSession, listener: Listener
) -> None:
    before = session.prepare()
    error = PromptTooLong(tokens=before.tokens, limit=before.tokens // 2)
    shorter = session.recover(error)
    assert shorter is not None
    assert shorter.tokens < before.tokens // 2
    assert len(shorter.request.messages) < len(before.request.messages)
    assert shorter.cuts
    assert {HistoryCompacted, WindowLearned} <= {type(event) for event in listener.events}
    assert session.recover(error) is None, "asked again for the same reason there is none"
    session.record(reply(Message("assistant", "Done."), 9))
    session.history.append(Message("user", "word " * 30_000))
    assert session.prepare().request.messages
    assert session.recover(PromptTooLong(tokens=90_000, limit=20_000)) is not None


def test_without_compaction_there_is_no_shorter_one(tmp_path: Path, listener: Listener) -> None:
    opened = BlockingSession.open(
        FRAME,
        project=tmp_path,
        environ={"HOME": str(tmp_path)},
        settings={"compact": {"enabled": False}},
        emit=listener,
    )
    assert fill(opened).recover(PromptTooLong(tokens=90_000, limit=20_000)) is None
    opened.close()


def test_thinking_that_was_refused_is_left_out_from_then_on(session: BlockingSession) -> None:
    thought = Message("assistant", (Thinking("Hm.", "signed"), Text("Yes.")))
    session.record(reply(thought, 9))
    session.history.append(Message("user", "and?"))
    assert thought in session.prepare().request.messages
    found = session.recover(ThinkingRefused("signature"))
    assert found is not None
    assert thought not in found.request.messages
    assert Message("assistant", (Text("Yes."),)) in found.request.messages
    assert session.recover(ThinkingRefused("signature")) is None
    assert session.recover(PromptTooLong(tokens=90_000, limit=20_000)) is not None, "another reason"


def test_a_closed_session_recovers_nothing(tmp_path: Path) -> None:
    opened = BlockingSession.open(FRAME, project=tmp_path, environ={"HOME": str(tmp_path)})
    opened.close()
    with pytest.raises((InputError, RuntimeError)):
        opened.recover(ThinkingRefused("signature"))
