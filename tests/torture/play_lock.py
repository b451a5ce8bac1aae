"""Scenario: the lock over long work is taken, renewed, published and given up, and its PID file with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import ClassVar

from sevenfold.core.clock import Clock
from sevenfold.core.errors import FileMissing, LeaseLost
from sevenfold.core.events import Event, LockRebuilt
from sevenfold.store.files.disk import Disk
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.lock_state import PID_FILE, PidFile, make_pid_stamp
from sevenfold.store.files.locks import DEFAULT_LEASE, Lease, Lock
from tests.torture.stage import QUICK_DISK, Seen, Stage, clock_after

WORK = "work.md"
_ALWAYS_ALIVE = 1


def open_memory(root: Path, disk: Disk) -> Folder:
    return Folder.open(root / "memory", disk=disk, own=frozenset([PID_FILE]))


class Leases:
    name: ClassVar = "lock"

    def __init__(self, seed: int) -> None:
        random = Random(f"lock {seed}")
        self.has_pid_file = seed % 3 != 2
        self.endings = [random.choice(("publish", "publish", "give up", "lapse")) for _ in range(3)]

    def prepare(self, root: Path) -> None:
        (root / "memory").mkdir(parents=True)
        (root / "control").mkdir()

    def run(self, stage: Stage) -> None:
        memory = stage.get("memory", lambda: open_memory(stage.root, stage.disk))
        control = stage.get("control", lambda: Folder.open(stage.root / "control", disk=stage.disk))
        if memory is None or control is None:
            return
        lock = self._lock(memory, control, stage.clock, [])
        for turn, ending in enumerate(self.endings):
            lease = self._acquire(stage, lock, turn)
            if lease:
                stage.clock.pass_time(timedelta(seconds=10))
                stage.attempt(f"renew {turn}", lease.renew)
                stage.clock.pass_time(timedelta(seconds=10))
                self._end(stage, memory, lease, ending)
            stage.clock.pass_time(timedelta(seconds=10))

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        events: list[Event] = []
        clock = clock_after(hours=3)
        memory, control = open_memory(root, QUICK_DISK), Folder.open(root / "control", disk=QUICK_DISK)
        with memory, control:
            lock = self._lock(memory, control, clock, events)
            tokens = [int(told) for step, told in seen.done.items() if step.startswith("acquire")]
            state = lock.read_state()
            if state.token < max(tokens, default=0):
                yield f"the token went back from {max(tokens)} to {state.token}"
            yield from self._judge_success(state.last_success, seen)
            yield from self._judge_work(memory, seen)
            lease = lock.acquire()
            if lease.token <= max([state.token, *tokens]):
                yield f"token {lease.token} was handed out before"
            yield from self._judge_stale(lock, tokens)
            lease.publish(lambda: memory.replace(WORK, b"afterwards"))
            if lock.read_state().last_success != clock.now():
                yield "a success after recovery is not recorded"
            if self.has_pid_file and PidFile(memory).read() != make_pid_stamp(clock.now()):
                yield "the PID file does not show the success"
        if any(isinstance(event, LockRebuilt) for event in events):
            yield "the lock's record was torn and had to be rebuilt"

    def _acquire(self, stage: Stage, lock: Lock, turn: int) -> Lease | None:
        found: list[Lease] = []

        def act() -> str:
            found.append(lock.acquire())
            return str(found[0].token)

        if not stage.attempt(f"acquire {turn}", act):
            # What was refused may have happened all the same; then it lapses like any other.
            stage.clock.pass_time(DEFAULT_LEASE + timedelta(seconds=1))
            stage.attempt(f"acquire {turn} again", act)
        return found[0] if found else None

    def _end(self, stage: Stage, memory: Folder, lease: Lease, ending: str) -> None:
        now = stage.clock.now().isoformat()
        if ending == "lapse":
            stage.clock.pass_time(DEFAULT_LEASE + timedelta(seconds=1))
        elif ending == "give up" or not stage.attempt(
            f"publish {lease.token} {now}",
            lambda: lease.publish(lambda: memory.replace(WORK, f"token {lease.token}".encode())),
        ):
            stage.attempt(f"give up {lease.token}", lease.release)
        # One that could not be given up lapses.
        stage.clock.pass_time(DEFAULT_LEASE + timedelta(seconds=1))

    def _judge_success(self, found: datetime | None, seen: Seen) -> Iterator[str]:
        begun = [datetime.fromisoformat(step.split()[2]) for step in seen.begun if step.startswith("publish")]
        done = [datetime.fromisoformat(step.split()[2]) for step in seen.done if step.startswith("publish")]
        if found is not None and found not in begun:
            yield f"a success at {found} is recorded, but nothing was published then"
        if done and (found is None or found < max(done)):
            yield f"the success of {max(done)} was acknowledged, and {found} is recorded"

    def _judge_work(self, memory: Folder, seen: Seen) -> Iterator[str]:
        found = b""
        with suppress(FileMissing):
            found = memory.read(WORK, max_bytes=100)
        begun = [f"token {step.split()[1]}".encode() for step in seen.begun if step.startswith("publish")]
        done = [f"token {step.split()[1]}".encode() for step in seen.done if step.startswith("publish")]
        allowed = begun[begun.index(done[-1]) :] if done else [b"", *begun]
        if found not in allowed:
            yield f"the published work is {found!r}; expected one of {allowed}"

    def _judge_stale(self, lock: Lock, tokens: list[int]) -> Iterator[str]:
        for token in tokens:
            written: list[int] = []
            with suppress(LeaseLost):
                lock.publish(token, lambda token=token, written=written: written.append(token))
            if written:
                yield f"stale token {token} could publish"

    def _lock(self, memory: Folder, control: Folder, clock: Clock, events: list[Event]) -> Lock:
        pid_file = PidFile(memory) if self.has_pid_file else None
        return Lock(control, "dream", clock=clock, emit=events.append, pid_file=pid_file)


class Foreign:
    """Another program holds the PID file: nobody may take the lock, whatever the disk does meanwhile."""

    name: ClassVar = "lock, foreign"

    def __init__(self, seed: int) -> None:
        self.held = make_pid_stamp(clock_after(hours=-0.1 * (seed % 5)).now())

    def prepare(self, root: Path) -> None:
        (root / "memory").mkdir(parents=True)
        (root / "control").mkdir()
        pid_file = root / "memory" / PID_FILE
        pid_file.write_text(str(_ALWAYS_ALIVE))
        os.utime(pid_file, ns=(self.held.modified_ns, self.held.modified_ns))

    def run(self, stage: Stage) -> None:
        memory = stage.get("memory", lambda: open_memory(stage.root, stage.disk))
        control = stage.get("control", lambda: Folder.open(stage.root / "control", disk=stage.disk))
        if memory is None or control is None:
            return
        lock = Lock(control, "dream", clock=stage.clock, pid_file=PidFile(memory))
        for turn in range(3):
            stage.attempt(f"acquire {turn}", lock.acquire)

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        yield from (
            f"{step} went well though another program holds it" for step in seen.done if "acquire" in step
        )
        with (
            open_memory(root, QUICK_DISK) as memory,
            Folder.open(root / "control", disk=QUICK_DISK) as control,
        ):
            pid_file = PidFile(memory).read()
            if pid_file is None or (pid_file.pid, pid_file.modified_ns) != (
                _ALWAYS_ALIVE,
                self.held.modified_ns,
            ):
                yield f"the other program's mark is now {pid_file}"
            lock = Lock(control, "dream", clock=clock_after(hours=1.5), pid_file=PidFile(memory))
            if lock.read_state().last_success is None:
                yield "the other program's success does not count"
            lock.acquire().publish(lambda: None)
