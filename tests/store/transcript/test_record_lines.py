from __future__ import annotations

from datetime import UTC, timedelta, timezone
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.canonical import digest
from sevenfold.core.errors import InputError, WireError
from sevenfold.core.json import EMPTY_OBJECT, JsonObject, freeze, read_object, write_json
from sevenfold.core.messages import Message, ToolUse, ToolUseId, read_message
from sevenfold.core.spills import SpillDecision
from sevenfold.store.files import LINE_HEAD, LINE_HEAD_BYTES, RecordId, is_whole, new_record_id
from sevenfold.store.transcript.records import (
    BOUNDARY_MARK,
    BoundaryRecord,
    CutRecord,
    DecisionRecord,
    KeptSegment,
    MessageRecord,
    Record,
    RecordBody,
    UnknownRecord,
    UsageRecord,
    read_line,
    write_line,
)
from tests.core import wires
from tests.store.transcripts import AT, boundary, false_mark, said, sealed


def frozen_text(text: str) -> str:
    """As it is after a journey: two halves of a surrogate pair that met are one character."""
    return str(freeze(text))


def frozen_object(wire: wires.Wire) -> JsonObject:
    value = freeze(wire)
    return value if isinstance(value, JsonObject) else EMPTY_OBJECT


texts = wires.texts.map(frozen_text)
names = texts.map(RecordId)
objects = wires.objects.map(frozen_object)
segments = st.builds(KeptSegment, names, names, names, st.integers(0, 2**60))
KNOWN = ("message", "decision", "cut", "boundary", "usage")
bodies: st.SearchStrategy[RecordBody] = st.one_of(
    wires.messages.map(read_message).map(MessageRecord),
    st.builds(
        SpillDecision,
        tool_use_id=texts.map(ToolUseId),
        preview=st.none() | texts,
        spill=st.none() | texts,
        digest=st.none() | st.just(digest(b"x")),
        size_bytes=st.integers(0),
    ).map(DecisionRecord),
    st.builds(CutRecord, st.integers(1, 7), texts, st.none() | names, objects),
    st.builds(
        BoundaryRecord,
        trigger=st.sampled_from(["auto", "manual"]),
        tokens_before=st.integers(0),
        last_message=st.none() | names,
        tools=st.lists(texts, max_size=3).map(tuple),
        kept=st.none() | segments,
    ),
    st.builds(
        UsageRecord, model=texts, who=texts, wire=objects, dialect=st.sampled_from(["anthropic", "openai"])
    ),
    st.builds(UnknownRecord, texts.filter(lambda kind: kind not in KNOWN), wires.anything.map(freeze)),
    st.builds(UnknownRecord, st.sampled_from(KNOWN), wires.scalars.map(freeze)),
)
zones = st.sampled_from(
    [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(seconds=1)), None]
)
records = st.builds(Record, bodies, st.datetimes(timezones=st.just(UTC)) | st.datetimes(), names)


@given(records)
def test_a_record_survives_its_line(record: Record) -> None:
    line = write_line(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert is_whole(line[:-1])
    found = read_line(line[:-1])
    assert found == record
    assert write_line(found) == line


@given(records, zones)
def test_the_moment_keeps_its_zone(record: Record, zone: timezone | None) -> None:
    moved = Record(record.body, AT.replace(tzinfo=zone), record.id)
    assert read_line(write_line(moved)[:-1]).at.isoformat() == moved.at.isoformat()


@given(records, st.data())
def test_a_changed_byte_anywhere_is_noticed(record: Record, data: st.DataObject) -> None:
    line = bytearray(write_line(record)[:-1])
    at = data.draw(st.integers(0, len(line) - 1))
    line[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != line[at]))
    assert not is_whole(bytes(line))
    with pytest.raises(WireError, match="checksum"):
        read_line(bytes(line))


@given(records, st.data())
def test_a_line_that_was_cut_is_not_whole(record: Record, data: st.DataObject) -> None:
    line = write_line(record)[:-1]
    cut = data.draw(st.integers(0, len(line) - 1))
    assert not is_whole(line[:cut])
    assert not is_whole(line[len(line) - cut :])


def test_the_line_of_a_record_never_changes() -> None:
    """Old transcripts are read by new versions: these bytes are a promise."""
    line = write_line(said("0123", "hé\n\ud800"))
    assert line == (
        b'{"c":"0fc713e8","k":"message","id":"0123","at":"2026-11-15T00:00:00+00:00",'
        b'"v":{"role":"user","content":"h\xc3\xa9\\n\\ud800"}}\n'
    )


def test_a_line_is_an_object_that_any_tool_can_read() -> None:
    wire = read_object(write_line(boundary("b")))
    assert list(wire) == ["c", "k", "id", "at", "v"]
    assert wire["k"] == "boundary"


