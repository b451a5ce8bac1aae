"""One simulator for all tests of a process; each test gets it empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sevenfold.testing import Simulator


@pytest.fixture(scope="session")
def running() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def sim(running: Simulator) -> Iterator[Simulator]:
    running.reset()
    yield running
    running.check()
