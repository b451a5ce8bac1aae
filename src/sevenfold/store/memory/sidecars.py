"""What is known of memories besides their text: JSON files that many processes change, and may be lost.

In order: one such file (`SidecarFile`), which memories claim what is not there (`MarkStore`), how often
memories were used (`UseStore`), forgetting all of it when a memory is erased, and moving the state of a
directory out of a project's control folder, where it was kept before (`begin_state`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from sevenfold.core import events
from sevenfold.core.errors import (
    FileDamaged,
    FileMissing,
    InputError,
    NotRegular,
    ProjectError,
    SevenfoldError,
    StoreError,
    WireError,
)
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_object, write_json
from sevenfold.core.memories import (
    INDEX_FILE,
    MEMORY_USE_KINDS,
    NO_USES,
    MemoryUse,
    MemoryUseKind,
    MemoryUses,
    add_uses,
)
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.memory.files import MemoryFiles
from sevenfold.store.memory.history import HISTORY_MUTEX, MemoryStore
from sevenfold.store.memory.state import MemoryState
from sevenfold.store.memory.upkeep import FILES

_MAX_BYTES = 64 * 1024 * 1024
"""Some 400,000 memories."""


class SidecarFile:
    """One such file, by key of memory, in the state of a directory. Every method blocks on the disk."""

    def __init__(self, control: Folder, name: str, *, emit: Emit = ignore_event) -> None:
        self._control, self._name, self._emit = control, name, emit

    @property
    def file(self) -> str:
        return f"{self._name}.json"

    def read(self) -> JsonObject:
        """What it holds. A damaged one counts as empty, which is told, and is replaced at the next change."""
        try:
            return read_object(self._control.read(self.file, max_bytes=_MAX_BYTES))
        except FileMissing:
            return EMPTY_OBJECT
        except (InputError, StoreError) as error:
            self._emit(events.UsesLost(f"{self._control.path}/{self.file}", str(error)))
            return EMPTY_OBJECT

    def change(self, change: Callable[[JsonObject], JsonObject]) -> None:
        """Read, change and replace it with nobody else in between."""
        with mutex(self._control, self._name):
            before = self.read()
            after = change(before)
            if after != before:
                self._control.replace(self.file, write_json(after))


def read_time(value: Json) -> datetime | None:
    """A moment with its zone; None for anything else."""
    try:
        read = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return read if read and read.tzinfo else None


# Marked by hash, so that a corrected memory is not marked.

MARKS_NAME = "memory-marks"


@dataclass(frozen=True, slots=True)
class BrokenMark:
    """What was wrong with one version of a memory."""

    sha256: str
    broken: tuple[str, ...]
    """Each claim with its reason."""
    at: datetime


class MarkStore:
    """The marks of a project. Every method blocks on the disk."""

    def __init__(self, control: Folder, *, emit: Emit = ignore_event) -> None:
        self._file = SidecarFile(control, MARKS_NAME, emit=emit)

    def read(self) -> Mapping[str, BrokenMark]:
        """By key. A mark whose hash is not the memory's own any more says nothing of it."""
        read = ((key, _read_mark(value)) for key, value in self._file.read().items())
        return {key: mark for key, mark in read if mark is not None}

    def put(self, marks: Mapping[str, BrokenMark | None]) -> None:
        """Mark these, and take the mark off those with None; others stay as they are."""
        if marks:
            self._file.change(lambda before: _with(before, marks))


def _with(before: JsonObject, marks: Mapping[str, BrokenMark | None]) -> JsonObject:
    kept = dict(before.without(*marks))
    put = {key: write_fields(mark) for key, mark in marks.items() if mark is not None}
    return JsonObject({**kept, **put})


def _read_mark(value: Json) -> BrokenMark | None:
    try:
        return read_fields(BrokenMark, value)
    except WireError:
        return None


# Nothing depends on the counts: a damaged file is set aside, with an event, and counting starts again.

USES_NAME = "memory-uses"
_LAST, _WARMTH = "last", "warmth"


