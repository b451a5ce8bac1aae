"""The writer of living documents: finds them among the files that the agent has read, and after an idle turn
runs a fork to edit each, one at a time, with no other permission."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from sevenfold.core.errors import FileMissing, NotRegular, SevenfoldError
from sevenfold.core.events import DocDropped, DocSkipped, DocTracked, DocUpdated
from sevenfold.core.messages import ToolResult, ToolUse
from sevenfold.core.system import run_blocking
from sevenfold.core.tool_kinds import ReadState, ToolContext
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner
from sevenfold.layers.living_docs.policy import (
    LIVING_DOC_SUFFIXES,
    DocFacts,
    DocHeader,
    DocSettings,
    DocTask,
    build_doc_brief,
    choose_doc_step,
    parse_doc_header,
)
from sevenfold.layers.templates import read_template
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.user_files import FileState, read_file_state, resolve_path

_PROMPT = "living_doc.md"
_MAX_READ_BYTES = 4 * 1024 * 1024
"""A file that is longer is no page of anybody's, and is not looked at."""

RunFork: TypeAlias = Callable[[ForkBrief, ToolRunner], Awaitable[ForkResult]]
MakeToolRunner: TypeAlias = Callable[[ToolContext], ToolRunner]
"""Runs calls in a place: a fork's own, with its own memory of what was read."""
FindObjection: TypeAlias = Callable[[str], str | None]
"""Why a file may not be edited now; None when it may."""


@dataclass(frozen=True, slots=True)
class DocTools:
    """By which means documents are edited."""

    edit: str
    """The name of the edit tool."""
    runner_in: MakeToolRunner
    run_fork: RunFork
    objects: FindObjection


@dataclass(frozen=True, slots=True)
class _Document:
    state: FileState
    text: str
    header: DocHeader


class DocWriter:
    """The living documents of one conversation."""

    def __init__(
        self, place: ToolContext, tools: DocTools, settings: DocSettings, templates: Folder | None = None
    ) -> None:
        self._place, self._tools, self._settings, self._templates = place, tools, settings, templates
        self._looked_at: dict[str, str] = {}
        """Files that were read, each with the content in which its header was looked for."""
        self._tracked: dict[str, None] = {}
        self._objected: dict[str, str] = {}
        """What was last said against an update of each: it is reported once."""

    @property
    def tracked(self) -> tuple[str, ...]:
        return tuple(self._tracked)

    async def turn_ended(self, *, is_idle: bool, may_edit: bool) -> None:
        """Look for documents among what was read; bring each up to date if it is time to."""
        if not self._settings.enabled:
            return
        for path, mark in tuple(self._place.reads.marks.items()):
            if path.lower().endswith(LIVING_DOC_SUFFIXES) and self._looked_at.get(path) != mark.sha256:
                self._looked_at[path] = mark.sha256
                await self._look_at(path)
        if not self._tracked:
            return
        facts = DocFacts(is_idle, may_edit, len(self._tracked))
        if choose_doc_step(facts, self._settings) == "update":
            for path in self.tracked:
                await self._update(path)

    async def _look_at(self, path: str) -> None:
        try:
            found = await run_blocking(lambda: self._read(path))
        except SevenfoldError:
            return  # it was read a moment ago, and is gone or of another kind: no document of anybody's
        if found is None or path in self._tracked:
            return
        if len(self._tracked) >= self._settings.documents:
            reason = f"{self._settings.documents} are kept up to date already (living_docs.documents)"
            self._place.emit(DocSkipped(path, reason))
            return
        self._tracked[path] = None
        self._place.emit(DocTracked(path, found.header.title))

    async def _update(self, path: str) -> None:
        try:
            found = await run_blocking(lambda: self._read(path))
        except (FileMissing, NotRegular) as error:
            self._drop(path, str(error))
            return
        except SevenfoldError as error:
            self._place.emit(DocSkipped(path, str(error)))
            return
        if found is None:
            self._drop(path, "its first heading no longer says that it is one")
            return
        objection = self._tools.objects(path) or self._too_long(found)
        if objection != self._objected.get(path):
            self._objected[path] = objection or ""
            if objection:
                self._place.emit(DocSkipped(path, objection))
        if not objection:
            await self._edit(path, found)

    async def _edit(self, path: str, found: _Document) -> None:
        # What the fork has seen is not what the agent has seen: its own next edit reads the file first.
        place = self._place.clone()
        place.reads.note(path, ReadState(found.state.sha256, is_whole=True))
        counted = _Counted(self._tools.runner_in(replace(place, admitted=(path,))))
        prompt = await run_blocking(lambda: read_template(self._templates, _PROMPT))
        task = DocTask(path, found.text, found.header, self._tools.edit)
        try:
            await self._tools.run_fork(build_doc_brief(task, prompt), counted.run)
        except SevenfoldError as error:
            self._place.emit(DocSkipped(path, str(error)))
        if counted.edits:
            self._place.emit(DocUpdated(path, counted.edits))

    def _read(self, path: str) -> _Document | None:
        """The document as it is on disk, None where it is none. Blocks."""
        real = resolve_path(path)
        if real != path:
            raise NotRegular(f"it leads to {real} now")
        if not any(Path(real).is_relative_to(folder) for folder in (self._place.root, self._place.cwd)):
            return None
        state = read_file_state(real, max_bytes=_MAX_READ_BYTES)
        text = state.data.decode("utf-8", "replace")
        header = parse_doc_header(text)
        return _Document(state, text, header) if header else None

    def _drop(self, path: str, reason: str) -> None:
        self._tracked.pop(path, None)
        self._looked_at.pop(path, None)
        self._place.emit(DocDropped(path, reason))

    def _too_long(self, found: _Document) -> str | None:
        size, most = len(found.state.data), self._settings.limit_bytes
        return (
            f"it has {size:,} bytes, and {most:,} are shown (living_docs.limit_bytes)"
            if size > most
            else None
        )


class _Counted:
    """Runs calls and counts those that went through."""

    def __init__(self, run: ToolRunner) -> None:
        self._run = run
        self.edits = 0

    async def run(self, use: ToolUse) -> ToolResult:
        result = await self._run(use)
        self.edits += not result.is_error
        return result
