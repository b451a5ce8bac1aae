"""The notes of a session (layer 3): every message goes to them, and a compaction gets what they contain.

`NotesLayer` follows a conversation. `NotesWriter` updates the file of a session on disk when that is due.

The model writer is a fork that may edit the notes and nothing else. It edits a text in memory, and the file
is replaced once when the fork has ended, so that no reader sees half an update.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeAlias

from sevenfold.core.canonical import digest
from sevenfold.core.clock import Clock
from sevenfold.core.errors import InputError, SevenfoldError
from sevenfold.core.events import Emit, NotesSkipped, NotesTruncated, NotesUpdated, WriterFailed, ignore_event
from sevenfold.core.messages import Message, ToolResult, ToolUse
from sevenfold.core.requests import ENGINE_ENTRY, ModelRequest
from sevenfold.core.system import SingleFlight, run_blocking
from sevenfold.core.tokens.estimation import estimate_text_tokens
from sevenfold.core.tokens.portions import TextOrigin
from sevenfold.core.tool_kinds import NEW_TEXT_KEYS, OLD_TEXT_KEYS, find_tool
from sevenfold.layers.conversation import Conversation
from sevenfold.layers.conversation_state import ConversationListener, HistoryMessage, read_dropped
from sevenfold.layers.forks.runner import run_fork
from sevenfold.layers.session_notes.notes_file import (
    NOTES_FILE,
    NotesFile,
    NotesRecord,
    NotesVersion,
    read_notes_record,
    write_notes_record,
)
from sevenfold.layers.session_notes.policy import (
    NotesFacts,
    NotesSettings,
    NotesTask,
    build_notes_brief,
    find_over_limit,
    has_grown,
    needs_update,
    truncate_notes,
)
from sevenfold.layers.session_notes.sections import (
    NO_HAND_EDITS,
    append_notes,
    apply_hand_edits,
    find_hand_edits,
)
from sevenfold.layers.session_notes.structural_notes import StructuralNotes
from sevenfold.layers.templates import NotesTexts
from sevenfold.providers.provider import Provider
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import MessageRecord


def find_edit_tool(parent: ModelRequest) -> str | None:
    """The edit tool that the request declares: a fork has the parent's tools, and no others."""
    names = (tool.get("name") for tool in parent.frame.tools)
    return next((name for name in names if isinstance(name, str) and _replaces(name)), None)


async def run_notes_fork(
    parent: ModelRequest, task: NotesTask, prompt: str, provider: Provider, emit: Emit
) -> str:
    """The notes as the model has edited them; `InputError` where it made no edit that fits."""
    draft = NotesDraft(task.text)
    await run_fork(parent, build_notes_brief(task, prompt), provider, run_tool=draft.run, emit=emit)
    if not draft.edits:
        raise InputError(f"the model made no edit of {task.path} that fits; {draft.misses} did not")
    return draft.text


class NotesDraft:
    """The text under edit, and the one tool that works on it."""

    def __init__(self, text: str) -> None:
        self.text: str = text
        self.edits = self.misses = 0

    async def run(self, use: ToolUse) -> ToolResult:
        old, new = _given(use, OLD_TEXT_KEYS), _given(use, NEW_TEXT_KEYS)
        if not old or new is None:
            return self._miss(use, "say which text to replace, and by what")
        places = self.text.count(old)
        if places != 1 and not (places and use.input.get("replace_all") is True):
            return self._miss(use, f"the text to replace occurs {places} times; quote it so that it is one")
        self.text = self.text.replace(old, new)
        self.edits += 1
        return ToolResult(use.id, "done")

    def _miss(self, use: ToolUse, reason: str) -> ToolResult:
        self.misses += 1
        return ToolResult(use.id, reason, is_error=True)


def _replaces(name: str) -> bool:
    kind = find_tool(name)
    return kind is not None and kind.replaces


def _given(use: ToolUse, keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := use.input.get(key), str)), None)


SpillMessage: TypeAlias = Callable[[str, str], str | None]
"""Stores a long user message under a name and returns its path; None: it could not. Called in a thread."""

REST_HEADING = "Since these notes were written"
MIN_REST_TOKENS = 1_000
"""For what the model has not noted, even where its own notes leave less: it is the newest."""

_CLOSING = timedelta(seconds=5)
"""How long shutdown waits for an update: a write takes milliseconds, and a fork can be done again."""


@dataclass(frozen=True, slots=True)
class LoadedNotes:
    """The notes as they may enter a prompt."""

    text: str | None
    """None: none were written yet."""
    covered: int
    """How many messages of the history they cover, from the first one on."""
    template: str


@dataclass(frozen=True, slots=True)
class _Found:
    record: NotesRecord
    text: str | None


