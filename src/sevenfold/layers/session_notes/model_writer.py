"""The model writer: a fork that may edit the notes and nothing else. It edits a text in memory; the file is
replaced once, when the fork has ended, so that nobody reads half an update."""

from __future__ import annotations

from sevenfold.core.errors import InputError
from sevenfold.core.events import Emit
from sevenfold.core.messages import ToolResult, ToolUse
from sevenfold.core.requests import ModelRequest
from sevenfold.core.tool_kinds import NEW_TEXT_KEYS, OLD_TEXT_KEYS, find_tool
from sevenfold.layers.forks.runner import run_fork
from sevenfold.layers.session_notes.policy import NotesTask, build_notes_brief
from sevenfold.providers.provider import Provider


def find_edit_tool(parent: ModelRequest) -> str | None:
    """The edit tool that the request declares: a fork has the parent's tools, and no others."""
    names = (tool.get("name") for tool in parent.frame.tools)
    return next((name for name in names if isinstance(name, str) and _replaces(name)), None)


async def run_notes_fork(
    parent: ModelRequest, task: NotesTask, prompt: str, provider: Provider, emit: Emit
) -> str:
    """The notes as the model has edited them; `InputError` where it made no edit that fits."""
    draft = NotesDraft(task.text)
    await run_fork(parent, build_notes_brief(task, prompt), provider, run_tool=draft.run, emit=emit)
    if not draft.edits:
        raise InputError(f"the model made no edit of {task.path} that fits; {draft.misses} did not")
    return draft.text


class NotesDraft:
    """The text under edit, and the one tool that works on it."""

    def __init__(self, text: str) -> None:
        self.text: str = text
        self.edits = 0
        self.misses = 0

    async def run(self, use: ToolUse) -> ToolResult:
        old, new = _given(use, OLD_TEXT_KEYS), _given(use, NEW_TEXT_KEYS)
        if not old or new is None:
            return self._miss(use, "say which text to replace, and by what")
        places = self.text.count(old)
        if places != 1 and not (places and use.input.get("replace_all") is True):
            return self._miss(use, f"the text to replace occurs {places} times; quote it so that it is one")
        self.text = self.text.replace(old, new)
        self.edits += 1
        return ToolResult(use.id, "done")

    def _miss(self, use: ToolUse, reason: str) -> ToolResult:
        self.misses += 1
        return ToolResult(use.id, reason, is_error=True)


def _replaces(name: str) -> bool:
    kind = find_tool(name)
    return kind is not None and kind.replaces


def _given(use: ToolUse, keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := use.input.get(key), str)), None)
