"""The memories that are there, for a gate that looks for what says the same: read when they have changed."""

from __future__ import annotations

from collections.abc import Sequence

from sevenfold.layers.memory.extraction.gate import KnownMemory
from sevenfold.layers.memory.extraction.policy import ListedMemory
from sevenfold.layers.memory.search.lexical import LexicalIndex
from sevenfold.store.memory.changes import StoredMemory
from sevenfold.store.memory.directory import MemoryDir

MAX_NEAREST = 8
"""Memories that a draft is held against one by one. What says the same shares its words, and ranks first."""
_MAX_LISTED = 200
"""Memories in the manifest, newest first, so that it does not grow with the directory."""


class MemorySnapshot:
    """Blocks on the disk: `refresh` in a thread; the rest works from memory."""

    def __init__(self, memory: MemoryDir) -> None:
        self.memory = memory
        self._generation: int | None = None
        self._stored: dict[str, StoredMemory] = {}
        self._index = LexicalIndex()

    def refresh(self) -> None:
        generation = self.memory.generation()
        if generation == self._generation:
            return
        found: dict[str, StoredMemory] = {stored.memory.key: stored for stored in self.memory.scan(None)}
        for key in self._stored.keys() - found.keys():
            self._index.remove(key)
        for key, stored in found.items():
            before = self._stored.get(key)
            if before is None or before.sha256 != stored.sha256:
                self._index.add(
                    key, f"{stored.memory.name}\n{stored.memory.description}\n{stored.memory.body}"
                )
        # The newest first, as they were scanned.
        self._stored, self._generation = found, generation

    @property
    def known(self) -> Sequence[KnownMemory]:
        return [_known(stored) for stored in self._stored.values()]

    def find(self, key: str) -> KnownMemory | None:
        stored = self._stored.get(key)
        return _known(stored) if stored else None

    def near(self, text: str) -> Sequence[KnownMemory]:
        """Those most like a text, the most like first."""
        return [_known(self._stored[hit.key]) for hit in self._index.rank(text, MAX_NEAREST)]

    def listed(self) -> Sequence[ListedMemory]:
        stored = list(self._stored.values())[:_MAX_LISTED]
        return [ListedMemory(item.memory, item.modified) for item in stored]


def _known(stored: StoredMemory) -> KnownMemory:
    return KnownMemory(stored.memory, stored.sha256, stored.origin)
