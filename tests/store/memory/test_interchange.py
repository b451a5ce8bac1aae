"""Memories come from plain folders and go there, and another agent's folder can be used in place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sevenfold.cli.memory.change import read_memory_folder, write_memory_folder
from sevenfold.core.errors import FileExists, NotRegular, ProjectError
from sevenfold.core.events import Event, MemoryRefused
from sevenfold.core.memories import INDEX_FILE, Origin
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project, claude_memory_path
from tests.store.memory.memories import MemorySetup, files, index, put

NESTED = "---\nname: deploys\nmetadata:\n  node_type: memory\n  type: project\n---\nNever on Fridays.\n"


@pytest.fixture
def setup(tmp_path: Path) -> MemorySetup:
    return MemorySetup(place=tmp_path)


def test_what_is_written_to_a_folder_is_read_back(setup: MemorySetup, tmp_path: Path) -> None:
    with setup.opened() as memory:
        put(memory, "a.md", NESTED)
        put(memory, "team/b.md", "B\n")
        put(memory, "archive/c.md", "C\n")
        assert write_memory_folder(memory, tmp_path / "out") == 2
        assert (tmp_path / "out" / INDEX_FILE).read_text() == index(memory)
        with pytest.raises(FileExists):
            write_memory_folder(memory, tmp_path / "out")
    other = MemorySetup(place=tmp_path / "other")
    other.place.mkdir()
    with other.opened() as memory:
        found = read_memory_folder(tmp_path / "out")
        memory.commit(found.writes, Origin(who="user", why="imported"))
        assert files(memory)["a.md"] == NESTED
        assert memory.keys() == ("a.md", "team/b.md")
        assert memory.read("a.md").memory.kind == "project"


def test_no_link_is_followed_and_every_refusal_is_told(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "in"
    outside.mkdir()
    folder.mkdir()
    (outside / "secret.md").write_text("secret")
    (folder / "good.md").write_text("good")
    (folder / "link.md").symlink_to(outside / "secret.md")
    (folder / "below").symlink_to(outside)
    (folder / "CON.md").write_text("device")
    (folder / "a\u202eb.md").write_text("turned around")
    os.link(outside / "secret.md", folder / "hard.md")
    told: list[Event] = []
    found = read_memory_folder(folder, told.append)
    assert [write.key for write in found.writes] == ["good.md"]
    assert sorted(event.name for event in found.refused) == ["CON.md", "a\u202eb.md", "hard.md", "link.md"]
    assert list(found.refused) == [event for event in told if isinstance(event, MemoryRefused)]
    (tmp_path / "way").symlink_to(folder)
    with pytest.raises(NotRegular):
        read_memory_folder(tmp_path / "way")


def environ(tmp_path: Path) -> dict[str, str]:
    settings = tmp_path / "home" / ".sevenfold" / "settings.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("[places]\nclaude_memory = true\n")
    return {"HOME": str(tmp_path / "home")}


def test_claude_codes_folder_is_used_in_place(tmp_path: Path) -> None:
    root = tmp_path / "work" / "my.app"
    (root / ".git").mkdir(parents=True)
    folder = claude_memory_path(root, tmp_path / "home")
    assert folder.parent.name == "".join(mark if mark.isalnum() else "-" for mark in str(root))
    folder.mkdir(parents=True)
    (folder / "deploys.md").write_text(NESTED)
    (folder / INDEX_FILE).write_text("- [Deploys](deploys.md) — frozen on Fridays\n")
    with MemoryDir.for_project(root, environ=environ(tmp_path)) as memory:
        assert memory.path == folder
        assert memory.keys() == ("deploys.md",)
        put(memory, "a.md", "A\n")
        assert index(memory) == "- [Deploys](deploys.md) — frozen on Fridays\n- [a](a.md) — A\n"


def test_claude_codes_folder_is_named_by_letters_and_digits_alone() -> None:
    folder = claude_memory_path(Path("/srv/my_app (2)/größe.v1"), Path("/home/ada"))
    assert folder == Path("/home/ada/.claude/projects/-srv-my-app--2--gr--e-v1/memory")


def test_a_path_too_long_for_its_name_there_is_not_guessed_and_may_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / ("a" * 120) / ("b" * 120)
    (root / ".git").mkdir(parents=True)
    with pytest.raises(ProjectError, match="too long for its folder"):
        MemoryDir.for_project(root, environ=environ(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    beginning = "".join(mark if mark.isalnum() else "-" for mark in str(root))[:200]
    folders = tmp_path / "home" / ".claude" / "projects"
    with Project.open(
        root, home=tmp_path / "ours", memory_dir=folders / f"{beginning}-1x2y" / "memory"
    ) as found:
        assert found.memory.path == folders / f"{beginning}-1x2y" / "memory"
    with pytest.raises(ProjectError, match="holds keys or settings"):
        Project.open(root, home=tmp_path / "ours", memory_dir=folders / "-another" / "memory")


def test_two_projects_that_share_a_name_there_do_not_share_memories(tmp_path: Path) -> None:
    for name in ("my.app", "my-app"):
        (tmp_path / name / ".git").mkdir(parents=True)
    with MemoryDir.for_project(tmp_path / "my.app", environ=environ(tmp_path)) as memory:
        put(memory, "a.md")
    with pytest.raises(ProjectError, match="another project"):
        MemoryDir.for_project(tmp_path / "my-app", environ=environ(tmp_path))
