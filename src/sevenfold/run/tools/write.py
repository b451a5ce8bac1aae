"""write: a whole file, new or in place of one that was read."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.json import JsonObject
from sevenfold.run.tool import Need, OnProgress, ToolOutput, ToolSpec
from sevenfold.run.tools.changing import known_state, put_text
from sevenfold.run.tools.inputs import answered, schema, text_of
from sevenfold.run.tools.paths import FILE_PATH, allowed_path, asked_path
from sevenfold.run.workplace import Workplace

SPEC = ToolSpec(
    "write",
    "Write a whole file, making the folders it needs. A file that is there already must have been read "
    "first; to change a part of one, use edit.",
    schema(
        {"file_path": FILE_PATH, "content": {"type": "string", "description": "All of the file's text."}},
        ("file_path", "content"),
    ),
)


@dataclass(frozen=True, slots=True)
class Write:
    spec: ToolSpec = SPEC

    def need(self, given: JsonObject, place: Workplace) -> Need:
        path = asked_path(given, "file_path", place)
        text_of(given, "content")
        return Need("edit", (path,), said=f"write {path}")

    async def run(self, given: JsonObject, place: Workplace, _on_progress: OnProgress) -> ToolOutput:
        asked, content = asked_path(given, "file_path", place), text_of(given, "content")
        return await answered(lambda: _write(allowed_path(asked, place), content, place))


def _write(real: str, content: str, place: Workplace) -> ToolOutput:
    before = known_state(real, place)
    lines = len(content.splitlines())
    said = f"{'Created' if before is None else 'Wrote'} {real} ({lines:,} lines)."
    return put_text(real, content, before, said, place)
