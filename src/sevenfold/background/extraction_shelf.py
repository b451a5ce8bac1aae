"""The memories that are there, for a gate that looks for what says the same: read when they have changed."""

from __future__ import annotations

from collections.abc import Sequence

from sevenfold.layers.extract import Listed
from sevenfold.layers.extract_gate import Known
from sevenfold.search.lexical import LexicalIndex
from sevenfold.store.memory_changes import Stored
from sevenfold.store.memory_dir import MemoryDir

NEAREST = 8
"""Memories that a draft is held against one by one. What says the same shares its words, and ranks first."""
MAX_LISTED = 200
"""Memories in the manifest, newest first, so that it does not grow with the directory."""


class Shelf:
    """Blocks on the disk: `refresh` in a thread; the rest works from memory."""

    def __init__(self, memory: MemoryDir) -> None:
        self.memory = memory
        self._generation: int | None = None
        self._stored: dict[str, Stored] = {}
        self._index = LexicalIndex()

    def refresh(self) -> None:
        generation = self.memory.generation()
        if generation == self._generation:
            return
        found: dict[str, Stored] = {stored.memory.key: stored for stored in self.memory.scan(None)}
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
    def known(self) -> Sequence[Known]:
        return [_known(stored) for stored in self._stored.values()]

    def find(self, key: str) -> Known | None:
        stored = self._stored.get(key)
        return _known(stored) if stored else None

    def near(self, text: str) -> Sequence[Known]:
        """Those most like a text, the most like first."""
        return [_known(self._stored[hit.key]) for hit in self._index.rank(text, NEAREST)]

    def listed(self) -> Sequence[Listed]:
        stored = list(self._stored.values())[:MAX_LISTED]
        return [Listed(item.memory, item.modified) for item in stored]


def _known(stored: Stored) -> Known:
    return Known(stored.memory, stored.sha256, stored.origin)
