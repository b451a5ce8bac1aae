"""The index of sessions: what is found, and that only what is new is read."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.core.errors import InputError
from sevenfold.core.events import Event, IndexRebuilt
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.foreign.transcripts import ForeignLine, find_transcripts
from sevenfold.store.session_index import index as index_module
from sevenfold.store.session_index import passages
from sevenfold.store.session_index.database import SESSION_INDEX_FOLDER, RebuildableDatabase
from sevenfold.store.session_index.finder import (
    MARK_END,
    MARK_START,
    TURNS_PER_SESSION,
)
from sevenfold.store.session_index.index import SESSION_INDEX_FILE, SessionIndex
from tests.store.session_index.sessions import DAY, Machine, line


def test_a_turn_is_found_with_its_session_and_the_words_marked(machine: Machine) -> None:
    machine.write(
        "s1",
        line("user", "Why does the upload retry forever?"),
        line("assistant", [{"type": "text", "text": "Because the timeout is zero."}], minute=1),
        line("user", "Then set it to ten seconds.", minute=2),
    )
    assert machine.update().read == 1
    (hit,) = machine.search("timeout zero")
    assert (hit.agent, hit.session, hit.project, hit.turn) == ("claude-code", "s1", "/srv/app", 1)
    assert hit.title == "Why does the upload retry forever?"
    assert hit.at == DAY
    assert f"{MARK_START}timeout{MARK_END}" in hit.snippet
    (hit,) = machine.search("seconds")
    assert hit.turn == 2


def test_commands_paths_and_ends_of_results_are_found(machine: Machine) -> None:
    long = "x" * 50_000
    machine.write(
        "s1",
        line("user", "Run it"),
        line(
            "assistant",
            [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make deploy"}}],
            minute=1,
        ),
        line(
            "user",
            [{"type": "tool_result", "tool_use_id": "t", "content": f"begin {long} ECONNREFUSED"}],
            minute=2,
        ),
    )
    machine.update()
    assert machine.search("deploy")
    assert machine.search("ECONNREFUSED")
    assert not machine.search("xxx")


def test_what_a_program_put_in_is_not_found(machine: Machine) -> None:
    machine.write(
        "s1",
        line("user", "<system-reminder>zebra</system-reminder>"),
        line("user", "caveat zebra", minute=1, isMeta=True),
        line("user", "Hello", minute=2),
    )
    machine.update()
    assert not machine.search("zebra")


def test_only_what_is_new_is_read(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write("s1", *(line("user", f"question{number}", minute=number) for number in range(50)))
    machine.write("s2", line("user", "other", session="s2"))
    machine.update()
    read: list[int] = []
    scan = passages.scan_lines

    def counting(path: Path, start: int = 0) -> Iterator[ForeignLine]:
        for item in scan(path, start):
            read.append(item.offset)
            yield item

    monkeypatch.setattr(passages, "scan_lines", counting)
    assert machine.update().read == 0
    assert read == []
    machine.write("s1", line("user", "question50", minute=50))
    assert machine.update().read == 1
    # The turn that was the last, which might have gone on, and the new one.
    assert len(read) == 2
    assert [hit.turn for hit in machine.search("question50")] == [51]
    assert [hit.turn for hit in machine.search("question49")] == [50]


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 8])
def test_reading_in_pieces_gives_what_reading_at_once_gives(
    machine: Machine, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "PASSAGE_CHARS", 60)
    lines = [
        part
        for number in range(9)
        for part in (
            line("user", f"question{number} about things", minute=3 * number),
            line("assistant", [{"type": "text", "text": f"answer{number} " * 20}], minute=3 * number + 1),
            line("assistant", [{"type": "text", "text": f"more{number}"}], minute=3 * number + 2),
        )
    ]
    for start in range(0, len(lines), cut):
        machine.write("pieces", *lines[start : start + cut])
        machine.update()
    machine.write("whole", *lines)
    machine.update()
    with closing(
        sqlite3.connect(machine.root / "home" / SESSION_INDEX_FOLDER / SESSION_INDEX_FILE)
    ) as database:
        rows = database.execute(
            "SELECT path, passage.offset, passage.turn, at, prompt, answer FROM passage"
            " JOIN file ON file.id = file JOIN words ON words.rowid = passage.id ORDER BY passage.offset"
        ).fetchall()
    pieces, whole = (
        [row[1:] for row in rows if row[0].endswith(f"{name}.jsonl".encode())] for name in ("pieces", "whole")
    )
    assert pieces == whole
    assert len(whole) > 9


def test_a_half_written_line_is_read_when_it_is_whole(machine: Machine) -> None:
    whole = line("user", "a question about walruses")
    machine.write("s1", line("user", "first"), whole[:40])
    machine.update()
    assert not machine.search("walruses")
    machine.write("s1", whole[40:])
    machine.update()
    assert machine.search("walruses")


def test_a_transcript_that_is_gone_or_another_is_forgotten(machine: Machine) -> None:
    path = machine.write("s1", line("user", "walrus"))
    machine.write("s2", line("user", "penguin", session="s2"))
    machine.update()
    path.unlink()
    machine.write("s1", line("user", "a much longer question about an octopus", session="s9"))
    assert machine.update().read == 1
    assert not machine.search("walrus")
    assert machine.search("octopus")[0].session == "s9"
    (machine.folder / "s2.jsonl").unlink()
    assert machine.update().removed == 1
    assert not machine.search("penguin")


def test_turns_with_all_words_come_first_then_those_with_some(machine: Machine) -> None:
    machine.write("s1", line("user", "the retry policy"))
    machine.write("s2", line("user", "retry with a timeout of ten seconds", session="s2"))
    for number in range(10):
        machine.write(f"o{number}", line("user", "nothing of it", session=f"o{number}"))
    machine.update()
    assert [hit.session for hit in machine.search("retry timeout")] == ["s2", "s1"]
    assert [hit.session for hit in machine.search('"timeout of ten"')] == ["s2"]
    assert machine.search('"ten timeout"') == []


def test_some_of_the_words_are_enough_in_a_single_session(machine: Machine) -> None:
    machine.write("s1", line("user", "The staging database moved to port 6543."))
    machine.update()
    assert [hit.turn for hit in machine.search("staging postgres outage")] == [1]


def test_one_session_does_not_fill_the_answer(machine: Machine) -> None:
    machine.write("s1", *(line("user", f"walrus {number}", minute=number) for number in range(8)))
    machine.write("s2", line("user", "a walrus in a long sentence about many things", session="s2"))
    machine.update()
    hits = machine.search("walrus")
    assert [hit.session for hit in hits].count("s1") == TURNS_PER_SESSION
    assert "s2" in {hit.session for hit in hits}
    assert sum(hit.more for hit in hits if hit.session == "s1") == 8 - TURNS_PER_SESSION


def test_project_and_date_narrow_the_search(machine: Machine) -> None:
    machine.write("s1", line("user", "walrus"), line("user", "walrus again", minute=60))
    machine.update()
    assert machine.search("walrus", project="/srv/app")
    assert not machine.search("walrus", project="/srv/other")
    (hit,) = machine.search("walrus", since=DAY + timedelta(minutes=30))
    assert hit.turn == 2


@pytest.mark.parametrize(
    "text",
    [
        "数据库的连接超时了",
        "データベースの接続がタイムアウトした",
        "데이터베이스 연결 시간 초과",
        "ฐานข้อมูลหมดเวลาเชื่อมต่อ",
    ],
)
def test_scripts_without_spaces_are_found_by_a_part(machine: Machine, text: str) -> None:
    machine.write("s1", line("user", text))
    machine.update()
    part = text[3:7].strip()
    (hit,) = machine.search(part)
    assert part.replace(" ", "") in hit.snippet.replace(MARK_START, "").replace(MARK_END, "").replace(" ", "")


@pytest.mark.parametrize("query", ["", "  ", '"" --', "***"])
def test_a_query_without_words_is_refused(machine: Machine, query: str) -> None:
    with pytest.raises(InputError, match="no word to look for"):
        machine.search(query)


@pytest.mark.parametrize("query", ['a"b', "NEAR(", "col:x AND", "x* OR -y", "prompt:walrus", "\ud800x"])
def test_no_query_is_syntax(machine: Machine, query: str) -> None:
    machine.write("s1", line("user", "walrus"))
    machine.update()
    assert isinstance(machine.search(query), list)


def test_a_damaged_index_is_built_again(machine: Machine) -> None:
    machine.write("s1", line("user", "walrus"))
    machine.update()
    machine.index.close()
    (machine.root / "home" / SESSION_INDEX_FOLDER / SESSION_INDEX_FILE).write_bytes(b"no database" * 1_000)
    machine.index = SessionIndex.open(machine.root / "home", emit=machine.events.append)
    machine.update()
    assert machine.search("walrus")
    assert any(isinstance(event, IndexRebuilt) for event in machine.events)


def test_while_another_process_updates_the_search_goes_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.write("s1", line("user", "walrus"))
    machine.update()
    machine.write("s2", line("user", "penguin", session="s2"))
    monkeypatch.setattr(index_module, "INDEX_UPDATE_WAIT", timedelta())
    with (
        Folder.open(machine.root / "home" / SESSION_INDEX_FOLDER) as folder,
        mutex(folder, "sessions"),
    ):
        assert machine.update().is_busy
        assert machine.search("walrus")
    assert machine.update().read == 1


def test_nobody_else_can_read_the_index(machine: Machine) -> None:
    machine.write("s1", line("user", "walrus"))
    machine.update()
    path = machine.root / "home" / SESSION_INDEX_FOLDER / SESSION_INDEX_FILE
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_file_that_is_no_transcript_is_looked_at_once(machine: Machine) -> None:
    machine.write("other", b'{"some": "thing"}\n')
    machine.update()
    assert machine.update().read == 0
    assert len(machine.index) == 0


def test_a_file_that_cannot_be_read_is_named_and_costs_only_itself(machine: Machine) -> None:
    machine.write("s1", line("user", "walrus"))
    path = machine.write("s2", line("user", "penguin", session="s2"))
    files = find_transcripts([machine.folder]).files
    path.unlink()
    update = machine.index.update(files)
    assert [item.path for item in update.unreadable] == [path]
    assert machine.search("walrus")


def test_progress_ends_at_the_whole(machine: Machine) -> None:
    machine.write("s1", *(line("user", "walrus", minute=number) for number in range(5)))
    heard: list[tuple[int, int]] = []
    machine.index.update(
        find_transcripts([machine.folder]).files, lambda done, total: heard.append((done, total))
    )
    assert heard[-1][0] == heard[-1][1]


def test_the_index_lasts(machine: Machine) -> None:
    machine.write("s1", line("user", "walrus"))
    machine.update()
    machine.reopen()
    assert machine.update().read == 0
    assert machine.search("walrus")


@pytest.mark.parametrize(
    "bad",
    [
        {"cwd": "/srv/\ud800"},
        {"sessionId": "\ud800"},
        {"timestamp": "0001-01-01T00:00:00Z"},
        {"isSidechain": True, "agentId": "\udfff"},
    ],
    ids=["folder", "session", "time", "sub-agent"],
)
def test_a_hostile_line_costs_no_other_session(machine: Machine, bad: dict[str, object]) -> None:
    machine.write("bad", json.dumps({**json.loads(line("user", "walrus one")), **bad}).encode() + b"\n")
    machine.write("good", line("user", "walrus two", session="s2"))
    assert machine.update().read == 2
    assert len(machine.search("walrus")) == 2


def test_a_name_that_is_no_text_and_a_time_far_away(machine: Machine) -> None:
    path = Path(os.fsdecode(os.fsencode(machine.folder) + b"/\xff.jsonl"))
    path.write_bytes(line("user", "walrus"))
    machine.update()
    (hit,) = machine.search("walrus")
    assert hit.path == path


def test_a_pipe_in_place_of_a_transcript_is_not_waited_for(machine: Machine) -> None:
    os.mkfifo(machine.folder / "pipe.jsonl")
    machine.write("s1", line("user", "walrus"))
    assert len(machine.update().unreadable) == 1
    assert machine.search("walrus")


def test_a_transcript_that_was_replaced_or_cut_short_is_read_again(machine: Machine) -> None:
    lines = [
        line("user", f"{word} question", minute=place) for place, word in enumerate(["ant", "bee", "cow"])
    ]
    path = machine.write("s1", *lines)
    machine.update()
    changed = path.with_suffix(".new")
    changed.write_bytes(b"".join(lines).replace(b"bee", b"xxx"))
    changed.replace(path)
    machine.write("s1")
    machine.update()
    assert not machine.search("bee")
    path.write_bytes(lines[0])
    machine.write("s1")
    machine.update()
    assert not machine.search("cow")
    assert machine.search("ant")


def test_of_a_deleted_transcript_nothing_stays_in_the_index(machine: Machine) -> None:
    machine.write("s1", *(line("user", f"word{number}", minute=number) for number in range(20)))
    path = machine.write("s2", line("user", "hunterpass", session="s2"))
    machine.update()
    path.unlink()
    machine.update()
    machine.index.close()
    assert (
        b"hunterpass" not in (machine.root / "home" / SESSION_INDEX_FOLDER / SESSION_INDEX_FILE).read_bytes()
    )
    machine.index = SessionIndex.open(machine.root / "home")


def test_marks_in_a_text_do_not_hide_what_stands_around_a_snippet(machine: Machine) -> None:
    machine.write("s1", line("user", f"walrus{MARK_START} and {MARK_END}more words after it"))
    machine.update()
    (hit,) = machine.search("walrus")
    assert "more words" in hit.context


def test_a_folder_is_not_another_with_a_longer_name(machine: Machine) -> None:
    for name in ("app", "app2", "app/sub"):
        wire = {**json.loads(line("user", "walrus", session=name)), "cwd": f"/srv/{name}"}
        machine.write(name.replace("/", "-"), json.dumps(wire).encode() + b"\n")
    machine.update()
    assert {hit.project for hit in machine.search("walrus", project="/srv/app")} == {
        "/srv/app",
        "/srv/app/sub",
    }
    assert len(machine.search("walrus", project="app")) == 3


def test_many_turns_of_one_session_leave_room_for_another(machine: Machine) -> None:
    machine.write("s1", *(line("user", "walrus", minute=number) for number in range(300)))
    machine.write("s2", line("user", "a walrus in a long sentence about many other things", session="s2"))
    machine.update()
    assert {hit.session for hit in machine.search("walrus")} == {"s1", "s2"}


def test_the_folder_and_the_first_session_of_a_codex_fork_count(machine: Machine) -> None:
    def meta(name: str) -> dict[str, object]:
        return {
            "type": "session_meta",
            "timestamp": DAY.isoformat(),
            "payload": {"id": name, "cwd": f"/{name}"},
        }

    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "walrus"}]}
    said = {"type": "response_item", "timestamp": DAY.isoformat(), "payload": item}
    machine.write(
        "fork", *(json.dumps(each).encode() + b"\n" for each in (meta("own"), meta("source"), said))
    )
    machine.update()
    (hit,) = machine.search("walrus")
    assert (hit.session, hit.project) == ("own", "/own")


def test_only_damage_deletes_a_database(tmp_path: Path) -> None:
    events: list[Event] = []
    schema = "CREATE TABLE one (x); PRAGMA user_version = 1"
    with closing(RebuildableDatabase(tmp_path, "one.db", schema, events.append)) as database:
        with pytest.raises(sqlite3.OperationalError):
            database.run(lambda: database.connection.execute("SELECT y FROM one"))
        assert database.run(lambda: database.connection.execute("SELECT x FROM one").fetchall()) == []
    assert events == []
