"""What is kept open for each project, and followed when files change on disk.

Opening a project and reading its memories takes a second; looking whether something has changed takes a
millisecond. So settings, memories, index and encoder stay open, and are looked at before each use.
"""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock, RLock
from typing import NamedTuple

from sevenfold.core.clock import Clock
from sevenfold.core.errors import InputError
from sevenfold.core.events import Emit
from sevenfold.core.settings import MemorySettings
from sevenfold.layers.memory.extraction.drafts import MemorySnapshot
from sevenfold.layers.memory.recall.finder import MemoryFinder, MemoryLibrary
from sevenfold.layers.memory.recall.policy import RecallSettings
from sevenfold.layers.memory.rule_policy import RuleSettings
from sevenfold.layers.memory.rule_reader import MemoryRuleReader
from sevenfold.resident.agent_sessions import AgentConversation, AgentSession, RecentlyUsed, SessionWriter
from sevenfold.resident.client import find_home
from sevenfold.session.opening import Workspace, WorkspaceOptions
from sevenfold.store.memory.changes import IndexText
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import CONTROL_FOLDER
from sevenfold.store.project.settings_files import (
    COMMITTED_SETTINGS_FILE,
    LOCAL_SETTINGS_FILE,
    MANAGED_SETTINGS_FILE,
    USER_SETTINGS_FILE,
    find_checkout,
)
from sevenfold.store.project.trust import TRUSTED_FILE

MAX_PROJECTS = 8
"""Open at once. Each takes some MB and a dozen descriptors; a person works on two or three at a time."""

MAX_AGENT_SESSIONS, MAX_TRANSCRIPTS = 256, 8
"""Of other agents, in each project. What a session was shown is a few KB; a conversation may be MBs."""

MAX_STAMPED_FILES = 2_000
"""Up to so many memories are looked at before each answer, which takes a few milliseconds; more are looked at
after it."""

_STAMP_PAUSE = timedelta(seconds=5)
"""Between two looks at a large directory."""

_MAX_DEPTH = 4
"""As deep as a memory lies: `logs/YYYY/MM/…`."""


class SeenFile(NamedTuple):
    """A file as it looks from outside; another one after any change."""

    path: str
    modified_ns: int
    size_bytes: int
    inode: int


@dataclass(frozen=True, slots=True)
class _ProjectKey:
    root: str
    environ: tuple[tuple[str, str], ...]


class OpenProject:
    """A project with its memories open. Hold `lock` for every use: one thread at a time."""

    def __init__(self, cwd: Path, environ: Mapping[str, str], clock: Clock, emit: Emit) -> None:
        self.lock = RLock()
        self.is_closed = False
        self._clock, self._emit = clock, emit
        self._finder: MemoryFinder | None = None
        self._rules: MemoryRuleReader | None = None
        self._snapshot: MemorySnapshot | None = None
        self._index: IndexText | None = None
        self._index_generation = (0, 0)
        self._is_encoded = False
        self.sessions: RecentlyUsed[AgentSession] = RecentlyUsed(MAX_AGENT_SESSIONS)
        """Of other agents in this project, by id."""
        self.conversations: RecentlyUsed[AgentConversation] = RecentlyUsed(MAX_TRANSCRIPTS)
        self.writers: RecentlyUsed[SessionWriter] = RecentlyUsed(MAX_TRANSCRIPTS, SessionWriter.close)
        self.pulled_at = timedelta(days=-1)
        self.pruned_at: datetime | None = None
        self._stamp: frozenset[SeenFile] | None = None
        self._stamped_at = timedelta(days=-1)
        options = WorkspaceOptions(project=cwd, clock=clock, environ=dict(environ))
        self._cwd, self._environ = cwd, environ
        before = stamp_settings(cwd, environ)
        self.workspace = Workspace.open(options)
        self.workspace.listen(emit)
        self._consents = self.workspace.project_folder / CONTROL_FOLDER / TRUSTED_FILE
        self._settings_stamp = (*before, stamp_file(self._consents))

    @property
    def is_current(self) -> bool:
        """Whether its settings are still what they were when it was opened."""
        now = (*stamp_settings(self._cwd, self._environ), stamp_file(self._consents))
        return self._settings_stamp == now

    @property
    def has_memory(self) -> bool:
        """Whether settings allow memory here."""
        return self.workspace.settings.of(MemorySettings).enabled

    @property
    def memory(self) -> MemoryDir:
        return self.workspace.memory

    @property
    def finder(self) -> MemoryFinder:
        if self._finder is None:
            workspace = self.workspace
            library = MemoryLibrary(workspace.project, workspace.memory, workspace.home, workspace.root)
            self._finder = MemoryFinder(library, self._clock, self._emit)
        return self._finder

    @property
    def rules(self) -> MemoryRuleReader:
        if self._rules is None:
            settings = self.workspace.settings.of(RuleSettings)
            self._rules = MemoryRuleReader(memories=self.memory, settings=settings, emit=self._emit)
        return self._rules

    @property
    def snapshot(self) -> MemorySnapshot:
        """All memories, for a comparison with new ones."""
        if self._snapshot is None:
            self._snapshot = MemorySnapshot(self.memory)
        self._snapshot.refresh()
        return self._snapshot

    def read_index(self) -> IndexText:
        """The index of memories. It is made anew when a memory has changed: for thousands that takes long."""
        memory, wide = self.memory, self.memory.user_wide
        generation = (memory.generation(), wide.generation() if wide else 0)
        if self._index is None or generation != self._index_generation:
            self._index, self._index_generation = memory.index_text(), generation
        return self._index

    def follow(self) -> None:
        """Take in what others have changed in the memory directory, if that can be seen quickly."""
        if self._stamp is None or len(self._stamp) <= MAX_STAMPED_FILES:
            self._look()

    def warm_up(self) -> None:
        """Read what the first prompt and the first call of a session would wait for."""
        with self.lock:
            if not self.is_closed and self.has_memory:
                self.finder.find("", 1)
                self._refresh()

    def keep_up(self) -> bool:
        """After an answer: look at a large directory, load the encoder, compute some of the vectors that are
        missing. Returns whether there is more to do."""
        is_large = self._stamp is not None and len(self._stamp) > MAX_STAMPED_FILES
        if is_large and self._clock.uptime() - self._stamped_at >= _STAMP_PAUSE:
            self._look()
        if self._index is not None:
            self._refresh()
        if self._finder is None or not self.workspace.settings.of(RecallSettings).vectors:
            return False
        if not self._is_encoded:
            self._is_encoded = True
            return self._finder.load_encoder()
        return self._finder.embed() > 0

    def _refresh(self) -> None:
        self.read_index()
        self.rules.read()

    def close(self) -> None:
        with self.lock, ExitStack() as exits:
            self.is_closed = True
            exits.callback(self.workspace.close)
            for writer in self.writers.values():
                exits.callback(writer.close)
            if self._finder is not None:
                exits.callback(self._finder.close)

    def _look(self) -> None:
        directories = [one for one in (self.memory, self.memory.user_wide) if one is not None]
        found = _stamp_memories(directories)
        if self._stamp is not None and found != self._stamp:
            for memory in directories:
                memory.notice()
            found = _stamp_memories(directories)
        self._stamp, self._stamped_at = found, self._clock.uptime()


