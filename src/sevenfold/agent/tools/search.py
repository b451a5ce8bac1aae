"""The `grep` and `glob` tools: lines that match a regular expression, and files whose path matches a pattern.

`grep` uses `search_with_ripgrep` where ripgrep is installed, and `search_files` with `worker` elsewhere.
Both return the same values. `glob` lists the newest files first.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec, call_in_thread, error_output
from sevenfold.agent.tools import worker
from sevenfold.agent.tools.file_changes import allowed_path, display_path, resolve_asked_path
from sevenfold.core.errors import FileMissing, InputError, SevenfoldError, WireError
from sevenfold.core.json import (
    Json,
    JsonObject,
    freeze_object,
    get_choice,
    get_flag,
    get_integer,
    get_string,
    object_schema,
    read_object,
    write_json,
)
from sevenfold.core.system import run_blocking
from sevenfold.core.text.globs import expand_braces
from sevenfold.core.text.safe_text import quote_name
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.store.project.user_files import (
    IsHidden,
    hide_nothing,
    list_project_files,
    make_name_filter,
    open_user_folder,
)

MAX_SEARCH_SECONDS = 15
"""Long enough for a hundred thousand files; a pattern that takes longer goes round in circles."""

MAX_OUTPUT_BYTES = 8 * 1024 * 1024
"""Far more than is ever shown; the rest is not waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    pattern: str
    real: str
    """The file or folder, links followed."""
    is_file: bool = False
    ignore_case: bool = False
    context: int = 0
    """Lines around each match."""
    globs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MatchLine:
    number: int
    text: str
    is_match: bool


@dataclass(frozen=True, slots=True)
class FileMatches:
    path: str
    """Below the folder; empty: the file itself."""
    count: int
    lines: tuple[MatchLine, ...]


@dataclass(slots=True)
class SearchMatches:
    files: list[FileMatches] = field(default_factory=list[FileMatches])
    is_cut: bool = False
    """The limit of time or output was reached."""
    fault: str = ""


_Read: TypeAlias = Callable[[JsonObject, SearchMatches], None]


def find_ripgrep(root: Path, environ: Mapping[str, str]) -> str | None:
    """Where ripgrep is installed. What lies in the project does not count: it is not ours to run."""
    folders = [Path(folder) for folder in environ.get("PATH", "").split(os.pathsep)]
    kept = [str(folder) for folder in folders if folder.is_absolute() and not folder.is_relative_to(root)]
    found = shutil.which("rg", path=os.pathsep.join(kept)) if kept else None
    return None if found is None or Path(os.path.realpath(found)).is_relative_to(root) else found


async def search_files(search: SearchQuery, files: Sequence[str]) -> SearchMatches:
    """Search these files, named from the folder, with Python's own expressions."""
    asked = freeze_object(
        {
            "pattern": search.pattern,
            "ignore_case": search.ignore_case,
            "context": search.context,
            "root": search.real,
            "files": list(files),
            "seconds": MAX_SEARCH_SECONDS,
        }
    )
    command = [sys.executable, "-I", "-S", worker.__file__]
    return await _run(command, write_json(asked), _read_own)


async def search_with_ripgrep(program: str, search: SearchQuery) -> SearchMatches:
    """Search the folder by ripgrep, which lists files itself."""
    options = ["--no-config", "--json", "--hidden", "--sort=path", "--max-filesize=8M"]
    options += [f"--context={search.context}", *(["--ignore-case"] if search.ignore_case else [])]
    chosen = [word for glob in search.globs for word in ("--glob", glob)]
    command = [program, *options, *chosen, "--glob", "!.git", "--regexp", search.pattern, "--", "./"]
    with open_user_folder(search.real) as fd:
        # By its handle, so that it is the folder that was allowed whatever its name leads to meanwhile.
        cwd = f"/proc/self/fd/{fd}" if sys.platform == "linux" else search.real
        return await _run(command, b"", _Ripgrep().read, cwd=cwd)


class _Ripgrep:
    """Reads ripgrep's lines: a file begins, its matches and what stands around them, the file ends."""

    def __init__(self) -> None:
        self._lines: list[MatchLine] = []

    def read(self, line: JsonObject, hits: SearchMatches) -> None:
        kind, data = line.get("type"), line.get("data")
        if not isinstance(data, JsonObject):
            return
        if kind in ("match", "context"):
            text = _text(data.get("lines")).removesuffix("\n").removesuffix("\r")
            number = data.get("line_number")
            if isinstance(number, int):
                cut = text[: worker.MAX_GREP_LINE_CHARS]
                self._lines.append(MatchLine(number, cut, kind == "match"))
        elif kind == "end":
            path = _text(data.get("path")).removeprefix("./")
            count = sum(line.is_match for line in self._lines)
            if count:
                hits.files.append(FileMatches(path, count, tuple(self._lines)))
            self._lines = []


