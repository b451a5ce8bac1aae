"""Brings the files of a memory folder up to date with its history, and notices edits by others.

The process that does this holds the `files` mutex, and takes the mutex of the history inside it to record
what it found. So many processes can record while one of them waits for the disk: its fsync and its index then
serve them all. A change is acknowledged once it is durable in the history. Its files follow, and a process
that finds them missing after a crash writes them. `IndexRenderer` makes the index: what a person last
arranged, and a line for every memory.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from sevenfold.core import events
from sevenfold.core.clock import Clock
from sevenfold.core.errors import AccessDenied, DiskFault, DiskFull, LockBusy, SevenfoldError
from sevenfold.core.events import Emit
from sevenfold.core.json import replace_lone_surrogates
from sevenfold.core.memories import INDEX_FILE, TEAM_PREFIX, Origin, is_indexed, read_memory
from sevenfold.store.files.lock_state import read_boot_id
from sevenfold.store.files.locks import mutex
from sevenfold.store.memory.changes import PurgeReport
from sevenfold.store.memory.files import InspectedFile, MemoryFiles
from sevenfold.store.memory.history import MemoryStore
from sevenfold.store.memory.index_text import (
    apply_index,
    find_index_key,
    is_group_line,
    is_same_index,
    render_index_line,
)
from sevenfold.store.memory.purge import PurgeSource, forget_upkeep, purge_history
from sevenfold.store.memory.records import (
    NO_FILE,
    FileSnapshot,
    LoggedChange,
    LoggedTransaction,
    UpkeepRecord,
    decode_text,
    encode_text,
    hash_text,
    make_first_entry,
    new_transaction_id,
)
from sevenfold.store.memory.state import MemoryState

# The index follows from the history alone: `MEMORY.md` may hold an edit by somebody else.


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    order: int
    """Of the version that it was made of."""


class IndexRenderer:
    """One thread at a time."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._lines: dict[str, _Line] = {}

    def render(self) -> str:
        """As it is to be shown now."""
        state = self._store.state
        arranged = self._store.text_of(INDEX_FILE, state.layout) if state.layout else ""
        return self.update(arranged, state.since)

    def update(self, text: str, touched: Collection[str]) -> str:
        """An index brought up to date with memories that changed."""
        return apply_index(text, self._ages(), self._line, touched, self._store.state.births)

    def is_same(self, found: str) -> bool:
        """Whether an edited index says nothing but what it would say anyway.

        Lines about files that wait for a person are left out, whoever writes them and how often.
        """
        waiting = self._store.state.held.keys() - self._store.state.versions.keys()
        left = "\n".join(line for line in found.split("\n") if find_index_key(line) not in waiting)
        return is_same_index(self.render(), left, self._ages(), self._line)

    def was_once(self, found: str) -> bool:
        """Whether every line of it stood in the index once: what a power cut leaves of an older one."""
        texts = ((item.key, item.text) for item in self._store.changes() if item.text is not None)
        ever = {
            line
            for key, text in texts
            for line in (text.split("\n") if key == INDEX_FILE else [_spelled(key, text)])
        }
        return all(line in ever or is_group_line(line) for line in found.split("\n") if line.strip())

    def _ages(self) -> dict[str, int]:
        return {key: item.order for key, item in self._store.state.versions.items() if is_indexed(key)}

    def _line(self, key: str) -> str:
        version = self._store.state.versions[key]
        known = self._lines.get(key)
        if known is None or known.order != version.order:
            known = _Line(_spelled(key, self._store.text_of(key, version)), version.order)
            self._lines[key] = known
        return known.text


def _spelled(key: str, text: str) -> str:
    memory = read_memory(key, replace_lone_surrogates(text))
    return render_index_line(key, memory.name, memory.description)


FILES = "files"
FILES_WAIT = timedelta(milliseconds=25)
"""How long one waits for the files before looking whether somebody else has brought them up to date."""

_EDIT = Origin(
    who="outside edit", why="the file was changed outside Sevenfold", taint=frozenset(["outside edit"])
)


_MODEL_FIELD = "originSessionId"
"""In the head of a memory that a model of Claude Code wrote: its session."""


_TEAM = Origin(
    who="sync", why="what was in the team's folder when its history began", taint=frozenset(["team"])
)


