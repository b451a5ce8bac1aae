"""Layer 3 in a session: every message goes to the notes, and a compaction gets what they contain.

A session on disk has a notes file that its writer updates. A session in memory has the same notes in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from sevenfold.core.clock import Clock
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import Emit, NotesSkipped
from sevenfold.core.requests import ModelRequest
from sevenfold.core.view import ENGINE_ENTRY
from sevenfold.layers.compaction.job import CompactionNotes, SpillText
from sevenfold.layers.session_notes.notes_file import NotesFile
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.session_notes.structural_notes import StructuralNotes
from sevenfold.layers.session_notes.writer import NotesWriter
from sevenfold.layers.templates import NotesTexts, read_notes_texts
from sevenfold.providers.provider import Provider
from sevenfold.session.compaction import CompactionSources
from sevenfold.session.history import HistoryMessage
from sevenfold.session.opening import SessionResources
from sevenfold.session.pipeline import ViewBuilder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import MessageRecord, RecordId

UPDATE_WAIT = timedelta(seconds=15)
"""For an update in progress, in this process or in another."""

POLL_INTERVAL = timedelta(milliseconds=100)

MAX_NOTED_BYTES = 256 * 1024 * 1024
"""A transcript up to this size is read whole when a session is resumed, so that its notes cover all of it:
some seconds at most. The notes of a longer one continue from its last boundary."""


class NotesLayer:
    """The notes of one session."""

    def __init__(
        self, path: ViewBuilder, opened: SessionResources, provider: Provider | None, spill: SpillText
    ) -> None:
        self._path, self._opened = path, opened
        self._settings: NotesSettings = opened.deps.settings.notes
        self._texts: NotesTexts = read_notes_texts(opened.templates)
        self._ids: list[RecordId] = []
        self._memory = StructuralNotes()
        self._writer = _writer(opened, self._settings, self._texts, provider, spill)

    def add(self, entry: HistoryMessage) -> None:
        """The next message of the history."""
        self._ids.append(entry.id)
        if self._writer is None:
            self._memory.add(entry.message, entry.origin)
        else:
            self._writer.add(entry.message, entry.origin)

    def catch_up(self) -> None:
        """Add all earlier messages of a resumed session. Blocks on the disk."""
        project, emit = self._opened.project, self._opened.deps.emit
        if project is None or self._opened.resumed is None:
            return
        found = project.sessions.stat(f"{self._opened.id}.jsonl")
        if found is not None and found.size_bytes > MAX_NOTED_BYTES:
            told = f"a transcript of {found.size_bytes:,} bytes is too long to note again from its beginning"
            emit(NotesSkipped(self._opened.id, told))
            for entry in self._path.entries:
                self.add(entry)
            return
        seen: set[RecordId] = set()
        for line in scan_transcript(project.sessions, self._opened.id):
            if isinstance(line, StoredRecord) and isinstance(line.record.body, MessageRecord):
                if line.record.id not in seen:
                    self.add(HistoryMessage(line.record.body.message, line.record.id))
                seen.add(line.record.id)

    def responded(self, tokens: int, parent: ModelRequest) -> None:
        """An answer came: the notes are brought up to date if that is due."""
        if self._writer is not None:
            self._writer.responded(tokens, parent)

    def shrank(self, tokens: int) -> None:
        if self._writer is not None:
            self._writer.shrank(tokens)

    async def read_sources(self) -> CompactionSources:
        """What a compaction may use."""
        if self._writer is None:
            text = self._memory.render(self._settings, self._texts.template)
            last = self._place(self._ids[-1:])
            return CompactionSources(CompactionNotes(text, last, self._texts.template), text)
        try:
            await self._settle(self._writer)
            loaded = await self._writer.load()
        except SevenfoldError as error:
            # A disk that fails costs the notes, not the session.
            self._opened.deps.emit(NotesSkipped(self._opened.id, str(error)))
            return CompactionSources(structural=self._writer.render())
        place = self._place(self._ids[loaded.covered - 1 : loaded.covered] if loaded.covered else ())
        return CompactionSources(CompactionNotes(loaded.text, place, loaded.template), self._writer.render())

    async def close(self) -> None:
        if self._writer is not None:
            await self._writer.close()

    async def _settle(self, writer: NotesWriter) -> None:
        folder, clock = self._opened.folder, self._opened.deps.clock
        started = clock.uptime()
        await writer.settle(UPDATE_WAIT)
        if folder is None:
            return
        file = NotesFile(folder, clock=clock)
        # Of the same time: an update of ours that takes longer has left its mark there too.
        waited = clock.uptime() - started
        while waited < UPDATE_WAIT and file.is_updating():
            await asyncio.sleep(POLL_INTERVAL.total_seconds())
            waited += POLL_INTERVAL

    def _place(self, ids: Sequence[RecordId]) -> int | None:
        """Where in the view the message of this name stands."""
        items, entries = self._path.shown.items, self._path.entries
        for index in range(len(items) - 1, -1, -1):
            entry = items[index].entry
            if ids and entry != ENGINE_ENTRY and entries[entry].id == ids[0]:
                return index
        return None


def _writer(
    opened: SessionResources,
    settings: NotesSettings,
    texts: NotesTexts,
    provider: Provider | None,
    spill: SpillText,
) -> NotesWriter | None:
    if opened.folder is None:
        return None
    clock: Clock = opened.deps.clock
    emit: Emit = opened.deps.emit
    return NotesWriter(
        opened.folder, opened.id, settings, texts, provider=provider, spill=spill, clock=clock, emit=emit
    )
