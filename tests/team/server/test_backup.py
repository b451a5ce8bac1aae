"""A backup holds everything, of either database, and fills either."""

from __future__ import annotations

import gzip
import json
import stat
from pathlib import Path

import pytest

from sevenfold.core.errors import FileDamaged, InputError
from sevenfold.team.server.backup import check_backup, restore_backup, write_backup
from sevenfold.team.server.database import TENANT_TABLES, Database, OrgId
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.people import list_orgs
from tests.team.server.conftest import new_url, opened
from tests.team.team import NOON, Team, change


def everything(database: Database) -> list[str]:
    """Every row of every organisation, in some one order."""

    def look(table: str, org: OrgId) -> list[str]:
        rows = database.read(org, lambda tx: tx.rows(f"SELECT * FROM {table} WHERE org = ?", org)).result()
        return sorted(f"{table} {tuple(row)!r}" for row in rows)

    orgs = database.read(None, list_orgs).result()
    return [
        *map(repr, orgs),
        *(line for one in orgs for table in TENANT_TABLES for line in look(table, one.id)),
    ]


def without_marks(lines: list[str]) -> list[str]:
    """Without what a restore adds: sequence numbers go on elsewhere, which are lost is told, and it is in the
    log."""
    return [
        line
        for line in lines
        if not line.startswith(("repo ", "lost_range ")) and "'server.restore'" not in line
    ]


@pytest.fixture
def saved(empty_url: str, tmp_path: Path) -> Path:
    """A backup of two teams with history, tombstones and more bodies than a page."""
    path = tmp_path / "team.backup"
    with opened(empty_url) as database:
        first, second = Team(database, "first"), Team(database, "second")
        first.put({f"k{number}.md": f"text {number}\0" for number in range(250)})
        first.commit(change("k0.md", 1, None))
        second.put({"a.md": "äöü"})
        assert write_backup(database, path, NOON) > 500
    return path


@pytest.mark.story
def test_what_was_backed_up_comes_back_whole_on_either_database(
    saved: Path, empty_url: str, database_kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = new_url("postgresql" if database_kind == "sqlite" else "sqlite", request, tmp_path / "other")
    with opened(empty_url) as source, opened(other) as target:
        assert restore_backup(target, saved, NOON) > 500
        assert without_marks(everything(target)) == without_marks(everything(source))


def test_a_backup_is_its_owners_alone_and_leaves_nothing_beside_it(saved: Path) -> None:
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert [path.name for path in saved.parent.iterdir() if path.name.startswith(".")] == []


def test_a_database_that_has_something_is_not_restored_into(saved: Path, empty_url: str) -> None:
    with opened(empty_url) as database, pytest.raises(InputError, match="restore into an empty one"):
        restore_backup(database, saved, 0)


def spoiled(path: Path, how: str) -> None:
    raw = path.read_bytes()
    lines = gzip.decompress(raw).splitlines(keepends=True)
    head = {**json.loads(lines[0]), "migration": 999}
    path.write_bytes(
        {
            "cut": raw[: len(raw) // 2],
            "no gzip": b"hello",
            "empty": b"",
            "a row less": gzip.compress(b"".join([*lines[:5], *lines[6:]])),
            "no end": gzip.compress(b"".join(lines[:-1])),
            "newer": gzip.compress(b"".join([json.dumps(head).encode() + b"\n", *lines[1:]])),
            "other": gzip.compress(b'{"a": 1}\n'),
        }[how]
    )


@pytest.mark.parametrize("how", ["cut", "no gzip", "empty", "a row less", "no end", "newer", "other"])
def test_a_damaged_backup_is_told_before_anything_is_written(how: str, tmp_path: Path) -> None:
    path = tmp_path / "team.backup"
    with opened(f"sqlite:///{tmp_path}/team.db") as database:
        Team(database).put({"a.md": "one"})
        write_backup(database, path, NOON)
    check_backup(path)
    spoiled(path, how)
    with opened(f"sqlite:///{tmp_path}/other.db") as database:
        with pytest.raises(FileDamaged):
            restore_backup(database, path, 0)
        assert database.read(None, lambda tx: tx.rows("SELECT * FROM org")).result() == []


def test_what_was_written_after_the_backup_never_has_its_version_given_again(tmp_path: Path) -> None:
    """A device that knows the lost version would else overwrite, unseen, what came in its place."""
    path = tmp_path / "team.backup"
    with opened(f"sqlite:///{tmp_path}/team.db") as database:
        team = Team(database)
        team.put({"a.md": "one"})
        write_backup(database, path, NOON)
        lost = team.put({"a.md": "two"}).seq
    with opened(f"sqlite:///{tmp_path}/other.db") as database:
        restore_backup(database, path, NOON)
        team.database = database
        assert team.texts() == {"a.md": "one"}
        assert team.put({"a.md": "another two"}).seq > lost
        team.send("three")
        with pytest.raises(ApiError) as refused:
            team.commit(change("a.md", lost, "three"))
        assert refused.value.kind == "conflict"


def test_a_backup_of_the_first_tables_can_still_be_restored(tmp_path: Path) -> None:
    path = tmp_path / "team.backup"
    with opened(f"sqlite:///{tmp_path}/team.db") as database:
        Team(database, "old").put({"a.md": "one"})
        write_backup(database, path, NOON)
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    head = {**json.loads(lines[0]), "migration": 1}
    path.write_bytes(gzip.compress(b"".join([json.dumps(head).encode() + b"\n", *lines[1:]])))
    with opened(f"sqlite:///{tmp_path}/other.db") as database:
        restore_backup(database, path, NOON)
        assert [one.name for one in database.read(None, list_orgs).result()] == ["old"]


def test_a_backup_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        check_backup(tmp_path / "none")


def test_a_backup_is_not_written_through_what_another_user_has_put_beside_it(
    empty_url: str, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".team.backup.part").symlink_to(victim)
    with opened(empty_url) as database:
        Team(database, "first").put({"a.md": "text"})
        write_backup(database, tmp_path / "team.backup", NOON)
    assert victim.read_text() == "mine"
    check_backup(tmp_path / "team.backup")


@pytest.mark.parametrize("line", ["[" * 100_000, "[1]", "5", "null"])
def test_a_line_that_is_no_object_is_told(line: str, tmp_path: Path) -> None:
    path = tmp_path / "team.backup"
    path.write_bytes(gzip.compress(f"{line}\n".encode()))
    with pytest.raises(FileDamaged, match="cannot be read as a backup"):
        check_backup(path)
