"""Reading a transcript: all of it in a stream, or from the last boundary without touching what is before it.

A line that fails its check is left in place, reported and never read as a record; the lines around it count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from sevenfold.core.errors import WireError
from sevenfold.core.events import Emit, LineQuarantined, ignore
from sevenfold.store.disk import READ_FLAGS, Disk, mapped_errors, read_all
from sevenfold.store.folder import Folder
from sevenfold.store.record_lines import (
    BOUNDARY_MARK,
    HEAD,
    HEAD_BYTES,
    MAX_LINE_BYTES,
    is_boundary,
    is_whole,
    read_line,
)
from sevenfold.store.records import BoundaryRecord, Record, RecordId, Segment

CHUNK_BYTES = 1024 * 1024
"""Large enough that a read's own cost vanishes, small enough to be no memory to speak of."""

_LONGEST = MAX_LINE_BYTES + HEAD_BYTES
_START = re.compile(rb'\{"c":"[0-9a-f]{8}","k":"')
_MAX_STARTS = 64
"""How many places in a bad line are tried as the start of a whole one; each costs a checksum of the rest."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record and where its line starts."""

    record: Record
    offset: int


@dataclass(frozen=True, slots=True)
class BadLine:
    offset: int
    length_bytes: int
    reason: str


Line: TypeAlias = Stored | BadLine

UNFINISHED = "the file ends in mid-line"


@dataclass(frozen=True, slots=True)
class Resumed:
    """All that a session needs to go on."""

    boundary: Stored | None
    kept: tuple[Stored, ...]
    """What the boundary kept from before itself."""
    records: tuple[Stored, ...]
    """Everything after the boundary, in file order, each id once."""
    bad: tuple[BadLine, ...]
    repeated: int
    """Records that stood there twice and were read once."""


def scan(folder: Folder, session: str, *, start: int = 0, end: int | None = None) -> Iterator[Line]:
    """Every line from `start`, which must be where a line starts, up to `end`."""
    with folder.opened(f"{session}.jsonl", READ_FLAGS) as fd, mapped_errors(f"read transcript {session}"):
        yield from _lines(folder.disk, fd, start, end)


def resume(folder: Folder, session: str, *, emit: Emit = ignore) -> Resumed:
    """The session from its last boundary on. The work grows with what is after it, not before."""
    key = f"{session}.jsonl"
    with folder.opened(key, READ_FLAGS) as fd, mapped_errors(f"read transcript {session}"):
        start = _last_boundary(folder.disk, fd)
        found = _Gathered()
        for line in _lines(folder.disk, fd, start, None):
            found.take(line)
        kept: tuple[Stored, ...] = ()
        if found.boundary and isinstance(found.boundary.record.body, BoundaryRecord):
            segment = found.boundary.record.body.kept
            if segment:
                kept = _read_kept(folder.disk, fd, segment, found)
    for bad in found.bad:
        emit(LineQuarantined(key, bad.offset, bad.length_bytes, bad.reason))
    return Resumed(found.boundary, kept, tuple(found.records), tuple(found.bad), found.repeated)


@dataclass(slots=True)
class _Gathered:
    boundary: Stored | None = None
    records: list[Stored] = field(default_factory=list[Stored])
    bad: list[BadLine] = field(default_factory=list[BadLine])
    repeated: int = 0
    seen: set[RecordId] = field(default_factory=set[RecordId])

    def take(self, line: Line) -> None:
        if isinstance(line, BadLine):
            self.bad.append(line)
        elif line.record.id in self.seen:
            self.repeated += 1
        elif isinstance(line.record.body, BoundaryRecord):
            self.seen.add(line.record.id)
            self.boundary = line
            self.records.clear()
        else:
            self.seen.add(line.record.id)
            self.records.append(line)


def _read_kept(disk: Disk, fd: int, segment: Segment, found: _Gathered) -> tuple[Stored, ...]:
    """The kept messages by the boundary's pointer, or by a search from the start where it points nowhere."""
    end = found.boundary.offset if found.boundary else None
    for start in (segment.offset, 0):
        kept = _Gathered()
        for line in _from_head(_lines(disk, fd, start, end), segment.head):
            kept.take(line)
            if isinstance(line, Stored) and line.record.id == segment.tail:
                found.bad[:0] = kept.bad
                found.repeated += kept.repeated
                return tuple(kept.records)
    found.bad.append(BadLine(segment.offset, 0, "the messages kept by the boundary are not there"))
    return ()


def _from_head(lines: Iterator[Line], head: RecordId) -> Iterator[Line]:
    started = False
    for line in lines:
        started = started or (isinstance(line, Stored) and line.record.id == head)
        if started:
            yield line


def _last_boundary(disk: Disk, fd: int) -> int:
    """Where the last whole boundary's line starts, searching backwards; 0 where there is none."""
    size = disk.stat(fd).st_size
    overlap = HEAD_BYTES + len(BOUNDARY_MARK)
    end = size
    while end > 0:
        start = max(0, end - CHUNK_BYTES)
        # One byte before, to see whether a line starts here; some after, for a mark across two chunks.
        first = max(0, start - HEAD_BYTES)
        chunk = read_all(disk, fd, min(size, end + overlap) - first, first)
        at = chunk.rfind(BOUNDARY_MARK)
        while at >= 0:
            offset = first + at - (HEAD_BYTES - 2)
            if offset >= 0 and _is_boundary_line(disk, fd, offset):
                return offset
            at = chunk.rfind(BOUNDARY_MARK, 0, at)
        end = start
    return 0


def _is_boundary_line(disk: Disk, fd: int, offset: int) -> bool:
    if offset > 0 and read_all(disk, fd, 1, offset - 1) != b"\n":
        return False
    line = bytearray()
    while b"\n" not in line[-CHUNK_BYTES:] and len(line) <= _LONGEST:
        part = read_all(disk, fd, CHUNK_BYTES, offset + len(line))
        if not part:
            return False
        line += part
    whole = bytes(line.partition(b"\n")[0])
    return is_boundary(whole) and is_whole(whole)


def _lines(disk: Disk, fd: int, start: int, end: int | None) -> Iterator[Line]:
    stop = disk.stat(fd).st_size if end is None else end
    buffer = b""
    offset = start
    dropped = 0
    while start < stop:
        chunk = read_all(disk, fd, min(CHUNK_BYTES, stop - start), start)
        if not chunk:
            break
        start += len(chunk)
        *whole, buffer = (buffer + chunk).split(b"\n")
        for line in whole:
            length = dropped + len(line) + 1
            yield from [BadLine(offset, length, "it is too long")] if dropped else _read(line, offset)
            offset += length
            dropped = 0
        if len(buffer) > _LONGEST:
            # Nothing of ours is this long: remember that there is something, not what.
            dropped += len(buffer)
            buffer = b""
    if buffer or dropped:
        yield BadLine(offset, dropped + len(buffer), UNFINISHED)


def _read(line: bytes, offset: int) -> Iterator[Line]:
    try:
        yield Stored(read_line(line), offset)
    except WireError as error:
        yield from _recovered(line, offset, str(error))


def _recovered(line: bytes, offset: int, reason: str) -> Iterator[Line]:
    """A bad line may hold a whole one at its end, glued to a fragment that nobody closed off."""
    for tries, match in enumerate(_START.finditer(line, len(HEAD))):
        if tries == _MAX_STARTS:
            break
        if is_whole(line[match.start() :]):
            yield BadLine(offset, match.start(), reason)
            yield from _read(line[match.start() :], offset + match.start())
            return
    yield BadLine(offset, len(line) + 1, reason)
