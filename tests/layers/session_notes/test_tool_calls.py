"""A tool call as the notes see it, of tools that are known and of others by their arguments."""

from __future__ import annotations

import pytest

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.layers.session_notes.tool_calls import ToolAction, classify_call, find_patched_paths

PATCH = (
    "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+def parse(line):\n@@\n-y\n+z\n*** Add File: b.py \n"
    "+class Reader:\n*** Update File: src/a.py\n*** Move to: c.py\n*** End Patch"
)


def read(name: str, **given: object) -> ToolAction:
    return classify_call(ToolUse(ToolUseId("t"), name, JsonObject(given)))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"path": "a.py", "old_str": "x", "new_str": "y"}, "edit"),
        ({"path": "a.py", "content": "x"}, "write"),
        ({"content": "x"}, "other"),
        ({"command": "make"}, "run"),
        ({"url": "https://x.org"}, "fetch"),
        ({"pattern": "x"}, "search"),
        ({"query": "x"}, "search"),
        ({"path": "a.py"}, "read"),
        ({"path": 3}, "other"),
        ({}, "other"),
    ],
)
def test_an_unknown_tool_is_what_its_arguments_look_like(given: dict[str, object], kind: str) -> None:
    assert read("frobnicate", **given).kind == kind


def test_the_files_of_a_patch_are_each_named_once() -> None:
    assert find_patched_paths(PATCH) == ("src/a.py", "b.py", "c.py")
    assert find_patched_paths("no patch") == ()


def test_what_a_call_changes_is_counted_with_the_names_it_defines() -> None:
    edits = (
        JsonObject({"old_string": "def parse(x):", "new_string": "def parse(x, y):"}),
        JsonObject({"old_string": "a", "new_string": "class Reader:"}),
        3,
    )
    many = read("MultiEdit", file_path="src/a.py", edits=edits)
    assert (many.kind, many.paths, many.changes) == ("edit", ("src/a.py",), 2)
    assert set(many.names) == {"parse", "Reader"}
    one = read("Edit", file_path="src/a.py", old_string="x", new_string="y")
    assert (one.changes, one.names) == (1, ())
    patched = read("apply_patch", input=PATCH)
    assert (patched.kind, patched.paths, patched.changes) == ("edit", ("src/a.py", "b.py", "c.py"), 2)


def test_a_line_break_in_a_name_starts_no_line() -> None:
    action = ToolAction(kind="read", tool="x", paths=("a\nb",), mentions=("c\u2028d",), sought="e\r\nf")
    assert (action.paths, action.mentions, action.sought) == (("a b",), ("c d",), "e f")
