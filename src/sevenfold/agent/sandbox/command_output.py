"""What a command prints: its beginning and its end in memory, all of it in a file once that is not all."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

MAX_END_BYTES = 512 * 1024
"""Kept of either end. A result of a megabyte is far over what any model is shown at once."""

MAX_OUTPUT_FILE_BYTES = 64 * 1024 * 1024
"""A command that prints more does so by mistake; it is ended."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Colours, movements and titles: for terminals, not for readers."""


class CommandOutput:
    """Fed as it comes. The file is made when memory does not hold everything any more."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / f"shell-{secrets.token_hex(6)}.txt"
        self._file: int | None = None
        self._why_not = "there is no folder for it"
        self._head, self._tail = bytearray(), bytearray()
        self.total_bytes = 0
        self._seen_bytes = 0

    def add(self, part: bytes) -> None:
        if self.total_bytes + len(part) > 2 * MAX_END_BYTES:
            self._keep(part)
        self.total_bytes += len(part)
        room = MAX_END_BYTES - len(self._head)
        self._head += part[:room]
        self._tail += part[room:]
        if len(self._tail) > 2 * MAX_END_BYTES:
            del self._tail[:-MAX_END_BYTES]

    @property
    def is_flood(self) -> bool:
        return self.total_bytes > MAX_OUTPUT_FILE_BYTES

    def text(self) -> str:
        """The beginning and the end, with what is missing between them said."""
        tail = self._tail[-MAX_END_BYTES:]
        left_out = self.total_bytes - len(self._head) - len(tail)
        if not left_out:
            return strip_terminal_codes(self._head + tail)
        where = f"all of it is in {self._path}" if self._file is not None else self._why_not
        gap = f"\n[… {left_out:,} bytes left out here; {where}]\n"
        return strip_terminal_codes(self._head) + gap + strip_terminal_codes(tail)

    def news(self) -> str:
        """What came since this was last asked."""
        fresh = self.total_bytes - self._seen_bytes
        is_first = not self._seen_bytes
        self._seen_bytes = self.total_bytes
        if is_first:
            return self.text()
        held = self._head + self._tail if self.total_bytes <= 2 * MAX_END_BYTES else self._tail
        lost = max(0, fresh - len(held))
        return (f"[… {lost:,} bytes left out here]\n" if lost else "") + strip_terminal_codes(
            held[len(held) - fresh + lost :]
        )

    def close(self) -> None:
        if self._file is not None and self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _keep(self, part: bytes) -> None:
        if self._path is None:
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                part = bytes(self._head + self._tail) + part
            while part:
                part = part[os.write(self._file, part) :]
        except OSError as error:
            self._why_not = f"the rest could not be kept in {self._path}: {error.strerror}"
            self.close()
            self._path = self._file = None


def strip_terminal_codes(printed: bytes | bytearray) -> str:
    """As text, without what is meant for a terminal."""
    return _ESCAPES.sub("", printed.decode("utf-8", "replace"))
