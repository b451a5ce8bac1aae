"""The `glob` tool: files whose path matches a pattern, the newest first."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec, call_in_thread
from sevenfold.agent.tools.text_file import allowed_path, display_path, resolve_asked_path
from sevenfold.core.errors import InputError
from sevenfold.core.json import JsonObject
from sevenfold.core.json_fields import get_string, object_schema
from sevenfold.core.tool_context import ToolContext
from sevenfold.store.project.user_files import IsHidden, hide_nothing, list_project_files, make_name_filter

MAX_GLOB_FILES = 200

_GLOB_SPEC = ToolSpec(
    "glob",
    "Find files by name, the most recently changed first. ** stands for any folders, * for part of a name, "
    "{a,b} for either; a pattern without a slash looks in every folder. What git ignores is left out.",
    object_schema(
        {
            "pattern": {"type": "string", "description": "Such as **/*.py or src/**/test_*.{ts,tsx}."},
            "path": {
                "type": "string",
                "description": "The folder to look in; the working directory if left out.",
            },
        },
        ("pattern",),
    ),
    is_parallel=True,
)


@dataclass(frozen=True, slots=True)
class GlobTool:
    hides: IsHidden = hide_nothing
    """Files that rules keep from being read are not named either."""
    spec: ToolSpec = _GLOB_SPEC

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        folder = resolve_asked_path(given, "path", place, ".")
        return AccessRequest(kind="read", paths=(folder,), said=f"find {_pattern(given)} in {folder}")

    async def run(self, given: JsonObject, place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        asked, pattern = resolve_asked_path(given, "path", place, "."), _pattern(given)
        return await call_in_thread(lambda: self._find(allowed_path(asked, place), pattern, place))

    def _find(self, real: str, pattern: str, place: ToolContext) -> ToolOutput:
        listing = list_project_files(real, make_name_filter(pattern), self.hides)
        newest = sorted(listing.files, key=lambda file: (-file.modified_ns, file.path))
        lines = [display_path(f"{real}/{file.path}", place) for file in newest[:MAX_GLOB_FILES]]
        if listing.is_cut:
            lines.append(f"[{real} is too large to be looked through to its end; name a folder in it]")
        if len(newest) > MAX_GLOB_FILES:
            lines.append(
                f"[{len(newest):,} files match, and the newest {MAX_GLOB_FILES} are shown; narrow "
                f"the pattern]"
            )
        return ToolOutput("\n".join(lines) or f"no file in {real} matches {pattern}")


def _pattern(given: JsonObject) -> str:
    pattern = get_string(given, "pattern").removeprefix("./")
    if not pattern or pattern.startswith("/") or ".." in pattern.split("/"):
        raise InputError(f"pattern is {pattern!r:.80}; expected one below the folder, which `path` names")
    return pattern
