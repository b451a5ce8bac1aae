"""Where the uses of memories are counted: one file of the project, out of every agent's reach.

Counts are no truth that anything rests on: a damaged file is set aside, which is told, and counting begins
anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

from sevenfold.core.errors import FileMissing, InputError, StoreError
from sevenfold.core.events import Emit, UsesLost, ignore
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.core.memory_uses import NO_USES, USE_KINDS, Use, UseKind, Uses, add_uses
from sevenfold.store.folder import Folder
from sevenfold.store.mutex import mutex

FILE = "memory-uses.json"
MAX_BYTES = 64 * 1024 * 1024
"""Some 400,000 memories."""
_MUTEX = "memory-uses"
_LAST, _WARMTH = "last", "warmth"


class UseBook:
    """The file, in a project's control folder. Every method blocks on the disk."""

    def __init__(self, control: Folder, *, emit: Emit = ignore) -> None:
        self._control, self._emit = control, emit

    def read(self) -> Mapping[str, Uses]:
        """By key; empty where nothing was used yet."""
        try:
            stored = read_object(self._control.read(FILE, max_bytes=MAX_BYTES))
        except FileMissing:
            return MappingProxyType({})
        except (InputError, StoreError) as error:
            self._emit(UsesLost(f"{self._control.path}/{FILE}", str(error)))
            return MappingProxyType({})
        read = ((key, _read_uses(value)) for key, value in stored.items())
        return MappingProxyType({key: uses for key, uses in read if uses != NO_USES})

    def add(self, uses: Iterable[Use], now: datetime) -> None:
        """Count these, with nobody else in between."""
        listed = tuple(uses)
        if listed:
            with mutex(self._control, _MUTEX):
                self._write(add_uses(self.read(), listed, now))

    def forget(self, keys: Iterable[str]) -> None:
        """Drop what was counted for these, which are gone for good."""
        gone = frozenset(keys)
        with mutex(self._control, _MUTEX):
            before = self.read()
            if not gone.isdisjoint(before):
                self._write({key: uses for key, uses in before.items() if key not in gone})

    def _write(self, uses: Mapping[str, Uses]) -> None:
        written = {key: _written(one) for key, one in uses.items()}
        self._control.replace(FILE, write_json(freeze_object(written)))


def _written(uses: Uses) -> JsonObject:
    counts: dict[str, Json] = {kind: uses.count(kind) for kind in USE_KINDS if uses.count(kind)}
    if uses.last is not None:
        counts |= {_LAST: uses.last.isoformat(), _WARMTH: round(uses.warmth, 6)}
    return JsonObject(counts)


def _read_uses(value: Json) -> Uses:
    """What can be read of one line; a newer version may count more."""
    if not isinstance(value, JsonObject):
        return NO_USES
    counts: dict[UseKind, int] = {}
    for kind in USE_KINDS:
        count = value.get(kind)
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            counts[kind] = count
    last, warmth = _read_time(value.get(_LAST)), value.get(_WARMTH)
    if last is None or not isinstance(warmth, float | int) or not 0 <= warmth < 1e9:
        return Uses(MappingProxyType(counts))
    return Uses(MappingProxyType(counts), last, float(warmth))


def _read_time(value: Json) -> datetime | None:
    try:
        read = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return read if read and read.tzinfo else None
