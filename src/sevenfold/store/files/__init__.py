"""The file system port: durable operations, folders that keys cannot leave, and locks.

- `disk`: the `Disk` protocol, the system's implementation, and what is built on both: waiting for a flock,
  renaming without replacing, making folders.
- `folder`: reading and writing files of a folder by key, and the names that files may have.
- `locks`: mutexes for short changes, and leases for long work.
- `lock_state`: the record of a lease, and the PID file that other programs see.

Here are the lines of files that are only appended to, each with an id and a checksum. They stand apart from
`store/transcript/records.py`, which knows the records of a session: the history of memories has none of them.
"""

from __future__ import annotations

import os
import zlib
from datetime import datetime
from typing import NewType

from sevenfold.core.errors import InputError
from sevenfold.core.json import Json, freeze, write_json

RecordId = NewType("RecordId", str)
"""Unique in a transcript: a record written twice, because the first try was in doubt, counts once."""


_UUID_FIXED_BITS = 0xF << 76 | 0x3 << 62
_UUID_VERSION_4 = 0x4 << 76 | 0x2 << 62
"""Version and variant of a random UUID, where RFC 9562 has them."""


def new_record_id() -> RecordId:
    # As `uuid4().hex`, without the object in between: each request needs several.
    bits = int.from_bytes(os.urandom(16)) & ~_UUID_FIXED_BITS | _UUID_VERSION_4
    return RecordId(f"{bits:032x}")


LINE_HEAD = b'{"c":"'
INNER = b'{"\\u0063":"'
"""The same to whoever reads JSON, and the beginning of no line."""
LINE_HEAD_BYTES = len(LINE_HEAD) + 8 + len(b'",')
MAX_RECORD_LINE_BYTES = 64 * 1024 * 1024
"""Twice the largest request the API takes (32 MB), to leave room for escapes."""


def format_line(kind: str, id_: str, at: datetime, value: Json) -> bytes:
    """A record as a line with its newline."""
    wire = {"k": kind, "id": id_, "at": at.isoformat(), "v": value}
    return checksum_line(kind, write_json(freeze(wire)))


def checksum_line(kind: str, wire: bytes) -> bytes:
    """A JSON object as a line with its checksum; `InputError` when it is too long to be read back."""
    # An object inside may look like a line of its own, and would be taken for one if the rest were torn off.
    rest = wire[1:].replace(LINE_HEAD, INNER)
    if len(rest) > MAX_RECORD_LINE_BYTES:
        raise InputError(
            f"a {kind} record of {len(rest):,} bytes is over the limit of {MAX_RECORD_LINE_BYTES:,}; "
            "store large content as a spill first"
        )
    return LINE_HEAD + b"%08x" % zlib.crc32(rest) + b'",' + rest + b"\n"


def is_whole(line: bytes, start: int = 0) -> bool:
    """Whether a line, without its newline, is exactly what was written; or what it holds from `start` on."""
    rest = start + LINE_HEAD_BYTES
    return (
        line.startswith(LINE_HEAD, start)
        and line[rest - 2 : rest] == b'",'
        and line[start + len(LINE_HEAD) : rest - 2] == b"%08x" % zlib.crc32(memoryview(line)[rest:])
    )
