"""Plain Messages JSONL, as entries."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sevenfold.core.messages import Text
from sevenfold.core.usage import Usage
from sevenfold.store.foreign.entries import (
    ForeignClearing,
    ForeignCompaction,
    ForeignEntry,
    ForeignInput,
    ForeignOutput,
    ForeignSession,
    JsonFields,
    PlainReader,
    UnknownLine,
)

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7}
OPENAI = {"input_tokens": 100, "cached_input_tokens": 90, "output_tokens": 7}


def read(*lines: JsonFields) -> list[ForeignEntry]:
    reader = PlainReader()
    return [entry for each in lines for entry in reader.read(each)]


def test_a_message_alone_is_said() -> None:
    (found,) = read({"role": "user", "content": "Hello"})
    assert isinstance(found, ForeignInput)
    assert (found.blocks, found.source, found.at) == ((Text("Hello"),), "human", None)


@pytest.mark.parametrize("where", ["beside", "meta", "wrapped"])
def test_an_answer_has_its_usage_wherever_it_stands(where: str) -> None:
    message = {"role": "assistant", "content": "Hi"}
    line: JsonFields = {
        "beside": {**message, "id": "msg_1", "model": "m", "usage": USAGE, "stop_reason": "end_turn"},
        "meta": {**message, "meta": {"model": "m", "usage": USAGE, "ts": "2026-11-03T10:00:00Z"}},
        "wrapped": {"message": {**message, "model": "m"}, "usage": USAGE, "timestamp": 1_793_700_000},
    }[where]
    (found,) = read(line)
    assert isinstance(found, ForeignOutput)
    assert found.usage == Usage(fresh=10, read=90, output=7)
    assert found.model == "m"
    assert found.call == ("msg_1" if where == "beside" else "")
    assert found.is_complete == (where == "beside")


def test_times_are_read_from_text_and_from_seconds() -> None:
    first, second = read(
        {"role": "user", "content": "a", "meta": {"ts": "2026-11-03T12:00:00+02:00"}},
        {"role": "user", "content": "b", "timestamp": 0},
    )
    assert isinstance(first, ForeignInput)
    assert isinstance(second, ForeignInput)
    assert first.at == datetime(2026, 11, 3, 10, tzinfo=UTC)
    assert second.at == datetime(1970, 1, 1, tzinfo=UTC)


def test_where_usage_counts_openais_way_answers_without_it_belong_to_the_next() -> None:
    found = read(
        {"role": "assistant", "content": "one", "meta": {"usage": OPENAI}},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "result"},
        {"role": "assistant", "content": "three", "meta": {"usage": OPENAI}},
    )
    parts = [entry for entry in found if isinstance(entry, ForeignOutput)]
    assert [part.call for part in parts] == ["call 0", "call 1", "call 1"]
    assert parts[-1].usage == Usage(fresh=10, read=90, output=7)
    assert {part.dialect for part in parts} == {"openai"}


def test_a_bill_of_nothing_is_no_bill() -> None:
    (found,) = read({"role": "assistant", "content": "x", "meta": {"usage": {"input_tokens": 0}}})
    assert isinstance(found, ForeignOutput)
    assert found.usage is None


def test_a_boundary_within_a_merged_message_divides_it() -> None:
    blocks = [{"type": "text", "text": "before"}, {"type": "text", "text": "summary"}]
    meta = {"boundary": {"kind": "compact", "pre_tokens": 157_692}, "merged_at": 1, "compact_summary": True}
    before, cut, after = read({"role": "user", "content": blocks, "meta": meta})
    assert isinstance(before, ForeignInput)
    assert before.blocks == (Text("before"),)
    assert isinstance(cut, ForeignCompaction)
    assert cut.before_tokens == 157_692
    assert isinstance(after, ForeignInput)
    assert (after.blocks, after.source) == ((Text("summary"),), "summary")


def test_a_microcompaction_comes_before_the_answer_that_shows_it() -> None:
    boundary = {"kind": "microcompact", "tokens_saved": 21_294, "cleared_tool_ids": ["toolu_1"]}
    cut, found = read({"role": "assistant", "content": "x", "meta": {"boundary": boundary, "usage": USAGE}})
    assert isinstance(cut, ForeignClearing)
    assert (cut.tool_use_ids, cut.saved_tokens) == ({"toolu_1"}, 21_294)
    assert isinstance(found, ForeignOutput)


def test_a_system_prompt_in_meta_is_said_first() -> None:
    system, said = read({"role": "user", "content": "x", "meta": {"system": "Be good.", "is_meta": True}})
    assert isinstance(system, ForeignInput)
    assert system.source == "system_prompt"
    assert isinstance(said, ForeignInput)
    assert said.source == "attachment"


def test_a_session_id_is_taken_where_there_is_one() -> None:
    assert read({"role": "user", "content": [], "session_id": "s1"}) == [ForeignSession("s1")]


def test_lines_that_are_no_messages_are_named() -> None:
    assert read({"type": "note"}, {"role": "robot", "content": "x"}, {}) == [
        UnknownLine("note"),
        UnknownLine("(no role)"),
        UnknownLine("(no role)"),
    ]
