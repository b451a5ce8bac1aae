"""Rig: sixteen processes fight over one lock while they are stopped, resumed and killed at random."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import LeaseLost, LockBusy
from sevenfold.store.files.disk import SYSTEM_DISK
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.lock_state import PidFile
from sevenfold.store.files.locks import Lease, Lock
from tests.torture.crew import Crew
from tests.torture.play_lock import open_memory
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.workers import Pipe

PROCESSES = 16
LEASE = timedelta(milliseconds=100)
STUCK_SECONDS = 20


class Log:
    """What happened inside commits, in one order for all processes: single appends to one file."""

    def __init__(self, place: Path) -> None:
        self._fd = os.open(place / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, *words: object) -> None:
        os.write(self._fd, (" ".join(str(word) for word in words) + "\n").encode())


@dataclass(slots=True)
class WatchedClock:
    """The system's clock, which logs the time it tells next after a commit: the only times of success."""

    log: Log
    committed: bool = False
    system: SystemClock = field(default_factory=SystemClock)

    def now(self) -> datetime:
        now = self.system.now()
        if self.committed:
            self.committed = False
            self.log.write("success", now.isoformat())
        return now

    def uptime(self) -> timedelta:
        return self.system.uptime()


def contend(place: Path, who: str, pipe: Pipe) -> None:
    """Take the lock, work, renew, publish or give up, for ever."""
    random = Random(who)
    log = Log(place)
    clock = WatchedClock(log)
    with Folder.open(place / "control") as control, open_memory(place, SYSTEM_DISK) as memory:
        lock = Lock(control, "dream", clock=clock, lease=LEASE, pid_file=PidFile(memory))
        while True:
            with suppress(LockBusy):
                lease = lock.acquire()
                pipe.tell(f"acquired {os.getpid()} {lease.token}")
                try:
                    _work(lease, random, _Commit(place=place, log=log, clock=clock, who=who, random=random))
                    pipe.tell("ended")
                except LeaseLost:
                    pipe.tell("fenced")
            time.sleep(random.uniform(0.001, 0.02))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commit:
    """What a holder does while nobody may take over."""

    place: Path
    log: Log
    clock: WatchedClock
    who: str
    random: Random

    def run(self, token: int) -> None:
        self._enter(token)
        self.log.write("in", token, self.who, time.monotonic_ns())
        time.sleep(self.random.uniform(0, 0.004))
        self.log.write("out", token, self.who, time.monotonic_ns())
        (self.place / "inside").unlink()
        self.clock.committed = True

    def _enter(self, token: int) -> None:
        """Leave a mark that only one can leave. One that a killed process left behind is removed."""
        while True:
            try:
                fd = os.open(self.place / "inside", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                if _outlives(self.place / "inside"):
                    self.log.write("double", token, self.who)
                    return
            else:
                os.write(fd, str(os.getpid()).encode())
                os.close(fd)
                return


def _outlives(mark: Path) -> bool:
    """Whether whoever left the mark is still there: a killed process may take a moment to be gone."""
    until = time.monotonic() + 2
    while time.monotonic() < until:
        try:
            pid = mark.read_text()
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] if pid else "Z"
        except OSError:
            state = "Z" if mark.exists() else "gone"
        if state in "ZX":
            mark.unlink(missing_ok=True)
            return False
        if state == "gone":
            return True
        time.sleep(0.001)
    return True


def _work(lease: Lease, random: Random, commit: _Commit) -> None:
    for _ in range(random.randrange(2)):
        time.sleep(random.uniform(0, 0.1) * LEASE.total_seconds())
        lease.renew()
    if random.random() < 0.02:
        time.sleep(1.2 * LEASE.total_seconds())  # slower than it promised: somebody else takes over
    if random.random() < 0.1:
        lease.release()
    else:
        lease.publish(lambda: commit.run(lease.token))


