"""SQLite: one thread writes, and makes durable at once what has come together meanwhile; others read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar, cast

from sevenfold.core.errors import DatabaseFailed, describe_missing
from sevenfold.team.server.database import OrgId, SqlRow, SqlValue, Tx, migrate

_T = TypeVar("_T")

WAL_SINCE = (3, 51, 3)
"""Before, a reset of the write-ahead log can damage the file; the rollback journal is slower and sound."""
_MOST_AT_ONCE = 64
"""Writes that share one fsync. More would make the first of them wait for nothing."""
_READERS = 4
BUSY_MS = 10_000
"""How long to wait for another process, such as an admin command beside the server."""


class Cursor(Protocol):
    def fetchall(self) -> Sequence[SqlRow]: ...


class Connection(Protocol):
    """What is used of apsw, whose own types name some that this Python does not have."""

    def execute(self, statements: str, bindings: Sequence[SqlValue] = ..., /) -> Cursor: ...
    def executemany(self, statements: str, bindings: Sequence[Sequence[SqlValue]], /) -> Cursor: ...
    def set_busy_timeout(self, milliseconds: int, /) -> None: ...
    def close(self) -> None: ...


class SqliteDatabase:
    """Organisations are kept apart by the statements alone: it has no rules for rows."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._local = threading.local()
        self._jobs = SimpleQueue["_Job | None"]()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="sqlite-read")
        connection = _connect(place)
        _migrate(connection)
        self._writer = threading.Thread(
            target=self._write_on, args=(connection,), name="sqlite-write", daemon=True
        )
        self._writer.start()

    def read(self, _org: OrgId | None, work: Callable[[Tx], _T], /, *, quick: bool = False) -> Future[_T]:
        if self._place == ":memory:":  # there is one connection that sees it
            return self.write(None, work)
        if not quick:
            return self._readers.submit(self._read, work)
        # A thread's turn costs ten times as much as such a read, which in WAL mode waits for nobody.
        future = Future[_T]()
        try:
            future.set_result(self._read(work))
        except Exception as error:
            future.set_exception(error)
        return future

    def write(self, _org: OrgId | None, work: Callable[[Tx], _T], /) -> Future[_T]:
        future = Future[_T]()
        self._jobs.put(_Work(work=work, future=future))
        return future

    def close(self) -> None:
        """What was asked for before is done first."""
        self._readers.shutdown()
        self._jobs.put(None)
        self._writer.join()

    def _read(self, work: Callable[[Tx], _T]) -> _T:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = _connect(self._place)
        tx = _SqliteTx(connection)
        try:
            tx.rows("BEGIN")
            try:
                return work(tx)
            finally:
                self._end_read(connection)
        except Exception as error:
            raise _mapped(error) from error

    def _end_read(self, connection: Connection) -> None:
        try:
            connection.execute("ROLLBACK")
        except Exception:
            # SQLite has rolled it back by itself, or cannot. What failed before says more, and the next read
            # gets a connection of its own.
            self._local.connection = None
            with suppress(Exception):
                connection.close()

    def _write_on(self, connection: Connection) -> None:
        tx = _SqliteTx(connection)
        while jobs := self._take():
            _run_together(tx, jobs)
        connection.close()

    def _take(self) -> list[_Job]:
        """The next write, with those that wait behind it; none once the end was asked for."""
        jobs = list[_Job]()
        job = self._jobs.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == _MOST_AT_ONCE:
                break
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
        if job is None and jobs:
            self._jobs.put(None)  # to be met again after these
        return jobs


class _Job(Protocol):
    def run(self, tx: Tx) -> None: ...
    def settle(self, failure: DatabaseFailed | None) -> None: ...


@dataclass(slots=True, kw_only=True)
class _Work(Generic[_T]):
    """One of the writes that share a transaction: what it raises undoes it alone."""

    work: Callable[[Tx], _T]
    future: Future[_T]
    is_wanted: bool | None = None
    """None until its turn comes; from then on it cannot be cancelled."""
    results: list[_T] = field(default_factory=list[_T])
    error: BaseException | None = None

    def run(self, tx: Tx) -> None:
        self.is_wanted = self.future.set_running_or_notify_cancel()
        if not self.is_wanted:
            return
        tx.rows("SAVEPOINT work")
        try:
            self.results.append(self.work(tx))
        except Exception as error:
            self.error = _mapped(error)
            tx.rows("ROLLBACK TO work")
        tx.rows("RELEASE work")

    def settle(self, failure: DatabaseFailed | None) -> None:
        error = self.error or failure
        if self.is_wanted is None:  # the others' transaction failed before its turn
            self.is_wanted = self.future.set_running_or_notify_cancel()
        if not self.is_wanted:
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self.results[0])


def _run_together(tx: Tx, jobs: Sequence[_Job]) -> None:
    failure: DatabaseFailed | None = None
    try:
        tx.rows("BEGIN IMMEDIATE")
        for job in jobs:
            job.run(tx)
        tx.rows("COMMIT")
    except Exception as error:
        failure = _failed(error)
        with suppress(Exception):  # a full disk has rolled it back already
            tx.rows("ROLLBACK")
    for job in jobs:
        job.settle(failure)


@dataclass(frozen=True, slots=True)
class _SqliteTx:
    connection: Connection
    locking: str = ""
    """There is one writer at a time."""

    def rows(self, sql: str, *values: SqlValue) -> Sequence[SqlRow]:
        return self.connection.execute(sql, values).fetchall()

    def run_each(self, sql: str, values: Sequence[SqlRow]) -> None:
        self.connection.executemany(sql, [tuple(row) for row in values])


def _connect(place: str) -> Connection:
    try:
        import apsw
    except ImportError as error:
        raise DatabaseFailed(describe_missing("sevenfold serve", [error.name or "apsw"], "server")) from error
    try:
        if place != ":memory:":
            _make_private(Path(place))
        connection = cast("Connection", apsw.Connection(place))
        connection.set_busy_timeout(BUSY_MS)
        version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
        journal = "WAL" if version >= WAL_SINCE else "DELETE"
        _set_journal(connection, journal, apsw.BusyError)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except (apsw.Error, OSError) as error:
        raise DatabaseFailed(
            f"cannot open the database {place}: {error}; check the path and its rights"
        ) from error
    return connection


def _set_journal(connection: Connection, journal: str, busy: type[Exception]) -> None:
    """SQLite does not wait for a lock while it changes the journal: of two that begin at once, one waits
    here."""
    deadline = time.monotonic() + BUSY_MS / 1000
    is_set = False
    while not is_set:
        try:
            connection.execute(f"PRAGMA journal_mode = {journal}")
            is_set = True
        except busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _make_private(path: Path) -> None:
    """The file, and with it its journals, belongs to its owner alone."""
    path.touch(0o600)


def _migrate(connection: Connection) -> None:
    tx = _SqliteTx(connection)
    try:
        tx.rows("BEGIN IMMEDIATE")
        migrate(tx, "sqlite")
        tx.rows("COMMIT")
    except Exception as error:
        connection.close()
        raise _mapped(error) from error


def _mapped(error: Exception) -> Exception:
    """Errors of the library become ours; those of the work stay what they are."""
    import apsw

    return _failed(error) if isinstance(error, apsw.Error) else error


def _failed(error: Exception) -> DatabaseFailed:
    return DatabaseFailed(f"SQLite: {error}; look at the disk's room and rights, and ask again")
