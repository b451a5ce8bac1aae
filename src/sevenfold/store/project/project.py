"""A project's folders on disk: one for each identity, and never another project's.

<home>/projects/<identity>/project.json      whose folder this is, checked on every open
                           sessions/         transcripts, and a folder of files for each session
                           memory/           topic files and their index; agents may write here
                           mail/             mailboxes
                           control/          locks, keys and mutexes; agents may not
<home>/memory-state/<directory>/             what is known of a memory directory that a setting puts elsewhere

Also here: the identity of a project, and a memory folder that a trusted setting puts somewhere else.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import NewType, Self

from sevenfold.core import events
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import (
    FileDamaged,
    FileExists,
    FileMissing,
    InputError,
    NotRegular,
    ProjectError,
    SevenfoldError,
    StoreError,
)
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.json import freeze, read_object, write_json
from sevenfold.core.settings import PlaceSettings, Settings, SettingSource
from sevenfold.store.files.disk import SYSTEM_DISK, Disk
from sevenfold.store.files.folder import FOLDER_TIMEOUTS, TEMP_PREFIX, Folder, FolderTimeouts, sweep_tree
from sevenfold.store.files.lock_state import PID_FILE, PidFile
from sevenfold.store.files.locks import LockSettings, mutex
from sevenfold.store.project.git import find_project_root, real_path
from sevenfold.store.project.trust import refuse_memory_place

# The folder's name is one that two roots never share, and a file inside names its root in full.

ProjectId = NewType("ProjectId", str)

IDENTITY_FILE = "project.json"
_DIRECTORY_FILE = "directory.json"
"""The same in the state of a memory directory."""

_READABLE_CHARS = 32
"""Enough to find a project by eye in a listing."""

_MAX_IDENTITY_BYTES = 64 * 1024


def make_project_id(root: Path) -> ProjectId:
    """A folder name for a real path: some of its own name to read, and 128 bits that no other root has."""
    readable = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")[:_READABLE_CHARS].strip("-")
    return ProjectId(f"{readable or 'project'}-{hash_path(root)[:32]}")


def hash_path(root: Path) -> str:
    """Of the path's bytes as they are: paths that differ in case or Unicode form are different paths."""
    return hashlib.sha256(os.fsencode(root)).hexdigest()


def claim_folder(folder: Folder, key: str, root: Path, *, is_shared: bool = False) -> None:
    """Write the identity file, or check the one that is there; `ProjectError` when it names another root,
    unless roots may share the folder."""
    ours = hash_path(root)
    shown = os.fsencode(root).decode("utf-8", "backslashreplace")
    with suppress(FileExists):
        if read_claim(folder, key) is None:
            folder.create(key, write_json(freeze({"root": shown, "fingerprint": ours})) + b"\n")
    found = read_claim(folder, key)
    if found != ours and not is_shared:
        raise ProjectError(
            f"{folder.path} belongs to another project (see {key} in it), not to {shown}; "
            "move it away, or point this project at another folder"
        )


def read_claim(folder: Folder, key: str) -> str | None:
    """The fingerprint in an identity file, or None where there is no such file."""
    try:
        wire = read_object(folder.read(key, max_bytes=_MAX_IDENTITY_BYTES))
    except FileMissing:
        return None
    except (InputError, FileDamaged, NotRegular) as error:
        raise ProjectError(
            f"{folder.path}/{key} cannot be read ({error}); restore it or move it away"
        ) from error
    found = wire.get("fingerprint")
    if not isinstance(found, str):
        raise ProjectError(f"{folder.path}/{key} names no fingerprint; restore it or move it away")
    return found


# Writers fill a memory folder without asking, so it must be meant for that, no link, and no other project's.

CLAIM_FILE = ".sevenfold-project.json"
"""Hidden from whoever lists the memories."""

_OWN = frozenset([CLAIM_FILE, PID_FILE])

_CLAUDE_CHARS = 200
"""Of a path, in the name of a folder of Claude Code's; a longer one is cut, and a hash of its own follows."""

_EXPECTED = frozenset(["logs", "team", PID_FILE, CLAIM_FILE, ".DS_Store"])


@dataclass(frozen=True, slots=True)
class _MemoryPlace:
    """Where settings put the memories of a project; the directory itself, or a folder of folders."""

    memory_dir: Path | None = None
    memory_home: Path | None = None

    def locate(self, root: Path) -> Path | None:
        """The directory of the project with this root; None for the default one."""
        return self.memory_dir or (self.memory_home and self.memory_home / make_project_id(root))


@dataclass(frozen=True, slots=True)
class _OpenMemory:
    """A memory directory and its state."""

    kept: Folder
    state: Folder
    is_shared: bool = False


