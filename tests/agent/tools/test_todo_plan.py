"""The todo list and the plan are kept, shown again, and found after a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.agent.permissions.guard import Guard, PermissionRequest, PermissionResponse
from sevenfold.agent.permissions.rules import PermissionRules
from sevenfold.agent.tools.planning import MAX_TODO_ITEMS, TODO_FILE, PlanFile, PlanTool, TodoList, TodoTool
from sevenfold.core.errors import InputError
from sevenfold.core.events import Event, ToolStateLost
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.compaction.keep_policy import Extra
from tests.agent.tools.places import call, fault_of, make_place, text_of


@pytest.fixture
def place(tmp_path: Path) -> ToolContext:
    return make_place(tmp_path)


def item(content: str, status: str = "pending") -> dict[str, object]:
    return {"content": content, "status": status}


def test_a_list_is_replaced_as_a_whole_and_restored_after_a_cut(place: ToolContext) -> None:
    todos = TodoList()
    todo = TodoTool(todos)
    assert todo.extras() == ()
    call(todo, place, items=[item("one", "done"), item("two\nlines", "in_progress"), item("three")])
    assert todos.render() == "[x] one\n[>] two lines\n[ ] three"
    assert todo.extras() == (Extra("todo", "todo list", todos.render()),)
    assert text_of(call(todo, place, items=[])) == "the list is empty"


@pytest.mark.parametrize(
    "items", [None, "x", [1], [{}], [item("")], [item("x", "later")], [item("x")] * (MAX_TODO_ITEMS + 1)]
)
def test_what_is_no_list_is_refused(items: object, place: ToolContext) -> None:
    with pytest.raises(InputError):
        call(TodoTool(), place, items=items)


def test_a_resumed_session_has_the_list_that_it_kept(place: ToolContext) -> None:
    first, later = TodoTool(), TodoTool()
    first.begin(place)
    call(first, place, items=[item("old")])
    call(first, place, items=[item("new", "done")])
    later.begin(place)
    assert later.todos.render() == "[x] new"


@pytest.mark.parametrize("kept", [b"{", b'{"items": 1}', b"[]"])
def test_a_kept_list_that_cannot_be_used_is_told(kept: bytes, place: ToolContext) -> None:
    events: list[Event] = []
    assert place.session_folder
    (place.session_folder / TODO_FILE).write_bytes(kept)
    todo = TodoTool()
    todo.begin(replace(place, emit=events.append))
    assert todo.todos.items == ()
    [lost] = events
    assert isinstance(lost, ToolStateLost)
    assert lost.name == TODO_FILE


def test_a_list_that_cannot_be_kept_is_told_and_holds_all_the_same(place: ToolContext) -> None:
    events: list[Event] = []
    todo = TodoTool()
    todo.begin(replace(place, session_folder=place.root / "gone", emit=events.append))
    assert "one" in text_of(call(todo, place, items=[item("one")]))
    assert todo.extras()
    assert [type(event) for event in events] == [ToolStateLost]


def planning(place: ToolContext, answer: PermissionResponse) -> tuple[PlanTool, list[PermissionRequest]]:
    asked: list[PermissionRequest] = []

    async def ask(question: PermissionRequest) -> PermissionResponse:
        asked.append(question)
        return answer

    return PlanTool(
        Guard(mode="accept-edits", rules=PermissionRules(), root=place.root, ask=ask),
        PlanFile(place.session_folder),
    ), asked


def test_an_approved_plan_is_kept_and_gives_back_the_mode_it_began_in(place: ToolContext) -> None:
    plan, asked = planning(place, PermissionResponse(True, words="go"))
    text_of(call(plan, place, action="enter"))
    assert plan.guard.mode == "plan"
    assert "go" in text_of(call(plan, place, action="present", plan="# Steps\n1. this"))
    assert plan.guard.mode == "accept-edits"
    assert asked[0].use.input["plan"] == "# Steps\n1. this"
    assert place.session_folder
    path = place.session_folder / "plan.md"
    assert path.read_text() == "# Steps\n1. this"
    later = PlanTool(plan.guard, PlanFile(place.session_folder))
    assert later.extras() == (Extra("plan", str(path), "# Steps\n1. this"),)


def test_a_plan_that_is_not_approved_changes_nothing_yet(place: ToolContext) -> None:
    plan, _ = planning(place, PermissionResponse(False, words="too long"))
    call(plan, place, action="enter")
    assert "too long" in fault_of(call(plan, place, action="present", plan="x"))
    assert plan.guard.mode == "plan"


@pytest.mark.parametrize(("lasts", "mode"), [("once", "ask"), ("session", "accept-edits")])
def test_a_session_that_began_in_plan_mode_leaves_it_as_the_person_says(
    lasts: str, mode: str, place: ToolContext
) -> None:
    plan, _ = planning(place, PermissionResponse(True, "session" if lasts == "session" else "once"))
    plan.guard.mode = "plan"
    call(plan, place, action="present", plan="x")
    assert plan.guard.mode == mode


def test_planning_does_not_loosen_a_read_only_session(place: ToolContext) -> None:
    plan, _ = planning(place, PermissionResponse(True, "session"))
    plan.guard.mode = "read-only"
    assert "read-only" in text_of(call(plan, place, action="enter"))
    call(plan, place, action="present", plan="x")
    assert plan.guard.mode == "read-only"


def test_a_plan_lives_in_memory_where_there_is_no_folder(place: ToolContext) -> None:
    plan = PlanTool(Guard(mode="ask", rules=PermissionRules(), root=place.root), PlanFile(None))
    assert plan.extras() == ()
    assert "nobody" in fault_of(call(plan, place, action="present", plan="x"))
    assert plan.extras() == (Extra("plan", "the plan", "x"),)
    with pytest.raises(InputError, match="markdown"):
        call(plan, place, action="present", plan=" ")
