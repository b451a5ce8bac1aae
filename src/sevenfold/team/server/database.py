"""What the server asks of a database: transactions in plain SQL that SQLite and PostgreSQL both understand.

Operations are written once, as functions of a transaction. What differs between the two databases is here and
in their own modules, and nowhere else. The migrations are here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, NewType, Protocol, TypeAlias, TypeVar

from sevenfold.core.errors import DatabaseFailed

OrgId = NewType("OrgId", str)

SqlValue: TypeAlias = str | int | bytes | None
SqlRow: TypeAlias = Sequence[SqlValue]

_T = TypeVar("_T")


class Tx(Protocol):
    """A transaction, of one organisation if it was begun for one."""

    def rows(self, sql: str, *values: SqlValue) -> Sequence[SqlRow]:
        """Run a statement with `?` for each value."""
        ...

    def run_each(self, sql: str, values: Sequence[SqlRow]) -> None:
        """Run a statement once for each row of values."""
        ...

    @property
    def locking(self) -> str:
        """The end of a SELECT that keeps its rows from being changed until the transaction ends."""
        ...


class Database(Protocol):
    """Threads that run transactions. What is handed back was made durable before."""

    def read(self, org: OrgId | None, work: Callable[[Tx], _T], /, *, quick: bool = False) -> Future[_T]:
        """Run on one unchanging state of the database. Quick: some rows by their keys, which may well be
        read before this returns."""
        ...

    def write(self, org: OrgId | None, work: Callable[[Tx], _T], /) -> Future[_T]:
        """Run all of it or, if it raises, nothing. `DatabaseFailed`: it may have been run or not."""
        ...

    def close(self) -> None: ...


def sql_text(value: SqlValue) -> str:
    if not isinstance(value, str):
        raise DatabaseFailed(
            f"the database holds {type(value).__name__} where text was stored; restore a backup"
        )
    return value


def sql_number(value: SqlValue) -> int:
    if not isinstance(value, int):
        raise DatabaseFailed(
            f"the database holds {type(value).__name__} where a number was; restore a backup"
        )
    return value


def sql_bytes(value: SqlValue) -> bytes:
    if not isinstance(value, bytes):
        raise DatabaseFailed(f"the database holds {type(value).__name__} where bytes were; restore a backup")
    return value


def placeholders(values: Sequence[object]) -> str:
    """`?, ?, ?` for a list of values."""
    return ", ".join("?" * len(values))


# The tables, as a list of dated migrations. A released one is never edited; a later one follows it.

SqlDialect: TypeAlias = Literal["sqlite", "postgresql"]

_FIRST_TENANT_TABLES = (
    *("member", "token", "repo", "blob", "entry", "entry_history", "applied", "audit", "allowance"),
)
TENANT_TABLES = (*_FIRST_TENANT_TABLES, "lost_range", "waiting")
"""Those that belong to an organisation, in an order in which they can be filled."""

APPEND_ONLY_TABLES = ("entry_history", "audit")
"""Rows are added to these, and never changed or removed."""

SERVER_TABLES = ("org", "device", "permit", "meta")
"""Those of the server itself. A transaction of an organisation sees of them what is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    number: int
    date: str
    reason: str
    statements: tuple[str, ...]
    """In both dialects. BYTEA and BIGINT are types to one and mere words to the other, which is enough."""
    postgresql: tuple[str, ...] = ()
    sqlite: tuple[str, ...] = ()