def _open_elsewhere(
    place: _MemoryPlace, root: Path, projects: Path, states: Folder, emit: Emit
) -> _OpenMemory:
    """The memory directory of the project at `root`, claimed, and its state; `ProjectError` with the reason.

    `projects` is where projects have their own folders, which are nobody else's memory. Projects that name
    the same directory share it, unless it is named after one of them, as Claude Code's is.
    """
    from sevenfold.store.memory.sidecars import begin_state, clear_old_state, is_beginning

    directory = real_path(place.locate(root) or projects)
    named = make_project_id(directory)
    with ExitStack() as undo, ExitStack() as locks:
        kept = undo.enter_context(_open_memory_folder(place, root, projects, states))
        state = undo.enter_context(states.subfolder(named))
        if read_claim(state, _DIRECTORY_FILE) is None or is_beginning(state):
            # What one process decides about a directory that is new here, the others find.
            locks.enter_context(mutex(states, named))
        claimant = read_claim(kept, CLAIM_FILE)
        is_shared = place.memory_dir is not None and not _is_claudes(place.memory_dir, root)
        if claimant is None:
            _refuse_strangers(kept)
        elif not is_shared:
            claim_folder(kept, CLAIM_FILE, root)
        if read_claim(state, _DIRECTORY_FILE) is None:
            with kept.without_own() as memory:
                owner = _find_project(projects, claimant)
                begin_state(state, memory, owner, is_claimed=claimant is not None, emit=emit)
        claim_folder(state, _DIRECTORY_FILE, directory)
        if is_beginning(state):
            clear_old_state(state, projects)
        if claimant is None:
            # Last: a directory that is claimed has a state.
            claim_folder(kept, CLAIM_FILE, root, is_shared=is_shared)
        undo.pop_all()
    return _OpenMemory(kept, state, is_shared)


def _taken(projects: Path) -> tuple[Path, Path]:
    """Where no memories can be put: projects and directories have folders there."""
    return projects, projects.parent / MEMORY_STATE_FOLDER


def _find_project(projects: Path, fingerprint: str | None) -> Path | None:
    """The folder of the project with this fingerprint; None where there is none."""
    if not fingerprint or not re.fullmatch(r"[0-9a-f]{64}", fingerprint):  # others may have written it
        return None
    for found in filter(Path.is_dir, projects.glob(f"*-{fingerprint[:32]}")):
        with Folder.open(found) as folder:
            if read_claim(folder, IDENTITY_FILE) == fingerprint:
                return found
    return None


def _open_memory_folder(place: _MemoryPlace, root: Path, projects: Path, states: Folder) -> Folder:
    disk, timeouts = states.disk, states.timeouts
    if place.memory_dir:
        # Hidden, as all of that agent's files are, and meant for memories all the same.
        if not _is_claudes(place.memory_dir, root):
            refuse_memory_place(place.memory_dir, _taken(projects))
        return Folder.open(place.memory_dir, create=True, disk=disk, own=_OWN, timeouts=timeouts)
    path = place.memory_home or projects
    refuse_memory_place(path, _taken(projects))
    with Folder.open(path, create=True, disk=disk, own=_OWN, timeouts=timeouts) as shared:
        if read_claim(shared, CLAIM_FILE) is not None:
            raise ProjectError(
                f"{path} is the memory folder of one project (see {CLAIM_FILE} in it), and a setting for all "
                "projects names it; name it in that project's .sevenfold/settings.local.toml instead, or "
                "choose another folder for all"
            )
        return shared.subfolder(make_project_id(root))


def claude_memory_path(root: Path, user_home: Path) -> Path:
    """Where Claude Code keeps the memories of a project: by its path, `-` for all but letters and digits.

    That name is not one project's alone, so the folder is claimed as any other is. `ProjectError` for a path
    so long that the name ends in a hash of Claude Code's own.
    """
    named = _claude_name(root)
    if len(named) > _CLAUDE_CHARS:
        raise ProjectError(
            f"{root} is too long for its folder of Claude Code's to be known by name; look for "
            f"{user_home}/.claude/projects/{named[:_CLAUDE_CHARS]}-…/memory and say it as places.memory_dir"
        )
    return user_home / ".claude" / "projects" / named / "memory"


def _claude_name(root: Path) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", str(root))


def _is_claudes(path: Path, root: Path) -> bool:
    """Whether this is where Claude Code has the memories of a project, in whoever's home."""
    named, found = _claude_name(root), path.parent.name
    if path.name != "memory" or path.parts[-4:-2] != (".claude", "projects"):
        return False
    return found == named if len(named) <= _CLAUDE_CHARS else found.startswith(f"{named[:_CLAUDE_CHARS]}-")


