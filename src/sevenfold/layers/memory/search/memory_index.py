"""The index of a memory directory: by words, and by vectors if an encoder is installed.

With vectors it also measures how near prompts come that are about something else: the background, over which
a memory has to stand out.

It follows the directory by hash, so that only new content is processed. `TextCache` keeps what was computed
in the state of the memory directory, where no agent can write, and recomputes it if it is damaged.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from threading import Lock, RLock
from typing import Self, TypeVar, cast

from sevenfold.core import events
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.memories import Memory, is_indexed
from sevenfold.layers.memory.search.lexical import (
    WORDS_VERSION,
    MemoryHead,
    QueryOverlap,
    SearchHit,
    WeightedQuery,
    choose_best,
)
from sevenfold.layers.memory.search.passages import PassageIndex, count_parts
from sevenfold.layers.memory.search.vectors import (
    BACKGROUND_PROMPTS,
    Background,
    FloatArray,
    TextEncoder,
    VectorIndex,
    pack_vectors,
    share_of_words,
    split_parts,
    split_question,
    unpack_vectors,
)
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import StoredMemory

# The cache is an SQLite file that several processes share. Replacing a damaged file is an event; where no
# file can be kept, the cache lives as long as the process.

WAIT_SECONDS = 5.0
"""For another process that writes: it adds some hundred rows at a time."""

_SCHEMA = f"""
CREATE TABLE words (hash TEXT PRIMARY KEY, counts TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE vectors (
  hash TEXT NOT NULL, encoder TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (hash, encoder)
) WITHOUT ROWID;
PRAGMA user_version = {WORDS_VERSION};
"""
_MOST_ASKED = 500
"""Hashes in one question: SQLite takes a limited number."""

_T = TypeVar("_T")


class TextCache:
    """The file, or memory alone without one. Safe to share between threads."""

    def __init__(self, path: Path | None, *, emit: Emit = ignore_event) -> None:
        self._path, self._emit = path, emit
        self._lock = Lock()
        self._database = self._opened()

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def words(self, hashes: Iterable[str]) -> dict[str, list[dict[str, int]]]:
        """How often each word stands in each part of the texts with these hashes, as far as that is known."""
        rows = self._select("SELECT hash, counts FROM words WHERE hash IN ({})", (), hashes)
        return {row[0]: cast("list[dict[str, int]]", json.loads(row[1])) for row in rows}

    def vectors(self, encoder: str, hashes: Iterable[str]) -> dict[str, bytes]:
        query = "SELECT hash, vector FROM vectors WHERE encoder = ? AND hash IN ({})"
        return {row[0]: row[1] for row in self._select(query, (encoder,), hashes)}

    def add_words(self, counts: Mapping[str, Sequence[Mapping[str, int]]]) -> None:
        rows = [(name, json.dumps(parts, ensure_ascii=False)) for name, parts in counts.items()]
        self._insert("INSERT OR REPLACE INTO words VALUES (?, ?)", rows)

    def add_vectors(self, encoder: str, vectors: Mapping[str, bytes]) -> None:
        rows = [(name, encoder, vector) for name, vector in vectors.items()]
        self._insert("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def keep(self, hashes: Iterable[str]) -> None:
        """Forget every other text: what was purged must not live on in its words."""
        kept = [(name,) for name in hashes]

        def sweep() -> None:
            with self._database as database:
                database.execute("CREATE TEMP TABLE IF NOT EXISTS kept (hash TEXT PRIMARY KEY)")
                database.execute("DELETE FROM kept")
                database.executemany("INSERT OR IGNORE INTO kept VALUES (?)", kept)
                for table in ("words", "vectors"):
                    database.execute(f"DELETE FROM {table} WHERE hash NOT IN (SELECT hash FROM kept)")

        self._surely(sweep)

    def _select(self, query: str, first: tuple[str, ...], hashes: Iterable[str]) -> list[tuple[str, bytes]]:
        wanted = list(hashes)

        def select() -> list[tuple[str, bytes]]:
            found: list[tuple[str, bytes]] = []
            for start in range(0, len(wanted), _MOST_ASKED):
                some = wanted[start : start + _MOST_ASKED]
                marks = ",".join("?" * len(some))
                found += self._database.execute(query.format(marks), (*first, *some)).fetchall()
            return found

        return self._surely(select)

    def _insert(self, query: str, rows: list[tuple[str, ...]] | list[tuple[str, str, bytes]]) -> None:
        def insert() -> None:
            with self._database as database:
                database.executemany(query, rows)

        if rows:
            self._surely(insert)

    def _surely(self, work: Callable[[], _T]) -> _T:
        """Do it; once the file fails, in memory."""
        with self._lock:
            try:
                return work()
            except sqlite3.DatabaseError as error:
                self._emit(events.IndexRebuilt(str(self._path), str(error)))
                self._database.close()
                if not isinstance(error, sqlite3.OperationalError):
                    # Damaged, and not only locked, full or read-only: whoever comes next makes it anew.
                    self._discard()
                self._database = _connected(":memory:")
                return work()

    def _opened(self) -> sqlite3.Connection:
        if self._path is None:
            return _connected(":memory:")
        try:
            return _connected(str(self._path))
        except sqlite3.DatabaseError as error:
            # Not ours to mend: it holds nothing that the memories do not.
            self._emit(events.IndexRebuilt(str(self._path), str(error)))
        self._discard()
        try:
            return _connected(str(self._path))
        except sqlite3.DatabaseError:
            return _connected(":memory:")

    def _discard(self) -> None:
        for end in ("", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{self._path}{end}").unlink(missing_ok=True)


def _connected(path: str) -> sqlite3.Connection:
    if path != ":memory:":
        # SQLite would make it readable for everybody; its other files get the mode of this one. What is wrong
        # with the place SQLite says itself.
        with suppress(OSError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(path, timeout=WAIT_SECONDS, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        # A power cut may cost what was added last, which is computed again.
        database.execute("PRAGMA synchronous = NORMAL")
        # Of what is deleted nothing stays behind in the file.
        database.execute("PRAGMA secure_delete = ON")
        version = cast("int", database.execute("PRAGMA user_version").fetchone()[0])
        if version != WORDS_VERSION:
            _start_over(database)
    except BaseException:
        database.close()
        raise
    return database


def _start_over(database: sqlite3.Connection) -> None:
    with database:
        database.execute("BEGIN IMMEDIATE")
        if cast("int", database.execute("PRAGMA user_version").fetchone()[0]) == WORDS_VERSION:
            return
        for table in ("words", "vectors"):
            database.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _SCHEMA.split(";"):
            database.execute(statement)


FOLDER, FILE = "recall", "texts.db"
"""Below the state of a memory directory."""

EMBEDDED_AT_ONCE = 8
"""Texts between two looks at whether to go on: less than a second of work."""

_OVERLAPPING = 20
"""Of the best by words, among which the one is that shares most with a prompt."""

LONG_QUESTION = 2_000
"""Characters. What a prompt is about stands at its beginning or at its end; between is what was pasted, and
every word of it costs time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMemory:
    """A memory that may be meant, and why."""

    key: str
    score: float
    """For comparing within one answer only."""
    overlap: QueryOverlap
    meaning: float | None = None
    """How near the two are in meaning, up to 1; None: not known."""
    margin: float | None = None
    """By how many standard deviations that is nearer than prompts about something else; None: not known."""


_PROMPT_HASHES = tuple(sha256(prompt.encode()).hexdigest() for prompt in BACKGROUND_PROMPTS)


@dataclass(slots=True)
class _Meant:
    """What is known of meanings."""

    encoder: TextEncoder
    vectors: VectorIndex = field(default_factory=VectorIndex)
    prompts: FloatArray | None = None
    """The vectors of `BACKGROUND_PROMPTS`."""
    background: Background | None = None
    """None: not measured since a vector was added or removed."""

    def measure(self, nearness: float | None) -> float | None:
        if self.background is None and self.prompts is not None:
            self.background = self.vectors.measure_background(self.prompts)
        if self.background is None or nearness is None:
            return None
        return self.background.measure(nearness)


class MemoryIndex:
    """Safe to share between threads. Every method blocks."""

    def __init__(self, cache: TextCache, encoder: TextEncoder | None = None) -> None:
        self._cache = cache
        self._meant = _Meant(encoder) if encoder else None
        self._words = PassageIndex()
        self._hashes: dict[str, str] = {}
        self._heads: dict[str, MemoryHead] = {}
        self._unread: dict[str, str] = {}
        """Keys whose vector is not known yet, with their text."""
        self._lock = RLock()

    @classmethod
    def open(cls, control: Folder, *, encoder: TextEncoder | None = None, emit: Emit = ignore_event) -> Self:
        """That of a memory directory, by its state."""
        with control.subfolder(FOLDER) as folder:
            return cls(TextCache(Path(folder.path) / FILE, emit=emit), encoder)

    def close(self) -> None:
        self._cache.close()

    def __len__(self) -> int:
        return len(self._words)

    @property
    def has_vectors(self) -> bool:
        """Whether vectors are at hand, if not of every memory yet."""
        return self._meant is not None

    @property
    def waiting(self) -> int:
        """Memories whose vector is still to be computed by `embed`."""
        return len(self._unread) + (self._meant is not None and self._meant.prompts is None)

    def update(self, stored: Iterable[StoredMemory]) -> None:
        """Hold these and no others; only what is new or changed is looked at."""
        with self._lock:
            indexed = {one.memory.key: one for one in stored if is_indexed(one.memory.key)}
            gone = [key for key in self._hashes if key not in indexed]
            fresh = [one for key, one in indexed.items() if self._hashes.get(key) != one.sha256]
            for key in gone:
                self._forget(key)
            if fresh:
                self._take(fresh)
            if gone or fresh:
                self._cache.keep([*self._hashes.values(), *_PROMPT_HASHES])

    def use(self, encoder: TextEncoder, stored: Iterable[StoredMemory]) -> None:
        """Use this encoder from now on. `embed` computes the vectors that the cache lacks."""
        with self._lock:
            self._meant = _Meant(encoder)
            self._unread.clear()
            indexed = [one for one in stored if self._hashes.get(one.memory.key) == one.sha256]
            self._take_vectors(self._meant, indexed)

    def embed(self) -> int:
        """Compute some of the vectors that are missing; how many are left."""
        with self._lock:
            meant, some = self._meant, list(self._unread.items())[:EMBEDDED_AT_ONCE]
        if meant is None:
            return 0
        if meant.prompts is None:
            self._embed_prompts(meant)
        elif some:
            self._embed_texts(meant, some)
        return self.waiting

    def _embed_texts(self, meant: _Meant, some: Sequence[tuple[str, str]]) -> None:
        # Not under the lock: who asks a question meanwhile is answered by what is there.
        parts = [split_parts(text) for _, text in some]
        rows = meant.encoder.encode([part for each in parts for part in each])
        ends = list(accumulate(map(len, parts)))
        with self._lock:
            packed: dict[str, bytes] = {}
            for (key, text), each, end in zip(some, parts, ends, strict=True):
                if self._unread.get(key) == text:
                    del self._unread[key]
                    vectors = rows[end - len(each) : end]
                    meant.vectors.put(key, vectors)
                    packed[self._hashes[key]] = pack_vectors(vectors)
            meant.background = None
            self._cache.add_vectors(meant.encoder.name, packed)

    def _embed_prompts(self, meant: _Meant) -> None:
        """Once for an encoder: the vectors are kept with those of the texts."""
        vectors = meant.encoder.encode(BACKGROUND_PROMPTS)
        packed = {name: pack_vectors(vector) for name, vector in zip(_PROMPT_HASHES, vectors, strict=True)}
        with self._lock:
            self._cache.add_vectors(meant.encoder.name, packed)
            meant.prompts, meant.background = vectors, None

    def rank(self, question: str, limit: int = 20) -> tuple[RankedMemory, ...]:
        """The memories that the question is most about, best first."""
        asked = shorten_query(question)
        vectors = self._meant.encoder.encode(split_question(asked)) if self._meant and self._hashes else None
        with self._lock:
            lexical, words = self._words.score(asked), self._words.weigh_query(asked)
            hits = choose_best(lexical, max(limit, _OVERLAPPING))
            if self._meant is None or vectors is None:
                return tuple(self._describe(hit, words, None) for hit in hits[:limit])
            shared = self._words.measure_shared(words, (hit.key for hit in hits[:_OVERLAPPING]))
            hits = self._meant.vectors.fuse(vectors, lexical, limit, words_share=share_of_words(shared))
            return tuple(self._describe(hit, words, vectors[0]) for hit in hits)

    def measure_prompt(self, question: str) -> float:
        """How much a question tells, as a number of words that hardly any memory holds."""
        with self._lock:
            return self._words.weigh_query(shorten_query(question)).measure()

    def _describe(self, hit: SearchHit, asked: WeightedQuery, vector: FloatArray | None) -> RankedMemory:
        overlap = self._words.overlap(asked, self._heads[hit.key])
        if self._meant is None or vector is None:
            return RankedMemory(key=hit.key, score=hit.score, overlap=overlap)
        meaning = self._meant.vectors.nearness(hit.key, vector)
        margin = self._meant.measure(meaning)
        return RankedMemory(key=hit.key, score=hit.score, overlap=overlap, meaning=meaning, margin=margin)

    def _forget(self, key: str) -> None:
        del self._hashes[key], self._heads[key]
        self._words.remove(key)
        self._unread.pop(key, None)
        if self._meant:
            self._meant.vectors.remove(key)
            self._meant.background = None

    def _take(self, fresh: list[StoredMemory]) -> None:
        known = self._cache.words(one.sha256 for one in fresh)
        counted = {
            one.sha256: count_parts(build_search_text(one.memory)) for one in fresh if one.sha256 not in known
        }
        self._cache.add_words(counted)
        for one in fresh:
            self._hashes[one.memory.key] = one.sha256
            self._heads[one.memory.key] = read_head(one.memory)
            self._words.add(one.memory.key, known.get(one.sha256) or counted.get(one.sha256, [{}]))
        if self._meant:
            self._take_vectors(self._meant, fresh)

    def _take_vectors(self, meant: _Meant, fresh: list[StoredMemory]) -> None:
        if meant.prompts is None:
            meant.prompts = self._read_prompts(meant.encoder.name)
        meant.background = None
        known = self._cache.vectors(meant.encoder.name, (one.sha256 for one in fresh))
        for one in fresh:
            key, packed = one.memory.key, known.get(one.sha256)
            vectors = unpack_vectors(packed) if packed is not None else None
            meant.vectors.put(key, vectors)
            self._unread.pop(key, None)
            if vectors is None:
                self._unread[key] = build_search_text(one.memory)

    def _read_prompts(self, encoder: str) -> FloatArray | None:
        import numpy as np

        known = self._cache.vectors(encoder, _PROMPT_HASHES)
        vectors = [unpack_vectors(known.get(name, b"")) for name in _PROMPT_HASHES]
        found = [vector for vector in vectors if vector is not None]
        return np.concatenate(found) if len(found) == len(BACKGROUND_PROMPTS) else None


def build_search_text(memory: Memory) -> str:
    """What a memory is found by: its name, what it is about, and what it says."""
    return f"{read_head(memory).text}\n{memory.body}"


def read_head(memory: Memory) -> MemoryHead:
    return MemoryHead(memory.key, f"{memory.name}\n{memory.description}")


def shorten_query(question: str) -> str:
    """The beginning and the end of a long prompt."""
    if len(question) <= LONG_QUESTION:
        return question
    half = LONG_QUESTION // 2
    return f"{question[:half]}\n{question[-half:]}"