class NotesWriter:
    """The notes of one session. `add` and `responded` return at once; the rest waits for the disk."""

    def __init__(
        self,
        session: Folder,
        name: str,
        settings: NotesSettings,
        texts: NotesTexts,
        *,
        provider: Provider | None = None,
        spill: SpillMessage | None = None,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
    ) -> None:
        self._folder = session
        self._file = NotesFile(session, clock=clock)
        self._name, self._settings, self._texts = name, settings, texts
        self._provider = provider
        self._spill = spill
        self._emit = emit
        self.notes = StructuralNotes()
        """Of all messages so far."""
        self._flight = SingleFlight[ModelRequest | None]("notes", self._update, self._report_failure)
        self._said_at_update: int | None = None
        self._calls = 0
        self._has_call = False
        self._is_reported = True
        self._unnoted: list[HistoryMessage] = []
        """The newest messages of the history: those that a model has not noted are among them."""
        self._is_outdated = False
        """The file speaks of messages that were dropped."""

    def add(self, message: Message, origin: TextOrigin = "human") -> None:
        """The next message of the history, from the first one on; a resumed session adds all of them."""
        self.notes.add(message, origin)
        if self._settings.writer == "model":
            self._unnoted.append(HistoryMessage(message, origin=origin))
        if message.role == "assistant":
            calls = sum(isinstance(block, ToolUse) for block in message.blocks)
            self._calls += calls
            self._has_call = calls > 0

    def start_over(self, notes: StructuralNotes) -> None:
        """The history is another one: `notes` are of its beginning, and what follows is added again."""
        self.notes, self._unnoted, self._is_outdated = notes, [], True

    def responded(self, said_tokens: int, parent: ModelRequest | None = None) -> bool:
        """Take note of a response; return whether an update was due and has been started.

        `said_tokens` is what was said so far; `parent` is the request as it would be sent now, for the model
        writer's fork.
        """
        facts = NotesFacts(said_tokens, self._said_at_update, self._calls, self._has_call)
        if not needs_update(facts, self._settings):
            return False
        if has_grown(facts, self._settings):
            self._said_at_update, self._calls, self._is_reported = said_tokens, 0, False
        self._flight.ask(parent)
        return True

    def render(self) -> str:
        """The structural notes of all messages so far: the summary when no model writes one."""
        return self.notes.render(self._settings, self._texts.template)

    async def load(self) -> LoadedNotes:
        """The notes from disk within their limits, and how far they go."""
        if self._is_outdated:
            return self._loaded(None, 0)
        found = await run_blocking(self._read)
        return self._loaded(found.text, found.record.covered_by(found.text))

    def _loaded(self, text: str | None, covered: int) -> LoadedNotes:
        if text is None:
            return LoadedNotes(None, 0, self._texts.template)
        cut = truncate_notes(text, self._settings, estimate_text_tokens)
        if cut.cut:
            self._emit(NotesTruncated(self._name, ", ".join(cut.cut), cut.tokens))
        return LoadedNotes(cut.text, covered, self._texts.template)

    async def load_current(self, *, writes: bool = True) -> LoadedNotes:
        """The same for a cut that is due now: structural notes cover what the file does not.

        Without `writes` the file stays as it is: somebody only asks what a cut would find.
        """
        loaded = await self.load()
        if loaded.covered >= self.notes.covered or not self._settings.enabled:
            return loaded
        if self._settings.writer == "structural":
            if writes:
                await self._update(None)
                return await self.load()
            record = _merge_edits(await run_blocking(self._read), self.render(), self.notes.covered)
            return self._loaded(record.newest.text, record.newest.covered)
        noted = self.notes.covered - len(self._unnoted)
        rest = StructuralNotes()
        for entry in self._unnoted[max(0, loaded.covered - noted) :]:
            rest.add(entry.message, entry.origin)
        used = round(estimate_text_tokens(loaded.text or ""))
        left = max(MIN_REST_TOKENS, self._settings.limit_tokens - used)
        text = rest.render(replace(self._settings, limit_tokens=left), self._texts.template)
        whole = text if loaded.text is None else append_notes(loaded.text, REST_HEADING, text)
        return LoadedNotes(whole, self.notes.covered, self._texts.template)

    async def settle(self, limit: timedelta) -> bool:
        """Wait for an update under way; whether none is left."""
        return await self._flight.settle(limit)

    async def close(self, limit: timedelta = _CLOSING) -> bool:
        """Wait for an update under way for a bounded time, and take no more."""
        return await self._flight.close(limit)

    def _read(self) -> _Found:
        text = self._file.read()
        return _Found(read_notes_record(self._folder, is_needed=text is not None, emit=self._emit), text)

    def _report_failure(self, reason: str) -> None:
        self._emit(WriterFailed("notes", reason))

    async def _update(self, parent: ModelRequest | None) -> None:
        await self._spill_long()
        notes = self.notes
        if self._settings.writer == "model":
            record = await self._update_by_model(parent)
        else:
            rendered, covered = self.render(), self.notes.covered
            record = await run_blocking(lambda: self._update_structural(rendered, covered))
        if record is not None and notes is self.notes:
            self._is_outdated = False
        # The structural writer is at work after every response, which nobody wants to hear of.
        if record is not None and not self._is_reported:
            self._is_reported = True
            newest = record.newest
            tokens = round(estimate_text_tokens(newest.text))
            self._emit(NotesUpdated(self._name, newest.writer, tokens, newest.covered))

    def _update_structural(self, rendered: str, covered: int) -> NotesRecord:
        record = _merge_edits(self._read(), rendered, covered)
        self._write(record)
        return record

    async def _update_by_model(self, parent: ModelRequest | None) -> NotesRecord | None:
        """A fork takes its time: until it has ended, a mark tells other processes to wait for it."""
        marks = ExitStack()
        try:
            await run_blocking(lambda: marks.enter_context(self._file.updating()))
            found = await run_blocking(self._read)
            start = _merge_edits(found, self.render(), self.notes.covered)
            record = await self._by_model(found, start, parent)
            if record is not None:
                await run_blocking(lambda: self._write(record))
            return record
        finally:
            await run_blocking(marks.close)

    async def _by_model(
        self, found: _Found, start: NotesRecord, parent: ModelRequest | None
    ) -> NotesRecord | None:
        """The model's own notes carried on, or the structural ones to start from. None: its notes stay."""
        own = None if self._is_outdated or start.before.writer != "model" else found.text or None
        text = own or start.newest.text
        try:
            tool = find_edit_tool(parent) if parent else None
            if parent is None or tool is None or self._provider is None:
                raise SevenfoldError(
                    "the model writer needs a provider, and a request that declares an edit tool"
                )
            over = find_over_limit(text, self._settings, estimate_text_tokens)
            task = NotesTask(f"{self._folder.path}/{NOTES_FILE}", text, tool, over)
            edited = await run_notes_fork(parent, task, self._texts.prompt, self._provider, self._emit)
        except SevenfoldError as error:
            kept = "the model's notes stay as they were" if own else "structural notes were written"
            self._emit(NotesSkipped(self._name, f"{error}; {kept}"))
            return None if own else start
        del self._unnoted[: len(self._unnoted) - (self.notes.covered - start.newest.covered)]
        return NotesRecord(NotesVersion(edited, start.newest.covered, "model"), start.before)

    async def _spill_long(self) -> None:
        spill = self._spill
        if spill is None:
            return
        for item in self.notes.words.long_requests(self._settings.section_limit_tokens, estimate_text_tokens):
            name = f"said-{digest(item.text.encode('utf-8', 'surrogatepass'))[:16]}.txt"
            text = item.text
            item.pointer = await run_blocking(lambda name=name, text=text: spill(name, text)) or ""

    def _write(self, record: NotesRecord) -> None:
        write_notes_record(self._folder, record)
        self._file.write(record.newest.text)


