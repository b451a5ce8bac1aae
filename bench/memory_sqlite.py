"""The history of memories against the same history in SQLite: append, open, read, erase, and killed writers.

The prototype keeps what `store/memory` keeps for a change (transaction, origin, key, hashes, text) in one
table with indexes by key and session. It has no topic files and no index of memories; neither has our side
of the measurement, which is `MemoryStore` alone. Both make each change durable before they count it.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from sevenfold.core.events import ignore_event
from sevenfold.core.memories import Origin
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import TransactionId
from sevenfold.store.memory.history import MemoryHistory, MemoryStore
from sevenfold.store.memory.purge import PurgeSource, purge_history
from sevenfold.store.memory.records import (
    LoggedChange,
    LoggedTransaction,
    hash_text,
    make_first_entry,
    new_transaction_id,
)

AT = datetime(2026, 11, 15, tzinfo=UTC)
KEYS = 200
"""Memories of a project that is in use: each is changed again and again."""
TEXT = "The build needs Python 3.11 and takes its options from pyproject.toml.\n" * 14
"""About a kilobyte, a usual memory."""
SESSIONS = 20
"""One of them is erased."""

TABLES = """
create table change (
  number integer primary key, id text, at text, kind text, who text, why text, session text, said_by text,
  key text, before text, after text, text text);
create index by_key on change (key, number);
create index by_session on change (session);
"""


def key_of(number: int) -> str:
    return f"topic-{number % KEYS}.md"


def text_of(number: int) -> str:
    return f"# {number}\n\n{TEXT}"


def session_of(number: int) -> str:
    return f"session-{number % SESSIONS}"


class Log:
    """Our history."""

    def __init__(self, folder: Path) -> None:
        self._folder = Folder.open(folder, create=True)
        self._store = MemoryStore(self._folder, ignore_event)
        if not self._store.refresh():
            self._store.record(lambda _: [make_first_entry(AT)])

    def close(self) -> None:
        self._store.close()
        self._folder.close()

    def append(self, number: int) -> None:
        text = text_of(number)
        origin = Origin(who="user", why="measured", session=session_of(number), said_by="user")
        change = LoggedChange(key=key_of(number), before=None, after=hash_text(text), text=text)
        entry = LoggedTransaction(
            id=TransactionId(new_transaction_id()), at=AT, kind="commit", origin=origin, changes=(change,)
        )
        self._store.record(lambda _: [entry])
        self._store.log.sync()
        self._store.write_checkpoint()

    def texts(self) -> dict[str, str]:
        """Every memory as it is now."""
        versions = self._store.state.versions
        return {key: self._store.text_of(key, version) for key, version in versions.items()}

    def past(self, key: str) -> int:
        """How many versions one memory had."""
        return sum(1 for _ in MemoryHistory(self._store).steps(key))

    def numbers(self) -> set[int]:
        found = (change.text for change in self._store.changes())
        return {int(text.split("\n", 1)[0][2:]) for text in found if text}

    def erase(self, session: str) -> None:
        purge_history(self._store, PurgeSource(session=session), AT, {}, lambda _: None)


class Sqlite:
    """The prototype."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._db = sqlite3.connect(folder / "memory.db", isolation_level=None, timeout=60)
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = full")
        self._db.execute("pragma secure_delete = on")
        if not self._db.execute("select 1 from sqlite_master").fetchone():
            self._db.executescript(TABLES)

    def close(self) -> None:
        self._db.close()

    def append(self, number: int) -> None:
        text = text_of(number)
        session = session_of(number)
        row = (new_transaction_id(), AT.isoformat(), "commit", "user", "measured", session, "user")
        self._db.execute("begin immediate")
        self._db.execute(
            "insert into change (id, at, kind, who, why, session, said_by, key, before, after, text)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, null, ?, ?)",
            (*row, key_of(number), hash_text(text), text),
        )
        self._db.execute("commit")

    def texts(self) -> dict[str, str]:
        return dict(
            self._db.execute(
                "select key, text from change where number in (select max(number) from change group by key)"
            )
        )

    def past(self, key: str) -> int:
        return len(self._db.execute("select text from change where key = ?", (key,)).fetchall())

    def numbers(self) -> set[int]:
        rows = self._db.execute("select text from change where text is not null")
        return {int(text.split("\n", 1)[0][2:]) for (text,) in rows}

    def erase(self, session: str) -> None:
        """What was erased must be nowhere in the files."""
        self._db.execute(
            "update change set text = null, key = '', after = null where session = ?", (session,)
        )
        self._db.execute("pragma wal_checkpoint(truncate)")
        self._db.execute("vacuum")
        self._db.execute("pragma wal_checkpoint(truncate)")


Store = Log | Sqlite
WAYS: dict[str, Callable[[Path], Store]] = {"log": Log, "sqlite": Sqlite}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    way: str
    changes: int
    append_ms: float
    """The median, with the wait for the disk; all others are CPU time."""
    open_ms: float
    """Open, and read every memory as it is now."""
    past_ms: float
    """The versions of one memory."""
    erase_ms: float
    size_mb: float


@contextmanager
def opened(way: str, folder: Path) -> Generator[Store]:
    store = WAYS[way](folder)
    try:
        yield store
    finally:
        store.close()


def measure(way: str, changes: int, folder: Path) -> Figures:
    with opened(way, folder) as store:
        appended = [
            timed(lambda number=number: store.append(number), time.perf_counter) for number in range(changes)
        ]

    def read_all() -> None:
        with opened(way, folder) as store:
            assert len(store.texts()) == min(KEYS, changes)

    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    with opened(way, folder) as store:
        past = min(timed(lambda: store.past(key_of(3))) for _ in range(3))
        reads = min(timed(read_all) for _ in range(5))
        erased = timed(lambda: store.erase(session_of(1)))
    assert not any(f"# {1}\n".encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return Figures(
        way=way,
        changes=changes,
        append_ms=median(appended),
        open_ms=reads,
        past_ms=past,
        erase_ms=erased,
        size_mb=size / 1e6,
    )


def timed(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Milliseconds. CPU time by default, which other programs on the machine do not change much."""
    start = clock()
    work()
    return (clock() - start) * 1e3


def kill_writers(way: str, folder: Path, kills: int, rng: random.Random) -> int:
    """How many acknowledged changes are missing after writers were killed at any moment."""
    acknowledged: set[int] = set()
    for turn in range(kills):
        command = [sys.executable, __file__, "write", way, str(folder), str(turn * 1_000_000)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            wanted = rng.randrange(1, 20)
            for line in writer.stdout:
                acknowledged.add(int(line))
                wanted -= 1
                if not wanted:
                    time.sleep(rng.random() * 0.005)
                    writer.kill()
            writer.wait()
    with opened(way, folder) as store:
        return len(acknowledged - store.numbers())


def write_until_killed(way: str, folder: Path, first: int) -> None:
    with opened(way, folder) as store:
        for number in range(first, first + 1_000):
            store.append(number)
            print(number, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--kills", type=int, default=30)
    options = parser.parse_args()
    for changes in options.changes:
        for way in WAYS:
            with tempfile.TemporaryDirectory() as folder:
                figures = measure(way, changes, Path(folder) / "memory")
                print(json.dumps({name: getattr(figures, name) for name in Figures.__slots__}))
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            lost = kill_writers(way, Path(folder) / "memory", options.kills, random.Random(7))
            print(json.dumps({"way": way, "kills": options.kills, "lost": lost}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write_until_killed(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
