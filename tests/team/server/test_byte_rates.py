"""Bytes are charged to the token that moved them; its colleagues wait a moment at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.team.server.database import Database
from sevenfold.team.server.policy import RateBuckets, ServerLimits
from tests.team.live import MEMORY, Live, serving
from tests.team.server.conftest import opened
from tests.team.team import Team

LIMITS = ServerLimits(delay=timedelta(milliseconds=20))
"""The defaults, with a short line, since a request in it waits in earnest."""
TOKENS = 50


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    with opened(f"sqlite:///{tmp_path}/team.db") as database:
        yield database


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def live(database: Database, clock: ManualClock) -> Generator[Live]:
    with serving(database, limits=LIMITS, clock=clock) as live:
        yield live


def fill(team: Team, megabytes: int) -> None:
    team.put({f"k{number}.md": "x" * 200_000 for number in range(5 * megabytes)})


def read_all(live: Live, team: Team, token: str) -> int:
    return live.ask("GET", MEMORY, token, repo=team.repo).status_code


def poll(live: Live, team: Team, token: str) -> int:
    return live.ask("GET", MEMORY, token, repo=team.repo, view="hashes").status_code


def test_one_reading_token_is_refused_and_its_colleagues_are_not(
    live: Live, database: Database, clock: ManualClock
) -> None:
    team = Team(database)
    fill(team, 4)
    greedy, colleague = team.add_token("ada", "memory:read"), team.add_token("ada")
    with ThreadPoolExecutor(10) as pool:
        statuses = Counter(pool.map(read_all, [live] * 60, [team] * 60, [greedy] * 60))
    assert statuses[429] > 40
    clock.pass_time(timedelta(milliseconds=50))
    assert [poll(live, team, colleague) for _ in range(3)] == [200] * 3
    refused = live.ask("GET", MEMORY, greedy, repo=team.repo)
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        429,
        "too many requests of this token",
    )
    assert int(refused.headers["retry-after"]) <= LIMITS.burst_seconds
    clock.pass_time(timedelta(seconds=LIMITS.burst_seconds + 1))
    assert read_all(live, team, greedy) == 200


def test_fifty_laptops_that_join_at_once_are_all_served(
    live: Live, database: Database, clock: ManualClock
) -> None:
    team = Team(database)
    fill(team, 1)
    statuses = Counter[int]()
    for token in [team.add_token("ada") for _ in range(TOKENS)]:
        clock.pass_time(timedelta(milliseconds=40))
        statuses.update((poll(live, team, token), read_all(live, team, token), poll(live, team, token)))
    assert statuses == {200: 3 * TOKENS}


def test_a_charge_makes_the_next_wait_no_longer_than_the_most_debt() -> None:
    buckets = RateBuckets(10, 10, delay=timedelta(seconds=1), most_debt=timedelta(seconds=2))
    start = timedelta(hours=1)
    buckets.charge("a", start, 1_000)
    buckets.add_remote_taken("a", start, 1_000)
    assert buckets.look("a", start) == timedelta(seconds=2.1)
    assert buckets.look("a", start + timedelta(seconds=2)) == timedelta(seconds=0.1)
