"""The snippets of the page on memory do what the page says, in a project of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sevenfold.core.memories import parse_conditions, read_memory
from tests.contracts.source_tree import ROOT

MEMORY = (ROOT / "docs/memory.md").read_text(encoding="utf-8")
RULES = (ROOT / "docs/rules.md").read_text(encoding="utf-8")


def blocks(page: str, tongue: str) -> list[str]:
    return re.findall(rf"^```{tongue}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", blocks(MEMORY, "python"))
def test_a_snippet_runs_and_keeps_its_promises(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    assert "assert " in code
    exec(compile(code, "docs/memory.md", "exec"), {})


@pytest.mark.parametrize("text", [*blocks(MEMORY, "markdown"), *blocks(RULES, "markdown")])
def test_a_memory_of_the_docs_can_be_read(text: str) -> None:
    memory = read_memory("x.md", text)
    assert (memory.name, memory.kind) == ("release-steps", "feedback")
    assert not parse_conditions(memory.applies_to).refused


def test_every_condition_of_the_docs_is_one() -> None:
    cells = re.findall(r"^\| (`.*?) \|", RULES, re.MULTILINE)
    named = [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]
    assert len(named) > 6
    assert not parse_conditions(named).refused
