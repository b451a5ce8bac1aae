"""Whatever the umask: what a command writes under the home folder is for its user alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sevenfold.testing import Simulator

pytestmark = pytest.mark.story


def test_files_and_folders_are_private_under_an_open_umask(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    with Simulator(lambda _request: "hello") as model:
        environ = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": model.url,
        }
        for arguments in (
            ["replay", "--html"],
            ["chat", "-p", "hi"],
            ["memory", "add", "x", "--text", "y"],
            ["spend"],
            ["install", "codex"],
            ["install", "goose"],
        ):
            command = [sys.executable, "-m", "sevenfold", *arguments]
            subprocess.run(command, cwd=project, env=environ, check=True, capture_output=True, umask=0)
    made = [path for path in home.rglob("*") if not path.is_symlink()]
    assert made
    assert [path for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