_FIRST = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE org (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created BIGINT NOT NULL)",
    """CREATE TABLE member (org TEXT NOT NULL REFERENCES org (id), id TEXT NOT NULL, name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'writer', 'reader')),
    created BIGINT NOT NULL, removed BIGINT, PRIMARY KEY (org, id))""",
    "CREATE UNIQUE INDEX member_name ON member (org, name) WHERE removed IS NULL",
    """CREATE TABLE token (org TEXT NOT NULL, id TEXT NOT NULL, member TEXT NOT NULL, hash TEXT NOT NULL,
    scopes TEXT NOT NULL, created BIGINT NOT NULL, expires BIGINT, revoked BIGINT, PRIMARY KEY (org, id),
    FOREIGN KEY (org, member) REFERENCES member (org, id))""",
    "CREATE UNIQUE INDEX token_hash ON token (org, hash)",
    """CREATE TABLE repo (org TEXT NOT NULL REFERENCES org (id), id TEXT NOT NULL, name TEXT NOT NULL,
    remote TEXT NOT NULL, proof TEXT NOT NULL, created BIGINT NOT NULL, seq BIGINT NOT NULL,
    floor BIGINT NOT NULL, entries BIGINT NOT NULL, bytes BIGINT NOT NULL, kept_bytes BIGINT NOT NULL,
    PRIMARY KEY (org, id), UNIQUE (org, name))""",
    """CREATE TABLE blob (org TEXT NOT NULL, repo TEXT NOT NULL, checksum TEXT NOT NULL, body BYTEA NOT NULL,
    bytes BIGINT NOT NULL, created BIGINT NOT NULL, is_kept BIGINT NOT NULL,
    PRIMARY KEY (org, repo, checksum), FOREIGN KEY (org, repo) REFERENCES repo (org, id))""",
    "CREATE INDEX blob_waiting ON blob (org, repo, created) WHERE is_kept = 0",
    """CREATE TABLE entry (org TEXT NOT NULL, repo TEXT NOT NULL, key TEXT NOT NULL, version BIGINT NOT NULL,
    checksum TEXT, bytes BIGINT NOT NULL, changed BIGINT NOT NULL,
    PRIMARY KEY (org, repo, key), FOREIGN KEY (org, repo) REFERENCES repo (org, id))""",
    """CREATE TABLE entry_history (org TEXT NOT NULL, repo TEXT NOT NULL, version BIGINT NOT NULL,
    key TEXT NOT NULL, checksum TEXT, member TEXT NOT NULL, token TEXT NOT NULL, at BIGINT NOT NULL,
    PRIMARY KEY (org, repo, version, key), FOREIGN KEY (org, repo) REFERENCES repo (org, id))""",
    """CREATE TABLE applied (org TEXT NOT NULL, repo TEXT NOT NULL, id TEXT NOT NULL, digest TEXT NOT NULL,
    seq BIGINT NOT NULL, at BIGINT NOT NULL,
    PRIMARY KEY (org, repo, id), FOREIGN KEY (org, repo) REFERENCES repo (org, id))""",
    """CREATE TABLE audit (org TEXT NOT NULL REFERENCES org (id), id TEXT NOT NULL, at BIGINT NOT NULL,
    member TEXT NOT NULL, token TEXT NOT NULL, verb TEXT NOT NULL, repo TEXT NOT NULL, detail TEXT NOT NULL,
    PRIMARY KEY (org, id))""",
    "CREATE INDEX audit_time ON audit (org, at)",
    """CREATE TABLE allowance (org TEXT NOT NULL REFERENCES org (id), fingerprint TEXT NOT NULL,
    reason TEXT NOT NULL, member TEXT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (org, fingerprint))""",
    """CREATE TABLE device (hash TEXT PRIMARY KEY, user_code TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    created BIGINT NOT NULL, org TEXT, member TEXT, scopes TEXT)""",
)


def _guarded(table: str) -> Iterator[str]:
    """A row is seen, and can be made, by transactions of its own organisation alone: the owner's too."""
    yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
    yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
    yield f"CREATE POLICY tenant ON {table} USING (org = current_setting('sevenfold.org', true))"


_TENANT = "coalesce(current_setting('sevenfold.org', true), '')"
_SERVER_RULES: Mapping[str, str] = {
    "org": f"{_TENANT} IN ('', id)",
    # A device that waits is seen by the organisation that it named; one that named none, by each.
    "device": f"{_TENANT} = '' OR org = {_TENANT} OR (org IS NULL AND wanted IN ('', {_TENANT}))",
    "permit": f"{_TENANT} = ''",
    "meta": f"{_TENANT} = ''",
}


def _guarded_server_tables() -> Iterator[str]:
    """A transaction that was begun for no organisation is the server's own, and sees all rows."""
    for table, rule in _SERVER_RULES.items():
        yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
        yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
        yield f"CREATE POLICY tenant ON {table} USING ({rule})"


def _kept_in_postgresql(table: str) -> str:
    return (
        f"CREATE TRIGGER {table}_lasts BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION sevenfold_refuse()"
    )


