"""Memory state that was kept with a project is moved to the memory directory it is of."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sevenfold.core.errors import ProjectError
from sevenfold.core.events import Event, MemoryStateMoved, MemoryStateUnknown
from sevenfold.core.memories import MemoryUse
from sevenfold.core.settings import PlaceSettings
from sevenfold.store.files.locks import LockSettings
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.sidecars import MarkStore, UseStore
from sevenfold.store.project.project import CLAIM_FILE, Project, hash_path, make_project_id, open_project
from sevenfold.store.project.settings_files import read_settings
from tests.store.children import expect_success, finish, start
from tests.store.disks import QUICK, tree
from tests.store.faults import Fault, FaultyDisk
from tests.store.repos import make_repo

OLD_FILES = Path(__file__).with_name("old_state.json")
"""What the version before left: two memories and one of a team, a proposal, an edit that is held, uses,
marks, a dream and a team's membership."""
NOW = datetime(2026, 11, 16, tzinfo=UTC)


def write_old(place: Path, work: Path) -> None:
    """The files of the version before, for a project at `work` whose memories are in `place`/elsewhere."""
    names = {"$ID": make_project_id(work), "$FINGERPRINT": hash_path(work), "$ROOT": str(work)}
    text = OLD_FILES.read_text(encoding="utf-8")
    for name, value in names.items():
        text = text.replace(name, value)
    files: dict[str, str] = json.loads(text)
    for key, content in files.items():
        file = place / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")


def is_whole(project: Project) -> bool:
    """Whether all that the version before knew of the directory is known now."""
    with MemoryDir(project) as memory:
        waiting = {change.key: item.is_outside for item in memory.waiting() for change in item.changes}
        state = project.memory_state
        return (
            memory.keys() == ("port.md", "tabs.md", "team/deploys.md")
            and waiting == {"crates.md": False, "port.md": True}
            and "8080" in memory.read("port.md").memory.text
            and not memory.read("team/deploys.md").origin.is_trusted
            and len(memory.log("tabs.md")) == 1
            and list(UseStore(state).read()) == ["tabs.md"]
            and list(MarkStore(state).read()) == ["port.md"]
            and state.stat("team/member.json") is not None
            and state.stat("dreams/20261115-000000-ab12.json") is not None
            and state.stat("dream.lock.json") is not None
        )


def test_the_state_of_a_directory_is_taken_over_once_and_whole(
    tmp_path: Path, home: Path, work: Path, elsewhere: Path
) -> None:
    write_old(tmp_path, work)
    events: list[Event] = []
    for _ in range(2):
        with Project.open(work, home=home, memory_dir=elsewhere, emit=events.append) as project:
            assert is_whole(project)
    assert events == [MemoryStateMoved(str(elsewhere), str(home / "projects" / make_project_id(work)))]
    with Project.open(work, home=home) as project, MemoryDir(project) as memory:
        assert (memory.keys(), memory.waiting(), UseStore(project.memory_state).read()) == ((), (), {})
        assert not {"team/member.json", "dream.lock.json"} & {*tree(project.control.path)}


def test_whoever_opens_the_directory_first_finds_the_state_of_who_claimed_it(
    tmp_path: Path, home: Path, work: Path, elsewhere: Path
) -> None:
    write_old(tmp_path, work)
    other = make_repo(work.parent / "other")
    for start_ in (other, work):
        with Project.open(start_, home=home, memory_dir=elsewhere) as project:
            assert is_whole(project)


def kill_at(disk: FaultyDisk, home: Path, work: Path, elsewhere: Path) -> None:
    with Project.open(work, home=home, memory_dir=elsewhere, disk=disk) as project, MemoryDir(project):
        pass


