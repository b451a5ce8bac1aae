"""The `skill` tool: instructions for a kind of work, loaded when needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec, call_in_thread
from sevenfold.agent.tools.planning import SKILLS_FILE, ToolState
from sevenfold.core.errors import InputError, SevenfoldError
from sevenfold.core.json import JsonObject, freeze_object, get_string, object_schema
from sevenfold.core.tool_context import ToolContext
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.context import ContextSource
from sevenfold.store.project.instructions import SkillFile, read_skill

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
