"""A copy of a whole server in one file, that either database can be filled from: also the way between them.

Lines of JSON, gzipped. Each organisation is read as it was at one moment, while the server goes on.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, cast

from sevenfold.core.errors import FileDamaged, InputError
from sevenfold.core.system import map_os_errors
from sevenfold.team.server.database import (
    MIGRATIONS,
    TENANT_TABLES,
    Database,
    OrgId,
    SqlRow,
    SqlValue,
    Tx,
    placeholders,
    sql_number,
    sql_text,
)
from sevenfold.team.server.people import list_orgs
from sevenfold.team.server.policy import record_audit

_FORMAT = "sevenfold backup 1"
_RESTORED = range(1, MIGRATIONS[-1].number + 1)
"""Migrations whose rows fit the tables of today: none since the first has changed those that are saved."""
LEAST_STEP = 1_000_000
"""Commits after a backup, at most, where the machine's clock is behind the time of an earlier restore."""
PAGE = 100
"""Bodies at a time: 25 MB at most."""
_ROWS = 2_000
"""Of other tables: history and audit have no end."""
_KEYS: Mapping[str, tuple[str, ...]] = {
    "blob": ("repo", "checksum"),
    "entry": ("repo", "key"),
    "entry_history": ("repo", "version", "key"),
    "applied": ("repo", "id"),
    "allowance": ("fingerprint",),
    "lost_range": ("repo", "first_version"),
    "waiting": ("repo", "checksum", "member"),
}
"""By which rows of an organisation are told apart, where it is not `id`."""

WriteRow: TypeAlias = Callable[[object], None]


def write_backup(database: Database, path: Path, now_ms: int) -> int:
    """How many rows were written. The file is there whole or not at all, and its owner's alone.

    It is in the audit log before it is written, so also in the backup.
    """
    _record_for_each(database, "server.backup", now_ms, "")
    partial = path.with_name(f".{path.name}.part")
    with map_os_errors(f"write the backup {path}"):
        try:
            # Made anew: a link or a file that another user has put there would be written through, or read.
            partial.unlink(missing_ok=True)
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as raw:
                with gzip.open(raw, "wb", compresslevel=6) as file:
                    count = _write_all(database, file)
                raw.flush()
                os.fsync(raw.fileno())
            partial.replace(path)
            _sync_folder(path.parent)
        finally:
            partial.unlink(missing_ok=True)
    return count


def _write_all(database: Database, file: gzip.GzipFile) -> int:
    count = 0

    def write_line(value: object) -> None:
        nonlocal count
        file.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
        count += 1

    write_line({"format": _FORMAT, "migration": MIGRATIONS[-1].number})
    for org in database.read(None, lambda tx: _write_shared(tx, write_line)).result():
        database.read(org, lambda tx, org=org: _write_org(tx, org, write_line)).result()
    rows = count - 1
    write_line({"end": rows})
    return rows


def _record_for_each(database: Database, verb: str, now_ms: int, detail: str) -> None:
    """In the log of each organisation: whoever has a backup has its memories."""
    for one in database.read(None, list_orgs).result():
        database.write(
            one.id, lambda tx, org=one.id: record_audit(tx, org, verb, now_ms, detail=detail)
        ).result()


def restore_backup(database: Database, path: Path, now_ms: int) -> int:
    """Fill an empty database; how many rows. If it fails half-way, begin again with an empty one."""
    if database.read(None, list_orgs).result():
        raise InputError("the database has organisations already; restore into an empty one")
    check_backup(path)
    count = 0
    for group in _groups(path):
        org = OrgId(group.org) if group.org else None
        database.write(org, lambda tx, rows=group.rows: _insert(tx, rows)).result()
        count += len(group.rows)
    for one in database.read(None, list_orgs).result():
        database.write(one.id, lambda tx, org=one.id: _number_anew(tx, org, now_ms)).result()
    _record_for_each(database, "server.restore", now_ms, f"{count:,} rows")
    return count


def _number_anew(tx: Tx, org: OrgId, now_ms: int) -> None:
    """Versions go on after all that were ever given, those after the backup too, or a device would take
    a new version for the one that it knows under the same number. No repository has a thousand commits a
    second for long, so the time in milliseconds is ahead of all of them, also of those after a restore.
    What lies between was given after the backup, and is told as lost."""
    for id_, seq in tx.rows("SELECT id, seq FROM repo WHERE org = ?", org):
        before = sql_number(seq)
        after = max(now_ms, before + LEAST_STEP)
        tx.rows("UPDATE repo SET seq = ? WHERE org = ? AND id = ?", after, org, id_)
        tx.rows("INSERT INTO lost_range VALUES (?, ?, ?, ?, ?)", org, id_, before + 1, after, now_ms)


