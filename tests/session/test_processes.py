"""A session and the processes that hold it: one that is killed, two at once, and one that forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sevenfold.core.errors import DiskFull, InputError, SessionBusy
from sevenfold.core.messages import Message
from sevenfold.session.blocking import BlockingSession
from sevenfold.store.transcript import transcript
from tests.session.talk import FRAME, Listener, call, result

KILLED = """
import os, signal, sys
from sevenfold.session.blocking import BlockingSession as Session
from sevenfold.core.messages import Message
from tests.session.talk import FRAME, call, result

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


HOLDING = """
import os, sys
from sevenfold.session.blocking import BlockingSession as Session
from sevenfold.core.messages import Message
from tests.session.talk import FRAME

home, forks = sys.argv[1], sys.argv[2] == "True"
session = Session.open(FRAME, project=home, environ={"HOME": home})
session.history.append(Message("user", "go"))
session.prepare()
# A child says so itself: by then it holds nothing more.
is_parent = forks and os.fork()
if not is_parent:
    print(session.id, os.getpid(), flush=True)
sys.stdin.read()
os._exit(0)
"""


@dataclass(frozen=True)
class Holder:
    """Another process that has a session open."""

    process: subprocess.Popen[str]
    session: str
    child: int

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait(self) -> None:
        self.process.wait(timeout=30)


@contextmanager
def holding(home: Path, *, forks: bool = False) -> Generator[Holder]:
    script = [sys.executable, "-c", textwrap.dedent(HOLDING), str(home), str(forks)]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        session, child = process.stdout.readline().split()
        yield Holder(process, session, int(child))


def open_at(home: Path, session: str | None = None, listener: Listener | None = None) -> BlockingSession:
    return BlockingSession.open(
        FRAME, project=home, session=session, environ={"HOME": str(home)}, emit=listener or Listener()
    )


@pytest.mark.parametrize("at", [0, pytest.param(1, marks=pytest.mark.story), 4])
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


@pytest.mark.story
def test_a_second_process_is_refused_and_told_who_has_the_session(tmp_path: Path) -> None:
    with holding(tmp_path) as holder:
        with pytest.raises(SessionBusy, match=rf"open in process {holder.pid} on .*start another session"):
            open_at(tmp_path, holder.session)
        with pytest.raises(SessionBusy, match="is open in process"):
            open_at(tmp_path, "latest")
        assert open_and_close(tmp_path, None) == []


@pytest.mark.parametrize("by", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.story)])
def test_a_holder_that_dies_is_out_at_that_moment(tmp_path: Path, by: signal.Signals) -> None:
    with holding(tmp_path) as holder:
        os.kill(holder.pid, by)
        holder.wait()
        assert open_and_close(tmp_path, holder.session) == [Message("user", "go")]


def test_a_child_that_a_holder_left_behind_holds_nothing(tmp_path: Path) -> None:
    with holding(tmp_path, forks=True) as holder:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        os.kill(holder.child, 0)
        assert open_and_close(tmp_path, holder.session) == [Message("user", "go")]


def test_a_session_is_open_once_in_a_process_and_again_after_it_was_closed(tmp_path: Path) -> None:
    first = open_at(tmp_path)
    first.history.append(Message("user", "go"))
    first.prepare()
    with pytest.raises(SessionBusy, match=rf"open in this process \({os.getpid()}\) already"):
        open_at(tmp_path, first.id)
    first.record(call(1))
    first.close()
    assert len(open_and_close(tmp_path, first.id)) == 2


def test_whoever_cannot_say_who_he_is_holds_the_session_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise DiskFull("no room")

    listener = Listener()
    with monkeypatch.context() as patch:
        patch.setattr(transcript.Folder, "replace", full)
        first = open_at(tmp_path, listener=listener)
    assert "LockFaceFailed" in listener.names()
    with pytest.raises(SessionBusy, match="another process"):
        open_at(tmp_path, first.id)
    first.close()


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
        assert "forked this one; open a session of its own here" in told.read()
    os.waitpid(child, 0)
    session.record(call(1))
    session.close()
    assert len(open_and_close(tmp_path, session.id)) == 2


def open_and_close(home: Path, name: str | None) -> list[Message]:
    with open_at(home, name) as session:
        return list(session.history)
