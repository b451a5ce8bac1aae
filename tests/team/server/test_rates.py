"""How often one may ask: a line forms, and several processes count as one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.clock import ManualClock, SystemClock
from sevenfold.team.server.app_state import SELDOM_BURST, AccessControl, AppState
from sevenfold.team.server.database import Database
from sevenfold.team.server.http_server import TAKEN_RETENTION, SharedRates, forget_taken
from sevenfold.team.server.messages import ApiError
from sevenfold.team.server.policy import RateBuckets, ServerLimits
from tests.team.live import serving
from tests.team.server.conftest import opened
from tests.team.team import Team

SECOND = timedelta(seconds=1)
START = timedelta(hours=1)


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    with opened(f"sqlite:///{tmp_path}/team.db") as database:
        yield database


def test_who_comes_too_early_is_given_a_place_in_the_line_and_past_its_end_none() -> None:
    buckets = RateBuckets(10, 10, delay=SECOND)
    waits = [buckets.take("a", START) for _ in range(25)]
    assert waits[:10] == [timedelta()] * 10
    assert waits[10:20] == [SECOND * number / 10 for number in range(1, 11)]
    assert all(wait > SECOND for wait in waits[20:])
    # Those who were refused took nothing: a second later one who comes waits as long as the line is.
    assert buckets.take("a", START + SECOND) == SECOND / 10


def test_what_is_done_already_is_paid_by_whoever_comes_next() -> None:
    buckets = RateBuckets(10, 10, delay=SECOND)
    buckets.charge("a", START, 25)
    assert buckets.look("a", START) == SECOND * 1.6
    assert buckets.look("b", START) == timedelta()


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 5)), max_size=60))
def test_no_more_is_given_than_the_rate_and_one_burst(asked: list[tuple[int, int]]) -> None:
    buckets, now, given_at = RateBuckets(7, 5, delay=SECOND), START, list[timedelta]()
    for pause_ms, count in asked:
        now += timedelta(milliseconds=pause_ms)
        for _ in range(count):
            wait = buckets.take("a", now)
            if wait <= SECOND:
                given_at.append(now + wait)
    for first, start in enumerate(given_at):
        for last in range(first, len(given_at)):
            span = (given_at[last] - start).total_seconds()
            assert last - first + 1 <= 5 + 7 * span + 1.01


@dataclass(slots=True)
class Processes:
    """Gates on one database, as each process has one."""

    gates: list[AccessControl]
    rates: list[SharedRates]

    def share(self) -> None:
        for rates in self.rates:
            asyncio.run(rates.share())


def start(database: Database, clock: ManualClock, limits: ServerLimits, count: int) -> Processes:
    desks = [AppState(database, limits, clock) for _ in range(count)]
    gates = [AccessControl(desk) for desk in desks]
    return Processes(gates, [SharedRates(desk, gate) for desk, gate in zip(desks, gates, strict=True)])


def admitted(gate: AccessControl, token: str, most: int) -> int:
    """How many of so many requests."""

    async def ask() -> int:
        count = 0
        for _ in range(most):
            with suppress(ApiError):
                await gate.admit(f"Bearer {token}", "here", "whoami")
                count += 1
        return count

    return asyncio.run(ask())


def test_a_few_too_many_at_once_are_held_and_all_are_served(database: Database) -> None:
    team = Team(database, now_ms=int(time.time() * 1000))
    gate = AccessControl(AppState(database, ServerLimits(org_rate=50, token_rate=1_000), SystemClock()))

    async def ask() -> int:
        asked = [gate.admit(f"Bearer {team.token}", "here", "whoami") for _ in range(60)]
        return len(await asyncio.gather(*asked))

    began = time.monotonic()
    assert asyncio.run(ask()) == 60
    assert time.monotonic() - began >= 0.1  # ten of them waited, for a fiftieth of a second each


@pytest.mark.story
@pytest.mark.parametrize("count", [1, 2, 5])
def test_several_processes_allow_together_what_one_does(database: Database, count: int) -> None:
    clock, team = ManualClock(), Team(database)
    limits = ServerLimits(org_rate=40, token_rate=1_000, delay=timedelta())
    processes = start(database, clock, limits, count)
    total = 0
    for second in range(30):
        done = sum(admitted(gate, team.token, 80) for gate in processes.gates)
        total += done if second >= 5 else 0  # once they know of each other
        processes.share()
        clock.pass_time(SECOND)
    assert 0.8 * 25 * 40 <= total <= 1.15 * 25 * 40


def test_a_process_that_was_away_owes_nothing_and_rows_that_nobody_uses_are_forgotten(
    database: Database,
) -> None:
    clock, team = ManualClock(), Team(database)
    limits = ServerLimits(org_rate=40, delay=timedelta())
    processes = start(database, clock, limits, 2)
    assert admitted(processes.gates[0], team.token, 40) == 40
    processes.share()
    # The other has never asked, so it has no part in it.
    assert admitted(processes.gates[1], team.token, 40) == 40
    now_ms = int(clock.now().timestamp() * 1000)

    def count(at_ms: int) -> int:
        database.write(None, lambda tx: forget_taken(tx, at_ms)).result()
        return len(database.read(None, lambda tx: tx.rows("SELECT name FROM permit")).result())

    assert count(now_ms) == 2  # of the organisation and of its token
    assert count(now_ms + TAKEN_RETENTION // timedelta(milliseconds=1) + 1) == 0


@pytest.mark.story
def test_large_texts_use_up_more_of_an_organisations_rate_than_small_ones(database: Database) -> None:
    team, clock = Team(database), ManualClock()
    limits = ServerLimits(org_rate=20, delay=timedelta())
    with serving(database, clock=clock, limits=limits) as live:

        def put(text: str) -> int:
            body = {"entries": {"a.md": text}}
            return live.ask("PUT", "/api/v1/memory", team.token, json=body, repo=team.repo).status_code

        assert [put("word " * 40_000), put("x")] == [200, 429]
        clock.pass_time(timedelta(seconds=2))
        assert put("x") == 200


def test_who_tries_or_asks_for_codes_of_devices_often_is_stopped_before_the_database_is_asked(
    database: Database,
) -> None:
    team, clock = Team(database), ManualClock()
    with (
        serving(database, clock=clock) as live_loose,
        serving(database, clock=clock, limits=ServerLimits()) as live,
    ):
        started = [live.ask("POST", "/api/v1/device", json={}).status_code for _ in range(SELDOM_BURST + 1)]
        assert started == [*[201] * SELDOM_BURST, 429]
        guess = {"user_code": "BCDF-GHJK", "member": "ada"}
        tried = [
            live.ask("POST", "/api/v1/device/approve", team.token, json=guess).status_code
            for _ in range(SELDOM_BURST + 1)
        ]
        assert tried == [*[404] * SELDOM_BURST, 429]
        # Its other requests go on.
        assert live.ask("GET", "/api/v1/whoami", team.token).status_code == 200
        assert live_loose.ask("POST", "/api/v1/device", json={}).status_code == 201
