"""The README's lines run."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from sevenfold.testing import Simulator
from tests.contracts.source_tree import ROOT, run, run_snippets, tool

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


STUB_AGENT = "#!/bin/sh\necho an agent\n"
"""In place of an agent that the reader has."""


@pytest.fixture
def reader(tmp_path: Path) -> dict[str, str]:
    """The environment of a reader who has an agent called claude."""
    agent = tmp_path / "bin" / "claude"
    agent.parent.mkdir()
    agent.write_text(STUB_AGENT, encoding="ascii")
    agent.chmod(0o755)
    path = f"{agent.parent}:{Path(tool('sevenfold')).parent}:{os.environ['PATH']}"
    return {"HOME": str(tmp_path), "PATH": path}


@pytest.mark.parametrize("line", commands("sevenfold"))
def test_a_command_of_the_readme_runs_without_configuration(
    line: str, reader: dict[str, str], tmp_path: Path
) -> None:
    """Only `chat` is given a model: the simulator."""
    with Simulator() as sim:
        model = {"ANTHROPIC_BASE_URL": sim.url, "ANTHROPIC_API_KEY": "none"} if " chat " in line else {}
        done = run(shlex.split(line), cwd=tmp_path, env={**reader, **model})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    if " run " not in line:  # which says on standard error where it listens
        assert done.stderr == ""


def test_the_number_of_the_readme_is_the_one_in_the_table() -> None:
    table = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    found = [
        re.search(rf"^\| {re.escape(title)} \|.*?\$([\d.]+)", table, re.MULTILINE)
        for title in ("**Sevenfold**", "plain loop, everything kept")
    ]
    ours, kept = (float(match[1]) if match else 0.0 for match in found)
    assert f"**{1 - ours / kept:.0%} less.**" in README
    assert f"${ours:.2f} each with Sevenfold and ${kept:.2f}" in README
    recent = re.search(r"^\| \*\*Sevenfold\*\* \|.*?\$[\d.]+ \| \d+% \| (\d+%) ", table, re.MULTILINE)
    assert recent
    assert f"{recent[1]} of the last ten tool results stay in view" in " ".join(README.split())
    assert "`python -m bench.peers` measures it again" in README
    assert "no paid model was asked" in README


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


def test_the_docs_and_make_know_the_same_targets() -> None:
    told = set(re.findall(r"`make ([a-z]+)", (ROOT / "docs" / "developing.md").read_text(encoding="utf-8")))
    assert told | {"help"} == make_targets()
    assert {line.split()[1] for line in commands("make")} <= make_targets()


def test_the_readme_is_one_sentence_one_command_one_picture_and_three_doors() -> None:
    head, _, rest = README.partition("\n## ")
    assert len(re.findall(r"^\$ ", head, re.MULTILINE)) == 1
    assert len(re.findall(r"!\[", README)) == 1
    doors = re.findall(r"^(?:## )?(\S.*)\n\n", "## " + rest, re.MULTILINE)
    assert [door for door in doors if door in ("See your bill", "Put it under your agent", "Use our agent")]
    assert len(README.splitlines()) <= 90
