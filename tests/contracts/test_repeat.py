"""The command that finds tests which fail now and then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.source_tree import ROOT
from tests.repeat import load

FLAKY = """
from pathlib import Path

def test_now_and_then():
    runs = Path("runs")
    runs.write_text((runs.read_text() if runs.exists() else "") + "x")
    assert len(runs.read_text()) != 2, "the second run fails"

def test_always():
    assert True
"""
BROKEN = "import no_such_module\n"
KILLED = """
import os, signal
from tests.repeat import load

with load(2):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run_python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    # Most of the time would go into plugins that have no part in this.
    environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environ, capture_output=True, text=True, check=False
    )


def repeat(folder: Path, *arguments: str, load: int = 0) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "tests.repeat", "--load", str(load), *arguments, cwd=folder)


@pytest.mark.story
def test_a_test_that_fails_now_and_then_is_reported(tmp_path: Path) -> None:
    (tmp_path / "test_flaky.py").write_text(FLAKY, encoding="ascii")
    done = repeat(tmp_path, "--runs", "3", "--", "-q")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("run 1 of 3: 0 failed\nrun 2 of 3: 1 failed\nrun 3 of 3: 0 failed\n")
    assert "the second run fails" in done.stdout
    assert done.stdout.endswith("\n1 of 3  test_flaky.py::test_now_and_then\n")


@pytest.mark.story
def test_arguments_narrow_what_is_run_and_nothing_failed_is_a_success(tmp_path: Path) -> None:
    (tmp_path / "test_flaky.py").write_text(FLAKY, encoding="ascii")
    done = repeat(tmp_path, "--runs", "2", "--", "test_flaky.py", "-k", "always")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("no test failed in 2 runs\n")


@pytest.mark.story
def test_a_run_that_pytest_does_not_finish_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text(BROKEN, encoding="ascii")
    done = repeat(tmp_path, "--runs", "2", "--", "test_broken.py", load=1)
    assert done.returncode == 2
    assert done.stderr.startswith("error: pytest exited with 2:\n")
    assert "no_such_module" in done.stderr


def test_the_load_ends_with_its_block() -> None:
    with load(2) as processes:
        assert [process.poll() for process in processes] == [None, None]
    assert None not in [process.poll() for process in processes]


def test_the_load_ends_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    # The output is open until the last of them has ended.
    done = run_python("-c", KILLED, cwd=tmp_path)
    assert done.returncode < 0
