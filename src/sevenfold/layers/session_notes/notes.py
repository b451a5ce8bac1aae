"""A session's running notes (layer 3) as a file: whole or absent, and a mark while an update is under way."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import AccessDenied, FileDamaged, FileMissing, InputError, NotRegular
from sevenfold.store.files.folder import Folder

NOTES_FILE = "notes.md"
UPDATING_FILE = "notes.updating"
MAX_NOTES_BYTES = 256 * 1024
"""Five times the 12,000 tokens that notes may have: the loader truncates, the disk only guards."""


class NotesFile:
    def __init__(self, session: Folder, *, clock: Clock | None = None) -> None:
        self._folder = session
        self._clock = clock or SystemClock()

    def read(self) -> str | None:
        """The notes, or None where none were written yet."""
        try:
            return self._folder.read(NOTES_FILE, max_bytes=MAX_NOTES_BYTES).decode("utf-8", "replace")
        except FileMissing:
            return None

    def write(self, text: str) -> None:
        """Replace the notes: all of them or none."""
        data = text.encode("utf-8", "backslashreplace")
        if len(data) > MAX_NOTES_BYTES:
            raise InputError(
                f"notes of {len(data):,} bytes are over the limit of {MAX_NOTES_BYTES:,}; condense them"
            )
        self._folder.replace(NOTES_FILE, data)

    @contextmanager
    def updating(self) -> Generator[None]:
        """Show, for the block, that an update is in flight: a compaction waits for it."""
        for old in self._marks():
            if not self._counts(old):
                # Not where it is a folder, which is no mark of ours.
                with suppress(FileMissing, NotRegular, AccessDenied):
                    self._folder.remove(old)
        # Each has a mark of its own, so that of two at once the first to leave takes away only its own.
        mark = f"{UPDATING_FILE}-{secrets.token_hex(8)}"
        self._folder.create(mark, self._clock.now().isoformat().encode())
        try:
            yield
        finally:
            with suppress(FileMissing):
                self._folder.remove(mark)

    def is_updating(self) -> bool:
        """Whether somebody is at it now."""
        return any(self._counts(mark) for mark in self._marks())

    def _marks(self) -> list[str]:
        return [name for name in self._folder.names() if name.startswith(UPDATING_FILE)]

    def _counts(self, mark: str) -> bool:
        try:
            since = datetime.fromisoformat(self._folder.read(mark, max_bytes=100).decode("ascii"))
        except (FileMissing, FileDamaged, NotRegular, ValueError):
            return False
        # An older mark was left by a writer that died; nobody waits for it.
        life = self._folder.patience.mark
        return since.tzinfo is not None and timedelta(0) <= self._clock.now() - since < life
