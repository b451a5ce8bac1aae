"""grep: lines of files that match a regular expression."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sevenfold.core.errors import FileMissing, InputError, SevenfoldError
from sevenfold.core.globs import alternatives
from sevenfold.core.json import JsonObject
from sevenfold.run.tool import Need, OnProgress, ToolOutput, ToolSpec
from sevenfold.run.tools.inputs import failed, flag_of, schema, text_of, whole_of, word_of
from sevenfold.run.tools.listing import Hides, hide_nothing, list_files, named_by
from sevenfold.run.tools.paths import allowed_path, asked_path, shown_path
from sevenfold.run.tools.searching import (
    FileHits,
    Hits,
    Search,
    find_ripgrep,
    search_files,
    search_with_ripgrep,
)
from sevenfold.run.workplace import Workplace
from sevenfold.store.offload import durably

MAX_PATTERN_CHARS = 2_000
MAX_LINES = 400
"""Lines of one answer: what does not fit was too wide a search."""

SPEC = ToolSpec(
    "grep",
    "Search files for a regular expression, line by line. What git ignores is left out, and so are binary "
    "and very large files. output: files (names only), content (lines, with context around them), count.",
    schema(
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
            "limit": {"type": "integer", "description": f"Lines of the answer; {MAX_LINES} at most."},
        },
        ("pattern",),
    ),
    is_parallel=True,
)


@dataclass(frozen=True, slots=True)
class Grep:
    hides: Hides = hide_nothing
    """Files that rules keep from being read are not searched."""
    spec: ToolSpec = SPEC

    def need(self, given: JsonObject, place: Workplace) -> Need:
        path = asked_path(given, "path", place, ".")
        _checked(given)
        return Need("read", (path,), said=f"search {path} for {text_of(given, 'pattern')}")

    async def run(self, given: JsonObject, place: Workplace, _on_progress: OnProgress) -> ToolOutput:
        _checked(given)
        asked = asked_path(given, "path", place, ".")
        try:
            search = await durably(lambda: _search(given, allowed_path(asked, place)))
            hits = await self._find(search, place)
        except SevenfoldError as error:
            return failed(str(error))
        if hits.fault:
            return failed(f"pattern {search.pattern!r:.80} cannot be used: {hits.fault}")
        return ToolOutput(_answer(given, search, hits, place))

    async def _find(self, search: Search, place: Workplace) -> Hits:
        program = find_ripgrep(place.root, place.environ)
        if program and not search.is_file:
            hits = await search_with_ripgrep(program, search)
            hits.files = [file for file in hits.files if not self.hides(_real(search, file))]
            return hits
        if search.is_file:
            return await search_files(search, () if self.hides(search.real) else ("",))
        wanted = [named_by(glob) for glob in search.globs]
        listing = await durably(
            lambda: list_files(
                search.real, lambda path: not wanted or any(is_named(path) for is_named in wanted), self.hides
            )
        )
        hits = await search_files(search, [file.path for file in listing.files])
        hits.is_cut |= listing.is_cut
        return hits


def _checked(given: JsonObject) -> None:
    pattern = text_of(given, "pattern")
    if not 0 < len(pattern) <= MAX_PATTERN_CHARS or "\n" in pattern:
        raise InputError(
            f"pattern has {len(pattern):,} characters; expected 1 to {MAX_PATTERN_CHARS:,} on one line"
        )
    word_of(given, "output", ("files", "content", "count"), "content")
    whole_of(given, "limit", MAX_LINES, at_least=1)
    whole_of(given, "context", 0, at_least=0, at_most=50)
    flag_of(given, "ignore_case")
    text_of(given, "glob", "")


def _search(given: JsonObject, real: str) -> Search:
    if not os.path.exists(real):
        raise FileMissing(f"{real} is not there; check its name with glob")
    glob = text_of(given, "glob", "")
    return Search(
        text_of(given, "pattern"),
        real,
        is_file=not os.path.isdir(real),
        ignore_case=flag_of(given, "ignore_case"),
        context=whole_of(given, "context", 0, at_least=0),
        globs=alternatives(glob) if glob else (),
    )


def _real(search: Search, file: FileHits) -> str:
    return f"{search.real}/{file.path}" if file.path else search.real


def _answer(given: JsonObject, search: Search, hits: Hits, place: Workplace) -> str:
    limit = min(MAX_LINES, whole_of(given, "limit", MAX_LINES, at_least=1))
    output = text_of(given, "output", "content")
    lines = [
        line for file in hits.files for line in _lines(file, shown_path(_real(search, file), place), output)
    ]
    shown = lines[:limit]
    if len(lines) > limit:
        shown.append(
            f"[{len(lines):,} lines, of which {limit} are shown; narrow the pattern, the path or the glob]"
        )
    if hits.is_cut:
        shown.append("[the search was cut short: it took too long or found too much; narrow it]")
    return "\n".join(shown) or f"nothing in {Path(search.real)} matches {search.pattern}"


def _lines(file: FileHits, name: str, output: str) -> Iterator[str]:
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