def _kept_in_sqlite(table: str) -> Iterator[str]:
    for action in ("UPDATE", "DELETE"):
        yield (
            f"CREATE TRIGGER {table}_lasts_{action.lower()} BEFORE {action} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are never changed'); END"
        )


_PERMIT = "permit (name TEXT PRIMARY KEY, taken BIGINT NOT NULL, at BIGINT NOT NULL)"

MIGRATIONS = (
    Migration(
        number=1,
        date="2026-11-15",
        reason="Per-key versions and tombstones, since a version of the whole repository makes "
        "writers give up; "
        "bodies apart from entries, so that a commit is small and atomic; history and audit that only grow; "
        "rows guarded by organisation, so that a forgotten condition shows nothing.",
        statements=_FIRST,
        postgresql=(
            *(line for table in _FIRST_TENANT_TABLES for line in _guarded(table)),
            """CREATE FUNCTION sevenfold_refuse() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN RAISE EXCEPTION ''rows of % are never changed'', TG_TABLE_NAME; END'""",
            *(_kept_in_postgresql(table) for table in APPEND_ONLY_TABLES),
        ),
        sqlite=tuple(line for table in APPEND_ONLY_TABLES for line in _kept_in_sqlite(table)),
    ),
    Migration(
        number=2,
        date="2026-11-15",
        reason="What processes take of the rates that they share, so that several allow no more "
        "than one. After a "
        "crash it is worth nothing, so PostgreSQL need not make it durable.",
        statements=(),
        postgresql=(f"CREATE UNLOGGED TABLE {_PERMIT}",),
        sqlite=(f"CREATE TABLE {_PERMIT}",),
    ),
    Migration(
        number=3,
        date="2026-11-16",
        reason="Which versions a restored backup lacks, so that a device that holds one of them does not "
        "take a later text for a change of it.",
        statements=(
            """CREATE TABLE lost_range (org TEXT NOT NULL, repo TEXT NOT NULL, first_version BIGINT NOT NULL,
            last_version BIGINT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (org, repo, first_version),
            FOREIGN KEY (org, repo) REFERENCES repo (org, id))""",
        ),
        postgresql=tuple(_guarded("lost_range")),
    ),
    Migration(
        number=4,
        date="2026-11-16",
        reason="Who sent a body that waits for its commit, so that nobody else publishes it by its checksum; "
        "which organisation a device wants to join, so that no other can take it in; rules for the rows of "
        "the server's own tables, which hold the names of all organisations and the key of all fingerprints.",
        statements=(
            """CREATE TABLE waiting (org TEXT NOT NULL, repo TEXT NOT NULL, checksum TEXT NOT NULL,
            member TEXT NOT NULL, created BIGINT NOT NULL, PRIMARY KEY (org, repo, checksum, member),
            FOREIGN KEY (org, repo) REFERENCES repo (org, id))""",
            "ALTER TABLE device ADD COLUMN wanted TEXT NOT NULL DEFAULT ''",
        ),
        postgresql=(*_guarded("waiting"), *_guarded_server_tables()),
    ),
)


_IS_THERE: Mapping[SqlDialect, str] = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE name = 'migration'",
    "postgresql": "SELECT 1 FROM pg_tables WHERE schemaname = 'public' AND tablename = 'migration'",
}


def migrate(tx: Tx, dialect: SqlDialect) -> None:
    """Bring the tables to this version; the caller holds off everybody else. With nothing to do, it asks
    for no right to make tables."""
    if not tx.rows(_IS_THERE[dialect]):
        tx.rows("CREATE TABLE migration (number BIGINT PRIMARY KEY, date TEXT NOT NULL)")
    done = {sql_number(row[0]) for row in tx.rows("SELECT number FROM migration")}
    newer = done - {one.number for one in MIGRATIONS}
    if newer:
        raise DatabaseFailed(
            f"the database is of a newer Sevenfold (migration {max(newer)}, this one knows "
            f"{MIGRATIONS[-1].number}); upgrade the server"
        )
    for one in MIGRATIONS:
        if one.number not in done:
            for statement in (*one.statements, *(one.sqlite if dialect == "sqlite" else one.postgresql)):
                tx.rows(statement)
            tx.rows("INSERT INTO migration VALUES (?, ?)", one.number, one.date)
