"""However much the view is cut, the notes cover all but the last round, and a compaction needs no model."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from sevenfold.core.clock import ManualClock
from sevenfold.core.messages import Message
from sevenfold.layers.session_notes.notes_file import NOTES_RECORD_FILE, read_notes_record
from sevenfold.session.blocking import BlockingSession
from sevenfold.store.files.folder import Folder
from tests.examples import up_to
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


EVERY_MODEL = (*MODELS, "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-1", "a-model-of-tomorrow")
EVERY_POLICY = (*POLICIES, "ski", "fixed")
STEPS = st.one_of(
    st.tuples(st.just("turn"), st.integers(1, 4)), st.just(("pause", 0)), st.just(("compact", 0))
)


@pytest.mark.story
@pytest.mark.moves_prefix(reason="results are cleared and views compacted by hand")
@examples(max_examples=up_to(40))
@given(
    model=st.sampled_from(EVERY_MODEL),
    policy=st.sampled_from(EVERY_POLICY),
    steps=st.lists(STEPS, min_size=1, max_size=20),
)
def test_at_every_request_the_notes_cover_all_but_the_last_round(
    model: str, policy: str, steps: Sequence[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home, clock, number = Path(folder), ManualClock(), 0
        with BlockingSession.open(
            replace(FRAME, model=model),
            project=home,
            environ={"HOME": folder},
            clock=clock,
            settings={"microcompact": {"policy": policy}, "recall": {"enabled": False}},
        ) as session:
            last = ""
            for kind, rounds in steps:
                if kind == "pause":
                    clock.pass_time(timedelta(hours=2))
                elif kind == "compact" and last == "turn":
                    # What a compaction finds is what the notes hold at this moment.
                    assert session.compact().rung == "notes"
                    assert count_covered(home) == len(session.history)
                elif kind == "turn":
                    number = take_turn(session, number, rounds)
                last = kind if kind != "pause" else last
        assert count_covered(home) == len(session.history) if number else True


def take_turn(session: BlockingSession, number: int, rounds: int) -> int:
    """A question, so many reads, and an answer; the number of the next read."""
    session.history.append(Message("user", f"What does part {number} do?"))
    for one in range(number, number + rounds):
        tokens = session.prepare().tokens
        session.record(call(one, "Read", tokens, file_path=f"/src/{one}.py"))
        session.history.append(result(one, READ))
    tokens = session.prepare().tokens
    session.record(reply(Message("assistant", f"It does {number}."), 1_000 + number, tokens))
    return number + rounds + 1
