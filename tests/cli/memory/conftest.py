"""A project of its own for each test of `sevenfold memory`, and its answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sevenfold.cli import main
from sevenfold.store.project.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@contextmanager
def opened(project: Path) -> Generator[Project]:
    with Project.open(project, home=project.parent / ".sevenfold") as found:
        yield found


Ask = Callable[..., str]
Parse = Callable[..., Any]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """What an action prints, having ended as it should."""

    def run(*words: str, code: int = 0) -> str:
        assert main(["memory", *words]) == code
        out, err = capsys.readouterr()
        return out if code == 0 else out + err

    return run


@pytest.fixture
def parsed(ask: Ask) -> Parse:
    def run(*words: str, code: int = 0) -> Any:
        return json.loads(ask(*words, "--json", code=code))

    return run
