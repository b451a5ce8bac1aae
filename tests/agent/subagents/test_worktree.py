"""A worktree for an agent: gone when nothing was changed, kept and named otherwise, found after a crash."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from sevenfold.agent.subagents.worktree import Worktree, WorktreeOutcome, Worktrees
from sevenfold.core.errors import InputError, WorktreeError
from sevenfold.core.events import Event, WorktreeKept
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.git import find_project_root
from sevenfold.store.safe_git import add_record
from tests.store.repos import git, make_repo


def idle(tree: Worktree) -> None:
    """An agent that changes nothing."""


class Yard:
    """A repository, and the worktrees of its agents."""

    def __init__(self, place: Path, control: Folder) -> None:
        self.root = make_repo(place / "repo")
        (self.root / "a.txt").write_text("one\n")
        git(self.root, "add", "a.txt")
        git(self.root, "commit", "--quiet", "-m", "second")
        self.folder = place / "trees"
        self.events: list[Event] = []
        self.trees = Worktrees(self.root, self.folder, control, emit=self.events.append)

    def use(self, name: str, work: Callable[[Worktree], object]) -> WorktreeOutcome:
        async def run() -> WorktreeOutcome:
            async with self.trees.make(name) as end:
                work(end.tree)
            return end

        return asyncio.run(run())

    def sweep(self) -> list[str]:
        return [tree.path.name for tree in asyncio.run(self.trees.sweep())]

    @property
    def left(self) -> list[str]:
        """What git still knows of, beside the repository itself."""
        trees = git(self.root, "worktree", "list", "--porcelain").split("\n\n")
        branches = git(self.root, "branch", "--format=%(refname:short)").splitlines()
        folders = [folder.name for folder in self.folder.iterdir()] if self.folder.exists() else []
        return [*trees[1:-1], *(name for name in branches if "/" in name), *folders]


@pytest.fixture
def yard(tmp_path: Path) -> Generator[Yard]:
    with Folder.open(tmp_path / "control", create=True) as control:
        yield Yard(tmp_path, control)


def test_a_worktree_in_which_nothing_was_changed_leaves_nothing(yard: Yard) -> None:
    end = yard.use("ada", lambda tree: (tree.path / "a.txt").read_text())
    assert end.kept == ""
    assert yard.left == []
    assert yard.events == []


def test_a_worktree_shows_what_is_checked_in_and_belongs_to_the_same_project(yard: Yard) -> None:
    (yard.root / "a.txt").write_text("not checked in\n")
    seen: list[object] = []
    yard.use(
        "ada", lambda tree: seen.extend([(tree.path / "a.txt").read_text(), find_project_root(tree.path)])
    )
    assert seen == ["one\n", yard.root]
    assert (yard.root / "a.txt").read_text() == "not checked in\n"


def test_a_worktree_with_a_changed_file_stays_and_is_named(yard: Yard) -> None:
    end = yard.use("ada", lambda tree: (tree.path / "new.txt").write_text("mine"))
    assert "1 file was changed" in end.kept
    assert (yard.folder / "ada" / "new.txt").read_text() == "mine"
    assert yard.events == [WorktreeKept(str(yard.folder / "ada"), "sevenfold/ada", end.kept)]


def test_a_worktree_with_a_commit_stays_with_its_branch(yard: Yard) -> None:
    def commit(tree: Worktree) -> None:
        git(tree.path, "commit", "--quiet", "--allow-empty", "-m", "mine")

    assert yard.use("ada", commit).kept == "it has commits of its own"
    assert "mine" in git(yard.root, "log", "-1", "--format=%s", "sevenfold/ada")


def test_work_that_was_merged_meanwhile_need_not_stay(yard: Yard) -> None:
    def commit_and_merge(tree: Worktree) -> None:
        git(tree.path, "commit", "--quiet", "--allow-empty", "-m", "mine")
        git(yard.root, "merge", "--quiet", tree.branch)

    assert yard.use("ada", commit_and_merge).kept == ""
    assert yard.left == []


def test_a_name_that_still_has_changes_is_not_used_again(yard: Yard) -> None:
    yard.use("ada", lambda tree: (tree.path / "new.txt").write_text("mine"))
    with pytest.raises(WorktreeError, match="changes that nobody took over"):
        yard.use("ada", idle)
    assert (yard.folder / "ada" / "new.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["../up", "a b", ""])
def test_a_name_that_is_no_name_makes_no_worktree(yard: Yard, name: str) -> None:
    with pytest.raises(InputError, match="names no agent"):
        yard.use(name, idle)
    assert yard.left == []


def test_a_hook_of_the_repository_is_not_run(yard: Yard) -> None:
    hook = yard.root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {yard.root}/ran\n")
    hook.chmod(0o755)
    yard.use("ada", idle)
    assert not (yard.root / "ran").exists()


def test_a_folder_without_a_repository_is_refused_with_what_git_said(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with Folder.open(tmp_path / "control", create=True) as control:
        trees = Worktrees(tmp_path / "plain", tmp_path / "trees", control)

        async def run() -> None:
            async with trees.make("ada"):
                pass

        with pytest.raises(WorktreeError, match="not a git repository"):
            asyncio.run(run())


def test_an_agent_that_is_cancelled_leaves_no_worktree(yard: Yard) -> None:
    async def run() -> None:
        ready = asyncio.Event()

        async def work() -> None:
            async with yard.trees.make("ada"):
                ready.set()
                await asyncio.Event().wait()

        working = asyncio.create_task(work())
        await ready.wait()
        working.cancel()
        await asyncio.wait({working})
        assert working.cancelled()

    asyncio.run(run())
    assert yard.left == []


CHILD = """
import asyncio, sys
from pathlib import Path
from sevenfold.agent.subagents.worktree import Worktrees
from sevenfold.store.files.folder import Folder

