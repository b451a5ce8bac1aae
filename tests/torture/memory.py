"""Rig: memories struck at every operation, cut off the power, and changed by sixteen processes at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random

from sevenfold.core.errors import MemoryConflict
from sevenfold.core.events import ignore_event
from sevenfold.core.memories import INDEX_FILE, Origin, write_memory
from sevenfold.store.files.disk import SYSTEM_DISK
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MEMORY_FOLDER, MemoryDir
from sevenfold.store.memory.files import MemoryLog
from sevenfold.store.memory.records import LoggedTransaction
from sevenfold.store.project.project import Project
from tests.torture.crew import Crew
from tests.torture.cuts import run_cuts
from tests.torture.faults import run_faults
from tests.torture.play_memory import NOWHERE, CutMemories, Memories, Opened
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.workers import Pipe

WRITERS = 16
TOPICS = 150
KEPT_MARKS = 20
"""A text keeps this many of the marks that writers left in it, so that it does not grow without end."""

_MARK = re.compile(r"w\d+\.\d+")


def run_memory(orders: Orders) -> list[Outcome]:
    points = orders.pick(tiny=60, short=150, long=4_000)
    faults = run_faults(orders, (Memories,), points=points)
    cuts = run_cuts(orders, (CutMemories,))
    for line in (*faults, *cuts):
        line.name = f"memory, {line.name}"
    return [*faults, *cuts, *run_crowd(orders)]


def run_crowd(orders: Orders, topics: int = TOPICS) -> list[Outcome]:
    """Everybody changes every memory, some are killed: no change may be lost, and the index is complete."""
    total = orders.pick(tiny=160, short=480, long=100_000)
    kills = orders.pick(tiny=4, short=8, long=32)
    with outcome("memory, crowd", "acknowledged writes") as found, orders.scratch("crowd") as place:
        Opened(place, SYSTEM_DISK).close()
        told = _crowd(orders, place, total, kills, topics)
        found.count = len(told)
        for wrong in _judge_crowd(place, told):
            found.wrong(wrong)
        found.notes.append(f"{WRITERS} processes, {topics} memories, {kills} of the processes killed")
    return [found]


def _crowd(orders: Orders, place: Path, total: int, kills: int, topics: int) -> list[str]:
    random, told, born = orders.random("crowd"), list[str](), 0
    with closing(Pipe()) as pipe, Crew() as crew:
        while len(told) < total:
            while len(crew.pids) < WRITERS:
                crew.start(lambda who=born: _write(place, who, pipe, topics))
                born += 1
            told += pipe.listen(random.uniform(0.05, 0.5))
            orders.progress("memory, crowd", len(told), total, "writes")
            if any(ended.code for ended in crew.ended()):
                raise AssertionError("a writer ended with an error; see its traceback above")
            if born - WRITERS < kills and len(told) > total * (born - WRITERS) // max(1, kills):
                crew.kill(random.choice(crew.pids))
        for pid in crew.pids:
            crew.kill(pid)
        told += pipe.listen(0)
    return told


def _write(place: Path, who: int, pipe: Pipe, topics: int) -> None:
    random, count = Random(who), 0
    with closing(Opened(place, SYSTEM_DISK)) as opened:
        while True:
            mark = f"w{who}.{count}"
            _leave_mark(opened.memory, f"topic-{random.randrange(topics)}.md", mark)
            pipe.tell(mark)
            count += 1


def _leave_mark(memory: MemoryDir, key: str, mark: str) -> None:
    while True:
        stored = memory.find(key)
        text = _marked(key, stored.memory.text if stored else "", mark)
        with suppress(MemoryConflict):
            memory.commit(
                [Write(key, text, stored.sha256 if stored else None)], Origin(who="agent", why=mark)
            )
            return


def _judge_crowd(place: Path, told: list[str]) -> Iterator[str]:
    with closing(Opened(place, SYSTEM_DISK)) as opened:
        memory = opened.memory
        last, left = dict[str, str](), Counter[str]()
        for key, mark, text in _read_changes(place):
            left[mark] += 1
            if text != _marked(key, last.get(key, ""), mark):
                yield f"{mark} went over a change of {key} that it had not seen"
            last[key] = text
        lost = [mark for mark in told if left[mark] != 1]
        if lost:
            yield f"{len(lost):,} acknowledged changes are not in the history exactly once: {lost[:5]}"
        if waiting := memory.waiting():
            yield f"work of our own waits as somebody else's: {waiting[0]}"
        shown = {stored.memory.key: stored.memory.text for stored in memory.scan(limit=None)}
        if shown != last:
            yield "what is shown is not what was last written"
        if shown != {key: (memory.path / key).read_text() for key in shown}:
            yield "the folder is not what is shown"
        index = (memory.path / INDEX_FILE).read_text()
        missing = [key for key in last if f"]({key})" not in index]
        if missing or len(index.splitlines()) != len(last):
            yield f"the index misses {missing[:5]}, or has lines too many"


def _read_changes(place: Path) -> Iterator[tuple[str, str, str]]:
    """Key, mark and text of every change, in order."""
    with (
        Project.open(NOWHERE, home=place / "home") as project,
        project.control.subfolder(MEMORY_FOLDER) as folder,
    ):
        for found in MemoryLog(folder, ignore_event).read():
            if isinstance(found.entry, LoggedTransaction) and found.entry.kind == "commit":
                for change in found.entry.changes:
                    yield change.key, found.entry.origin.why, change.text or ""


def _marked(key: str, before: str, mark: str) -> str:
    """A text with one mark more."""
    marks = [*_MARK.findall(before), mark][-KEPT_MARKS:]
    return write_memory(key.removesuffix(".md"), "many hands", "project", "\n".join(marks))
