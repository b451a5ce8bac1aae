"""What is remembered of failed compactions, as a file of the session: a restart forgives nothing."""

from __future__ import annotations

from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.events import BreakerStateLost, Emit, ignore_event
from sevenfold.core.json import read_object, write_json
from sevenfold.layers.compaction.policy import BreakerState
from sevenfold.store.files.folder import Folder

COMPACT_STATE_FILE = "compact.json"
_MAX_STATE_BYTES = 4_096


class CompactionStateFile:
    """`compact.json` in a session's folder. Without a folder it remembers nothing."""

    def __init__(self, session: Folder | None = None, *, emit: Emit = ignore_event) -> None:
        self._folder = session
        self._emit = emit

    def read(self) -> BreakerState:
        """What was kept; nothing where there is none, or none that can be read, which is told."""
        if self._folder is None:
            return BreakerState()
        try:
            return BreakerState.from_json(
                read_object(self._folder.read(COMPACT_STATE_FILE, max_bytes=_MAX_STATE_BYTES))
            )
        except FileMissing:
            return BreakerState()
        except SevenfoldError as error:
            self._tell(error)
            return BreakerState()

    def write(self, state: BreakerState) -> None:
        """Keep it. A disk that refuses does not stop a compaction."""
        if self._folder is None:
            return
        try:
            self._folder.replace(COMPACT_STATE_FILE, write_json(state.to_json()))
        except SevenfoldError as error:
            self._tell(error)

    def _tell(self, error: SevenfoldError) -> None:
        where = f"{self._folder.path}/{COMPACT_STATE_FILE}" if self._folder else COMPACT_STATE_FILE
        self._emit(BreakerStateLost(where, str(error)))
