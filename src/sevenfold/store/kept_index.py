"""The accepted index of a memory folder: kept beside the history, where no agent can write.

control/memory/index.md     the index as it is shown; what `MEMORY.md` says may be somebody's edit of it
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sevenfold.core.errors import FileMissing, StoreError
from sevenfold.core.memories import INDEX, is_shown, read_memory
from sevenfold.core.sound import sound_text
from sevenfold.layers.memory_index import apply_index, index_line, is_same_index
from sevenfold.store.memory_book import MemoryBook
from sevenfold.store.memory_records import decode, encode, hash_text

FILE = "index.md"
MAX_INDEX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    order: int
    """Of the version that it was made of."""


class KeptIndex:
    """Made from the history, line by line as memories change. One thread at a time."""

    def __init__(self, book: MemoryBook) -> None:
        self._book = book
        self._text = ""
        self._sha256 = ""
        self._lines: dict[str, _Line] = {}

    def text(self) -> str:
        """As it is to be shown now."""
        return self.updated(self._accepted(), self._book.state.touched)

    def updated(self, text: str, touched: Collection[str]) -> str:
        """An index brought up to date with memories that changed."""
        changed = [key for key in touched if key != INDEX]
        return apply_index(text, self._ages(), self._line, changed) if changed or not text else text

    def is_same(self, found: str) -> bool:
        """Whether an edited index says nothing but what it would say anyway."""
        return is_same_index(self.text(), found, self._ages(), self._line)

    def keep(self) -> str:
        """Put the accepted index where the next process finds it; its SHA-256."""
        text = self.text()
        sha256 = hash_text(text)
        if sha256 != self._book.state.index:
            self._book.folder.replace(FILE, encode(text), durable=False)
        self._text, self._sha256 = text, sha256
        return sha256

    def _accepted(self) -> str:
        wanted = self._book.state.index
        if not wanted or wanted != self._sha256:
            found = self._read() if wanted else ""
            # What is made anew has all changes in it, so that applying them again changes nothing.
            self._text = found if wanted and hash_text(found) == wanted else self._made_anew()
            self._sha256 = wanted
        return self._text

    def _read(self) -> str:
        try:
            return decode(self._book.folder.read(FILE, max_bytes=MAX_INDEX_BYTES))
        except (FileMissing, StoreError):
            return ""

    def _made_anew(self) -> str:
        """From the index as a person last arranged it, and all that happened since."""
        state = self._book.state
        layout = state.layout
        text = self._book.text_of(INDEX, layout) if layout else ""
        touched = self._book.keys_since(layout.place.offset if layout else 0)
        return apply_index(text, self._ages(), self._line, touched - {INDEX})

    def _ages(self) -> dict[str, int]:
        return {key: item.order for key, item in self._book.state.versions.items() if is_shown(key)}

    def _line(self, key: str) -> str:
        version = self._book.state.versions[key]
        known = self._lines.get(key)
        if known is None or known.order != version.order:
            memory = read_memory(key, sound_text(self._book.text_of(key, version)))
            known = _Line(index_line(key, memory.name, memory.description), version.order)
            self._lines[key] = known
        return known.text