class UseStore:
    """The file, in the state of a memory directory. Every method blocks on the disk."""

    def __init__(self, control: Folder, *, emit: Emit = ignore_event) -> None:
        self._file = SidecarFile(control, USES_NAME, emit=emit)

    def read(self) -> Mapping[str, MemoryUses]:
        """By key; empty where nothing was used yet."""
        return _read(self._file.read())

    def add(self, uses: Iterable[MemoryUse], now: datetime) -> None:
        """Count these, with nobody else in between."""
        listed = tuple(uses)
        if listed:
            self._file.change(lambda before: _write_uses(add_uses(_read(before), listed, now)))

    def forget(self, keys: Iterable[str]) -> None:
        """Drop what was counted for these, which are gone for good."""
        gone = tuple(keys)
        self._file.change(lambda before: before.without(*gone))


def _read(stored: JsonObject) -> dict[str, MemoryUses]:
    read = ((key, _read_uses(value)) for key, value in stored.items())
    return {key: uses for key, uses in read if uses != NO_USES}


def _write_uses(uses: Mapping[str, MemoryUses]) -> JsonObject:
    return JsonObject({key: _written_uses(one) for key, one in uses.items()})


def _written_uses(uses: MemoryUses) -> JsonObject:
    counts: dict[str, Json] = {kind: uses.count(kind) for kind in MEMORY_USE_KINDS if uses.count(kind)}
    if uses.last is not None:
        counts |= {_LAST: uses.last.isoformat(), _WARMTH: round(uses.warmth, 6)}
    return JsonObject(counts)


def _read_uses(value: Json) -> MemoryUses:
    """What can be read of one line; a newer version may count more."""
    if not isinstance(value, JsonObject):
        return NO_USES
    counts: dict[MemoryUseKind, int] = {}
    for kind in MEMORY_USE_KINDS:
        count = value.get(kind)
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            counts[kind] = count
    last, warmth = read_time(value.get(_LAST)), value.get(_WARMTH)
    if last is None or not isinstance(warmth, float | int) or not 0 <= warmth < 1e9:
        return MemoryUses(MappingProxyType(counts))
    return MemoryUses(MappingProxyType(counts), last, float(warmth))


# Forgotten when something is erased, because they hold names or words of memories:
#
# <state>/recall/              what a search keeps: made again when it is needed
#         dreams/              accounts of dreams: their existence, and what can be taken back, stay
#         memory-marks.json    what was found wrong with a memory
#         memory-uses.json     how often each was used

_SEARCH = "recall"
DREAMS_FOLDER = "dreams"
MAX_ACCOUNT_BYTES = 1024 * 1024

_WORDY = ("reason", "changed", "removed", "archived", "spared", "let_go", "report", "steps")
"""In the account of a dream: names of memories, and words of them."""


def forget_traces(control: Folder, changed: Collection[str], gone: Collection[str]) -> None:
    """Of memories of which something was erased, and of those that are gone. Which words a search and dreams
    hold is not asked: all of them go."""
    MarkStore(control).put(dict.fromkeys(changed))
    UseStore(control).forget(gone)
    with suppress(FileMissing), control.subfolder(_SEARCH, create=False) as kept:
        for name in kept.names():
            kept.remove(name)
    with suppress(FileMissing), control.subfolder(DREAMS_FOLDER, create=False) as dreams:
        for name in dreams.names():
            _forget_dream(dreams, name)


def _forget_dream(dreams: Folder, name: str) -> None:
    if name.endswith(".diff"):
        dreams.remove(name)
    elif "." not in name:
        # The copy of one that died; one that is under way ends with an error, and nothing is changed by it.
        from shutil import rmtree  # not at the top: it loads compression, and every command reads memories

        rmtree(dreams.path / name, ignore_errors=True)
    elif name.endswith(".json"):
        try:
            account = read_object(dreams.read(name, max_bytes=MAX_ACCOUNT_BYTES))
        except InputError:
            dreams.remove(name)
        else:
            dreams.replace(name, write_json(account.without(*_WORDY)) + b"\n")


