"""A worktree of its own for an agent, so that what it changes meets nobody else's work.

It lies in a folder of ours, on a branch of its own. With nothing changed in it, it goes when the agent ends;
otherwise it stays, with its branch, for a person to look at. What a killed process left is found by the next
one: a worktree belongs to whoever holds its lock, and the kernel lets go of that.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sevenfold.core.errors import LockBusy, StoreError, WorktreeError
from sevenfold.core.events import Emit, WorktreeKept, ignore
from sevenfold.layers.mail import check_name
from sevenfold.store.folder import Folder
from sevenfold.store.mutex import mutex
from sevenfold.store.offload import durably, to_the_end

WORKTREES = "worktrees"
"""Where they are, in the project's folder under home."""
BRANCH = "sevenfold/"
PATIENCE = timedelta(seconds=120)
"""For git to check out a large repository."""

_SAFE = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "protocol.ext.allow=never"),
)
"""A repository can make git run code of its choosing. Not for us: nobody was asked."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """Where an agent may change what it likes."""

    path: Path
    branch: str
    start: str
    """The commit it was made from."""


@dataclass(slots=True)
class WorktreeEnd:
    """What became of a worktree; filled in when its block ends."""

    tree: Worktree
    kept: str = ""
    """Why it stays; empty: it is gone."""


class Worktrees:
    """The worktrees that agents of one project were given. `control` holds their locks."""

    def __init__(self, root: Path, folder: Path, control: Folder, *, emit: Emit = ignore) -> None:
        self._root, self._folder, self._control, self._emit = root, folder, control, emit

    @asynccontextmanager
    async def make(self, name: str) -> AsyncGenerator[WorktreeEnd]:
        """A worktree for the length of the block, of what is checked in now."""
        check_name(name)
        with ExitStack() as held:
            try:
                await durably(lambda: held.enter_context(mutex(self._control, f"worktree-{name}")))
            except LockBusy as error:
                raise WorktreeError(
                    f"another agent works in the worktree {name!r}; use another name"
                ) from error
            tree = await self._add(name)
            end = WorktreeEnd(tree)
            try:
                yield end
            finally:
                end.kept = await to_the_end(self._settle(tree))

    async def sweep(self) -> tuple[Worktree, ...]:
        """Remove what killed processes left, and name what stays because something was changed in it."""
        kept: list[Worktree] = []
        for name in sorted(os.listdir(self._folder)) if self._folder.is_dir() else ():
            tree = Worktree(self._folder / name, f"{BRANCH}{name}", "")
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
        path, branch = self._folder / name, f"{BRANCH}{name}"
        start = (await _git(self._root, "rev-parse", "--verify", "HEAD^{commit}")).strip()
        if path.exists():
            raise WorktreeError(
                f"{path} is there already, with changes that nobody took over; merge the branch {branch} and "
                f"remove it with `git worktree remove {path}`, or use another name"
            )
        await durably(lambda: path.parent.mkdir(mode=0o700, parents=True, exist_ok=True))
        # A branch that was left without its worktree holds commits, perhaps: git refuses to make it anew.
        await _git(self._root, "worktree", "add", "--quiet", "-b", branch, str(path), start)
        return Worktree(path, branch, start)

    async def _settle(self, tree: Worktree) -> str:
        """Remove it if nothing was changed; else say why it stays."""
        try:
            reason = await self._why_kept(tree)
            if not reason:
                await self._remove(tree)
        except (WorktreeError, OSError) as error:
            reason = str(error)
        if reason:
            self._emit(WorktreeKept(str(tree.path), tree.branch, reason))
        return reason

    async def _why_kept(self, tree: Worktree) -> str:
        if not (tree.path / ".git").exists():
            return await self._why_no_worktree(tree)
        changed = await _git(tree.path, "status", "--porcelain", "--ignored=no", "--untracked-files=all")
        if changed:
            return f"{len(changed.splitlines())} files were changed in it"
        own = (await _git(tree.path, "rev-parse", "HEAD")).strip()
        # Without commits of its own it is at one that another branch has as well.
        others = await _git(
            self._root, "for-each-ref", "--contains", own, "--format=%(refname)", "refs/heads"
        )
        is_shared = any(ref != f"refs/heads/{tree.branch}" for ref in others.splitlines())
        return "" if own == tree.start or is_shared else "it has commits of its own"

    async def _why_no_worktree(self, tree: Worktree) -> str:
        """A kill while git made it leaves a folder with nothing in it, or half of a checkout."""
        return "" if not any(tree.path.iterdir()) else "it was left half-made and holds files"

    async def _remove(self, tree: Worktree) -> None:
        if (tree.path / ".git").exists():
            await _git(self._root, "worktree", "remove", "--force", str(tree.path))
        await durably(lambda: shutil.rmtree(tree.path, ignore_errors=True))
        await _git(self._root, "worktree", "prune")
        with suppress(WorktreeError):  # where a kill came before git had made it
            await _git(self._root, "branch", "--quiet", "-D", tree.branch)


def list_left(folder: Path, control: Folder) -> tuple[Path, ...]:
    """Worktrees that nobody works in any more: changed ones, which stay, and what killed processes left.
    Changes nothing; blocks."""
    names = sorted(os.listdir(folder)) if folder.is_dir() else ()
    return tuple(folder / name for name in names if not _is_held(control, name))


def _is_held(control: Folder, name: str) -> bool:
    lock = f"worktree-{name}"
    if control.entry(f"{lock}.mutex") is None:
        return False
    try:
        with mutex(control, lock, wait=timedelta()):
            return False
    except LockBusy:
        return True


async def _git(folder: Path, *words: str) -> str:
    """What git prints; `WorktreeError` with what it said where it failed."""
    # No terminal and no prompt: whoever asks for a password here waits for ever.
    kept = ("HOME", "PATH", "LANG", "LC_ALL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL")
    environ = {name: os.environ[name] for name in kept if name in os.environ} | {"GIT_TERMINAL_PROMPT": "0"}
    try:
        running = await asyncio.create_subprocess_exec(
            *("git", *_SAFE, "-C", str(folder), *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environ,
            start_new_session=True,
        )
    except OSError as error:
        raise WorktreeError(f"git cannot be run: {error}; an agent needs it for a worktree") from error
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            told, errors = await running.communicate()
    except TimeoutError as error:
        raise WorktreeError(f"git {words[0]} took over {PATIENCE.total_seconds():g} s in {folder}") from error
    finally:
        if running.returncode is None:
            with suppress(ProcessLookupError):
                running.kill()
            await running.wait()
    if running.returncode:
        said = errors.decode("utf-8", "replace").strip()
        raise WorktreeError(f"git {words[0]} failed in {folder}: {said or running.returncode}")
    return told.decode("utf-8", "surrogateescape")
