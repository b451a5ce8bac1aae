"""A git worktree for an agent, so that its changes do not collide with other work.

It lies in our own folder, on a branch of its own. If nothing was changed in it, it is removed when the agent
ends; otherwise it stays, with its branch, for a person to look at. The next process finds what a killed one
left: a worktree belongs to the process that holds its lock, and the kernel releases locks.

A repository can name programs for git to run. Nobody has agreed to those, so git never reads the repository's
configuration: see `store/safe_git.py`. Nor is a git folder
used that belongs to another checkout, or one whose parts are links: its files would come from elsewhere.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sevenfold.core.errors import GitError, LockBusy, StoreError, WorktreeError
from sevenfold.core.events import Emit, WorktreeKept, ignore_event
from sevenfold.core.system import await_shielded, run_blocking
from sevenfold.layers.forks.policy import check_agent_name
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.project.git import GitFolders, find_own_git_folders, find_records
from sevenfold.store.safe_git import (
    PlainRepository,
    add_record,
    is_locked,
    is_unfinished,
    mark_finished,
    mark_unfinished,
    plain_repository,
    remove_record,
)

WORKTREES_FOLDER = "worktrees"
"""Where they are, in the project's folder under home."""
BRANCH_PREFIX = "sevenfold/"
_SUBMODULE = "160000"
"""How git lists a submodule in place of a file's mode."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """Where an agent may change what it likes."""

    path: Path
    branch: str
    start: str
    """The commit it was made from."""


@dataclass(slots=True)
class WorktreeOutcome:
    """What became of a worktree; filled in when its block ends."""

    tree: Worktree
    kept: str = ""
    """Why it stays; empty: it is gone."""


class Worktrees:
    """The worktrees that agents of one project were given. `control` holds their locks."""

    def __init__(self, root: Path, folder: Path, control: Folder, *, emit: Emit = ignore_event) -> None:
        self._root, self._folder, self._control, self._emit = root, folder, control, emit

    @asynccontextmanager
    async def make(self, name: str) -> AsyncGenerator[WorktreeOutcome]:
        """A worktree for the length of the block, of what is checked in now."""
        check_agent_name(name)
        with ExitStack() as stack:
            try:
                await run_blocking(lambda: stack.enter_context(mutex(self._control, f"worktree-{name}")))
            except LockBusy as error:
                raise WorktreeError(
                    f"another agent works in the worktree {name!r}; use another name"
                ) from error
            tree = await self._add(name)
            end = WorktreeOutcome(tree)
            try:
                yield end
            finally:
                end.kept = await await_shielded(self._settle(tree))

    async def sweep(self) -> tuple[Worktree, ...]:
        """Remove what killed processes left, and name what stays because something was changed in it."""
        kept: list[Worktree] = []
        for name in sorted(os.listdir(self._folder)) if self._folder.is_dir() else ():
            tree = Worktree(self._folder / name, f"{BRANCH_PREFIX}{name}", "")
            try:
                with mutex(self._control, f"worktree-{name}", wait=timedelta()):
                    if await self._settle(tree):
                        kept.append(tree)
            except LockBusy:
                continue  # somebody works there
            except StoreError as error:
                self._emit(WorktreeKept(str(tree.path), tree.branch, str(error)))
        return tuple(kept)

    async def _add(self, name: str) -> Worktree:
        path, branch = self._folder / name, f"{BRANCH_PREFIX}{name}"
        try:
            folders = self._find_folders()
            async with plain_repository(folders.common, folders.own / "HEAD") as repository:
                start = (await repository.git("rev-parse", "--verify", "HEAD^{commit}")).strip()
                if path.exists():
                    raise WorktreeError(
                        f"{path} is there already, with changes that nobody took over; merge the branch "
                        f"{branch} and remove it with `git worktree remove {path}`, or use another name"
                    )
                tree = Worktree(path, branch, start)
                await run_blocking(lambda: path.parent.mkdir(mode=0o700, parents=True, exist_ok=True))
                await run_blocking(lambda: path.mkdir(mode=0o700))
                try:
                    await self._check_out(tree, folders.common, repository)
                except BaseException:
                    await await_shielded(self._discard(tree, folders, repository))
                    raise
                return tree
        except (GitError, OSError) as error:
            raise WorktreeError(f"no worktree was made of {self._root}: {error}") from error

    async def _check_out(self, tree: Worktree, common: Path, repository: PlainRepository) -> None:
        record = await run_blocking(lambda: add_record(common, tree.path, tree.branch))
        # A branch that was left without its worktree holds commits, perhaps: it is not made anew.
        if await _read_tip(repository, tree):
            raise WorktreeError(
                f"the branch {tree.branch} exists already; merge it, or delete it with "
                f"`git branch -D {tree.branch}`, or use another name"
            )
        nothing = "0" * len(tree.start)
        await repository.git("update-ref", f"refs/heads/{tree.branch}", tree.start, nothing)
        try:
            await repository.git_in(tree.path, record / "index", "read-tree", "--reset", "-u", tree.start)
        except GitError as error:
            if repository.is_partial:
                raise GitError(
                    f"{error}; this is a partial clone, whose missing files are not fetched for a worktree: "
                    "start the agent without worktree, or work in a full clone"
                ) from error
            raise
        await run_blocking(lambda: mark_finished(record))

    def _find_folders(self) -> GitFolders:
        found = find_own_git_folders(self._root)
        if found is None:
            raise GitError(
                f"{self._root} is not a git repository, or its .git leads to a folder that does not name it"
            )
        return found

    async def _settle(self, tree: Worktree) -> str:
        """Remove it if nothing was changed; else say why it stays."""
        try:
            folders = self._find_folders()
            records = find_records(folders.common, tree.path)
            is_ours = all(is_unfinished(record) for record in records)
            head = folders.own / "HEAD" if is_ours else records[0] / "HEAD"
            async with plain_repository(folders.common, head) as repository:
                reason = await (
                    _why_no_worktree(tree, records) if is_ours else _why_kept(tree, records[0], repository)
                )
                if not reason:
                    await self._discard(tree, folders, repository)
        except (GitError, OSError) as error:
            reason = str(error)
        if reason:
            self._emit(WorktreeKept(str(tree.path), tree.branch, reason))
        return reason

    async def _discard(self, tree: Worktree, folders: GitFolders, repository: PlainRepository) -> None:
        """Remove the worktree, its record, and its branch where no commit is lost with it.

        The folder itself goes last: by it, and by the mark, the next process finds what a kill left here.
        """
        records = find_records(folders.common, tree.path)
        for record in records:
            await run_blocking(lambda record=record: mark_unfinished(record))
        tip = await _read_tip(repository, tree) if records else ""
        if tip and not await _has_own_commits(tree, tip, repository):
            await repository.git("update-ref", "-d", f"refs/heads/{tree.branch}", tip)
        await run_blocking(lambda: _empty(tree.path))
        for record in records:
            await run_blocking(lambda record=record: remove_record(record))
        await run_blocking(lambda: shutil.rmtree(tree.path, ignore_errors=True))


async def _why_no_worktree(tree: Worktree, records: tuple[Path, ...]) -> str:
    """A kill while it was made leaves a folder with nothing in it, or half of a checkout."""
    is_empty = not any(tree.path.iterdir())
    return "" if records or is_empty else "it was left half-made and holds files"


async def _why_kept(tree: Worktree, record: Path, repository: PlainRepository) -> str:
    if is_locked(record):
        return "it is locked"
    index = record / "index"
    # A submodule has a configuration of its own, which git would read to look for changes in it.
    asked = ("status", "--porcelain", "--ignored=no", "--untracked-files=all", "--ignore-submodules=dirty")
    changed = await repository.git_in(tree.path, index, *asked)
    if changed:
        count = len(changed.splitlines())
        return f"{count} files were changed in it" if count > 1 else "1 file was changed in it"
    listed = await repository.git_in(tree.path, index, "ls-files", "--stage", "-z")
    modules = [line.partition("\t")[2] for line in listed.split("\0") if line.startswith(_SUBMODULE)]
    filled = [name for name in modules if (tree.path / name).is_dir() and any((tree.path / name).iterdir())]
    if filled:
        return f"the submodule {filled[0]} was checked out in it"
    own = (await repository.git("rev-parse", "--verify", "HEAD^{commit}")).strip()
    for commit in {own, await _read_tip(repository, tree) or own}:
        if await _has_own_commits(tree, commit, repository):
            return "it has commits of its own"
    return ""


async def _has_own_commits(tree: Worktree, commit: str, repository: PlainRepository) -> bool:
    # Without commits of its own it is at one that another branch has as well.
    others = await repository.git("for-each-ref", "--contains", commit, "--format=%(refname)", "refs/heads")
    is_shared = any(ref != f"refs/heads/{tree.branch}" for ref in others.splitlines())
    return commit != tree.start and not is_shared


async def _read_tip(repository: PlainRepository, tree: Worktree) -> str:
    """The commit that the branch of a worktree is at; empty where there is no such branch."""
    branch = f"refs/heads/{tree.branch}"
    listed = await repository.git("for-each-ref", "--format=%(refname) %(objectname)", branch)
    # A pattern also finds what lies below it.
    tips = (line.partition(" ") for line in listed.splitlines())
    return next((commit for ref, _, commit in tips if ref == branch), "")


def _empty(folder: Path) -> None:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)


def list_leftover_worktrees(folder: Path, control: Folder) -> tuple[Path, ...]:
    """Worktrees that nobody works in any more: changed ones, which stay, and what killed processes left.
    Changes nothing; blocks."""
    names = sorted(os.listdir(folder)) if folder.is_dir() else ()
    return tuple(folder / name for name in names if not _is_locked(control, name))


def _is_locked(control: Folder, name: str) -> bool:
    lock = f"worktree-{name}"
    if control.stat(f"{lock}.mutex") is None:
        return False
    try:
        with mutex(control, lock, wait=timedelta()):
            return False
    except LockBusy:
        return True