def _find_writer(key: str, text: str | None, otherwise: Origin) -> Origin:
    """Whose words a file holds, as far as it says so; the same when a folder is adopted and later."""
    session = "" if text is None else read_memory(key, replace_lone_surrogates(text)).field(_MODEL_FIELD)
    if not session:
        return otherwise
    why = "a model of Claude Code wrote it"
    return replace(otherwise, who="agent", why=why, said_by="model", session=session[:100])


class MemoryUpkeep:
    """One thread at a time; any number of processes."""

    def __init__(
        self, store: MemoryStore, files: MemoryFiles, clock: Clock, emit: Emit, *, trusts_outside: bool
    ) -> None:
        self._store, self._files, self._clock, self._emit = store, files, clock, emit
        self._trusts_outside = trusts_outside
        self.index = IndexRenderer(store)
        self._erased = set[str]()
        """Keys that were purged: the history, which no longer speaks of them, cannot tell."""
        self._placed: dict[str, FileSnapshot] = {}
        """What was put in place or looked at, and is not recorded yet."""

    def settle(self, offset: int) -> None:
        """Return once the line at `offset` is durable, with its files in place if the disk lets us."""
        with self._alone(offset) as is_ours:
            if is_ours:
                self._bring_up_to_date()

    def adopt(self, *, needs_review: bool = False) -> None:
        """Begin the history of a folder that has none: what lies there is accepted, or held for a person."""
        with self._alone():
            if not self._store.state.end:
                first = make_first_entry(self._clock.now())
                self._store.record(lambda _: [first] if needs_review else [first, self._adopted()])
                if not needs_review:
                    self._bring_up_to_date()
        if needs_review:
            self.notice()

    def notice(self, *, check: bool = False) -> None:
        """Look at every file. Those that others changed wait for a person; those of the dead are put there.

        With `check` each is read, also where it looks the same as before. Where nothing can be written, that
        is told, and what is remembered can be read from the history all the same.
        """
        try:
            self._notice(check=check)
        except (DiskFull, DiskFault, AccessDenied) as error:
            self._emit(events.MemoryLagged(str(error)))

    def _notice(self, *, check: bool) -> None:
        with self._alone():
            state = self._store.state
            behind = len(state.stale)
            for key in sorted({*self._files.keys(), *state.placed, *state.stale} - {INDEX_FILE}):
                self._look_at(key, check=check)
            self._look_at_index(check=check)
            if self._needs_record():
                self._bring_up_to_date()
            if behind:
                self._emit(events.MemoryRecovered(behind))

    def purge(self, source: PurgeSource) -> PurgeReport:
        """Erase what came from a source, from the history and then from the files."""
        with self._alone():
            now, state = self._clock.now(), self._store.state
            placed = {**state.placed, **self._placed}
            done = purge_history(self._store, source, now, placed, self._files.sync)
            self._erased |= {*done.keys}
            self._bring_up_to_date(is_durable=True)
            if self._needs_record():
                raise DiskFault(
                    "it is erased from the history, and files in the memory folder could not be brought up "
                    "to date; see the event before this, then purge again"
                )
            forget_upkeep(self._store, now)
            self._store.write_checkpoint(least_bytes=0)
            return done

    def notice_some(self, keys: Iterable[str]) -> None:
        """The same for a few, read only where they look different from what was recorded."""
        odd = [key for key in keys if not self._looks_known(key)]
        if odd:
            with self._alone():
                for key in odd:
                    self._look_at(key)

    def agree(self, waiting: LoggedTransaction) -> LoggedTransaction:
        """What waits, as it would be if a person accepts it now."""
        return replace(waiting, changes=tuple(self._agreed(waiting, item) for item in waiting.changes))

    def _agreed(self, waiting: LoggedTransaction, change: LoggedChange) -> LoggedChange:
        origin = replace(waiting.origin_of(change), is_accepted=True)
        if change.key != INDEX_FILE or change.text is None:
            return replace(change, origin=origin, stamp=None)
        # Memories changed while it waited, and their lines with them.
        place = self._store.state.waiting[waiting.id].place
        text = self.index.update(change.text, self._store.keys_since(place.offset))
        return replace(change, origin=origin, stamp=None, text=text, after=hash_text(text))

    def take_edits(self, keys: Iterable[str], origin: Origin) -> None:
        """Files that a tool of ours changed: recorded as whose they are."""
        with self._alone():
            for key in keys:
                look = self._files.inspect(key)
                if look is not None and self._is_news(key, look):
                    self._record_edit(key, look, origin)
            if self._needs_record():
                self._bring_up_to_date()

    def _is_news(self, key: str, look: InspectedFile) -> bool:
        if key == INDEX_FILE:
            return look.text is not None and not self.index.is_same(look.text)
        return look.placement.sha256 != self._store.state.sha_of(key)

    @contextmanager
    def _alone(self, offset: int | None = None) -> Generator[bool]:
        """Hold the files for the block; or yield False, as others have dealt with the line at `offset`."""
        left = self._store.folder.timeouts.mutex
        while True:
            with ExitStack() as stack:
                try:
                    # Anew each time: who waits for long asks ever more rarely, and would wait for ever.
                    stack.enter_context(mutex(self._store.folder, FILES, wait=min(left, FILES_WAIT)))
                    is_locked = True
                except LockBusy:
                    left -= FILES_WAIT
                    if left <= timedelta():
                        raise
                    is_locked = False
                self._store.refresh()
                is_done = offset is not None and self._store.state.covered > offset
                if is_done or is_locked:
                    yield not is_done
                    return

    def _looks_known(self, key: str) -> bool:
        known = self._store.state.holding(key)
        look = self._files.inspect(key, known)
        return look is None or look.placement == known

    def _needs_record(self) -> bool:
        state = self._store.state
        is_behind = bool(self._placed or state.stale) or state.recorded >= state.covered
        return is_behind or state.boot != read_boot_id()

    def _bring_up_to_date(self, *, is_durable: bool = False) -> None:
        """Make the history durable, then put files and index in place and record that.

        That the files fail is told, and no more: what counts is recorded. `is_durable`: they too outlast a
        power cut, for there is no history to put them there again.
        """
        upto = self._sync()
        try:
            self._place_files()
            while upto < self._store.state.end:
                # Edits were found and recorded, and what others recorded was read with that.
                upto = self._sync()
                self._place_files()
            self._place_index()
            if is_durable:
                self._files.sync(self._placed)
            placed, boot, now = dict(self._placed), read_boot_id(), self._clock.now()
            self._store.record(lambda _: [UpkeepRecord(upto=upto, at=now, files=placed, boot=boot)])
            self._placed.clear()
            if not is_durable:  # else the history is about to be put together anew
                self._store.write_checkpoint()
        except SevenfoldError as error:
            self._emit(events.MemoryLagged(str(error)))

    def _sync(self) -> int:
        """Up to where the history is durable now: nothing is put in place that a power cut could undo."""
        upto = self._store.state.end
        self._store.log.sync()
        return upto

    def _place_files(self) -> None:
        for key in sorted(self._store.state.stale):
            self._look_at(key)
        self._look_at_index()

    def _look_at(self, key: str, *, check: bool = False) -> None:
        """Bring one file in line with the history, or the history with the file."""
        state = self._store.state
        known = self._placed.get(key) or state.holding(key)
        look = self._files.inspect(key, NO_FILE if check else known)
        if look is None:
            return
        wanted = known.sha256 if key in state.held else state.sha_of(key)
        if look.placement.sha256 == wanted:
            self._note(key, look.placement)
        elif self._is_ours(key, known, look) or self._is_lost(key, look):
            self._put(key)
        else:
            self._record_edit(key, look)

    def _put(self, key: str) -> None:
        version = self._store.state.versions.get(key)
        if version is None:
            self._note(key, self._files.remove(key))
        else:
            self._note(key, self._files.put(key, self._store.text_of(key, version)))

    def _note(self, key: str, placement: FileSnapshot) -> None:
        if placement != self._store.state.holding(key):
            self._placed[key] = placement
        else:
            self._placed.pop(key, None)

    def _is_ours(self, key: str, known: FileSnapshot, look: InspectedFile) -> bool:
        """Whether the file is as it was when last looked at, or as one of us left it who died right after."""
        found = look.placement.sha256
        return found == known.sha256 or found in self._store.state.uncovered.get(key, {})

    def _is_lost(self, key: str, look: InspectedFile) -> bool:
        """Whether a power cut took what we put there: the machine was started again since, and the file is
        the beginning of what it once was, with zeros for the rest."""
        if self._store.state.boot == read_boot_id():
            return False
        left = encode_text(look.text or "").rstrip(b"\0")
        if key == INDEX_FILE:
            return self.index.was_once(decode_text(left[: left.rfind(b"\n") + 1]))
        changes = self._store.changes()
        return any(item.key == key and encode_text(item.text or "").startswith(left) for item in changes)

    def _record_edit(self, key: str, look: InspectedFile, origin: Origin = _EDIT) -> None:
        """Somebody changed a file: it waits for a person, unless whoever did it may do so."""
        writer = _find_writer(key, look.text, _EDIT) if origin is _EDIT else origin
        if origin is _EDIT and self._trusts_outside:
            writer = replace(writer, is_accepted=True)
        kind = "commit" if writer.is_trusted else "outside"

        def plan(state: MemoryState) -> list[LoggedTransaction]:
            found = look.placement
            change = LoggedChange(
                key=key, before=state.sha_of(key), after=found.sha256, text=look.text, stamp=found.stamp
            )
            older = (state.held[key],) if key in state.held else ()
            now, id_ = self._clock.now(), new_transaction_id()
            return [
                LoggedTransaction(
                    id=id_,
                    at=now,
                    kind=kind,
                    origin=writer,
                    changes=(change,),
                    reason=origin.why,
                    settles=older,
                )
            ]

        [found] = self._store.record(plan)
        self._placed.pop(key, None)
        if isinstance(found.entry, LoggedTransaction) and kind == "outside":
            self._emit(events.MemoryEdited(key, found.entry.id))

    def _look_at_index(self, *, check: bool = False) -> None:
        """The same for the index, of which only what a person says in it counts."""
        state = self._store.state
        known = self._placed.get(INDEX_FILE) or state.holding(INDEX_FILE)
        look = self._files.inspect(INDEX_FILE, NO_FILE if check else known)
        if look is None or look.placement.sha256 == known.sha256:
            return
        is_ours = look.text is None or look.placement.sha256 in state.intended
        if is_ours or self._is_lost(INDEX_FILE, look) or self.index.is_same(look.text or ""):
            self._placed[INDEX_FILE] = look.placement  # it is put there again
        else:
            self._record_edit(INDEX_FILE, look)

    def _place_index(self) -> None:
        state = self._store.state
        known = self._placed.get(INDEX_FILE) or state.holding(INDEX_FILE)
        wanted = self._edited_index() if INDEX_FILE in state.held else self.index.render()
        if not wanted and state.layout is None:
            self._note(INDEX_FILE, self._files.remove(INDEX_FILE))
        elif (sha256 := hash_text(wanted)) != known.sha256:
            # Told before it is done: what lies there after a death is then known to be nobody else's.
            intent = UpkeepRecord(
                upto=state.covered, at=self._clock.now(), files={}, boot=state.boot, intends=sha256
            )
            self._store.record(lambda _: [intent])
            self._note(INDEX_FILE, self._files.put(INDEX_FILE, wanted))

    def _edited_index(self) -> str:
        """What somebody made of the index and nobody has accepted yet, with a line for every memory."""
        state, look = self._store.state, self._files.inspect(INDEX_FILE)
        since = state.waiting[state.held[INDEX_FILE]].place.offset
        named = self._store.keys_since(since) | self._erased
        return self.index.update((look.text if look else None) or "", named)

    def _adopted(self) -> LoggedTransaction:
        found: list[LoggedChange] = []
        origin = Origin(who="user", why="found when the history was started")
        for key in [*self._files.keys(), INDEX_FILE]:
            look = self._files.inspect(key)
            if look and look.text is not None and look.placement.stamp:
                known = _TEAM if key.startswith(TEAM_PREFIX) else origin
                stamp, writer = look.placement.stamp, _find_writer(key, look.text, known)
                found.append(
                    LoggedChange(
                        key=key,
                        before=None,
                        after=look.placement.sha256,
                        text=look.text,
                        origin=None if writer is origin else writer,
                        at=stamp.time,
                        stamp=stamp,
                    )
                )
        found.sort(key=lambda change: (change.at or self._clock.now(), change.key))
        return LoggedTransaction(
            id=new_transaction_id(), at=self._clock.now(), kind="adopt", origin=origin, changes=tuple(found)
        )