@dataclass(slots=True, kw_only=True)
class _Fight:
    """The one who stops, resumes and kills, and hears what the processes tell."""

    place: Path
    random: Random
    pipe: Pipe
    crew: Crew
    acquires: int = 0
    fenced: int = 0
    stops: int = 0
    kills: int = 0
    born: int = 0
    holder: int = 0
    killed: set[str] = field(default_factory=set[str])
    names: dict[int, str] = field(default_factory=dict[int, str])
    stopped: dict[int, float] = field(default_factory=dict[int, float])
    successes: set[str] = field(default_factory=set[str])
    heard: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        self.born += 1
        who = f"p{self.born}"
        self.names[self.crew.start(lambda: contend(self.place, who, self.pipe))] = who

    def listen(self, seconds: float) -> None:
        for line in self.pipe.listen(seconds):
            verb, *rest = line.split()
            self.heard = time.monotonic()
            self.fenced += verb == "fenced"
            if verb == "acquired":
                self.acquires += 1
                self.holder = int(rest[0])

    def strike(self) -> None:
        """Stop or kill somebody, half of the time whoever took the lock last."""
        awake = [pid for pid in self.crew.pids if pid not in self.stopped]
        if not awake:
            return
        victim = (
            self.holder if self.holder in awake and self.random.random() < 0.5 else self.random.choice(awake)
        )
        if self.random.random() < 0.3:
            self.kill(victim)
        elif self.crew.stop(victim):
            self.stops += 1
            self.stopped[victim] = time.monotonic() + self.random.uniform(0, 2.5) * LEASE.total_seconds()

    def kill(self, victim: int) -> None:
        self.kills += 1
        self.killed.add(self.names[victim])
        self.crew.kill(victim)
        self.start()

    def resume(self) -> None:
        for pid in [pid for pid, until in self.stopped.items() if until <= time.monotonic()]:
            del self.stopped[pid]
            self.crew.go_on(pid)

    def sample(self, lock: Lock) -> None:
        success = lock.read_state().last_success
        if success:
            self.successes.add(success.isoformat())


def run_leases(orders: Orders) -> list[Outcome]:
    wanted = orders.pick(tiny=60, short=250, long=10_000)
    events = orders.pick(tiny=12, short=40, long=1_000)
    with outcome("lock", "acquires") as found, orders.scratch("lock") as place:
        (place / "control").mkdir()
        (place / "memory").mkdir()
        with closing(Pipe()) as pipe, Crew() as crew:
            fight = _Fight(place=place, random=orders.random("lock"), pipe=pipe, crew=crew)
            for _ in range(PROCESSES):
                fight.start()
            with Folder.open(place / "control") as control, open_memory(place, SYSTEM_DISK) as memory:
                lock = Lock(control, "dream", lease=LEASE, pid_file=PidFile(memory))
                _fight(orders, found, fight, lock, wanted, events)
        for wrong in judge_log((place / "log").read_text().splitlines(), fight.killed, fight.successes):
            found.wrong(wrong)
        found.count = fight.acquires
        found.notes.append(
            f"{fight.stops:,} stops, {fight.kills:,} kills, {fight.fenced:,} late holders fenced off, "
            f"{len(fight.successes):,} recorded successes looked at"
        )
    return [found]


def _fight(orders: Orders, found: Outcome, fight: _Fight, lock: Lock, wanted: int, events: int) -> None:
    pace = wanted / events
    while fight.acquires < wanted or fight.stops + fight.kills < events:
        fight.listen(fight.random.uniform(0, 0.03))
        fight.resume()
        # No faster than it takes to show both figures: a lock that is always broken is never taken.
        if (fight.stops + fight.kills) * pace <= fight.acquires:
            fight.strike()
        fight.sample(lock)
        for ended in fight.crew.ended():
            found.wrong(f"a process ended by itself with {ended.code}; see its traceback above")
            fight.start()
        if time.monotonic() - fight.heard > STUCK_SECONDS:
            found.wrong(f"nobody could take the lock for {STUCK_SECONDS} s")
            return
        orders.progress("lock", fight.acquires, wanted, "acquires")


@dataclass(frozen=True, slots=True)
class _Inside:
    token: int
    who: str


def judge_log(log: list[str], killed: set[str], successes: set[str]) -> Iterator[str]:
    """Tokens only grow, nobody is inside with another, and a success is recorded for a commit alone."""
    inside: _Inside | None = None
    last = 0
    times: set[str] = set()
    for verb, *rest in (line.split() for line in log):
        if verb == "success":
            times.add(rest[0])
            continue
        now = _Inside(int(rest[0]), rest[1])
        if verb == "double":
            yield f"{now} met somebody alive inside"
        elif verb == "in":
            if inside and inside.who not in killed:
                yield f"{now} came in while {inside} was inside"
            if now.token <= last:
                yield f"{now} published after token {last}: a stale publish"
            inside, last = now, now.token
        else:
            if inside != now:
                yield f"{now} came out, but {inside} was inside"
            inside = None
    for success in sorted(successes - times):
        yield f"a success at {success} is recorded, but nothing was committed then"