def check_backup(path: Path) -> None:
    """`FileDamaged` unless the file is one of ours, whole, and of these tables."""
    count, ended = 0, False
    for number, line in enumerate(_lines(path)):
        if number == 0:
            if line.get("format") != _FORMAT:
                raise FileDamaged(
                    f"{path} is no backup of a team server; expected {_FORMAT!r} in its first line"
                )
            if line.get("migration") not in _RESTORED:
                raise FileDamaged(
                    f"{path} has tables of migration {line.get('migration')}, this version"
                    f" {MIGRATIONS[-1].number}; restore it with the version that wrote it, then upgrade"
                )
        elif "end" in line:
            ended = line["end"] == count
        else:
            count += 1
    if not ended:
        raise FileDamaged(f"{path} is cut off after {count:,} rows; use another backup")


def _write_shared(tx: Tx, write_line: WriteRow) -> list[OrgId]:
    for table in ("meta", "org"):
        _write_rows(table, "", tx.rows(f"SELECT * FROM {table}"), write_line)
    return [OrgId(sql_text(row[0])) for row in tx.rows("SELECT id FROM org ORDER BY id")]


def _write_org(tx: Tx, org: OrgId, write_line: WriteRow) -> None:
    for table in TENANT_TABLES:
        for rows in _pages(tx, table, org):
            _write_rows(table, org, rows, write_line)


def _pages(tx: Tx, table: str, org: OrgId) -> Iterator[Iterable[SqlRow]]:
    keys, size = _KEYS.get(table, ("id",)), PAGE if table == "blob" else _ROWS
    names, after, last = ", ".join(keys), "", list[SqlValue]()
    while True:
        rows = tx.rows(
            f"SELECT {names}, {table}.* FROM {table} WHERE org = ?{after} ORDER BY {names} LIMIT ?",
            *(org, *last, size),
        )
        yield [row[len(keys) :] for row in rows]
        if len(rows) < size:
            return
        after, last = f" AND ({names}) > ({placeholders(keys)})", list(rows[-1][: len(keys)])


def _write_rows(table: str, org: str, rows: Iterable[SqlRow], write_line: WriteRow) -> None:
    for row in rows:
        write_line({"table": table, "org": org, "row": [_spelled(value) for value in row]})


def _spelled(value: SqlValue) -> object:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


@dataclass(frozen=True, slots=True)
class _Saved:
    table: str
    values: list[SqlValue]


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows that are inserted in one transaction."""

    org: str
    rows: list[_Saved] = field(default_factory=list[_Saved])


def _groups(path: Path) -> Iterator[_Group]:
    """Rows in the file's order, cut where the organisation changes and before they grow too many."""
    group = _Group("")
    for line in _lines(path):
        if "table" not in line:
            continue
        org = cast("str", line["org"])
        if org != group.org or len(group.rows) >= 5 * PAGE:
            yield group
            group = _Group(org)
        values = [_value(one) for one in cast("list[object]", line["row"])]
        group.rows.append(_Saved(cast("str", line["table"]), values))
    yield group


def _insert(tx: Tx, rows: Iterable[_Saved]) -> None:
    for row in rows:
        if row.table not in ("meta", "org", *TENANT_TABLES):
            raise FileDamaged(f"the backup has rows of {row.table[:80]!r}, which is no table of ours")
        # The key of fingerprints is there already in a database that a server was started on.
        keep = " ON CONFLICT (name) DO UPDATE SET value = excluded.value" if row.table == "meta" else ""
        tx.rows(f"INSERT INTO {row.table} VALUES ({placeholders(row.values)}){keep}", *row.values)


def _value(spelled: object) -> SqlValue:
    if isinstance(spelled, dict):
        return base64.b64decode(cast("dict[str, str]", spelled)["base64"])
    return cast("SqlValue", spelled)


def _lines(path: Path) -> Iterator[dict[str, object]]:
    with _map_damage(path), gzip.open(path, "rb") as file:
        for line in file:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise TypeError("a line of it is no object")
            yield cast("dict[str, object]", row)


@contextmanager
def _map_damage(path: Path) -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}; name the one that `serve backup` wrote") from error
    except (OSError, EOFError, ValueError, TypeError, RecursionError) as error:
        raise FileDamaged(f"{path} cannot be read as a backup: {error}; use another one") from error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
