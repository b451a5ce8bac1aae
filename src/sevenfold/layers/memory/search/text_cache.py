"""A cache of what was computed about texts, by hash: their words and their vectors. All of it can be
recomputed.

It is an SQLite file that several processes share. A damaged file is replaced, which is an event; where no
file can be kept, the cache lives as long as the process.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TypeVar, cast

from sevenfold.core.events import Emit, IndexRebuilt, ignore_event

VERSION = 1
"""Of what is stored. Another way of taking texts apart gets another number, and begins anew."""

WAIT_SECONDS = 5.0
"""For another process that writes: it adds some hundred rows at a time."""

_SCHEMA = f"""
CREATE TABLE words (hash TEXT PRIMARY KEY, counts TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE vectors (
  hash TEXT NOT NULL, encoder TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (hash, encoder)
) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
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

    def words(self, hashes: Iterable[str]) -> dict[str, dict[str, int]]:
        """How often each word stands in the texts with these hashes, as far as that is known."""
        rows = self._select("SELECT hash, counts FROM words WHERE hash IN ({})", (), hashes)
        return {row[0]: cast("dict[str, int]", json.loads(row[1])) for row in rows}

    def vectors(self, encoder: str, hashes: Iterable[str]) -> dict[str, bytes]:
        query = "SELECT hash, vector FROM vectors WHERE encoder = ? AND hash IN ({})"
        return {row[0]: row[1] for row in self._select(query, (encoder,), hashes)}

    def add_words(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        rows = [(name, json.dumps(dict(each), ensure_ascii=False)) for name, each in counts.items()]
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
                self._emit(IndexRebuilt(str(self._path), str(error)))
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
            self._emit(IndexRebuilt(str(self._path), str(error)))
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
    database = sqlite3.connect(path, timeout=WAIT_SECONDS, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        # A power cut may cost what was added last, which is computed again.
        database.execute("PRAGMA synchronous = NORMAL")
        # Of what is deleted nothing stays behind in the file.
        database.execute("PRAGMA secure_delete = ON")
        version = cast("int", database.execute("PRAGMA user_version").fetchone()[0])
        if version != VERSION:
            _start_over(database)
    except BaseException:
        database.close()
        raise
    return database


def _start_over(database: sqlite3.Connection) -> None:
    with database:
        database.execute("BEGIN IMMEDIATE")
        if cast("int", database.execute("PRAGMA user_version").fetchone()[0]) == VERSION:
            return
        for table in ("words", "vectors"):
            database.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _SCHEMA.split(";"):
            database.execute(statement)
