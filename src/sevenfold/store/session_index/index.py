"""The index of sessions: an SQLite database with full-text search.

`SessionIndex.update` compares each transcript's size and time with the last reading and reads what is new.
`SessionIndex.search` finds the turns that a query is about. Any number of processes may do either: one
updates at a time, and a kill at any moment costs at most the files of the last batch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self, cast

from sevenfold.core.errors import LockBusy, SevenfoldError
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.json import replace_lone_surrogates
from sevenfold.store.files.locks import mutex
from sevenfold.store.foreign.entries import ConversationId, ForeignAgent
from sevenfold.store.foreign.transcripts import (
    TranscriptFile,
    UnreadableFile,
    detect_agent,
    hash_ends,
    read_own_project,
)
from sevenfold.store.session_index.database import RebuildableDatabase
from sevenfold.store.session_index.finder import SessionHit, SessionQuery, TurnFinder, separate_characters
from sevenfold.store.session_index.passages import PassageReader, ReadPosition, SessionPassage

SESSION_INDEX_FILE = "sessions-3.db"
"""With the version of its schema: two versions of Sevenfold have an index each."""
_MUTEX = "sessions"
INDEX_UPDATE_WAIT = timedelta(seconds=1)
"""For another process that updates. After that, the search uses what is there."""
BATCH_BYTES = 16 * 1024 * 1024
"""Between two commits: a second of work."""
MAX_COLUMN_INTEGER = 2**63 - 1
FIRST_YEAR, LAST_YEAR = 2000, 9000

_SCHEMA = """
CREATE TABLE file (
  id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, agent TEXT,
  size INTEGER NOT NULL, modified_ns INTEGER NOT NULL, head BLOB NOT NULL,
  offset INTEGER NOT NULL, turns TEXT NOT NULL,
  session TEXT NOT NULL, project TEXT NOT NULL, title TEXT NOT NULL, first_at REAL, last_at REAL
);
CREATE TABLE passage (
  id INTEGER PRIMARY KEY, file INTEGER NOT NULL, offset INTEGER NOT NULL, turn INTEGER NOT NULL,
  conversation TEXT NOT NULL, at REAL, hash BLOB NOT NULL
);
CREATE INDEX passage_of_file ON passage (file, offset);
CREATE VIRTUAL TABLE words USING fts5 (prompt, answer, tools, tokenize = "unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);
PRAGMA user_version = 1
"""


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

    def __init__(self, database: RebuildableDatabase) -> None:
        self._store = database

    @classmethod
    def open(cls, home: Path, *, emit: Emit = ignore_event) -> Self:
        """The index below Sevenfold's home; made where there is none."""
        return cls(RebuildableDatabase(home, SESSION_INDEX_FILE, _SCHEMA, emit))

    def close(self) -> None:
        self._store.close()

    def __len__(self) -> int:
        """Sessions and sub-agents that are in it."""
        count = "SELECT count(*) FROM file WHERE agent IS NOT NULL"
        return self._store.run(lambda: cast("int", self._store.connection.execute(count).fetchone()[0]))

    def update(
        self,
        files: Sequence[TranscriptFile],
        on_progress: Callable[[int, int], None] | None = None,
        *,
        kept: Sequence[Path] = (),
    ) -> IndexUpdate:
        """Read what is new in these transcripts, and forget those that are not among them.

        What is at or below one of `kept` is not forgotten: a folder that could not be looked at.
        `on_progress` hears how many bytes were read, and of how many.
        """
        try:
            if not self._is_stale(files):
                return IndexUpdate()
            with mutex(self._store.folder, _MUTEX, wait=INDEX_UPDATE_WAIT):
                return self._store.run(lambda: self._update(files, on_progress, kept))
        except LockBusy:
            return IndexUpdate(is_busy=True)

    def search(self, query: SessionQuery) -> list[SessionHit]:
        """The best turns, best first; `InputError` where the query holds no word."""
        return self._store.run(lambda: TurnFinder(self._store.connection).find(query))

    # Updating.

    def _is_stale(self, files: Sequence[TranscriptFile]) -> bool:
        known = self._store.run(self._read_stamps)
        return len(known) != len(files) or any(
            known.get(os.fsencode(item.path)) != _stamp(item) for item in files
        )

    def _read_stamps(self) -> dict[bytes, tuple[int, int]]:
        rows = self._store.connection.execute("SELECT path, size, modified_ns FROM file")
        return {path: (size, modified_ns) for path, size, modified_ns in rows}

    def _update(
        self,
        files: Sequence[TranscriptFile],
        on_progress: Callable[[int, int], None] | None,
        kept: Sequence[Path],
    ) -> IndexUpdate:
        known = self._read_stamps()
        paths = {os.fsencode(item.path) for item in files}
        gone = [path for path in known if path not in paths]
        removed = [path for path in gone if not _is_below(path, kept)]
        with self._store.transaction():
            for path in removed:
                self._forget(path)
            if removed:
                # Deleted words stay in the segments of the full-text index until these are merged.
                self._store.connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        changed = [item for item in files if known.get(os.fsencode(item.path)) != _stamp(item)]
        unreadable: list[UnreadableFile] = []
        progress = _Progress(sum(item.size_bytes for item in changed), on_progress)
        for batch in _batches(changed):
            with self._store.transaction():
                for item in batch:
                    reason = self._try_file(item, progress.add)
                    if reason:
                        unreadable.append(UnreadableFile(item.path, reason))
        return IndexUpdate(len(changed) - len(unreadable), len(removed), tuple(unreadable))

    def _try_file(self, item: TranscriptFile, on_bytes: Callable[[int], None]) -> str:
        """Read what is new in a file; why it could not be read, and then nothing of it has changed."""
        self._store.connection.execute("SAVEPOINT one_file")
        reason = ""
        try:
            self._read_file(item, on_bytes)
        except (SevenfoldError, ValueError, OverflowError, RecursionError) as error:
            self._store.connection.execute("ROLLBACK TO one_file")
            reason = str(error)
        self._store.connection.execute("RELEASE one_file")
        return reason

    def _read_file(self, item: TranscriptFile, on_bytes: Callable[[int], None]) -> None:
        path = os.fsencode(item.path)
        row = self._store.connection.execute(
            "SELECT id, agent, head, offset, turns, size FROM file WHERE path = ?", (path,)
        ).fetchone()
        if row is not None and _has_grown(item, row[1], row[2], offset=row[3], size=row[5]):
            file, agent, _, offset, turns, _ = row
            on_bytes(offset)
            self._delete_passages(file, offset)
            start = ReadPosition(offset, cast("dict[ConversationId, int]", json.loads(turns)))
        else:
            if row is not None:
                self._forget(path)
            agent, start = detect_agent(item.path), ReadPosition()
            file = self._insert_file(item, agent)
        if agent is None:
            # Kept as known, so that it is not looked at again until it changes.
            return
        reader = PassageReader(item.path, agent, start)
        hashes = self._read_hashes(file)
        for passage in reader.read(on_bytes):
            before = hashes.get(passage.conversation, b"")
            hashes[passage.conversation] = passage.hash_after(before)
            self._insert_passage(file, passage, hashes[passage.conversation])
        self._save_file(file, item, hash_ends(item.path, reader.position.offset), reader)

    def _insert_file(self, item: TranscriptFile, agent: ForeignAgent | None) -> int:
        row = self._store.connection.execute(
            "INSERT INTO file VALUES (NULL, ?, ?, ?, ?, ?, 0, '{}', ?, ?, '', NULL, NULL) RETURNING id",
            (
                *(os.fsencode(item.path), agent, *_stamp(item), b""),
                replace_lone_surrogates(item.path.stem),
                replace_lone_surrogates(read_own_project(item.path)) if agent == "sevenfold" else "",
            ),
        ).fetchone()
        return cast("int", row[0])

    def _save_file(self, file: int, item: TranscriptFile, head: bytes, reader: PassageReader) -> None:
        self._store.connection.execute(
            "UPDATE file SET size = ?, modified_ns = ?, head = ?, offset = ?, turns = ?,"
            " session = coalesce(nullif(?, ''), session),"
            " project = CASE project WHEN '' THEN ? ELSE project END,"
            " title = CASE title WHEN '' THEN ? ELSE title END,"
            " first_at = coalesce(first_at, ?), last_at = coalesce(?, last_at) WHERE id = ?",
            (
                *(*_stamp(item), head, reader.position.offset, json.dumps(dict(reader.position.turns))),
                *map(replace_lone_surrogates, (reader.session, reader.project, reader.title)),
                *(_seconds(reader.first_at), _seconds(reader.last_at), file),
            ),
        )

    def _read_hashes(self, file: int) -> dict[str, bytes]:
        """That of the last passage of each conversation."""
        rows = self._store.connection.execute(
            "SELECT conversation, hash, max(offset) FROM passage WHERE file = ? GROUP BY conversation",
            (file,),
        )
        return {conversation: hash_ for conversation, hash_, _ in rows}

    def _insert_passage(self, file: int, passage: SessionPassage, hash_: bytes) -> None:
        row = self._store.connection.execute(
            "INSERT INTO passage VALUES (NULL, ?, ?, ?, ?, ?, ?) RETURNING id",
            (
                *(file, passage.offset, passage.turn),
                *(replace_lone_surrogates(passage.conversation), _seconds(passage.at), hash_),
            ),
        ).fetchone()
        texts = (separate_characters(text) for text in (passage.prompt, passage.answer, passage.tools))
        self._store.connection.execute(
            "INSERT INTO words (rowid, prompt, answer, tools) VALUES (?, ?, ?, ?)", (row[0], *texts)
        )

    def _forget(self, path: bytes) -> None:
        row = self._store.connection.execute("SELECT id FROM file WHERE path = ?", (path,)).fetchone()
        if row is not None:
            self._delete_passages(row[0], 0)
            self._store.connection.execute("DELETE FROM file WHERE id = ?", row)

    def _delete_passages(self, file: int, offset: int) -> None:
        gone = "SELECT id FROM passage WHERE file = ? AND offset >= ?"
        self._store.connection.execute(f"DELETE FROM words WHERE rowid IN ({gone})", (file, offset))
        self._store.connection.execute("DELETE FROM passage WHERE file = ? AND offset >= ?", (file, offset))


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


def _has_grown(item: TranscriptFile, agent: str | None, head: bytes, *, offset: int, size: int) -> bool:
    """Whether the file still begins with what was read of it."""
    return bool(agent) and item.size_bytes >= size and hash_ends(item.path, offset) == head


def _is_below(path: bytes, folders: Sequence[Path]) -> bool:
    return any(Path(os.fsdecode(path)).is_relative_to(folder) for folder in folders)


def _stamp(item: TranscriptFile) -> tuple[int, int]:
    # Larger numbers do not fit into a column.
    return min(item.size_bytes, MAX_COLUMN_INTEGER), max(
        -MAX_COLUMN_INTEGER, min(item.modified_ns, MAX_COLUMN_INTEGER)
    )


def _seconds(at: datetime | None) -> float | None:
    """None also for times that no session has: some programs log the year 1 for no time."""
    return at.timestamp() if at and FIRST_YEAR <= at.year <= LAST_YEAR else None
