"""Where a session is resumed from: its last boundary, found backwards by its bytes.

A boundary that was written twice, because the first try was in doubt, counts where it stands first: what
other writers added between the two copies came after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sevenfold.core.errors import WireError
from sevenfold.core.json import write_json
from sevenfold.store.files.disk import Disk, read_fully
from sevenfold.store.transcript.record_lines import (
    BOUNDARY_MARK,
    LINE_HEAD,
    LINE_HEAD_BYTES,
    MAX_RECORD_LINE_BYTES,
    MESSAGE_MARK,
    is_whole,
    read_line,
)
from sevenfold.store.transcript.records import BoundaryRecord, Record, RecordId

CHUNK_BYTES = 1024 * 1024
"""Large enough that a read's own cost vanishes, small enough to be no memory to speak of."""

LOOK_BACK_BYTES = 16 * 1024 * 1024
"""How far before a boundary another copy of it is looked for, where the message it was made after is not met
first. The second copy is written seconds after the first; nobody writes a thousand rounds meanwhile."""

_MAX_GLUED = 100
"""Copies that are glued to a fragment, which no writer of ours leaves: how many places are tried as one. Each
costs the rest of its line, and hostile content can look like many."""

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


def find_resume_point(disk: Disk, fd: int) -> ResumePoint:
    """The first place of the last boundary; the file's start where there is none."""
    size = disk.stat(fd).st_size
    # One that is glued to a fragment after it is met when reading on from there.
    last = next(_boundaries(disk, fd, size, 0, max_glued=0), None)
    if last is None:
        return ResumePoint()
    found = [last]
    floor = _floor(disk, fd, last)
    while earlier := next(_boundaries(disk, fd, found[-1].offset, floor, _MAX_GLUED), None):
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


def _boundaries(disk: Disk, fd: int, end: int, floor: int, max_glued: int) -> Iterator[_Boundary]:
    for place in _marked(disk, fd, BOUNDARY_MARK, end, floor):
        if not place.starts_line:
            max_glued -= 1
            if max_glued < 0:
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
