"""The index of a memory directory that is too large for memory: BM25 on disk, by words alone.

Words and weights are those of `lexical`; tantivy stores and finds them.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Self

from sevenfold.core import events
from sevenfold.core.errors import FileDamaged, LockBusy
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.memories import is_indexed
from sevenfold.layers.memory.search.lexical import (
    MOST_REPEATS,
    WORDS_VERSION,
    SearchHit,
    WeightedQuery,
    split_words,
    weigh_query,
)
from sevenfold.layers.memory.search.memory_index import (
    FOLDER,
    RankedMemory,
    build_search_text,
    read_head,
    shorten_query,
)
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import StoredMemory

if TYPE_CHECKING:
    import tantivy


LIBRARY = "tantivy"
_KEY, _WORDS = "key", "words"
_SPLIT = "blanks"
_JOINED = "\x1f"
"""Between the two words of a pair, in place of the blank at which the library takes texts apart."""

HEAP_BYTES = 64 * 1024 * 1024
"""For what was added since the last commit: some hundred thousand memories at a time."""


def has_tantivy() -> bool:
    return find_spec(LIBRARY) is not None


class DiskIndex:
    """In a folder of its own. One process writes at a time; what it added is found after `commit`."""

    def __init__(self, index: tantivy.Index, versions: sqlite3.Connection) -> None:
        self._index, self._versions = index, versions
        self._writer: tantivy.IndexWriter | None = None
        self._changed: dict[str, str | None] = {}

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Made where there is none. `FileDamaged` where it cannot be read: discard it, and fill a new one."""
        import tantivy

        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        schema = (
            tantivy.SchemaBuilder()
            .add_text_field(_KEY, stored=True, tokenizer_name="raw", index_option="basic")
            .add_text_field(_WORDS, tokenizer_name=_SPLIT, index_option="freq")
            .build()
        )
        try:
            index = tantivy.Index(schema, path=str(folder))
            versions = sqlite3.connect(folder / "versions.db", check_same_thread=False)
            versions.execute("CREATE TABLE IF NOT EXISTS versions (key TEXT PRIMARY KEY, version TEXT)")
        except (ValueError, OSError, sqlite3.DatabaseError) as error:
            raise FileDamaged(f"{folder} cannot be read as an index: {error}; it can be rebuilt") from error
        blanks = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        index.register_tokenizer(_SPLIT, blanks)
        return cls(index, versions)

    @staticmethod
    def discard(folder: Path) -> None:
        from shutil import rmtree  # not at the top: few indexes are discarded

        rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.rollback()
            self._writer = None
        self._versions.close()

    def __len__(self) -> int:
        return self._index.searcher().num_docs

    def versions(self) -> dict[str, str]:
        """Every key, with what it was added as."""
        return dict(self._versions.execute("SELECT key, version FROM versions"))

    def add(self, key: str, text: str, version: str = "") -> None:
        """Add a text; another text under the same key is replaced."""
        import tantivy

        self.remove(key)
        document = tantivy.Document()
        document.add_text(_KEY, key)
        document.add_text(_WORDS, " ".join(_spelled(word) for word in split_words(text)))
        self._writing().add_document(document)
        self._changed[key] = version

    def remove(self, key: str) -> None:
        if self._knows(key):
            self._writing().delete_documents_by_term(_KEY, key)
        self._changed[key] = None

    def commit(self) -> None:
        if not self._changed:
            return
        self._writing().commit()
        # After it: what is written down as added is there, and what is not is added once more.
        added = [(key, version) for key, version in self._changed.items() if version is not None]
        gone = [(key,) for key, version in self._changed.items() if version is None]
        with self._versions as database:
            database.executemany("INSERT OR REPLACE INTO versions VALUES (?, ?)", added)
            database.executemany("DELETE FROM versions WHERE key = ?", gone)
        self._changed.clear()
        self._index.reload()
        # So that other processes can write.
        self._writer = None

    def rank(self, question: str, limit: int) -> list[SearchHit]:
        """The best, best first."""
        import tantivy

        # A word that is asked for twice is two clauses: a boost would have every document looked at.
        clauses = [
            (tantivy.Occur.Should, tantivy.Query.term_query(self._index.schema, _WORDS, word, "freq"))
            for word in self._asked(question)
        ]
        if not clauses:
            return []
        searcher = self._index.searcher()
        found = searcher.search(tantivy.Query.boolean_query(clauses), limit, count=False)
        hits = [SearchHit(str(searcher.doc(at)[_KEY][0]), float(score)) for score, at in found.hits]
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))

    def weigh_query(self, question: str) -> WeightedQuery:
        """The words of a question, as rare as they are here."""
        searcher = self._index.searcher()
        return weigh_query(question, len(self), lambda word: searcher.doc_freq(_WORDS, _spelled(word)))

    def _asked(self, question: str) -> Iterator[str]:
        for word, count in Counter(split_words(question)).items():
            yield from [_spelled(word)] * min(count, MOST_REPEATS)

    def _knows(self, key: str) -> bool:
        if key in self._changed:
            return True
        return self._versions.execute("SELECT 1 FROM versions WHERE key = ?", (key,)).fetchone() is not None

    def _writing(self) -> tantivy.IndexWriter:
        if self._writer is None:
            try:
                self._writer = self._index.writer(HEAP_BYTES, num_threads=1)
            except ValueError as error:
                raise LockBusy(
                    f"another process writes this index: {error}; it is to be tried later"
                ) from error
        return self._writer


def _spelled(word: str) -> str:
    return word.replace(" ", _JOINED)


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
        """That of a memory directory, by its state. `read` finds a memory by its key."""
        with control.subfolder(FOLDER) as folder:
            path = Path(folder.path) / WORDS
        try:
            return cls(DiskIndex.open(path), read)
        except FileDamaged as error:
            emit(events.IndexRebuilt(str(path), str(error)))
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
                    version = f"{WORDS_VERSION} {one.sha256}"
                    if left.pop(one.memory.key, None) != version:
                        self._words.add(one.memory.key, build_search_text(one.memory), version)
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
            hits, words = self._words.rank(asked, limit), self._words.weigh_query(asked)
        found = ((hit, self._read(hit.key)) for hit in hits)
        return tuple(
            RankedMemory(
                key=hit.key,
                score=hit.score,
                overlap=words.overlap(
                    Counter(split_words(build_search_text(one.memory))), read_head(one.memory)
                ),
            )
            for hit, one in found
            if one is not None
        )

    def measure_prompt(self, question: str) -> float:
        """How much a question tells, as a number of words that hardly any memory holds."""
        with self._lock:
            return self._words.weigh_query(shorten_query(question)).measure()
