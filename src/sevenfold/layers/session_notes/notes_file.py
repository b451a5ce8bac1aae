"""The notes of a session as a file: whole or absent, with a mark while an update is in progress.

`notes.json` says how far the notes go and which lines a person wrote. It is written before the notes and
names both the previous version and the new one. So whichever file a crash leaves behind, the notes are one of
these versions, or edited by hand.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import AccessDenied, FileDamaged, FileMissing, InputError, NotRegular, WireError
from sevenfold.core.events import Emit, NotesRecordLost, ignore_event
from sevenfold.core.fields import JsonForm, NonNegative, read_fields, write_fields
from sevenfold.core.json import read_object, write_json
from sevenfold.layers.session_notes.sections import NO_HAND_EDITS, HandEdits
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
                # A folder is not one of our marks.
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
        """Whether an update is in progress now."""
        return any(self._counts(mark) for mark in self._marks())

    def _marks(self) -> list[str]:
        return [name for name in self._folder.names() if name.startswith(UPDATING_FILE)]

    def _counts(self, mark: str) -> bool:
        try:
            since = datetime.fromisoformat(self._folder.read(mark, max_bytes=100).decode("ascii"))
        except (FileMissing, FileDamaged, NotRegular, ValueError):
            return False
        # An older mark was left by a writer that died; nobody waits for it.
        life = self._folder.timeouts.mark
        return since.tzinfo is not None and timedelta(0) <= self._clock.now() - since < life


NOTES_RECORD_FILE = "notes.json"
_MAX_RECORD_BYTES = 2 * 1024 * 1024
"""Two versions of the notes at their largest, as JSON, and edits beside them."""


@dataclass(frozen=True, slots=True)
class NotesVersion:
    text: str = ""
    covered: NonNegative = 0
    """How many messages of the history it covers."""
    writer: str = "structural"


NO_NOTES_VERSION = NotesVersion()


@dataclass(frozen=True, slots=True)
class NotesRecord:
    newest: Annotated[NotesVersion, JsonForm(is_required=True)] = NO_NOTES_VERSION
    before: NotesVersion = NO_NOTES_VERSION
    edits: HandEdits = NO_HAND_EDITS

    def covered_by(self, found: str | None) -> int:
        """How many messages a file with this text covers. One edited by hand may come from either version, so
        that only what both cover is sure."""
        if found is None:
            return 0
        if found == self.newest.text:
            return self.newest.covered
        return (
            min(self.before.covered, self.newest.covered)
            if found != self.before.text
            else self.before.covered
        )

    def origin_of(self, found: str) -> NotesVersion:
        """The version that a file's text is, or was most likely edited from."""
        return self.before if found == self.before.text else self.newest


def read_notes_record(session: Folder, *, is_needed: bool = True, emit: Emit = ignore_event) -> NotesRecord:
    """The record; an empty one if it cannot be read: then the notes count as covering nothing. This is an
    event, unless there are no notes yet."""
    try:
        return read_fields(
            NotesRecord, read_object(session.read(NOTES_RECORD_FILE, max_bytes=_MAX_RECORD_BYTES))
        )
    except (FileMissing, FileDamaged, NotRegular, WireError) as error:
        if is_needed or not isinstance(error, FileMissing):
            emit(NotesRecordLost(f"{session.path}/{NOTES_RECORD_FILE}", str(error)))
        return NotesRecord()


def write_notes_record(session: Folder, record: NotesRecord) -> None:
    session.replace(NOTES_RECORD_FILE, write_json(write_fields(record)))
