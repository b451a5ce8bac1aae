"""What was computed from transcripts, kept until they change: so that a report reads only what is new.

A value belongs to one transcript as it was (path, size and time), and to a key that says what was computed
and how. Values of transcripts that are gone are deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from sevenfold.core.events import Emit, ignore_event
from sevenfold.store.foreign.transcripts import TranscriptFile
from sevenfold.store.session_index.database import RebuildableDatabase

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
