"""Memories are files of their own, and the index has a line for each beside a person's own lines."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from sevenfold.core.errors import InputError
from sevenfold.core.frontmatter import read_frontmatter
from sevenfold.run.tools.memory import MAX_BYTES, MAX_LINE_CHARS, Memory
from sevenfold.run.workplace import Workplace
from sevenfold.store.folder import Folder
from tests.run.tools.places import call, fault_of, make_place, text_of


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return make_place(tmp_path)


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Memory]:
    with (
        Folder.open(tmp_path / "memory", create=True) as folder,
        Folder.open(tmp_path / "control", create=True) as control,
    ):
        yield Memory(folder, control)


def save(memory: Memory, place: Workplace, name: str, description: str = "When it matters.") -> None:
    given = {"action": "write", "name": name, "type": "feedback", "description": description}
    text_of(call(memory, place, content="Because.", **given))


def index(memory: Memory) -> str:
    return (memory.folder.path / "MEMORY.md").read_text()


def test_a_memory_is_written_read_listed_and_forgotten(memory: Memory, place: Workplace) -> None:
    assert text_of(call(memory, place, action="list")) == "nothing is remembered yet"
    save(memory, place, "release-steps", "How to: release\nsafely")
    document = read_frontmatter(text_of(call(memory, place, action="read", name="release-steps")))
    assert document.fields == {
        "name": "release-steps",
        "description": "How to: release safely",
        "type": "feedback",
    }
    assert document.body == "\nBecause.\n"
    assert index(memory) == "- [release-steps](release-steps.md) — How to: release safely\n"
    assert text_of(call(memory, place, action="list")) == "- [feedback] release-steps: How to: release safely"
    text_of(call(memory, place, action="delete", name="release-steps"))
    assert index(memory).strip() == ""
    assert "list them" in fault_of(call(memory, place, action="delete", name="release-steps"))


def test_the_index_keeps_its_order_and_a_persons_own_lines(memory: Memory, place: Workplace) -> None:
    save(memory, place, "one")
    path = memory.folder.path / "MEMORY.md"
    path.write_text(f"# Mine\n\n{path.read_text()}\nremember the milk\n")
    save(memory, place, "two")
    save(memory, place, "one", "Changed. " * 40)
    lines = index(memory).split("\n")
    assert [line[:6] for line in lines] == ["# Mine", "", "- [one", "", "rememb", "- [two", ""]
    assert len(lines[2]) == MAX_LINE_CHARS


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", "A", "MEMORY.md", ".x", "x" * 81, "a\0", "con/../x", "é"]
)
def test_a_name_that_is_no_topic_is_refused(name: str, memory: Memory, place: Workplace) -> None:
    for action in ("read", "write", "delete"):
        with pytest.raises(InputError, match="name is"):
            call(memory, place, action=action, name=name, description="x", content="x")


def test_a_memory_needs_a_description_and_has_a_limit(memory: Memory, place: Workplace) -> None:
    with pytest.raises(InputError, match="description"):
        call(memory, place, action="write", name="a", description=" \n", content="x")
    with pytest.raises(InputError, match="split it"):
        call(memory, place, action="write", name="a", description="x", content="x" * MAX_BYTES)
    with pytest.raises(InputError, match="one of user"):
        call(memory, place, action="write", name="a", description="x", content="x", type="secret")


def test_what_a_call_touches_is_said_before(memory: Memory, place: Workplace) -> None:
    from sevenfold.core.json import freeze_object

    needs = {
        action: memory.need(
            freeze_object({"action": action, "name": "a", "description": "x", "content": "x"}), place
        )
        for action in ("list", "read", "write", "delete")
    }
    assert {action: need.kind for action, need in needs.items()} == {
        "list": "read",
        "read": "read",
        "write": "edit",
        "delete": "edit",
    }
    assert needs["write"].paths == (f"{memory.folder.path}/a.md",)
