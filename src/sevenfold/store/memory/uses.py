"""Where the uses of memories are counted: one file of the project, out of every agent's reach.

Counts are no truth that anything rests on: a damaged file is set aside, which is told, and counting begins
anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.memory_uses import (
    MEMORY_USE_KINDS,
    NO_USES,
    MemoryUse,
    MemoryUseKind,
    MemoryUses,
    add_uses,
)
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.sidecar_file import SidecarFile, read_time

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
