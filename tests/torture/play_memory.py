"""Scenario: memories are written together, proposed, accepted, taken back and erased."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import ClassVar
from unittest.mock import patch

from sevenfold.core.errors import InputError
from sevenfold.core.events import Emit, Event, MemoryEdited, MemoryLagged, ignore_event
from sevenfold.core.memories import INDEX_FILE, Origin, write_memory
from sevenfold.store.files.disk import Disk
from sevenfold.store.memory.changes import ANYTHING, Remove, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project
from tests.torture.stage import QUICK_DISK, Seen, Stage

OWN = "# What I keep in mind\n"
NOWHERE = Path("/nowhere at all/repo")
"""An identity comes from the path alone, and must not change with where this is played."""
SECRET = "the first session's secret"
SAID = Origin(who="user", why="asked to", said_by="user")
FIRST = Origin(who="fork", why="extracted", session="first")
World = frozenset[tuple[str, str]]
Step = Callable[[MemoryDir], object]
After = Callable[[dict[str, str]], dict[str, str]]


class Opened:
    """A project's memories, closed together with it."""

    def __init__(self, root: Path, disk: Disk, emit: Emit = ignore_event) -> None:
        with ExitStack() as undo:
            project = undo.enter_context(Project.open(NOWHERE, home=root / "home", disk=disk))
            self.memory = undo.enter_context(MemoryDir(project, emit=emit))
            self._exits = undo.pop_all()

    def close(self) -> None:
        self._exits.close()


class Memories:
    """Seeds differ in what is written, and in how much of it."""

    name: ClassVar = "memory"

    def __init__(self, seed: int) -> None:
        random = Random(f"memory {seed}")
        self.texts = [
            write_memory(f"{n}", "on this and that", "project", f"{n} " * random.choice((1, 40, 3_000)))
            for n in range(6)
        ]
        self.secret = write_memory("secret", SECRET, "user", SECRET)

    def prepare(self, root: Path) -> None:
        root.mkdir()
        opened = Opened(root, QUICK_DISK)
        opened.memory.commit([Write("a.md", self.texts[0], None), Write("b.md", self.texts[1], None)], SAID)
        index = opened.memory.path / INDEX_FILE
        index.write_text(OWN + index.read_text())
        [waiting] = opened.memory.notice()
        opened.memory.accept(waiting.id)
        opened.close()

    def run(self, stage: Stage) -> None:
        opened = stage.get("open", lambda: Opened(stage.root, stage.disk))
        if opened is None:
            return
        for name, (act, _) in self.steps().items():
            stage.insist(name, lambda act=act: _done(act(opened.memory)))

    def steps(self) -> dict[str, tuple[Step, After]]:
        """What is done, one after the other, and what it makes of the memories."""
        one, two, three = self.texts[2:5]
        return {
            "commit": (
                lambda memory: memory.commit(
                    [Write("a.md", one, ANYTHING), Write("sub/c.md", two, ANYTHING)], SAID
                ),
                lambda world: world | {"a.md": one, "sub/c.md": two},
            ),
            "secret": (
                lambda memory: memory.commit(
                    [Write("s.md", self.secret, ANYTHING), Write("b.md", self.secret, ANYTHING)], FIRST
                ),
                lambda world: world | {"s.md": self.secret, "b.md": self.secret},
            ),
            "accept": (
                lambda memory: _accept(memory, Write("d.md", three, ANYTHING)),
                lambda world: world | {"d.md": three},
            ),
            "remove": (
                lambda memory: _remove(memory, "a.md"),
                lambda world: {key: text for key, text in world.items() if key != "a.md"},
            ),
            "revert": (
                lambda memory: _bring_back(memory, "a.md"),
                # What was removed comes back: the first text, where the commit before never happened.
                lambda world: world | {"a.md": one if "sub/c.md" in world else self.texts[0]},
            ),
            "write": (
                lambda memory: memory.commit([Write("u.md", two, ANYTHING)], SAID),
                lambda world: world | {"u.md": two},
            ),
            "undo": (
                lambda memory: memory.undo() if memory.find("u.md") else memory.commit([], SAID),
                lambda world: {key: text for key, text in world.items() if key != "u.md"},
            ),
            "redo": (
                lambda memory: _redo(memory, Write("u.md", two, None)),
                lambda world: world | {"u.md": two},
            ),
            "purge": (
                lambda memory: memory.purge(session="first"),
                lambda world: (
                    {key: text for key, text in world.items() if key != "s.md"} | {"b.md": self.texts[1]}
                ),
            ),
        }

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        events: list[Event] = []
        opened = Opened(root, QUICK_DISK, events.append)
        try:
            yield from self._judge(opened.memory, seen)
        finally:
            opened.close()
        for event in events:
            if isinstance(event, MemoryEdited | MemoryLagged):
                yield f"work of our own was taken for somebody else's, or is stuck: {event}"
        if "purge" in seen.done and (left := _holding(root, SECRET)):
            yield f"what was purged is still in {left}"

    def _judge(self, memory: MemoryDir, seen: Seen) -> Iterator[str]:
        found = self._world(memory)
        worlds = self._worlds(seen)
        if found not in worlds:
            yield f"the memories are in a state that nobody made: {[(key, text[:60]) for key, text in found]}"
        yield from self._judge_folder(memory)
        told = {item.id for item in memory.log(limit=None)}
        lost = [name for name, id_ in seen.done.items() if id_ and id_ not in told and name != "purge"]
        if lost:
            yield f"acknowledged transactions are not in the history: {lost}"
        memory.commit([Write("next.md", self.texts[5], ANYTHING)], SAID)
        if self._world(memory) != found | {("next.md", self.texts[5])}:
            yield "a memory written after recovery changed another one, or is not there"
        yield from self._judge_folder(memory)

    def _worlds(self, seen: Seen) -> set[World]:
        """Every state that the steps allow: one that was not acknowledged happened whole or not at all."""
        worlds: set[World] = {frozenset({"a.md": self.texts[0], "b.md": self.texts[1]}.items())}
        for name, (_, after) in self.steps().items():
            if name in seen.begun:
                done = {frozenset(after(dict(world)).items()) for world in worlds}
                worlds = done if name in seen.done else worlds | done
        return worlds

    def _world(self, memory: MemoryDir) -> World:
        return frozenset((stored.memory.key, stored.memory.text) for stored in memory.scan(limit=None))

    def _judge_folder(self, memory: MemoryDir) -> Iterator[str]:
        """The files in the folder say what the product says, and the index has them all."""
        files = {
            path.relative_to(memory.path).as_posix(): path.read_text("utf-8")
            for path in memory.path.rglob("*.md")
        }
        index = files.pop(INDEX_FILE, "")
        if files != dict(self._world(memory)):
            yield f"the folder holds something else than is shown: {sorted(files)}"
        if index != memory.index_text().text or not index.startswith(OWN):
            yield f"the index is not the one that is shown, or a person's own line is gone: {index[:80]!r}"
        named = {key for key in (*memory.keys(), "s.md") if f"]({key})" in index}
        if named != set(memory.keys()):
            yield f"the index names {sorted(named)}, and there are {memory.keys()}"


