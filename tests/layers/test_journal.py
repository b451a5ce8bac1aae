"""The journal of a session: written in order, tried again after a failure, and never a reason to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import (
    DiskFull,
    InputError,
)
from sevenfold.core.events import Event, TranscriptFailed
from sevenfold.core.messages import Message
from sevenfold.layers.conversation_state import DiskJournal, NoJournal
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import MessageRecord, Record
from sevenfold.store.transcript.transcript import RecordPosition, Transcript


def said(text: str) -> MessageRecord:
    return MessageRecord(Message("user", text))


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Folder]:
    with Folder.open(tmp_path / "sessions", create=True) as folder:
        yield folder


def journal_in(folder: Folder, events: list[Event]) -> DiskJournal:
    return DiskJournal(folder, "one", ManualClock(), events.append)


def stored(folder: Folder) -> list[StoredRecord]:
    if "one.jsonl" not in folder.names():
        return []
    return [item for item in scan_transcript(folder, "one") if isinstance(item, StoredRecord)]


@pytest.fixture
def events() -> list[Event]:
    return []


def test_what_is_added_is_on_the_disk_after_a_flush_in_order(folder: Folder, events: list[Event]) -> None:
    journal = journal_in(folder, events)
    first, second = journal.add(said("a")), journal.add(said("b"), RecordId("named"))
    assert (journal.waiting, second) == (2, "named")
    assert journal.offset(first) == 0
    assert stored(folder) == []
    asyncio.run(journal.flush())
    assert journal.waiting == 0
    third = journal.add(said("c"))
    asyncio.run(journal.close())
    found = stored(folder)
    assert [item.record.id for item in found] == [first, second, third]
    assert [item.record.body for item in found] == [said("a"), said("b"), said("c")]
    assert {item.record.at for item in found} == {ManualClock().now()}
    assert [journal.offset(item.record.id) for item in found] == [item.offset for item in found]
    assert Path(journal.path).read_bytes().count(b"\n") >= 3
    assert events == []


def test_a_flush_of_nothing_makes_no_file(folder: Folder, events: list[Event]) -> None:
    journal = journal_in(folder, events)
    asyncio.run(journal.flush())
    asyncio.run(journal.close())
    assert not Path(journal.path).exists()
    journal.note_offset(RecordId("read"), 42)
    assert journal.offset(RecordId("read")) == 42


def test_what_could_not_be_written_is_told_and_written_with_the_next(
    folder: Folder, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_in(folder, events)
    journal.add(said("a"))
    asyncio.run(journal.flush())
    closed: list[Transcript] = []
    with monkeypatch.context() as broken:
        shut = Transcript.close

        def close(self: Transcript) -> None:
            closed.append(self)
            shut(self)

        def refuse(self: Transcript, records: object) -> list[object]:
            raise DiskFull("no space is left")

        broken.setattr(Transcript, "append_all", refuse)
        broken.setattr(Transcript, "close", close)
        journal.add(said("b"))
        asyncio.run(journal.flush())
    assert journal.waiting == 1
    assert len(closed) == 1, "after a failure the handle proves nothing"
    assert [(type(event), event.waiting) for event in events if isinstance(event, TranscriptFailed)] == [
        (TranscriptFailed, 1)
    ]
    asyncio.run(journal.close())
    assert [item.record.body for item in stored(folder)] == [said("a"), said("b")]


def test_a_record_that_no_line_holds_is_left_out_and_told_and_the_others_are_written(
    folder: Folder, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_in(folder, events)
    ids = [journal.add(said(text)) for text in ("a", "too long", "c")]
    real = Transcript.append_all

    def append_all(
        self: Transcript, records: Sequence[Record], *, durable: bool = True
    ) -> list[RecordPosition]:
        if any(record.body == said("too long") for record in records):
            raise InputError("a line of 2 GB")
        return real(self, records, durable=durable)

    monkeypatch.setattr(Transcript, "append_all", append_all)
    asyncio.run(journal.close())
    found = stored(folder)
    assert [item.record.id for item in found] == [ids[0], ids[2]]
    assert [journal.offset(id_) for id_ in ids] == [found[0].offset, 0, found[1].offset]
    assert journal.waiting == 0
    assert events == [TranscriptFailed(journal.path, 1, "a line of 2 GB; it is left out")]


def test_a_session_without_a_disk_keeps_nothing() -> None:
    journal = NoJournal()
    assert journal.add(said("a"), RecordId("named")) == "named"
    assert journal.add(said("a")) != journal.add(said("a"))
    assert (journal.path, journal.waiting, journal.offset(RecordId("named"))) == ("", 0, 0)
    asyncio.run(journal.flush())
    asyncio.run(journal.close())
