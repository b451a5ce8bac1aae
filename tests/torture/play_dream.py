"""Scenario: a dream merges, rewrites and puts aside memories, and somebody edits one of them meanwhile."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import ClassVar

from sevenfold.core.clock import Clock, ManualClock
from sevenfold.core.events import DreamStarted, Emit, Event, ignore_event
from sevenfold.core.memories import Origin, write_memory
from sevenfold.layers.dreams.dreamer import Dreamer
from sevenfold.layers.dreams.inputs import read_dream_inputs
from sevenfold.layers.dreams.merge import plan_merge
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.store.files.disk import Disk
from sevenfold.store.files.locks import DEFAULT_LEASE
from sevenfold.store.memory.changes import ANYTHING, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project
from tests.torture.stage import QUICK_DISK, Seen, Stage

EDITED = "c.md"
Texts = dict[str, str]


def text_of(name: str, body: str) -> str:
    return write_memory(name, f"on {name}", "project", body)


def opened(root: Path, disk: Disk, clock: Clock) -> Project:
    return Project.open(root / "repo", home=root / "home", disk=disk, clock=clock)


def texts_of(memory: MemoryDir) -> Texts:
    keys = (*memory.keys(), *memory.keys("archive/"))
    return {key: memory.read(key).memory.text for key in keys}


HAND = Origin(who="user", why="by hand")
BY_HAND = text_of("c", "Somebody said yesterday that it is so.")


def edit(memory: MemoryDir) -> None:
    memory.commit([Write(EDITED, BY_HAND, ANYTHING)], HAND)


class Dreams:
    """Seeds differ in what there is to do, and every other one has somebody edit a memory in between."""

    name: ClassVar = "dream"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.is_edited = seed % 2 == 1

    def prepare(self, root: Path) -> None:
        (root / "repo").mkdir(parents=True)
        clock = ManualClock()
        clock.step_wall(-timedelta(days=500))
        with opened(root, QUICK_DISK, clock) as project, MemoryDir(project, clock=clock) as memory:
            memory.commit([Write("old.md", text_of("old", "The wiki is at wiki.test."), None)], HAND)
            clock.step_wall(timedelta(days=499))
            for number in range(1 + self.seed % 3):
                body = f"Service {number} is owned by team {number}, and Ann knows it well."
                for name in (f"s{number}", f"s{number}-2"):
                    memory.commit([Write(f"{name}.md", text_of(name, body), None)], HAND)
            memory.commit([Write(EDITED, text_of("c", "We moved yesterday."), None)], HAND)

    def run(self, stage: Stage) -> None:
        project = stage.get("project", lambda: opened(stage.root, stage.disk, stage.clock))
        memory = project and stage.get("memory", lambda: MemoryDir(project, clock=stage.clock))
        if project is None or memory is None:
            return

        def meanwhile(event: Event) -> None:
            if self.is_edited and isinstance(event, DreamStarted):
                stage.attempt("edit", lambda: edit(memory))

        dreamer = stage.get("dreamer", lambda: dreamer_of(project, memory, stage.clock, meanwhile))
        if dreamer is not None:
            stage.attempt("dream", lambda: asyncio.run(dreamer.dream()).record.outcome)

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        expected, clock = expect(self.seed), ManualClock()
        # As soon as the lease of whoever died has lapsed, and no later.
        clock.pass_time(DEFAULT_LEASE + timedelta(seconds=1))
        with opened(root, QUICK_DISK, clock) as project, MemoryDir(project, clock=clock) as memory:
            found = texts_of(memory)
            state = expected.name(found, is_edited=_is_edited(found))
            if "edit" in seen.done and not _is_edited(found):
                yield "the edit that was made meanwhile is lost"
            if state is None:
                yield f"neither wholly old nor wholly new: {sorted(found)}"
            if seen.done.get("dream") == "completed" and state != "new":
                yield "the dream was acknowledged, and nothing of it is there"
            yield from _judge_files(project, memory, found)
            dreamer = dreamer_of(project, memory, clock)
            if dreamer.lock.read_state().last_success is not None and state != "new":
                yield "a dream counts that published nothing"
            yield from self._judge_undo(memory, state, expected)
            dreamer.records.list()
            again = asyncio.run(dreamer.dream())
            if again.record.outcome not in ("completed", "unchanged"):
                yield f"the next dream {again.record.outcome}: {again.record.reason}"
            dreamer.close()

    def _judge_undo(self, memory: MemoryDir, state: str | None, expected: Expected) -> Iterator[str]:
        dreams = [entry for entry in memory.log() if entry.origin.who == "dream"]
        if (state == "new") != bool(dreams):
            yield f"the memories are {state}, and the history has {len(dreams)} dreams"
        if dreams:
            before = _is_edited(texts_of(memory))
            memory.revert(dreams[0].id)
            if expected.name(texts_of(memory), is_edited=before) != "old":
                yield "undo did not restore every byte"


class Expected:
    """The memories before and after a dream that nothing disturbs, with and without the edit."""

    def __init__(self, old: Texts, new: Texts) -> None:
        edited = {EDITED: BY_HAND}
        self._states = {
            False: {"old": old, "new": new},
            True: {"old": old | edited, "new": new | edited},
        }

    def name(self, found: Texts, *, is_edited: bool) -> str | None:
        states = self._states[is_edited].items()
        return next((name for name, texts in states if texts == found), None)


@cache
def expect(seed: int) -> Expected:
    """What a dream makes of the memories of a seed; nothing is committed to find out."""
    place = Path(tempfile.mkdtemp(prefix="sevenfold-expected-"))
    clock = ManualClock()
    try:
        Dreams(seed).prepare(place)
        with opened(place, QUICK_DISK, clock) as project, MemoryDir(project, clock=clock) as memory:
            source = read_dream_inputs(project, memory, {}, clock.now(), DreamSettings())
            new = plan_merge(source.kept, source.uses, clock.now(), DreamSettings()).texts
            return Expected(texts_of(memory), {**new})
    finally:
        shutil.rmtree(place, ignore_errors=True)


def dreamer_of(project: Project, memory: MemoryDir, clock: Clock, emit: Emit = ignore_event) -> Dreamer:
    return Dreamer(project, memory, DreamSettings(), clock=clock, emit=emit)


def _is_edited(found: Texts) -> bool:
    return found.get(EDITED) == BY_HAND


def _judge_files(project: Project, memory: MemoryDir, found: Texts) -> Iterator[str]:
    """The folder shows what is accepted, and the index has a line for each and for no other."""
    folder = Path(project.memory.path)
    there = {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.md")
        if path.name != "MEMORY.md"
    }
    if there != found:
        yield f"the folder holds {sorted(there)} and the history {sorted(found)}, or their texts differ"
    index = memory.index_text().text
    for key in {*found, *there}:
        if (f"({key})" in index) != (not key.startswith("archive/")):
            yield f"the index is wrong about {key}"
