"""todo: the list of what is to be done, which the agent keeps and a person can watch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast, get_args

from sevenfold.core.errors import InputError
from sevenfold.core.json import Json, JsonObject, freeze_object
from sevenfold.layers.compact_restore import Extra
from sevenfold.run.kept_state import TODO, KeptState
from sevenfold.run.tool import Need, OnProgress, ToolOutput, ToolSpec
from sevenfold.run.tools.inputs import schema, text_of, word_of
from sevenfold.run.workplace import Workplace
from sevenfold.store.offload import durably

Status: TypeAlias = Literal["pending", "in_progress", "done"]
STATUSES: tuple[Status, ...] = get_args(Status)
_SIGNS: dict[Status, str] = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}

MAX_ITEMS = 100
MAX_CHARS = 500

SPEC = ToolSpec(
    "todo",
    "Keep a list of what is to be done in a task of several steps. Each call gives the whole list as it is "
    "now: one item in_progress at a time, done as soon as it is.",
    schema(
        {
            "items": {
                "type": "array",
                "description": f"All items, {MAX_ITEMS} at most.",
                "items": schema(
                    {
                        "content": {"type": "string", "description": "What is to be done, in a few words."},
                        "status": {"type": "string", "enum": list(STATUSES)},
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
    status: Status


@dataclass(slots=True)
class TodoList:
    items: tuple[TodoItem, ...] = ()

    def render(self) -> str:
        return "\n".join(f"{_SIGNS[item.status]} {item.content}" for item in self.items)


@dataclass(frozen=True, slots=True)
class Todo:
    """The tool. The list outlives it, and is shown by whoever holds it."""

    todos: TodoList = field(default_factory=TodoList)
    spec: ToolSpec = SPEC
    kept: KeptState = field(default_factory=lambda: KeptState(TODO))

    def begin(self, place: Workplace) -> None:
        """Take up the list that the session has kept, and keep it there from now on."""
        self.kept.place = place
        try:
            self.todos.items = _items(state) if (state := self.kept.read()) else ()
        except InputError as error:
            self.kept.lose(str(error))

    def need(self, given: JsonObject, _place: Workplace) -> Need:
        return Need("nothing", said=f"todo list of {len(_items(given))}")

    async def run(self, given: JsonObject, _place: Workplace, _on_progress: OnProgress) -> ToolOutput:
        self.todos.items = _items(given)
        await durably(lambda: self.kept.write(freeze_object({"items": given["items"]})))
        return ToolOutput(self.todos.render() or "the list is empty")

    def extras(self) -> tuple[Extra, ...]:
        """The list, for after a compaction."""
        return (Extra("todo", "todo list", self.todos.render()),) if self.todos.items else ()


def _items(given: JsonObject) -> tuple[TodoItem, ...]:
    listed = given.get("items")
    if not isinstance(listed, tuple) or len(listed) > MAX_ITEMS:
        raise InputError(f"items is {_said(listed)}; expected a list of at most {MAX_ITEMS} items")
    return tuple(_item(item) for item in listed)


def _item(item: Json) -> TodoItem:
    if not isinstance(item, JsonObject):
        raise InputError(f"an item is {_said(item)}; expected an object with content and status")
    content = " ".join(text_of(item, "content").split())
    if not 0 < len(content) <= MAX_CHARS:
        raise InputError(f"an item's content has {len(content):,} characters; expected 1 to {MAX_CHARS}")
    return TodoItem(content, cast("Status", word_of(item, "status", STATUSES, "pending")))


def _said(value: Json) -> str:
    return f"a list of {len(value)}" if isinstance(value, tuple) else f"{value!r:.80}"
