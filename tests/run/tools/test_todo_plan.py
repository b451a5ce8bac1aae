"""The todo list and the plan are kept, shown again, and found after a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.core.errors import InputError
from sevenfold.core.events import Event, ToolStateLost
from sevenfold.layers.compact_restore import Extra
from sevenfold.run.kept_state import TODO
from sevenfold.run.permissions import Answer, Guard, Question
from sevenfold.run.rules import Rules
from sevenfold.run.tools.plan import Plan, PlanFile
from sevenfold.run.tools.todo import MAX_ITEMS, Todo, TodoList
from sevenfold.run.workplace import Workplace
from tests.run.tools.places import call, fault_of, make_place, text_of


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return make_place(tmp_path)


def item(content: str, status: str = "pending") -> dict[str, object]:
    return {"content": content, "status": status}


def test_a_list_is_replaced_as_a_whole_and_restored_after_a_cut(place: Workplace) -> None:
    todos = TodoList()
    todo = Todo(todos)
    assert todo.extras() == ()
    call(todo, place, items=[item("one", "done"), item("two\nlines", "in_progress"), item("three")])
    assert todos.render() == "[x] one\n[>] two lines\n[ ] three"
    assert todo.extras() == (Extra("todo", "todo list", todos.render()),)
    assert text_of(call(todo, place, items=[])) == "the list is empty"


@pytest.mark.parametrize(
    "items", [None, "x", [1], [{}], [item("")], [item("x", "later")], [item("x")] * (MAX_ITEMS + 1)]
)
def test_what_is_no_list_is_refused(items: object, place: Workplace) -> None:
    with pytest.raises(InputError):
        call(Todo(), place, items=items)


def test_a_resumed_session_has_the_list_that_it_kept(place: Workplace) -> None:
    first, later = Todo(), Todo()
    first.begin(place)
    call(first, place, items=[item("old")])
    call(first, place, items=[item("new", "done")])
    later.begin(place)
    assert later.todos.render() == "[x] new"


@pytest.mark.parametrize("kept", [b"{", b'{"items": 1}', b"[]"])
def test_a_kept_list_that_cannot_be_used_is_told(kept: bytes, place: Workplace) -> None:
    events: list[Event] = []
    assert place.session_folder
    (place.session_folder / TODO).write_bytes(kept)
    todo = Todo()
    todo.begin(replace(place, emit=events.append))
    assert todo.todos.items == ()
    [lost] = events
    assert isinstance(lost, ToolStateLost)
    assert lost.name == TODO


def test_a_list_that_cannot_be_kept_is_told_and_holds_all_the_same(place: Workplace) -> None:
    events: list[Event] = []
    todo = Todo()
    todo.begin(replace(place, session_folder=place.root / "gone", emit=events.append))
    assert "one" in text_of(call(todo, place, items=[item("one")]))
    assert todo.extras()
    assert [type(event) for event in events] == [ToolStateLost]


def planning(place: Workplace, answer: Answer) -> tuple[Plan, list[Question]]:
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return answer

    return Plan(Guard("accept-edits", Rules(), place.root, ask), PlanFile(place.session_folder)), asked


def test_an_approved_plan_is_kept_and_gives_back_the_mode_it_began_in(place: Workplace) -> None:
    plan, asked = planning(place, Answer(True, words="go"))
    text_of(call(plan, place, action="enter"))
    assert plan.guard.mode == "plan"
    assert "go" in text_of(call(plan, place, action="present", plan="# Steps\n1. this"))
    assert plan.guard.mode == "accept-edits"
    assert asked[0].use.input["plan"] == "# Steps\n1. this"
    assert place.session_folder
    path = place.session_folder / "plan.md"
    assert path.read_text() == "# Steps\n1. this"
    later = Plan(plan.guard, PlanFile(place.session_folder))
    assert later.extras() == (Extra("plan", str(path), "# Steps\n1. this"),)


def test_a_plan_that_is_not_approved_changes_nothing_yet(place: Workplace) -> None:
    plan, _ = planning(place, Answer(False, words="too long"))
    call(plan, place, action="enter")
    assert "too long" in fault_of(call(plan, place, action="present", plan="x"))
    assert plan.guard.mode == "plan"


@pytest.mark.parametrize(("lasts", "mode"), [("once", "ask"), ("session", "accept-edits")])
def test_a_session_that_began_in_plan_mode_leaves_it_as_the_person_says(
    lasts: str, mode: str, place: Workplace
) -> None:
    plan, _ = planning(place, Answer(True, "session" if lasts == "session" else "once"))
    plan.guard.mode = "plan"
    call(plan, place, action="present", plan="x")
    assert plan.guard.mode == mode


def test_planning_does_not_loosen_a_read_only_session(place: Workplace) -> None:
    plan, _ = planning(place, Answer(True, "session"))
    plan.guard.mode = "read-only"
    assert "read-only" in text_of(call(plan, place, action="enter"))
    call(plan, place, action="present", plan="x")
    assert plan.guard.mode == "read-only"


def test_a_plan_lives_in_memory_where_there_is_no_folder(place: Workplace) -> None:
    plan = Plan(Guard("ask", Rules(), place.root), PlanFile(None))
    assert plan.extras() == ()
    assert "nobody" in fault_of(call(plan, place, action="present", plan="x"))
    assert plan.extras() == (Extra("plan", "the plan", "x"),)
    with pytest.raises(InputError, match="markdown"):
        call(plan, place, action="present", plan=" ")