def _refuse_strangers(folder: Folder) -> None:
    """A folder nobody claimed yet has to be empty, or hold memories and nothing else, hidden or not."""
    for name in folder.all_names():
        if not name.endswith(".md") and name not in _EXPECTED and not name.startswith(TEMP_PREFIX):
            raise ProjectError(
                f"{folder.path} holds {name!r}, so it does not look like a memory folder; "
                "choose an empty folder, or one with only .md files"
            )


PROJECTS_FOLDER = "projects"
"""In the home: a folder for each."""
MEMORY_STATE_FOLDER = "memory-state"
"""In the home: a folder for each memory directory that a setting puts elsewhere."""
CONTROL_FOLDER = "control"
_MEMORY_FOLDER = "memory"
_SUBFOLDERS = ("sessions", "mail", CONTROL_FOLDER)

_SWEPT = "swept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project and its open folders."""

    root: Path
    id: ProjectId
    folder: Folder
    sessions: Folder
    memory: Folder
    """For agents too: names of our own in it, such as the lock's PID file, do not exist for this folder."""
    mail: Folder
    control: Folder
    memory_state: Folder
    """What is known of the memory directory: history, uses, marks, index, dreams and team. The control
    folder, unless a setting puts the directory elsewhere: then it is the directory's, and shared with it."""
    pid_file: PidFile
    """The dream lock as the memory folder shows it to other programs."""
    is_memory_shared: bool = False
    """Whether other projects may have their memories in the same directory."""
    is_user_wide: bool = False
    """Whether this is no project, but what is remembered for all of them."""

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
        timeouts: FolderTimeouts = FOLDER_TIMEOUTS,
    ) -> Self:
        """The project that `start` lies in, its folders made if need be.

        Its memory is `memory_dir` itself, shared with whoever else names it, or a folder of its own in
        `memory_home`, or lies under `home`.
        """
        return cls.open_root(
            find_project_root(start, emit=emit),
            home=home,
            memory_dir=memory_dir,
            memory_home=memory_home,
            clock=clock,
            emit=emit,
            disk=disk,
            timeouts=timeouts,
        )

    @classmethod
    def open_root(
        cls,
        root: Path,
        *,
        home: Path,
        memory_dir: Path | None = None,
        memory_home: Path | None = None,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
        disk: Disk = SYSTEM_DISK,
        timeouts: FolderTimeouts = FOLDER_TIMEOUTS,
    ) -> Self:
        """The same for the root that `find_project_root` has found."""
        named, projects = make_project_id(root), home / PROJECTS_FOLDER
        with ExitStack() as undo:
            own = frozenset([PID_FILE])
            base = Folder.open(projects / named, create=True, disk=disk, own=own, timeouts=timeouts)
            undo.callback(base.close)
            claim_folder(base, IDENTITY_FILE, root)
            folder = undo.enter_context(base.without_own())
            sessions, mail, control = (undo.enter_context(folder.subfolder(name)) for name in _SUBFOLDERS)
            if memory_dir or memory_home:
                states = Folder.open(home / MEMORY_STATE_FOLDER, create=True, disk=disk, timeouts=timeouts)
                with states:
                    place = _MemoryPlace(memory_dir, memory_home)
                    found = _open_elsewhere(place, root, projects, states, emit)
                    undo.enter_context(found.state)
            else:
                found = _OpenMemory(base.subfolder(_MEMORY_FOLDER), control)
            pid_file = PidFile(undo.enter_context(found.kept))
            memory = undo.enter_context(found.kept.without_own())
            base.close()
            project = cls(
                root=root,
                id=named,
                folder=folder,
                sessions=sessions,
                memory=memory,
                mail=mail,
                control=control,
                memory_state=found.state,
                pid_file=pid_file,
                is_memory_shared=found.is_shared,
            )
            project._sweep_at_times((clock or SystemClock()).now(), emit)
            undo.pop_all()
        return project

    @property
    def home(self) -> Path:
        """Where all projects have their folders."""
        return self.folder.path.parent.parent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sweep(self, now: datetime, emit: Emit = ignore_event) -> int:
        """Remove what dead writers left half-made, anywhere in the project; how many files that was."""
        apart = () if self.memory_state is self.control else (self.memory_state,)
        return sum(sweep_tree(folder, now, emit) for folder in (self.folder, self.memory, *apart))

    def close(self) -> None:
        with ExitStack() as exits:
            work = (self.folder, self.sessions, self.mail, self.control)
            for folder in (*work, self.memory, self.memory_state, self.pid_file):
                exits.callback(folder.close)

    def _sweep_at_times(self, now: datetime, emit: Emit) -> None:
        """Sweep, if nobody has for a while. That it fails is told, and no reason not to open the project."""
        try:
            last, now_ns = self.control.stat(_SWEPT), int(now.timestamp()) * 10**9
            if last and 0 <= now_ns - last.modified_ns < self.folder.timeouts.sweep.total_seconds() * 1e9:
                return
            self.sweep(now, emit)
            self.control.replace(_SWEPT, b"", modified_ns=now_ns)
        except StoreError as error:
            emit(events.SweepFailed(str(self.folder.path), str(error)))


