"""What the server asks of a database: transactions in plain SQL that SQLite and PostgreSQL both understand.

The operations above are written once, as functions of a transaction. What the two have in different words
is here and in their own modules, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NewType, Protocol, TypeAlias, TypeVar

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