class ProjectPool:
    """The projects that are open, the last used ones first to stay. For any thread."""

    def __init__(self, clock: Clock, emit: Emit, *, limit: int = MAX_PROJECTS) -> None:
        self._clock, self._emit, self._limit = clock, emit, limit
        self._open: OrderedDict[_ProjectKey, OpenProject] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def use(self, cwd: str, environ: Mapping[str, str]) -> Generator[OpenProject]:
        """The project that a folder lies in, for the block; opened first if it is not."""
        folder = Path(cwd)
        if not folder.is_absolute() or not folder.is_dir():
            raise InputError(f"cwd is {cwd!r:.200}; expected the absolute path of a folder")
        root = find_checkout(folder) or folder
        key = _ProjectKey(os.path.realpath(root), tuple(sorted(environ.items())))
        while True:
            project = self._take(key, folder, environ)
            with project.lock:
                if project.is_closed:  # by somebody who found it out of date, or by room for others
                    continue
                yield project
            break
        self._trim()

    def list_roots(self) -> list[str]:
        with self._lock:
            return [key.root for key in self._open]

    def list_open(self) -> list[OpenProject]:
        with self._lock:
            return list(self._open.values())

    def close(self) -> None:
        with self._lock:
            projects = list(self._open.values())
            self._open.clear()
        for project in projects:
            project.close()

    def _take(self, key: _ProjectKey, cwd: Path, environ: Mapping[str, str]) -> OpenProject:
        with self._lock:
            found = self._open.get(key)
            if found is not None and found.is_current:
                self._open.move_to_end(key)
                return found
            self._open.pop(key, None)
            made = OpenProject(cwd, environ, self._clock, self._emit)
            self._open[key] = made
        if found is not None:
            found.close()
        return made

    def _trim(self) -> None:
        while True:
            with self._lock:
                if len(self._open) <= self._limit:
                    return
                _, oldest = self._open.popitem(last=False)
            oldest.close()


def stamp_settings(cwd: Path, environ: Mapping[str, str]) -> tuple[SeenFile | None, ...]:
    """The settings files of a checkout as they look now, and what says that it is one."""
    root = find_checkout(cwd) or cwd
    home = Path(find_home(environ))
    files = (
        MANAGED_SETTINGS_FILE,
        home / USER_SETTINGS_FILE,
        root / COMMITTED_SETTINGS_FILE,
        root / LOCAL_SETTINGS_FILE,
        root / ".git",
    )
    return tuple(map(stamp_file, files))


def stamp_file(path: Path) -> SeenFile | None:
    try:
        found = path.stat()
    except OSError:
        return None
    if stat.S_ISDIR(found.st_mode):  # its time changes with every file in it
        return SeenFile(str(path), 0, 0, found.st_ino)
    return SeenFile(str(path), found.st_mtime_ns, found.st_size, found.st_ino)


def _stamp_memories(directories: Sequence[MemoryDir]) -> frozenset[SeenFile]:
    return frozenset(one for memory in directories for one in _stamp_tree(str(memory.path), _MAX_DEPTH))


def _stamp_tree(folder: str, depth: int) -> Iterator[SeenFile]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    if depth:
                        yield from _stamp_tree(entry.path, depth - 1)
                elif entry.name.endswith(".md"):
                    yield SeenFile(entry.path, found.st_mtime_ns, found.st_size, found.st_ino)
