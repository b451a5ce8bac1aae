"""The index of sessions: an SQLite database with full-text search.

`SessionIndex.update` compares each transcript's size and time with the last reading and reads what is new.
`SessionIndex.search` finds the turns that a query is about. Any number of processes may do either: one
updates at a time, and a kill at any moment costs at most the files of the last batch.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Self, TypeVar, cast

from sevenfold.core.errors import FileDamaged, LockBusy, SevenfoldError
from sevenfold.core.events import Emit, IndexRebuilt, ignore_event
from sevenfold.core.system import map_os_errors
from sevenfold.core.text.safe_text import replace_lone_surrogates
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.foreign.entries import ForeignAgent
from sevenfold.store.foreign.transcripts import TranscriptFile, UnreadableFile, detect_agent
from sevenfold.store.session_index.finder import SessionHit, SessionQuery, TurnFinder, separate_characters
from sevenfold.store.session_index.passages import PassageReader, ReadPosition, SessionPassage

SESSION_INDEX_FOLDER = "index"
SESSION_INDEX_FILE = "sessions.db"
_MUTEX = "sessions"
_VERSION = 1
"""Of the schema. An index of another version is built again."""
DATABASE_WAIT_SECONDS = 10.0
INDEX_UPDATE_WAIT = timedelta(seconds=1)
"""For another process that updates. After that, the search uses what is there."""
BATCH_BYTES = 16 * 1024 * 1024
"""Between two commits: a second of work."""
HEAD_BYTES = 4_096
"""Compared to see whether a file is still the one that was read."""

_SCHEMA = f"""
CREATE TABLE file (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, agent TEXT,
  size INTEGER NOT NULL, modified_ns INTEGER NOT NULL, head BLOB NOT NULL,
  offset INTEGER NOT NULL, turn INTEGER NOT NULL,
  session TEXT NOT NULL, project TEXT NOT NULL, title TEXT NOT NULL, first_at REAL, last_at REAL
);
CREATE TABLE passage (
  id INTEGER PRIMARY KEY, file INTEGER NOT NULL, offset INTEGER NOT NULL, turn INTEGER NOT NULL,
  conversation TEXT NOT NULL, at REAL
);
CREATE INDEX passage_of_file ON passage (file, offset);
CREATE VIRTUAL TABLE words USING fts5 (prompt, answer, tools, tokenize = "unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);
PRAGMA user_version = {_VERSION}
"""


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """What an update did."""

    read: int = 0
    """Transcripts that were new or had grown."""
    removed: int = 0
    unreadable: tuple[UnreadableFile, ...] = ()
    is_busy: bool = False
    """Another process is updating the index, so this one did not."""


class SessionIndex:
    """Open it with `open`, and close it. Not safe to share between threads. Every method blocks."""

    def __init__(self, folder: Folder, path: Path, emit: Emit) -> None:
        self._folder, self._path, self._emit = folder, path, emit
        self._database = self._connect()

    @classmethod
    def open(cls, home: Path, *, emit: Emit = ignore_event) -> Self:
        """The index below Sevenfold's home; made where there is none."""
        folder = Folder.open(home / SESSION_INDEX_FOLDER, create=True)
        try:
            return cls(folder, home / SESSION_INDEX_FOLDER / SESSION_INDEX_FILE, emit)
        except BaseException:
            folder.close()
            raise

    def close(self) -> None:
        self._database.close()
        self._folder.close()

    def __len__(self) -> int:
        """Sessions and sub-agents that are in it."""
        rows = self._database.execute("SELECT count(*) FROM file WHERE agent IS NOT NULL").fetchone()
        return cast("int", rows[0])

    def update(
        self, files: Sequence[TranscriptFile], on_progress: Callable[[int, int], None] | None = None
    ) -> IndexUpdate:
        """Read what is new in these transcripts, and forget those that are not among them.

        `on_progress` hears how many bytes were read, and of how many.
        """
        if not self._is_stale(files):
            return IndexUpdate()
        try:
            with mutex(self._folder, _MUTEX, wait=INDEX_UPDATE_WAIT):
                return self._retry_damaged(lambda: self._update(files, on_progress))
        except LockBusy:
            return IndexUpdate(is_busy=True)

    def search(self, query: SessionQuery) -> list[SessionHit]:
        """The best turns, best first; `InputError` where the query holds no word."""
        return self._retry_damaged(lambda: TurnFinder(self._database).find(query))

    # Updating.

    def _is_stale(self, files: Sequence[TranscriptFile]) -> bool:
        known = self._retry_damaged(self._read_stamps)
        return len(known) != len(files) or any(
            known.get(str(item.path)) != (item.size_bytes, item.modified_ns) for item in files
        )

    def _read_stamps(self) -> dict[str, tuple[int, int]]:
        rows = self._database.execute("SELECT path, size, modified_ns FROM file")
        return {path: (size, modified_ns) for path, size, modified_ns in rows}

    def _update(
        self, files: Sequence[TranscriptFile], on_progress: Callable[[int, int], None] | None
    ) -> IndexUpdate:
        known = self._read_stamps()
        paths = {str(item.path) for item in files}
        removed = [path for path in known if path not in paths]
        with self._transaction():
            for path in removed:
                self._forget(path)
        changed = [item for item in files if known.get(str(item.path)) != (item.size_bytes, item.modified_ns)]
        unreadable: list[UnreadableFile] = []
        progress = _Progress(sum(item.size_bytes for item in changed), on_progress)
        for batch in _batches(changed):
            with self._transaction():
                for item in batch:
                    try:
                        self._read_file(item, progress.add)
                    except SevenfoldError as error:
                        unreadable.append(UnreadableFile(item.path, str(error)))
        return IndexUpdate(len(changed) - len(unreadable), len(removed), tuple(unreadable))

    def _read_file(self, item: TranscriptFile, on_bytes: Callable[[int], None]) -> None:
        head = _read_head(item.path)
        row = self._database.execute(
            "SELECT id, agent, head, offset, turn FROM file WHERE path = ?", (str(item.path),)
        ).fetchone()
        if row is not None and row[1] and head == row[2] and item.size_bytes >= row[3]:
            file, agent, _, offset, turn = row
            on_bytes(offset)
            self._delete_passages(file, offset)
            start = ReadPosition(offset, turn)
        else:
            if row is not None:
                self._forget(str(item.path))
            agent, start = detect_agent(item.path), ReadPosition()
            file = self._insert_file(item, agent)
        if agent is None:
            # Kept as known, so that it is not looked at again until it changes.
            return
        reader = PassageReader(item.path, agent, start)
        for passage in reader.read(on_bytes):
            self._insert_passage(file, passage)
        self._save_file(file, item, head, reader)

    def _insert_file(self, item: TranscriptFile, agent: ForeignAgent | None) -> int:
        row = self._database.execute(
            "INSERT INTO file VALUES (NULL, ?, ?, ?, ?, ?, 0, 0, ?, ?, '', NULL, NULL) RETURNING id",
            (
                *(str(item.path), agent, item.size_bytes, item.modified_ns, b""),
                *(item.path.stem, _own_project(item.path) if agent == "sevenfold" else ""),
            ),
        ).fetchone()
        return cast("int", row[0])

    def _save_file(self, file: int, item: TranscriptFile, head: bytes, reader: PassageReader) -> None:
        self._database.execute(
            "UPDATE file SET size = ?, modified_ns = ?, head = ?, offset = ?, turn = ?,"
            " session = coalesce(nullif(?, ''), session), project = coalesce(nullif(?, ''), project),"
            " title = CASE title WHEN '' THEN ? ELSE title END,"
            " first_at = coalesce(first_at, ?), last_at = coalesce(?, last_at) WHERE id = ?",
            (
                *(item.size_bytes, item.modified_ns, head, reader.position.offset, reader.position.turn),
                *(reader.facts.session, reader.facts.project, replace_lone_surrogates(reader.title)),
                *(_seconds(reader.first_at), _seconds(reader.last_at), file),
            ),
        )

    def _insert_passage(self, file: int, passage: SessionPassage) -> None:
        row = self._database.execute(
            "INSERT INTO passage VALUES (NULL, ?, ?, ?, ?, ?) RETURNING id",
            (file, passage.offset, passage.turn, passage.conversation, _seconds(passage.at)),
        ).fetchone()
        texts = (separate_characters(text) for text in (passage.prompt, passage.answer, passage.tools))
        self._database.execute(
            "INSERT INTO words (rowid, prompt, answer, tools) VALUES (?, ?, ?, ?)", (row[0], *texts)
        )

    def _forget(self, path: str) -> None:
        row = self._database.execute("SELECT id FROM file WHERE path = ?", (path,)).fetchone()
        if row is not None:
            self._delete_passages(row[0], 0)
            self._database.execute("DELETE FROM file WHERE id = ?", row)

    def _delete_passages(self, file: int, offset: int) -> None:
        gone = "SELECT id FROM passage WHERE file = ? AND offset >= ?"
        self._database.execute(f"DELETE FROM words WHERE rowid IN ({gone})", (file, offset))
        self._database.execute("DELETE FROM passage WHERE file = ? AND offset >= ?", (file, offset))

    # The database. It can be built again, so damage costs time only.

    def _retry_damaged(self, work: Callable[[], _T]) -> _T:
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise LockBusy(f"{self._path} is locked by another process; try again") from error
            if isinstance(error, sqlite3.OperationalError) and "full" in str(error):
                raise
            self._emit(IndexRebuilt(str(self._path), str(error)))
            self._database.close()
            self._discard()
            self._database = self._connect()
            return work()

    def _connect(self) -> sqlite3.Connection:
        try:
            return _open_database(self._path)
        except sqlite3.OperationalError as error:
            raise FileDamaged(f"cannot open {self._path}: {error}") from error
        except sqlite3.DatabaseError as error:
            self._emit(IndexRebuilt(str(self._path), str(error)))
        self._discard()
        return _open_database(self._path)

    def _discard(self) -> None:
        for end in ("", "-journal"):
            with suppress(FileNotFoundError):
                Path(f"{self._path}{end}").unlink()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.DatabaseError):
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


