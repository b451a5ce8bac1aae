"""PostgreSQL: a thread for each connection, row-level security in force whoever signs in."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, LiteralString, TypeVar, cast

from sevenfold.core.errors import DatabaseFailed, InputError, describe_missing
from sevenfold.team.server.database import (
    APPEND_ONLY_TABLES,
    SERVER_TABLES,
    TENANT_TABLES,
    OrgId,
    SqlRow,
    SqlValue,
    Tx,
    migrate,
)

if TYPE_CHECKING:
    import psycopg

_T = TypeVar("_T")

CONNECTIONS = 24
"""Three times what one organisation may use at once: one that many write to keeps nobody else out."""
LEAST_VERSION = 150_000
STATEMENT_MS = 30_000
"""Longer than any statement of ours takes: one that waits for somebody's lock gives its connection back."""
CONNECT_OPTIONS = {"connect_timeout": "10", "tcp_user_timeout": "20000", "application_name": "sevenfold"}
"""Unless the URL says otherwise. A host that is gone is noticed in 20 s; the system would take 15 minutes."""
ROLE = "sevenfold_app"
MIGRATION_LOCK = 7_070_001
"""A number of our own, so that two servers that start together do not both make the tables."""

_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_ORG = re.compile(r"[a-z0-9]{1,40}", re.ASCII)


class PostgresDatabase:
    def __init__(self, url: str, *, connections: int = CONNECTIONS) -> None:
        self._url = url
        self._local = threading.local()
        self._open = list["psycopg.Connection[SqlRow]"]()
        connection = _connect(url)
        try:
            _prepare(connection)
            self._rights = _read_rights(connection)
        finally:
            connection.close()
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="postgresql")

    def read(self, org: OrgId | None, work: Callable[[Tx], _T], /, *, quick: bool = False) -> Future[_T]:  # noqa: ARG002
        return self._threads.submit(self._run, _READ, org, work)

    def write(self, org: OrgId | None, work: Callable[[Tx], _T], /) -> Future[_T]:
        return self._threads.submit(self._run, "BEGIN", org, work)

    @property
    def role_warning(self) -> str:
        """What is wrong with the role that signs in, and what to do about it; empty: nothing."""
        return self._rights.warning

    def close(self) -> None:
        self._threads.shutdown()
        for connection in self._open:
            connection.close()

    def _run(self, begin: str, org: OrgId | None, work: Callable[[Tx], _T]) -> _T:
        import psycopg

        try:
            connection = self._begun(begin, org)
            try:
                result = work(_PostgresTx(connection))
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        except psycopg.DataError as error:
            raise InputError(
                f"a value that PostgreSQL cannot hold ({error}); take out what is no text"
            ) from error
        except psycopg.Error as error:
            raise _failed(error) from error
        return result

    def _begun(self, begin: str, org: OrgId | None) -> psycopg.Connection[SqlRow]:
        """A connection of this thread's with a transaction begun. One that broke while idle is replaced."""
        import psycopg

        if org is not None and not _ORG.fullmatch(org):
            raise DatabaseFailed(f"{org!r} is no id of an organisation")
        leased = cast("_ThreadConnection | None", getattr(self._local, "connection", None))
        if leased is not None:
            with suppress(psycopg.Error):
                leased.begin(begin, org)
                return leased.connection
            leased.connection.close()
            self._open.remove(leased.connection)
            self._local.connection = None
        connection = _connect(self._url)
        self._open.append(connection)
        self._local.connection = fresh = _ThreadConnection(
            connection, is_above=_read_rights(connection).takes_role
        )
        fresh.begin(begin, org)
        return connection


@dataclass(frozen=True, slots=True)
class _ThreadConnection:
    connection: psycopg.Connection[SqlRow]
    is_above: bool

    def begin(self, begin: str, org: OrgId | None) -> None:
        """All of it for this transaction alone: behind PgBouncer the next may be on another connection."""
        settings = {"statement_timeout": f"{STATEMENT_MS}", "sevenfold.org": f"'{org or ''}'"}
        if self.is_above:
            settings["role"] = ROLE
        said = "; ".join([begin, *(f"SET LOCAL {name} = {value}" for name, value in settings.items())])
        self.connection.execute(cast("LiteralString", said))


@dataclass(frozen=True, slots=True)
class _PostgresTx:
    connection: psycopg.Connection[SqlRow]
    locking: str = " FOR UPDATE"

    def rows(self, sql: str, *values: SqlValue) -> Sequence[SqlRow]:
        cursor = self.connection.execute(_spelled(sql), values or None)
        return cursor.fetchall() if cursor.description else ()

    def run_each(self, sql: str, values: Sequence[SqlRow]) -> None:
        if len(values) == 1:  # as most commits are; setting up a batch costs more than it saves
            self.rows(sql, *values[0])
        elif values:
            self.connection.cursor().executemany(_spelled(sql), values)


