"""The copy of a repository that git is run on: settings that a checkout depends on, and no others."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from sevenfold.store import safe_git
from sevenfold.store.project.git import GitFolders, find_git_folders, find_records, read_branch
from sevenfold.store.safe_git import (
    GitError,
    add_record,
    find_git,
    init_repository,
    is_locked,
    is_unfinished,
    mark_finished,
    mark_unfinished,
    plain_repository,
    read_git_version,
    remove_record,
    run_git,
    run_git_blocking,
)
from tests.store.repos import git, make_repo


def configuration(repo: Path) -> tuple[str, bool]:
    """What the copy is configured with, and whether objects may be missing in it."""

    async def read() -> tuple[str, bool]:
        async with plain_repository(repo / ".git", repo / ".git" / "HEAD") as plain:
            return await asyncio.to_thread((plain.folder / "config").read_text), plain.is_partial

    return asyncio.run(read())


def test_settings_that_a_checkout_depends_on_are_copied_and_no_others(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    git(repo, "config", "core.autocrlf", "input")
    git(repo, "config", "core.ignorecase", "TRUE")
    git(repo, "config", "core.hooksPath", str(tmp_path))
    text, is_partial = configuration(repo)
    assert "autocrlf = input" in text
    assert "ignorecase = true" in text
    assert "hooks" not in text
    assert not is_partial


def test_a_value_that_no_setting_has_is_left_out(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    git(repo, "config", "core.eol", "lf\n[core]\nhooksPath = /tmp")
    assert "eol" not in configuration(repo)[0]


def test_a_repository_whose_objects_may_be_missing_is_known(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    git(repo, "config", "extensions.partialClone", "far")
    assert configuration(repo)[1]


def test_refs_in_another_format_are_refused(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    with (repo / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write("[extensions]\n\trefStorage = reftable\n")
    with pytest.raises(GitError, match="keeps its refs in a format other than files"):
        configuration(repo)


def test_a_repository_without_a_configuration_has_no_settings(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / ".git" / "config").unlink()
    text, is_partial = configuration(repo)
    assert "autocrlf" not in text
    assert not is_partial
    (repo / ".git" / "HEAD").unlink()
    with pytest.raises(GitError, match=r"is .* a git repository"):
        configuration(repo)


def test_git_is_run_on_commits_and_on_a_checkout_of_ones_own(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / "a.txt").write_text("x")

    async def ask() -> tuple[str, str]:
        async with plain_repository(repo / ".git", repo / ".git" / "HEAD") as plain:
            head = await plain.git("rev-parse", "HEAD")
            return head, await plain.git_in(repo, tmp_path / "index", "status", "--porcelain")

    head, status = asyncio.run(ask())
    assert head == git(repo, "rev-parse", "HEAD")
    assert status == "?? a.txt\n"


def test_a_repository_made_here_has_nothing_from_a_template(tmp_path: Path) -> None:
    init_repository(tmp_path)
    assert not (tmp_path / ".git" / "hooks").exists()
    assert run_git_blocking(tmp_path, "rev-parse", "--is-inside-work-tree") == "true\n"
    with pytest.raises(GitError, match="failed: "):
        run_git_blocking(tmp_path, "rev-parse", "--verify", "nothing")


def test_git_is_found_by_absolute_entries_of_the_search_path_alone(tmp_path: Path) -> None:
    found = find_git(os.environ)
    assert found is not None
    assert os.path.isabs(found)
    planted = tmp_path / "git"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    assert find_git({"PATH": os.path.relpath(tmp_path)}) is None
    assert find_git({"PATH": str(tmp_path)}) == str(planted)
    assert read_git_version(os.environ, timedelta(minutes=5)).startswith("git version")
    with pytest.raises(GitError, match="not on the search path"):
        read_git_version({"PATH": ""}, timedelta(minutes=5))


def test_a_git_that_takes_too_long_or_cannot_be_started_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(safe_git, "TIMEOUT", timedelta(milliseconds=50))
    with pytest.raises(GitError, match=r"took over 0\.05 s"):
        asyncio.run(run_git(tmp_path, "status", variables={}))
    with pytest.raises(GitError, match=r"took over 0\.05 s"):
        run_git_blocking(tmp_path, "status")
    slow.write_text("#!/no/such/interpreter\n")
    with pytest.raises(GitError, match="cannot be run"):
        asyncio.run(run_git(tmp_path, "status", variables={}))
    with pytest.raises(GitError, match="cannot be run"):
        run_git_blocking(tmp_path, "status")


# Worktrees.


def test_a_worktree_recorded_here_is_one_to_git(tmp_path: Path) -> None:
    repo, tree = make_repo(tmp_path / "repo"), tmp_path / "tree"
    tree.mkdir()
    git(repo, "branch", "side")
    record = add_record(repo / ".git", tree, "side")
    assert is_unfinished(record)
    assert not is_locked(record)
    mark_finished(record)
    assert not is_unfinished(record)
    assert git(tree, "rev-parse", "--abbrev-ref", "HEAD") == "side\n"
    assert str(tree) in git(repo, "worktree", "list")
    assert read_branch(tree) == "side"
    assert find_records(repo / ".git", tree) == (record,)
    assert find_git_folders(tree) == GitFolders(record, repo / ".git")
    git(repo, "worktree", "lock", str(tree))
    assert is_locked(record)
    mark_unfinished(record)
    assert not is_locked(record)
    remove_record(record)
    assert not (repo / ".git" / "worktrees").exists()
    assert find_records(repo / ".git", tree) == ()


def test_worktrees_of_one_name_are_numbered_and_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo(tmp_path / "repo")
    monkeypatch.setattr(safe_git, "_MOST_SAME_NAMES", 2)
    trees = [tmp_path / str(n) / "tree" for n in range(3)]
    for tree in trees:
        tree.mkdir(parents=True)
    records = [add_record(repo / ".git", tree, "main") for tree in trees[:2]]
    assert [record.name for record in records] == ["tree", "tree1"]
    with pytest.raises(GitError, match="holds 2 worktrees named tree"):
        add_record(repo / ".git", trees[2], "main")
    remove_record(records[0])
    assert records[1].exists()


def test_worktrees_are_recorded_in_the_repository_itself(tmp_path: Path) -> None:
    repo, tree = make_repo(tmp_path / "repo"), tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (repo / ".git" / "worktrees").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(GitError, match="is a link"):
        add_record(repo / ".git", tree, "main")
    assert find_records(repo / ".git", tree) == ()


def test_the_branch_of_a_checkout_is_read_from_its_head(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    assert read_branch(repo) == "main"
    git(repo, "checkout", "--quiet", "-b", "feature/one")
    assert read_branch(repo) == "feature/one"
    commit = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "checkout", "--quiet", "--detach")
    assert read_branch(repo) == commit[:12]
    (repo / ".git" / "HEAD").write_text(f"ref: refs/heads/{'x' * 300}\nsecond line\n")
    assert read_branch(repo) == "x" * 250
    (repo / ".git" / "HEAD").write_text("a line of another file, to which HEAD is a link\n")
    assert read_branch(repo) == ""
    assert read_branch(tmp_path) == ""


def test_git_folders_are_found_of_a_checkout_and_of_a_bare_repository(tmp_path: Path) -> None:
    repo, bare = make_repo(tmp_path / "repo"), tmp_path / "bare"
    git(tmp_path, "clone", "--quiet", "--bare", str(repo), str(bare))
    assert find_git_folders(repo) == GitFolders(repo / ".git", repo / ".git")
    assert find_git_folders(bare) == GitFolders(bare, bare)
    assert find_git_folders(tmp_path) is None
    (repo / ".git" / "HEAD").unlink()
    assert find_git_folders(repo) is None
