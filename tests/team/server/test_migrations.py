"""A database of an older version is brought to this one with all that it holds; several may do it at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sevenfold.cli.team.serve import open_database
from sevenfold.team.protocol import compute_checksum
from sevenfold.team.server import database as database_module
from sevenfold.team.server.database import MIGRATIONS, Tx
from sevenfold.team.server.http_server import add_taken
from tests.team.server.conftest import opened
from tests.team.team import Team


def put_by_hand(tx: Tx, team: Team, text: str) -> None:
    """As the first version did it: the code of today writes tables that older ones have not."""
    org, repo, checksum, body = team.org.id, team.repo, compute_checksum(text), text.encode()
    tx.rows("INSERT INTO blob VALUES (?, ?, ?, ?, ?, 0, 1)", org, repo, checksum, body, len(body))
    tx.rows("INSERT INTO entry VALUES (?, ?, 'a.md', 1, ?, ?, 0)", org, repo, checksum, len(body))
    tx.rows("INSERT INTO entry_history VALUES (?, ?, 1, 'a.md', ?, 'm', 't', 0)", org, repo, checksum)
    tx.rows("UPDATE repo SET seq = 1, entries = 1, bytes = ? WHERE id = ?", len(body), repo)


@pytest.mark.parametrize("number", range(1, len(MIGRATIONS)))
def test_a_database_of_an_older_version_keeps_what_it_holds(
    empty_url: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with monkeypatch.context() as older:
        older.setattr(database_module, "MIGRATIONS", MIGRATIONS[:number])
        with opened(empty_url) as database:
            team = Team(database)
            team.write(lambda tx: put_by_hand(tx, team, "one"))
    with opened(empty_url) as database:
        team.database = database
        assert team.texts() == {"a.md": "one"}
        assert team.put({"a.md": "two"}).seq == 2
        done = database.read(None, lambda tx: tx.rows("SELECT number FROM migration")).result()
        assert sorted(row[0] for row in done if isinstance(row[0], int)) == [one.number for one in MIGRATIONS]
        taken = database.write(None, lambda tx: add_taken(tx, {"org x": 3}, 0)).result()
        assert taken == {"org x": 3}


def test_several_that_begin_on_an_empty_file_all_find_the_tables(tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        databases = list(pool.map(open_database, [f"sqlite:///{tmp_path}/team.db"] * 6))
    teams = [Team(database) for database in databases]
    assert [team.put({"a.md": "one"}).seq for team in teams] == [1] * 6
    for database in databases:
        database.close()
