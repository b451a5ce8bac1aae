"""Whether git tracks a file is read from every form of index that git itself writes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.store.project.git import read_presence, read_tracking

WANTED = frozenset({".sevenfold/settings.local.toml"})
NEIGHBOURS = (
    ".gitignore",
    ".sevenfold/settings.local",
    ".sevenfold/settings.toml",
    "a/very/" + "long/" * 60 + "x",
)


def git(root: Path, *command: str) -> None:
    subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)


def repository(root: Path, *options: str) -> Path:
    git(root, "init", *options)
    for name in NEIGHBOURS:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return root


def track(root: Path, name: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("theirs")
    git(root, "add", "-f", name)


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("objects", ["sha1", "sha256"])
def test_every_version_of_the_index_is_read(tmp_path: Path, version: str, objects: str) -> None:
    root = repository(tmp_path, f"--object-format={objects}")
    git(root, "config", "index.version", version)
    git(root, "add", "-f", ".")
    if version == "3":
        git(root, "rm", "--cached", ".gitignore")
        git(root, "add", "-f", "--intent-to-add", ".gitignore")
        assert (root / ".git/index").read_bytes()[4:8] == b"\0\0\0\3"
    assert read_tracking(root, WANTED) == "untracked"
    track(root, ".sevenfold/settings.local.toml")
    assert read_tracking(root, WANTED) == "tracked"


def test_a_split_index_is_read_in_both_parts(tmp_path: Path) -> None:
    root = repository(tmp_path)
    track(root, ".sevenfold/settings.local.toml")
    git(root, "update-index", "--split-index")
    track(root, "another")
    assert list((root / ".git").glob("sharedindex.*"))
    assert read_tracking(root, WANTED) == "tracked"


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("objects", ["sha1", "sha256"])
def test_a_part_of_a_split_index_without_names_is_read(tmp_path: Path, objects: str, version: str) -> None:
    root = repository(tmp_path, f"--object-format={objects}")
    git(root, "config", "index.version", version)
    track(root, "another")
    git(root, "update-index", "--split-index")
    (root / "another").write_text("changed")
    git(root, "add", "-f", "another")
    assert read_tracking(root, WANTED) == "untracked"
    assert read_tracking(root, frozenset({"another"})) == "tracked"


def test_case_does_not_hide_a_tracked_file(tmp_path: Path) -> None:
    root = repository(tmp_path)
    track(root, ".SevenFold/Settings.Local.toml")
    assert read_tracking(root, WANTED) == "tracked"


def test_a_worktree_has_its_own_index(tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    repository(main)
    git(main, "commit", "--allow-empty", "-m", "start")
    git(main, "worktree", "add", str(tmp_path / "tree"))
    assert read_tracking(tmp_path / "tree", WANTED) == "untracked"
    track(tmp_path / "tree", ".sevenfold/settings.local.toml")
    assert read_tracking(tmp_path / "tree", WANTED) == "tracked"
    assert read_tracking(main, WANTED) == "untracked"


def test_without_a_repository_or_an_index_nobody_knows_what_is_tracked(tmp_path: Path) -> None:
    assert read_tracking(tmp_path, WANTED) == "unknown"
    git(tmp_path, "init")
    assert read_tracking(tmp_path, WANTED) == "unknown"
    track(tmp_path, "another")
    assert read_tracking(tmp_path, WANTED) == "untracked"


@pytest.mark.parametrize("pointer", ["", "elsewhere", "gitdir", "gitdir: ", "gitdir: gone", "\0"])
def test_a_pointer_that_points_nowhere_is_unknown(tmp_path: Path, pointer: str) -> None:
    (tmp_path / ".git").write_text(pointer)
    assert read_tracking(tmp_path, WANTED) == "unknown"


@given(st.integers(0, 400), st.binary(min_size=1, max_size=8))
def test_a_damaged_index_never_fails_and_never_hides_by_accident(
    tmp_path_factory: pytest.TempPathFactory, cut: int, noise: bytes
) -> None:
    root = tmp_path_factory.mktemp("repository")
    (root / ".git").mkdir()
    entry = bytes(60) + b"\0\x05" + b"a.txt" + bytes(3 + 2)
    whole = b"DIRC" + (2).to_bytes(4) + (3).to_bytes(4) + entry * 3
    (root / ".git/index").write_bytes(whole[:cut] + noise)
    assert read_tracking(root, WANTED) in ("unknown", "untracked")
    (root / ".git/index").write_bytes(noise)
    assert read_tracking(root, WANTED) == "unknown"


def test_a_pipe_in_place_of_an_index_is_not_waited_for(tmp_path: Path) -> None:
    git(tmp_path, "init")
    os.mkfifo(tmp_path / ".git/index")
    assert read_tracking(tmp_path, WANTED) == "unknown"


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("objects", ["sha1", "sha256"])
def test_the_files_of_a_checkout_are_told_from_a_copy(tmp_path: Path, version: str, objects: str) -> None:
    root = tmp_path / "work"
    root.mkdir()
    repository(root, f"--object-format={objects}")
    assert read_presence(root / ".git", root) == "unknown"
    git(root, "config", "index.version", version)
    git(root, "add", "-f", ".")
    shutil.copytree(root, tmp_path / "copy")
    assert read_presence(root / ".git", root) == "here"
    assert read_presence(root / ".git", tmp_path / "copy") == "elsewhere"
    assert read_presence(root / ".git", tmp_path / "nothing") == "elsewhere"


def test_files_that_were_all_edited_are_still_those_that_git_saw(tmp_path: Path) -> None:
    repository(tmp_path)
    git(tmp_path, "add", "-f", ".")
    for path in tmp_path.rglob("*"):
        if path.is_file() and ".git" not in path.parts:
            path.write_text(f"{path.name} is another one now")
    assert read_presence(tmp_path / ".git", tmp_path) == "here"


def test_an_index_without_inodes_tells_nothing(tmp_path: Path) -> None:
    entry = bytes(60) + b"\0\x05" + b"a.txt" + bytes(3 + 2)
    (tmp_path / "index").write_bytes(b"DIRC" + (2).to_bytes(4) + (1).to_bytes(4) + entry + bytes(20))
    assert read_presence(tmp_path, tmp_path) == "unknown"


def test_an_index_that_came_with_the_files_does_not_tell_whose_they_are(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a").write_text("a")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "a"], cwd=root, check=True)
    assert read_tracking(root, WANTED) == "untracked"
    shutil.copytree(root, tmp_path / "unpacked")
    assert read_tracking(tmp_path / "unpacked", WANTED) == "unknown"
