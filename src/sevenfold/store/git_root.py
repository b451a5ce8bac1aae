"""Which project a folder belongs to: the canonical root of its git repository, the same from every worktree.

Read from git's own files, without running git: a repository can make git run code of its choosing.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from sevenfold.core.events import Emit, WorktreeDisowned, ignore

_MAX_POINTER_BYTES = 8192


def find_root(start: Path, *, emit: Emit = ignore) -> Path:
    """The root that names the project `start` lies in; `start` itself where there is no repository."""
    here = real_path(start)
    for folder in (here, *here.parents):
        mark = folder / ".git"
        if mark.is_dir():
            return folder
        if mark.is_file():
            return _main_root(folder, mark, emit)
    return here


def real_path(path: Path) -> Path:
    """The one name a folder has: links resolved and, where names ignore case, in the case it was made in."""
    resolved = Path(os.path.realpath(path))
    if not hasattr(fcntl, "F_GETPATH") or not resolved.exists():
        return resolved
    fd = os.open(resolved, os.O_RDONLY | os.O_CLOEXEC)
    try:
        answer = fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024))
    finally:
        os.close(fd)
    return Path(os.fsdecode(answer.rstrip(b"\0")))


def _main_root(folder: Path, mark: Path, emit: Emit) -> Path:
    """The repository a `.git` file points to, if that repository points back; else the folder itself."""
    git_dir = _pointed_to(mark, b"gitdir:", folder)
    if git_dir is None:
        return folder
    common = _pointed_to(git_dir / "commondir", b"", git_dir)
    if common is None:
        return folder  # a submodule, or a repository whose git folder lies elsewhere: a project of its own
    back = _pointed_to(git_dir / "gitdir", b"", git_dir)
    if git_dir.parent != common / "worktrees" or back is None or real_path(back) != real_path(mark):
        # Anybody can write a `.git` file. Without the way back it would hand them another project's memory.
        emit(WorktreeDisowned(str(folder), str(common)))
        return folder
    return common.parent if common.name == ".git" else common


def _pointed_to(file: Path, label: bytes, base: Path) -> Path | None:
    """The real path that one of git's pointer files names."""
    try:
        with file.open("rb") as handle:
            content = handle.read(_MAX_POINTER_BYTES)
    except OSError:
        return None
    if not content.startswith(label):
        return None
    target = os.fsdecode(content[len(label) :].strip())
    return real_path(base / target) if target and "\0" not in target else None
