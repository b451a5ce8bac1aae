from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import DiskFull, FileDamaged, InputError
from sevenfold.layers.session_notes.notes_file import MAX_NOTES_BYTES, NOTES_FILE, UPDATING_FILE, NotesFile
from sevenfold.store.files.folder import FOLDER_TIMEOUTS, Folder, FolderTimeouts
from tests.store.disks import fresh_folder, tree
from tests.store.faults import Fault, FaultyDisk

SECOND = timedelta(seconds=1)
LIFE = FOLDER_TIMEOUTS.mark


@pytest.fixture
def session(tmp_path: Path) -> Generator[Folder]:
    with Folder.open(tmp_path / "session", create=True) as folder:
        yield folder


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_notes_are_what_was_last_written(versions: list[str]) -> None:
    with fresh_folder() as session:
        notes = NotesFile(session)
        assert notes.read() is None
        for text in versions:
            notes.write(text)
            assert notes.read() == text


def test_notes_with_half_a_character_can_be_written_and_read(session: Folder) -> None:
    NotesFile(session).write("a\ud800b")
    assert NotesFile(session).read() == "a\\ud800b"


def test_notes_that_somebody_else_wrote_badly_can_be_read(session: Folder) -> None:
    session.replace(NOTES_FILE, b"caf\xe9 \xff")
    assert NotesFile(session).read() == "caf\ufffd \ufffd"


def test_notes_over_the_limit_are_refused_and_the_old_ones_stay(session: Folder) -> None:
    notes = NotesFile(session)
    notes.write("old")
    with pytest.raises(InputError, match="condense"):
        notes.write("é" * MAX_NOTES_BYTES)
    assert notes.read() == "old"
    session.replace(NOTES_FILE, b"x" * (MAX_NOTES_BYTES + 1))
    with pytest.raises(FileDamaged):
        notes.read()


def test_a_write_that_fails_leaves_the_old_notes(session: Folder) -> None:
    NotesFile(session).write("old")
    with Folder.open(session.path, disk=FaultyDisk(Fault(5, "ENOSPC"))) as full, pytest.raises(DiskFull):
        NotesFile(full).write("new")
    assert tree(session.path) == {NOTES_FILE: b"old"}


def test_an_update_shows_while_it_is_under_way(session: Folder) -> None:
    clock = ManualClock()
    notes, other = NotesFile(session, clock=clock), NotesFile(session, clock=clock)
    assert not other.is_updating()
    with notes.updating():
        assert other.is_updating()
        clock.pass_time(LIFE - SECOND)
        assert other.is_updating()
    assert not other.is_updating()
    assert tree(session.path) == {}


def test_the_folder_says_how_long_a_mark_counts(session: Folder) -> None:
    clock = ManualClock()
    with (
        Folder.open(session.path, timeouts=FolderTimeouts(mark=5 * SECOND)) as folder,
        NotesFile(folder, clock=clock).updating(),
    ):
        clock.pass_time(5 * SECOND)
        assert not NotesFile(folder, clock=clock).is_updating()
        assert NotesFile(session, clock=clock).is_updating()


def test_an_update_that_fails_no_longer_shows(session: Folder) -> None:
    notes = NotesFile(session)
    with pytest.raises(ZeroDivisionError), notes.updating():
        raise ZeroDivisionError
    assert not notes.is_updating()


def test_a_mark_that_was_taken_away_is_no_error(session: Folder) -> None:
    with NotesFile(session).updating():
        [mark] = tree(session.path)
        session.remove(mark)
    assert tree(session.path) == {}


@pytest.mark.parametrize("first_to_leave", [0, 1])
def test_of_two_updates_at_once_each_takes_away_only_its_own_mark(
    session: Folder, first_to_leave: int
) -> None:
    notes = NotesFile(session, clock=ManualClock())
    with ExitStack() as one, ExitStack() as two:
        one.enter_context(notes.updating())
        two.enter_context(notes.updating())
        (one, two)[first_to_leave].close()
        assert notes.is_updating()
        (two, one)[first_to_leave].close()
        assert not notes.is_updating()
    assert tree(session.path) == {}


def test_the_next_update_clears_away_the_marks_of_the_dead(session: Folder) -> None:
    clock = ManualClock()
    notes = NotesFile(session, clock=clock)
    session.replace(UPDATING_FILE, b"soon")
    session.subfolder(f"{UPDATING_FILE}-folder").close()
    for _ in range(3):
        session.replace(f"{UPDATING_FILE}-{clock.now():%H%M}", clock.now().isoformat().encode())
        clock.pass_time(LIFE)
    with notes.updating():
        assert len(tree(session.path)) == 1
    assert tree(session.path) == {}


@pytest.mark.parametrize("step", [LIFE, -SECOND, timedelta(days=2), timedelta(days=-2)])
def test_nobody_waits_for_a_mark_that_a_dead_writer_or_a_wrong_clock_left(
    session: Folder, step: timedelta
) -> None:
    clock = ManualClock()
    with NotesFile(session, clock=clock).updating():
        clock.step_wall(step)
        assert not NotesFile(session, clock=clock).is_updating()


@pytest.mark.parametrize(
    "mark", [b"", b"soon", b"2026-11-15", b"2026-11-15T00:00:00", b"\xff", b"x" * 200], ids=ascii
)
def test_a_mark_that_says_nothing_is_none(session: Folder, mark: bytes) -> None:
    session.replace(UPDATING_FILE, mark)
    assert not NotesFile(session, clock=ManualClock()).is_updating()


def test_a_folder_in_place_of_the_mark_is_none(session: Folder) -> None:
    session.subfolder(UPDATING_FILE).close()
    assert not NotesFile(session).is_updating()
