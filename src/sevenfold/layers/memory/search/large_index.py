"""The index of a memory directory that is too large to be held in memory: by words alone, on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from threading import RLock
from typing import Self

from sevenfold.core.errors import FileDamaged, LockBusy
from sevenfold.core.events import Emit, IndexRebuilt, ignore_event
from sevenfold.core.memories import is_indexed
from sevenfold.layers.memory.search.disk_index import DiskIndex, has_tantivy
from sevenfold.layers.memory.search.memory_index import (
    FOLDER,
    RankedMemory,
    build_search_text,
    shorten_query,
)
from sevenfold.layers.memory.search.words import split_words
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import StoredMemory

WORDS = "words"
"""Below the folder of recall."""

LARGE_FROM = 20_000
"""In memory, so many take some 200 MB and a second to begin with."""

COMMITTED_AT_ONCE = 100_000


def is_large(count: int) -> bool:
    """Whether so many memories are better kept on disk, and can be."""
    return count > LARGE_FROM and has_tantivy()


class LargeIndex:
    """Safe to share between threads. Every method blocks."""

    def __init__(self, words: DiskIndex, read: Callable[[str], StoredMemory | None]) -> None:
        self._words, self._read = words, read
        self._lock = RLock()

    @classmethod
    def open(
        cls, control: Folder, read: Callable[[str], StoredMemory | None], *, emit: Emit = ignore_event
    ) -> Self:
        """That of a project, by its control folder. `read` finds a memory by its key."""
        with control.subfolder(FOLDER) as folder:
            path = Path(folder.path) / WORDS
        try:
            return cls(DiskIndex.open(path), read)
        except FileDamaged as error:
            emit(IndexRebuilt(str(path), str(error)))
            DiskIndex.discard(path)
            return cls(DiskIndex.open(path), read)

    def close(self) -> None:
        with self._lock:
            self._words.close()

    def update(self, stored: Iterable[StoredMemory]) -> None:
        """Hold these and no others. While another process does the same, that is left to it."""
        with self._lock:
            left = self._words.versions()
            try:
                for at, one in enumerate(one for one in stored if is_indexed(one.memory.key)):
                    if left.pop(one.memory.key, None) != one.sha256:
                        self._words.add(one.memory.key, build_search_text(one.memory), one.sha256)
                    if at % COMMITTED_AT_ONCE == COMMITTED_AT_ONCE - 1:
                        self._words.commit()
                for key in left:
                    self._words.remove(key)
                self._words.commit()
            except LockBusy:
                pass

    def rank(self, question: str, limit: int = 20) -> tuple[RankedMemory, ...]:
        """The memories that share most words with the question, best first."""
        asked = shorten_query(question)
        with self._lock:
            hits, words = self._words.rank(asked, limit), self._words.weigh(asked)
        held = ((hit, self._read(hit.key)) for hit in hits)
        return tuple(
            RankedMemory(
                hit.key, hit.score, words.overlap(frozenset(split_words(build_search_text(one.memory))))
            )
            for hit, one in held
            if one is not None
        )
