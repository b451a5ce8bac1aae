"""What a session writes to its transcript: durable before anything depends on it, and never a reason to stop.

A disk that fails costs the ability to resume, not the session: what could not be written is tried again with
the next records, and an event says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Protocol

from sevenfold.core.clock import Clock
from sevenfold.core.errors import InputError, StoreError
from sevenfold.core.events import Emit, TranscriptFailed
from sevenfold.core.messages import RecordId, new_record_id
from sevenfold.core.system import run_blocking
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.records import Record, RecordBody
from sevenfold.store.transcript.transcript import Transcript


class Journal(Protocol):
    @property
    def path(self) -> str:
        """Where it is written, for a summary to name; empty where nothing is."""
        ...

    def add(self, body: RecordBody, id: RecordId | None = None) -> RecordId:  # noqa: A002 - the record's own word
        """Take a record; it is on the disk after the next `flush`."""
        ...

    async def flush(self) -> None:
        """Make durable what was added."""
        ...

    def offset(self, id: RecordId) -> int:  # noqa: A002
        """Where a record's line starts; 0 where that is not known."""
        ...

    @property
    def waiting(self) -> int:
        """Records that are not on the disk: none after a flush that did what it should."""
        ...

    async def close(self) -> None: ...


class NoJournal:
    """For a session that lives in memory alone."""

    path = ""
    waiting = 0

    def add(self, body: RecordBody, id: RecordId | None = None) -> RecordId:  # noqa: A002, ARG002
        return id or new_record_id()

    async def flush(self) -> None: ...

    def offset(self, id: RecordId) -> int:  # noqa: A002, ARG002
        return 0

    async def close(self) -> None: ...


class DiskJournal:
    """A transcript, written in the order things happened."""

    def __init__(self, folder: Folder, session: str, clock: Clock, emit: Emit) -> None:
        self._folder, self._session, self._clock, self._emit = folder, session, clock, emit
        self._transcript: Transcript | None = None
        self._waiting: list[Record] = []
        self._offsets: dict[RecordId, int] = {}
        self._writing = Lock()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def path(self) -> str:
        return f"{self._folder.path}/{self._session}.jsonl"

    def add(self, body: RecordBody, id: RecordId | None = None) -> RecordId:  # noqa: A002
        record = Record(body, self._clock.now(), id or new_record_id())
        self._waiting.append(record)
        return record.id

    async def flush(self) -> None:
        if not self._waiting:
            return
        try:
            await run_blocking(self._write)
        except StoreError as error:
            # A record written twice counts once, so a write in doubt is simply tried again.
            self._emit(TranscriptFailed(self.path, len(self._waiting), str(error)))

    def offset(self, id: RecordId) -> int:  # noqa: A002
        return self._offsets.get(id, 0)

    def note_offset(self, id: RecordId, offset: int) -> None:  # noqa: A002
        """A record that was read, not written, by us."""
        self._offsets[id] = offset

    async def close(self) -> None:
        await self.flush()
        if self._transcript is not None:
            self._transcript.close()
            self._transcript = None

    def _write(self) -> None:
        """In a thread, and one at a time: a fork may flush while the session does. What it wrote is crossed
        off here, for whoever waits may be cancelled meanwhile."""
        with self._writing:
            self._write_waiting(tuple(self._waiting))

    def _write_waiting(self, records: Sequence[Record]) -> None:
        if self._transcript is None:
            self._transcript = Transcript.open(self._folder, self._session, emit=self._emit)
        try:
            self._append(self._transcript, records)
        except StoreError:
            # After a failed fsync the handle proves nothing any more; the next try starts with a new one.
            broken, self._transcript = self._transcript, None
            broken.close()
            raise
        del self._waiting[: len(records)]

    def _append(self, transcript: Transcript, records: Sequence[Record]) -> None:
        try:
            places = transcript.append_all(records)
        except InputError:
            # One that no line can hold must not keep all others from being written.
            self._append_each(transcript, records)
            return
        for record, place in zip(records, places, strict=True):
            self._offsets[record.id] = place.offset

    def _append_each(self, transcript: Transcript, records: Sequence[Record]) -> None:
        for record in records:
            try:
                self._offsets[record.id] = transcript.append(record).offset
            except InputError as error:
                self._emit(TranscriptFailed(self.path, 1, f"{error}; it is left out"))
