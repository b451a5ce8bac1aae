"""The history of a memory folder as a book that many write in: read on, check, add a line.

control/memory/log.jsonl     the lines
               state.json    what follows from them up to some line, to be read instead of all of them
               history.mutex held by whoever adds a line
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from sevenfold.core.errors import FileDamaged, FileMissing, InputError, StoreError
from sevenfold.core.events import Emit, MemoryRebuilt
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.mutex import mutex
from sevenfold.store.memory.log import LogLine, LogStat, MemoryLog
from sevenfold.store.memory.records import LogEntry, LoggedChange, LoggedTransaction
from sevenfold.store.memory.state import MemoryState, MemoryVersion, read_memory_state, write_memory_state
from sevenfold.store.transcript.transcript import RecordPosition

HISTORY_MUTEX = "history"
_STATE = "state.json"
_MAX_STATE_BYTES = 256 * 1024 * 1024
CHECKPOINT_BYTES = 512 * 1024
"""As much of the history as is read again in a few milliseconds."""


class MemoryStore:
    """The history and what holds by it now. One thread at a time."""

    def __init__(self, folder: Folder, emit: Emit) -> None:
        self.folder = folder
        self.log = MemoryLog(folder, emit)
        self.state = MemoryState()
        self._emit = emit
        self._head = b""
        self._asked: LoggedTransaction | None = None
        self._texts: Mapping[str, str] = {}
        self._written = 0
        """Up to where the state on disk goes."""

    def close(self) -> None:
        self.log.close()

    def refresh(self) -> bool:
        """Read what was added since; whether there is any history."""
        face = self.log.look()
        if face is None:
            self.state, self._head = MemoryState(), b""
            return False
        if face.head != self._head or face.size_bytes < self.state.end:
            self._load(face)
        if face.size_bytes > self.state.end:
            self._read_on()
        return True

    def record(self, plan: Callable[[MemoryState], Sequence[LogEntry]]) -> list[LogLine]:
        """Add what `plan` makes of the present state, with nobody else in between.

        In the kernel's hands on return: `log.sync` makes it durable.
        """
        with mutex(self.folder, HISTORY_MUTEX):
            self.refresh()
            entries = plan(self.state)
            if not entries:
                return []
            try:
                added = self.log.append(entries)
            except FileMissing:
                # Somebody put another history in place while ours was open.
                self.log.forget()
                added = self.log.append(entries)
            for found in added:
                if found.place.offset == self.state.end:
                    self._take(found)
            self.refresh()
            return added

    def text_of(self, key: str, version: MemoryVersion) -> str:
        """A text, from where it stands in the history."""
        text = self._texts_at(version.place).get(key)
        if text is None:
            raise FileDamaged(
                f"the history holds no text for {key} in {version.transaction}; restore a backup"
            )
        return text

    def _texts_at(self, place: RecordPosition) -> Mapping[str, str]:
        """All texts of a transaction, kept for the next who asks: some brought a thousand."""
        entry = self.log.read_at(place)
        if entry is not self._asked:
            self._asked = entry
            self._texts = {item.key: item.text for item in entry.changes if item.text is not None}
        return self._texts

    def waiting(self, id_: str) -> LoggedTransaction:
        """What waits, by its id or how that begins."""
        found = [known for known in self.state.waiting if known.startswith(id_)]
        if len(found) != 1 or not id_:
            raise InputError(
                f"{'nothing waits' if not found else 'several wait'} as {id_!r}; list what waits"
            )
        return self.log.read_at(self.state.waiting[found[0]].place)

    def changes(self) -> Iterator[LoggedChange]:
        """Every change there ever was."""
        for entry in self.log.read_transactions():
            yield from entry.changes

    def keys_since(self, offset: int) -> set[str]:
        """Everything that a transaction after this one speaks of."""
        found = (found.entry for found in self.log.read(offset) if found.place.offset > offset)
        changes = (
            change for entry in found if isinstance(entry, LoggedTransaction) for change in entry.changes
        )
        return {change.key for change in changes if change.key}  # what was erased has none

    def write_checkpoint(self, *, least_bytes: int = CHECKPOINT_BYTES) -> None:
        """Save the next reader the lines up to here, if they are many by now. It may fail: they are there."""
        if self.state.end - self._written < least_bytes:
            return
        with suppress(StoreError):
            self.state.head = self._head.decode("latin-1")
            self.state.tail_head = self.log.head_at(self.state.tail).decode("latin-1")
            self.folder.replace(_STATE, write_memory_state(self.state), durable=False)
            self._written = self.state.end

    def start_anew(self) -> None:
        """We changed the history as a whole: read all of it, for the state on disk is of the one before."""
        self.log.forget()
        face = self.log.look()
        self.state, self._head, self._written = MemoryState(), face.head if face else b"", 0
        self.refresh()

    def _load(self, face: LogStat) -> None:
        self.log.forget()
        self.state, self._head, self._written = MemoryState(), face.head, 0
        try:
            state = read_memory_state(self.folder.read(_STATE, max_bytes=_MAX_STATE_BYTES))
        except FileMissing:
            return
        except (InputError, StoreError) as error:
            self._emit(MemoryRebuilt(str(error)))
            return
        if self._fits(state, face):
            self.state, self._written = state, state.end

    def _fits(self, state: MemoryState, face: LogStat) -> bool:
        """Whether it was made of this history, and of lines that are still there."""
        if state.head != face.head.decode("latin-1") or state.end > face.size_bytes:
            return False
        return self.log.head_at(state.tail).decode("latin-1") == state.tail_head

    def _read_on(self) -> None:
        for found in self.log.read(self.state.end):
            self._take(found)

    def _take(self, found: LogLine) -> None:
        self.log.remember(found)
        self.state.take(found)