# State used to be kept by project alone, wherever a setting put the memories: what is in the control folder
# of a project belongs to the directory that it was last used with, and nothing in it names that one.

_BEGINNING = "beginning.json"
_SOURCE, _LOG_BYTES, _HOLDS_FILES = "source", "log_bytes", "holds_files"
"""Which project has a copy of the state that is to be removed, how much history that copy has, and whether
files that lie in the directory when its history begins wait for a person."""

_CONTROL = "control"
_HISTORY = "memory"
_LOG = "log.jsonl"
_OLD_FOLDERS = (_HISTORY, DREAMS_FOLDER, "team")
_OLD_FILES = (f"{USES_NAME}.json", f"{MARKS_NAME}.json", "dream-logs.json", "dream.lock.json")
_MAX_MOVED_BYTES = 4 * 1024 * 1024 * 1024


def begin_state(
    state: Folder, directory: Folder, owner: Path | None, *, is_claimed: bool, emit: Emit
) -> None:
    """Begin the state of a memory directory that has none: with that in the control folder of `owner`, whose
    project claimed the directory, if it is this directory's.

    A directory that was claimed and whose state is not found has a history that nobody knows, with edits that
    nobody has accepted perhaps: its files wait for a person. Nothing counts before the caller has said so in
    the identity file of the state, and what was cut off before is done again.
    """
    source = str(directory.path)
    begun = JsonObject()
    if owner is not None and _is_state_of(owner, directory):
        with Folder.open(owner / _CONTROL, disk=state.disk, timeouts=state.timeouts) as control:
            begun = JsonObject({_SOURCE: owner.name, _LOG_BYTES: _copy_old_state(control, state)})
        emit(events.MemoryStateMoved(source, str(owner)))
    elif is_claimed and has_memories(directory):
        begun = JsonObject({_HOLDS_FILES: True})
        emit(events.MemoryStateUnknown(source))
    if begun or _BEGINNING in state.names():
        state.replace(_BEGINNING, write_json(begun) + b"\n")


def is_beginning(state: Folder) -> bool:
    """Whether a state has begun with a copy, and the original is still to be removed."""
    return _SOURCE in _read_beginning(state)


class _MemoryPlaces(Protocol):
    """What is asked of a project."""

    @property
    def root(self) -> Path: ...
    @property
    def memory(self) -> Folder: ...
    @property
    def memory_state(self) -> Folder: ...
    @property
    def is_memory_shared(self) -> bool: ...


def holds_files(project: _MemoryPlaces) -> bool:
    """Whether files that lie in the directory when its history begins wait for a person.

    A directory inside the project's own folder may have come with the repository: its files are somebody
    else's words, until a person says otherwise.
    """
    is_shipped = project.is_memory_shared and project.memory.path.is_relative_to(project.root)
    return is_shipped or _HOLDS_FILES in _read_beginning(project.memory_state)


def clear_old_state(state: Folder, projects: Path) -> None:
    """Remove what was copied from a control folder, the history first: it decides what the rest is of.

    A history that has grown since is in use again, by the project's default directory, and stays.
    """
    begun = _read_beginning(state)
    owner = projects / str(begun.get(_SOURCE))
    with ExitStack() as stack:
        control = stack.enter_context(
            Folder.open(owner / _CONTROL, create=True, disk=state.disk, timeouts=state.timeouts)
        )
        folder = stack.enter_context(control.subfolder(_HISTORY))
        for name in (FILES, HISTORY_MUTEX):
            stack.enter_context(mutex(folder, name))
        found = folder.stat(_LOG)
        if found is None or found.size_bytes == begun.get(_LOG_BYTES):
            _remove_old_state(control, folder)
    state.replace(_BEGINNING, write_json(begun.without(_SOURCE, _LOG_BYTES)) + b"\n")


def has_memories(directory: Folder) -> bool:
    """Whether any memory or index lies there."""
    return any(MemoryFiles(directory, ignore_event).keys()) or directory.stat(INDEX_FILE) is not None


