"""Finding transcripts, telling whose they are, and reading their lines."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import InputError, NotRegular, StoreError
from sevenfold.store.foreign import transcripts
from sevenfold.store.foreign.entries import CallId
from sevenfold.store.foreign.transcripts import (
    MAX_UNKNOWN_TYPES,
    OTHER_TYPES,
    LineTally,
    choose_owners,
    detect_agent,
    find_transcripts,
    hash_call_id,
    list_default_folders,
    read_transcript,
    scan_calls,
)


def write(path: Path, *rows: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("row", "agent"),
    [
        ({"type": "user", "sessionId": "s", "message": {"role": "user", "content": "x"}}, "claude-code"),
        ({"type": "system", "subtype": "init", "session_id": "s"}, "claude-code"),
        ({"type": "summary", "summary": "Tides", "leafUuid": "u"}, "claude-code"),
        ({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}, "claude-code"),
        ({"type": "session_meta", "payload": {}}, "codex"),
        ({"id": "s", "timestamp": "2025-05-01T00:00:00Z", "instructions": None}, "codex"),
        ({"role": "user", "content": "x"}, "messages"),
        ({"type": "message", "role": "assistant", "content": [], "usage": {}}, "messages"),
        ({"message": {"role": "user", "content": "x"}}, "messages"),
        ({"display": "ls", "project": "/srv"}, None),
        (["role", "user"], None),
    ],
)
def test_a_transcript_is_told_by_what_it_says(tmp_path: Path, row: object, agent: str | None) -> None:
    assert detect_agent(write(tmp_path / "any.name", {"noise": 1}, row)) == agent


def test_noise_before_the_first_line_that_tells_is_looked_past(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n\xff\xfe garbage\n[]\n" + b'{"role":"user","content":"x"}\n')
    assert detect_agent(path) == "messages"


def test_every_line_is_read_with_its_fault(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n\n{"b":\n[1]\n{"c":"\xff"}\n{"d":1}')
    found = list(transcripts.scan_lines(path))
    assert [line.fault for line in found] == [None, "not JSON", "no object", None, None]
    assert [dict(line.fields) for line in found if not line.fault] == [{"a": 1}, {"c": "\ufffd"}, {"d": 1}]


def test_a_half_written_last_line_is_known_as_such(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":"unfin')
    assert [line.fault for line in transcripts.scan_lines(path)] == [None, "half-written"]


def test_a_line_without_end_is_skipped_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "MAX_FOREIGN_LINE_BYTES", 100)
    monkeypatch.setattr(transcripts, "BUFFER_BYTES", 64)
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":"' + b"x" * 1000 + b'"}\n{"b":2}\n')
    found = list(transcripts.scan_lines(path))
    assert [line.fault for line in found] == ["too long", None]
    assert sum(line.length_bytes for line in found) == path.stat().st_size
    assert list(transcripts.scan_raw_lines(path)) == [b'{"b":2}\n']


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000])
def test_a_line_nested_without_end_is_a_bad_line(tmp_path: Path, deep: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(deep + "\n", encoding="ascii")
    assert [line.fault for line in transcripts.scan_lines(path)] == ["not JSON"]


def test_a_pipe_in_a_files_place_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.jsonl")
    with pytest.raises(NotRegular, match="plain file"):
        list(transcripts.scan_lines(tmp_path / "x.jsonl"))


def test_a_file_that_is_gone_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"x\.jsonl"):
        list(transcripts.scan_lines(tmp_path / "x.jsonl"))


@given(st.binary(max_size=400))
def test_no_bytes_stop_a_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "x.jsonl"
    path.write_bytes(data)
    tally = LineTally()
    found = list(read_transcript(path, "claude-code", tally))
    assert len(found) <= tally.lines
    assert tally.length_bytes <= len(data)


def test_types_nobody_knows_are_counted_and_bounded(tmp_path: Path) -> None:
    rows = [{"type": f"kind {place}"} for place in range(MAX_UNKNOWN_TYPES + 30)]
    tally = LineTally()
    assert list(read_transcript(write(tmp_path / "x.jsonl", *rows, rows[0]), "claude-code", tally)) == []
    assert tally.unknown["kind 0"] == 2
    assert tally.unknown[OTHER_TYPES] == 30
    assert len(tally.unknown) == MAX_UNKNOWN_TYPES + 1


def test_folders_are_searched_and_files_are_taken_as_named(tmp_path: Path) -> None:
    deep = write(tmp_path / "a" / "b" / "one.jsonl", {})
    named = write(tmp_path / "transcript.log", {})
    write(tmp_path / "a" / "notes.md", {})
    found = find_transcripts([tmp_path / "a", named, deep])
    assert {item.path for item in found.files} == {deep, named}
    assert found.unreadable == ()


def test_the_newest_file_comes_first(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{place}.jsonl", {}) for place in range(3)]
    for age, path in enumerate(paths):
        os.utime(path, ns=(0, 1_000_000_000 * (10 - age)))
    assert [item.path for item in find_transcripts([tmp_path]).files] == paths


def test_a_link_to_a_file_does_not_count_it_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "one.jsonl", {})
    (tmp_path / "two.jsonl").symlink_to(path)
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nothing")
    search = find_transcripts([tmp_path])
    assert len(search.files) == 1
    assert [item.path.name for item in search.unreadable] == ["gone.jsonl"]


def test_a_path_that_does_not_exist_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        find_transcripts([tmp_path / "nothing"])


def test_the_usual_places_follow_the_agents_own_variables(tmp_path: Path) -> None:
    claude, codex, moved = (
        tmp_path / name for name in (".claude/projects", ".codex/sessions", "moved/projects")
    )
    for folder in (claude, codex, moved):
        folder.mkdir(parents=True)
    assert list_default_folders({}, tmp_path) == (claude, codex)
    elsewhere = {"CLAUDE_CONFIG_DIR": str(tmp_path / "moved"), "CODEX_HOME": str(tmp_path / "none")}
    assert list_default_folders(elsewhere, tmp_path) == (moved,)


def test_a_call_belongs_to_the_first_file_that_holds_it_and_to_a_mirror_last(tmp_path: Path) -> None:
    def call(name: str) -> dict[str, object]:
        return {"type": "assistant", "message": {"id": name, "usage": {"input_tokens": 1}}}

    def mirror(name: str) -> dict[str, object]:
        return {"type": "progress", "data": {"type": "agent_progress", "message": call(name)}}

    files = [
        write(tmp_path / "parent.jsonl", call("msg_aaaa"), mirror("msg_subb"), mirror("msg_only")),
        write(tmp_path / "resumed.jsonl", call("msg_aaaa"), call("msg_bbbb")),
        write(tmp_path / "agent.jsonl", call("msg_subb")),
    ]
    foreign = choose_owners([scan_calls(path) for path in files])
    assert foreign == {
        0: {hash_call_id(CallId("msg_subb"))},
        1: {hash_call_id(CallId("msg_aaaa"))},
    }


def test_ids_of_tools_and_of_lines_without_usage_are_no_calls(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.jsonl",
        {"message": {"id": "msg_quiet"}},
        {"message": {"id": "msg_loud1", "content": [{"type": "tool_use", "id": "toolu_1234"}], "usage": {}}},
    )
    assert list(scan_calls(path).own) == [hash_call_id(CallId("msg_loud1"))]