def _read_own(line: JsonObject, hits: SearchMatches) -> None:
    fault, path, count, lines = (line.get(key) for key in ("error", "path", "count", "lines"))
    if isinstance(fault, str):
        hits.fault = fault
    if isinstance(path, str) and isinstance(count, int) and isinstance(lines, tuple):
        hits.files.append(FileMatches(path, count, tuple(_hit(item) for item in lines)))


def _hit(item: Json) -> MatchLine:
    match item:
        case (int(number), str(text), bool(is_match)):
            return MatchLine(number, text, is_match)
        case _:
            raise WireError(f"no line of a search: {item!r:.80}")


def _text(value: Json) -> str:
    found = value.get("text") if isinstance(value, JsonObject) else None
    return found if isinstance(found, str) else ""


async def _run(command: Sequence[str], given: bytes, read: _Read, *, cwd: str = "/") -> SearchMatches:
    """Run a search to its end, or until it exceeds its time or output limit. It never outlives this call."""
    hits = SearchMatches()
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE if given else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        cwd=cwd,
        env={},
        limit=MAX_OUTPUT_BYTES,
    )
    try:
        async with asyncio.timeout(MAX_SEARCH_SECONDS + 2):
            await asyncio.gather(_feed(process, given), _listen(process, read, hits))
            errors = await process.stderr.read(2_000) if process.stderr else b""
            code = await process.wait()
    except TimeoutError:
        hits.is_cut = True
        return hits
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())
    if code < 0:
        hits.is_cut = True
    elif code == 2 and not hits.files:
        hits.fault = errors.decode("utf-8", "replace").strip()
    return hits


async def _feed(process: asyncio.subprocess.Process, given: bytes) -> None:
    if process.stdin is None:
        return
    try:
        process.stdin.write(given)
        await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it ended early, and says why
    finally:
        process.stdin.close()


async def _listen(process: asyncio.subprocess.Process, read: _Read, hits: SearchMatches) -> None:
    size = 0
    while process.stdout and (line := await process.stdout.readline()):
        read(read_object(line), hits)
        size += len(line)
        if size > MAX_OUTPUT_BYTES:
            hits.is_cut = True
            process.kill()
            return


_MAX_PATTERN_CHARS = 2_000
MAX_GREP_LINES = 400
"""Lines of one answer: what does not fit was too wide a search."""

_GREP_SPEC = ToolSpec(
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
    spec: ToolSpec = _GREP_SPEC

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        path = resolve_asked_path(given, "path", place, ".")
        _checked(given)
        return AccessRequest(
            kind="read", paths=(path,), said=f"grep {get_string(given, 'pattern')} in {path}"
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
    return "\n".join(shown) or f"nothing in {quote_name(search.real)} matches {search.pattern}"


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
        return AccessRequest(kind="read", paths=(folder,), said=f"glob {_pattern(given)} in {folder}")

    async def run(self, given: JsonObject, place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        asked, pattern = resolve_asked_path(given, "path", place, "."), _pattern(given)
        return await call_in_thread(lambda: self._find(allowed_path(asked, place), pattern, place))

    def _find(self, real: str, pattern: str, place: ToolContext) -> ToolOutput:
        listing = list_project_files(real, make_name_filter(pattern), self.hides)
        newest = sorted(listing.files, key=lambda file: (-file.modified_ns, file.path))
        lines = [display_path(f"{real}/{file.path}", place) for file in newest[:MAX_GLOB_FILES]]
        if listing.is_cut:
            lines.append(f"[{quote_name(real)} is too large to be read to its end; name a folder in it]")
        if len(newest) > MAX_GLOB_FILES:
            lines.append(
                f"[{len(newest):,} files match, and the newest {MAX_GLOB_FILES} are shown; narrow "
                f"the pattern]"
            )
        return ToolOutput("\n".join(lines) or f"no file in {quote_name(real)} matches {pattern}")


def _pattern(given: JsonObject) -> str:
    pattern = get_string(given, "pattern").removeprefix("./")
    if not pattern or pattern.startswith("/") or ".." in pattern.split("/"):
        raise InputError(f"pattern is {pattern!r:.80}; expected one below the folder, which `path` names")
    return pattern
