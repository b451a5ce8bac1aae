"""Sevenfold's own transcripts, as entries."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, Text, ToolResult, ToolUseId
from sevenfold.store.files import RecordId
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    ForeignCompaction,
    ForeignEntry,
    ForeignInput,
    ForeignOutput,
    UnknownLine,
)
from sevenfold.store.foreign.own import OwnReader
from sevenfold.store.foreign.transcripts import detect_agent, find_own_transcripts
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    InjectedRecord,
    MessageRecord,
    Record,
    RecordBody,
    SentRecord,
    UsageRecord,
    write_line,
)

AT = datetime(2026, 11, 3, 10, tzinfo=UTC)
WIRE = {"input_tokens": 5, "cache_read_input_tokens": 900, "output_tokens": 2}


def usage(who: str) -> UsageRecord:
    return UsageRecord(model="claude-opus-5-5", who=who, wire=JsonObject(WIRE))


def lines(*bodies: RecordBody) -> list[bytes]:
    return [write_line(Record(body, AT, RecordId(f"r{place}"))) for place, body in enumerate(bodies)]


def entries(*bodies: RecordBody) -> list[ForeignEntry]:
    reader = OwnReader()
    return [entry for line in lines(*bodies) for entry in reader.read(json.loads(line))]


def test_an_answer_has_the_usage_that_stands_before_it() -> None:
    said, answered = entries(
        MessageRecord(Message("user", "Hello")),
        SentRecord(model="claude-opus-5-5", who="main"),
        usage("main"),
        MessageRecord(Message("assistant", "Hi")),
    )
    assert isinstance(said, ForeignInput)
    assert (said.role, said.source, said.blocks, said.at) == ("user", "human", (Text("Hello"),), AT)
    assert isinstance(answered, ForeignOutput)
    assert answered.usage is not None
    assert (answered.usage.read, answered.model, answered.call) == (900, "claude-opus-5-5", "r2")
    assert answered.conversation == MAIN_CONVERSATION


def test_a_usage_line_bills_one_answer() -> None:
    answers = entries(
        usage("main"),
        MessageRecord(Message("assistant", "Hi")),
        MessageRecord(Message("assistant", "Again")),
    )
    assert [isinstance(item, ForeignOutput) and item.usage is not None for item in answers] == [True, False]


def test_a_forks_call_is_a_conversation_of_its_own() -> None:
    (call,) = entries(usage("extraction"))
    assert isinstance(call, ForeignOutput)
    assert (call.conversation, call.blocks) == ("extraction", ())
    assert call.usage is not None


def test_what_the_engine_put_in_was_not_said_by_a_person() -> None:
    found = entries(
        MessageRecord(Message("system", "Today's date: 2026-11-03")),
        InjectedRecord(Message("user", "A memory"), "memory"),
        InjectedRecord(Message("user", "A summary"), "summary"),
    )
    assert [item.source for item in found if isinstance(item, ForeignInput)] == [
        "attachment",
        "memory",
        "summary",
    ]


def test_a_boundary_is_a_compaction() -> None:
    (found,) = entries(BoundaryRecord(trigger="auto", tokens_before=150_000, last_message=None))
    assert isinstance(found, ForeignCompaction)
    assert found.before_tokens == 150_000


def test_tool_results_and_unknown_kinds() -> None:
    (result,) = entries(MessageRecord(Message("user", (ToolResult(ToolUseId("t1"), "ok"),))))
    assert isinstance(result, ForeignInput)
    assert list(OwnReader().read({"k": "later", "v": {}})) == [UnknownLine("later")]


def test_own_transcripts_are_found_and_told_from_others(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "app-1" / "sessions"
    folder.mkdir(parents=True)
    transcript = folder / "s1.jsonl"
    transcript.write_bytes(b"".join(lines(MessageRecord(Message("user", "Hello")))))
    control = tmp_path / "projects" / "app-1" / "control"
    control.mkdir()
    (control / "log.jsonl").write_text("{}\n")
    assert [item.path for item in find_own_transcripts(tmp_path).files] == [transcript]
    assert detect_agent(transcript) == "sevenfold"


def test_a_call_whose_answer_was_never_written_keeps_its_bill() -> None:
    lost, answered = entries(
        usage("main"),
        SentRecord(model="claude-opus-5-5", who="main"),
        usage("main"),
        MessageRecord(Message("assistant", "Hi")),
    )
    assert isinstance(lost, ForeignOutput)
    assert isinstance(answered, ForeignOutput)
    assert lost.usage is not None
    assert (lost.conversation, lost.blocks, lost.call) == (MAIN_CONVERSATION, (), "r0")
    assert answered.call == "r2"
