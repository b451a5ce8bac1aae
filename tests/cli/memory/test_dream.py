"""`sevenfold dream`, from its arguments to what is on the screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sevenfold.cli import main
from sevenfold.core.memories import Origin, write_memory
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir

CHECK = "Always run `make check` before a push."


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def memories(project: Path) -> dict[str, str]:
    """Two that say the same, and the texts of both."""
    texts = {
        f"{name}.md": write_memory(name, f"on {name}", "project", CHECK) for name in ("push-old", "push")
    }
    with MemoryDir.for_project(project) as memory:
        for key, text in texts.items():
            memory.commit([Write(key, text, None)], Origin(who="user", why="test"))
    return texts


def remembered(project: Path) -> dict[str, str]:
    with MemoryDir.for_project(project) as memory:
        return {item.memory.key: item.memory.text for item in memory.scan()}


def show(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["dream", *arguments]) == code
    out = capsys.readouterr()
    return out.err if code else out.out


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(show(capsys, *arguments, "--json"))


def test_a_preview_shows_the_difference_and_changes_nothing(
    project: Path, memories: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = show(capsys, "--dry-run", "--mechanical")
    assert "--- push-old.md" in out
    assert "nothing was changed" in out
    assert remembered(project) == memories
    assert "no dream yet" in show(capsys, "log")


def test_a_dream_is_logged_shown_and_taken_back(
    project: Path, memories: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = show(capsys, "--mechanical")
    assert "1 merged into others" in out
    assert remembered(project).keys() == {"push.md"}
    assert "completed" in show(capsys, "log")
    shown = show(capsys, "show")
    assert "--- push-old.md" in shown
    assert "publish 1 changed file" in shown
    assert "push-old.md" in show(capsys, "undo")
    assert remembered(project) == memories


def test_without_a_model_that_is_said_and_the_rest_is_done(
    project: Path, memories: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dream"]) == 0
    assert "without a model (no model to talk to" in capsys.readouterr().err
    assert remembered(project).keys() < memories.keys()


def test_a_model_that_settings_insist_on_is_missed(
    memories: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEVENFOLD_DREAM_WRITER", "model")
    assert memories
    assert "no model to talk to" in show(capsys, code=2)


def test_programs_get_the_account_the_log_and_what_was_undone(
    memories: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    account = told(capsys, "--mechanical")
    assert (account["outcome"], account["removed"]) == ("completed", ["push-old.md"])
    assert "push-old.md" in account["diff"]
    assert [entry["id"] for entry in told(capsys, "log")] == [account["id"]]
    assert told(capsys, "show", account["id"][:10])["transaction"] == account["transaction"]
    assert told(capsys, "undo")["keys"] == ["push-old.md"]
    assert memories


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("show",), "there is no dream yet"),
        (("show", "2020"), "no dreams begin with '2020'"),
        (("undo",), "there is no dream yet"),
        (("stop",), "no dream is under way"),
        (("log", "x"), "takes no ID"),
        (("undo", "--dry-run"), "go with a dream"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    arguments: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint in show(capsys, *arguments, code=2)
