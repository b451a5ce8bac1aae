"""Real repositories, made by git itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(place: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *words],
        cwd=place,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_repo(place: Path, *options: str) -> Path:
    """A repository with one commit, so that worktrees can be made of it."""
    place.mkdir(parents=True)
    git(place, "init", "--quiet", *options)
    git(place, "commit", "--quiet", "--allow-empty", "-m", "first")
    return place
