"""A server that the tests of this folder share, each with a team of its own."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.team.laptops import Hall, Laptop, Office, hall, office


@pytest.fixture(scope="session", name="hall")
def hall_(tmp_path_factory: pytest.TempPathFactory) -> Generator[Hall]:
    with hall(tmp_path_factory.mktemp("hall")) as made:
        yield made


@pytest.fixture(name="office")
def office_(hall: Hall, tmp_path: Path) -> Generator[Office]:
    with office(hall, tmp_path) as made:
        yield made


@pytest.fixture
def ada(office: Office) -> Laptop:
    return office.laptop("ada")


@pytest.fixture
def bob(office: Office) -> Laptop:
    return office.laptop("bob")