class _Progress:
    def __init__(self, total: int, tell: Callable[[int, int], None] | None) -> None:
        self._done, self._total, self._tell = 0, total, tell

    def add(self, count: int) -> None:
        self._done += count
        if self._tell:
            self._tell(self._done, self._total)


def _batches(files: Sequence[TranscriptFile]) -> Iterator[list[TranscriptFile]]:
    batch: list[TranscriptFile] = []
    size = 0
    for item in files:
        batch.append(item)
        size += item.size_bytes
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read_head(path: Path) -> bytes:
    """A digest of the beginning of the first line: a file that was replaced has another one."""
    with map_os_errors(f"read {path}"), path.open("rb") as file:
        return blake2b(file.readline(HEAD_BYTES), digest_size=16).digest()


def _own_project(path: Path) -> str:
    try:
        stored: object = json.loads((path.parent.parent / "project.json").read_bytes())
    except (OSError, ValueError):
        return ""
    root = cast("dict[str, object]", stored).get("root") if isinstance(stored, dict) else None
    return root if isinstance(root, str) else ""


def _seconds(at: datetime | None) -> float | None:
    return at.timestamp() if at else None


def _open_database(path: Path) -> sqlite3.Connection:
    # SQLite would make it readable for everybody.
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(path, timeout=DATABASE_WAIT_SECONDS, isolation_level=None)
    try:
        # Of what is deleted nothing stays behind in the file.
        database.execute("PRAGMA secure_delete = ON")
        # A power cut may cost the last batch, which is read again.
        database.execute("PRAGMA synchronous = NORMAL")
        if cast("int", database.execute("PRAGMA user_version").fetchone()[0]) != _VERSION:
            _create_schema(database)
    except BaseException:
        database.close()
        raise
    return database


def _create_schema(database: sqlite3.Connection) -> None:
    database.execute("BEGIN IMMEDIATE")
    try:
        if cast("int", database.execute("PRAGMA user_version").fetchone()[0]) != _VERSION:
            for (table,) in database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN"
                " ('vocabulary', 'words', 'passage', 'file') ORDER BY name = 'vocabulary' DESC"
            ).fetchall():
                database.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in _SCHEMA.split(";"):
                database.execute(statement)
    finally:
        database.execute("COMMIT")