def _merge_edits(found: _Found, rendered: str, covered: int) -> NotesRecord:
    """New structural notes, with the lines that a person has added to the file and without those removed."""
    before, edits = NotesVersion(), NO_HAND_EDITS
    if found.text is not None:
        base = found.record.origin_of(found.text)
        before = replace(base, text=found.text, covered=found.record.covered_by(found.text))
        if base.writer == "structural" and base.text:
            edits = find_hand_edits(base.text, found.text, found.record.edits)
    return NotesRecord(NotesVersion(apply_hand_edits(rendered, edits), covered), before, edits)


# The notes of a session that is open.

UPDATE_WAIT = timedelta(seconds=15)
"""For an update in progress, in this process or in another."""

POLL_INTERVAL = timedelta(milliseconds=100)
MAX_NOTED_BYTES = 256 * 1024 * 1024
"""A transcript up to this size is read whole when a session is resumed, so that its notes cover all of it:
some seconds at most. The notes of a longer one continue from its last boundary."""


@dataclass(frozen=True, slots=True)
class NotesSources:
    """What the notes have for a compaction."""

    text: str | None = None
    """As they stand in the file; None: there is none."""
    last: int | None = None
    """The message of the view that is the last they cover; None: it is not among them."""
    template: str = ""
    """What the file holds before anything was noted."""
    structural: str = ""
    """The notes that are written without a model."""


