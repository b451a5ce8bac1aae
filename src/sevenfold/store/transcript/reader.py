"""Reading a transcript: all of it in a stream, or from the last boundary without touching what is before it.

`find_resume_point` finds the last boundary backwards, by its bytes. A line that fails its check is left in
place, reported and never read as a record; the lines around it count.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from sevenfold.core import events
from sevenfold.core.errors import WireError
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.json import write_json
from sevenfold.core.system import map_os_errors
from sevenfold.store.files import LINE_HEAD, LINE_HEAD_BYTES, MAX_RECORD_LINE_BYTES, RecordId, is_whole
from sevenfold.store.files.disk import READ_FLAGS, Disk, read_fully
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.records import (
    BOUNDARY_MARK,
    MESSAGE_MARK,
    BoundaryRecord,
    CutRecord,
    DecisionRecord,
    InjectedRecord,
    KeptSegment,
    MessageRecord,
    Record,
    SentRecord,
    UnknownRecord,
    UsageRecord,
    read_line,
)

# A boundary may be written twice, when the first try was in doubt. The first copy counts, because what other
# writers added between the two came after it.

CHUNK_BYTES = 1024 * 1024
"""Large enough that a read's own cost vanishes, small enough to be no memory to speak of."""

LOOK_BACK_BYTES = 16 * 1024 * 1024
"""How far before a boundary another copy of it is looked for, where the message it was made after is not met
first. The second copy is written seconds after the first; nobody writes a thousand rounds meanwhile."""

_MAX_JOINED = 100
"""Copies that are joined to a fragment, which no writer of ours leaves: how many places are tried as one.
Each costs the rest of its line, and hostile content can look like many."""

_LONGEST = MAX_RECORD_LINE_BYTES + LINE_HEAD_BYTES
_BEFORE_MARK = LINE_HEAD_BYTES - 2


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where reading starts, and which boundaries stand before it and may be met again after it."""

    offset: int = 0
    older: frozenset[RecordId] = frozenset()


class LineBuffer:
    """A line as it is read, part by part. Beyond the longest of ours, only its length is kept."""

    def __init__(self) -> None:
        self.length = 0
        self._parts: list[bytes] = []

    @property
    def is_too_long(self) -> bool:
        return self.length > _LONGEST

    def add(self, part: bytes) -> None:
        self.length += len(part)
        self._parts.append(part)
        if self.is_too_long:
            self._parts.clear()

    def text(self) -> bytes:
        return b"".join(self._parts)


@dataclass(frozen=True, slots=True)
class _Place:
    offset: int
    begun: bytes
    """As much of the line as was read on the way."""
    starts_line: bool = True


@dataclass(frozen=True, slots=True)
class _Boundary:
    offset: int
    record: Record


def find_resume_point(disk: Disk, fd: int, end: int | None = None) -> ResumePoint:
    """The first place of the last boundary, or of the last before `end`; the file's start without one."""
    size = disk.stat(fd).st_size if end is None else end
    # One that is joined to a fragment after it is met when reading on from there.
    last = next(_boundaries(disk, fd, size, 0, max_joined=0), None)
    if last is None:
        return ResumePoint()
    found = [last]
    floor = _floor(disk, fd, last)
    while earlier := next(_boundaries(disk, fd, found[-1].offset, floor, _MAX_JOINED), None):
        if any(earlier.record.id == copy.record.id for copy in found):
            floor = min(floor, _floor(disk, fd, earlier))
        found.append(earlier)
    first: dict[RecordId, int] = {}
    for boundary in reversed(found):
        first.setdefault(boundary.record.id, boundary.offset)
    *older, newest = first
    return ResumePoint(first[newest], frozenset(older))


