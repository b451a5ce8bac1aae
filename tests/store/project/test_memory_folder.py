"""A project's memory: its own, in a folder meant for it, with names that agents never reach."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import pytest

from sevenfold.core.errors import KeyRefused, ProjectError, SevenfoldError
from sevenfold.core.events import ignore_event
from sevenfold.core.memories import MemoryUse
from sevenfold.core.settings import PlaceSettings, Settings
from sevenfold.store.files.folder import FOLDER_TIMEOUTS, Folder, FolderTimeouts
from sevenfold.store.files.lock_state import PID_FILE, make_pid_stamp
from sevenfold.store.files.locks import LockSettings
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.sidecars import UseStore
from sevenfold.store.project import trust as trust_module
from sevenfold.store.project.project import CLAIM_FILE, Project, make_project_id, open_project
from sevenfold.store.project.settings_files import read_settings
from tests.store.disks import tree
from tests.store.repos import make_repo

EMPTY: Mapping[str, str] = MappingProxyType({})
NOW = datetime(2026, 11, 16, tzinfo=UTC)


VERBS: dict[str, Callable[[Folder, str], object]] = {
    "read": lambda folder, key: folder.read(key, max_bytes=99),
    "read_range": lambda folder, key: folder.read_range(key, 0, 9),
    "stat": lambda folder, key: folder.stat(key),
    "replace": lambda folder, key: folder.replace(key, b"mine"),
    "create": lambda folder, key: folder.create(key, b"mine"),
    "append": lambda folder, key: folder.append(key, b"mine"),
    "remove": lambda folder, key: folder.remove(key),
    "move from": lambda folder, key: folder.move(key, "taken.md"),
    "move to": lambda folder, key: folder.move("topic.md", key),
    "sync_name": lambda folder, key: folder.sync_name(key),
    "subfolder": lambda folder, key: folder.subfolder(key),
    "open_file": lambda folder, key: folder.open_file(key, os.O_RDWR | os.O_CREAT),
    "opened": lambda folder, key: folder.opened(key, os.O_RDONLY).__enter__(),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "name", [PID_FILE, CLAIM_FILE, PID_FILE.upper(), f"logs/{PID_FILE}", f"{CLAIM_FILE}/x.md"]
)
@pytest.mark.parametrize("place", ["home", "own", "among"])
def test_names_of_our_own_do_not_exist_for_whoever_has_the_memory_folder(
    home: Path, work: Path, elsewhere: Path, verb: str, name: str, place: str
) -> None:
    with Project.open(
        work,
        home=home,
        memory_dir=elsewhere if place == "own" else None,
        memory_home=elsewhere if place == "among" else None,
    ) as project:
        project.pid_file.write(make_pid_stamp(None))
        project.memory.replace("topic.md", b"x")
        with project.memory.subfolder("logs") as logs, pytest.raises(KeyRefused):
            VERBS[verb](logs if "/" in name else project.memory, name.removeprefix("logs/"))
        before = tree(project.memory.path)
        for folder in (project.memory, project.folder):
            key = name if folder is project.memory else f"memory/{name}"
            with pytest.raises(KeyRefused):
                VERBS[verb](folder, key)
        assert tree(project.memory.path) == before
        assert project.memory.names() == ["logs", "topic.md"]
        assert project.memory.sweep(datetime.now(UTC) + timedelta(days=2), ignore_event) == 0
        assert project.pid_file.read() == make_pid_stamp(None)


def test_every_verb_of_a_folder_is_tried_on_names_of_our_own() -> None:
    verbs = {name for name in vars(Folder) if not name.startswith("_")}
    no_key = {"open", "close", "disk", "names", "all_names", "sweep", "without_own"}
    assert verbs - no_key == {verb.partition(" ")[0] for verb in VERBS}


def test_memory_can_be_put_somewhere_else(home: Path, work: Path, elsewhere: Path) -> None:
    for _ in range(2):
        with Project.open(work, home=home, memory_dir=elsewhere / "memory") as project:
            assert project.memory.path == elsewhere / "memory"
            project.memory.replace("topic.md", b"x")
            project.pid_file.write(make_pid_stamp(None))
            assert project.memory.names() == ["topic.md"]
    assert sorted(tree(elsewhere)) == [f"memory/{name}" for name in (PID_FILE, CLAIM_FILE, "topic.md")]
    assert not (home / "projects" / make_project_id(work) / "memory").exists()


def test_an_override_neither_lists_nor_removes_the_memories_of_the_default_directory(
    home: Path, work: Path, elsewhere: Path
) -> None:
    with Project.open(work, home=home) as project, MemoryDir(project) as memory:
        memory.add("Tabs", "Indent with tabs.")
        UseStore(project.memory_state).add([MemoryUse("Tabs.md", "shown")], NOW)
    places: list[dict[Literal["memory_dir", "memory_home"], Path]] = [
        {"memory_dir": elsewhere / "one"},
        {"memory_home": elsewhere / "all"},
    ]
    for place in places:
        with Project.open(work, home=home, **place) as project, MemoryDir(project) as memory:
            assert (memory.keys(), memory.waiting(), UseStore(project.memory_state).read()) == ((), (), {})
            memory.add("Spaces", "Indent with spaces.")
    with Project.open(work, home=home) as project, MemoryDir(project) as memory:
        assert (memory.keys(), memory.waiting()) == (("Tabs.md",), ())
        assert [entry.kind for entry in memory.log()] == ["commit", "adopt"]
        assert list(UseStore(project.memory_state).read()) == ["Tabs.md"]


def test_projects_with_one_override_share_its_memories_and_their_history(
    home: Path, work: Path, elsewhere: Path
) -> None:
    other = make_repo(work.parent / "other")
    with Project.open(work, home=home, memory_dir=elsewhere) as project, MemoryDir(project) as memory:
        memory.add("Tabs", "Indent with tabs.", why="the house style")
    with Project.open(other, home=home, memory_dir=elsewhere) as project, MemoryDir(project) as memory:
        assert memory.keys() == ("Tabs.md",)
        assert [entry.origin.why for entry in memory.log("Tabs.md")] == ["the house style"]
        memory.remove("Tabs")
    with Project.open(work, home=home, memory_dir=elsewhere) as project, MemoryDir(project) as memory:
        assert (memory.keys(), memory.waiting()) == ((), ())


def test_the_state_of_a_directory_elsewhere_is_no_memory_folder(
    home: Path, work: Path, elsewhere: Path
) -> None:
    with Project.open(work, home=home, memory_dir=elsewhere) as project:
        taken = project.memory_state.path
        assert taken.parent == home / "memory-state"
    with pytest.raises(ProjectError, match="where projects have their own"):
        Project.open(work, home=home, memory_dir=taken / "notes")


def test_a_folder_for_all_projects_gives_each_its_own(home: Path, work: Path, elsewhere: Path) -> None:
    (work.parent / "other").mkdir()
    (work.parent / "deep").mkdir()
    for start in (work, work.parent / "other", work.parent / "deep", work):
        with Project.open(start, home=home, memory_home=elsewhere) as project:
            assert project.memory.path == elsewhere / project.id
            project.memory.replace(f"{start.name}.md", b"x")
            assert project.memory.names() == [f"{start.name}.md"]
    assert len(os.listdir(elsewhere)) == 3


def test_a_folder_for_all_is_no_projects_own_and_the_other_way_round(
    home: Path, work: Path, elsewhere: Path
) -> None:
    Project.open(work, home=home, memory_dir=elsewhere / "one").close()
    with pytest.raises(ProjectError, match=r"settings\.local\.toml"):
        Project.open(work, home=home, memory_home=elsewhere / "one")
    Project.open(work, home=home, memory_home=elsewhere / "all").close()
    with pytest.raises(ProjectError, match="does not look like a memory folder"):
        Project.open(work, home=home, memory_dir=elsewhere / "all")


@pytest.mark.parametrize("kind", ["memory_dir", "memory_home"])
def test_the_folders_that_projects_have_already_are_nobody_elses_memory(
    home: Path, work: Path, kind: Literal["memory_dir", "memory_home"]
) -> None:
    with Project.open(work, home=home) as project:
        taken = project.memory.path
    (work.parent / "other").mkdir()
    with pytest.raises(ProjectError, match="where projects have their own"):
        Project.open(
            work.parent / "other",
            home=home,
            memory_dir=taken if kind == "memory_dir" else None,
            memory_home=taken if kind == "memory_home" else None,
        )


def settled(root: Path, tmp_path: Path, environ: Mapping[str, str] = EMPTY) -> Settings:
    """The settings as a caller at the edge has them, with a machine's own policy in the test's folder."""
    return read_settings(
        [PlaceSettings, LockSettings],
        root=root,
        environ={"HOME": str(tmp_path / "ann"), **environ},
        managed_file=tmp_path / "managed.toml",
    )


@pytest.mark.parametrize("memory", ["", "elsewhere"])
def test_settings_say_how_long_those_in_a_project_wait_for_one_another(
    tmp_path: Path, work: Path, memory: str
) -> None:
    environ = {
        "SEVENFOLD_LOCK_WAIT_SECONDS": "3",
        "SEVENFOLD_LOCK_MARK_SECONDS": "45",
        "SEVENFOLD_PLACES_SWEEP_HOURS": "2",
        "SEVENFOLD_MEMORY_DIR": str(tmp_path / memory) if memory else "",
    }
    said = FolderTimeouts(timedelta(seconds=3), timedelta(seconds=45), timedelta(hours=2))
    with open_project(work, settled(work, tmp_path, environ), user_home=tmp_path / "ann") as project:
        folders = (project.folder, project.sessions, project.memory, project.mail, project.control)
        assert [folder.timeouts for folder in folders] == [said] * 5
        with project.sessions.subfolder("one") as below:
            assert below.timeouts == said


def test_a_caller_that_asks_for_no_lock_settings_gets_their_defaults(tmp_path: Path, work: Path) -> None:
    settings = read_settings([PlaceSettings], root=work, environ={}, managed_file=tmp_path / "managed.toml")
    with open_project(work, settings, user_home=tmp_path / "ann") as project:
        assert project.control.timeouts == LockSettings().timeouts == FOLDER_TIMEOUTS
        assert settings.of(PlaceSettings).sweep_every == FOLDER_TIMEOUTS.sweep


@pytest.mark.parametrize("source", ["user", "managed", "environment", "local", "nobody"])
def test_settings_say_where_the_memory_of_each_project_is(
    tmp_path: Path, work: Path, elsewhere: Path, source: str
) -> None:
    user_home = tmp_path / "ann"
    one, two = make_repo(work / "one"), make_repo(work / "two")
    line = f'[places]\nmemory_dir = "{elsewhere}"\n'
    written = {
        "user": user_home / ".sevenfold" / "settings.toml",
        "managed": tmp_path / "managed.toml",
        "local": one / ".sevenfold" / "settings.local.toml",
    }
    if source in written:
        written[source].parent.mkdir(parents=True, exist_ok=True)
        written[source].write_text(line, encoding="utf-8")
    environ = {"SEVENFOLD_MEMORY_DIR": str(elsewhere)} if source == "environment" else {}
    found: list[Path] = []
    for repo in (one, two):
        with open_project(repo, settled(repo, tmp_path, environ), user_home=user_home) as project:
            found.append(project.memory.path)
    usual = [user_home / ".sevenfold" / "projects" / make_project_id(repo) / "memory" for repo in (one, two)]
    if source == "nobody":
        assert found == usual
    elif source == "local":
        assert found == [elsewhere, usual[1]]
    elif source == "environment":
        assert found == [elsewhere, elsewhere]
    else:
        assert found == [elsewhere / make_project_id(one), elsewhere / make_project_id(two)]


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
    for name in ("MEMORY.md", "user role.md", "über.md", ".tmp-1", PID_FILE, ".DS_Store"):
        (elsewhere / name).touch()
    for name in ("logs", "team"):
        (elsewhere / name).mkdir()
    with Project.open(work, home=home, memory_dir=elsewhere) as project:
        assert project.memory.names() == ["MEMORY.md", "logs", "team"]


SYSTEM = [
    *("/", "/etc", "/etc/sevenfold", "/usr/share/x", "/proc/self", "/dev/shm", "/bin", "/run/x", "/sys"),
    *("/var", "/var/lib/x", "/var/log/memory", "/opt/x", str(Path("/root") / ".cache"), "/home"),
]


@pytest.mark.parametrize("place", SYSTEM)
def test_a_system_folder_is_refused_and_not_made(
    home: Path, work: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Path(place).exists()
    monkeypatch.setenv("HOME", "/home/ann")
    with pytest.raises(ProjectError, match="choose a folder of its own"):
        Project.open(work, home=home, memory_dir=Path(place))
    with pytest.raises(ProjectError, match="choose a folder of its own"):
        Project.open(work, home=home, memory_home=Path(place))
    assert Path(place).exists() == before


HIDDEN = [
    *("", ".ssh", ".ssh/memory", ".aws", ".gnupg/x", ".kube", ".config", ".config/git", ".mozilla/x"),
    *(".sevenfoldish", ".config/sevenfolder", ".local/share", ".local/share/keyrings"),
]


@pytest.mark.parametrize("place", HIDDEN)
def test_the_users_home_and_what_holds_keys_are_refused(
    tmp_path: Path, work: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    with pytest.raises(ProjectError):
        Project.open(work, home=tmp_path / "home", memory_dir=user / place)
    assert os.listdir(user) == []


@pytest.mark.parametrize(
    "place", [".sevenfold/all", ".config/sevenfold/m", ".local/share/sevenfold", "notes"]
)
def test_what_is_ours_or_plain_in_a_home_folder_can_hold_memories(
    tmp_path: Path, work: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    with Project.open(work, home=tmp_path / "home", memory_dir=user / place) as project:
        assert project.memory.path == user / place


def test_a_home_below_a_system_folder_is_a_home_all_the_same(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on systems with homes in /var/home, or for services that live in /var/lib."""
    user = tmp_path / "system" / "user"
    user.mkdir(parents=True)
    monkeypatch.setattr(trust_module, "_SYSTEM", (str(tmp_path / "system"),))
    with pytest.raises(ProjectError):
        Project.open(work, home=tmp_path / "home", memory_dir=user / "notes")
    monkeypatch.setenv("HOME", str(user))
    with Project.open(work, home=tmp_path / "home", memory_dir=user / "notes") as project:
        assert project.memory.path == user / "notes"


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
