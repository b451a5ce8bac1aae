"""What was typed before, in every session of this person: for the arrow keys and the search."""

from __future__ import annotations

import os
from contextlib import suppress

from sevenfold.core.errors import FileMissing, WireError
from sevenfold.core.json import freeze, read_object, write_json
from sevenfold.store.files.disk import write_all
from sevenfold.store.files.folder import Folder

INPUT_HISTORY_FILE = "chat-history.jsonl"
MAX_INPUT_HISTORY_BYTES = 1_000_000
"""Of the newest lines; a year of typing."""

_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT


class InputHistory:
    """One JSON line an entry, oldest first; several chats may append side by side."""

    def __init__(self, home: Folder) -> None:
        self._home = home

    def read_all(self) -> list[str]:
        """Oldest first. A line that cannot be read is left out: a crash may have torn it."""
        entry = self._home.entry(INPUT_HISTORY_FILE)
        start = max(0, entry.size_bytes - MAX_INPUT_HISTORY_BYTES) if entry else 0
        with suppress(FileMissing):
            data = self._home.read_range(INPUT_HISTORY_FILE, start, MAX_INPUT_HISTORY_BYTES)
            lines = data.split(b"\n")[1 if start else 0 :]
            return [text for line in lines if line and (text := _text(line)) is not None]
        return []

    def add(self, text: str) -> None:
        line = write_json(freeze({"text": text})) + b"\n"
        with self._home.opened(INPUT_HISTORY_FILE, _APPENDING) as fd:
            # In one write, so that lines of two chats never mix. It is a convenience: nobody waits for fsync.
            write_all(self._home.disk, fd, line)


def _text(line: bytes) -> str | None:
    try:
        found = read_object(line).get("text")
    except WireError:
        return None
    return found if isinstance(found, str) else None
