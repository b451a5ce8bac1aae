"""What every action of `sevenfold memory` uses: the memories of a project, and messages to the user."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import cast

from sevenfold.cli.screen import Screen
from sevenfold.cli.workspace import open_workspace
from sevenfold.core import events
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import FileMissing
from sevenfold.core.events import Emit, Event, ignore_event
from sevenfold.core.memories import ARCHIVE_PREFIX, Origin
from sevenfold.core.settings import MemorySettings, PlaceSettings, SettingsSection
from sevenfold.layers.memory.overview import MemoryOverview, read_memory_overviews
from sevenfold.session.opening import Workspace
from sevenfold.store.memory.changes import StoredMemory, Transaction
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.sidecars import MarkStore, UseStore
from sevenfold.store.project.project import Project

MEMORY_SECTIONS = (MemorySettings, PlaceSettings)
"""All that `memory` reads of the settings, but for its search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryContext:
    """A project's memories, and the person who looks at them."""

    workspace: Workspace
    memory: MemoryDir
    screen: Screen
    is_json: bool
    warn: Emit
    """Tells the person what they should know beside what they asked for."""

    @property
    def project(self) -> Project:
        return self.memory.project

    @property
    def uses(self) -> UseStore:
        return UseStore(self.project.memory_state, emit=self.warn)

    @property
    def marks(self) -> MarkStore:
        return MarkStore(self.project.memory_state, emit=self.warn)

    @property
    def is_attended(self) -> bool:
        """Whether somebody can be asked."""
        return not self.is_json and self.screen.is_interactive

    def now(self) -> datetime:
        return SystemClock().now()

    def find(self, name: str) -> StoredMemory:
        """The memory that is meant by a name, a file, or one that was put aside."""
        bare = name.removesuffix(".md")
        for key in (f"{bare}.md", f"{ARCHIVE_PREFIX}{bare}.md"):
            found = self.memory.find(key)
            if found is not None:
                return found
        raise FileMissing(f"there is no memory {name!r}; `sevenfold memory list` shows those there are")

    def read_overviews(self, stored: Sequence[StoredMemory]) -> list[MemoryOverview]:
        """These memories, each with what is known of it."""
        return read_memory_overviews(stored, self.uses, self.marks)

    def report(self, done: Transaction, text: str) -> int:
        """Say what was done, and how to take it back."""
        if self.is_json:
            self.screen.show_json(
                {"id": done.id, "kind": done.kind, "keys": [change.key for change in done.changes]}
            )
        elif done.changes:
            self.screen.show_line(f"{text} (change {done.id}; `sevenfold memory revert` takes it back)")
        else:
            self.screen.show_line("nothing changed", "faint")
        return 0


@dataclass(slots=True)
class _Notes:
    """What a person should know beside what they asked for."""

    screen: Screen
    _first: dict[type[Event], str] | None = field(default_factory=dict["type[Event]", str])
    """Of each kind that comes once for a file, while the folder is opened; None once that was said."""
    _counts: Counter[type[Event]] = field(default_factory=Counter["type[Event]"])

    def __call__(self, event: Event) -> None:
        if isinstance(event, events.MemoryChanged | events.MemoryPurged):
            return  # told by the command that changes it
        # Not at the top: it knows every event there is, and mostly nothing happens.
        from sevenfold.agent.tui.event_text import render_event_text

        shown = render_event_text(event)
        if shown is None or not shown.is_warning:
            return
        if isinstance(event, events.MemoryEdited | events.MemoryRefused) and self._first is not None:
            self._first.setdefault(type(event), shown.text)
            self._counts[type(event)] += 1
        else:
            self._say(shown.text)

    def opened(self) -> None:
        """Say of many files in one line what is so with them: it stands before the answer."""
        first, self._first = self._first or {}, None
        for kind, text in first.items():
            more = self._counts[kind] - 1
            self._say(f"{text}{f'; so it is with {more:,} more' if more else ''}")

    def _say(self, text: str) -> None:
        # A name may hold the end of a line, and a note is one.
        self.screen.note(f"note: {text}".replace("\n", "\\n"))


@contextmanager
def open_memory_context(
    options: Namespace, screen: Screen, sections: tuple[type[SettingsSection], ...] | None = None
) -> Generator[MemoryContext]:
    """The memories that the options name. `sections`: those of the settings that are read; None: all."""
    warn = _Notes(screen)
    with open_workspace(cast("Path", options.project), sections=sections) as workspace:
        workspace.listen(warn, replay=ignore_event)  # refused settings are no matter of memories
        memory = workspace.open_user_wide() if getattr(options, "user", False) else workspace.memory
        warn.opened()
        yield MemoryContext(
            workspace=workspace,
            memory=memory,
            screen=screen,
            is_json=cast("bool", options.json),
            warn=warn,
        )


def make_user_origin(why: str) -> Origin:
    """What a person does at the command line."""
    return Origin(who="user", why=why, said_by="user", is_accepted=True)
