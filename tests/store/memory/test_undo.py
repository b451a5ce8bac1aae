"""Undo takes back exactly the last change and redo does it again, through every state there was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.core.errors import FileMissing, InputError, MemoryConflict
from sevenfold.core.memories import Origin
from sevenfold.store.memory.changes import ANYTHING, TransactionId, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.records import LoggedTransaction, format_log_line, read_log_entry
from tests.examples import up_to
from tests.store.memory.memories import SAID, WEB, MemorySetup, files, put

FIRST = Origin(who="fork", why="extracted", session="first", said_by="user")


@pytest.fixture
def setup(tmp_path: Path) -> MemorySetup:
    return MemorySetup(place=tmp_path)


def test_undo_takes_back_exactly_the_last_change_of_whatever_kind(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        first = put(memory, "a.md", "one", FIRST)
        put(memory, "b.md", "two")
        memory.revert(first.id)
        assert memory.keys() == ("b.md",)
        done = memory.undo()
        assert (memory.keys(), [one.key for one in done.changes]) == (("a.md", "b.md"), ["a.md"])
        assert (memory.read("a.md").origin, done.step) == (FIRST, "undo")
        memory.restore("b.md", put(memory, "b.md", "three").id)
        put(memory, "team/c.md", "ours", WEB)
        memory.trust("team/c.md")
        memory.undo()
        assert not memory.read("team/c.md").is_trusted
        memory.redo()
        assert memory.read("team/c.md").is_trusted


def test_what_a_person_decided_waits_again_once_it_is_undone(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "a.md", "mine")
        (memory.path / "a.md").write_text("edited outside")
        [edited] = memory.notice()
        memory.accept(edited.id)
        proposed = memory.propose([Write("b.md", "one", None)], WEB, "read there")
        memory.reject(proposed.id)
        assert memory.waiting() == ()
        memory.undo()
        assert [one.id for one in memory.waiting()] == [proposed.id]
        memory.undo()
    with setup.opened() as memory:
        assert {one.id: one.is_outside for one in memory.waiting()} == {proposed.id: False, edited.id: False}
        assert files(memory)["a.md"] == "mine"
        memory.redo()
        assert [one.id for one in memory.waiting()] == [proposed.id]
        assert files(memory)["a.md"] == "edited outside"
        memory.accept(proposed.id)
        assert not memory.was_asked([Write("b.md", "one", ANYTHING)])
        with pytest.raises(InputError, match="nothing to redo"):
            memory.redo()


def test_all_answers_of_one_review_are_one_change(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "a.md", "one", WEB)
        asked = [memory.propose([Write(f"{n}.md", n, None)], WEB, f"read in {n}") for n in "bcdef"]
        before = memory.generation()
        done = memory.settle([one.id for one in asked[:3]], [one.id for one in asked[3:]], ["a.md"])
        assert done.accepted + done.rejected == tuple(one.id for one in asked)
        assert [(one.kind, one.id) for one in memory.log(limit=1)] == [("accept", done.transaction.id)]
        assert done.transaction.origin.why == (
            "accepted: read in b; read in c; read in d; rejected; vouched for"
        )
        after = (memory.keys(), files(memory), memory.waiting())
        assert memory.keys() == ("a.md", "b.md", "c.md", "d.md")
        assert all(memory.read(key).is_trusted for key in ("a.md", "b.md", "c.md", "d.md"))
        assert memory.was_asked([Write("e.md", "e", ANYTHING), Write("f.md", "f", ANYTHING)])
    with setup.opened() as memory:
        memory.undo()
        assert [one.id for one in memory.waiting()] == [one.id for one in asked]
        assert (memory.keys(), memory.read("a.md").is_trusted) == (("a.md",), False)
        memory.redo()
        assert (memory.keys(), files(memory), memory.waiting()) == after
        assert memory.generation() != before


def test_all_that_is_rejected_at_once_is_remembered_and_waits_again_once_undone(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        asked = [memory.propose([Write(f"{n}.md", n, None)], WEB, "read there").id for n in "abc"]
        assert memory.settle(refused=asked).transaction.kind == "reject"
    with setup.opened() as memory:
        assert all(memory.was_asked([Write(f"{n}.md", n, ANYTHING)]) for n in "abc")
        memory.undo()
        assert [one.id for one in memory.waiting()] == asked
        memory.settle(asked)
        assert not any(memory.was_asked([Write(f"{n}.md", n, ANYTHING)]) for n in "abc")


def test_of_two_answers_for_one_memory_the_second_waits_on(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        asked = [memory.propose([Write("a.md", n, None)], WEB, "read there").id for n in ("1", "1", "2")]
        other = memory.propose([Write("A.md", "3", None)], WEB, "read there").id
        done = memory.settle([*asked, other])
        assert (done.accepted, [*done.clashing]) == ((asked[0], asked[1]), [asked[2], other])
        assert files(memory)["a.md"] == "1"
        nothing = memory.settle([other])
        assert (nothing.transaction.id, nothing.accepted, len(memory.waiting())) == ("", (), 2)


def test_an_edit_of_the_index_is_accepted_with_the_memories_beside_it(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "a.md", "---\nname: a\ndescription: the old words\ntype: project\n---\n\nOne.\n")
        index = memory.path / "MEMORY.md"
        index.write_text("# Ours\n\n" + index.read_text())
        (memory.path / "a.md").write_text(
            "---\nname: a\ndescription: the new words\ntype: project\n---\n\nTwo.\n"
        )
        waiting = [one.id for one in memory.notice()]
        assert len(waiting) == 2
        before = memory.index_text().text
        memory.settle(waiting)
        shown = memory.index_text().text
        assert "# Ours" in shown
        assert "the new words" in shown
        memory.undo()
        assert memory.index_text().text == before


def test_what_came_from_a_team_is_not_undone_and_not_lost(setup: MemorySetup) -> None:
    sync = Origin(who="sync", why="received from the team", taint=frozenset(["team"]))
    with setup.opened() as memory:
        put(memory, "mine.md", "one")
        put(memory, "team/a.md", "theirs", sync)
        memory.undo()
        assert memory.keys() == ("team/a.md",)
        put(memory, "team/b.md", "ours")
        put(memory, "team/b.md", "theirs", sync)
        with pytest.raises(MemoryConflict, match="by the team"):
            memory.undo()
        assert memory.read("team/b.md").memory.text == "theirs"


def test_a_purge_cannot_be_undone_and_nothing_older_is(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "a.md", "one")
        put(memory, "b.md", "two", FIRST)
        memory.purge(session="first")
        with pytest.raises(InputError, match="erased"):
            memory.undo()
        put(memory, "c.md", "three")
        memory.undo()
        assert memory.keys() == ("a.md",)


def test_two_processes_undo_two_changes(setup: MemorySetup) -> None:
    with setup.opened() as one, setup.opened() as other:
        put(one, "a.md", "one")
        put(other, "b.md", "two")
        put(one, "c.md", "three")
        assert other.undo().changes[0].key == "c.md"
        assert one.undo().changes[0].key == "b.md"
        assert (one.keys(), other.last_change().step) == (("a.md",), "undo")
        other.redo()
        assert one.keys() == ("a.md", "b.md")


def test_a_history_without_steps_is_still_read() -> None:
    """As written before there was `redo`."""
    at = datetime(2026, 11, 15, tzinfo=UTC)
    entry = LoggedTransaction(id=TransactionId("18f3"), at=at, kind="revert", origin=SAID, changes=(), of="x")
    line = format_log_line(entry)
    assert b"step" not in line
    assert b"reopens" not in line
    assert read_log_entry(line[:-1]) == entry


def _write(memory: MemoryDir, *keys: str) -> None:
    text = f"text {len(memory.log(limit=None))}"
    memory.commit([Write(key, text, ANYTHING) for key in keys], SAID)


def _revert_last(memory: MemoryDir) -> None:
    """By its id: also where the last change was a revert, or a step of undo."""
    memory.revert(memory.last_change().id)


def _settle(memory: MemoryDir, *, is_wanted: bool) -> None:
    text = f"text {len(memory.log(limit=None))}"
    waiting = memory.propose([Write("c.md", text, ANYTHING)], WEB, "read there")
    if is_wanted:
        memory.accept(waiting.id)
    else:
        memory.reject(waiting.id)


def _edit_outside(memory: MemoryDir, key: str) -> None:
    """In any editor; a person agrees at once."""
    (memory.path / key).write_text(f"edited {len(memory.log(limit=None))}")
    waiting = [one.id for one in memory.notice() if [each.key for each in one.changes] == [key]]
    memory.accept(waiting[-1])


def _review(memory: MemoryDir) -> None:
    """Several answers at once, one of which may clash."""
    text = f"text {len(memory.log(limit=None))}"
    asked = [memory.propose([Write(f"{n}.md", text, ANYTHING)], WEB, "read there").id for n in "aceac"]
    memory.settle(asked[:3], asked[3:], ["b.md"] if memory.find("b.md") else [])


ACTS: dict[str, Callable[[MemoryDir], object]] = {
    "write a": lambda memory: _write(memory, "a.md"),
    "write both": lambda memory: _write(memory, "a.md", "b.md"),
    "remove": lambda memory: memory.remove("a"),
    "revert": _revert_last,
    "restore": lambda memory: memory.restore("a.md", memory.log("a.md", limit=None)[-1].id),
    "trust": lambda memory: memory.trust("c.md"),
    "accept": lambda memory: _settle(memory, is_wanted=True),
    "reject": lambda memory: _settle(memory, is_wanted=False),
    "review": _review,
    "edit outside": lambda memory: _edit_outside(memory, "a.md"),
    "edit another outside": lambda memory: _edit_outside(memory, "d.md"),
    "undo": MemoryDir.undo,
    "redo": MemoryDir.redo,
}


def _world(memory: MemoryDir) -> tuple[object, ...]:
    shown = {one.memory.key: (one.sha256, one.origin, one.modified) for one in memory.scan()}
    return shown, files(memory), memory.index_text()


@settings(max_examples=up_to(25), deadline=None)
@given(st.lists(st.sampled_from([*ACTS, "undo", "undo", "redo", "redo"]), max_size=9))
def test_undo_and_redo_walk_through_every_state(
    tmp_path_factory: pytest.TempPathFactory, acts: list[str]
) -> None:
    setup = MemorySetup(place=tmp_path_factory.mktemp("memory"))
    past, future = list[tuple[object, ...]](), list[tuple[object, ...]]()
    with setup.opened() as one:
        for act in acts:
            setup.clock.pass_time(timedelta(minutes=1))
            here, last = _world(one), one.generation()
            came, went = (past, future) if act == "undo" else (future, past)
            try:
                with setup.opened() as other:
                    ACTS[act](other)
            except (InputError, FileMissing, LookupError):
                assert _world(one) == here
                assert act not in ("undo", "redo") or not came
                continue
            if act in ("undo", "redo"):
                assert _world(one) == came.pop()
                went.append(here)
            elif one.generation() != last:
                past.append(here)
                future.clear()
        while past:
            one.undo()
            assert _world(one) == past.pop()
        with pytest.raises(InputError, match="nothing has been changed"):
            one.undo()
