"""Rigs: a dead holder's lock that many see at once, and sixteen processes that edit one file."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from random import Random

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import LockBusy
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import Lock, edit_file
from tests.torture.crew import Crew
from tests.torture.leases import run_leases
from tests.torture.naive import add_line, take_by_pid
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.workers import Pipe

EDITORS = 16
RIVALS = 2
"""As many as can be awake at the same moment on a small machine."""
FILE = "MEMORY.md"
MAX_BYTES = 10_000_000
_ALIGN_SECONDS = 0.015
_APART_SECONDS = 0.0002
"""Nobody is ever exactly on time; two that were would overwrite each other and one would notice."""
_NO_PID = 2**22
"""Above what the kernel hands out: a process that is certainly dead."""

Take = Callable[[Path, int], bool]
"""Try to take the lock of a round; whether it was had."""
Edit = Callable[[Path, str], None]


def run_lock(orders: Orders) -> list[Outcome]:
    return [*run_leases(orders), *run_rounds(orders), *run_edits(orders)]


def take_ours(place: Path, turn: int) -> bool:
    with Folder.open(place / "control") as control, suppress(LockBusy):
        Lock(control, f"round-{turn}").acquire()
        return True
    return False


def take_naively(place: Path, turn: int) -> bool:
    return take_by_pid(place / f"round-{turn}.pid")


def run_rounds(orders: Orders) -> list[Outcome]:
    """Rivals that find a dead holder's lock at the same moment: one may win."""
    turns = orders.pick(tiny=20, short=60, long=500)
    with outcome("lock, aligned", "rounds") as found, orders.scratch("rounds") as place:
        wins = _aligned(place / "ours", turns, take_ours)
        naive = _aligned(place / "naive", turns, take_naively)
        found.count = turns
        for turn in range(turns):
            if wins[turn] > 1:
                found.wrong(f"{wins[turn]} of {RIVALS} took a dead holder's lock in round {turn}")
            elif not wins[turn]:
                found.wrong(f"nobody could take a dead holder's lock in round {turn}")
        found.notes.append(
            f"two or more holders: ours {_doubles(wins)} of {turns}, "
            f"write-PID-then-verify {_doubles(naive)} of {turns}"
        )
    return [found]


def _doubles(wins: Counter[int]) -> int:
    return sum(1 for count in wins.values() if count > 1)


def _aligned(place: Path, turns: int, take: Take) -> Counter[int]:
    """How many had the lock in each round."""
    (place / "control").mkdir(parents=True)
    wins: Counter[int] = Counter()
    with closing(Pipe()) as pipe, Crew() as crew, Folder.open(place / "control") as control:
        for turn in range(turns):
            # Taken an instant after the machine was started, and never renewed.
            Lock(control, f"round-{turn}", clock=ManualClock(up=timedelta(0))).acquire()
            (place / f"round-{turn}.pid").write_text(str(_NO_PID))
        start = time.monotonic() + 0.1
        for rival in range(RIVALS):
            crew.start(lambda rival=rival: _rival(place, turns, take, start, pipe, rival))
        while crew.pids:
            wins.update(int(line) for line in pipe.listen(0.05))
            if any(ended.code for ended in crew.ended()):
                raise AssertionError("a rival ended with an error; see its traceback above")
        wins.update(int(line) for line in pipe.listen(0))
    return wins


def _rival(place: Path, turns: int, take: Take, start: float, pipe: Pipe, number: int) -> None:
    random = Random(number)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[number % len(cores)]})  # on one core they would only take turns
    for turn in range(turns):
        # By the clock, so that all ask at about the same moment; the last of it awake: waking takes a while.
        moment = start + turn * _ALIGN_SECONDS + random.uniform(0, _APART_SECONDS)
        time.sleep(max(0.0, moment - 0.002 - time.monotonic()))
        while time.monotonic() < moment:
            pass
        if take(place, turn):
            pipe.tell(str(turn))


def edit_ours(place: Path, line: str) -> None:
    def change(before: bytes | None) -> bytes:
        count, *lines = (before or b"0\n").decode().splitlines()
        return "\n".join([str(int(count) + 1), *lines, line, ""]).encode()

    with Folder.open(place / "control") as control, Folder.open(place) as folder:
        edit_file(folder, FILE, change, control=control, max_bytes=MAX_BYTES)


def edit_naively(place: Path, line: str) -> None:
    add_line(place / FILE, line)


def run_edits(orders: Orders) -> list[Outcome]:
    """Everybody adds lines to one file; some are killed meanwhile. None that was acknowledged may be lost."""
    each = orders.pick(tiny=5, short=15, long=150)
    with outcome("edits", "acknowledged edits") as found:
        with orders.scratch("edits") as place:
            told = _edited(orders.random("edits"), place, each, edit_ours, kills=True)
            lines = (place / FILE).read_text().splitlines()
            for wrong in judge_edits(lines, told):
                found.wrong(wrong)
            found.count = len(told)
        with orders.scratch("edits") as place:
            naive = _edited(
                orders.random("naive edits"), place, orders.pick(5, 5, 25), edit_naively, kills=False
            )
            lost = len(set(naive) - set((place / FILE).read_text().splitlines()))
        lost_ours = len(set(told) - set(lines))
        found.notes.append(
            f"lost: ours {lost_ours:,} of {len(told):,}, "
            f"atomic replace without a mutex {lost:,} of {len(naive):,}"
        )
    return [found]


def _edited(random: Random, place: Path, each: int, edit: Edit, *, kills: bool) -> list[str]:
    """The lines that were acknowledged."""
    (place / "control").mkdir()
    told: list[str] = []
    with closing(Pipe()) as pipe, Crew() as crew:
        for editor in range(EDITORS):
            crew.start(lambda editor=editor: _editor(place, f"e{editor}", each, edit, pipe))
        spare = EDITORS
        while crew.pids:
            told += pipe.listen(random.uniform(0, 0.05))
            crew.ended()
            if kills and crew.pids and spare < 2 * EDITORS:
                crew.kill(random.choice(crew.pids))
                crew.start(lambda spare=spare: _editor(place, f"e{spare}", each, edit, pipe))
                spare += 1
        told += pipe.listen(0)
    return told


def _editor(place: Path, who: str, each: int, edit: Edit, pipe: Pipe) -> None:
    for number in range(each):
        edit(place, f"- {who}.{number} by {os.getpid()}")
        pipe.tell(f"- {who}.{number} by {os.getpid()}")


def judge_edits(found: list[str], told: list[str]) -> Iterator[str]:
    count, *lines = found
    if int(count) != len(lines):
        yield f"the file counts {count} edits and holds {len(lines)}"
    if len(set(lines)) != len(lines):
        yield "a line was added twice"
    yield from (f"line {line!r} was acknowledged and is lost" for line in sorted(set(told) - set(lines)))