class CutMemories(Memories):
    """The same for whoever comes after a power cut: the machine has started anew."""

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        with patch("sevenfold.store.memory.upkeep.read_boot_id", lambda: "another"):
            yield from super().judge(root, seen)


def _done(result: object) -> str:
    return str(getattr(result, "id", ""))


def _accept(memory: MemoryDir, change: Write) -> object:
    """Propose and accept, or go on where an earlier try ended."""
    if memory.find(change.key):
        return memory.commit([], SAID)
    waiting = memory.waiting() or (memory.propose([change], SAID, "to be looked at"),)
    return memory.accept(waiting[0].id)


def _remove(memory: MemoryDir, key: str) -> object:
    return memory.commit([Remove(key, ANYTHING)] if memory.find(key) else [], SAID)


def _bring_back(memory: MemoryDir, key: str) -> object:
    """Take back the removal of a memory, unless an earlier try did."""
    if memory.find(key):
        return memory.commit([], SAID)
    removal = next((item for item in memory.log(key) if item.kind == "commit"), None)
    if removal is None:
        raise InputError(f"nothing tells of {key}")
    return memory.revert(removal.id)


def _redo(memory: MemoryDir, change: Write) -> object:
    """Where the write before never happened, there is nothing to redo."""
    is_undone = memory.find(change.key) is None and memory.log(change.key)
    return memory.redo() if is_undone else memory.commit([change], SAID)


def _holding(root: Path, text: str) -> list[str]:
    """Files that hold a text, but for what a dead writer left half-made and the next sweep takes."""
    kept = (path for path in root.rglob("*") if path.is_file() and not path.name.startswith(".tmp-"))
    return sorted(path.name for path in kept if text.encode() in path.read_bytes())
