"""The notes of a session that was resumed, rewound or kept in memory cover its messages and no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sevenfold.core.events import NotesSkipped
from sevenfold.core.messages import Message
from sevenfold.layers.session_notes import writer
from sevenfold.layers.session_notes.notes_file import NOTES_FILE
from sevenfold.session.blocking import BlockingSession
from tests.session.talk import FRAME, Listener, call, reply, result

READ = "def part(): return 'some words of a source file'\n" * 500
TREES = ("oak", "elm", "birch", "ash", "fir", "yew", "lime", "pine", "rowan", "alder", "hazel", "beech")


def open_session(
    home: Path | None, session: str | None = None, listener: Listener | None = None, **notes: object
) -> BlockingSession:
    return BlockingSession.open(
        FRAME,
        project=home,
        session=session,
        environ={"HOME": str(home)} if home else {},
        emit=listener or Listener(),
        settings={"context": {"enabled": False}, "recall": {"enabled": False}, "notes": notes},
    )


def talk(session: BlockingSession, messages: Sequence[Message], number: int) -> list[Message]:
    """Hand in a list of the caller's own, and return it with the answer."""
    session.prepare(messages)
    answer = reply(Message("assistant", f"Answer {number}."), number, 2_000)
    session.record(answer)
    return [*messages, answer.message]


def plant(session: BlockingSession) -> None:
    """A turn for each tree, with a long result that a compaction drops."""
    for number, tree in enumerate(TREES):
        session.history.append(Message("user", f"Plant the {tree}."))
        session.record(call(number, "Read", session.prepare().tokens, file_path=f"/src/{tree}.py"))
        session.history.append(result(number, READ))
        tokens = session.prepare().tokens
        session.record(reply(Message("assistant", f"Planted {number}."), 1_000 + number, tokens))


def read_notes(home: Path) -> str:
    [file] = home.rglob(NOTES_FILE)
    return file.read_text(encoding="utf-8")


def test_a_resumed_session_notes_what_was_said_before_and_after(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        messages = talk(session, [Message("user", "Plant the oak first.")], 1)
        messages = talk(session, [*messages, Message("user", "Then the elm.")], 2)
        name = session.id
    with open_session(tmp_path, name) as session:
        talk(session, [*messages, Message("user", "And the birch last.")], 3)
    notes = read_notes(tmp_path)
    turns = ("“Plant the oak first.”", "“Then the elm.”", "“And the birch last.”")
    assert [notes.count(turn) for turn in turns] == [1, 1, 1]


def test_a_session_resumed_after_a_compaction_still_notes_what_was_before_it(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        plant(session)
        assert session.compact().rung == "notes"
        name = session.id
    with open_session(tmp_path, name) as session:
        session.history.append(Message("user", "Plant the cedar."))
        session.prepare()
        session.record(reply(Message("assistant", "Planted it."), 9, 5_000))
    notes = read_notes(tmp_path)
    assert [notes.count(f"“Plant the {tree}.”") for tree in ("oak", "beech", "cedar")] == [1, 1, 1]


@pytest.mark.moves_prefix(reason="the caller goes back")
@pytest.mark.parametrize("resumes", [False, True])
def test_what_the_caller_took_back_leaves_the_notes(tmp_path: Path, *, resumes: bool) -> None:
    session = open_session(tmp_path)
    start = talk(session, [Message("user", "Plant the oak first.")], 1)
    further = talk(session, [*start, Message("user", "Then burn the elm.")], 2)
    if resumes:
        name = session.id
        session.close()
        session = open_session(tmp_path, name)
        further = talk(session, [*further, Message("user", "And the ash.")], 3)
    talk(session, [*start, Message("user", "Rather water the birch.")], 4)
    session.close()
    notes = read_notes(tmp_path)
    assert "oak" in notes
    assert "birch" in notes
    assert "elm" not in notes
    assert "ash" not in notes


def test_an_answer_in_the_callers_own_words_is_noted_once(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        session.prepare([Message("user", "Plant the oak.")])
        session.record(reply(Message("assistant", "I decided to plant it at noon."), 1))
        own = Message("assistant", "I decided to plant it at noon. ")
        session.prepare([Message("user", "Plant the oak."), own, Message("user", "And?")])
        session.record(reply(Message("assistant", "Done."), 2))
    assert read_notes(tmp_path).count("“Plant the oak.”") == 1


def test_a_session_in_memory_is_compacted_by_its_notes_too() -> None:
    with open_session(None) as session:
        plant(session)
        assert session.compact().rung == "notes"
        session.history.append(Message("user", "What did we plant?"))
        view = repr(session.prepare().request.messages)
        assert all(f"Plant the {tree}" in view for tree in TREES)
        assert view.count("def part") < 12 * 500


def test_a_transcript_too_long_to_note_again_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_session(tmp_path) as session:
        talk(session, [Message("user", "Plant the oak first.")], 1)
        name = session.id
    monkeypatch.setattr(writer, "MAX_NOTED_BYTES", 10)
    listener = Listener()
    with open_session(tmp_path, name, listener) as session:
        session.history.append(Message("user", "Then the elm."))
        session.prepare()
        session.record(reply(Message("assistant", "Planted."), 2))
    (event,) = (one for one in listener.events if isinstance(one, NotesSkipped))
    assert "too long to note again" in event.reason
    notes = read_notes(tmp_path)
    assert "oak" in notes
    assert "elm" in notes
