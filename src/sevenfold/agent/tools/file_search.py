"""A search through files: by ripgrep where it is installed, else by a process of ours; both end alike."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from sevenfold.agent.tools import grep_worker
from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.store.files.user_files import open_user_folder

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
    """Time or room ran out."""
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
    command = [sys.executable, "-I", "-S", grep_worker.__file__]
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
                cut = text[: grep_worker.MAX_GREP_LINE_CHARS]
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
    """Run a search to its end, or to the end of its time or room. It never outlives this call."""
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
