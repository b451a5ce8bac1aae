"""What the context says after the caller has gone back to before a change of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.core.messages import Message, Text
from sevenfold.session.blocking import BlockingSession
from tests.session.talk import FRAME, reply

pytestmark = pytest.mark.moves_prefix(reason="the caller goes back")

OLD, NEW = "Write tests first.", "Write no tests."


def open_session(project: Path, session: str | None = None) -> BlockingSession:
    return BlockingSession.open(FRAME, project=project, session=session, environ={"HOME": str(project)})


def ask(session: BlockingSession, text: str) -> list[str]:
    session.history.append(Message("user", text))
    messages = session.prepare().request.messages
    return ["\n".join(b.text for b in one.blocks if isinstance(b, Text)) for one in messages]


def go_back(session: BlockingSession, rules: Path) -> None:
    """To before a prompt that a change of the instructions was said behind."""
    rules.write_text(OLD)
    session.add_context()
    ask(session, "go")
    session.record(reply(Message("assistant", "answer"), 1))
    rules.write_text(NEW)
    assert NEW in ask(session, "more")[-1]
    session.record(reply(Message("assistant", "another answer"), 2))
    session.rewind(2, "the user went back")


def test_a_change_that_went_with_a_dropped_message_stays_away_after_a_restart(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        go_back(session, tmp_path / "AGENTS.md")
    with open_session(tmp_path, session.id) as again:
        assert ask(again, "rather this")[1:] == ["go", "answer", "rather this"]


def test_a_change_that_went_with_a_dropped_message_is_said_again(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        go_back(session, tmp_path / "AGENTS.md")
        *_, prompt, change = ask(session, "rather this")
        assert prompt == "rather this"
        assert NEW in change
        session.record(reply(Message("assistant", "yes"), 3))
        assert ask(session, "thanks")[-1] == "thanks"
