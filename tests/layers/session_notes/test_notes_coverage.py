"""However much the view is cut, the notes cover all but the last round, and a compaction needs no model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.core.messages import Message
from sevenfold.layers.session_notes.notes_file import NOTES_RECORD_FILE, read_notes_record
from sevenfold.session.blocking import BlockingSession
from sevenfold.store.files.folder import Folder
from tests.session.talk import FRAME, call, reply, result

READ = "def part(): return 'some words of a source file'\n" * 500
MODELS = ("claude-opus-4-5", "claude-opus-5-5")
POLICIES = ("balanced", "thrift", "keep")
MESSAGES_A_TURN = 4


def take_turns(session: BlockingSession, count: int) -> None:
    """Turns of one read each."""
    for turn in range(count):
        session.history.append(Message("user", f"What does part {turn} do?"))
        tokens = session.prepare().tokens
        session.record(call(turn, "Read", tokens, file_path=f"/src/{turn}.py"))
        session.history.append(result(turn, READ))
        tokens = session.prepare().tokens
        session.record(reply(Message("assistant", f"It does {turn}."), 1_000 + turn, tokens))


def count_covered(home: Path) -> int:
    [record] = home.rglob(NOTES_RECORD_FILE)
    with Folder.open(record.parent) as folder:
        return read_notes_record(folder).newest.covered


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("turns", [1, 12])
def test_notes_cover_everything_when_a_session_ends(
    tmp_path: Path, model: str, policy: str, turns: int
) -> None:
    with BlockingSession.open(
        replace(FRAME, model=model),
        project=tmp_path,
        environ={"HOME": str(tmp_path)},
        settings={"microcompact": {"policy": policy}},
    ) as session:
        take_turns(session, turns)
    assert count_covered(tmp_path) == turns * MESSAGES_A_TURN


@pytest.mark.parametrize("model", MODELS)
def test_a_compaction_by_hand_is_free_after_many_cleared_results(tmp_path: Path, model: str) -> None:
    with BlockingSession.open(
        replace(FRAME, model=model), project=tmp_path, environ={"HOME": str(tmp_path)}
    ) as session:
        take_turns(session, 12)
        assert session.compact().rung == "notes"
    assert count_covered(tmp_path) == 12 * MESSAGES_A_TURN
