"""Rigs: hostile keys against the team server, and Schemathesis over its whole API."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from random import Random
from typing import TYPE_CHECKING, cast

from sevenfold.cli.team.serve import open_database
from sevenfold.core.clock import SystemClock
from sevenfold.team.protocol import compute_checksum
from sevenfold.team.server.app_state import AppState
from sevenfold.team.server.database import Database
from sevenfold.team.server.http_api import ServerMetrics, TeamApi
from sevenfold.team.server.policy import ServerLimits
from tests.team.server.fuzz import Fuzzed, run_schemathesis
from tests.team.team import Team
from tests.torture.hostile import hostile_keys
from tests.torture.rig import Orders, Outcome, outcome

if TYPE_CHECKING:
    from starlette.types import Message, Scope

LOOSE = ServerLimits(token_rate=10**9, org_rate=10**9, entries=10**6, total_bytes=10**9)
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
DISGUISES = (
    "{}.md",
    "{}",
    "a/{}.md",
    "{}/a.md",
    "a/b/{}.md",
    "{}\u200b.md",
    "%2e%2e/{}.md",
    "{}.md/",
    "{}.MD",
)


def run_server_keys(orders: Orders) -> list[Outcome]:
    """Each key as a simple client sends it, or in a commit; what passes must be harmless."""
    wanted = orders.pick(tiny=600, short=6_000, long=210_000)
    with outcome("server, keys", "hostile keys") as found, orders.scratch("server-keys") as place:
        database = open_database(f"sqlite:///{place}/team.db")
        try:
            keys = islice(_keys(orders.random("server keys"), place), wanted)
            asyncio.run(_try_keys(database, keys, found, orders, wanted))
        finally:
            database.close()
    return [found]


def run_server_api(orders: Orders) -> list[Outcome]:
    examples, wanted = orders.pick(tiny=2, short=12, long=1_600), orders.pick(tiny=1, short=1, long=50_000)
    with outcome("server, API", "requests of Schemathesis") as found:
        # Some 25,000 requests are made of 1,600 examples: it is begun anew until there are enough.
        for seed in range(orders.seed, orders.seed + 4):
            fuzzed = _fuzz(orders, examples, seed)
            found.count += fuzzed.cases
            for bug in fuzzed.bugs:
                found.wrong(bug)
            if fuzzed.failures or fuzzed.server_errors:
                told = f"{fuzzed.failures} failures, {fuzzed.server_errors} server errors"
                found.wrong(f"seed {seed}: {told}: {fuzzed.report[-3000:]}")
            if found.count >= wanted:
                return [found]
        found.wrong(f"{found.count:,} requests were made, and {wanted:,} wanted")
    return [found]


def _fuzz(orders: Orders, examples: int, seed: int) -> Fuzzed:
    with orders.scratch("server-api") as place:
        database = open_database(f"sqlite:///{place}/team.db")
        try:
            return run_schemathesis(database, place, examples=examples, seed=seed)
        finally:
            database.close()


def is_harmless(key: str) -> bool:
    """Said in other words than the grammar's, so that the two check each other."""
    path = PurePosixPath(key)
    if path.is_absolute() or str(path) != key or path.suffix != ".md" or not 1 <= len(path.parts) <= 3:
        return False
    stems = [*path.parts[:-1], path.stem]
    devices = (
        "con",
        "prn",
        "aux",
        "nul",
        *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10)),
    )
    return all(
        stem[:1] in LETTERS and len(stem) <= 80 and set(stem) <= LETTERS | {"_", "-"} and stem not in devices
        for stem in stems
        if stem
    ) and all(stems)


def _keys(random: Random, place: Path) -> Iterator[str]:
    for key in hostile_keys(random, place):
        yield random.choice(DISGUISES).format(key) if random.random() < 0.5 else key


async def _try_keys(
    database: Database, keys: Iterator[str], found: Outcome, orders: Orders, wanted: int
) -> None:
    team = Team(database, now_ms=int(time.time() * 1000))
    team.send("text")
    front = TeamApi(AppState(database, LOOSE, SystemClock()), ServerMetrics(None))
    caller = _Caller(front, team)
    passed = 0
    for key in keys:
        found.count += 1
        turn = found.count % 2
        status = await (caller.put(key) if turn else caller.commit(key, found.count))
        passed += status == 200
        if status >= 500 or (status in (200, 409) and not is_harmless(key)):
            found.wrong(f"{key!r:.200} was answered with {status}")
        orders.progress(found.name, found.count, wanted, found.unit)
    for key in team.contents().entries:
        if not is_harmless(key):
            found.wrong(f"{key!r:.200} is in the repository")
    found.notes.append(f"{passed:,} requests had a key that is one, and were carried out")


@dataclass(slots=True)
class _Caller:
    """Requests to the application itself, without a socket between."""

    front: TeamApi
    team: Team
    app: object = field(init=False)

    def __post_init__(self) -> None:
        self.app = self.front.make_app()

    async def put(self, key: str) -> int:
        return await self._ask("PUT", "/api/v1/memory", {"entries": {key: "text"}})

    async def commit(self, key: str, number: int) -> int:
        change = {"key": key, "expected": 0, "checksum": compute_checksum("text")}
        return await self._ask("POST", "/api/v1/memory/commit", {"id": f"c{number}", "changes": [change]})

    async def _ask(self, method: str, path: str, body: object) -> int:
        from starlette.applications import Starlette

        statuses: list[int] = []
        scope: Scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": f"repo={self.team.repo}".encode(),
            "headers": [
                (b"authorization", f"Bearer {self.team.token}".encode()),
                (b"content-type", b"application/json"),
            ],
        }

        async def receive() -> Message:
            return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(int(message["status"]))

        await cast("Starlette", self.app)(scope, receive, send)
        return statuses[0]
