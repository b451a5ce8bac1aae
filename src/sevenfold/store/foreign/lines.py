"""Lines of a file, one at a time: never the whole file in memory, never a line without end."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from sevenfold.core.errors import NotRegular
from sevenfold.core.os_errors import map_os_errors
from sevenfold.store.foreign.fields import JsonFields, as_fields

MAX_FOREIGN_LINE_BYTES = 32 * 1024 * 1024
"""Pasted images make lines of a few MB. Ten times that is no line, and parsing it would take the memory of
everything else."""

BUFFER_BYTES = 1024 * 1024

LineFault: TypeAlias = Literal["not JSON", "no object", "too long", "half-written"]


@dataclass(frozen=True, slots=True)
class ForeignLine:
    fields: JsonFields
    """Empty where there is a fault."""
    length_bytes: int
    fault: LineFault | None = None


def scan_lines(path: Path) -> Iterator[ForeignLine]:
    """Every line that is not blank. A last line without its end may be half-written: the agent is at work."""
    with map_os_errors(f"read {path}"), _opened(path) as file:
        while raw := file.readline(MAX_FOREIGN_LINE_BYTES + 1):
            if len(raw) > MAX_FOREIGN_LINE_BYTES:
                yield ForeignLine({}, len(raw) + _skip_rest(file, raw), "too long")
            elif raw.strip():
                yield _decode(raw)


def scan_raw_lines(path: Path) -> Iterator[bytes]:
    """The same lines undecoded, without those that are too long."""
    with map_os_errors(f"read {path}"), _opened(path) as file:
        while raw := file.readline(MAX_FOREIGN_LINE_BYTES + 1):
            if len(raw) > MAX_FOREIGN_LINE_BYTES:
                _skip_rest(file, raw)
            else:
                yield raw


def _opened(path: Path) -> BinaryIO:
    # Non-blocking, so that a FIFO in its place is refused and not waited for.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotRegular(f"cannot read {path}: expected a plain file, not a folder, pipe or device")
    return os.fdopen(fd, "rb", BUFFER_BYTES)


def _skip_rest(file: BinaryIO, raw: bytes) -> int:
    skipped = 0
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(BUFFER_BYTES)
        skipped += len(raw)
    return skipped


def _decode(raw: bytes) -> ForeignLine:
    try:
        # Anything but UTF-8 is replaced rather than refused: a report on the rest is worth more.
        value: object = json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return ForeignLine({}, len(raw), "not JSON" if raw.endswith(b"\n") else "half-written")
    fields = as_fields(value)
    return ForeignLine(fields, len(raw), None if isinstance(value, dict) else "no object")
