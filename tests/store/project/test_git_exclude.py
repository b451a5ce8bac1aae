"""A file is kept out of git by the repository's own list, and by nothing that a repository could plant."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sevenfold.store.project.user_files import exclude_from_git

NAME = ".sevenfold/settings.local.toml"


def git(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "Begin")
    return folder


def write_settings(folder: Path) -> None:
    (folder / ".sevenfold").mkdir()
    (folder / NAME).write_text("[permissions]\n", encoding="utf-8")


@pytest.mark.parametrize("is_worktree", [False, True])
def test_git_does_not_list_the_file(project: Path, is_worktree: bool) -> None:
    folder = project
    if is_worktree:
        git(project, "worktree", "add", "-q", "../tree")
        folder = project.parent / "tree"
    write_settings(folder)
    assert NAME.partition("/")[0] in git(folder, "status", "--porcelain")
    assert exclude_from_git(folder, NAME) == ""
    assert exclude_from_git(folder, NAME) == "", "again changes nothing"
    assert git(folder, "status", "--porcelain") == ""
    assert (project / ".git/info/exclude").read_text().count(NAME) == 1


def test_a_last_line_without_an_end_stays_a_line(project: Path) -> None:
    exclude = project / ".git/info/exclude"
    exclude.write_bytes(b"*.log")
    assert exclude_from_git(project, NAME) == ""
    assert exclude.read_bytes() == f"*.log\n/{NAME}\n".encode()


def test_nothing_is_written_through_what_a_repository_planted(project: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    git(victim, "init", "-q")
    prey, exclude = tmp_path / "bashrc", project / ".git/info/exclude"
    prey.write_text("mine\n", encoding="utf-8")
    before = (victim / ".git/info/exclude").read_bytes()

    exclude.unlink()
    exclude.symlink_to(prey)
    assert "link" in exclude_from_git(project, NAME)

    exclude.unlink()
    exclude.parent.rmdir()
    exclude.parent.symlink_to(victim / ".git/info")
    assert "link" in exclude_from_git(project, NAME)

    (project / ".git/commondir").write_text(str(victim / ".git"), encoding="utf-8")
    assert "does not name" in exclude_from_git(project, NAME)

    thief = tmp_path / "thief"
    thief.mkdir()
    for text in (f"gitdir: {victim}/.git\n", f"gitdir: {project}/.git\n"):
        (thief / ".git").write_text(text, encoding="utf-8")
        assert "does not name" in exclude_from_git(thief, NAME)
    (thief / ".git").unlink()
    (thief / ".git").symlink_to(victim / ".git")
    assert "does not name" in exclude_from_git(thief, NAME)

    assert prey.read_text() == "mine\n"
    assert (victim / ".git/info/exclude").read_bytes() == before


def test_a_list_that_cannot_be_written_is_a_reason_and_no_error(project: Path) -> None:
    exclude = project / ".git/info/exclude"
    exclude.unlink(missing_ok=True)
    exclude.mkdir()
    assert str(exclude) in exclude_from_git(project, NAME)
    assert exclude_from_git(project.parent, NAME) != ""
