"""The copy of a repository that git is run on: settings that a checkout depends on, and no others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sevenfold.store.safe_git import GitError, plain_repository
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
