"""Rig: an accident at every operation of the fs port, in a process of its own, and a look at what is left."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

from sevenfold.store.files.disk import SYSTEM_DISK, Disk, SystemDisk
from tests.store.faults import ACCIDENTS, Accident, Fault, FaultyDisk, Operation, can_happen
from tests.torture.crew import Crew
from tests.torture.gang import try_all
from tests.torture.play_files import Edits, Files, Notes, Spilled
from tests.torture.play_lock import Foreign, Leases
from tests.torture.play_mail import Letters, Opened
from tests.torture.play_transcript import Transcripts
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.stage import Scenario, Seen, judged, play


class Make(Protocol):
    """A scenario by its seed."""

    name: str

    def __call__(self, seed: int, /) -> Scenario: ...


SCENARIOS: tuple[Make, ...] = (Transcripts, Files, Edits, Notes, Spilled, Letters, Leases, Foreign, Opened)
LASTING: tuple[Accident, ...] = ("ENOSPC", "EIO")
DEATHS: tuple[Accident, ...] = ("die before", "die after")
LONGEST_RUN_SECONDS = 60
"""A run takes milliseconds; one that takes this long hangs."""

PAIRED = 4
"""One in so many first accidents is followed by a second in the same run,"""
NEAR = 12
"""within so many operations."""

_MOST_SEEDS = 100


class LackingDisk(SystemDisk):
    """A file system without an exclusive rename, such as NFS: new names take several steps there."""

    def rename_new(self, old: str, new: str, *, old_fd: int, new_fd: int) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), new)


LACKING_DISK = LackingDisk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    make: Make
    seed: int
    faults: tuple[Fault, ...] = ()
    """One accident, or two in one run: the second often meets whoever cleans up after the first."""
    lacking: bool = False
    """On a file system without an exclusive rename."""
    always: bool = False
    """However few are tried: a death around one of the steps that stand in for that rename."""

    def __str__(self) -> str:
        accidents = [
            f"{fault.accident}{' for good' if fault.lasting else ''} at operation {fault.at}"
            for fault in self.faults
        ]
        where = " without an exclusive rename" if self.lacking else ""
        return f"{self.make.name} (seed {self.seed}){where}, {' and '.join(accidents)}"

    def disk(self) -> Disk:
        disk: Disk = LACKING_DISK if self.lacking else SYSTEM_DISK
        for fault in reversed(self.faults):
            disk = FaultyDisk(fault, inner=disk)
        return disk


def run_faults(
    orders: Orders, scenarios: Sequence[Make] = SCENARIOS, *, points: int | None = None
) -> list[Outcome]:
    """Every operation of every scenario, with every accident that can happen there."""
    with outcome("faults", "fault points") as found, orders.scratch("faults") as place:
        wanted = points or orders.pick(tiny=160, short=400, long=10_500)
        chosen = _choose(orders, scenarios, place, wanted, found)
        for verdict in try_all(chosen, strike, place):
            orders.progress("faults", found.count, len(chosen), "fault points")
            for wrong in verdict.wrong:
                found.wrong(f"{chosen[verdict.index] if verdict.index >= 0 else 'the rig'}: {wrong}")
            found.count += 1
        found.notes.append(_spread(chosen))
    return [found]


def strike(point: Point, root: Path) -> list[str]:
    """Run one scenario with its accidents and judge what is left."""
    shutil.rmtree(root, ignore_errors=True)
    scenario = point.make(point.seed)
    scenario.prepare(root)
    seen = _run_apart(scenario, root, point.disk())
    if seen is None:
        return [f"it hung for over {LONGEST_RUN_SECONDS} s"]
    wrong = judged(scenario, root, seen)
    return wrong + (_unexpected(point.faults[0], seen) if len(point.faults) == 1 else [])


def _unexpected(fault: Fault, seen: Seen) -> list[str]:
    """What cannot be after a single accident."""
    wrong = ["the accident did not happen"] if fault.accident.startswith("die") == seen.finished else []
    twice = sorted({step for step in seen.refused if seen.refused.count(step) > 1 and not fault.lasting})
    return wrong + [f"{step!r} was refused again after the accident had passed" for step in twice]


@dataclass(frozen=True, slots=True)
class Calm:
    """A run with nothing in its way: what it did, and what was wrong even so."""

    operations: list[Operation]
    wrong: list[str]


def run_calm(scenario: Scenario, root: Path, inner: Disk = SYSTEM_DISK) -> Calm:
    shutil.rmtree(root, ignore_errors=True)
    scenario.prepare(root)
    disk = FaultyDisk(None, inner=inner)
    notes: list[str] = []
    play(scenario, root, disk, notes.append)
    return Calm(disk.seen, judged(scenario, root, Seen.of(notes)))


def faults_of(operations: Sequence[Operation]) -> list[Fault]:
    """Everything that can happen in a run of these operations."""
    found: list[Fault] = []
    for at, operation in enumerate(operations, start=1):
        for accident in ACCIDENTS:
            if can_happen(accident, operation):
                found.append(Fault(at, accident))
                if accident in LASTING:
                    found.append(Fault(at, accident, lasting=True))
    return found


def pairs_of(faults: Sequence[Fault], random: Random) -> list[tuple[Fault, ...]]:
    """Some of the ways in which two accidents can follow each other; after a death there is no second."""
    firsts = [fault for fault in faults if not fault.accident.startswith("die") and not fault.lasting]
    pairs: list[tuple[Fault, ...]] = []
    for first in random.sample(firsts, len(firsts) // PAIRED):
        near = [fault for fault in faults if first.at < fault.at <= first.at + NEAR]
        pairs += [(first, random.choice(near))] if near else []
    return pairs


def _choose(
    orders: Orders, scenarios: Sequence[Make], place: Path, wanted: int, found: Outcome
) -> list[Point]:
    """All points of as many seeds as it takes, and of the last one a sample; never without `always`."""
    points: list[Point] = []
    for seed in range(orders.seed, orders.seed + _MOST_SEEDS):
        more = [point for make in scenarios for point in _points_of(make, seed, orders, place, found)]
        if len(points) + len(more) >= wanted:
            kept = [point for point in more if point.always]
            others = [point for point in more if not point.always]
            left = min(max(0, wanted - len(points) - len(kept)), len(others))
            return points + kept + orders.random("points").sample(others, left)
        points += more
    return points


def _points_of(make: Make, seed: int, orders: Orders, place: Path, found: Outcome) -> list[Point]:
    """What can happen to a scenario, on a file system with an exclusive rename and on one without."""
    calm = run_calm(make(seed), place / "calm")
    lacking = run_calm(make(seed), place / "calm", LACKING_DISK)
    for wrong in (*calm.wrong, *lacking.wrong):
        found.wrong(f"{make.name} (seed {seed}), with nothing in its way: {wrong}")
    faults = faults_of(calm.operations)
    singles: list[tuple[Fault, ...]] = [(fault,) for fault in faults]
    pairs = pairs_of(faults, orders.random(f"pairs {make.name} {seed}"))
    points = [Point(make=make, seed=seed, faults=chosen) for chosen in (*singles, *pairs)]
    if lacking.operations != calm.operations:
        points += _lacking_points(make, seed, lacking.operations)
    return points


def _lacking_points(make: Make, seed: int, operations: Sequence[Operation]) -> list[Point]:
    """Every accident on a file system without an exclusive rename."""
    return [
        Point(
            make=make,
            seed=seed,
            faults=(fault,),
            lacking=True,
            always=fault.accident in DEATHS and stands_in(operations, fault.at),
        )
        for fault in faults_of(operations)
    ]


def stands_in(operations: Sequence[Operation], at: int) -> bool:
    """Whether an operation, by its number from 1, stands in for a rename that the file system lacks.

    Names change there straight after a change of names was asked for; one that is done is first made durable.
    """
    changes = [name for name in operations[:at] if name in ("rename", "link", "unlink", "write", "fsync")]
    return operations[at - 1] in ("rename", "link", "unlink") and changes[-2:-1] in (["rename"], ["link"])


def _run_apart(scenario: Scenario, root: Path, disk: Disk) -> Seen | None:
    """What a child told that had the accidents; None when it hung."""
    read_end, write_end = os.pipe()

    def work() -> None:
        signal.alarm(LONGEST_RUN_SECONDS)
        os.close(read_end)
        play(scenario, root, disk, lambda line: _tell(write_end, line))

    with Crew() as crew:
        pid = crew.start(work)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            told = pipe.read().decode("utf-8", "surrogateescape")
        if crew.wait(pid) == -signal.SIGALRM:
            return None
    return Seen.of(told.splitlines())


def _tell(fd: int, line: str) -> None:
    os.write(fd, line.encode("utf-8", "surrogateescape") + b"\n")


def _spread(points: Sequence[Point]) -> str:
    counts = Counter(point.make.name for point in points)
    seeds = len({point.seed for point in points})
    pairs = sum(1 for point in points if len(point.faults) > 1)
    lacking = sum(1 for point in points if point.lacking)
    named = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    return f"seeds {seeds}, with two accidents {pairs:,}, without an exclusive rename {lacking:,}: {named}"
