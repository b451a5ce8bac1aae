"""glob: files by the shape of their names, the newest first."""

from __future__ import annotations

from dataclasses import dataclass

from sevenfold.core.errors import InputError
from sevenfold.core.json import JsonObject
from sevenfold.run.tool import Need, OnProgress, ToolOutput, ToolSpec
from sevenfold.run.tools.inputs import answered, schema, text_of
from sevenfold.run.tools.listing import Hides, hide_nothing, list_files, named_by
from sevenfold.run.tools.paths import allowed_path, asked_path, shown_path
from sevenfold.run.workplace import Workplace

MAX_SHOWN = 200

SPEC = ToolSpec(
    "glob",
    "Find files by name, the most recently changed first. ** stands for any folders, * for part of a name, "
    "{a,b} for either; a pattern without a slash looks in every folder. What git ignores is left out.",
    schema(
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
class Glob:
    hides: Hides = hide_nothing
    """Files that rules keep from being read are not named either."""
    spec: ToolSpec = SPEC

    def need(self, given: JsonObject, place: Workplace) -> Need:
        folder = asked_path(given, "path", place, ".")
        return Need("read", (folder,), said=f"find {_pattern(given)} in {folder}")

    async def run(self, given: JsonObject, place: Workplace, _on_progress: OnProgress) -> ToolOutput:
        asked, pattern = asked_path(given, "path", place, "."), _pattern(given)
        return await answered(lambda: self._find(allowed_path(asked, place), pattern, place))

    def _find(self, real: str, pattern: str, place: Workplace) -> ToolOutput:
        listing = list_files(real, named_by(pattern), self.hides)
        newest = sorted(listing.files, key=lambda file: (-file.modified_ns, file.path))
        lines = [shown_path(f"{real}/{file.path}", place) for file in newest[:MAX_SHOWN]]
        if listing.is_cut:
            lines.append(f"[{real} is too large to be looked through to its end; name a folder in it]")
        if len(newest) > MAX_SHOWN:
            lines.append(
                f"[{len(newest):,} files match, and the newest {MAX_SHOWN} are shown; narrow the pattern]"
            )
        return ToolOutput("\n".join(lines) or f"no file in {real} matches {pattern}")


def _pattern(given: JsonObject) -> str:
    pattern = text_of(given, "pattern").removeprefix("./")
    if not pattern or pattern.startswith("/") or ".." in pattern.split("/"):
        raise InputError(f"pattern is {pattern!r:.80}; expected one below the folder, which `path` names")
    return pattern
