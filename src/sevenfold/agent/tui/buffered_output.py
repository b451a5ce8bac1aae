"""Standard output, written to in one piece: an erased line and what replaces it arrive together."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

_ERRORS = "backslashreplace"
"""What the terminal's encoding cannot say is spelled out."""


class BufferedOutput:
    """As much of a text stream as a terminal library asks of one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._waiting: list[str] = []
        self._is_held = False

    @property
    def encoding(self) -> str:
        return self._stream.encoding or "utf-8"

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, text: str) -> int:
        self._waiting.append(text)
        return len(text)

    def flush(self) -> None:
        if self._is_held or not self._waiting:
            return
        text, self._waiting = "".join(self._waiting), []
        self._stream.write(text.encode(self.encoding, _ERRORS).decode(self.encoding))
        self._stream.flush()

    @contextmanager
    def held(self) -> Generator[None]:
        """Let nothing out before the end of the block."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.flush()
