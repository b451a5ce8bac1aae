"""What goes back into view after a compaction."""

from __future__ import annotations

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.layers.compaction.keep_policy import (
    Extra,
    RestoredFile,
    RestoreFacts,
    find_read_files,
    plan_restore,
    render_restored_extra,
    render_restored_file,
)
from sevenfold.layers.compaction.policy import CompactSettings

SETTINGS = CompactSettings(restored_files=2, restored_skill_tokens=50, restored_skills_tokens=80)


def count(text: str) -> int:
    return len(text) // 4


def read(name: str, path: str, *, tool: str = "Read", key: str = "file_path") -> Message:
    return Message("assistant", (ToolUse(ToolUseId(name), tool, JsonObject({key: path})),))


def result(name: str, *, failed: bool = False) -> Message:
    return Message("user", (ToolResult(ToolUseId(name), "text", is_error=failed or None),))


def test_files_are_found_newest_first_by_their_last_successful_read() -> None:
    messages = [
        read("a", "/a.py"),
        result("a"),
        read("b", "/b.py", tool="view", key="path"),
        result("b"),
        read("c", "/c.py"),
        result("c", failed=True),
        read("d", "/a.py"),
        result("d"),
        read("e", "/e.py", tool="Bash"),
        result("e"),
        read("f", "/f.py"),
    ]
    assert find_read_files(messages) == ("/a.py", "/b.py")


def test_what_an_earlier_compaction_restored_counts_as_read() -> None:
    head = Message(
        "user", (Text("Summary."), render_restored_file(RestoredFile('/a "b".py', "code", is_cut=True)))
    )
    assert find_read_files([head]) == ('/a "b".py',)
    forged = Message("assistant", (render_restored_file(RestoredFile("/x", "code", is_cut=False)),))
    assert find_read_files([forged]) == ()


def test_the_newest_files_not_in_view_are_chosen_and_refusals_told() -> None:
    facts = RestoreFacts(
        seen=("/in-view.py", "/plan.md", "/one.py", "/two.py", "/three.py"),
        in_view=frozenset({"/in-view.py"}),
        barred=frozenset({"/plan.md"}),
    )
    plan = plan_restore(facts, SETTINGS, count)
    assert plan.files == ("/one.py", "/two.py")
    assert [left.what for left in plan.left] == ["/plan.md"]


def test_skills_share_a_budget_newest_first_and_the_rest_comes_whole() -> None:
    skills = tuple(Extra("skill", name, "line of a skill\n" * 40) for name in ("new", "older", "oldest"))
    todo = Extra("todo", "todo list", "- mend the parser\n" * 100)
    plan = plan_restore(RestoreFacts(extras=(*skills, todo)), SETTINGS, count)
    assert [extra.title for extra in plan.extras] == ["new", "older", "todo list"]
    sizes = [count(extra.text) for extra in plan.extras[:2]]
    assert sizes[0] <= 50
    assert sum(sizes) <= 80
    assert plan.extras[2] == todo
    assert [left.what for left in plan.left] == ["skill oldest"]


def test_a_cut_file_says_so() -> None:
    assert "only its beginning is shown" in render_restored_file(RestoredFile("/a", "x", is_cut=True)).text
    assert "only its beginning" not in render_restored_file(RestoredFile("/a", "x", is_cut=False)).text
    assert "plan: release" in render_restored_extra(Extra("plan", "release", "1. tag")).text
