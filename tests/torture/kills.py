"""Rig: writers and readers killed at any moment, again and again, while others go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.torture.crew import Crew
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.workers import Letters, Pipe, Records, TellingDisk, send_mail, use_mail, write_records

Work = Callable[[], None]
Start = Callable[[str], Work]
"""Given a name that no process had before, what a process does."""


@dataclass(slots=True, kw_only=True)
class _Run:
    place: Path
    session: str
    random: Random
    pipe: Pipe
    crew: Crew
    records: Records = field(default_factory=Records)
    letters: Letters = field(default_factory=Letters)
    roles: dict[int, Start] = field(default_factory=dict[int, Start])
    born: int = 0
    kills: int = 0
    writing: int = 0

    def start(self, role: Start) -> None:
        self.born += 1
        self.roles[self.crew.start(role(f"big{self.born}"))] = role

    def listen(self, seconds: float) -> None:
        for line in self.pipe.listen(seconds):
            verb, *rest = line.split()
            match verb:
                case "record":
                    self.records.take(*rest)
                case "large":
                    self.writing = int(rest[0])
                case _:
                    self.letters.take(verb, rest[0])

    def kill_one(self) -> None:
        """Anybody, or by preference one that has just begun to write something large."""
        victim = self.writing if self.writing in self.crew.pids else self.random.choice(self.crew.pids)
        if victim == self.writing:
            time.sleep(self.random.uniform(0, 0.002))
        self.writing = 0
        self.crew.kill(victim)
        self.kills += 1
        self.start(self.roles.pop(victim))


def run_kills(orders: Orders) -> list[Outcome]:
    target = orders.pick(tiny=400, short=3_000, long=100_000)
    each = orders.pick(tiny=400, short=3_000, long=20_000)
    with outcome("kills", "acknowledged records") as found, orders.scratch("kills") as place:
        letters = kills = fragments = wide = 0
        for number in range(target // each):
            run = _run(orders, found, place / f"round-{number}", f"kills-{number}", each)
            letters += len(run.letters.delivered)
            kills += run.kills
            fragments += run.records.fragments
            wide += run.records.wide
        found.notes.append(
            f"{kills:,} kills, {fragments:,} fragments quarantined, {letters:,} letters delivered, "
            f"{wide:,} records over 100 KB"
        )
        if not wide:
            found.wrong("no record was longer than what is written at once, so nothing was tried")
    return [found]


def _run(orders: Orders, found: Outcome, place: Path, session: str, target: int) -> _Run:
    """Kill until enough was acknowledged, then look."""
    place.mkdir()
    before = found.count
    with closing(Pipe()) as pipe, Crew() as crew:
        run = _Run(place=place, session=session, random=orders.random(session), pipe=pipe, crew=crew)
        for role in _roles(run):
            run.start(role)
        while run.records.total < target:
            until = time.monotonic() + run.random.uniform(0.002, 0.05)
            while (left := until - time.monotonic()) > 0 and not run.writing:
                run.listen(left)
            for ended in crew.ended():
                found.wrong(f"a process ended by itself with {ended.code}; see its traceback above")
                run.start(run.roles.pop(ended.pid))
            run.kill_one()
            found.count = before + run.records.total
            orders.progress("kills", found.count, max(target, found.count), "acknowledged records")
        for pid in crew.pids:
            crew.kill(pid)
        run.listen(0)
    found.count = before + run.records.total
    for wrong in (*run.records.judge(place, session), *run.letters.judge(place)):
        found.wrong(f"{session}: {wrong}")
    return run


def _roles(run: _Run) -> list[Start]:
    def writes(who: str) -> Work:
        return lambda: write_records(run.place, run.session, who, run.pipe, TellingDisk(run.pipe))

    def sends(who: str) -> Work:
        return lambda: send_mail(run.place, who, run.pipe)

    def uses(who: str) -> Work:
        return lambda: use_mail(run.place, run.pipe)

    return [writes, writes, writes, sends, sends, uses]
