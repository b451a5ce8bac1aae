"""What is known of memories beside their text: small JSON files that many change, lost without harm."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sevenfold.core.errors import FileMissing, InputError, StoreError
from sevenfold.core.events import Emit, UsesLost, ignore_event
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_object, write_json
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.mutex import mutex

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
