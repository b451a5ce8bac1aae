"""Reads piped input, also where standard input is a pipe that nobody writes to and nobody closes."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from datetime import timedelta

from sevenfold.core.errors import InputError

FIRST_BYTE_TIMEOUT = timedelta(seconds=3)
"""For the first byte. Cron, CI and programs that start programs leave the pipe open and say nothing."""

MAX_PIPED_BYTES = 10_000_000
"""More than any window holds."""

PIPE_CHUNK_BYTES = 65_536


def read_piped_input(
    descriptor: int, note: Callable[[str], None], *, is_needed: bool, wait: timedelta = FIRST_BYTE_TIMEOUT
) -> str:
    """All of it to its end; nothing from a terminal. A silent pipe is reported, and waited for only
    where it `is_needed`."""
    if os.isatty(descriptor):
        return ""
    if not _has_begun(descriptor, wait):
        seconds = f"{wait.total_seconds():g} s"
        if not is_needed:
            note(
                f"nothing was piped in within {seconds}: going on without it; < /dev/null skips the wait, "
                "and what a slow command prints can be piped in from a file"
            )
            return ""
        note(f"nothing was piped in within {seconds}, and there is no PROMPT: waiting for it")
    return _read_all(descriptor).decode("utf-8", "replace").strip()


def _has_begun(descriptor: int, wait: timedelta) -> bool:
    """Whether something can be read, or the end was reached."""
    ready, _, _ = select.select([descriptor], [], [], wait.total_seconds())
    return bool(ready)


def _read_all(descriptor: int) -> bytes:
    found = bytearray()
    while part := os.read(descriptor, PIPE_CHUNK_BYTES):
        found += part
        if len(found) > MAX_PIPED_BYTES:
            raise InputError(
                f"more than {MAX_PIPED_BYTES:,} bytes were piped in, which is the most; "
                "name the file in the PROMPT instead, so that the parts that matter are read"
            )
    return bytes(found)
