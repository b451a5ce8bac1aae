"""todo: the list of what is to be done, which the agent keeps and a person can watch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast, get_args

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.agent.tools.tool_state import TODO_FILE, ToolState
from sevenfold.core.errors import InputError
from sevenfold.core.json import Json, JsonObject, freeze_object
from sevenfold.core.json_fields import get_choice, get_string, object_schema
from sevenfold.core.tool_context import ToolContext
from sevenfold.layers.compaction.restore_policy import Extra
from sevenfold.store.files.offload import run_blocking

TodoStatus: TypeAlias = Literal["pending", "in_progress", "done"]
TODO_STATUSES: tuple[TodoStatus, ...] = get_args(TodoStatus)
_SIGNS: dict[TodoStatus, str] = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}

MAX_TODO_ITEMS = 100
_MAX_TODO_CHARS = 500

_TODO_SPEC = ToolSpec(
    "todo",
    "Keep a list of what is to be done in a task of several steps. Each call gives the whole list as it is "
    "now: one item in_progress at a time, done as soon as it is.",
    object_schema(
        {
            "items": {
                "type": "array",
                "description": f"All items, {MAX_TODO_ITEMS} at most.",
                "items": object_schema(
                    {
                        "content": {"type": "string", "description": "What is to be done, in a few words."},
                        "status": {"type": "string", "enum": list(TODO_STATUSES)},
                    },
                    ("content", "status"),
                ),
            }
        },
        ("items",),
    ),
)


@dataclass(frozen=True, slots=True)
class TodoItem:
    content: str
    status: TodoStatus


@dataclass(slots=True)
class TodoList:
    items: tuple[TodoItem, ...] = ()

    def render(self) -> str:
        return "\n".join(f"{_SIGNS[item.status]} {item.content}" for item in self.items)


@dataclass(frozen=True, slots=True)
class TodoTool:
    """The tool. The list outlives it, and is shown by whoever holds it."""

    todos: TodoList = field(default_factory=TodoList)
    spec: ToolSpec = _TODO_SPEC
    kept: ToolState = field(default_factory=lambda: ToolState(TODO_FILE))

    def begin(self, place: ToolContext) -> None:
        """Take up the list that the session has kept, and keep it there from now on."""
        self.kept.place = place
        try:
            self.todos.items = _items(state) if (state := self.kept.read()) else ()
        except InputError as error:
            self.kept.lose(str(error))

    def need(self, given: JsonObject, _place: ToolContext) -> AccessRequest:
        return AccessRequest(kind="nothing", said=f"todo list of {len(_items(given))}")

    async def run(self, given: JsonObject, _place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        self.todos.items = _items(given)
        await run_blocking(lambda: self.kept.write(freeze_object({"items": given["items"]})))
        return ToolOutput(self.todos.render() or "the list is empty")

    def extras(self) -> tuple[Extra, ...]:
        """The list, for after a compaction."""
        return (Extra("todo", "todo list", self.todos.render()),) if self.todos.items else ()


def _items(given: JsonObject) -> tuple[TodoItem, ...]:
    listed = given.get("items")
    if not isinstance(listed, tuple) or len(listed) > MAX_TODO_ITEMS:
        raise InputError(f"items is {_said(listed)}; expected a list of at most {MAX_TODO_ITEMS} items")
    return tuple(_item(item) for item in listed)


def _item(item: Json) -> TodoItem:
    if not isinstance(item, JsonObject):
        raise InputError(f"an item is {_said(item)}; expected an object with content and status")
    content = " ".join(get_string(item, "content").split())
    if not 0 < len(content) <= _MAX_TODO_CHARS:
        raise InputError(
            f"an item's content has {len(content):,} characters; expected 1 to {_MAX_TODO_CHARS}"
        )
    return TodoItem(content, cast("TodoStatus", get_choice(item, "status", TODO_STATUSES, "pending")))


def _said(value: Json) -> str:
    return f"a list of {len(value)}" if isinstance(value, tuple) else f"{value!r:.80}"
