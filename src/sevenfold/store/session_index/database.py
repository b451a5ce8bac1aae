"""SQLite databases that hold nothing of their own: what is damaged or of another version is built again.

`DerivedValues` keeps what was computed from transcripts until they change, so that a report reads only what
is new. A value belongs to one transcript as it was (path, size and time), and to a key that says what was
computed and how. Values of transcripts that are gone are deleted.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self, TypeVar, cast

from sevenfold.core.errors import LockBusy, StoreError
from sevenfold.core.events import Emit, IndexRebuilt, ignore_event
from sevenfold.core.system import map_os_errors
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.foreign.transcripts import TranscriptFile

SESSION_INDEX_FOLDER = "index"
"""Below Sevenfold's home."""
DATABASE_WAIT_SECONDS = 10.0
_NOT_DAMAGED = ("locked", "busy", "full", "readonly", "disk I/O", "unable to open")
"""What SQLite says where the file is sound and the machine is not: building it again would not help."""

_T = TypeVar("_T")


class RebuildableDatabase:
    """One connection, for one thread. `schema` must set `user_version`."""

    def __init__(self, home: Path, name: str, schema: str, emit: Emit) -> None:
        self.folder = Folder.open(home / SESSION_INDEX_FOLDER, create=True)
        """For locks beside the database."""
        self.path = home / SESSION_INDEX_FOLDER / name
        self._schema, self._emit = schema, emit
        self._inode = 0
        try:
            self.connection = self._open()
        except BaseException:
            self.folder.close()
            raise

    def close(self) -> None:
        self.connection.close()
        self.folder.close()

    def run(self, work: Callable[[], _T]) -> _T:
        """Do the work; on a damaged file once more on a new one."""
        try:
            with self._map_errors():
                return work()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            reason = str(error)
        self.connection.close()
        self._discard(reason)
        self.connection = self._open()
        with self._map_errors():
            return work()

    @contextmanager
    def transaction(self) -> Generator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.DatabaseError):
                self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    @contextmanager
    def _map_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            reason = str(error)
            if "locked" in reason or "busy" in reason:
                raise LockBusy(f"{self.path} is in use by another process; try again") from error
            if any(word in reason for word in _NOT_DAMAGED):
                raise StoreError(f"cannot use {self.path}: {reason}") from error
            raise

    def _open(self) -> sqlite3.Connection:
        with self._map_errors():
            try:
                return self._connect()
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._discard(str(error))
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        # SQLite would make it readable for everybody. If the file cannot be made, SQLite says why.
        with suppress(OSError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._inode = self.path.stat().st_ino
        connection = sqlite3.connect(self.path, timeout=DATABASE_WAIT_SECONDS, isolation_level=None)
        try:
            # Of what is deleted nothing stays behind in the file.
            connection.execute("PRAGMA secure_delete = ON")
            # A power cut may cost the last transaction, which is done again.
            connection.execute("PRAGMA synchronous = NORMAL")
            # What does not fit into the cache stays in memory until the commit: written early, it would lock
            # readers out.
            connection.execute("PRAGMA cache_spill = OFF")
            if _read_version(connection) == 0:
                self._create(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _create(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have been faster.
        if _read_version(connection) == 0:
            for statement in self._schema.split(";"):
                connection.execute(statement)
        connection.execute("COMMIT")

    def _discard(self, reason: str) -> None:
        with mutex(self.folder, f"{self.path.stem}-rebuild"), map_os_errors(f"remove {self.path}"):
            with suppress(FileNotFoundError):
                if self.path.stat().st_ino != self._inode:
                    return  # another process has built it again
            self._emit(IndexRebuilt(str(self.path), reason))
            for end in ("", "-journal"):
                with suppress(FileNotFoundError):
                    Path(f"{self.path}{end}").unlink()


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _read_version(connection: sqlite3.Connection) -> int:
    return cast("int", connection.execute("PRAGMA user_version").fetchone()[0])


DERIVED_FILE = "derived-2.db"
"""With the version of its schema."""
_SCHEMA = """
CREATE TABLE derived (
  path BLOB NOT NULL, key TEXT NOT NULL, size INTEGER NOT NULL, modified_ns INTEGER NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (path, key)
) WITHOUT ROWID;
PRAGMA user_version = 1
"""


class DerivedValues:
    """Open it with `open`, and close it. Not safe to share between threads. Every method blocks."""

    def __init__(self, database: RebuildableDatabase) -> None:
        self._database = database

    @classmethod
    def open(cls, home: Path, *, emit: Emit = ignore_event) -> Self:
        """The values below Sevenfold's home."""
        return cls(RebuildableDatabase(home, DERIVED_FILE, _SCHEMA, emit))

    def close(self) -> None:
        self._database.close()

    def read(self, key: str, files: Iterable[TranscriptFile]) -> dict[Path, bytes]:
        """The values under a key, of those files that have not changed since."""
        rows = self._database.run(
            lambda: self._database.connection.execute(
                "SELECT path, size, modified_ns, value FROM derived WHERE key = ?", (key,)
            ).fetchall()
        )
        known = {(path, size, modified_ns): value for path, size, modified_ns, value in rows}
        found = ((item.path, known.get(_stamp(item))) for item in files)
        return {path: value for path, value in found if value is not None}

    def write(self, key: str, values: Mapping[TranscriptFile, bytes]) -> None:
        """Keep values under a key, in place of older ones."""
        rows = [(*_stamp(item)[:1], key, *_stamp(item)[1:], value) for item, value in values.items()]

        def write() -> None:
            with self._database.transaction():
                self._database.connection.executemany(
                    "INSERT OR REPLACE INTO derived VALUES (?, ?, ?, ?, ?)", rows
                )

        if rows:
            self._database.run(write)

    def forget_others(self, kind: str, keys: Sequence[str]) -> None:
        """Delete values of transcripts that are gone, and those of a kind under other keys than these.

        A key of a kind begins with it and a blank.
        """

        def forget() -> None:
            connection = self._database.connection
            rows = connection.execute("SELECT DISTINCT path FROM derived").fetchall()
            gone = [row for row in rows if not os.path.lexists(row[0])]
            marks = ",".join("?" * len(keys))
            others = f"key GLOB ? AND key NOT IN ({marks})"
            is_old = connection.execute(
                f"SELECT EXISTS (SELECT 1 FROM derived WHERE {others})", (f"{kind} *", *keys)
            ).fetchone()[0]
            if gone or is_old:
                with self._database.transaction():
                    connection.executemany("DELETE FROM derived WHERE path = ?", gone)
                    connection.execute(f"DELETE FROM derived WHERE {others}", (f"{kind} *", *keys))

        self._database.run(forget)


def _stamp(item: TranscriptFile) -> tuple[bytes, int, int]:
    return os.fsencode(os.path.realpath(item.path)), item.size_bytes, min(item.modified_ns, 2**63 - 1)
