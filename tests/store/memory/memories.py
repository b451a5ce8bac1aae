"""Memory folders for tests: opened, filled, and looked at as any other program would."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sevenfold.core.clock import ManualClock
from sevenfold.core.events import Event
from sevenfold.core.memories import Origin, write_memory
from sevenfold.store.files.disk import SYSTEM_DISK, Disk
from sevenfold.store.memory.changes import ANYTHING, Transaction, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project

SAID = Origin(who="user", why="asked to", said_by="user")
WEB = Origin(who="fork", why="read on a page", session="s1", taint=frozenset(["web"]))


@dataclass(slots=True, kw_only=True)
class MemorySetup:
    """A project somewhere, and all that was told of its memories."""

    place: Path
    clock: ManualClock = field(default_factory=ManualClock)
    events: list[Event] = field(default_factory=list[Event])
    trusts_outside: bool = False
    disk: Disk = SYSTEM_DISK

    @contextmanager
    def opened(self) -> Generator[MemoryDir]:
        """The memories, as the next process would open them."""
        home = self.place / "home"
        with (
            Project.open(self.place, home=home, clock=self.clock, disk=self.disk) as project,
            MemoryDir(
                project, clock=self.clock, emit=self.events.append, trusts_outside=self.trusts_outside
            ) as memory,
        ):
            yield memory

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


def text_about(topic: str, body: str = "Because.") -> str:
    return write_memory(topic, f"when {topic} matters", "project", body)


def put(memory: MemoryDir, key: str, text: str | None = None, origin: Origin = SAID) -> Transaction:
    """Write a memory, whatever is there."""
    about = key.rpartition("/")[2].removesuffix(".md")
    return memory.commit([Write(key, text_about(about) if text is None else text, ANYTHING)], origin)


def files(memory: MemoryDir) -> dict[str, str]:
    """What lies in the folder, as any other program sees it."""
    found = {path.relative_to(memory.path).as_posix(): path for path in memory.path.rglob("*.md")}
    return {key: path.read_bytes().decode("utf-8", "surrogateescape") for key, path in sorted(found.items())}


def index(memory: MemoryDir) -> str:
    return (memory.path / "MEMORY.md").read_text("utf-8")
