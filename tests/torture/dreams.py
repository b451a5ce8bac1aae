"""Rig: dreams struck at every operation; and dreamers killed at any moment while others edit."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

from sevenfold.core.errors import LockError, MemoryConflict
from sevenfold.core.memories import Origin, write_memory
from sevenfold.layers.dreams.dreamer import Dreamer
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.store.files.locks import Lock, LockSettings
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project
from tests.torture.crew import Crew
from tests.torture.faults import run_faults
from tests.torture.play_dream import Dreams
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.workers import Pipe

LOCKS = LockSettings(lease_seconds=1)
DREAMERS, EDITORS, FILES = 3, 4, 3
LONGEST_SECONDS = 600
_COUNT = re.compile(r"Count (\d+)\.")


def run_dreams(orders: Orders) -> list[Outcome]:
    """A dream with every accident at every operation, then a crowd."""
    points = orders.pick(tiny=25, short=60, long=6_000)
    (struck,) = run_faults(orders, [Dreams], points=points)
    struck.name = "dream, faults"
    return [struck, run_crowd(orders)]


def run_crowd(orders: Orders) -> Outcome:
    """Dreamers rewrite what editors edit, and all of them are killed: no acknowledged edit may be lost."""
    target = orders.pick(tiny=60, short=300, long=20_000)
    with outcome("dream, crowd", "acknowledged edits") as found, orders.scratch("dreams") as place:
        (place / "repo").mkdir()
        with closing(Pipe()) as pipe, Crew() as crew:
            crowd = _Crowd(place=place, pipe=pipe, crew=crew, random=orders.random("crowd"))
            crowd.begin()
            until = time.monotonic() + LONGEST_SECONDS
            while (crowd.edits < target or not crowd.dreams) and time.monotonic() < until:
                crowd.listen_for(crowd.random.uniform(0.1, 0.8))
                for ended in crew.ended():
                    found.wrong(f"a process ended by itself with {ended.code}; see its traceback above")
                    crowd.start(crowd.roles.pop(ended.pid))
                crowd.kill_one()
                found.count = crowd.edits
                orders.progress("dream, crowd", found.count, target, "acknowledged edits")
            for pid in crew.pids:
                crew.kill(pid)
            crowd.listen(0)
        found.count = crowd.edits
        for wrong in crowd.judge():
            found.wrong(wrong)
        if not crowd.dreams:
            found.wrong("no dream came to its end, so nothing was tried")
        found.notes.append(f"{crowd.dreams:,} dreams that changed something, {crowd.kills:,} kills")
    return found


Role = Callable[[], None]


@dataclass(slots=True, kw_only=True)
class _Crowd:
    place: Path
    pipe: Pipe
    crew: Crew
    random: Random
    roles: dict[int, Role] = field(default_factory=dict[int, Role])
    acknowledged: dict[str, int] = field(default_factory=dict[str, int])
    edits: int = 0
    dreams: int = 0
    kills: int = 0

    def begin(self) -> None:
        for number in range(EDITORS):
            self.start(lambda number=number: _edit(self.place, number, self.pipe))
        for _ in range(DREAMERS):
            self.start(lambda: _dream(self.place, self.pipe))

    def start(self, role: Role) -> None:
        self.roles[self.crew.start(role)] = role

    def kill_one(self) -> None:
        victim = self.random.choice(self.crew.pids)
        self.crew.kill(victim)
        self.kills += 1
        self.start(self.roles.pop(victim))

    def listen_for(self, seconds: float) -> None:
        """Until then, and however much is told."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.listen(left)

    def listen(self, seconds: float) -> None:
        for line in self.pipe.listen(seconds):
            verb, *rest = line.split()
            if verb == "edited":
                self.acknowledged[rest[0]] = int(rest[1])
                self.edits += 1
            else:
                self.dreams += rest[0] == "completed"

    def judge(self) -> list[str]:
        wrong: list[str] = []
        began = time.monotonic()
        with _opened(self.place) as project, MemoryDir(project) as memory:
            for key, count in self.acknowledged.items():
                there = _read_count(memory, key)
                # The one after may have happened before its writer could say so.
                if there not in (count, count + 1):
                    wrong.append(f"{key} was acknowledged at {count} and is at {there}")
            lock = Lock(project.control, "dream", pid_file=project.pid_file, lease=LOCKS.lease)
            while time.monotonic() < began + 3 * LOCKS.lease_seconds:
                with suppress(LockError):
                    lock.acquire().release()
                    return wrong
                time.sleep(0.05)
        return [*wrong, "the lock stayed taken for longer than its lease"]


def _opened(place: Path) -> Project:
    return Project.open(place / "repo", home=place / "home")


def _read_count(memory: MemoryDir, key: str) -> int:
    found = memory.find(key)
    match = _COUNT.search(found.memory.text) if found else None
    return int(match[1]) if match else 0


def _edit(place: Path, number: int, pipe: Pipe) -> None:
    """Count up in files of its own, each time with something in it that a dream rewrites."""
    random = Random()
    with _opened(place) as project, MemoryDir(project) as memory:
        while True:
            for at in range(FILES):
                key = f"e{number}-{at}.md"
                found = memory.find(key)
                count = _read_count(memory, key) + 1
                # Its own name in it: two that say the same would rightly become one.
                said = f"- The file {key} was said yesterday.\n"
                body = f"Count {count}. It is the count of {key}.\n{said}{said}"
                text = write_memory(f"e{number}-{at}", "a count", "project", body)
                try:
                    memory.commit(
                        [Write(key, text, found.sha256 if found else None)], Origin(who="user", why="counts")
                    )
                except MemoryConflict:
                    continue  # a dream was faster: read it again
                pipe.tell(f"edited {key} {count}")
            # Long enough at times that a dream finds something that nobody edits meanwhile.
            time.sleep(random.choice((0.0, 0.02, 0.6)))


def _dream(place: Path, pipe: Pipe) -> None:
    with _opened(place) as project, MemoryDir(project) as memory:
        dreamer = Dreamer(project, memory, DreamSettings(keep_records=3), locks=LOCKS)
        while True:
            with suppress(LockError):
                pipe.tell(f"dreamt {asyncio.run(dreamer.dream()).record.outcome}")
            time.sleep(timedelta(milliseconds=20).total_seconds())
