"""A memory folder that a trusted setting puts somewhere else, with the checks that this needs.

Writers fill this folder without asking, so it must be a folder meant for it: not a system folder, not one
that holds keys or other programs' settings, no link, and not another project's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from sevenfold.core.errors import ProjectError
from sevenfold.store.files.disk import Disk
from sevenfold.store.files.folder import TEMP_PREFIX, Folder
from sevenfold.store.files.pid_file import PID_FILE
from sevenfold.store.files.timeouts import FOLDER_TIMEOUTS, FolderTimeouts
from sevenfold.store.git.root import real_path
from sevenfold.store.project.identity import ProjectId, claim_folder, read_claim

CLAIM_FILE = ".sevenfold-project.json"
"""Hidden from whoever lists the memories."""

_OWN = frozenset([CLAIM_FILE, PID_FILE])

_SYSTEM = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/run", "/sbin", "/sys", "/usr"),
    *("/var", "/Applications", "/Library", "/System"),
)
_TEMPORARY = ("/var/tmp", "/var/folders")
"""Anybody's, though they lie in a system folder; the second is macOS's."""

_SECRET = (".aws", ".azure", ".config", ".docker", ".gnupg", ".kube", ".password-store", ".ssh")
"""What a home folder hides may be a link: these are refused where it leads to as well."""

_CLAUDE_CHARS = 200
"""Of a path, in the name of a folder of Claude Code's; a longer one is cut, and a hash of its own follows."""

_OURS = (".sevenfold", ".config/sevenfold", ".local/share/sevenfold")
_EXPECTED = frozenset(["logs", "team", PID_FILE, CLAIM_FILE, ".DS_Store"])


def open_memory_folder(
    path: Path, root: Path, projects: Path, disk: Disk, patience: FolderTimeouts = FOLDER_TIMEOUTS
) -> Folder:
    """Open and claim `path` as the memory folder of the project at `root`; `ProjectError` with the reason.

    `projects` is where projects have their own folders, which are nobody else's memory.
    """
    # Hidden, as all of that agent's files are, and meant for memories all the same.
    if not _is_claudes(path, root):
        _refuse_place(path, projects)
    return _claimed(Folder.open(path, create=True, disk=disk, own=_OWN, patience=patience), root)


def open_shared_memory_folder(
    path: Path,
    named: ProjectId,
    root: Path,
    projects: Path,
    disk: Disk,
    patience: FolderTimeouts = FOLDER_TIMEOUTS,
) -> Folder:
    """The same for a folder of one's own below `path`, which holds the memories of many projects."""
    _refuse_place(path, projects)
    with Folder.open(path, create=True, disk=disk, own=_OWN, patience=patience) as shared:
        if read_claim(shared, CLAIM_FILE) is not None:
            raise ProjectError(
                f"{path} is the memory folder of one project (see {CLAIM_FILE} in it), and a setting for all "
                "projects names it; name it in that project's .sevenfold/settings.local.toml instead, or "
                "choose another folder for all"
            )
        return _claimed(shared.subfolder(named), root)


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


def _claimed(folder: Folder, root: Path) -> Folder:
    try:
        if read_claim(folder, CLAIM_FILE) is None:
            _refuse_strangers(folder)
        claim_folder(folder, CLAIM_FILE, root)
    except BaseException:
        folder.close()
        raise
    return folder


def _refuse_place(path: Path, projects: Path) -> None:
    user, real = real_path(Path.home()), real_path(path)
    if user.is_relative_to(real) or _is_system(real, user) or _is_hidden(real, user):
        raise ProjectError(
            f"{path} cannot be a memory folder: it holds your home folder, or lies in a system folder or one "
            "that holds keys or settings; choose a folder of its own"
        )
    if real.is_relative_to(real_path(projects)):
        raise ProjectError(
            f"{path} cannot be a memory folder: {projects} is where projects have their own; "
            "choose a folder of its own, or leave the setting out"
        )


def _is_system(real: Path, user: Path) -> bool:
    guarded = _both_names(map(Path, _SYSTEM))
    # Some systems have homes below /var or /usr, and services always do.
    is_at_home = user not in guarded and real.is_relative_to(user)
    return not is_at_home and _is_below(real, guarded) and not _is_below(real, map(Path, _TEMPORARY))


def _is_hidden(real: Path, user: Path) -> bool:
    """Whether it lies in something that a home folder hides and that is not ours."""
    homes = [user, Path("/root")]
    if any(_is_below(real, [home / ours for ours in _OURS]) for home in homes):
        return False
    below = [real.relative_to(home).parts for home in homes if real.is_relative_to(home)]
    return any(parts and parts[0].startswith(".") for parts in below) or _is_below(
        real, [home / secret for home in homes for secret in _SECRET]
    )


def _is_below(real: Path, folders: Iterable[Path]) -> bool:
    return any(real.is_relative_to(folder) for folder in _both_names(folders))


def _both_names(folders: Iterable[Path]) -> list[Path]:
    """As they are called and where that leads: on some systems /etc and /tmp are links."""
    named = list(folders)
    return [*named, *map(real_path, named)]


def _refuse_strangers(folder: Folder) -> None:
    """A folder nobody claimed yet has to be empty, or hold memories and nothing else, hidden or not."""
    for name in folder.all_names():
        if not name.endswith(".md") and name not in _EXPECTED and not name.startswith(TEMP_PREFIX):
            raise ProjectError(
                f"{folder.path} holds {name!r}, so it does not look like a memory folder; "
                "choose an empty folder, or one with only .md files"
            )
