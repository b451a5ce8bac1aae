"""write: a whole file, new or in place of one that was read."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.agent.tool_inputs import call_in_thread
from sevenfold.agent.tools.file_changes import read_known_state, write_text_file
from sevenfold.agent.tools.paths import FILE_PATH_SCHEMA, allowed_path, resolve_asked_path
from sevenfold.core.json import JsonObject
from sevenfold.core.json_fields import get_string, object_schema
from sevenfold.core.tool_context import ToolContext

_WRITE_SPEC = ToolSpec(
    "write",
    "Write a whole file, making the folders it needs. A file that is there already must have been read "
    "first; to change a part of one, use edit.",
    object_schema(
        {
            "file_path": FILE_PATH_SCHEMA,
            "content": {"type": "string", "description": "All of the file's text."},
        },
        ("file_path", "content"),
    ),
)


@dataclass(frozen=True, slots=True)
class WriteTool:
    spec: ToolSpec = _WRITE_SPEC

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        path = resolve_asked_path(given, "file_path", place)
        get_string(given, "content")
        return AccessRequest(kind="edit", paths=(path,), said=f"write {path}")

    async def run(self, given: JsonObject, place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        asked, content = resolve_asked_path(given, "file_path", place), get_string(given, "content")
        return await call_in_thread(lambda: _write(allowed_path(asked, place), content, place))


def _write(real: str, content: str, place: ToolContext) -> ToolOutput:
    before = read_known_state(real, place)
    lines = len(content.splitlines())
    said = f"{'Created' if before is None else 'Wrote'} {real} ({lines:,} lines)."
    return write_text_file(real, content, before, said, place)
