"""What is known of memories besides their text: JSON files that many processes change, and may be lost.

In order: one such file (`SidecarFile`), which memories claim what is not there (`MarkStore`), how often
memories were used (`UseStore`), and forgetting all of it when a memory is erased.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from sevenfold.core.errors import FileMissing, InputError, StoreError, WireError
from sevenfold.core.events import Emit, UsesLost, ignore_event
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_object, write_json
from sevenfold.core.memories import (
    MEMORY_USE_KINDS,
    NO_USES,
    MemoryUse,
    MemoryUseKind,
    MemoryUses,
    add_uses,
)
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex

_MAX_BYTES = 64 * 1024 * 1024
"""Some 400,000 memories."""


class SidecarFile:
    """One such file, by key of memory, in a project's control folder. Every method blocks on the disk."""

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
            self._emit(UsesLost(f"{self._control.path}/{self.file}", str(error)))
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
    """The file, in a project's control folder. Every method blocks on the disk."""

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
# control/recall/              what a search keeps: made again when it is needed
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
        shutil.rmtree(dreams.path / name, ignore_errors=True)
    elif name.endswith(".json"):
        try:
            account = read_object(dreams.read(name, max_bytes=MAX_ACCOUNT_BYTES))
        except InputError:
            dreams.remove(name)
        else:
            dreams.replace(name, write_json(account.without(*_WORDY)) + b"\n")
