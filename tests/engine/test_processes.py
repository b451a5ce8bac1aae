"""A session and the processes that hold it: one that is killed, two at once, and one that forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sevenfold.blocking import Session
from sevenfold.core.errors import InputError
from sevenfold.core.messages import Message
from tests.engine.talk import FRAME, Listener, call, result

KILLED = """
import os, signal, sys
from sevenfold.blocking import Session
from sevenfold.core.messages import Message
from tests.engine.talk import FRAME, call, result

home, at = sys.argv[1], int(sys.argv[2])
session = Session.open(FRAME, project=home, environ={"HOME": home})
print(session.id, flush=True)
session.history.append(Message("user", "go"))
def die_if(step):
    if step == at:
        os.kill(os.getpid(), signal.SIGKILL)
for number in range(3):
    session.prepare()
    die_if(2 * number)
    session.record(call(number))
    die_if(2 * number + 1)
    session.history.append(result(number, "line\\n" * 20_000))
"""


def open_at(home: Path, session: str | None = None, listener: Listener | None = None) -> Session:
    return Session.open(
        FRAME, project=home, session=session, environ={"HOME": str(home)}, emit=listener or Listener()
    )


@pytest.mark.parametrize("at", [0, 1, 4])
def test_a_session_that_is_killed_has_all_that_was_acknowledged(tmp_path: Path, at: int) -> None:
    script = textwrap.dedent(KILLED)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), str(at)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    session = open_at(tmp_path, done.stdout.strip())
    # Of round n: the user's side when its view was made, and the answer when it was recorded.
    assert len(session.history) == at + 1
    sent = session.prepare().request.messages
    assert sent[0] == Message("user", "go")
    session.record(call(9))
    session.history.append(result(9, "ok"))
    assert len(session.prepare().request.messages) > len(sent)
    session.close()


def test_two_processes_on_one_session_lose_nothing_and_what_they_wrote_can_be_sent(tmp_path: Path) -> None:
    first = open_at(tmp_path)
    first.history.append(Message("user", "go"))
    first.prepare()
    first.record(call(1))
    second = open_at(tmp_path, first.id)
    for number, session in ((1, first), (1, second)):
        session.history.append(result(number, "ok"))
        session.prepare()
    first.record(call(2))
    second.record(call(3))
    first.close()
    second.close()
    listener = Listener()
    again = open_at(tmp_path, first.id, listener)
    said = [str(message) for message in again.history]
    assert all(any(f"t{number}" in text for text in said) for number in (1, 2, 3))
    again.prepare()
    assert "HistoryRepaired" in listener.names()
    again.close()


def test_a_forked_child_is_told_to_open_the_session_itself(tmp_path: Path) -> None:
    session = open_at(tmp_path)
    session.history.append(Message("user", "go"))
    session.prepare()
    out, into = os.pipe()
    child = os.fork()
    if not child:
        try:
            session.prepare()
        except InputError as error:
            os.write(into, str(error).encode())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out) as told:
        assert "forked this one; open the session again here" in told.read()
    os.waitpid(child, 0)
    session.record(call(1))
    session.close()
    assert len(open_and_close(tmp_path, session.id)) == 2


def open_and_close(home: Path, name: str) -> list[Message]:
    with open_at(home, name) as session:
        return list(session.history)
