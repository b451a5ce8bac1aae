"""Scenarios: files replaced, created, removed and moved; a file edited under the mutex; notes; spills."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import ClassVar, Literal, TypeAlias

from sevenfold.core.canonical import Digest
from sevenfold.core.errors import FileMissing
from sevenfold.core.events import Event, SpillFailed, ignore_event
from sevenfold.core.messages import ToolResult, ToolUseId
from sevenfold.core.spills import SpillDecision
from sevenfold.layers.session_notes.notes_file import NotesFile
from sevenfold.layers.tool_results.policy import ToolResultSettings
from sevenfold.layers.tool_results.spill import SPILL_FOLDER, SpillStore
from sevenfold.store.files.folder import TEMP_PREFIX, Folder
from sevenfold.store.files.locks import edit_file
from tests.torture.stage import QUICK_DISK, Seen, Stage, clock_after

MAX_BYTES = 10_000_000
LENGTHS = (1, 500, 9_000, 60_000)
KEYS = ("a.md", "b.md", "deep/c.md")
World: TypeAlias = frozenset[tuple[str, bytes]]
"""What a folder holds: each key with its content."""


def later(hours: int) -> datetime:
    return datetime.now(UTC) + timedelta(hours=hours)


@dataclass(frozen=True, slots=True)
class Change:
    verb: Literal["replace", "create", "remove", "move"]
    key: str
    content: bytes = b""
    target: str = ""

    def do(self, folder: Folder) -> None:
        match self.verb:
            case "replace":
                folder.replace(self.key, self.content)
            case "create":
                folder.create(self.key, self.content)
            case "remove":
                folder.remove(self.key)
            case "move":
                folder.move(self.key, self.target)

    def applied(self, world: World) -> set[World]:
        """The world after it; none where it could not have been done."""
        files = dict(world)
        match self.verb:
            case "replace":
                files[self.key] = self.content
            case "create":
                if self.key in files:
                    return set()
                files[self.key] = self.content
            case "remove":
                if files.pop(self.key, None) is None:
                    return set()
            case "move":
                if self.key not in files or self.target in files:
                    return set()
                files[self.target] = files.pop(self.key)
        return {frozenset(files.items())}


class Files:
    name: ClassVar = "files"

    def __init__(self, seed: int) -> None:
        random = Random(f"files {seed}")
        self.before = {"a.md": b"as it was " * random.choice(LENGTHS)}
        self.changes = [self._change(random, n) for n in range(7)]
        # Whatever chance has made of the others, there is a move that can be done.
        self.changes += [Change("replace", "a.md", b"on its way"), Change("move", "a.md", target="deep/d.md")]

    def prepare(self, root: Path) -> None:
        (root / "deep").mkdir(parents=True)
        (root / "a.md").write_bytes(self.before["a.md"])
        (root / f"{TEMP_PREFIX}left-by-the-dead").write_bytes(b"half")

    def run(self, stage: Stage) -> None:
        folder = stage.get("open", lambda: Folder.open(stage.root, disk=stage.disk))
        if folder is None:
            return
        for turn, change in enumerate(self.changes):
            stage.attempt(f"{turn}", lambda change=change: change.do(folder))

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        worlds: set[World] = {frozenset(self.before.items())}
        for turn, change in enumerate(self.changes):
            if f"{turn}" not in seen.begun:
                break
            done = {after for world in worlds for after in change.applied(world)}
            worlds = done if f"{turn}" in seen.done else worlds | done
        with Folder.open(root, disk=QUICK_DISK) as folder:
            found = self._world(folder)
            if found not in worlds:
                sizes = {key: len(content) for key, content in found}
                yield f"the files are in a state that nobody made: {sizes}"
            yield from self._judge_next(folder)
            folder.sweep(later(2), ignore_event)
            with folder.subfolder("deep") as deep:
                deep.sweep(later(2), ignore_event)
        left = [name for _, _, files in os.walk(root) for name in files if name.startswith(TEMP_PREFIX)]
        if left:
            yield f"temporary files survive the sweep: {left}"

    def _world(self, folder: Folder) -> World:
        names = [name for name in folder.names() if name != "deep"]
        with folder.subfolder("deep") as deep:
            names += [f"deep/{name}" for name in deep.names()]
        return frozenset((name, folder.read(name, max_bytes=MAX_BYTES)) for name in names)

    def _judge_next(self, folder: Folder) -> Iterator[str]:
        folder.create("next.md", b"1")
        folder.replace("next.md", b"2")
        folder.move("next.md", "deep/next.md")
        if folder.read("deep/next.md", max_bytes=9) != b"2":
            yield "a file made after recovery is not what was written"
        folder.remove("deep/next.md")

    def _change(self, random: Random, turn: int) -> Change:
        content = f"{turn} ".encode() * random.choice(LENGTHS)
        verb = random.choice(("replace", "replace", "create", "remove", "move"))
        key, target = random.sample(KEYS, 2)
        return Change(verb, key, content, target if verb == "move" else "")


class Edits:
    """Lines added to a file by read, change and replace under the mutex: what memories and the index do."""

    name: ClassVar = "edit"

    def __init__(self, seed: int) -> None:
        random = Random(f"edit {seed}")
        self.lines = [f"- line {n} " + "x" * random.choice((0, 80, 5_000)) for n in range(4)]
        self.before = ["# Index"] if seed % 2 else []

    def prepare(self, root: Path) -> None:
        (root / "memory").mkdir(parents=True)
        if self.before:
            (root / "memory" / "MEMORY.md").write_text("".join(f"{line}\n" for line in self.before))

    def run(self, stage: Stage) -> None:
        memory = stage.get("open", lambda: Folder.open(stage.root / "memory", disk=stage.disk))
        control = stage.get(
            "control", lambda: Folder.open(stage.root / "control", create=True, disk=stage.disk)
        )
        if memory is None or control is None:
            return
        for turn, line in enumerate(self.lines):
            stage.insist(f"{turn}", lambda line=line: self._add(memory, control, line))

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        control = Folder.open(root / "control", create=True, disk=QUICK_DISK)
        with control, Folder.open(root / "memory", disk=QUICK_DISK) as memory:
            found = self._read(memory)
            wanted = self.before + [line for n, line in enumerate(self.lines) if f"{n}" in seen.begun]
            if found != [line for line in wanted if line in found]:
                yield f"the file holds lines torn, repeated or out of order: {[line[:20] for line in found]}"
            lost = [n for n, line in enumerate(self.lines) if f"{n}" in seen.done and line not in found]
            if lost:
                yield f"acknowledged lines {lost} are lost"
            self._add(memory, control, "- afterwards")
            if self._read(memory) != [*found, "- afterwards"]:
                yield "an edit after recovery is not what the file holds"

    def _add(self, memory: Folder, control: Folder, line: str) -> None:
        def change(before: bytes | None) -> bytes:
            lines = (before or b"").decode().splitlines()
            return "".join(f"{old}\n" for old in (lines if line in lines else [*lines, line])).encode()

        edit_file(memory, "MEMORY.md", change, control=control, max_bytes=MAX_BYTES)

    def _read(self, memory: Folder) -> list[str]:
        with suppress(FileMissing):
            return memory.read("MEMORY.md", max_bytes=MAX_BYTES).decode().splitlines()
        return []


class Notes:
    name: ClassVar = "notes"

    def __init__(self, seed: int) -> None:
        random = Random(f"notes {seed}")
        self.texts = [f"version {n}\n" + "ü" * random.choice(LENGTHS) for n in range(3)]

    def prepare(self, root: Path) -> None:
        root.mkdir()

    def run(self, stage: Stage) -> None:
        folder = stage.get("open", lambda: Folder.open(stage.root, disk=stage.disk))
        if folder is None:
            return
        notes = NotesFile(folder, clock=stage.clock)
        for turn, text in enumerate(self.texts):
            stage.insist(f"{turn}", lambda text=text: self._update(notes, text))

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        latest = max((n for n in range(3) if f"{n}" in seen.done), default=-1)
        allowed = {text for n, text in enumerate(self.texts) if n >= latest and f"{n}" in seen.begun}
        with Folder.open(root, disk=QUICK_DISK) as folder:
            notes = NotesFile(folder, clock=clock_after(hours=1))
            found = notes.read()
            if found not in allowed and not (found is None and latest < 0):
                yield f"the notes are none that may be there: {str(found)[:40]!r}"
            if notes.is_updating():
                yield "a dead writer's mark keeps others waiting for ever"
            self._update(notes, "afterwards")
            if notes.read() != "afterwards":
                yield "notes written after recovery are not what is read"

    def _update(self, notes: NotesFile, text: str) -> None:
        with notes.updating():
            notes.write(text)


class Spilled:
    name: ClassVar = "spill"

    def __init__(self, seed: int) -> None:
        random = Random(f"spill {seed}")
        uses = ["toolu_1", "../../etc/passwd", "toolu_2", "toolu_1", "CON"]
        lengths = [random.choice(LENGTHS) for _ in uses]
        lengths[3] = lengths[0]
        self.results = [
            ToolResult(ToolUseId(use), f"{use} says: " * length)
            for use, length in zip(uses, lengths, strict=True)
        ]

    def prepare(self, root: Path) -> None:
        root.mkdir()

    def run(self, stage: Stage) -> None:
        session = stage.get("open", lambda: Folder.open(stage.root, disk=stage.disk))
        failures: list[Event] = []
        spills = session and stage.get(
            "spills", lambda: SpillStore(session, ToolResultSettings(), emit=failures.append)
        )
        if not spills:
            return
        for turn, result in enumerate(self.results):
            stage.attempt(f"{turn}", lambda result=result: self._store(spills, result, failures))

    def judge(self, root: Path, seen: Seen) -> Iterator[str]:
        with Folder.open(root, disk=QUICK_DISK) as session:
            spills = SpillStore(session, ToolResultSettings())
            for turn, result in enumerate(self.results):
                told = seen.done.get(f"{turn}", "")
                if told == "silently left alone":
                    yield f"result {turn} could not be stored, and no event says so"
                elif told and spills.read(self._decision(result, told)) != self._stored(result):
                    yield f"result {turn} was acknowledged and is not what was stored"
            known = {self._stored(result) for result in self.results}
            with session.subfolder(SPILL_FOLDER) as folder:
                for name in folder.names():
                    if folder.read(name, max_bytes=MAX_BYTES) not in known:
                        yield f"spill {name} is torn"
            for result in self.results:
                if spills.read(spills.store(result)) != self._stored(result):
                    yield f"{result.tool_use_id} cannot be stored after recovery"
            spills.close()

    def _store(self, spills: SpillStore, result: ToolResult, events: list[Event]) -> str:
        events.clear()
        decision = spills.store(result)
        if decision.spill is None:
            failed = any(isinstance(event, SpillFailed) for event in events)
            return "" if failed else "silently left alone"
        return json.dumps([decision.spill, decision.digest])

    def _decision(self, result: ToolResult, told: str) -> SpillDecision:
        spill, digest = json.loads(told)
        return SpillDecision(
            tool_use_id=result.tool_use_id, preview="", spill=str(spill), digest=Digest(str(digest))
        )

    def _stored(self, result: ToolResult) -> bytes:
        return str(result.content).encode()
