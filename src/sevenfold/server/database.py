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

Value: TypeAlias = str | int | bytes | None
Row: TypeAlias = Sequence[Value]

T = TypeVar("T")


class Tx(Protocol):
    """A transaction, of one organisation if it was begun for one."""

    def rows(self, sql: str, *values: Value) -> Sequence[Row]:
        """Run a statement with `?` for each value."""
        ...

    def run_each(self, sql: str, values: Sequence[Row]) -> None:
        """Run a statement once for each row of values."""
        ...

    @property
    def locking(self) -> str:
        """The end of a SELECT that keeps its rows from being changed until the transaction ends."""
        ...


class Database(Protocol):
    """Threads that run transactions. What is handed back was made durable before."""

    def read(self, org: OrgId | None, work: Callable[[Tx], T], /, *, quick: bool = False) -> Future[T]:
        """Run on one unchanging state of the database. Quick: some rows by their keys, which may well be
        read before this returns."""
        ...

    def write(self, org: OrgId | None, work: Callable[[Tx], T], /) -> Future[T]:
        """Run all of it or, if it raises, nothing. `DatabaseFailed`: it may have been run or not."""
        ...

    def close(self) -> None: ...


def text_of(value: Value) -> str:
    if not isinstance(value, str):
        raise DatabaseFailed(
            f"the database holds {type(value).__name__} where text was stored; restore a backup"
        )
    return value


def number_of(value: Value) -> int:
    if not isinstance(value, int):
        raise DatabaseFailed(
            f"the database holds {type(value).__name__} where a number was; restore a backup"
        )
    return value


def bytes_of(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise DatabaseFailed(f"the database holds {type(value).__name__} where bytes were; restore a backup")
    return value


def marks(values: Sequence[object]) -> str:
    """`?, ?, ?` for a list of values."""
    return ", ".join("?" * len(values))
