"""edit: one exact piece of text in place of another."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.agent.tool_inputs import call_in_thread
from sevenfold.agent.tools.file_changes import read_known_state, write_text_file
from sevenfold.agent.tools.nearest_text import find_nearest
from sevenfold.agent.tools.paths import FILE_PATH_SCHEMA, allowed_path, resolve_asked_path
from sevenfold.agent.tools.text_file import decode_text_file
from sevenfold.core.errors import FileMissing, InputError
from sevenfold.core.json import JsonObject
from sevenfold.core.json_fields import get_flag, get_string, object_schema
from sevenfold.core.tool_context import ToolContext

MAX_NAMED = 10
"""Places that an error names: more than that and the text was too short anyway."""

_EDIT_SPEC = ToolSpec(
    "edit",
    "Replace text in a file that was read. old_string must stand in it exactly once, white space and all "
    "(without the line numbers that read shows); with replace_all every place is changed.",
    object_schema(
        {
            "file_path": FILE_PATH_SCHEMA,
            "old_string": {"type": "string", "description": "The text to replace, exactly as it stands."},
            "new_string": {"type": "string", "description": "The text to put there."},
            "replace_all": {"type": "boolean", "description": "Change every place; false if left out."},
        },
        ("file_path", "old_string", "new_string"),
    ),
)


@dataclass(frozen=True, slots=True)
class _Change:
    old: str
    new: str
    is_everywhere: bool


@dataclass(frozen=True, slots=True)
class EditTool:
    spec: ToolSpec = _EDIT_SPEC

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        path = resolve_asked_path(given, "file_path", place)
        _change(given)
        return AccessRequest(kind="edit", paths=(path,), said=f"edit {path}")

    async def run(self, given: JsonObject, place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        asked, change = resolve_asked_path(given, "file_path", place), _change(given)
        return await call_in_thread(lambda: _edit(allowed_path(asked, place), change, place))


def _change(given: JsonObject) -> _Change:
    change = _Change(
        get_string(given, "old_string"), get_string(given, "new_string"), get_flag(given, "replace_all")
    )
    if not change.old:
        raise InputError("old_string is empty; say which text to replace, or use write for a new file")
    if change.old == change.new:
        raise InputError("old_string and new_string are the same; nothing would change")
    return change


def _edit(real: str, change: _Change, place: ToolContext) -> ToolOutput:
    before = read_known_state(real, place)
    if before is None:
        raise FileMissing(f"{real} is not there; check its name with glob, or use write to make it")
    found = decode_text_file(before.data, real)
    # A model that copies from a file with CR LF may or may not copy the CR.
    old, new = (_unix(change.old), _unix(change.new)) if found.form.is_crlf else (change.old, change.new)
    count = found.text.count(old)
    if count == 0:
        raise InputError(f"old_string is not in {real}. {find_nearest(found.text, old)}")
    if count > 1 and not change.is_everywhere:
        raise InputError(
            f"old_string is in {real} {count:,} times, at lines {_places(found.text, old)}; take in more of "
            "the text around the one you mean, or set replace_all"
        )
    said = f"Edited {real}: {count:,} {'place' if count == 1 else 'places'} changed."
    return write_text_file(real, found.text.replace(old, new), before, said, place)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _places(text: str, old: str) -> str:
    lines: list[str] = []
    at = text.find(old)
    while at >= 0 and len(lines) < MAX_NAMED:
        lines.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return ", ".join(lines) + (" and more" if at >= 0 else "")
