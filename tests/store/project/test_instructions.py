"""Instruction files: found in order, each once, and never more than a file of one's own says."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.events import Event, InstructionSkipped
from sevenfold.core.text.markdown import find_imports, is_path_like
from sevenfold.store.project.instructions import (
    MAX_IMPORTS,
    MAX_INSTRUCTION_BYTES,
    MAX_INSTRUCTION_FILES,
    Instruction,
    InstructionPaths,
    InstructionReader,
)


@dataclass
class Tree:
    """A machine with an operator, a user and a project on it."""

    top: Path
    events: list[Event] = field(default_factory=list[Event])

    @property
    def places(self) -> InstructionPaths:
        return InstructionPaths(
            home=self.top / "user" / ".sevenfold",
            user_home=self.top / "user",
            root=self.top / "repo",
            start=self.top / "repo" / "src" / "deep",
            managed=self.top / "etc" / "AGENTS.md",
        )

    def put(self, name: str, text: str | bytes) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def read(self, **changes: object) -> tuple[Instruction, ...]:
        places = replace(self.places, **changes)
        return InstructionReader(places, emit=self.events.append).read()

    def names(self, **changes: object) -> list[str]:
        return [str(item.path.relative_to(self.top)) for item in self.read(**changes)]

    @property
    def skipped(self) -> list[InstructionSkipped]:
        assert all(isinstance(event, InstructionSkipped) for event in self.events)
        return [event for event in self.events if isinstance(event, InstructionSkipped)]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "repo" / "src" / "deep").mkdir(parents=True)
    return Tree(tmp_path)


def test_all_kinds_are_read_from_the_farthest_to_the_nearest(tree: Tree) -> None:
    wanted = [
        "etc/AGENTS.md",
        "user/.sevenfold/AGENTS.md",
        "repo/AGENTS.md",
        "repo/CLAUDE.md",
        "repo/.claude/CLAUDE.md",
        "repo/src/AGENTS.md",
        "repo/src/deep/CLAUDE.md",
        "repo/AGENTS.local.md",
        "repo/src/CLAUDE.local.md",
    ]
    for name in reversed(wanted):
        tree.put(name, f"I am {name}\n")
    found = tree.read()
    assert [str(item.path.relative_to(tree.top)) for item in found] == wanted
    assert [item.text for item in found] == [f"I am {name}" for name in wanted]
    kinds = ["managed", "user", *["project"] * 5, "local", "local"]
    assert [item.kind for item in found] == kinds
    assert tree.events == []


def test_nothing_above_the_checkout_or_beside_the_way_down_is_read(tree: Tree) -> None:
    for name in ("AGENTS.md", "repo/other/AGENTS.md", "repo/src/deep/er/AGENTS.md"):
        tree.put(name, "not for you")
    assert tree.read() == ()


def test_without_a_project_only_the_operator_and_the_user_speak(tree: Tree) -> None:
    tree.put("user/.sevenfold/AGENTS.md", "mine")
    tree.put("repo/AGENTS.md", "ours")
    assert tree.names(root=None, start=None) == ["user/.sevenfold/AGENTS.md"]


def test_a_start_outside_the_checkout_reads_its_top_alone(tree: Tree) -> None:
    tree.put("repo/AGENTS.md", "top")
    assert tree.names(start=tree.top / "elsewhere") == ["repo/AGENTS.md"]


def test_files_of_other_agents_are_read_as_settings_say(tree: Tree) -> None:
    for name in ("repo/CLAUDE.md", "repo/AGENTS.md", "user/.claude/CLAUDE.md", "repo/CLAUDE.local.md"):
        tree.put(name, name)
    assert tree.names() == ["repo/AGENTS.md", "repo/CLAUDE.md", "repo/CLAUDE.local.md"]
    assert tree.names(claude_files=False) == ["repo/AGENTS.md"]
    assert tree.names(claude_user_file=True)[0] == "user/.claude/CLAUDE.md"


def test_two_files_of_a_folder_that_say_the_same_are_read_once(tree: Tree) -> None:
    tree.put("repo/AGENTS.md", "same\n")
    tree.put("repo/.claude/CLAUDE.md", "same")
    (tree.top / "repo" / "CLAUDE.md").symlink_to("AGENTS.md")
    tree.put("repo/src/AGENTS.md", "same")
    assert tree.names() == ["repo/AGENTS.md", "repo/src/AGENTS.md"]
    assert tree.events == []


def test_an_import_follows_the_file_that_names_it_and_comes_once(tree: Tree) -> None:
    tree.put("repo/AGENTS.md", "see @docs/style.md, @./docs/tests.md and @~/not/mine.md")
    tree.put("repo/CLAUDE.md", "@AGENTS.md")
    tree.put("repo/docs/style.md", "style; back to @../AGENTS.md")
    tree.put("repo/docs/tests.md", "tests @style.md")
    tree.put("user/not/mine.md", "secret")
    assert tree.names() == ["repo/AGENTS.md", "repo/docs/style.md", "repo/docs/tests.md", "repo/CLAUDE.md"]
    (event,) = tree.skipped
    assert event.path.endswith("not/mine.md")
    assert "leads out" in event.reason


def test_the_users_own_file_may_import_from_the_users_home_and_no_further(tree: Tree) -> None:
    tree.put("user/.sevenfold/AGENTS.md", "@~/dots/style.md @../../etc/passwd.md")
    tree.put("user/dots/style.md", "style")
    tree.put("etc/passwd.md", "root")
    assert tree.names() == ["user/.sevenfold/AGENTS.md", "user/dots/style.md"]
    assert len(tree.skipped) == 1


def test_imports_go_four_files_deep(tree: Tree) -> None:
    tree.put("repo/AGENTS.md", "@f1.md")
    for number in range(1, 7):
        tree.put(f"repo/f{number}.md", f"@f{number + 1}.md")
    assert tree.names() == ["repo/AGENTS.md", "repo/f1.md", "repo/f2.md", "repo/f3.md", "repo/f4.md"]
    (event,) = tree.skipped
    assert event.path.endswith("f5.md")


def test_a_circle_of_imports_ends(tree: Tree) -> None:
    tree.put("repo/AGENTS.md", "a @b.md")
    tree.put("repo/b.md", "b @AGENTS.md @b.md")
    assert tree.names() == ["repo/AGENTS.md", "repo/b.md"]
    assert tree.events == []


@pytest.mark.parametrize("name", ["repo/AGENTS.md", "repo/docs/x.md"])
def test_a_link_that_leads_out_of_the_project_is_refused(tree: Tree, name: str) -> None:
    tree.put("repo/AGENTS.md", "@docs/x.md")
    secret = tree.put("user/.ssh/id", "secret")
    path = tree.top / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(secret)
    assert "secret" not in [item.text for item in tree.read()]
    (event,) = tree.skipped
    assert event.path == str(path)
    assert "leads out" in event.reason


def test_a_folder_that_is_a_link_leads_out_no_better(tree: Tree) -> None:
    tree.put("user/.claude/CLAUDE.md", "secret")
    (tree.top / "repo" / ".claude").symlink_to(tree.top / "user" / ".claude")
    assert tree.read() == ()
    assert "leads out" in tree.skipped[0].reason


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere.md")


def _binary(path: Path) -> None:
    path.write_bytes(b"ELF\0\0")


@pytest.mark.parametrize("make", [_fifo, _folder, _device, _loop, _dangling, _binary])
@pytest.mark.parametrize("name", ["repo/AGENTS.md", "etc/AGENTS.md"])
def test_what_is_no_readable_text_is_told_once_and_the_rest_counts(
    tree: Tree, make: Callable[[Path], None], name: str
) -> None:
    path = tree.top / name
    path.parent.mkdir(exist_ok=True)
    make(path)
    tree.put("repo/CLAUDE.md", "rest")
    reader = InstructionReader(tree.places, emit=tree.events.append)
    assert [item.text for item in reader.read()] == ["rest"]
    reader.read()
    (event,) = tree.skipped
    assert event.path == str(path)


def test_bytes_that_are_no_utf_8_are_replaced_and_a_byte_order_mark_is_dropped(tree: Tree) -> None:
    tree.put("repo/AGENTS.md", b"\xef\xbb\xbfcaf\xe9")
    (found,) = tree.read()
    assert found.text == "caf\N{REPLACEMENT CHARACTER}"


def test_of_a_very_long_file_only_the_beginning_is_read(tree: Tree) -> None:
    tree.put("repo/AGENTS.md", "é" * MAX_INSTRUCTION_BYTES)
    (found,) = tree.read()
    assert found.is_cut
    assert found.text == "é" * (MAX_INSTRUCTION_BYTES // 2)


def test_a_crowd_of_imports_costs_a_bounded_look(tree: Tree) -> None:
    tree.put("repo/AGENTS.md", " ".join(f"@no{number}.md" for number in range(10_000)))
    assert tree.names() == ["repo/AGENTS.md"]
    assert len(tree.events) == MAX_IMPORTS + 1


def test_a_crowd_of_files_is_read_up_to_a_bound(tree: Tree) -> None:
    tree.put("repo/AGENTS.md", " ".join(f"@f{number}.md" for number in range(100)))
    for number in range(100):
        tree.put(f"repo/f{number}.md", f"{number}")
    assert len(tree.read()) == MAX_INSTRUCTION_FILES


def test_an_unchanged_file_is_the_same_text_and_a_changed_one_is_seen(tree: Tree) -> None:
    path = tree.put("repo/AGENTS.md", "one")
    reader = InstructionReader(tree.places)
    first, again = reader.read(), reader.read()
    assert first == again
    path.write_text("three")
    assert [item.text for item in reader.read()] == ["three"]
    path.unlink()
    assert reader.read() == ()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@a.md", ("a.md",)),
        ("see @a/b.md, (not (@c.md)) and @d.md.", ("a/b.md", "d.md")),
        ("mail me@example.com", ()),
        ("`@a.md` and ``` @b.md ```", ()),
        ("```\n@a.md\n```\n@b.md", ("b.md",)),
        ("~~~text\n```\n@a.md\n~~~\n@b.md", ("b.md",)),
        ("@a.md @a.md", ("a.md",)),
        ("@ @. @.. @/ @~", ()),
        ("*@a.md* - @b.md", ("b.md",)),
    ],
)
def test_imports_are_found_in_prose_alone(text: str, wanted: tuple[str, ...]) -> None:
    assert find_imports(text) == wanted


@given(st.text(alphabet="@`~a./ \n"))
def test_no_import_holds_a_space_or_stands_twice(text: str) -> None:
    found = find_imports(text)
    assert len(found) == len(set(found))
    assert not any(set(item) & set(" \n") for item in found)


def test_only_a_name_with_an_ending_is_missed_when_it_is_not_there(tree: Tree) -> None:
    assert is_path_like("a.md")
    assert not is_path_like("types/node")
    tree.put("repo/AGENTS.md", "@team uses @types/node and @gone.md")
    tree.read()
    (event,) = tree.skipped
    assert event.path.endswith("gone.md")
