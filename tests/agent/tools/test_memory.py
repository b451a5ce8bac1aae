"""Memories are files of their own, and the index has a line for each beside a person's own lines."""

from __future__ import annotations

from collections.abc import Collection, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.agent.tools.memory import MAX_WRITTEN_MEMORY_BYTES, MemoryTool, UnknownConversation
from sevenfold.core.errors import InputError
from sevenfold.core.memories import Memory as Remembered
from sevenfold.core.memories import Origin
from sevenfold.core.text.markdown import read_frontmatter
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.memory.extraction.gate import MemoryDraft
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.index_text import MAX_INDEX_LINE_CHARS
from sevenfold.store.project.project import Project
from tests.agent.tools.places import call, fault_of, make_place, text_of


@pytest.fixture
def place(tmp_path: Path) -> ToolContext:
    return make_place(tmp_path)


@pytest.fixture
def memory(tmp_path: Path) -> Generator[MemoryTool]:
    with (
        Project.open(tmp_path / "project", home=tmp_path / "home") as project,
        MemoryDir(project) as memories,
    ):
        yield MemoryTool(memories)


def save(memory: MemoryTool, place: ToolContext, name: str, description: str = "When it matters.") -> None:
    given = {"action": "write", "name": name, "type": "feedback", "description": description}
    text_of(call(memory, place, content="Because.", **given))


def index(memory: MemoryTool) -> str:
    return (memory.memory.path / "MEMORY.md").read_text()


class Foreign(UnknownConversation):
    def judge_change(self, _before: Remembered | None, _after: Remembered, /) -> Origin:
        return Origin(who="agent", why="", taint=frozenset(["web"]))


class Renaming(UnknownConversation):
    def with_own_head(self, draft: MemoryDraft, _known: Collection[str], /) -> MemoryDraft:
        return replace(draft, key="own.md", name="own", description=draft.body.strip())


def test_a_memory_is_written_read_listed_and_forgotten(memory: MemoryTool, place: ToolContext) -> None:
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
    assert not (memory.memory.path / "MEMORY.md").exists()
    assert "list them" in fault_of(call(memory, place, action="delete", name="release-steps"))


def test_the_index_keeps_its_order_and_a_persons_own_lines(memory: MemoryTool, place: ToolContext) -> None:
    save(memory, place, "one")
    path = memory.memory.path / "MEMORY.md"
    path.write_text(f"# Mine\n\n{path.read_text()}\nremember the milk\n")
    for waiting in memory.memory.notice():
        memory.memory.accept(waiting.id)
    save(memory, place, "two")
    save(memory, place, "one", "Changed. " * 40)
    lines = index(memory).split("\n")
    assert [line[:6] for line in lines] == ["# Mine", "", "- [one", "- [two", "", "rememb", ""]
    assert len(lines[2]) == MAX_INDEX_LINE_CHARS


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", "A", "MEMORY.md", ".x", "x" * 81, "a\0", "con/../x", "é"]
)
def test_a_name_that_is_no_topic_is_refused(name: str, memory: MemoryTool, place: ToolContext) -> None:
    for action in ("read", "write", "delete"):
        with pytest.raises(InputError, match="name is"):
            call(memory, place, action=action, name=name, description="x", content="x")


def test_a_memory_needs_a_description_and_has_a_limit(memory: MemoryTool, place: ToolContext) -> None:
    with pytest.raises(InputError, match="description"):
        call(memory, place, action="write", name="a", description=" \n", content="x")
    with pytest.raises(InputError, match="split it"):
        call(memory, place, action="write", name="a", description="x", content="x" * MAX_WRITTEN_MEMORY_BYTES)
    with pytest.raises(InputError, match="one of user"):
        call(memory, place, action="write", name="a", description="x", content="x", type="secret")


def test_what_a_call_touches_is_said_before(memory: MemoryTool, place: ToolContext) -> None:
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
    assert needs["write"].paths == (f"{memory.memory.path}/a.md",)


def test_a_strangers_words_wait_for_the_user(memory: MemoryTool, place: ToolContext) -> None:
    memory.conversation = Foreign()
    given = {"action": "write", "name": "a", "description": "x", "content": "Obey."}
    assert "waits for the user" in text_of(call(memory, place, **given))
    assert text_of(call(memory, place, action="list")) == "nothing is remembered yet"
    assert [item.changes[0].key for item in memory.memory.waiting()] == ["a.md"]


def test_a_head_that_says_more_than_the_body_is_made_from_it(memory: MemoryTool, place: ToolContext) -> None:
    memory.conversation = Renaming()
    given = {"action": "write", "name": "a", "description": "Obey.", "content": "Deploys are on Tuesdays."}
    assert text_of(call(memory, place, **given)) == "remembered as own.md"
    assert text_of(call(memory, place, action="list")) == "- [project] own: Deploys are on Tuesdays."


def test_a_secret_is_not_remembered(memory: MemoryTool, place: ToolContext) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    given = {"action": "write", "name": "a", "description": "x", "content": f"The key is {key}"}
    said = fault_of(call(memory, place, **given))
    assert "secret" in said
    assert key not in said


@pytest.mark.parametrize(
    "content",
    ["The root cause was a missing lock.", "Next steps: finish the parser.", "```\nx = 1\ny = 2\n```"],
)
def test_what_is_not_saved_even_on_request_is_refused_with_the_reason(
    content: str, memory: MemoryTool, place: ToolContext
) -> None:
    given = {"action": "write", "name": "a", "description": "x", "content": content}
    assert "sevenfold memory add" in fault_of(call(memory, place, **given))
    assert memory.memory.keys() == ()


def test_a_rule_says_when_it_applies(memory: MemoryTool, place: ToolContext) -> None:
    given = {"action": "write", "name": "a", "description": "x", "content": "Ask first."}
    text_of(call(memory, place, **given, applies_to=["command:git push*"]))
    assert memory.memory.read("a.md").memory.applies_to == ("command:git push*",)
    with pytest.raises(InputError, match="applies_to"):
        call(memory, place, **given, applies_to="shell")


def test_what_a_write_does_not_speak_of_stays_in_the_head(memory: MemoryTool, place: ToolContext) -> None:
    text = "---\nname: a\ndescription: x\napplies_to: [tool:shell]\ngate: acknowledge\nmine: 1\n---\n\nAsk.\n"
    memory.memory.commit([Write("a.md", text, None)], Origin(who="user", why=""))
    given = {"action": "write", "name": "a", "description": "x", "content": "Ask first."}
    text_of(call(memory, place, **given))
    stored = memory.memory.read("a.md").memory
    assert (stored.applies_to, stored.field("gate"), stored.field("mine")) == (
        ("tool:shell",),
        "acknowledge",
        "1",
    )
    assert stored.body.strip() == "Ask first."
    text_of(call(memory, place, **given, applies_to=[]))
    assert memory.memory.read("a.md").memory.applies_to == ()


def test_what_changed_outside_is_not_written_over(memory: MemoryTool, place: ToolContext) -> None:
    save(memory, place, "one")
    (memory.memory.path / "one.md").write_text("by hand")
    given = {"action": "write", "name": "one", "description": "x", "content": "x"}
    assert "waiting for review" in fault_of(call(memory, place, **given))
