"""What held commands made, and the process that held them died: the next start moves it aside."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from sevenfold.agent.sandbox import folders
from sevenfold.agent.sandbox.folders import SANDBOX_RUNS_FOLDER, SandboxRunStore, read_guarded
from sevenfold.core.events import Event, GuardedLeft, GuardedMoved
from sevenfold.store.files.folder import Folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "elsewhere").mkdir()
    (folder / ".husky").mkdir()
    (folder / ".vscode").symlink_to("elsewhere")
    return folder


def begin_and_die(root: Path) -> None:
    """In a process of its own: start a command, have it make things, and be killed."""
    with Folder.open(root.parent / "control") as control:
        SandboxRunStore(control).note(root, read_guarded(root))
        (root / ".git").mkdir()
        (root / ".vscode").unlink()
        (root / ".vscode").mkdir()
        os.kill(os.getpid(), signal.SIGKILL)


def die(root: Path) -> Path:
    control = root.parent / "control"
    control.mkdir()
    process = multiprocessing.get_context("spawn").Process(target=begin_and_die, args=(root,))
    process.start()
    process.join()
    return control


def sweep(control: Path) -> list[Event]:
    events: list[Event] = []
    with Folder.open(control) as folder:
        SandboxRunStore(folder).sweep(events.append)
    return events


def test_what_a_killed_process_left_is_moved_aside_once(root: Path) -> None:
    control = die(root)
    assert sweep(control) == [
        GuardedMoved(str(root / name), str(root / f"{name}.held-back-1")) for name in (".git", ".vscode")
    ]
    assert (root / ".husky").is_dir()
    assert os.listdir(control / SANDBOX_RUNS_FOLDER) == []
    assert sweep(control) == []


def test_what_cannot_be_moved_is_told_and_tried_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "not permitted")

    control = die(root)
    with monkeypatch.context() as patched:
        patched.setattr(folders.os, "rename", refuse)
        assert GuardedLeft(str(root / ".git"), "not permitted") in sweep(control)
    assert len(sweep(control)) == 2


def test_a_command_that_still_runs_is_left_alone_and_a_whole_one_leaves_no_trace(root: Path) -> None:
    (root.parent / "control").mkdir()
    with Folder.open(root.parent / "control") as control:
        note = SandboxRunStore(control).note(root, read_guarded(root))
        (root / ".git").mkdir()
        assert sweep(root.parent / "control") == []
        note.close(lambda _: None, is_clean=True)
    assert os.listdir(root.parent / "control" / SANDBOX_RUNS_FOLDER) == []
    assert sweep(root.parent / "control") == []


def test_a_project_that_is_gone_has_nothing_to_move(root: Path) -> None:
    control = die(root)
    root.rename(root.parent / "moved")
    assert sweep(control) == []
    assert os.listdir(control / SANDBOX_RUNS_FOLDER) == []


def test_a_note_that_cannot_be_read_is_told(root: Path) -> None:
    control = die(root)
    (note,) = (control / SANDBOX_RUNS_FOLDER).glob("*.json")
    note.write_text("{")
    (told,) = sweep(control)
    assert isinstance(told, GuardedLeft)
    assert told.path == str(note)