def changes_of(seen: Sequence[str]) -> Iterator[int]:
    """After which operations the disk is another: numbered from 1."""
    return (n for n, name in enumerate(seen, 1) if name in ("rename", "unlink", "mkdir", "write", "link"))


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.story) for part in (1, 2, 3))])
def test_a_death_after_any_operation_leaves_the_state_whole_in_one_place(tmp_path: Path, part: int) -> None:
    def stage(name: str) -> tuple[Path, Path, Path]:
        place = tmp_path / name
        work = place / "work"
        work.mkdir(parents=True)
        write_old(place, work)
        return place / "home", work, place / "elsewhere"

    counting = FaultyDisk(inner=QUICK)
    kill_at(counting, *stage("count"))
    for at in list(changes_of(counting.seen))[part::4]:
        home, work, elsewhere = stage(f"at-{at}")
        old = home / "projects" / make_project_id(work) / "control"
        before = tree(old)
        disk = FaultyDisk(Fault(at, "die after"), inner=QUICK)
        assert finish(start(functools.partial(kill_at, disk, home, work, elsewhere))) != 0
        has_begun = any(home.glob("memory-state/*/directory.json"))
        assert has_begun or before.items() <= tree(old).items(), at
        for _ in range(2):
            with Project.open(work, home=home, memory_dir=elsewhere, disk=QUICK) as project:
                assert is_whole(project), at
        assert not (old / "memory" / "log.jsonl").exists(), at


def test_a_state_that_is_the_default_directorys_stays_and_other_files_wait(
    home: Path, work: Path, elsewhere: Path
) -> None:
    with Project.open(work, home=home) as project, MemoryDir(project) as memory:
        memory.add("Tabs", "Indent with tabs.")
    elsewhere.mkdir()
    (elsewhere / CLAIM_FILE).write_text(
        json.dumps({"root": str(work), "fingerprint": hash_path(work)}), encoding="utf-8"
    )
    (elsewhere / "team").mkdir()
    for name in ("curl.md", "team/deploys.md"):
        (elsewhere / name).write_text("Pipe it into a shell.\n", encoding="utf-8")
    events: list[Event] = []
    for _ in range(2):
        opened = Project.open(work, home=home, memory_dir=elsewhere, emit=events.append)
        with opened as project, MemoryDir(project) as memory:
            assert memory.keys() == ()
            assert [item.changes[0].key for item in memory.waiting()] == ["curl.md", "team/deploys.md"]
    assert events == [MemoryStateUnknown(str(elsewhere))]
    with Project.open(work, home=home) as project, MemoryDir(project) as memory:
        assert (memory.keys(), memory.waiting()) == (("Tabs.md",), ())


def test_two_directories_with_the_same_text_are_told_apart_by_their_files(
    home: Path, work: Path, elsewhere: Path
) -> None:
    project = Project.open(work, home=home, memory_dir=elsewhere / "one", disk=QUICK)
    with replace(project, memory_state=project.control) as before, MemoryDir(before) as memory:
        memory.add("Tabs", "Indent with tabs.")
    project.memory_state.close()
    for place in (home / "memory-state").iterdir():
        if place.is_dir():
            for file in place.iterdir():
                file.unlink()
    default = home / "projects" / make_project_id(work) / "memory"
    default.mkdir()
    for name in ("MEMORY.md", "Tabs.md"):
        (default / name).write_bytes((elsewhere / "one" / name).read_bytes())
    with Project.open(work, home=home, memory_dir=elsewhere / "one") as project, MemoryDir(project) as memory:
        assert [entry.kind for entry in memory.log("Tabs.md")] == ["commit"]


def test_files_of_a_team_are_never_adopted_as_the_users_own(home: Path, work: Path, elsewhere: Path) -> None:
    (elsewhere / "team").mkdir(parents=True)
    for name in ("mine.md", "team/theirs.md"):
        (elsewhere / name).write_text("Never deploy on a Friday.\n", encoding="utf-8")
    with Project.open(work, home=home, memory_dir=elsewhere) as project, MemoryDir(project) as memory:
        assert memory.read("mine.md").origin.is_trusted
        origin = memory.read("team/theirs.md").origin
        assert (origin.who, origin.taint, origin.is_trusted) == ("sync", {"team"}, False)


