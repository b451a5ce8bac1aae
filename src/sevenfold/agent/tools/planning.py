"""The `plan`, `todo` and `skill` tools, and the files in which tools keep their state of a session.

`plan`: plan first, change nothing, and let a person approve the plan. `todo`: the list of open work, which
the agent keeps and a person can watch. `skill`: instructions for a kind of work, loaded when needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from sevenfold.agent.permissions.guard import Guard, PermissionRequest
from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec, call_in_thread, error_output
from sevenfold.core.errors import FileMissing, InputError, SevenfoldError
from sevenfold.core.events import Emit, ToolStateLost
from sevenfold.core.json import (
    Json,
    JsonObject,
    freeze_object,
    get_choice,
    get_string,
    object_schema,
    read_object,
    write_json,
)
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.settings.sections import PermissionMode
from sevenfold.core.system import run_blocking
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.context import ContextSource
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.instructions import SkillFile, read_skill

# A compaction cuts the history, so this state is in small files in the session's folder. They are there again
# when the session is resumed or branched.
PLAN_FILE = "plan.md"
TODO_FILE = "todo.json"
SKILLS_FILE = "skills.json"

_MAX_BYTES = 1024 * 1024
"""Far more than a plan, a list or some names take."""


@dataclass(slots=True)
class ToolState:
    """One such file, in JSON. What cannot be read or written is reported, and lost."""

    name: str
    place: ToolContext | None = None
    """None, or one without a folder: nothing is kept."""

    def read(self) -> JsonObject | None:
        if self.place is None or self.place.session_folder is None:
            return None
        try:
            with Folder.open(self.place.session_folder) as folder:
                return read_object(folder.read(self.name, max_bytes=_MAX_BYTES))
        except FileMissing:
            return None
        except SevenfoldError as error:
            self.lose(str(error))
            return None

    def write(self, state: JsonObject) -> None:
        if self.place is None or self.place.session_folder is None:
            return
        try:
            with Folder.open(self.place.session_folder) as folder:
                folder.replace(self.name, write_json(state))
        except SevenfoldError as error:
            self.lose(str(error))

    def lose(self, reason: str) -> None:
        if self.place is not None:
            self.place.emit(ToolStateLost(self.name, reason))


def copy_tool_state(parent: Folder, child: Folder, emit: Emit) -> None:
    """Give a session that branches off what the tools of the other had kept."""
    for name in (PLAN_FILE, TODO_FILE, SKILLS_FILE):
        try:
            child.replace(name, parent.read(name, max_bytes=_MAX_BYTES))
        except FileMissing:
            continue
        except SevenfoldError as error:
            emit(ToolStateLost(name, str(error)))


_MAX_PLAN_CHARS = 100_000

_PLAN_SPEC = ToolSpec(
    "plan",
    "Plan before a change that is large or hard to undo. action enter: from then on nothing is changed, only "
    "read. action present: hand in the plan in markdown; the user approves it, and changes are possible "
    "again, or says what is wrong with it.",
    object_schema(
        {
            "action": {"type": "string", "enum": ["enter", "present"]},
            "plan": {"type": "string", "description": "With present: the whole plan."},
        },
        ("action",),
    ),
)


@dataclass(slots=True)
class PlanFile:
    """The plan of a session, in its folder; in memory where it has none."""

    folder: Path | None
    text: str = ""

    @property
    def name(self) -> str:
        return str(self.folder / PLAN_FILE) if self.folder else "the plan"

    def write(self, text: str) -> None:
        self.text = text
        if self.folder:
            with Folder.open(self.folder) as folder:
                folder.replace(PLAN_FILE, text.encode("utf-8", "backslashreplace"))

    def read(self) -> str:
        """The plan, also one of an earlier run of the session; empty: there is none."""
        if not self.text and self.folder:
            try:
                with Folder.open(self.folder) as folder:
                    self.text = folder.read(PLAN_FILE, max_bytes=_MAX_PLAN_CHARS * 4).decode(
                        "utf-8", "replace"
                    )
            except FileMissing:
                return ""
        return self.text


@dataclass(slots=True)
class PlanTool:
    """The tool. It changes the mode of the guard it is given: each agent has its own."""

    guard: Guard
    file: PlanFile
    spec: ToolSpec = _PLAN_SPEC
    _before: PermissionMode | None = field(default=None)
    """The mode that planning began in."""

    def begin(self, place: ToolContext) -> None:
        """Keep the plan with the session from now on."""
        self.file.folder = place.session_folder

    def need(self, given: JsonObject, _place: ToolContext) -> AccessRequest:
        return AccessRequest(kind="nothing", said=f"{_action(given)} a plan")

    async def run(self, given: JsonObject, _place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        if _action(given) == "enter":
            return self._enter()
        plan = get_string(given, "plan")
        try:
            await run_blocking(lambda: self.file.write(plan))
        except SevenfoldError as error:
            return error_output(f"the plan could not be stored: {error}")
        return await self._present(given)

    def extras(self) -> tuple[Extra, ...]:
        """The plan, for after a compaction."""
        text = self.file.read()
        return (Extra("plan", self.file.name, text),) if text else ()

    def _enter(self) -> ToolOutput:
        if self.guard.mode == "read-only":
            return ToolOutput("this session is read-only already; say what you would change")
        if self.guard.mode != "plan":
            self._before, self.guard.mode = self.guard.mode, "plan"
        return ToolOutput("nothing can be changed now; look around, then present a plan")

    async def _present(self, given: JsonObject) -> ToolOutput:
        need = AccessRequest(kind="nothing", said="approve this plan")
        use = ToolUse(ToolUseId("plan"), self.spec.name, given)
        async with self.guard.grants.asking:
            answer = await self.guard.ask(
                PermissionRequest(
                    use=use, need=need, reason="the plan is ready for approval", may_accept_edits=True
                )
            )
        said = f" The user says: {answer.words}" if answer.words else ""
        if not answer.is_allowed:
            return error_output(f"the plan was not approved; mend it and present it again.{said}")
        if self.guard.mode == "plan":
            after: PermissionMode = "accept-edits" if answer.lasts != "once" else self._before or "ask"
            self.guard.mode, self._before = after, None
        return ToolOutput(f"the plan was approved, and is kept in {self.file.name}; carry it out.{said}")


def _action(given: JsonObject) -> str:
    action = get_choice(given, "action", ("enter", "present"))
    plan = get_string(given, "plan", "")
    if action == "present" and not 0 < len(plan.strip()) <= _MAX_PLAN_CHARS:
        raise InputError(f"plan has {len(plan):,} characters; expected 1 to {_MAX_PLAN_CHARS:,}, in markdown")
    return action


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
    """The tool. The list outlives it, and its owner shows it."""

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


# `skill`: instructions for a kind of work.

_MAX_DESCRIPTION_CHARS = 300
"""Of each skill in the list: enough to tell when it is wanted."""

ARGUMENTS_VARIABLE = "$ARGUMENTS"

_SPEC = ToolSpec(
    "skill",
    "Load a skill: instructions, and often scripts, for one kind of work. The skills there are stand in the "
    "context; load one before work that it is meant for.",
    object_schema(
        {
            "name": {"type": "string", "description": "The skill's name."},
            "arguments": {"type": "string", "description": "What to use it on, where it asks for that."},
        },
        ("name",),
    ),
)


@dataclass(slots=True, kw_only=True)
class SkillTool:
    """The tool, and what it has loaded so far."""

    skills: tuple[SkillFile, ...]
    spec: ToolSpec = _SPEC
    _loaded: dict[str, str] = field(default_factory=dict[str, str])
    """By name, the newest last."""
    _arguments: dict[str, str] = field(default_factory=dict[str, str])
    """What each was loaded with."""
    _kept: ToolState = field(default_factory=lambda: ToolState(SKILLS_FILE))

    def begin(self, place: ToolContext) -> None:
        """Load again what the session had loaded, as it is now, and keep the names from now on."""
        self._kept.place = place
        state = self._kept.read()
        for name, arguments in state.items() if state else ():
            try:
                self._load(self._find(freeze_object({"name": name})), str(arguments))
            except SevenfoldError as error:
                self._kept.lose(f"the skill {name} is not in use again: {error}")

    def need(self, given: JsonObject, _place: ToolContext) -> AccessRequest:
        return AccessRequest(kind="nothing", said=f"load the skill {self._find(given).name}")

    async def run(self, given: JsonObject, _place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        skill, arguments = self._find(given), get_string(given, "arguments", "")

        def load() -> ToolOutput:
            text = self._load(skill, arguments)
            self._kept.write(freeze_object(self._arguments))
            return ToolOutput(text)

        return await call_in_thread(load)

    def sources(self) -> tuple[ContextSource, ...]:
        """The list of skills, for the context."""
        if not self.skills:
            return ()
        lines = [f"- {skill.name}: {_short(skill.description)}" for skill in self.skills]
        return (ContextSource("skills", "\n".join(lines)),)

    def extras(self) -> tuple[Extra, ...]:
        """What was loaded, the newest first, for after a compaction."""
        return tuple(Extra("skill", name, text) for name, text in reversed(self._loaded.items()))

    def _find(self, given: JsonObject) -> SkillFile:
        name = get_string(given, "name")
        found = next((skill for skill in self.skills if skill.name == name), None)
        if found is None:
            there = ", ".join(skill.name for skill in self.skills) or "none"
            raise InputError(f"there is no skill {name!r:.80}; there are: {there}")
        return found

    def _load(self, skill: SkillFile, arguments: str) -> str:
        body = read_skill(skill).body.strip()
        if ARGUMENTS_VARIABLE in body:
            body = body.replace(ARGUMENTS_VARIABLE, arguments)
        elif arguments:
            body = f"{body}\n\nTo be used on: {arguments}"
        text = f"Skill {skill.name}, from {Path(skill.path).parent} (paths in it start there)\n\n{body}"
        for known, value in ((self._loaded, text), (self._arguments, arguments)):
            known.pop(skill.name, None)
            known[skill.name] = value
        return text


def _short(description: str) -> str:
    line = " ".join(description.split())
    return line if len(line) <= _MAX_DESCRIPTION_CHARS else f"{line[: _MAX_DESCRIPTION_CHARS - 1]}…"
