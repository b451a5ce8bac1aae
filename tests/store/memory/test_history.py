"""Every change can be seen, explained and taken back byte for byte; what is purged is gone for good."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.core.errors import FileMissing, InputError, MemoryConflict
from sevenfold.core.events import MemoryPurged
from sevenfold.core.memories import INDEX_FILE, MemoryUse, Origin
from sevenfold.store.memory.changes import ANYTHING, Remove, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.records import (
    NO_FILE,
    FileSnapshot,
    FileStamp,
    LoggedTransaction,
    UpkeepRecord,
    format_log_line,
    is_upkeep,
    new_transaction_id,
    read_log_entry,
)
from sevenfold.store.memory.sidecars import BrokenMark, MarkStore, UseStore
from tests.examples import up_to
from tests.store.memory.memories import SAID, WEB, MemorySetup, files, put, text_about

FIRST = Origin(who="fork", why="extracted", session="first", messages=("m1", "m2"), said_by="user")
SECOND = Origin(who="fork", why="extracted", session="second", said_by="user")


@pytest.fixture
def setup(tmp_path: Path) -> MemorySetup:
    return MemorySetup(place=tmp_path)


def test_the_log_tells_who_why_and_from_what(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "a.md", "one", FIRST)
        done = put(memory, "b.md", "two")
        assert [item.id for item in memory.log()][:1] == [done.id]
        [entry] = memory.log("a.md")
        assert entry.changes[0].origin == FIRST
        assert memory.log(limit=1) == (memory.transaction(done.id[:8]),)
        with pytest.raises(InputError, match="no transaction"):
            memory.transaction("nowhere")


def test_a_diff_can_be_read_by_a_person(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "a.md", "one\ntwo\n")
        done = memory.commit([Write("a.md", "one\n2", ANYTHING), Write("b.md", "new\n", None)], SAID)
        told = memory.diff(done.id)
        assert "--- a/a.md\n+++ b/a.md\n" in told
        assert "-two\n+2\n\\ No newline at end of file\n" in told
        assert "--- /dev/null\n+++ b/b.md\n" in told
        waiting = memory.propose([Remove("a.md", ANYTHING)], WEB, "")
        assert "+++ /dev/null" in memory.diff(waiting.id)


def test_blame_names_the_transaction_of_each_line(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        one = put(memory, "a.md", "first\nsecond\nthird\n", FIRST)
        two = put(memory, "a.md", "first\nchanged\nthird\nfourth\n", SECOND)
        told = [(line.line, line.transaction) for line in memory.blame("a.md")]
        assert told == [("first", one.id), ("changed", two.id), ("third", one.id), ("fourth", two.id)]
        assert memory.blame("a.md")[0].origin == FIRST
        with pytest.raises(FileMissing):
            memory.blame("b.md")


def test_undo_takes_back_one_transaction_after_the_other(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "a.md", "one", FIRST)
        before = files(memory)
        memory.commit([Write("a.md", "two", ANYTHING), Write("b.md", "B", None)], SECOND)
        between = files(memory)
        memory.commit([Remove("a.md", ANYTHING), Write("archive/a.md", "two", None)], SECOND)
        undone = memory.undo("was wrong")
        assert (undone.kind, files(memory)) == ("revert", between)
        assert memory.read("a.md").origin == SECOND
        memory.undo()
        assert files(memory) == before
        assert memory.read("a.md").origin == FIRST
        memory.undo()
        assert memory.keys() == ()
        with pytest.raises(InputError, match="nothing"):
            memory.undo()


def test_an_undo_can_itself_be_reverted(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "a.md", "one")
        put(memory, "a.md", "two")
        undone = memory.undo()
        memory.revert(undone.id)
        assert memory.read("a.md").memory.text == "two"


def test_only_what_nobody_touched_since_is_reverted(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        done = memory.commit([Write("a.md", "one", None), Write("b.md", "one", None)], SAID)
        put(memory, "b.md", "two")
        with pytest.raises(MemoryConflict) as caught:
            memory.revert(done.id)
        assert caught.value.keys == ("b.md",)
        assert memory.keys() == ("a.md", "b.md")


def test_what_changed_nothing_cannot_be_reverted(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        waiting = memory.propose([Write("a.md", "one", None)], WEB, "")
        with pytest.raises(InputError, match="changed no memory"):
            memory.revert(waiting.id)


def test_trust_is_taken_back_by_a_revert(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "team/a.md", "one", WEB)
        memory.revert(memory.trust("team/a.md").id)
        assert not memory.read("team/a.md").is_trusted


def test_an_accepted_index_is_reverted_too(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "a.md")
        before = files(memory)
        (memory.path / INDEX_FILE).write_text("# Mine\n" + before[INDEX_FILE])
        [waiting] = memory.notice()
        done = memory.accept(waiting.id)
        assert memory.index_text().text.startswith("# Mine")
        memory.revert(done.id)
        assert files(memory) == before


def test_a_memory_is_restored_to_an_older_text(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        done = put(memory, "a.md", "one", FIRST)
        put(memory, "a.md", "two")
        memory.commit([Remove("a.md", ANYTHING)], SAID)
        memory.restore("a.md", done.id)
        assert (memory.read("a.md").memory.text, memory.read("a.md").origin) == ("one", FIRST)
        assert memory.body(memory.log("a.md")[-1].changes[0].after or "") == "one"
        with pytest.raises(InputError, match="no text"):
            memory.restore("b.md", done.id)
        with pytest.raises(FileMissing):
            memory.body("0" * 64)


def everything(memory: MemoryDir) -> bytes:
    """All bytes that are kept anywhere for these memories."""
    project = memory.path.parent
    return b"".join(path.read_bytes() for path in sorted(project.rglob("*")) if path.is_file())


def test_a_purged_session_leaves_no_byte(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "a.md", text_about("a", "Kept."), SECOND)
        put(memory, "a.md", text_about("a", "Secret of the first."), FIRST)
        put(memory, "b.md", "Secret alone.", FIRST)
        memory.propose([Write("c.md", "Secret that waits.", None)], FIRST, "Secret reason")
        memory.undo()
        done = memory.purge(session="first")
        assert (done.versions, done.keys, done.still_holding) == (3, ("a.md", "b.md", "c.md"), ())
        assert b"Secret" not in everything(memory)
        assert (memory.keys(), memory.waiting()) == (("a.md",), ())
        assert memory.read("a.md").memory.body == "\nKept.\n"
        assert files(memory)["a.md"] == text_about("a", "Kept.")
        assert memory.log()[0].kind == "purge"
        assert memory.purge(session="first").transactions == 0
    assert setup.of(MemoryPurged) == [MemoryPurged("a session", 3)]
    with setup.opened() as memory:
        put(memory, "d.md")
        assert (memory.waiting(), memory.keys()) == ((), ("a.md", "d.md"))


def test_a_purged_memory_is_gone_with_its_name(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        memory.commit([Write("divorce.md", "one", None), Write("b.md", "two", None)], SAID)
        (memory.path / "divorce.md").write_text("edited outside")
        memory.notice()
        memory.purge(key="divorce.md")
        kept = everything(memory)
        assert (b"divorce" in kept, b"edited outside" in kept) == (False, False)
        assert files(memory).keys() == {INDEX_FILE, "b.md"}
        assert memory.read("b.md").origin == SAID


def test_purge_by_who_says_where_its_words_live_on(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "a.md", "a line of the dream\n", Origin(who="dream", why="merged"))
        put(memory, "a.md", "a line of the dream\nand the user's\n")
        done = memory.purge(who="dream")
        assert (done.versions, done.still_holding) == (1, ("a.md",))
        assert memory.read("a.md").memory.text == "a line of the dream\nand the user's\n"
        for wrong in ({}, {"who": "nobody"}, {"who": "user", "key": "a.md"}):
            with pytest.raises(InputError):
                memory.purge(**wrong)


def test_another_process_goes_on_after_a_purge(setup: MemorySetup) -> None:
    with setup.opened() as one, setup.opened() as other:
        put(one, "a.md", "one", FIRST)
        put(other, "b.md", "two")
        one.purge(session="first")
        assert other.keys() == ("b.md",)
        put(other, "c.md", "three")
        assert one.keys() == ("b.md", "c.md")
        assert [item.kind for item in one.log()] == ["commit", "purge", "commit", "commit", "adopt"]


keys = st.sampled_from(["a.md", "b.md", "sub/c.md"])
texts = st.text(st.characters(codec="utf-8"), max_size=30)
changes = st.lists(
    st.builds(Write, keys, texts, st.just(ANYTHING)) | st.builds(Remove, keys, st.just(ANYTHING)),
    max_size=3,
    unique_by=lambda change: change.key,
)


@settings(max_examples=up_to(25), deadline=None)
@given(st.lists(changes, min_size=1, max_size=4))
def test_undoing_everything_goes_back_through_every_state(
    tmp_path_factory: pytest.TempPathFactory, plan: list[list[Write | Remove]]
) -> None:
    setup = MemorySetup(place=tmp_path_factory.mktemp("memory"))
    with setup.opened() as memory:
        states = [files(memory)]
        for step in plan:
            there = memory.keys()
            doable = [item for item in step if isinstance(item, Write) or item.key in there]
            if memory.commit(doable, SAID).changes:
                states.append(files(memory))
        while len(states) > 1:
            assert files(memory) == states.pop()
            memory.undo()
        assert files(memory) == states[0]


def test_what_was_put_in_place_is_told_without_reading() -> None:
    at = datetime(2026, 11, 15, tzinfo=UTC)
    entry = UpkeepRecord(
        upto=7,
        at=at,
        files={"a.md": FileSnapshot("0" * 64, FileStamp(1, 2, 3)), "b.md": NO_FILE},
        boot="boot",
        intends="",
    )
    line = format_log_line(entry)
    assert is_upkeep(line)
    assert read_log_entry(line[:-1]) == entry
    assert not is_upkeep(
        format_log_line(
            LoggedTransaction(id=new_transaction_id(), at=at, kind="commit", origin=SAID, changes=())
        )
    )


def test_a_purge_says_which_other_memory_the_words_were_merged_into(setup: MemorySetup) -> None:
    line = "The door opens with the quokka code."
    with setup.opened() as memory:
        put(memory, "before.md", f"{line}\n")
        put(memory, "a.md", f"{line}\n", FIRST)
        put(
            memory,
            "b.md",
            f"Bring a coat when it snows.\n\n- {line}\n",
            Origin(who="dream", why="made of a.md, b.md"),
        )
        put(memory, "c.md", "Bring a coat when it rains.\n", SECOND)
        assert memory.purge(session="first").still_holding == ("b.md",)


def test_a_purge_leaves_nothing_in_the_accounts_of_dreams_and_beside(setup: MemorySetup) -> None:
    with setup.opened() as memory:
        put(memory, "quokka.md", "The quokka code is long.", FIRST)
        put(memory, "b.md")
        control = memory.project.control
        with control.subfolder("dreams") as dreams, dreams.subfolder("d2") as copy:
            told = b'{"id": "d1", "transaction": "t1", "report": "quokka", "steps": ["write quokka.md"]}'
            dreams.replace("d1.json", told)
            dreams.replace("d1.diff", b"+The quokka code is long.")
            copy.replace("quokka.md", b"The quokka code is long.")
        UseStore(control).add([MemoryUse("quokka.md", "recalled")], setup.clock.now())
        MarkStore(control).put({"quokka.md": BrokenMark("0" * 64, ("quokka",), setup.clock.now())})
        memory.purge(session="first")
        left = [path for path in setup.place.rglob("*") if path.is_file() and b"quokka" in path.read_bytes()]
        assert left == []
        account = json.loads(Path(control.path / "dreams" / "d1.json").read_bytes())
        assert account == {"id": "d1", "transaction": "t1"}
