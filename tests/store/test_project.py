"""A project's place: found again from anywhere inside, and never another's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sevenfold.core.errors import DiskFault, ProjectError, SevenfoldError
from sevenfold.core.events import Event, WorktreeDisowned, ignore
from sevenfold.store.faults import Fault, FaultyDisk
from sevenfold.store.git_root import real_path
from sevenfold.store.identity import IDENTITY, fingerprint, identify, read_claim
from sevenfold.store.lock_face import FACE
from sevenfold.store.memory_place import CLAIM
from sevenfold.store.project import Project
from tests.store.disks import QUICK, tree
from tests.store.repos import git, make_repo


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = real_path(tmp_path) / "work"
    made.mkdir()
    return made


def test_a_project_has_its_folders_under_its_identity(home: Path, work: Path) -> None:
    with Project.open(work, home=home) as project:
        assert project.root == work
        assert project.id == identify(work)
        place = home / "projects" / project.id
        assert sorted(os.listdir(place)) == ["control", "mail", "memory", IDENTITY, "sessions"]
        assert read_claim(project.folder, IDENTITY) == fingerprint(work)
        project.memory.replace(FACE, b"1")
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
        theirs = other.folder.path / IDENTITY
        (place / IDENTITY).write_bytes(theirs.read_bytes())
    with pytest.raises(ProjectError, match="belongs to another project"):
        Project.open(work, home=home)


def test_whatever_fails_on_opening_nothing_stays_open(tmp_path: Path, work: Path) -> None:
    """`no_handle_left_open` looks."""
    counting = FaultyDisk(inner=QUICK)
    with Project.open(work, home=tmp_path / "count", disk=counting):
        operations = len(counting.seen)
    for at in range(1, operations + 1):
        disk = FaultyDisk(Fault(at, "EIO"), inner=QUICK)
        with pytest.raises(DiskFault):
            Project.open(work, home=tmp_path / f"home{at}", disk=disk)


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
        swept = project.sweep(later, ignore)
        # Too deep for Python to remove, so not left for pytest to clean up.
        subprocess.run(["rm", "-rf", str(project.memory.path / "d")], check=True)
    assert swept == 1


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    return tmp_path / "elsewhere"


def test_memory_can_be_put_somewhere_else(home: Path, work: Path, elsewhere: Path) -> None:
    for _ in range(2):
        with Project.open(work, home=home, memory_dir=elsewhere / "memory") as project:
            assert project.memory.path == elsewhere / "memory"
            project.memory.replace("topic.md", b"x")
            project.memory.replace(FACE, b"1")
            assert project.memory.names() == ["topic.md"]
    assert sorted(tree(elsewhere)) == [f"memory/{name}" for name in (FACE, CLAIM, "topic.md")]
    assert not (home / "projects" / identify(work) / "memory").exists()


def test_memory_of_another_project_is_refused(home: Path, work: Path, elsewhere: Path) -> None:
    with Project.open(work, home=home, memory_dir=elsewhere):
        pass
    (work.parent / "other").mkdir()
    with pytest.raises(ProjectError, match="belongs to another project"):
        Project.open(work.parent / "other", home=home, memory_dir=elsewhere)


@pytest.mark.parametrize(
    "names",
    [
        ["notes.txt"],
        ["id_rsa"],
        ["topic.md", "src"],
        [".bashrc"],
        [".git"],
        [".ssh", "a.md"],
        ["My Letter.docx"],
        ["Übung"],
        ["con"],
        ["settings.toml"],
    ],
    ids=str,
)
def test_a_folder_that_holds_anything_but_memories_is_refused_and_left_alone(
    home: Path, work: Path, elsewhere: Path, names: list[str]
) -> None:
    elsewhere.mkdir()
    for name in names:
        (elsewhere / name).touch()
    with pytest.raises(ProjectError, match="does not look like a memory folder"):
        Project.open(work, home=home, memory_dir=elsewhere)
    assert sorted(os.listdir(elsewhere)) == sorted(names)


def test_a_folder_of_memories_can_be_taken_over(home: Path, work: Path, elsewhere: Path) -> None:
    elsewhere.mkdir()
    for name in ("MEMORY.md", "user role.md", "über.md", ".tmp-1", FACE, ".DS_Store"):
        (elsewhere / name).touch()
    for name in ("logs", "team"):
        (elsewhere / name).mkdir()
    with Project.open(work, home=home, memory_dir=elsewhere) as project:
        assert project.memory.names() == ["MEMORY.md", "logs", "team"]


SYSTEM = ["/", "/etc", "/etc/sevenfold", "/usr/share/x", "/proc/self", "/dev/shm", "/bin", "/run/x", "/sys"]


@pytest.mark.parametrize("place", SYSTEM)
def test_a_system_folder_is_refused_and_not_made(home: Path, work: Path, place: str) -> None:
    before = Path(place).exists()
    with pytest.raises(ProjectError, match="choose a folder of its own"):
        Project.open(work, home=home, memory_dir=Path(place))
    assert Path(place).exists() == before


@pytest.mark.parametrize("place", ["", ".ssh", ".ssh/memory", ".aws", ".gnupg/x", ".kube"])
def test_the_users_home_and_what_holds_keys_are_refused(
    tmp_path: Path, work: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    with pytest.raises(ProjectError):
        Project.open(work, home=tmp_path / "home", memory_dir=user / place)
    assert os.listdir(user) == []


def through_a_link(place: Path) -> Path:
    place.symlink_to("/etc")
    return place


def below_a_link(place: Path) -> Path:
    place.symlink_to("/usr")
    return place / "share" / "memory"


def up_and_down(place: Path) -> Path:
    place.mkdir()
    return place / ".." / ".." / ".." / ".." / ".." / ".." / ".." / "etc" / "x"


@pytest.mark.parametrize("spelled", [through_a_link, below_a_link, up_and_down])
def test_no_other_spelling_leads_into_a_system_folder(
    home: Path, work: Path, elsewhere: Path, spelled: Callable[[Path], Path]
) -> None:
    with pytest.raises(ProjectError, match="choose a folder of its own"):
        Project.open(work, home=home, memory_dir=spelled(elsewhere))


def test_keys_behind_a_link_are_refused_by_their_real_name(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, vault = tmp_path / "user", tmp_path / "vault"
    user.mkdir()
    vault.mkdir()
    (user / ".ssh").symlink_to(vault)
    monkeypatch.setenv("HOME", str(user))
    with pytest.raises(ProjectError):
        Project.open(work, home=tmp_path / "home", memory_dir=vault)


def test_a_link_is_not_a_memory_folder(home: Path, work: Path, elsewhere: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    elsewhere.symlink_to(tmp_path / "real")
    with pytest.raises(SevenfoldError):
        Project.open(work, home=home, memory_dir=elsewhere)
    assert os.listdir(tmp_path / "real") == []


def test_a_path_that_is_none_is_refused(home: Path, work: Path) -> None:
    with pytest.raises(SevenfoldError):
        Project.open(work, home=home, memory_dir=Path("a\0b"))
