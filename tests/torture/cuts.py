"""Rig: a simulated power cut after every change of a scenario, with everything a disk might then hold."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from sevenfold.store.files.disk import Disk
from tests.torture.faults import SCENARIOS, Make
from tests.torture.gang import try_all
from tests.torture.lossy import LEFTOVERS, LossyDisk
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.stage import QUICK_DISK, Seen, judged, play


@dataclass(frozen=True, slots=True)
class Run:
    make: Make
    seed: int
    share: float
    """Which part of its moments to look at."""
    disk: Disk = QUICK_DISK
    """What lies below; real fsyncs add nothing, since what survives is kept account of above them."""


@dataclass(slots=True, kw_only=True)
class _Watch:
    run: Run
    place: Path
    random: Random
    notes: list[str] = field(default_factory=list[str])
    disk: LossyDisk | None = None
    moments: int = 0
    states: int = 0
    wrong: list[str] = field(default_factory=list[str])

    def cut(self) -> None:
        """Look at all that could be left if the power went now."""
        self.moments += 1
        if self.disk is None or self.random.random() > self.run.share:
            return
        seen = Seen.of(self.notes)
        for leftover in LEFTOVERS:
            target = self.place / "left"
            shutil.rmtree(target, ignore_errors=True)
            self.disk.lay_out(target, leftover, self.random)
            self.states += 1
            for wrong in judged(self.run.make(self.run.seed), target, seen):
                self.wrong.append(f"cut at moment {self.moments}, {leftover}: {wrong}")


def watch(run: Run, place: Path) -> list[str]:
    """Play a scenario once and judge every state a cut could leave; how many there were comes first."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    scenario = run.make(run.seed)
    root = place / "root"
    scenario.prepare(root)
    seen = _Watch(run=run, place=place, random=Random(f"{scenario.name} {run.seed}"))
    seen.disk = LossyDisk(root, seen.cut, inner=run.disk)
    play(scenario, root, seen.disk, seen.notes.append)
    told = Seen.of(seen.notes)
    if not told.finished:
        seen.wrong.append(f"the scenario did not finish, with nothing in its way: {told.escaped}")
    return [str(seen.states), *seen.wrong]


def run_cuts(orders: Orders, scenarios: Sequence[Make] = SCENARIOS, disk: Disk = QUICK_DISK) -> list[Outcome]:
    seeds = orders.pick(tiny=1, short=1, long=12)
    share = orders.pick(tiny=0.3, short=0.5, long=1.0)
    runs = [Run(make, orders.seed + n, share, disk) for n in range(seeds) for make in scenarios]
    with outcome("power, simulated", "states after a cut") as found, orders.scratch("cuts") as place:
        for done, verdict in enumerate(try_all(runs, watch, place)):
            orders.progress("power, simulated", done, len(runs), "scenarios")
            states, *wrong = verdict.wrong
            run = runs[verdict.index]
            found.count += int(states) if states.isdigit() else 0
            for text in wrong if states.isdigit() else verdict.wrong:
                found.wrong(f"{run.make.name} (seed {run.seed}), {text}")
    return [found]
