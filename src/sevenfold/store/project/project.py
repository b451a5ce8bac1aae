"""A project's place on disk: one folder for each identity, and never another project's.

<home>/projects/<identity>/project.json      whose folder this is, checked on every open
                           sessions/         transcripts, and a folder of files for each session
                           memory/           topic files and their index; agents may write here
                           mail/             mailboxes
                           control/          locks, keys and mutexes; agents may not
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Self

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import AccessDenied, FileMissing, KeyRefused, NotRegular, StoreError
from sevenfold.core.events import Emit, SweepFailed, ignore_event
from sevenfold.core.settings import Settings, SettingSource
from sevenfold.store.files.disk import SYSTEM_DISK, Disk
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.keys import MAX_KEY_PARTS
from sevenfold.store.files.lock import LockSettings
from sevenfold.store.files.pid_file import PID_FILE, PidFile
from sevenfold.store.files.timeouts import FOLDER_TIMEOUTS, FolderTimeouts
from sevenfold.store.git.root import find_project_root
from sevenfold.store.project.identity import IDENTITY_FILE, ProjectId, claim_folder, make_project_id
from sevenfold.store.project.memory_folder import (
    claude_memory_path,
    open_memory_folder,
    open_shared_memory_folder,
)
from sevenfold.store.project.place_settings import PlaceSettings

PROJECTS_FOLDER = "projects"
"""In the home: a folder for each."""

_SWEPT = "swept"
_NOT_OURS = (NotRegular, FileMissing, KeyRefused, AccessDenied)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project and its folders, held open."""

    root: Path
    id: ProjectId
    folder: Folder
    sessions: Folder
    memory: Folder
    """For agents too: names of our own in it, such as the lock's face, do not exist for this folder."""
    mail: Folder
    control: Folder
    face: PidFile
    """The dream lock as the memory folder shows it to other programs."""

    @classmethod
    def open(
        cls,
        start: Path,
        *,
        home: Path,
        memory_dir: Path | None = None,
        memory_home: Path | None = None,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
        disk: Disk = SYSTEM_DISK,
        patience: FolderTimeouts = FOLDER_TIMEOUTS,
    ) -> Self:
        """The project that `start` lies in, its folders made if need be.

        Its memory is `memory_dir` itself, or a folder of its own in `memory_home`, or lies under `home`.
        """
        root = find_project_root(start, emit=emit)
        named, projects = make_project_id(root), home / PROJECTS_FOLDER
        with ExitStack() as undo:
            own = frozenset([PID_FILE])
            base = Folder.open(projects / named, create=True, disk=disk, own=own, patience=patience)
            undo.callback(base.close)
            claim_folder(base, IDENTITY_FILE, root)
            folder = undo.enter_context(base.without_own())
            sessions, mail, control = (
                undo.enter_context(folder.subfolder(name)) for name in ("sessions", "mail", "control")
            )
            if memory_dir:
                kept = open_memory_folder(memory_dir, root, projects, disk, patience)
            elif memory_home:
                kept = open_shared_memory_folder(
                    memory_home, named, root, projects, disk=disk, patience=patience
                )
            else:
                kept = base.subfolder("memory")
            face = PidFile(undo.enter_context(kept))
            memory = undo.enter_context(kept.without_own())
            base.close()
            project = cls(
                root=root,
                id=named,
                folder=folder,
                sessions=sessions,
                memory=memory,
                mail=mail,
                control=control,
                face=face,
            )
            project._sweep_at_times((clock or SystemClock()).now(), emit)
            undo.pop_all()
        return project

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sweep(self, now: datetime, emit: Emit = ignore_event) -> int:
        """Remove what dead writers left half-made, anywhere in the project; how many files that was."""
        return sum(_sweep_tree(folder, now, emit) for folder in (self.folder, self.memory))

    def close(self) -> None:
        with ExitStack() as exits:
            for folder in (self.folder, self.sessions, self.memory, self.face, self.mail, self.control):
                exits.callback(folder.close)

    def _sweep_at_times(self, now: datetime, emit: Emit) -> None:
        """Sweep, if nobody has for a while. That it fails is told, and no reason not to open the project."""
        try:
            last = self.control.entry(_SWEPT)
            now_ns = int(now.timestamp()) * 10**9
            if last and 0 <= now_ns - last.modified_ns < self.folder.patience.sweep.total_seconds() * 1e9:
                return
            self.sweep(now, emit)
            self.control.replace(_SWEPT, b"", modified_ns=now_ns)
        except StoreError as error:
            emit(SweepFailed(str(self.folder.path), str(error)))


def open_project(
    start: Path,
    settings: Settings,
    *,
    user_home: Path,
    clock: Clock | None = None,
    emit: Emit = ignore_event,
    disk: Disk = SYSTEM_DISK,
) -> Project:
    """The project that `start` lies in, with its files where `settings` put them.

    A `memory_dir` from the project-local file is that project's own. From any other source it speaks for
    every project, and each has a folder in it.
    """
    places = settings.of(PlaceSettings)
    chosen = Path(places.memory_dir) if places.memory_dir else None
    is_own = settings.origin("places.memory_dir").source is SettingSource.LOCAL
    if chosen is None and places.claude_memory:
        chosen, is_own = claude_memory_path(find_project_root(start, emit=emit), user_home), True
    return Project.open(
        start,
        home=places.home_folder(user_home),
        memory_dir=chosen if is_own else None,
        memory_home=None if is_own else chosen,
        clock=clock,
        emit=emit,
        disk=disk,
        patience=replace(_patience(settings), sweep=places.sweep_every),
    )


def has_project(start: Path, settings: Settings, *, user_home: Path) -> bool:
    """Whether it was ever opened: to open it makes its folders."""
    home = settings.of(PlaceSettings).home_folder(user_home)
    return (home / PROJECTS_FOLDER / make_project_id(find_project_root(start))).is_dir()


def find_control(home: Path, start: Path) -> Path:
    """Where the control folder of a project is, or would be: nothing is made."""
    return home / PROJECTS_FOLDER / make_project_id(find_project_root(start)) / "control"


def _patience(settings: Settings) -> FolderTimeouts:
    """As the lock's section says, where whoever resolved the settings asked for it."""
    found = [section for section in settings.sections if isinstance(section, LockSettings)]
    return found[0].patience if found else FOLDER_TIMEOUTS


def _sweep_tree(folder: Folder, now: datetime, emit: Emit, depth: int = MAX_KEY_PARTS) -> int:
    """As deep as a key can reach: nothing of ours lies deeper, and agents may nest folders without end."""
    swept = folder.sweep(now, emit)
    for name in folder.names() if depth else ():
        with suppress(*_NOT_OURS), folder.subfolder(name, create=False) as below:
            swept += _sweep_tree(below, now, emit, depth - 1)
    return swept