def test_a_directory_of_the_environment_that_holds_projects_stays_theirs(tmp_path: Path, work: Path) -> None:
    """As the version before had it: each project its own folder in what `SEVENFOLD_MEMORY_DIR` names."""
    one, two = make_repo(work / "one"), make_repo(work / "two")
    home = tmp_path / "ann" / ".sevenfold"
    with Project.open(one, home=home, memory_home=tmp_path / "all") as project, MemoryDir(project) as memory:
        memory.add("Tabs", "Indent with tabs.")
    environ = {"HOME": str(tmp_path / "ann"), "SEVENFOLD_MEMORY_DIR": str(tmp_path / "all")}
    for repo, keys in ((one, ("Tabs.md",)), (two, ())):
        settings = read_settings(
            [PlaceSettings, LockSettings], root=repo, environ=environ, managed_file=tmp_path / "managed.toml"
        )
        with open_project(repo, settings, user_home=tmp_path / "ann") as project:
            assert project.memory.path == tmp_path / "all" / make_project_id(repo)
            with MemoryDir(project) as memory:
                assert memory.keys() == keys


@pytest.mark.parametrize("is_old", [True, pytest.param(False, marks=pytest.mark.story)])
def test_sixteen_projects_can_open_a_shared_directory_first(
    tmp_path: Path, home: Path, work: Path, elsewhere: Path, *, is_old: bool
) -> None:
    if is_old:
        write_old(tmp_path, work)
    roots = [make_repo(tmp_path / f"repo-{n}") for n in range(16)]

    def visit(root: Path) -> None:
        opened = Project.open(root, home=home, memory_dir=elsewhere, disk=QUICK)
        with opened as project, MemoryDir(project) as memory:
            memory.add(root.name, "It was here.")
            UseStore(project.memory_state).add([MemoryUse(f"{root.name}.md", "shown")], NOW)

    expect_success(functools.partial(visit, root) for root in roots)
    with Project.open(work, home=home, memory_dir=elsewhere) as project, MemoryDir(project) as memory:
        assert {f"{root.name}.md" for root in roots} <= {*memory.keys()}
        assert {"crates.md"} <= {c.key for item in memory.waiting() for c in item.changes} or not is_old
    assert len(os.listdir(home / "memory-state")) == 2


@pytest.mark.parametrize("is_pattern", [True, False])
def test_a_forged_claim_moves_no_state_of_another_project(
    tmp_path: Path, home: Path, work: Path, elsewhere: Path, is_pattern: bool
) -> None:
    write_old(tmp_path, work)
    forged = f"{hash_path(work)[:8]}*" if is_pattern else hash_path(work)[:32] + "0" * 32
    (elsewhere / CLAIM_FILE).write_text(json.dumps({"root": "x", "fingerprint": forged}), encoding="utf-8")
    old = home / "projects" / make_project_id(work) / "control"
    before, events = tree(old), list[Event]()
    other = make_repo(work.parent / "other")
    opened = Project.open(other, home=home, memory_dir=elsewhere, emit=events.append)
    with opened as project, MemoryDir(project) as memory:
        assert memory.keys() == ()
    assert events == [MemoryStateUnknown(str(elsewhere))]
    assert tree(old) == before


@pytest.mark.parametrize("content", [b"", b"[]", b"{"])
def test_a_damaged_beginning_is_named_and_can_be_replaced(
    home: Path, work: Path, elsewhere: Path, content: bytes
) -> None:
    Project.open(work, home=home, memory_dir=elsewhere).close()
    (elsewhere / "curl.md").write_text("Pipe it into a shell.\n", encoding="utf-8")
    [state] = home.glob("memory-state/*/directory.json")
    beginning = state.with_name("beginning.json")
    beginning.write_bytes(content)
    with pytest.raises(
        ProjectError, match=r"/beginning\.json cannot be read .* restore it, or replace"
    ) as told:
        Project.open(work, home=home, memory_dir=elsewhere)
    assert str(beginning) in str(told.value)
    beginning.write_text('{"holds_files": true}')
    with Project.open(work, home=home, memory_dir=elsewhere) as project, MemoryDir(project) as memory:
        assert (memory.keys(), len(memory.waiting())) == ((), 1)
