"""The memories that a session reads: its owner's directory, or one opened when there is something to read."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from sevenfold.core.memories import INDEX_FILE
from sevenfold.layers.context.sources import ContextSource
from sevenfold.layers.memory.recall.finder import MemoryLibrary
from sevenfold.session.opening import SessionResources
from sevenfold.store.memory.directory import MemoryDir


class SessionMemories:
    """Of one session. Every method blocks on the disk."""

    def __init__(self, opened: SessionResources, memory: MemoryDir | None = None) -> None:
        self._opened, self._memory = opened, memory
        self._owned: MemoryDir | None = None
        self._lock = Lock()

    @property
    def is_possible(self) -> bool:
        """Whether there may be anything to read at all."""
        return self._opened.project is not None and self._opened.around.settings.memory.enabled

    def library(self) -> MemoryLibrary | None:
        """None where memory is switched off, or nothing was ever remembered."""
        opened, memory = self._opened, self._find()
        if memory is None or opened.project is None:
            return None
        home, root = opened.instructions.home, opened.instructions.root or opened.project.root
        return MemoryLibrary(opened.project, memory, home, Path(root))

    def index(self) -> tuple[ContextSource, ...]:
        """The memory index as a context source; empty where there is no index."""
        memory = self._find()
        found = memory.index_text() if memory is not None else None
        if memory is None or found is None or not found.text.strip():
            return ()
        text = f"{found.text.rstrip()}\n{found.warning}".rstrip()
        return (ContextSource("memory", text, str(memory.path / INDEX_FILE)),)

    def close(self) -> None:
        with self._lock:
            if self._owned is not None:
                self._owned.close()
                self._owned = self._memory = None

    def _find(self) -> MemoryDir | None:
        around, project = self._opened.around, self._opened.project
        if project is None or not self.is_possible:
            return None
        with self._lock:
            if self._memory is None and project.memory.names():
                trusts = around.settings.memory.trust_outside
                self._memory = self._owned = MemoryDir(
                    project, clock=around.clock, emit=around.emit, trusts_outside=trusts
                )
            return self._memory