def _read_beginning(state: Folder) -> JsonObject:
    try:
        return read_object(state.read(_BEGINNING, max_bytes=MAX_ACCOUNT_BYTES))
    except FileMissing:
        return EMPTY_OBJECT
    except (InputError, FileDamaged, NotRegular) as error:
        raise ProjectError(
            f"{state.path}/{_BEGINNING} cannot be read ({error}); restore it, or replace it with "
            f'{{"{_HOLDS_FILES}": true}}, and memories without a history wait for review'
        ) from error


@contextmanager
def report_user_wide(emit: Emit) -> Generator[None]:
    """Go on without what is remembered for all projects if opening it, in the block, fails."""
    try:
        yield
    except SevenfoldError as error:
        emit(events.UserWideSkipped(str(error)))


@dataclass(frozen=True, slots=True)
class _Likeness:
    """How many memories of a history lie in a directory: the very files, the same texts, the same names."""

    files: int = 0
    texts: int = 0
    names: int = 0


def _is_state_of(owner: Path, directory: Folder) -> bool:
    """Whether the state in a project's control folder is that of `directory`, not of its default directory.

    The very files decide, by inode, time and size; then equal texts, as after a copy or a restored backup;
    then names, where the default directory has no memories.
    """
    with ExitStack() as exits:
        try:
            history = Folder.open(owner / _CONTROL / _HISTORY, disk=directory.disk)
        except FileMissing:
            return False
        store = MemoryStore(exits.enter_context(history), ignore_event)
        if not store.refresh():
            return False
        there, usual, has_usual = _compare(store.state, directory), _Likeness(), False
        with suppress(FileMissing):
            default = exits.enter_context(Folder.open(owner / _HISTORY, disk=directory.disk))
            usual, has_usual = _compare(store.state, default), has_memories(default)
    if there.files or usual.files:
        return not usual.files
    if there.texts or usual.texts:
        return not usual.texts
    is_empty = not (store.state.versions or store.state.placed)
    return (there.names > 0 or is_empty) and not has_usual


def _compare(state: MemoryState, directory: Folder) -> _Likeness:
    files = MemoryFiles(directory, ignore_event)
    same = texts = names = 0
    for key in {*state.versions, *state.placed} - {INDEX_FILE}:
        look = files.inspect(key)
        if look is None or look.placement.stamp is None:
            continue
        known = state.holding(key)
        names += 1
        same += look.placement.stamp == known.stamp
        texts += look.placement.sha256 in (known.sha256, state.sha_of(key))
    return _Likeness(same, texts, names)


def _copy_old_state(control: Folder, state: Folder) -> int:
    """The size of the history that was copied, in bytes."""
    for name in filter(control.names().__contains__, _OLD_FILES):
        state.replace(name, control.read(name, max_bytes=_MAX_MOVED_BYTES))
    for name in filter(control.names().__contains__, _OLD_FOLDERS):
        with control.subfolder(name, create=False) as source, state.subfolder(name) as target:
            for file in _list_files(source):
                target.replace(file, source.read(file, max_bytes=_MAX_MOVED_BYTES))
    size = state.stat(f"{_HISTORY}/{_LOG}")
    return size.size_bytes if size else 0


def _remove_old_state(control: Folder, history: Folder) -> None:
    for file in sorted(_list_files(history), key=lambda name: name != _LOG):
        history.remove(file)
    for name in filter(control.names().__contains__, _OLD_FOLDERS):
        with control.subfolder(name, create=False) as below:
            for file in _list_files(below):
                below.remove(file)
    for name in filter(control.names().__contains__, _OLD_FILES):
        control.remove(name)


def _list_files(folder: Folder) -> list[str]:
    """No mutex, for those are never removed, and no folder: a dream that was cut off leaves one."""
    return [name for name in folder.names() if not name.endswith(".mutex") and _is_file(folder, name)]


def _is_file(folder: Folder, name: str) -> bool:
    try:
        return folder.stat(name) is not None
    except NotRegular:
        return False