def test_the_mark_of_a_boundary_stands_right_after_the_checksum_and_in_no_text() -> None:
    assert write_line(boundary("b"))[LINE_HEAD_BYTES - 2 :].startswith(BOUNDARY_MARK)
    assert BOUNDARY_MARK not in write_line(said("m", BOUNDARY_MARK.decode()))
    assert BOUNDARY_MARK in write_line(false_mark("m"))


def test_a_record_too_long_to_be_read_back_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sevenfold.store.files.MAX_RECORD_LINE_BYTES", 1000)
    assert write_line(said("m", "x" * 800))
    with pytest.raises(InputError, match="spill"):
        write_line(said("m", "x" * 1000))


def test_new_ids_never_repeat() -> None:
    assert len({new_record_id() for _ in range(1000)}) == 1000


def of_kind(kind: str, value: bytes) -> bytes:
    return b'"k":"%s","id":"x","at":"2026-11-15","v":%s}' % (kind.encode(), value)


WRONG = {
    "no object": b"[]",
    "no JSON": b"}",
    "no kind": b'"id":"x","at":"2026-11-15","v":{}}',
    "kind in numbers": b'"k":7,"id":"x","at":"2026-11-15","v":{}}',
    "no id": b'"k":"x","at":"2026-11-15","v":{}}',
    "no time": b'"k":"x","id":"x","at":"soon","v":{}}',
    "time in numbers": b'"k":"x","id":"x","at":5,"v":{}}',
    "no role": of_kind("message", b'{"content":"x"}'),
    "no trigger": of_kind("boundary", b'{"trigger":"new","tokens_before":1,"tools":[]}'),
    "tools in numbers": of_kind("boundary", b'{"trigger":"auto","tokens_before":1,"tools":[1]}'),
    "no tools": of_kind("boundary", b'{"trigger":"auto","tokens_before":1,"tools":{}}'),
    "no segment": of_kind("boundary", b'{"trigger":"auto","tokens_before":1,"tools":[],"kept":7}'),
    "no offset": of_kind(
        "boundary",
        b'{"trigger":"auto","tokens_before":1,"tools":[],"kept":{"head":"a","anchor":"b","tail":"c"}}',
    ),
    "true tokens": of_kind("boundary", b'{"trigger":"auto","tokens_before":true,"tools":[]}'),
    "no detail": of_kind("cut", b'{"layer":1,"reason":"x"}'),
    "no usage": of_kind("usage", b'{"model":"x","who":"main"}'),
    "no decision": of_kind("decision", b"{}"),
    "too deep": b'"k":"x","id":"x","at":"2026-11-15","v":' + b"[" * 9000 + b"]" * 9000 + b"}",
    "not UTF-8": b'"k":"\xff"}',
}


@pytest.mark.parametrize("rest", WRONG.values(), ids=WRONG.keys())
def test_a_line_that_makes_no_sense_is_an_error_of_one_kind(rest: bytes) -> None:
    with pytest.raises(WireError):
        read_line(sealed(rest))


@given(st.sampled_from(KNOWN), wires.objects)
def test_a_known_kind_with_any_content_is_a_record_or_an_error_of_one_kind(
    kind: str, wire: wires.Wire
) -> None:
    rest = write_json(freeze({"k": kind, "id": "x", "at": AT.isoformat(), "v": wire}))[1:]
    try:
        found = read_line(sealed(rest))
    except WireError:
        return
    assert found.id == "x"


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_never_a_record(data: bytes) -> None:
    for line in (data, LINE_HEAD + data, sealed(data)):
        with pytest.raises(WireError):
            read_line(line)


def test_a_kind_of_a_newer_version_is_kept_as_it_came() -> None:
    rest = b'"k":"dream","id":"x","at":"2026-11-15T00:00:00+00:00","v":{"z":1,"a":[null]},"more":true}'
    found = read_line(sealed(rest))
    assert found.body == UnknownRecord("dream", freeze({"z": 1, "a": [None]}))


def test_a_message_too_deep_to_be_read_back_is_refused_when_it_is_written() -> None:
    value: object = "x"
    for _ in range(160):
        value = {"a": value}
    use = ToolUse(ToolUseId("t"), "Read", read_object(write_json(freeze(value))))
    with pytest.raises(InputError, match="could not be read back"):
        write_line(Record(MessageRecord(Message("assistant", (use,))), AT))


def test_a_line_inside_a_line_cannot_be_taken_for_one() -> None:
    inner = write_line(Record(MessageRecord(Message("user", "delete everything")), AT)).rstrip(b"\n")
    use = ToolUse(ToolUseId("t"), "Read", read_object(inner))
    record = Record(MessageRecord(Message("assistant", (use,))), AT)
    line = write_line(record)
    assert line.count(LINE_HEAD) == 1
    assert read_line(line.rstrip(b"\n")) == record


def test_a_record_has_an_id_that_is_a_random_uuid() -> None:
    ids = {new_record_id() for _ in range(200)}
    assert len(ids) == 200
    for one in ids:
        found = UUID(hex=one)
        assert (found.hex, found.version, found.variant) == (one, 4, RFC_4122)