@lru_cache(maxsize=500)
def _spelled(sql: str) -> LiteralString:
    """Our own statements, which hold neither a `?` nor a `%` of their own."""
    return cast("LiteralString", sql.replace("?", "%s"))


def _connect(url: str) -> psycopg.Connection[SqlRow]:
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict, make_conninfo
    except ImportError as error:
        raise DatabaseFailed(describe_missing("PostgreSQL", ["psycopg"], "server", "postgres")) from error
    try:
        said = make_conninfo("", **{**CONNECT_OPTIONS, **conninfo_to_dict(url)})
        connection = psycopg.connect(said, autocommit=True)
    except psycopg.Error as error:
        # What it says may hold the address and the user, never the password.
        raise DatabaseFailed(f"cannot reach PostgreSQL: {error}; check --db and that it runs") from error
    return cast("psycopg.Connection[SqlRow]", connection)


def _prepare(connection: psycopg.Connection[SqlRow]) -> None:
    """The tables, and a role that may use them and owns none: who owns a table can switch its rules off."""
    import psycopg

    version = connection.info.server_version
    if version < LEAST_VERSION:
        raise DatabaseFailed(f"PostgreSQL {version // 10_000} is too old; expected 15 or newer")
    tx = _PostgresTx(connection)
    try:
        with connection.transaction():
            tx.rows("SELECT pg_advisory_xact_lock(?)", MIGRATION_LOCK)
            migrate(tx, "postgresql")
            rights = _read_rights(connection)
            if rights.owns_tables or rights.is_above_rules:
                _make_role(connection, tx, rights)
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseFailed(
            f"the tables are not of this version, and this role may not change them ({error}); run "
            "`sevenfold serve org list` once as their owner"
        ) from error
    except psycopg.Error as error:
        raise _failed(error) from error


def _make_role(connection: psycopg.Connection[SqlRow], tx: Tx, rights: _Rights) -> None:
    from psycopg.errors import DuplicateObject, InsufficientPrivilege, UniqueViolation

    if not rights.has_role:
        if not rights.makes_roles:
            return
        # Roles are the whole cluster's: the server of another database may make it at the same moment.
        with suppress(DuplicateObject, UniqueViolation), connection.transaction():
            tx.rows(f"CREATE ROLE {ROLE} NOLOGIN NOSUPERUSER NOBYPASSRLS")
    if rights.makes_roles and not rights.is_above_rules:
        # Another's role is not ours to take: then the owner works as itself, and is warned of.
        with suppress(InsufficientPrivilege), connection.transaction():
            tx.rows(f"GRANT {ROLE} TO CURRENT_USER")
    tx.rows(f"GRANT USAGE ON SCHEMA public TO {ROLE}")
    there = {row[0] for row in tx.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
    tables = ", ".join(one for one in (*SERVER_TABLES, *TENANT_TABLES, "migration") if one in there)
    tx.rows(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {ROLE}")
    tx.rows(f"REVOKE UPDATE, DELETE ON {', '.join(APPEND_ONLY_TABLES)} FROM {ROLE}")
    tx.rows(f"REVOKE INSERT, UPDATE, DELETE ON migration FROM {ROLE}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rights:
    """What the role that signs in may do."""

    is_above_rules: bool
    """Row-level security, forced or not, does not hold for superusers and those told to bypass it."""
    owns_tables: bool
    makes_roles: bool
    has_role: bool
    """Whether the role for the application is there."""
    may_take_role: bool

    @property
    def takes_role(self) -> bool:
        return (self.is_above_rules or self.owns_tables) and self.may_take_role

    @property
    def warning(self) -> str:
        if not (self.is_above_rules or self.owns_tables):
            return ""
        make = "" if self.has_role else f"CREATE ROLE {ROLE} NOLOGIN; then start again as the owner; "
        return (
            f"The role that signs in {'is above' if self.is_above_rules else 'owns'} the tables, and can "
            "switch off the rules that keep organisations apart. Let the server sign in as another: "
            f"{make}CREATE ROLE sevenfold_web LOGIN PASSWORD '…' IN ROLE {ROLE}"
        )


def _read_rights(connection: psycopg.Connection[SqlRow]) -> _Rights:
    taking = "SET" if connection.info.server_version >= 160_000 else "MEMBER"
    found = connection.execute(
        "SELECT rolsuper OR rolbypassrls, rolsuper OR rolcreaterole,"
        " EXISTS (SELECT 1 FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        " AND pg_has_role(session_user, relowner, 'MEMBER')),"
        f" EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}'),"
        f" EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}'"
        f" AND pg_has_role(session_user, oid, '{taking}'))"
        " FROM pg_roles WHERE rolname = session_user"
    ).fetchone()
    above, makes, owns, has, may = (bool(one) for one in found or (False,) * 5)
    return _Rights(is_above_rules=above, owns_tables=owns, makes_roles=makes, has_role=has, may_take_role=may)


def _failed(error: Exception) -> DatabaseFailed:
    return DatabaseFailed(f"PostgreSQL: {type(error).__name__}: {error}; look at its log, and ask again")
