"""Records, lines and transcripts for tests, and a reader so plain that it must be right."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sevenfold.core.errors import WireError
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolUse, ToolUseId
from sevenfold.store.files import LINE_HEAD, RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import (
    ResumedSession,
    StoredRecord,
    TranscriptLine,
    resume,
    scan_transcript,
)
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    KeptSegment,
    MessageRecord,
    Record,
    read_line,
    write_line,
)

AT = datetime(2026, 11, 15, tzinfo=UTC)
SESSION = "s1"
FILE = f"{SESSION}.jsonl"


def said(name: str, text: str = "hello") -> Record:
    return Record(MessageRecord(Message("user", text)), AT, RecordId(name))


def boundary(name: str, kept: KeptSegment | None = None, last: str | None = None) -> Record:
    return Record(
        BoundaryRecord(
            trigger="auto",
            tokens_before=1000,
            last_message=None if last is None else RecordId(last),
            tools=(),
            kept=kept,
        ),
        AT,
        RecordId(name),
    )


def segment(head: str, tail: str, offset: int) -> KeptSegment:
    """Messages that a boundary keeps, by name and place."""
    return KeptSegment(RecordId(head), RecordId("summary"), RecordId(tail), offset)


def spoilt(record: Record) -> bytes:
    """Its line with two letters changed, which its checksum does not fit any more."""
    return write_line(record).replace(b"hello", b"hullo")


def false_mark(name: str, times: int = 1) -> Record:
    """A tool's input that holds, as an object, the very bytes that a boundary is looked for by."""
    inner = JsonObject({"c": "12345678", "k": "boundary", "id": "x"})
    call = ToolUse(
        ToolUseId("t"), "Write", JsonObject({"c": "12345678", "k": "boundary", "x": (inner,) * times})
    )
    return Record(MessageRecord(Message("assistant", (call,))), AT, RecordId(name))


def sealed(rest: bytes) -> bytes:
    """A line, without its newline, whose checksum fits whatever it says."""
    return LINE_HEAD + b"%08x" % zlib.crc32(rest) + b'",' + rest


def write_raw(folder: Folder, *parts: bytes | Record) -> bytes:
    """A transcript of exactly these lines and bytes."""
    data = b"".join(write_line(part) if isinstance(part, Record) else part for part in parts)
    (folder.path / FILE).write_bytes(data)
    return data


def resumed(sessions: Folder, *parts: bytes | Record) -> ResumedSession:
    write_raw(sessions, *parts)
    return resume(sessions, SESSION)


def ids(lines: Sequence[StoredRecord]) -> list[str]:
    return [line.record.id for line in lines]


def scanned(folder: Folder) -> list[TranscriptLine]:
    return list(scan_transcript(folder, SESSION))


def stored(folder: Folder) -> list[StoredRecord]:
    return [line for line in scanned(folder) if isinstance(line, StoredRecord)]


@dataclass(frozen=True, slots=True)
class Naive:
    boundary: StoredRecord | None
    kept: tuple[StoredRecord, ...]
    records: tuple[StoredRecord, ...]


def read_naively(data: bytes) -> list[StoredRecord]:
    """Every record in a file: split it, and try every place in a piece as the start of a line."""
    found: list[StoredRecord] = []
    offset = 0
    for piece in data.split(b"\n"):
        for start in range(len(piece)):
            if not piece.startswith(LINE_HEAD, start):
                continue
            try:
                found.append(StoredRecord(read_line(piece[start:]), offset + start))
                break
            except WireError:
                continue
        offset += len(piece) + 1
    return found


def resume_naively(data: bytes) -> Naive:
    """The same session, by reading all of it."""
    lines = read_naively(data)
    first: dict[RecordId, int] = {}
    for n, line in enumerate(lines):
        if isinstance(line.record.body, BoundaryRecord):
            first.setdefault(line.record.id, n)
    at = max(first.values(), default=-1)
    last = lines[at] if at >= 0 else None
    segment = last.record.body.kept if last and isinstance(last.record.body, BoundaryRecord) else None
    return Naive(
        last,
        _kept_naively(data, lines[: max(at, 0)], segment),
        _once([line for line in lines[at + 1 :] if line.record.id not in first]),
    )


def _kept_naively(
    data: bytes, before: Sequence[StoredRecord], segment: KeptSegment | None
) -> tuple[StoredRecord, ...]:
    if segment is None:
        return ()
    names = ids(before)
    starts = [n for n, name in enumerate(names) if name == segment.head]
    if not starts:
        return ()
    # Of two copies the pointer says which, if it points at a line.
    pointed = [n for n in starts if before[n].offset >= segment.offset]
    points = segment.offset == 0 or data[segment.offset - 1 : segment.offset] == b"\n"
    start = (pointed if points and pointed else starts)[0]
    end = names.index(segment.tail, start) + 1 if segment.tail in names[start:] else len(names)
    return _once([line for line in before[start:end] if not isinstance(line.record.body, BoundaryRecord)])


def _once(lines: Sequence[StoredRecord]) -> tuple[StoredRecord, ...]:
    first: dict[RecordId, StoredRecord] = {}
    for line in lines:
        first.setdefault(line.record.id, line)
    return tuple(first.values())
