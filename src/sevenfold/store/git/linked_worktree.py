"""Git's own record of a linked worktree, written as `git worktree add` writes it, without running git.

`git worktree` reads the repository's configuration and runs hooks that it names, so it is not used.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from sevenfold.core.errors import GitError
from sevenfold.store.project.git import read_small

_LOCKED = "locked"
_INITIALIZING = "initializing"
"""Git's own word for a worktree that is being made. Nobody has worked in it yet, so it may be discarded."""
_MOST_SAME_NAMES = 100


def add_record(common: Path, tree: Path, branch: str) -> Path:
    """Make `tree` a worktree of the git folder `common`, on `branch`, with nothing checked out yet.

    Returns its record, which counts as unfinished until `mark_finished`.
    """
    records = common / "worktrees"
    if records.is_symlink():
        raise GitError(f"{records} is a link; worktrees are recorded in the repository itself only")
    records.mkdir(exist_ok=True)
    record = _make_first(records, tree.name)
    _write(record / _LOCKED, _INITIALIZING)
    _write(tree / ".git", f"gitdir: {os.path.realpath(record)}\n")
    _write(record / "gitdir", f"{os.path.realpath(tree)}/.git\n")
    _write(record / "HEAD", f"ref: refs/heads/{branch}\n")
    _write(record / "commondir", "../..\n")
    return record


def mark_finished(record: Path) -> None:
    (record / _LOCKED).unlink()


def mark_unfinished(record: Path) -> None:
    """From now on it is discarded by whoever finds it."""
    (record / _LOCKED).write_text(_INITIALIZING, encoding="utf-8")


def is_unfinished(record: Path) -> bool:
    return (read_small(record / _LOCKED) or b"").strip() == _INITIALIZING.encode()


def is_locked(record: Path) -> bool:
    """Whether somebody said `git worktree lock`."""
    return (record / _LOCKED).exists() and not is_unfinished(record)


def remove_record(record: Path) -> None:
    shutil.rmtree(record)
    with suppress(OSError):  # other worktrees are recorded there
        record.parent.rmdir()


def _make_first(records: Path, name: str) -> Path:
    """A folder under this name, or under the first with a number that is free, as git does."""
    for number in range(_MOST_SAME_NAMES):
        record = records / f"{name}{number or ''}"
        with suppress(FileExistsError):
            record.mkdir()
            return record
    raise GitError(f"{records} holds {_MOST_SAME_NAMES} worktrees named {name}; run `git worktree prune`")


def _write(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
