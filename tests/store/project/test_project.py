"""A project's place: found again from anywhere inside, and never another's."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import DiskFault, ProjectError, SevenfoldError
from sevenfold.core.events import Event, SweepFailed, TempSwept, WorktreeDisowned, ignore_event
from sevenfold.store.files.folder import FolderTimeouts
from sevenfold.store.files.lock_state import make_pid_stamp
from sevenfold.store.project.project import IDENTITY_FILE, Project, hash_path, make_project_id, read_claim
from tests.store.disks import QUICK, QuickDisk
from tests.store.faults import Fault, FaultyDisk
from tests.store.repos import git, make_repo


def test_a_project_has_its_folders_under_its_identity(home: Path, work: Path) -> None:
    with Project.open(work, home=home) as project:
        assert project.root == work
        assert project.id == make_project_id(work)
        place = home / "projects" / project.id
        assert sorted(os.listdir(place)) == ["control", "mail", "memory", IDENTITY_FILE, "sessions"]
        assert read_claim(project.folder, IDENTITY_FILE) == hash_path(work)
        project.pid_file.write(make_pid_stamp(None))
        project.sessions.replace("s.jsonl", b"")
    assert (place / "sessions" / "s.jsonl").exists()


def test_it_is_the_same_from_every_worktree_and_folder(home: Path, work: Path) -> None:
    repo = make_repo(work / "repo")
    git(repo, "worktree", "add", "--quiet", str(work / "wt"), "-b", "side")
    (repo / "deep").mkdir()
    for start in (repo, repo / "deep", work / "wt"):
        with Project.open(start, home=home) as project:
            assert project.root == repo
    assert len(os.listdir(home / "projects")) == 1


def test_a_disowned_worktree_is_told_and_gets_a_place_of_its_own(
    home: Path, work: Path, events: list[Event]
) -> None:
    repo = make_repo(work / "repo")
    git(repo, "worktree", "add", "--quiet", str(work / "wt"), "-b", "side")
    (work / "wt").rename(work / "moved")
    with Project.open(work / "moved", home=home, emit=events.append) as project:
        assert project.root == work / "moved"
    assert [type(event) for event in events] == [WorktreeDisowned]


def test_a_place_that_names_another_root_is_refused(home: Path, work: Path) -> None:
    with Project.open(work, home=home) as project:
        place = project.folder.path
    (work.parent / "other").mkdir()
    with Project.open(work.parent / "other", home=home) as other:
        theirs = other.folder.path / IDENTITY_FILE
        (place / IDENTITY_FILE).write_bytes(theirs.read_bytes())
    with pytest.raises(ProjectError, match="belongs to another project"):
        Project.open(work, home=home)


def test_whatever_fails_on_opening_nothing_stays_open(tmp_path: Path, work: Path) -> None:
    """`no_handle_left_open` looks."""
    counting = FaultyDisk(inner=QUICK)
    with Project.open(work, home=tmp_path / "count", disk=counting):
        operations = len(counting.seen)
    refused: list[int] = []
    for at in range(1, operations + 1):
        disk = FaultyDisk(Fault(at, "EIO"), inner=QUICK)
        events: list[Event] = []
        try:
            Project.open(work, home=tmp_path / f"home{at}", disk=disk, emit=events.append).close()
        except DiskFault:
            refused.append(at)
        else:
            assert [type(event) for event in events] == [SweepFailed]
    # All up to the sweep, which comes last and stops nobody.
    assert refused == list(range(1, len(refused) + 1))
    assert len(refused) > 50


def test_an_error_of_closing_leaves_no_other_folder_open(home: Path, work: Path) -> None:
    counting = FaultyDisk(inner=QUICK)
    with Project.open(work, home=home, disk=counting):
        counting.seen.clear()
    closes = counting.seen.count("close")
    assert closes == 6
    for nth in range(1, closes + 1):
        disk = FaultyDisk(inner=QUICK)
        with Project.open(work, home=home, disk=disk):
            opened = len(disk.seen)
        disk = FaultyDisk(Fault(opened + nth, "EIO"), inner=QUICK)
        project = Project.open(work, home=home, disk=disk)
        with pytest.raises(DiskFault):
            project.close()


def test_a_home_that_cannot_be_is_an_error_of_ours(tmp_path: Path, work: Path) -> None:
    (tmp_path / "file").touch()
    for home in (tmp_path / "file", tmp_path / ("x" * 300), Path("a\0b")):
        with pytest.raises(SevenfoldError):
            Project.open(work, home=home)


def test_sweeping_goes_no_deeper_than_a_key_can_reach(home: Path, work: Path) -> None:
    """Agents may write to the memory folder, and nest folders without end."""
    with Project.open(work, home=home) as project:
        here = Path.cwd()
        os.chdir(project.memory.path)
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
        os.chdir(here)
        (project.memory.path / "d" / ".tmp-1").touch()
        later = datetime.now(UTC) + timedelta(hours=2)
        swept = project.sweep(later, ignore_event)
        # Too deep for Python to remove, so not left for pytest to clean up.
        subprocess.run(["rm", "-rf", str(project.memory.path / "d")], check=True)
    assert swept == 1


def leave_half_made(project: Project) -> Path:
    left = project.memory.path / ".tmp-left"
    left.touch()
    return left


def test_opening_a_project_sweeps_it_once_a_day(home: Path, work: Path, events: list[Event]) -> None:
    now = datetime.now(UTC)
    with Project.open(work, home=home) as project:
        left = leave_half_made(project)
    for hours, swept in ((0, False), (2, False), (23, False), (25, True)):
        clock = ManualClock(now + timedelta(hours=hours))
        Project.open(work, home=home, clock=clock, emit=events.append).close()
        assert left.exists() != swept
    assert {type(event) for event in events} == {TempSwept}


def test_it_is_swept_as_often_as_was_said(home: Path, work: Path) -> None:
    now, often = datetime.now(UTC), FolderTimeouts(sweep=timedelta(hours=4))
    with Project.open(work, home=home) as project:
        left = leave_half_made(project)
    for hours, swept in ((3, False), (5, True)):
        clock = ManualClock(now + timedelta(hours=hours))
        Project.open(work, home=home, clock=clock, timeouts=often).close()
        assert left.exists() != swept


def test_a_sweep_that_was_noted_ahead_of_time_is_not_waited_for(home: Path, work: Path) -> None:
    """By a clock that was wrong."""
    now = datetime.now(UTC)
    Project.open(work, home=home, clock=ManualClock(now + timedelta(days=900))).close()
    with Project.open(work, home=home, clock=ManualClock(now)) as project:
        left = leave_half_made(project)
    Project.open(work, home=home, clock=ManualClock(now + timedelta(days=2))).close()
    assert not left.exists()


def test_a_folder_that_may_not_be_looked_into_does_not_stop_the_sweep(
    home: Path, work: Path, events: list[Event]
) -> None:
    class DenyingDisk(QuickDisk):
        def open_beneath(self, root_fd: int, path: str, flags: int) -> int:
            if path == "locked":
                raise PermissionError(13, "Permission denied")
            return super().open_beneath(root_fd, path, flags)

    with Project.open(work, home=home) as project:
        (project.memory.path / "locked").mkdir()
        left = leave_half_made(project)
    later = ManualClock(datetime.now(UTC) + timedelta(days=2))
    Project.open(work, home=home, clock=later, disk=DenyingDisk(), emit=events.append).close()
    assert not left.exists()
    assert SweepFailed not in {type(event) for event in events}
