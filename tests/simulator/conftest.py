"""One simulator runs for all tests of a process; each test gets it empty."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from anthropic import Anthropic

from sevenfold.testing import Simulator
from tests.simulator.asking import Asker


@pytest.fixture(scope="session")
def running() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture(scope="session")
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client(trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def patient(running: Simulator) -> Anthropic:
    """The official client as it comes, with its retries."""
    return running.client()


@pytest.fixture(scope="session")
def client(running: Simulator) -> Anthropic:
    """The official client, without retries."""
    return running.client(max_retries=0)


@pytest.fixture
def sim(running: Simulator) -> Iterator[Simulator]:
    running.reset()
    yield running
    # A brain that failed, a bug, or a step that was never asked for fails the test, whatever it asserted.
    running.check()


@pytest.fixture
def ask(sim: Simulator, http: httpx2.Client) -> Asker:
    return Asker(sim, http)