class NotesLayer(ConversationListener):
    """The notes of one session. Without a writer, which needs a folder, they are kept in memory."""

    def __init__(
        self,
        conversation: Conversation,
        writer: NotesWriter | None,
        *,
        folder: Folder | None,
        session: str,
        settings: NotesSettings,
        template: str,
        clock: Clock,
        emit: Emit,
    ) -> None:
        self._conversation, self._writer = conversation, writer
        self._folder, self._session = folder, session
        self._settings, self._template, self._clock, self._emit = settings, template, clock, emit
        self._ids: list[RecordId] = []
        self._memory = StructuralNotes()
        self._unread: list[HistoryMessage] = []
        """Messages that `_memory` does not have yet: without a file, only a compaction reads the notes."""
        self._earlier: list[RecordId] = []
        """Messages of a resumed session that are not among the conversation's entries."""
        self._base = StructuralNotes()
        """The notes of these."""

    def message_added(self, entry: HistoryMessage) -> None:
        entries = self._conversation.entries
        is_taken = bool(entries) and entries[-1] is entry
        kept = len(entries) - is_taken
        if is_taken and entry.message.role == "assistant" and self._count_extra(kept) == 1:
            self._ids[-1] = entry.id  # the answer that was just noted, as the caller has written it down
            return
        self._forget_dropped(kept)
        self._add(entry)

    def _count_extra(self, kept: int) -> int:
        return len(self._ids) - len(self._earlier) - kept

    def _forget_dropped(self, kept: int) -> None:
        """Without the messages that the caller has dropped: they may be another conversation's."""
        if self._count_extra(kept) <= 0:
            return
        self._ids = list(self._earlier)
        self._memory, self._unread = deepcopy(self._base), []
        if self._writer is not None:
            self._writer.start_over(deepcopy(self._base))
        for entry in self._conversation.entries[:kept]:
            self._add(entry)

    def _add(self, entry: HistoryMessage) -> None:
        self._ids.append(entry.id)
        if self._writer is None:
            self._unread.append(entry)
        else:
            self._writer.add(entry.message, entry.origin)

    def catch_up(self, sessions: Folder, said: Iterable[HistoryMessage]) -> None:
        """Add all earlier messages of a resumed session, or `said`, those since its last boundary, where its
        transcript is too long. Blocks on the disk."""
        found = sessions.stat(f"{self._session}.jsonl")
        if found is not None and found.size_bytes > MAX_NOTED_BYTES:
            reason = f"a transcript of {found.size_bytes:,} bytes is too long to note again from the start"
            self._emit(NotesSkipped(self._session, reason))
            for entry in said:
                self._add(entry)
            return
        seen = read_dropped(sessions, self._session)
        own = {entry.id for entry in said}
        for line in scan_transcript(sessions, self._session):
            if isinstance(line, StoredRecord) and isinstance(line.record.body, MessageRecord):
                message, name = line.record.body.message, line.record.id
                if name not in seen:
                    self._add(HistoryMessage(message, name))
                if name not in seen and name not in own:
                    self._earlier.append(name)
                    self._base.add(message)
                seen.add(name)

    def responded(self, build_parent: Callable[[], ModelRequest]) -> None:
        """An answer came: the notes are brought up to date if that is due."""
        if self._writer is not None:
            self._writer.responded(self._conversation.said_tokens, build_parent())

    async def read_sources(self, *, writes: bool = True) -> NotesSources:
        """What a compaction may use. Without `writes` nothing is waited for, and no file changes."""
        if self._count_extra(len(self._conversation.entries)) > 1:
            # One more may be an answer that the caller's list has not shown yet.
            self._forget_dropped(len(self._conversation.entries))
        if self._writer is None:
            for entry in self._unread:
                self._memory.add(entry.message, entry.origin)
            self._unread.clear()
            text = self._memory.render(self._settings, self._template)
            return NotesSources(text, self._place(self._ids[-1:]), self._template, text)
        try:
            if writes:
                await self._settle(self._writer)
            loaded = await self._writer.load_current(writes=writes)
        except SevenfoldError as error:
            # A disk that fails costs the notes, not the session.
            self._emit(NotesSkipped(self._session, str(error)))
            return NotesSources(structural=self._writer.render())
        place = self._place(self._ids[loaded.covered - 1 : loaded.covered] if loaded.covered else ())
        return NotesSources(loaded.text, place, loaded.template, self._writer.render())

    async def close(self) -> None:
        if self._writer is not None:
            await self._writer.close()

    async def _settle(self, writer: NotesWriter) -> None:
        folder, clock = self._folder, self._clock
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
        items, entries = self._conversation.shown.items, self._conversation.entries
        for index in range(len(items) - 1, -1, -1):
            entry = items[index].entry
            if ids and entry != ENGINE_ENTRY and entries[entry].id == ids[0]:
                return index
        return None
