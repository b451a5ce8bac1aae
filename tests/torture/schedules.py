"""Rig: team memory under a scheduler. Real devices and the server's rule, on a network that loses, doubles
and delays, with a power cut at any step: nothing is lost or back, and two quiet rounds settle all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sevenfold.cli.team.serve import open_database
from tests.team.client.sim_broken import DEVICES, SERVERS, Broken
from tests.team.client.sim_set_back import SET_BACK_FAULTS, SetBackFault
from tests.team.client.sim_stored import set_back_in, stored_on
from tests.team.sim_world import World, play
from tests.torture.rig import Orders, Outcome, outcome

BATCH = 500
REPOSITORIES = 100
"""Of one organisation: each schedule has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a batch of schedules held, and what was wrong with it."""

    schedules: int
    edits: int
    deletions: int
    conflicts: int
    wrong: tuple[str, ...]


def play_batch(first: int) -> Tally:
    edits = deletions = conflicts = 0
    wrong: list[str] = []
    for seed in range(first, first + BATCH):
        world = World(seed)
        world.run()
        world.settle()
        wrong += (f"schedule {seed}: {what}" for what in world.judge())
        edits += len(world.chronicle.written)
        deletions += len(world.chronicle.deleted)
        conflicts += len(world.chronicle.copies)
    return Tally(schedules=BATCH, edits=edits, deletions=deletions, conflicts=conflicts, wrong=tuple(wrong))


def run_sync(orders: Orders) -> list[Outcome]:
    batches = orders.pick(tiny=1, short=4, long=440)
    first = orders.seed * 10_000_000
    with outcome("sync", "schedules") as found:
        tallies: list[Tally] = []
        for tally in _tallies(orders, [first + BATCH * each for each in range(batches)]):
            tallies.append(tally)
            found.count += tally.schedules
            for what in tally.wrong:
                found.wrong(what)
            orders.progress("sync", found.count, batches * BATCH, "schedules")
        found.notes.append(
            f"{sum(tally.edits for tally in tallies):,} edits, "
            f"{sum(tally.deletions for tally in tallies):,} deletions, "
            f"{sum(tally.conflicts for tally in tallies):,} conflicts kept beside the other text"
        )
    return [found, _stored(orders), _set_back(orders), _set_back_files(orders), _planted()]


def _set_back(orders: Orders) -> Outcome:
    """On servers that are restored from backups and recovered to a point in time."""
    count = orders.pick(tiny=40, short=400, long=20_000)
    with outcome("sync, server set back", "schedules") as found:
        first = orders.seed * 30_000_000
        for seed in range(first, first + count):
            found.count += 1
            for what in play(seed, is_set_back=True):
                found.wrong(f"schedule {seed}: {what}")
            orders.progress("sync, server set back", found.count, count, "schedules")
    return found


def _set_back_files(orders: Orders) -> Outcome:
    """The same with `write_backup`, `restore_backup` and copies of files."""
    count = orders.pick(tiny=2, short=10, long=120)
    with (
        outcome("sync, files set back", "schedules") as found,
        TemporaryDirectory() as folder,
        set_back_in(Path(folder)) as server,
    ):
        first = orders.seed * 40_000_000
        for seed in range(first, first + count):
            found.count += 1
            for what in play(seed, server=server, is_set_back=True):
                found.wrong(f"schedule {seed}: {what}")
            orders.progress("sync, files set back", found.count, count, "schedules")
    return found


def _stored(orders: Orders) -> Outcome:
    """The same against the server's own transactions, on SQLite in memory."""
    count = orders.pick(tiny=10, short=60, long=10_000)
    with (
        outcome("sync on SQLite", "schedules") as found,
        closing(open_database("sqlite:///:memory:")) as base,
    ):
        first, server = orders.seed * 20_000_000, stored_on(base)
        for seed in range(first, first + count):
            found.count += 1
            if found.count % REPOSITORIES == 0:
                server = stored_on(base)
            for what in play(seed, server=server):
                found.wrong(f"schedule {seed}: {what}")
            orders.progress("sync on SQLite", found.count, count, "schedules")
    return found


def _planted() -> Outcome:
    """Each rule of the protocol left out once: the schedules have to show it."""
    with outcome("sync without a rule", "rules left out") as found:
        for broken in (*SERVERS, *DEVICES, *SET_BACK_FAULTS):
            found.count += 1
            seeds = range(broken.first_seed, broken.first_seed + 100)
            caught = next((seed for seed in seeds if broken.play(seed)), None)
            if caught is None:
                found.wrong(f"nothing shows that {_what(broken)}")
    return found


def _what(broken: Broken | SetBackFault) -> str:
    return f"{broken.kind.__name__}: {broken.kind.__doc__}"


def _tallies(orders: Orders, firsts: list[int]) -> Iterator[Tally]:
    if orders.size != "long":
        yield from map(play_batch, firsts)
        return
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(play_batch, firsts)