def _floor(disk: Disk, fd: int, boundary: _Boundary) -> int:
    """Before this no other copy of a boundary is looked for: it was made after its last message was there."""
    body = boundary.record.body
    lowest = max(0, boundary.offset - LOOK_BACK_BYTES)
    if not isinstance(body, BoundaryRecord) or body.last_message is None:
        return lowest
    # It stands right before, as a rule. Looking any further for it would cost as much as it can save.
    near = max(lowest, boundary.offset - CHUNK_BYTES)
    mark = MESSAGE_MARK + b'"id":' + write_json(body.last_message) + b","
    lines = (place for place in _marked(disk, fd, mark, boundary.offset, near) if place.starts_line)
    place = next(lines, None)
    return place.offset if place else lowest


def _boundaries(disk: Disk, fd: int, end: int, floor: int, max_joined: int) -> Iterator[_Boundary]:
    for place in _marked(disk, fd, BOUNDARY_MARK, end, floor):
        if not place.starts_line:
            max_joined -= 1
            if max_joined < 0:
                continue
        record = _read_boundary(disk, fd, place)
        if record:
            yield _Boundary(place.offset, record)


def _marked(disk: Disk, fd: int, mark: bytes, end: int, floor: int) -> Iterator[_Place]:
    """Where between `floor` and `end` something stands with these bytes after its checksum, last first."""
    size = end
    while end > floor:
        start = max(floor, end - CHUNK_BYTES)
        # As much before as a line has before its mark, and a newline; as much after as a mark may reach over.
        first = max(0, start - _BEFORE_MARK - 1)
        chunk = read_fully(disk, fd, min(size, end + len(mark) - 1) - first, first)
        at = chunk.rfind(mark)
        while at >= 0:
            line = at - _BEFORE_MARK
            if line >= 0 and chunk.startswith(LINE_HEAD, line):
                starts_line = chunk[line - 1 : line] == b"\n" if line > 0 else first == 0
                stop = chunk.find(b"\n", at) + 1 or len(chunk)
                yield _Place(first + line, chunk[line:stop], starts_line)
            at = chunk.rfind(mark, 0, at + len(mark) - 1)
        end = start


def _read_boundary(disk: Disk, fd: int, place: _Place) -> Record | None:
    """The boundary that starts there, if it is whole."""
    line, more = LineBuffer(), place.begun
    while more and b"\n" not in more and not line.is_too_long:
        line.add(more)
        more = read_fully(disk, fd, CHUNK_BYTES, place.offset + line.length)
    line.add(more.partition(b"\n")[0])
    try:
        record = read_line(line.text()) if is_whole(line.text()) else None
    except WireError:
        return None  # a newer version's, which this one cannot read
    return record if record and isinstance(record.body, BoundaryRecord) else None


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

_KEPT = (
    *(MessageRecord, InjectedRecord, DecisionRecord, CutRecord),
    *(UsageRecord, SentRecord, UnknownRecord),
)
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


def resume(
    folder: Folder, session: str, *, end: int | None = None, emit: Emit = ignore_event
) -> ResumedSession:
    """The session from its last boundary on. The work grows with what is after it, not before.

    With `end`, which must be where a line starts: the session as it was when the transcript ended there.
    """
    key = f"{session}.jsonl"
    with folder.opened(key, READ_FLAGS) as fd, map_os_errors(f"read transcript {session}"):
        start = find_resume_point(folder.disk, fd, end)
        found = _Gathered(boundaries=set(start.older))
        for line in _lines(folder.disk, fd, start.offset, end):
            found.take(line)
        kept: tuple[StoredRecord, ...] = ()
        if found.boundary and isinstance(found.boundary.record.body, BoundaryRecord):
            segment = found.boundary.record.body.kept
            if segment:
                kept = _read_kept(folder.disk, fd, segment, found)
    for bad in found.bad:
        emit(events.LineQuarantined(f"{folder.path}/{key}", bad.offset, bad.length_bytes, bad.reason))
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
        whole = _whole_line_at_end(text)
        if whole is None:
            yield BadLine(offset, length, reason)
        else:
            yield BadLine(offset, whole.offset, reason)
            yield StoredRecord(whole.record, offset + whole.offset)


def _whole_line_at_end(line: bytes) -> StoredRecord | None:
    """The whole line at the end of a bad one: one that was joined to a fragment that nobody closed off."""
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
