"""What SQLite adds: one thread that writes for all, and a file that is its owner's."""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sevenfold.cli.team.serve import open_database
from sevenfold.core.errors import DatabaseFailed, InputError
from sevenfold.team.server.database import APPEND_ONLY_TABLES, MIGRATIONS, Tx
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.sqlite import SqliteDatabase
from tests.team.server.conftest import opened
from tests.team.team import Team


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/team.db"


def test_the_file_is_its_owners_alone(place: str, tmp_path: Path) -> None:
    with opened(place) as database:
        Team(database)
        modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        assert modes == {0o600}


def test_writes_that_come_together_are_made_durable_together_and_fail_alone(place: str) -> None:
    held, free = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        held.set()
        assert free.wait(30)

    def insert(number: int) -> Callable[[Tx], int]:
        def work(tx: Tx) -> int:
            tx.rows("INSERT INTO meta VALUES (?, 'x')", f"n{number}")
            if number % 2:
                raise ApiError(status=422, kind="bad request", message="odd", advice="even")
            return number

        return work

    with opened(place) as database:
        first = database.write(None, hold)
        assert held.wait(30)
        waiting = [database.write(None, insert(number)) for number in range(10)]
        gone = database.write(None, insert(100))
        assert gone.cancel()
        free.set()
        first.result()
        assert [one.result() for one in waiting[::2]] == [0, 2, 4, 6, 8]
        assert all(isinstance(one.exception(), ApiError) for one in waiting[1::2])
        rows = database.read(None, lambda tx: tx.rows("SELECT name FROM meta ORDER BY name")).result()
        assert [row[0] for row in rows] == ["n0", "n2", "n4", "n6", "n8"]


def test_two_processes_may_use_one_file(place: str) -> None:
    with opened(place) as one, opened(place) as two:
        team = Team(one)
        team.put({"a.md": "one"})
        team.database = two
        assert team.put({"a.md": "two"}).seq == 2


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatabaseFailed, match="cannot open the database"):
        open_database(f"sqlite:///{tmp_path}/none/team.db")


@pytest.mark.parametrize("url", ["", "team.db", "sqlite://", "mysql://x", "sqlite"])
def test_a_url_that_names_no_database_is_told(url: str) -> None:
    with pytest.raises(InputError, match="names no database"):
        open_database(url)


def test_a_database_of_a_newer_version_is_left_alone(place: str) -> None:
    with opened(place) as database:
        database.write(None, lambda tx: tx.rows("INSERT INTO migration VALUES (999, '2030-01-01')")).result()
    with pytest.raises(DatabaseFailed, match="newer Sevenfold"):
        open_database(place)


def test_a_failing_statement_is_a_failure_of_the_database(place: str) -> None:
    with opened(place) as database:
        with pytest.raises(DatabaseFailed, match="no such table"):
            database.read(None, lambda tx: tx.rows("SELECT * FROM nowhere")).result()
        with pytest.raises(DatabaseFailed, match="no such table"):
            database.write(None, lambda tx: tx.rows("DELETE FROM nowhere")).result()


def test_a_read_that_sqlite_rolled_back_says_why_and_the_next_one_works(place: str) -> None:
    def fail(tx: Tx) -> None:
        tx.rows("ROLLBACK")  # as SQLite does by itself after an error of the disk
        tx.rows("SELECT * FROM nowhere")

    with opened(place) as database:
        for _ in range(3):
            with pytest.raises(DatabaseFailed, match="no such table: nowhere"):
                database.read(None, fail, quick=True).result()
        assert database.read(None, lambda tx: tx.rows("SELECT 1"), quick=True).result()[0][0] == 1


def test_a_database_in_memory_serves_one_process() -> None:
    database = SqliteDatabase(":memory:")
    team = Team(database)
    assert team.put({"a.md": "one"}).seq == 1
    assert team.texts() == {"a.md": "one"}
    database.close()


@pytest.mark.parametrize("table", APPEND_ONLY_TABLES)
def test_history_and_audit_only_grow(place: str, table: str) -> None:
    with opened(place) as database:
        team = Team(database)
        team.put({"a.md": "one"})
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET at = 0"):
            with pytest.raises(DatabaseFailed, match="never changed"):
                team.write(lambda tx, statement=statement: tx.rows(statement))


def test_migrations_are_numbered_in_order_and_dated_with_a_reason() -> None:
    assert [one.number for one in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))
    for one in MIGRATIONS:
        assert len(one.date) == 10
        assert len(one.reason.split()) > 8
