"""The sandbox holds for an ordinary user too, who owns the files and processes around a command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

from sevenfold.agent.sandbox.sandbox import find_bubblewrap
from tests.contracts.source_tree import ROOT

pytestmark = pytest.mark.story

NOBODY = 65_534
NEEDED = ("src/sevenfold", "tests/agent/sandboxes.py", "tests/agent/sandbox/attack.py")


PYTHONS = (sys.executable, os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3")


@pytest.fixture
def ground() -> Generator[Path]:
    """A copy of the code, and room to write, that any user gets at: a checkout may lie in a home."""
    folder = Path(tempfile.mkdtemp(prefix="sevenfold-user-", dir="/var/tmp"))
    folder.chmod(0o755)
    for name in NEEDED:
        source, target = ROOT / name, folder / "code" / name.removeprefix("src/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    (folder / "room").mkdir()
    try:
        if os.getuid() == 0:
            os.chown(folder / "room", NOBODY, NOBODY)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def as_user(command: list[str], ground: Path) -> subprocess.CompletedProcess[str]:
    """As somebody who is not root: ourselves, or nobody."""
    is_root, room = os.getuid() == 0, ground / "room"
    return subprocess.run(
        command,
        cwd=room,
        env={"PATH": "/usr/bin:/bin", "HOME": str(room), "PYTHONPATH": str(ground / "code")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        user=NOBODY if is_root else None,
        group=NOBODY if is_root else None,
        extra_groups=[] if is_root else None,
    )


def find_python(ground: Path) -> str | None:
    """An interpreter of our version or later that this user can start: ours may lie in root's home."""
    check = "import sys, asyncio, ctypes; sys.exit(sys.version_info < (3, 11))"
    for path in PYTHONS:
        with suppress(OSError):
            if as_user([path, "-c", check], ground).returncode == 0:
                return path
    return None


def test_no_attack_of_an_ordinary_user_does_damage(ground: Path) -> None:
    python = find_python(ground)
    if python is None:
        pytest.skip("no Python 3.11 that an ordinary user can start")
    done = as_user([python, "-B", "-m", "tests.agent.sandbox.attack", str(ground / "room")], ground)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["uid"] != 0
    assert found["damage"] == []
    assert found["means"], "the sandbox was found by trying"
    assert "namespaces" in found["ways"]
    if find_bubblewrap() is None:
        pytest.skip("bubblewrap was not attacked: apt-get install bubblewrap")
    assert "bubblewrap" in found["ways"]