async def run():
    place = Path(sys.argv[1])
    with Folder.open(place / "control") as control:
        async with Worktrees(place / "repo", place / "trees", control).make(sys.argv[2]) as end:
            if sys.argv[3]:
                (end.tree.path / sys.argv[3]).write_text("mine")
            print("ready", flush=True)
            await asyncio.Event().wait()

asyncio.run(run())
"""


@pytest.mark.story
def test_what_a_killed_process_left_is_removed_by_the_next_unless_something_was_changed(
    yard: Yard, tmp_path: Path
) -> None:
    for name, file in (("idle", ""), ("busy", "new.txt")):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path), name, file], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert yard.sweep() == [], "its owner lives"
        assert (yard.folder / name / "a.txt").exists()
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert yard.sweep() == ["busy"]
    assert (yard.folder / "busy" / "new.txt").read_text() == "mine"
    assert not (yard.folder / "idle").exists()
    assert "sevenfold/idle" not in git(yard.root, "branch")


def test_a_worktree_that_was_never_finished_is_removed(yard: Yard) -> None:
    (yard.folder / "ada").mkdir(parents=True)
    assert yard.sweep() == []
    assert yard.left == []


def test_git_knows_the_worktree_as_one_of_its_own(yard: Yard) -> None:
    seen: list[str] = []

    def look(tree: Worktree) -> None:
        seen.append(git(tree.path, "status", "--porcelain", "--branch"))
        seen.append(git(tree.path, "rev-parse", "--git-common-dir"))
        seen.append(git(yard.root, "worktree", "list", "--porcelain"))
        git(yard.root, "worktree", "prune")
        git(yard.root, "fsck")

    assert yard.use("ada", look).kept == ""
    assert seen[0] == "## sevenfold/ada\n"
    assert seen[1].strip() == str(yard.root / ".git")
    assert f"worktree {yard.folder / 'ada'}\n" in seen[2]
    assert "locked" not in seen[2]
    assert yard.left == []
    assert not (yard.root / ".git" / "worktrees").exists()


def test_a_worktree_is_made_where_refs_are_packed_and_head_is_detached(yard: Yard) -> None:
    def pack(tree: Worktree) -> None:
        git(yard.root, "pack-refs", "--all")

    git(yard.root, "checkout", "--quiet", "--detach")
    git(yard.root, "commit", "--quiet", "--allow-empty", "-m", "on no branch")
    assert yard.use("ada", pack).kept == ""
    assert yard.left == []
    assert "main" in git(yard.root, "branch")


@pytest.mark.parametrize("options", [("--object-format=sha256",), ("--separate-git-dir", "../elsewhere.git")])
def test_a_worktree_is_made_of_other_kinds_of_repositories(tmp_path: Path, options: tuple[str, ...]) -> None:
    root = make_repo(tmp_path / "other", *options)
    (root / "a.txt").write_text("one\n")
    git(root, "add", "a.txt")
    git(root, "commit", "--quiet", "-m", "second")
    seen: list[str] = []

    async def run(control: Folder) -> WorktreeOutcome:
        async with Worktrees(root, tmp_path / "trees", control).make("ada") as end:
            seen.append((end.tree.path / "a.txt").read_text() + git(end.tree.path, "status", "--porcelain"))
        return end

    with Folder.open(tmp_path / "control", create=True) as control:
        assert asyncio.run(run(control)).kept == ""
    assert seen == ["one\n"]
    assert "sevenfold" not in git(root, "branch")


def test_commits_that_only_the_branch_has_keep_the_worktree_after_a_switch(yard: Yard) -> None:
    def commit_and_leave(tree: Worktree) -> None:
        git(tree.path, "commit", "--quiet", "--allow-empty", "-m", "mine")
        git(tree.path, "checkout", "--quiet", "--detach", "main")

    assert yard.use("ada", commit_and_leave).kept == "it has commits of its own"
    assert "mine" in git(yard.root, "log", "-1", "--format=%s", "sevenfold/ada")


def test_a_branch_that_was_left_is_not_made_anew_and_not_deleted(yard: Yard) -> None:
    git(yard.root, "checkout", "--quiet", "-b", "sevenfold/ada")
    git(yard.root, "commit", "--quiet", "--allow-empty", "-m", "left")
    git(yard.root, "checkout", "--quiet", "main")
    with pytest.raises(WorktreeError, match=r"the branch sevenfold/ada exists already.*git branch -D"):
        yard.use("ada", idle)
    assert "left" in git(yard.root, "log", "-1", "--format=%s", "sevenfold/ada")
    assert yard.left == ["sevenfold/ada"]


def test_a_worktree_that_was_killed_while_files_were_written_is_removed(yard: Yard) -> None:
    path = yard.folder / "ada"
    path.mkdir(parents=True)
    add_record(yard.root / ".git", path, "sevenfold/ada")
    git(yard.root, "branch", "sevenfold/ada")
    (path / "a.txt").write_text("o")
    assert yard.sweep() == []
    assert yard.left == []
    assert not (yard.root / ".git" / "worktrees").exists()


def test_a_worktree_that_somebody_locked_stays(yard: Yard) -> None:
    end = yard.use("ada", lambda tree: git(yard.root, "worktree", "lock", str(tree.path)))
    assert end.kept == "it is locked"
    assert (yard.folder / "ada" / "a.txt").exists()


def test_a_records_folder_that_leads_elsewhere_is_not_written_to(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (yard.root / ".git" / "worktrees").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorktreeError, match="is a link"):
        yard.use("ada", idle)
    assert list((tmp_path / "elsewhere").iterdir()) == []
