"""A project's place on disk (SPEC F1, M1): one folder an identity, and never another project's.

<home>/projects/<identity>/project.json      whose folder this is, checked on every open
                           sessions/         transcripts, and a folder of files for each session
                           memory/           topic files and their index; agents may write here
                           mail/             mailboxes
                           control/          locks, keys and mutexes; agents may not
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from sevenfold.core.errors import FileMissing, KeyRefused, NotRegular
from sevenfold.core.events import Emit, ignore
from sevenfold.store.disk import SYSTEM_DISK, Disk
from sevenfold.store.folder import Folder
from sevenfold.store.git_root import find_root
from sevenfold.store.identity import IDENTITY, ProjectId, claim, identify
from sevenfold.store.keys import MAX_PARTS
from sevenfold.store.lock_face import FACE
from sevenfold.store.memory_place import open_elsewhere


@dataclass(frozen=True, slots=True)
class Project:
    """A project and its folders, held open."""

    root: Path
    id: ProjectId
    folder: Folder
    sessions: Folder
    memory: Folder
    mail: Folder
    control: Folder

    @classmethod
    def open(
        cls,
        start: Path,
        *,
        home: Path,
        memory_dir: Path | None = None,
        emit: Emit = ignore,
        disk: Disk = SYSTEM_DISK,
    ) -> Self:
        """The project that `start` lies in, its folders made if need be."""
        root = find_root(start, emit=emit)
        named = identify(root)
        folder = Folder.open(home / "projects" / named, create=True, disk=disk, own=frozenset([FACE]))
        with ExitStack() as undo:
            undo.callback(folder.close)
            claim(folder, IDENTITY, root)
            sessions, mail, control = (
                undo.enter_context(folder.subfolder(name)) for name in ("sessions", "mail", "control")
            )
            memory = open_elsewhere(memory_dir, root, disk) if memory_dir else folder.subfolder("memory")
            undo.pop_all()
        return cls(root, named, folder, sessions, memory, mail, control)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sweep(self, now: datetime, emit: Emit = ignore) -> int:
        """Remove what dead writers left half-made, anywhere in the project; how many files that was."""
        return sum(_sweep_tree(folder, now, emit) for folder in (self.folder, self.memory))

    def close(self) -> None:
        for folder in (self.control, self.mail, self.memory, self.sessions, self.folder):
            folder.close()


def _sweep_tree(folder: Folder, now: datetime, emit: Emit, depth: int = MAX_PARTS) -> int:
    """As deep as a key can reach: nothing of ours lies deeper, and agents may nest folders without end."""
    swept = folder.sweep(now, emit)
    for name in folder.names() if depth else ():
        with suppress(NotRegular, FileMissing, KeyRefused), folder.subfolder(name, create=False) as below:
            swept += _sweep_tree(below, now, emit, depth - 1)
    return swept
