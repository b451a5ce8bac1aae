"""Server processes: they end well, are killed without loss, and several behave as one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from sevenfold.team.protocol import compute_checksum
from tests.team.live import MEMORY
from tests.team.server.postgres import LocalPostgres
from tests.team.server.processes import Served, make_team

pytestmark = pytest.mark.story


def client(served: Served, team: dict[str, str]) -> httpx2.Client:
    return httpx2.Client(
        base_url=served.url,
        headers={"authorization": f"Bearer {team['token']}"},
        params={"repo": team["repo"]},
        timeout=60,
        verify=False,
    )


def test_a_server_that_is_told_to_end_finishes_what_is_under_way(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/team.db"
    team = make_team(url)
    answers: list[int] = []
    with Served(url, tmp_path, options=["--rate", "100000"]) as served, client(served, team) as http:
        began = threading.Event()

        def put_on() -> None:
            for number in range(10_000):
                try:
                    got = http.put(MEMORY, json={"entries": {f"k{number % 100}.md": f"text {number}"}})
                except httpx2.TransportError:
                    return
                answers.append(got.status_code)
                began.set()

        thread = threading.Thread(target=put_on)
        thread.start()
        assert began.wait(60)
        assert served.end() == 0
        thread.join(60)
    with Served(url, tmp_path) as again, client(again, team) as http:
        # Each answer that was given is there, and none that was begun was cut off half-way.
        assert http.get(MEMORY).json()["seq"] in (len(answers), len(answers) + 1)
        assert set(answers) <= {200, 429}


def test_the_first_start_says_how_to_begin(tmp_path: Path) -> None:
    with Served(f"sqlite:///{tmp_path}/team.db", tmp_path) as served:
        assert served.process.stdout is not None
        assert "no organisation yet" in served.process.stdout.readline()
        assert "sevenfold serve init ORG YOU --db sqlite:" in served.process.stdout.readline()


def test_two_processes_on_one_postgresql_behave_as_one(postgres: LocalPostgres, tmp_path: Path) -> None:
    url = postgres.make_database("fleet")
    team = make_team(url)
    fast = ["--rate", "100000"]
    with (
        Served(url, tmp_path, options=fast) as one,
        Served(url, tmp_path, options=fast) as two,
        client(one, team) as first,
        client(two, team) as second,
    ):
        assert one.port != two.port

        def push(number: int) -> int:
            """A body to one process, its commit to the other, then the same commit to the first again."""
            here, there = (first, second) if number % 2 else (second, first)
            text = f"text {number}"
            assert here.post(f"{MEMORY}/bodies", json={"bodies": [text]}).status_code == 200
            change = {"key": f"k{number}.md", "expected": 0, "checksum": compute_checksum(text)}
            commit = {"id": f"c{number}", "changes": [change]}
            made = there.post(f"{MEMORY}/commit", json=commit)
            again = here.post(f"{MEMORY}/commit", json=commit)
            assert (made.status_code, made.json()) == (200, again.json())
            return int(made.json()["seq"])

        def race(number: int) -> int:
            here = first if number % 2 else second
            change = {"key": "same.md", "expected": 0, "checksum": compute_checksum("text 0")}
            return here.post(f"{MEMORY}/commit", json={"id": f"r{number}", "changes": [change]}).status_code

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(push, range(40))) == list(range(1, 41))
            assert sorted(pool.map(race, range(8))) == [200, *[409] * 7]
        assert first.get(MEMORY).json() == second.get(MEMORY).json()
        assert len(first.get(MEMORY).json()["entries"]) == 41


def test_a_killed_server_has_kept_all_that_it_acknowledged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/team.db"
    team = make_team(url)
    kept: dict[str, str] = {}
    for life in range(3):
        with Served(url, tmp_path, options=["--rate", "100000"]) as served, client(served, team) as http:
            for number in range(20):
                key, text = f"k{number}.md", f"life {life} text {number}"
                if http.put(MEMORY, json={"entries": {key: text}}).status_code == 200:
                    kept[key] = text
            served.kill()
    with Served(url, tmp_path) as served, client(served, team) as http:
        entries = http.get(MEMORY).json()["entries"]
        assert {key: one["content"] for key, one in entries.items()} == kept
