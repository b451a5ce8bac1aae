"""The history of a memory folder: appending to it, and reading who changed what and how to take it back.

<state>/memory/log.jsonl        the lines
               state.json       what follows from them up to some line, so that not all need be read
               history.mutex    held while a line is appended
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from sevenfold.core import events
from sevenfold.core.errors import FileDamaged, FileMissing, InputError, StoreError
from sevenfold.core.events import Emit
from sevenfold.core.json import replace_lone_surrogates
from sevenfold.core.memories import Origin
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.memory.changes import WAITING_KINDS, BlameLine, Transaction, TransactionId, UndoStep
from sevenfold.store.memory.files import LogLine, LogStat, MemoryLog
from sevenfold.store.memory.records import LogEntry, LoggedChange, LoggedTransaction
from sevenfold.store.memory.state import (
    MemoryState,
    MemoryVersion,
    PendingTransaction,
    read_memory_state,
    write_memory_state,
)
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
        stat = self.log.stat()
        if stat is None:
            self.state, self._head = MemoryState(), b""
            return False
        if stat.head != self._head or stat.size_bytes < self.state.end:
            self._load(stat)
        if stat.size_bytes > self.state.end:
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
                self.log.reset()
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

    def vouch(self, key: str) -> LoggedChange:
        """A memory as it is, when a person vouches for it."""
        version = self.state.versions.get(key)
        if version is None:
            raise FileMissing(f"there is no memory {key!r} to vouch for")
        origin, text = replace(version.origin, is_accepted=True), self.text_of(key, version)
        return LoggedChange(key=key, before=version.sha256, after=version.sha256, text=text, origin=origin)

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

    def reload(self) -> None:
        """We changed the history as a whole: read all of it, for the state on disk is of the one before."""
        self.log.reset()
        stat = self.log.stat()
        self.state, self._head, self._written = MemoryState(), stat.head if stat else b"", 0
        self.refresh()

    def _load(self, stat: LogStat) -> None:
        self.log.reset()
        self.state, self._head, self._written = MemoryState(), stat.head, 0
        try:
            state = read_memory_state(self.folder.read(_STATE, max_bytes=_MAX_STATE_BYTES))
        except FileMissing:
            return
        except (InputError, StoreError) as error:
            self._emit(events.MemoryRebuilt(str(error)))
            return
        if self._fits(state, stat):
            self.state, self._written = state, state.end

    def _fits(self, state: MemoryState, stat: LogStat) -> bool:
        """Whether it was made of this history, and of lines that are still there."""
        if state.head != stat.head.decode("latin-1") or state.end > stat.size_bytes:
            return False
        return self.log.head_at(state.tail).decode("latin-1") == state.tail_head

    def _read_on(self) -> None:
        for found in self.log.read(self.state.end):
            self._take(found)

    def _take(self, found: LogLine) -> None:
        self.log.cache(found)
        entry = found.entry
        reopened = self._find_waiting(entry.reopens) if isinstance(entry, LoggedTransaction) else {}
        self.state.apply(found, reopened)

    def _find_waiting(self, ids: Collection[str]) -> dict[str, PendingTransaction]:
        """Of transactions that waited once, those that the history still has. Few histories reopen any."""
        found: dict[str, PendingTransaction] = {}
        for line in self.log.read() if ids else ():
            entry = line.entry
            if isinstance(entry, LoggedTransaction) and entry.id in ids and entry.kind in WAITING_KINDS:
                keys = tuple(change.key for change in entry.changes)
                found[entry.id] = PendingTransaction(line.place, entry.kind == "outside", keys)
            if len(found) == len(ids):
                break
        return found


NO_EFFECT_KINDS = ("propose", "outside", "reject", "purge")
_SETTLING_KINDS = ("accept", "reject")


@dataclass(frozen=True, slots=True, kw_only=True)
class PastVersion:
    """A text that a memory once had."""

    sha256: str
    text: str
    at: datetime
    origin: Origin
    order: int


@dataclass(frozen=True, slots=True)
class VersionStep:
    transaction: TransactionId
    past: PastVersion | None
    """What the memory was from then on; None: it was removed."""


@dataclass(frozen=True, slots=True)
class _KeyStep:
    key: str
    step: VersionStep


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """What takes the last change back, or does again what was undone last."""

    of: LoggedTransaction
    """The transaction that is taken back."""
    changes: tuple[LoggedChange, ...]
    reopens: tuple[str, ...] = ()
    settles: tuple[str, ...] = ()


class MemoryHistory:
    """Reads the history from its beginning, line by line. One thread at a time."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._read: tuple[LoggedTransaction, ...] = ()
        self._read_at: LogStat | None = None
        self._read_under: MemoryState | None = None
        """Another one holds after a purge, whatever the history looks like."""

    def log(self, key: str | None, limit: int | None) -> tuple[Transaction, ...]:
        """The last transactions, the newest first; those that speak of `key` alone."""
        entries = (entry for entry in self._entries() if key is None or _speaks_of(entry, key))
        return tuple(entry.to_transaction() for entry in reversed(deque(entries, maxlen=limit)))

    def find(self, id_: str) -> LoggedTransaction:
        """A transaction with its texts, by its id or how that begins."""
        found = [entry for entry in self._entries() if id_ and entry.id.startswith(id_)]
        exact = [entry for entry in found if entry.id == id_] or found
        if len(exact) != 1:
            said = "no transaction is" if not exact else f"{len(exact)} transactions are"
            raise InputError(f"{said} called {id_!r}; `sevenfold memory log` lists them")
        return exact[0]

    def body(self, sha256: str) -> str:
        """A text by its hash; `FileMissing` where the history has none, or not any more."""
        for entry in self._entries():
            for change in entry.changes:
                if change.after == sha256 and change.text is not None:
                    return change.text
        raise FileMissing(f"the history holds no text with the hash {sha256:.64}")

    def diff(self, id_: str) -> str:
        """What a transaction changed, as a unified diff a person can read."""
        entry = self.find(id_)
        wanted = {change.before for change in entry.changes if change.before is not None}
        # In one pass: a transaction may have a thousand changes. What was erased is not there.
        texts = {
            change.after: change.text
            for earlier in self._entries()
            for change in earlier.changes
            if change.after in wanted and change.text is not None
        }
        return "".join(_diff(change, texts.get(change.before or "", "")) for change in entry.changes)

    def blame(self, key: str) -> tuple[BlameLine, ...]:
        """Each line of a memory, and the transaction that brought it."""
        from difflib import SequenceMatcher  # not at the top: a listing compares nothing

        lines: list[BlameLine] = []
        for step in self.steps(key):
            past = step.past
            if past is None:
                lines = []
                continue
            texts = replace_lone_surrogates(past.text).splitlines()
            fresh = [BlameLine(text, step.transaction, past.at, past.origin) for text in texts]
            matcher = SequenceMatcher(None, [line.line for line in lines], texts, autojunk=False)
            for block in matcher.get_matching_blocks():
                fresh[block.b : block.b + block.size] = lines[block.a : block.a + block.size]
            lines = fresh
        if key not in self._store.state.versions:
            raise FileMissing(f"there is no memory {key!r}; `sevenfold memory list` shows those there are")
        return tuple(lines)

    def steps(self, key: str) -> Iterator[VersionStep]:
        """Every text that a memory was accepted with, the oldest first, and its removals."""
        yield from (found.step for found in self._all_steps((key,)))

    def _all_steps(self, keys: Collection[str]) -> Iterator[_KeyStep]:
        order = 0
        for entry in self._entries():
            for change in entry.changes if entry.kind not in WAITING_KINDS else ():
                order += 1
                if change.key not in keys:
                    continue
                past = None
                if change.after is not None and change.text is not None:
                    at, origin = change.at or entry.at, entry.origin_of(change)
                    past = PastVersion(
                        sha256=change.after,
                        text=change.text,
                        at=at,
                        origin=origin,
                        order=change.order or order,
                    )
                yield _KeyStep(change.key, VersionStep(entry.id, past))

    def plan_revert(self, id_: str) -> list[LoggedChange]:
        """What takes a transaction back, if nothing has happened to its memories since."""
        entry = self.find(id_)
        if entry.kind in NO_EFFECT_KINDS or not entry.changes:
            raise InputError(f"{entry.id} ({entry.kind}) changed no memory, so there is nothing to take back")
        return self._plan_back(entry)

    def plan_restore(self, key: str, id_: str) -> LoggedChange:
        """What brings a memory back to the text that a transaction gave it."""
        entry = self.find(id_)
        pasts = [step.past for step in self.steps(key) if step.past and step.transaction == entry.id]
        if not pasts:
            raise InputError(
                f"{entry.id} gave {key!r} no text; `sevenfold memory log {key}` lists those that did"
            )
        return _back(key, self._store.state.sha_of(key), pasts[-1])

    def plan_step(self, step: UndoStep) -> PlannedStep:
        """One step back or forward. What a team sent and what only waits is no step."""
        done: dict[TransactionId, None] = {}
        undone: dict[TransactionId, None] = {}
        for entry in self._entries():
            if entry.kind in (*WAITING_KINDS, "adopt") or entry.origin.who == "sync":
                continue
            if entry.step == "undo":
                done.pop(TransactionId(entry.of), None)
                undone[entry.id] = None
            else:
                done[entry.id] = None
                undone = {key: None for key in undone if key != entry.of} if entry.step == "redo" else {}
        found = undone if step == "redo" else done
        if not found:
            raise InputError(
                "there is nothing to redo; `sevenfold memory undo` comes before it, with no change in between"
                if step == "redo"
                else "nothing has been changed that could be taken back"
            )
        return self._plan_step(self.find(next(reversed(found))))

    def find_last_change(self) -> TransactionId:
        """The last transaction that changed what is shown, whoever made it."""
        last = deque((one.id for one in self._entries() if one.changes and one.kind not in WAITING_KINDS), 1)
        if not last:
            raise InputError("no memory has been changed yet")
        return last[0]

    def _plan_step(self, entry: LoggedTransaction) -> PlannedStep:
        if entry.kind == "purge":
            raise InputError(
                f"the last change ({entry.id}) erased memories, which cannot be undone; `sevenfold memory "
                "revert ID` takes back an older change"
            )
        settled = (*((entry.of,) if entry.kind in _SETTLING_KINDS else ()), *entry.settles)
        changes = tuple(self._plan_back(entry))
        return PlannedStep(of=entry, changes=changes, reopens=settled, settles=entry.reopens)

    def _plan_back(self, entry: LoggedTransaction) -> list[LoggedChange]:
        """Each of its memories as it was before, read in one pass."""
        earlier: dict[str, PastVersion | None] = {change.key: None for change in entry.changes if change.key}
        for found in self._all_steps(earlier):
            if found.step.transaction == entry.id:
                break
            earlier[found.key] = found.step.past
        return [_undone(change, earlier[change.key], entry.id) for change in entry.changes if change.key]

    def _entries(self) -> Iterator[LoggedTransaction]:
        """All of it. A short history is kept as it was read: one step of undo asks for it six times."""
        stat = self._store.log.stat()
        if stat is None or stat.size_bytes > CHECKPOINT_BYTES:
            self._read, self._read_at = (), None
            yield from self._store.log.read_transactions()
            return
        if stat != self._read_at or self._store.state is not self._read_under:
            self._read, self._read_at = tuple(self._store.log.read_transactions()), stat
            self._read_under = self._store.state
        yield from self._read


def _diff(change: LoggedChange, before: str) -> str:
    from difflib import unified_diff

    after = change.text or ""
    names = (
        f"a/{change.key}" if change.before else "/dev/null",
        f"b/{change.key}" if change.after else "/dev/null",
    )
    lines = unified_diff(_lines(before), _lines(after), *names)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _speaks_of(entry: LoggedTransaction, key: str) -> bool:
    return any(change.key == key for change in entry.changes)


def _undone(change: LoggedChange, earlier: PastVersion | None, id_: str) -> LoggedChange:
    if change.before is not None and (earlier is None or earlier.sha256 != change.before):
        raise InputError(f"what {change.key} was before {id_} was erased, and cannot be put back")
    return _back(change.key, change.after, earlier)


def _back(key: str, now: str | None, past: PastVersion | None) -> LoggedChange:
    if past is None:
        return LoggedChange(key=key, before=now, after=None)
    return LoggedChange(
        key=key,
        before=now,
        after=past.sha256,
        text=past.text,
        origin=past.origin,
        at=past.at,
        order=past.order,
    )


def _lines(text: str) -> list[str]:
    return replace_lone_surrogates(text).splitlines(keepends=True)
