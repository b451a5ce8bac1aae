"""Reading a transcript: all of it in a stream, or from the last boundary without touching what is before it.

A line that fails its check is left in place, reported and never read as a record; the lines around it count.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from sevenfold.core.errors import WireError
from sevenfold.core.events import Emit, LineQuarantined, ignore_event
from sevenfold.core.os_errors import map_os_errors
from sevenfold.store.files.disk import READ_FLAGS, Disk, read_fully
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.boundary_search import CHUNK_BYTES, LineBuffer, find_resume_point
from sevenfold.store.transcript.record_lines import LINE_HEAD, LINE_HEAD_BYTES, is_whole, read_line
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    CutRecord,
    DecisionRecord,
    InjectedRecord,
    KeptSegment,
    MessageRecord,
    Record,
    RecordId,
    UnknownRecord,
    UsageRecord,
)

_START = re.compile(rb'\{"c":"[0-9a-f]{8}","k":"')
_MAX_PASSES = 16
_LEAST_SEARCH_BYTES = 4 * 1024 * 1024
_MAX_STARTS = 10_000
"""How often a bad line may be gone through in search of a whole one at its end, and how many places in it are
tried: more than chance puts there, and a bound on what hostile content can cost."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record and where its line starts."""

    record: Record
    offset: int


@dataclass(frozen=True, slots=True)
class BadLine:
    offset: int
    length_bytes: int
    reason: str


TranscriptLine: TypeAlias = StoredRecord | BadLine

_KEPT = (MessageRecord, InjectedRecord, DecisionRecord, CutRecord, UsageRecord, UnknownRecord)
"""All but boundaries: one that stands among kept messages has been overtaken."""

UNFINISHED_LINE = "the file ends in mid-line"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedSession:
    """All that a session needs to go on. A boundary that was written twice counts where it stands first."""

    boundary: StoredRecord | None
    kept: tuple[StoredRecord, ...]
    """What the boundary kept from before itself."""
    records: tuple[StoredRecord, ...]
    """Everything after the boundary, in file order, each id once."""
    bad: tuple[BadLine, ...]
    repeated: int
    """Records that stood there twice and were read once."""


def scan_transcript(
    folder: Folder, session: str, *, start: int = 0, end: int | None = None, kinds: tuple[str, ...] = ()
) -> Iterator[TranscriptLine]:
    """Every line from `start`, which must be where a line starts, up to `end`.

    With `kinds`, records of other kinds are passed over without being read or checked, which is much faster.
    """
    heads = tuple(b'"k":"%s"' % kind.encode() for kind in kinds)
    with folder.opened(f"{session}.jsonl", READ_FLAGS) as fd, map_os_errors(f"read transcript {session}"):
        yield from _lines(folder.disk, fd, start, end, heads)


def resume(folder: Folder, session: str, *, emit: Emit = ignore_event) -> ResumedSession:
    """The session from its last boundary on. The work grows with what is after it, not before."""
    key = f"{session}.jsonl"
    with folder.opened(key, READ_FLAGS) as fd, map_os_errors(f"read transcript {session}"):
        start = find_resume_point(folder.disk, fd)
        found = _Gathered(boundaries=set(start.older))
        for line in _lines(folder.disk, fd, start.offset, None):
            found.take(line)
        kept: tuple[StoredRecord, ...] = ()
        if found.boundary and isinstance(found.boundary.record.body, BoundaryRecord):
            segment = found.boundary.record.body.kept
            if segment:
                kept = _read_kept(folder.disk, fd, segment, found)
    for bad in found.bad:
        emit(LineQuarantined(f"{folder.path}/{key}", bad.offset, bad.length_bytes, bad.reason))
    return ResumedSession(
        boundary=found.boundary,
        kept=kept,
        records=tuple(found.records),
        bad=tuple(found.bad),
        repeated=found.repeated,
    )


@dataclass(slots=True, kw_only=True)
class _Gathered:
    boundary: StoredRecord | None = None
    records: list[StoredRecord] = field(default_factory=list[StoredRecord])
    bad: list[BadLine] = field(default_factory=list[BadLine])
    repeated: int = 0
    seen: set[RecordId] = field(default_factory=set[RecordId])
    boundaries: set[RecordId] = field(default_factory=set[RecordId])
    """Met by now. Another copy of one says nothing new, also where a later one stands between."""

    def take(self, line: TranscriptLine) -> None:
        if isinstance(line, BadLine):
            self.bad.append(line)
        elif line.record.id in self.boundaries:
            self.repeated += 1
        elif isinstance(line.record.body, BoundaryRecord):
            # Counting starts again here, so that it does not matter how far before it the reading began.
            self.boundary = line
            self.records.clear()
            self.seen = {line.record.id}
            self.boundaries.add(line.record.id)
            self.repeated = 0
        else:
            self.keep(line)

    def keep(self, line: StoredRecord) -> None:
        if line.record.id in self.seen:
            self.repeated += 1
        else:
            self.seen.add(line.record.id)
            self.records.append(line)


