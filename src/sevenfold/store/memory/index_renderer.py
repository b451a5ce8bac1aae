"""The index of a memory folder as it is shown: what a person last arranged, and a line for every memory.

It follows from the history alone. What `MEMORY.md` says may be somebody's edit of it, and is not asked.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sevenfold.core.memories import INDEX_FILE, is_indexed, read_memory
from sevenfold.core.surrogates import replace_lone_surrogates
from sevenfold.store.memory.index_text import apply_index, is_group_line, is_same_index, render_index_line
from sevenfold.store.memory.store import MemoryStore


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    order: int
    """Of the version that it was made of."""


class IndexRenderer:
    """One thread at a time."""

    def __init__(self, book: MemoryStore) -> None:
        self._book = book
        self._lines: dict[str, _Line] = {}

    def text(self) -> str:
        """As it is to be shown now."""
        state = self._book.state
        arranged = self._book.text_of(INDEX_FILE, state.layout) if state.layout else ""
        return self.updated(arranged, state.since)

    def updated(self, text: str, touched: Collection[str]) -> str:
        """An index brought up to date with memories that changed."""
        return apply_index(text, self._ages(), self._line, touched, self._book.state.births)

    def is_same(self, found: str) -> bool:
        """Whether an edited index says nothing but what it would say anyway."""
        return is_same_index(self.text(), found, self._ages(), self._line)

    def was_once(self, found: str) -> bool:
        """Whether every line of it stood in the index once: what a power cut leaves of an older one."""
        texts = ((item.key, item.text) for item in self._book.changes() if item.text is not None)
        ever = {
            line
            for key, text in texts
            for line in (text.split("\n") if key == INDEX_FILE else [_spelled(key, text)])
        }
        return all(line in ever or is_group_line(line) for line in found.split("\n") if line.strip())

    def _ages(self) -> dict[str, int]:
        return {key: item.order for key, item in self._book.state.versions.items() if is_indexed(key)}

    def _line(self, key: str) -> str:
        version = self._book.state.versions[key]
        known = self._lines.get(key)
        if known is None or known.order != version.order:
            known = _Line(_spelled(key, self._book.text_of(key, version)), version.order)
            self._lines[key] = known
        return known.text


def _spelled(key: str, text: str) -> str:
    memory = read_memory(key, replace_lone_surrogates(text))
    return render_index_line(key, memory.name, memory.description)
