"""grep: lines of files that match a regular expression."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.agent.tool_inputs import error_output
from sevenfold.agent.tools.file_search import (
    FileMatches,
    SearchMatches,
    SearchQuery,
    find_ripgrep,
    search_files,
    search_with_ripgrep,
)
from sevenfold.agent.tools.paths import allowed_path, display_path, resolve_asked_path
from sevenfold.core.errors import FileMissing, InputError, SevenfoldError
from sevenfold.core.json import JsonObject
from sevenfold.core.json_fields import get_choice, get_flag, get_integer, get_string, object_schema
from sevenfold.core.text.globs import expand_braces
from sevenfold.core.tool_context import ToolContext
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.project.file_listing import (
    IsHidden,
    hide_nothing,
    list_project_files,
    make_name_filter,
)

_MAX_PATTERN_CHARS = 2_000
MAX_GREP_LINES = 400
"""Lines of one answer: what does not fit was too wide a search."""

_SPEC = ToolSpec(
    "grep",
    "Search files for a regular expression, line by line. What git ignores is left out, and so are binary "
    "and very large files. output: files (names only), content (lines, with context around them), count.",
    object_schema(
        {
            "pattern": {"type": "string", "description": "A regular expression, matched within a line."},
            "path": {"type": "string", "description": "A file or folder; the working directory if left out."},
            "glob": {"type": "string", "description": "Only files with such names: *.py, src/**/*.{ts,tsx}."},
            "output": {
                "type": "string",
                "enum": ["files", "content", "count"],
                "description": "content if left out.",
            },
            "ignore_case": {"type": "boolean"},
            "context": {"type": "integer", "description": "Lines to show around each match."},
            "limit": {"type": "integer", "description": f"Lines of the answer; {MAX_GREP_LINES} at most."},
        },
        ("pattern",),
    ),
    is_parallel=True,
)


@dataclass(frozen=True, slots=True)
class GrepTool:
    hides: IsHidden = hide_nothing
    """Files that rules keep from being read are not searched."""
    spec: ToolSpec = _SPEC

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        path = resolve_asked_path(given, "path", place, ".")
        _checked(given)
        return AccessRequest(
            kind="read", paths=(path,), said=f"search {path} for {get_string(given, 'pattern')}"
        )

    async def run(self, given: JsonObject, place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        _checked(given)
        asked = resolve_asked_path(given, "path", place, ".")
        try:
            search = await run_blocking(lambda: _search(given, allowed_path(asked, place)))
            hits = await self._find(search, place)
        except SevenfoldError as error:
            return error_output(str(error))
        if hits.fault:
            return error_output(f"pattern {search.pattern!r:.80} cannot be used: {hits.fault}")
        return ToolOutput(_answer(given, search, hits, place))

    async def _find(self, search: SearchQuery, place: ToolContext) -> SearchMatches:
        program = find_ripgrep(place.root, place.environ)
        if program and not search.is_file:
            hits = await search_with_ripgrep(program, search)
            hits.files = [file for file in hits.files if not self.hides(_real(search, file))]
            return hits
        if search.is_file:
            return await search_files(search, () if self.hides(search.real) else ("",))
        wanted = [make_name_filter(glob) for glob in search.globs]
        listing = await run_blocking(
            lambda: list_project_files(
                search.real, lambda path: not wanted or any(is_named(path) for is_named in wanted), self.hides
            )
        )
        hits = await search_files(search, [file.path for file in listing.files])
        hits.is_cut |= listing.is_cut
        return hits


def _checked(given: JsonObject) -> None:
    pattern = get_string(given, "pattern")
    if not 0 < len(pattern) <= _MAX_PATTERN_CHARS or "\n" in pattern:
        raise InputError(
            f"pattern has {len(pattern):,} characters; expected 1 to {_MAX_PATTERN_CHARS:,} on one line"
        )
    get_choice(given, "output", ("files", "content", "count"), "content")
    get_integer(given, "limit", MAX_GREP_LINES, at_least=1)
    get_integer(given, "context", 0, at_least=0, at_most=50)
    get_flag(given, "ignore_case")
    get_string(given, "glob", "")


def _search(given: JsonObject, real: str) -> SearchQuery:
    if not os.path.exists(real):
        raise FileMissing(f"{real} is not there; check its name with glob")
    glob = get_string(given, "glob", "")
    return SearchQuery(
        pattern=get_string(given, "pattern"),
        real=real,
        is_file=not os.path.isdir(real),
        ignore_case=get_flag(given, "ignore_case"),
        context=get_integer(given, "context", 0, at_least=0),
        globs=expand_braces(glob) if glob else (),
    )


def _real(search: SearchQuery, file: FileMatches) -> str:
    return f"{search.real}/{file.path}" if file.path else search.real


def _answer(given: JsonObject, search: SearchQuery, hits: SearchMatches, place: ToolContext) -> str:
    limit = min(MAX_GREP_LINES, get_integer(given, "limit", MAX_GREP_LINES, at_least=1))
    output = get_string(given, "output", "content")
    lines = [
        line for file in hits.files for line in _lines(file, display_path(_real(search, file), place), output)
    ]
    shown = lines[:limit]
    if len(lines) > limit:
        shown.append(
            f"[{len(lines):,} lines, of which {limit} are shown; narrow the pattern, the path or the glob]"
        )
    if hits.is_cut:
        shown.append("[the search was cut short: it took too long or found too much; narrow it]")
    return "\n".join(shown) or f"nothing in {Path(search.real)} matches {search.pattern}"


def _lines(file: FileMatches, name: str, output: str) -> Iterator[str]:
    if output != "content":
        yield name if output == "files" else f"{name}: {file.count}"
        return
    last = 0
    for line in file.lines:
        if last and line.number > last + 1:
            yield "--"
        sign = ":" if line.is_match else "-"
        yield f"{name}{sign}{line.number}{sign}{line.text}"
        last = line.number
