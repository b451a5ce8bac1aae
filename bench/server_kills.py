"""The server and its database killed under load: what was acknowledged has to be there."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from bench.server_wire import MEMORY, Laptop, Tally, Tenant, make_tenant, push

from sevenfold.team.protocol import compute_checksum
from tests.team.server.postgres import LocalPostgres
from tests.team.server.processes import Served

LAPTOPS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    victim: str
    database: str
    kills: int
    acknowledged: int
    lost: int
    slowest_seconds: float
    """From a kill to the next acknowledgement."""


@dataclass(slots=True)
class _Record:
    """What each laptop was told is stored: only it writes its keys."""

    stored: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    acknowledged: int = 0
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with each acknowledgement."""


def run_kills(kind: str, url: str, folder: Path, cluster: LocalPostgres | None, kills: int) -> list[Killed]:
    found = [_run(kind, "server", url, folder, kills, None)]
    if cluster is not None:
        found.append(_run(kind, "PostgreSQL", url, folder, kills, cluster))
    return found


def _run(kind: str, victim: str, url: str, folder: Path, kills: int, cluster: LocalPostgres | None) -> Killed:
    tenant = make_tenant(url, f"killed {victim}", tokens=LAPTOPS, repos=1)
    server = Served(url, folder, options=("--rate", "1000000"))
    record = _Record()

    def restart_server() -> None:
        nonlocal server
        server.kill()
        server = Served(url, folder, port=server.port, options=("--rate", "1000000"))

    def restart_database() -> None:
        assert cluster is not None
        cluster.kill()
        cluster.start()

    try:
        restart = restart_server if cluster is None else restart_database
        slowest = asyncio.run(_load(server.port, tenant, record, restart, kills))
        lost = asyncio.run(_count_lost(server.port, tenant, record))
    finally:
        server.end()
    found = Killed(
        victim=victim,
        database=kind,
        kills=kills,
        acknowledged=record.acknowledged,
        lost=lost,
        slowest_seconds=round(slowest, 2),
    )
    print(found, file=sys.stderr, flush=True)  # the next may take minutes
    return found


async def _load(port: int, tenant: Tenant, record: _Record, restart: Callable[[], None], kills: int) -> float:
    ending = asyncio.Event()

    async def push_on(number: int) -> None:
        laptop, turn = Laptop(port=port, token=tenant.tokens[number]), 0
        while not ending.is_set():
            turn += 1
            key, text = f"l{number}-{turn % 8}.md", f"laptop {number} turn {turn}"
            seq = await push(laptop, tenant.repos[0], key, text, Tally())
            if seq is not None:
                record.stored[key] = (seq, text)
                record.acknowledged += 1
                record.heard.set()
        laptop.close()

    slowest = 0.0

    async def kill_on() -> None:
        nonlocal slowest
        chance = random.Random(7)
        for _ in range(kills):
            await asyncio.sleep(0.2 + chance.random() * 0.5)
            await asyncio.to_thread(restart)
            began = time.perf_counter()
            record.heard.clear()
            await record.heard.wait()
            slowest = max(slowest, time.perf_counter() - began)
        ending.set()

    await asyncio.gather(kill_on(), *(push_on(number) for number in range(LAPTOPS)))
    return slowest


async def _count_lost(port: int, tenant: Tenant, record: _Record) -> int:
    """A key that has not what was acknowledged last, or something that was sent after it."""
    laptop = Laptop(port=port, token=tenant.tokens[0])
    reply = await laptop.ask("GET", f"{MEMORY}?repo={tenant.repos[0]}")
    laptop.close()
    entries = cast("dict[str, dict[str, object]]", reply.json()["entries"])
    lost = 0
    for key, (seq, text) in record.stored.items():
        held = entries.get(key, {"version": 0, "checksum": ""})
        is_newer = cast("int", held["version"]) > seq
        lost += not is_newer and held["checksum"] != compute_checksum(text)
    return lost