def _read_kept(disk: Disk, fd: int, segment: KeptSegment, found: _Gathered) -> tuple[StoredRecord, ...]:
    """The kept messages by the boundary's pointer, or by a search from the start where it points nowhere."""
    end = found.boundary.offset if found.boundary else None
    pointed = [segment.offset] if _starts_line(disk, fd, segment.offset, end) else []
    for start in (*pointed, 0):
        kept = _gather_kept(_lines(disk, fd, start, end), segment)
        if kept.records:
            found.bad[:0] = kept.bad
            found.repeated += kept.repeated
            return tuple(kept.records)
    found.bad.append(BadLine(segment.offset, 0, "the messages kept by the boundary are not there"))
    return ()


def _gather_kept(lines: Iterator[TranscriptLine], segment: KeptSegment) -> _Gathered:
    """From the head to the tail; where the tail is damaged, all that follows: rather more than less.

    Decisions and cuts count beyond the tail too: they are written after the messages that they are about.
    """
    kept = _Gathered()
    started = ended = False
    for line in lines:
        if isinstance(line, BadLine):
            # Where the head should be it is the head, damaged; what follows is still there.
            started = started or line.offset == segment.offset
            kept.bad += [line] if started and not ended else []
            continue
        started = started or line.record.id == segment.head
        wanted = (DecisionRecord, CutRecord) if ended else _KEPT
        if started and isinstance(line.record.body, wanted):
            kept.keep(line)
        ended = ended or (started and line.record.id == segment.tail)
    return kept


def _starts_line(disk: Disk, fd: int, offset: int, end: int | None) -> bool:
    if offset <= 0 or (end is not None and offset >= end):
        return offset == 0
    return read_fully(disk, fd, 1, offset - 1) == b"\n"


def _lines(
    disk: Disk, fd: int, start: int, end: int | None, heads: tuple[bytes, ...] = ()
) -> Iterator[TranscriptLine]:
    stop = disk.stat(fd).st_size if end is None else end
    offset = start
    line = LineBuffer()
    while start < stop:
        chunk = read_fully(disk, fd, min(CHUNK_BYTES, stop - start), start)
        if not chunk:
            break
        start += len(chunk)
        *parts, rest = chunk.split(b"\n")
        for part in parts:
            line.add(part)
            if not heads or not _is_other(line, heads):
                yield from _read(line, offset, closed=True)
            offset += line.length + 1
            line = LineBuffer()
        line.add(rest)
    if line.length:
        yield from _read(line, offset, closed=False)


def _is_other(line: LineBuffer, heads: tuple[bytes, ...]) -> bool:
    """Whether a line is of a kind that nobody asked for, by its beginning."""
    text = b"" if line.is_too_long else line.text()
    return text.startswith(LINE_HEAD) and not text.startswith(heads, LINE_HEAD_BYTES)


def _read(line: LineBuffer, offset: int, *, closed: bool) -> Iterator[TranscriptLine]:
    """What a line holds. One that lacks its newline counts if it is whole: the next writer will close it."""
    length = line.length + closed
    if line.is_too_long:
        yield BadLine(offset, length, "it is too long" if closed else UNFINISHED_LINE)
        return
    text = line.text()
    try:
        yield StoredRecord(read_line(text), offset)
    except WireError as error:
        reason = str(error) if closed else UNFINISHED_LINE
        glued = _glued(text)
        if glued is None:
            yield BadLine(offset, length, reason)
        else:
            yield BadLine(offset, glued.offset, reason)
            yield StoredRecord(glued.record, offset + glued.offset)


def _glued(line: bytes) -> StoredRecord | None:
    """The whole line at the end of a bad one: one that was glued to a fragment that nobody closed off."""
    if line.rfind(LINE_HEAD) <= 0:
        return None
    budget = max(_MAX_PASSES * len(line), _LEAST_SEARCH_BYTES)
    starts = deque((match.start() for match in _START.finditer(line, 1)), maxlen=_MAX_STARTS)
    # The last first: a fragment may be anything, while a whole line seldom holds what looks like a start.
    for start in reversed(starts):
        budget -= len(line) - start
        if budget < 0:
            break
        if is_whole(line, start):
            with suppress(WireError):
                return StoredRecord(read_line(line[start:]), start)
    return None
