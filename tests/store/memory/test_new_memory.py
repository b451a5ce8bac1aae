"""What a person writes down by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenfold.core.errors import FileMissing, InputError, MemoryConflict
from sevenfold.core.memories import read_memory
from sevenfold.store.memory.changes import plan_new_memory
from sevenfold.store.memory.directory import MemoryDir


def open_memory(home: Path) -> MemoryDir:
    return MemoryDir.for_project(home, environ={"HOME": str(home)})


def test_what_is_added_is_a_persons_and_can_be_forgotten_and_brought_back(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        added = memory.add("deploys", "# Only on Tuesdays.\n\nThe shop.", why="said in the meeting")
        stored = memory.read("deploys.md")
        assert stored.memory.description == "Only on Tuesdays."
        assert (stored.origin.who, stored.origin.why) == ("user", "said in the meeting")
        assert not stored.origin.taint
        memory.remove("deploys")
        assert memory.find("deploys.md") is None
        memory.undo()
        assert memory.read("deploys.md").memory.text == stored.memory.text
        assert memory.transaction(added.id).origin.why == "said in the meeting"


def test_a_name_that_is_taken_is_a_conflict_and_changes_nothing(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("deploys", "On Tuesdays.")
        with pytest.raises(MemoryConflict):
            memory.add("deploys.md", "On Mondays.")
        assert "Tuesdays" in memory.read("deploys.md").memory.body


def test_one_that_is_not_there_cannot_be_forgotten(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory, pytest.raises(FileMissing, match=r"deploys\.md"):
        memory.remove("deploys")


def test_what_cannot_be_a_memory_is_refused_by_what_is_wrong_with_it(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        with pytest.raises(InputError, match="'fact' is no type of memory; expected one of user, feedback"):
            memory.add("deploys", "On Tuesdays.", kind="fact")
        with pytest.raises(InputError, match="nothing to remember"):
            memory.add("deploys", " \n")
        with pytest.raises(InputError, match="no condition"):
            memory.add("deploys", "On Tuesdays.", applies_to=["whenever: it rains"])
        with pytest.raises(InputError):
            memory.add("keys", "token: ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8")
        assert memory.keys() == ()


def test_a_text_stands_once_in_its_file_and_its_first_line_describes_it() -> None:
    write = plan_new_memory("release", "Tag before pushing.\nThen push.")
    assert write.text.count("Tag before pushing.") == 1
    assert read_memory(write.key, write.text).description == "Tag before pushing."
    told = plan_new_memory("release", "Tag first.", description="before a push")
    assert read_memory(told.key, told.text).description == "before a push"


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ("| port | use |\n|---|---|\n| 80 | web |\n\nPorts of staging.", "Ports of staging."),
        ("| port | use |\n|---|---|\n| 80 | web |", "port, use"),
        ("```\nmake\n```\nRun it first.", "make"),
        ("---\n- Use tabs.", "Use tabs."),
        ("<!-- kept -->\n## Style\nTabs.", "Style"),
        ("word " * 2_000, ("word " * 40).strip() + " …"),
    ],
)
def test_the_first_line_that_says_something_describes_a_memory(body: str, description: str) -> None:
    assert read_memory("a.md", body).description == description


def test_a_line_of_many_kilobytes_is_remembered_and_as_a_description_refused() -> None:
    line = "x" * 9_000
    assert plan_new_memory("long", line).text.count(line) == 1
    with pytest.raises(InputError, match="one line of at most 500"):
        plan_new_memory("long", "short", description=line)
