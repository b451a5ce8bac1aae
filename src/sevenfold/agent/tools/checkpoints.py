"""Files as they were before each edit of a session, so that an edit can be taken back.

Before a tool changes a file, what it held is stored in the session's folder, and a line of the log says
which edit it was; only then is the file changed. Whoever is killed between the two has a log that is ahead of
the file, which restoring notices. Restoring a file is an edit like any other: it is logged first, and can be
taken back. What a command changes is not seen here.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.core.errors import FileExists, FileMissing, SevenfoldError, StoreError, WireError
from sevenfold.core.events import CheckpointFailed, Emit, ignore_event
from sevenfold.core.json import JsonObject, freeze_object, read_object, write_json
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.user_files import FileState, find_file_state, remove_file, replace_file

CHECKPOINT_FOLDER, _LOG = "checkpoints", "log.jsonl"
MAX_CHECKPOINT_BYTES = 256 * 1024 * 1024
"""Of one session's contents: the oldest go first. A thousand edits of a large source fit."""
MAX_CHECKPOINT_LOG_BYTES = 16 * 1024 * 1024
_MAX_FILE_BYTES = 16 * 1024 * 1024
"""As much as tools edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One edit: what a file held before, and after it."""

    number: int
    path: str
    before: str | None
    """The digest of its content; None: there was no file."""
    after: str | None
    mode: int
    """Its permission bits before."""
    anchor: RecordId | None
    """The last message of the history then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewindRecord:
    """The conversation, or files, or both, went back."""

    number: int
    after: RecordId | None
    """The last message that stayed."""
    dropped: tuple[RecordId, ...]
    """Messages that left the conversation, in order; they are in the transcript."""
    first: int
    """The number of the first edit that restored a file; those up to this record did."""
    is_undone: bool = False


RestoreState: TypeAlias = Literal["same", "restore", "changed", "lost"]
"""`changed`: by somebody else since the last edit. `lost`: what it held is no longer kept."""


@dataclass(frozen=True, slots=True)
class FileRestore:
    """What going back would do to one file."""

    path: str
    state: RestoreState
    target: Checkpoint
    """It holds what the file is to hold."""
    found: FileState | None
    """As it is now; None: there is no file."""


@dataclass(slots=True, kw_only=True)
class CheckpointStore:
    """The edits of one session, by all of its agents."""

    session: Path
    """The session's folder."""
    last_message: Callable[[], RecordId | None]
    """The id of the last message of the history, as of now."""
    emit: Emit = ignore_event
    _edits: list[Checkpoint] = field(default_factory=list[Checkpoint])
    _rewinds: list[RewindRecord] = field(default_factory=list[RewindRecord])
    _renamed: dict[RecordId, RecordId] = field(default_factory=dict[RecordId, RecordId])
    """Messages that came back after a rewind was undone: as they were called, and as they are."""
    _next: int = 1
    _is_read: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def note(self, real: str, before: bytes | None, after: bytes | None) -> None:
        """A file is about to be changed. Blocks on the disk; where nothing can be stored, an event says so
        and the edit goes on."""
        with self._lock:
            try:
                self._read()
                with self._open() as folder:
                    if before is not None:
                        self._store(folder, before)
                    self._append(folder, self._make(real, before, after))
            except (SevenfoldError, OSError) as error:
                self.emit(CheckpointFailed(real, str(error)))

    def edits(self) -> Sequence[Checkpoint]:
        """Oldest first."""
        with self._lock:
            self._read()
            return tuple(self._edits)

    def find_first(self, ids: Sequence[RecordId], place: int) -> int | None:
        """The number of the first edit made after the message at this place of the history was said; None
        where there is none. `ids` are of the messages of the history, as it is now."""
        places = {name: float(at) for at, name in enumerate(ids)}
        with self._lock:
            self._read()
            cuts = {name: rewind for rewind in self._rewinds for name in rewind.dropped}
            for edit in self._edits:
                if _place_of(edit.anchor, places, cuts, self._renamed) >= place:
                    return edit.number
        return None

    def plan(self, first: int, until: int | None = None) -> list[FileRestore]:
        """What taking back the edits from this number on does to each file, as they are now."""
        with self._lock:
            self._read()
            targets: dict[str, Checkpoint] = {}
            known: dict[str, set[str | None]] = {}
            for edit in self._edits:
                if first <= edit.number and (until is None or edit.number < until):
                    targets.setdefault(edit.path, edit)
                    known.setdefault(edit.path, set()).update((edit.before, edit.after))
            with self._open() as folder:
                return [self._compare(folder, edit, known[path]) for path, edit in targets.items()]

    def restore(self, plan: Sequence[FileRestore]) -> list[str]:
        """Put the files of a plan back that can be; their paths. A file that was changed meanwhile stays."""
        done: list[str] = []
        with self._lock, self._open() as folder:
            for item in plan:
                if item.state != "restore":
                    continue
                target = None if item.target.before is None else self._load(folder, item.target.before)
                self.note(item.path, item.found.data if item.found else None, target)
                _put_back(item, target)
                done.append(item.path)
        return done

    def note_rewind(self, after: RecordId | None, dropped: Sequence[RecordId], first: int) -> None:
        """The conversation went back to this message, or files by the edits from `first` on."""
        with self._lock:
            self._read()
            record = RewindRecord(number=self._next, after=after, dropped=tuple(dropped), first=first)
            with self._open() as folder:
                self._append(folder, record)

    def find_last_rewind(self) -> RewindRecord | None:
        """The one that can be undone; None: there is none."""
        with self._lock:
            self._read()
            return next((one for one in reversed(self._rewinds) if not one.is_undone), None)

    def note_undone(self, rewind: RewindRecord, renamed: Mapping[RecordId, RecordId]) -> None:
        """A rewind was undone; `renamed` are the messages that came back, by what they were called before."""
        with self._lock, self._open() as folder:
            self._write(folder, {"undone": rewind.number, "renamed": dict(renamed)})
            self._undo(rewind.number, renamed)

    def _undo(self, number: object, renamed: Mapping[RecordId, RecordId]) -> None:
        self._rewinds = [
            replace(one, is_undone=one.is_undone or one.number == number) for one in self._rewinds
        ]
        self._renamed |= renamed

    @property
    def next_number(self) -> int:
        with self._lock:
            self._read()
            return self._next

    def _make(self, real: str, before: bytes | None, after: bytes | None) -> Checkpoint:
        mode = 0o644
        if before is not None:
            with suppress(OSError):
                mode = stat.S_IMODE(os.lstat(real).st_mode)
        return Checkpoint(
            number=self._next,
            path=real,
            before=None if before is None else _digest(before),
            after=None if after is None else _digest(after),
            mode=mode,
            anchor=self.last_message(),
        )

    def _compare(self, folder: Folder, target: Checkpoint, known: set[str | None]) -> FileRestore:
        try:
            found = find_file_state(target.path, max_bytes=_MAX_FILE_BYTES)
        except SevenfoldError:  # a folder, a link or something huge: nobody's edit made that
            return FileRestore(target.path, "changed", target, None)
        now = None if found is None else _digest(found.data)
        state: RestoreState = "restore"
        if now == target.before:
            state = "same"
        elif now not in known:
            state = "changed"
        elif target.before is not None and folder.stat(target.before) is None:
            state = "lost"
        return FileRestore(target.path, state, target, found)

    def _open(self) -> Folder:
        with Folder.open(self.session, create=True) as session:
            return session.subfolder(CHECKPOINT_FOLDER)

    def _store(self, folder: Folder, data: bytes) -> None:
        name = _digest(data)
        if folder.stat(name) is not None:
            return
        self._make_room(folder, len(data))
        with suppress(FileExists):
            folder.create(name, data)

    def _make_room(self, folder: Folder, size: int) -> None:
        sizes = {name: found.size_bytes for name in folder.names() if (found := folder.stat(name))}
        used = sum(sizes.values()) + size
        for edit in self._edits:
            if used <= MAX_CHECKPOINT_BYTES:
                return
            if edit.before in sizes:
                folder.remove(edit.before)
                used -= sizes.pop(edit.before)

    def _load(self, folder: Folder, name: str) -> bytes:
        data = folder.read(name, max_bytes=_MAX_FILE_BYTES)
        if _digest(data) != name:
            raise StoreError(f"{folder.path}/{name} is damaged; the file is left as it is")
        return data

    def _append(self, folder: Folder, record: Checkpoint | RewindRecord) -> None:
        if isinstance(record, Checkpoint):
            named: dict[str, object] = {"edit": record.number, "path": record.path, "mode": record.mode}
            self._write(
                folder, {**named, "before": record.before, "after": record.after, "anchor": record.anchor}
            )
            self._edits.append(record)
        else:
            fields = {"rewind": record.number, "after": record.after, "first": record.first}
            self._write(folder, {**fields, "dropped": list(record.dropped)})
            self._rewinds.append(record)
        self._next = record.number + 1

    def _write(self, folder: Folder, fields: Mapping[str, object]) -> None:
        # On a line of its own, also after one that a dead writer left unfinished.
        line = b"\n" + write_json(freeze_object(fields)) + b"\n"
        folder.append(_LOG, line)

    def _read(self) -> None:
        """Once: whoever holds the session is the only writer."""
        if self._is_read:
            return
        self._is_read = True
        data = b""
        if self.session.joinpath(CHECKPOINT_FOLDER, _LOG).exists():
            with self._open() as folder, suppress(FileMissing):
                data = folder.read(_LOG, max_bytes=MAX_CHECKPOINT_LOG_BYTES)
        for line in data.split(b"\n"):
            with suppress(WireError, KeyError, TypeError, ValueError):
                self._take(line) if line.strip() else None

    def _take(self, line: bytes) -> None:
        fields = read_object(line)
        if "undone" in fields:
            renamed = fields["renamed"]
            named = renamed.items() if isinstance(renamed, JsonObject) else ()
            self._undo(fields["undone"], {RecordId(old): RecordId(str(new)) for old, new in named})
            return
        number = fields["edit"] if "edit" in fields else fields["rewind"]
        if not isinstance(number, int):
            return
        self._next = max(self._next, number + 1)
        if "edit" in fields:
            self._edits.append(
                Checkpoint(
                    number=number,
                    path=str(fields["path"]),
                    before=_text(fields["before"]),
                    after=_text(fields["after"]),
                    mode=_number(fields["mode"], 0o644),
                    anchor=_name(fields["anchor"]),
                )
            )
            return
        dropped, first = fields["dropped"], fields["first"]
        self._rewinds.append(
            RewindRecord(
                number=number,
                after=_name(fields["after"]),
                dropped=tuple(RecordId(str(one)) for one in dropped) if isinstance(dropped, tuple) else (),
                first=_number(first, number),
            )
        )


def _put_back(item: FileRestore, data: bytes | None) -> None:
    if data is None:
        if item.found is not None:
            remove_file(item.path, expected=item.found, max_bytes=_MAX_FILE_BYTES)
        return
    replace_file(item.path, data, expected=item.found, max_bytes=_MAX_FILE_BYTES)
    if item.found is None:
        with suppress(OSError):
            fd = os.open(item.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fchmod(fd, item.target.mode)
            finally:
                os.close(fd)


def _place_of(
    name: RecordId | None,
    places: Mapping[RecordId, float],
    cuts: Mapping[RecordId, RewindRecord],
    renamed: Mapping[RecordId, RecordId],
) -> float:
    """Where an edit stands among the messages of the history. Of one whose message left the conversation:
    behind the last message that stayed. Of one from before a boundary: before everything."""
    added = 0.0
    for _ in range(len(cuts) + 1):
        while name is not None and name in renamed:
            name = renamed[name]
        if name is None:
            return -1.0 + added
        if name in places:
            return places[name] + added
        if name not in cuts:
            return -2.0
        name, added = cuts[name].after, 0.5
    return -2.0


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _name(value: object) -> RecordId | None:
    return RecordId(value) if isinstance(value, str) else None
