"""Daily logs of long-lived assistants: appended through the memories' own history, distilled by dreams, and
read again only when they have grown."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sevenfold.core.errors import FileMissing, InputError, MemoryConflict, StoreError
from sevenfold.core.json import freeze_object, read_object, write_json
from sevenfold.core.memories import LOGS_PREFIX
from sevenfold.core.provenance import Origin
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import StoredMemory, Write
from sevenfold.store.memory.directory import MemoryDir

_STATE = "dream-logs.json"
_MAX_STATE_BYTES = 1024 * 1024
MAX_APPEND_TRIES = 20
"""Somebody else appended in between; each try reads what they wrote."""
_MOST_BYTES = 256 * 1024
"""Of one day: beyond that it is no log that anybody distils."""
MAX_LOG_LINE_CHARS = 400


def make_log_key(when: datetime) -> str:
    """The log of that day, by the reader's own calendar."""
    return f"{LOGS_PREFIX}{when:%Y/%m/%Y-%m-%d}.md"


def append_log(memory: MemoryDir, said: str, when: datetime, origin: Origin) -> str:
    """Add a line to the day's log, whose key is returned; all else in it stays. Blocks on the disk."""
    key, line = make_log_key(when), f"- {when:%H:%M} {' '.join(said.split())[:MAX_LOG_LINE_CHARS]}\n"
    for _ in range(MAX_APPEND_TRIES):
        found = memory.find(key)
        text = (found.memory.text if found else f"# {when:%Y-%m-%d}\n\n") + line
        if len(text.encode("utf-8", "surrogatepass")) > _MOST_BYTES:
            raise InputError(
                f"{key} has reached {_MOST_BYTES:,} bytes, which is the most of a day; it is full"
            )
        try:
            memory.commit([Write(key, text, found.sha256 if found else None)], origin)
        except MemoryConflict:
            continue
        return key
    raise MemoryConflict(f"{key} was written to all the while; try again", keys=(key,))


class DistilledLogs:
    """Which logs a dream has been through, by their SHA-256. Every method blocks on the disk."""

    def __init__(self, control: Folder) -> None:
        self._control = control

    def read(self) -> dict[str, str]:
        try:
            wire = read_object(self._control.read(_STATE, max_bytes=_MAX_STATE_BYTES))
        except (FileMissing, InputError, StoreError):
            return {}  # they are distilled once more, which adds nothing that is there
        return {key: value for key, value in wire.items() if isinstance(value, str)}

    def write(self, logs: Mapping[str, StoredMemory]) -> None:
        known = {**self.read(), **{key: log.sha256 for key, log in logs.items()}}
        if logs:
            self._control.replace(_STATE, write_json(freeze_object(known)) + b"\n")