def open_project(
    start: Path,
    settings: Settings,
    *,
    user_home: Path,
    root: Path | None = None,
    clock: Clock | None = None,
    emit: Emit = ignore_event,
    disk: Disk = SYSTEM_DISK,
) -> Project:
    """The project that `start` lies in, with its files where `settings` put them. Its `root` is looked up
    unless it is given.

    A `memory_dir` from the user file or the managed policy speaks for every project, and each has a folder in
    it. From the project-local file, the environment or an argument it is the memory directory itself.
    """
    places = settings.of(PlaceSettings)
    root = root or find_project_root(start, emit=emit)
    place = _find_place(settings, root, user_home)
    return Project.open_root(
        root,
        home=places.home_folder(user_home),
        memory_dir=place.memory_dir,
        memory_home=place.memory_home,
        clock=clock,
        emit=emit,
        disk=disk,
        timeouts=replace(_read_timeouts(settings), sweep=places.sweep_every),
    )


_FOR_ALL = (SettingSource.USER, SettingSource.MANAGED)
"""Sources that speak for every project of a person or a machine."""


def _find_place(settings: Settings, root: Path, user_home: Path) -> _MemoryPlace:
    """As the settings say, for the project with this root."""
    places = settings.of(PlaceSettings)
    if places.memory_dir is None:
        return _MemoryPlace(claude_memory_path(root, user_home)) if places.claude_memory else _MemoryPlace()
    chosen, source = Path(places.memory_dir), settings.origin("places.memory_dir").source
    is_for_all = source in _FOR_ALL or (source is not SettingSource.LOCAL and _has_projects(chosen))
    return _MemoryPlace(memory_home=chosen) if is_for_all else _MemoryPlace(memory_dir=chosen)


def _has_projects(path: Path) -> bool:
    """Whether a folder holds those of projects, each claimed: what the environment names held them once, and
    whoever has one there keeps it."""
    if (path / CLAIM_FILE).exists():
        return False
    for claim in path.glob(f"*/{CLAIM_FILE}"):
        with suppress(SevenfoldError), Folder.open(claim.parent, own=_OWN) as folder:
            owner = read_claim(folder, CLAIM_FILE)
            if owner and len(owner) > 32 and claim.parent.name.endswith(f"-{owner[:32]}"):
                return True
    return False


def locate_memory_state(settings: Settings, root: Path, user_home: Path) -> Path:
    """Where the `memory_state` of the project with this root is, or would be: nothing is made."""
    home = settings.of(PlaceSettings).home_folder(user_home)
    chosen = _find_place(settings, root, user_home).locate(root)
    return _locate_state(home, chosen) if chosen else locate_project(home, root) / CONTROL_FOLDER


def _locate_state(home: Path, directory: Path) -> Path:
    return home / MEMORY_STATE_FOLDER / make_project_id(real_path(directory))


def locate_project(home: Path, root: Path) -> Path:
    """Where the folder of the project with this root is, or would be: nothing is made."""
    return home / PROJECTS_FOLDER / make_project_id(root)


_USER_WIDE = "user"
"""Below the home, and never made: the root that what is remembered for all projects goes by."""


def locate_user_wide(project: Project) -> Path | None:
    """The history of the memories for all projects, which says whether there are any: any program may leave
    files. None for those memories themselves."""
    if project.is_user_wide:
        return None
    return locate_project(project.home, project.home / _USER_WIDE) / CONTROL_FOLDER / "memory" / "log.jsonl"


def open_user_wide(home: Path, *, clock: Clock | None = None, emit: Emit = ignore_event) -> Project:
    """The folders of what is remembered for all projects of a user, made if need be."""
    opened = Project.open_root(home / _USER_WIDE, home=home, clock=clock, emit=emit)
    return replace(opened, is_memory_shared=True, is_user_wide=True)


def open_control(home: Path, root: Path) -> Folder:
    """The control folder alone: where answers are kept before settings say where the memories are.

    The project's own folders are made if need be.
    """
    with Folder.open(locate_project(home, root), create=True) as folder:
        claim_folder(folder, IDENTITY_FILE, root)
        for name in _SUBFOLDERS:
            folder.subfolder(name).close()
        return folder.subfolder(CONTROL_FOLDER)


def _read_timeouts(settings: Settings) -> FolderTimeouts:
    """As the lock's section says, where whoever resolved the settings asked for it."""
    found = [section for section in settings.sections if isinstance(section, LockSettings)]
    return found[0].timeouts if found else FOLDER_TIMEOUTS
