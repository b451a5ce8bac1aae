"""The README's lines run."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.contracts.house import ROOT, run, run_snippets, tool

pytestmark = pytest.mark.gate

README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTING_UP = ("pip", "git", "cd")
"""Commands that a test run would not want repeated; `.ci/run` installs for real."""


def fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands(program: str) -> list[str]:
    lines = [line[2:] for block in fenced("console") for line in block.splitlines() if line.startswith("$ ")]
    return [line for line in lines if shlex.split(line)[0] == program]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("line", commands("sevenfold"))
def test_a_command_of_the_readme_runs_with_no_key_and_no_configuration(line: str, tmp_path: Path) -> None:
    clean = {"HOME": str(tmp_path), "PATH": f"{Path(tool('sevenfold')).parent}:{os.environ['PATH']}"}
    done = run(shlex.split(line), cwd=tmp_path, env=clean)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""


@pytest.mark.story
def test_the_snippets_of_the_readme_run() -> None:
    snippets = fenced("python")
    done = run_snippets(snippets)
    assert (done.returncode, done.stderr) == (0, "")
    assert all("assert " in code for code in snippets), "a snippet shows what it promises"


def test_every_command_of_the_readme_is_checked_somehow() -> None:
    shown = [line for block in fenced("console") for line in block.splitlines() if line.startswith("$ ")]
    checked = [f"$ {line}" for program in (*SETTING_UP, "sevenfold", "make") for line in commands(program)]
    assert sorted(shown) == sorted(checked)
    assert fenced("python")


def test_the_readme_and_make_know_the_same_targets() -> None:
    told = set(re.findall(r"`make ([a-z]+)", README))
    assert told | {"help"} == make_targets()
    assert {line.split()[1] for line in commands("make")} <= make_targets()
