"""A running command: its request, its output, and background commands.

`SandboxJob` runs one command. `CommandOutput` keeps the beginning and the end of the output in memory, and
all of it in a file once it grows too large. `BackgroundTasks` are commands that continue from turn to turn
and end with the agent.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import NewType, TypeAlias

from sevenfold.agent.sandbox.command import CommandExit, SupervisedCommand
from sevenfold.agent.sandbox.folders import (
    LinkTarget,
    SandboxRunStore,
    choose_writable_root,
    make_own_folder,
    move_aside,
    read_guarded,
    report_moved,
)
from sevenfold.agent.sandbox.sandbox import Sandbox
from sevenfold.agent.tool import OnProgress
from sevenfold.core.errors import InputError
from sevenfold.core.tool_kinds import SandboxProfile, ToolContext
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.tool_results.spill import SPILL_FOLDER

MAX_END_BYTES = 512 * 1024
"""Kept of either end. A result of a megabyte is far over what any model is shown at once."""

MAX_LAST_LINE_BYTES = 500
"""Looked at for the last line: a person sees less of it."""

MAX_OUTPUT_FILE_BYTES = 64 * 1024 * 1024
"""A command that prints more does so by mistake; it is ended."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Colours, movements and titles: for terminals, not for readers."""


class CommandOutput:
    """Fed as it comes. The file is made when memory does not hold everything any more."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / f"shell-{secrets.token_hex(6)}.txt"
        self._file: int | None = None
        self._why_not = "there is no folder for it"
        self._head, self._tail = bytearray(), bytearray()
        self.total_bytes = 0
        self._seen_bytes = 0

    def add(self, part: bytes) -> None:
        if self.total_bytes + len(part) > 2 * MAX_END_BYTES:
            self._keep(part)
        self.total_bytes += len(part)
        room = MAX_END_BYTES - len(self._head)
        self._head += part[:room]
        self._tail += part[room:]
        if len(self._tail) > 2 * MAX_END_BYTES:
            del self._tail[:-MAX_END_BYTES]

    @property
    def is_over_limit(self) -> bool:
        return self.total_bytes > MAX_OUTPUT_FILE_BYTES

    def text(self) -> str:
        """The beginning and the end, with what is missing between them said."""
        tail = self._tail[-MAX_END_BYTES:]
        left_out = self.total_bytes - len(self._head) - len(tail)
        if not left_out:
            return strip_terminal_codes(self._head + tail)
        where = f"all of it is in {self._path}" if self._file is not None else self._why_not
        gap = f"\n[… {left_out:,} bytes left out here; {where}]\n"
        return strip_terminal_codes(self._head) + gap + strip_terminal_codes(tail)

    def read_new(self) -> str:
        """What came since this was last asked."""
        fresh = self.total_bytes - self._seen_bytes
        is_first = not self._seen_bytes
        self._seen_bytes = self.total_bytes
        if is_first:
            return self.text()
        kept = self._head + self._tail if self.total_bytes <= 2 * MAX_END_BYTES else self._tail
        lost = max(0, fresh - len(kept))
        return (f"[… {lost:,} bytes left out here]\n" if lost else "") + strip_terminal_codes(
            kept[len(kept) - fresh + lost :]
        )

    def last_line(self) -> str:
        """The last line that says something, in short."""
        lines = strip_terminal_codes((self._tail or self._head)[-MAX_LAST_LINE_BYTES:]).splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        if self._file is not None and self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _keep(self, part: bytes) -> None:
        if self._path is None:
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                part = bytes(self._head + self._tail) + part
            while part:
                part = part[os.write(self._file, part) :]
        except OSError as error:
            self._why_not = f"the rest could not be kept in {self._path}: {error.strerror}"
            self.close()
            self._path = self._file = None


def strip_terminal_codes(printed: bytes | bytearray) -> str:
    """As text, without what is meant for a terminal."""
    return _ESCAPES.sub("", printed.decode("utf-8", "replace"))


_decoder = getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command, and the sandbox profile to run it in."""

    line: str
    profile: SandboxProfile
    description: str = ""


class SandboxJob:
    """Starts at once. Whoever has one closes it, which ends whatever still runs."""

    def __init__(
        self,
        request: CommandRequest,
        sandbox: Sandbox,
        place: ToolContext,
        run_store: SandboxRunStore | None = None,
    ) -> None:
        """With a store, files that it may not create are moved aside even if we are killed before its end."""
        self.request = request
        self._place = place
        self._root = choose_writable_root(place) if request.profile == "workspace" else None
        self._known: Mapping[str, LinkTarget | None] = {}
        if self._root is not None:
            make_own_folder(self._root)
            self._known = read_guarded(self._root)
        orders = sandbox.build_launch_spec(request.profile, request.line, place)
        folder = place.session_folder
        self.output = CommandOutput(None if folder is None else folder / SPILL_FOLDER)
        self._note = run_store.note(self._root, self._known) if run_store and self._root else None
        try:
            self.command = SupervisedCommand(orders)
        except BaseException:
            self._strike_out(is_clean=True)
            raise
        self.notes: list[str] = []
        """What a reader must know beside the output."""
        self._is_cut = False

    async def watch(self, on_progress: OnProgress) -> None:
        """Take in what it prints until it has ended, or prints without end."""
        decoder = _decoder("replace")
        while part := await self.command.read():
            self.output.add(part)
            on_progress(decoder.decode(part))
            if self.output.is_over_limit:
                self.cut(f"it was ended: it printed more than {MAX_OUTPUT_FILE_BYTES // 2**20} MiB")
                return
        # It may have closed its output and gone on.
        await self.command.wait()

    def cut(self, reason: str) -> None:
        """Ask it to end, for this reason; how it ends says nothing then."""
        self._is_cut = True
        self.notes.append(reason)
        self.command.ask_to_end()

    async def close(self) -> CommandExit:
        """End it if it still runs, and everything that it started. Nothing of it is left afterwards."""
        try:
            ended = await self.command.close()
        finally:
            self.output.close()
            self._strike_out(is_clean=self.move_guarded_files())
        if not self._is_cut:
            self.notes += _notes(ended, self.request.profile, self._root)
        return ended

    def move_guarded_files(self) -> bool:
        """What it made so far that programs obey is not left where they would find it; False where some of it
        could not be moved."""
        found = list(move_aside(self._root, self._known)) if self._root else []
        for moved in found:
            report_moved(moved, self._place.emit)
            if moved.failure:
                note = f"{moved.path} may not be made here, and could not be moved: {moved.failure}"
            else:
                note = f"{moved.path} may not be made here, since programs obey it: moved to {moved.moved_to}"
            self.notes.append(note)
        return not any(moved.failure for moved in found)

    def _strike_out(self, *, is_clean: bool) -> None:
        if self._note is not None:
            self._note.close(self._place.emit, is_clean=is_clean)

    def render_output(self, text: str) -> str:
        """An output with the notes below it."""
        lines = [text.rstrip("\n"), *(f"[{note}]" for note in self.notes)]
        return "\n".join(line for line in lines if line)


def _notes(ended: CommandExit, profile: SandboxProfile, root: Path | None) -> list[str]:
    if ended.failure:
        return [f"it did not run: {ended.failure}"]
    notes: list[str] = []
    if ended.is_crowded:
        notes.append("it was ended: it started too many processes")
    if ended.left:
        notes.append(
            f"{ended.left} of its processes still ran and were ended; use background to keep one running"
        )
    if ended.code:
        notes.append(f"exit code {ended.code}")
        if profile != "open":
            where = f"writes only in {root}" if root else "no writes"
            notes.append(f"it ran in the sandbox: no network, {where}; ask for more with access")
    return notes


TaskId = NewType("TaskId", str)

MAX_TASKS = 32
"""At once. More than that is a loop that starts things."""


@dataclass(slots=True, kw_only=True)
class BackgroundTask:
    """One command in the background."""

    id: TaskId
    job: SandboxJob
    ended: CommandExit | None = None
    is_stopped: bool = False
    """Somebody ended it."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    started: float = field(default_factory=monotonic)
    stopped: float | None = None
    """By the same clock; None: it runs."""

    @property
    def elapsed(self) -> timedelta:
        return timedelta(seconds=(self.stopped or monotonic()) - self.started)

    @property
    def title(self) -> str:
        request = self.job.request
        return request.description or request.line.splitlines()[0][:80]

    @property
    def state(self) -> str:
        """In a few words."""
        if self.ended is None:
            return "running"
        return "stopped" if self.is_stopped else f"ended with exit code {self.ended.code}"

    @property
    def line(self) -> str:
        return f"{self.id} ({self.title}): {self.state}"


OnTaskEnd: TypeAlias = Callable[[BackgroundTask], None]
"""Told when a task has ended by itself."""


def ignore_task_end(task: BackgroundTask) -> None:
    """For tasks whose end nobody waits for."""


class BackgroundTasks:
    """The background commands of one agent. Closed with it: none outlives it, however it ends."""

    def __init__(self, on_end: OnTaskEnd = ignore_task_end) -> None:
        self.on_end = on_end
        self._tasks: dict[TaskId, BackgroundTask] = {}
        self._watching: set[asyncio.Task[None]] = set()

    def start(self, make: Callable[[], SandboxJob]) -> BackgroundTask:
        if len(self.running()) >= MAX_TASKS:
            raise InputError(f"{MAX_TASKS} tasks are running, which is the most; stop one with task_stop")
        task = BackgroundTask(id=TaskId(f"task-{len(self._tasks) + 1}"), job=make())
        self._tasks[task.id] = task
        watching = asyncio.create_task(self._watch(task))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)
        return task

    def all(self) -> tuple[BackgroundTask, ...]:
        """Oldest first."""
        return tuple(self._tasks.values())

    def find(self, name: str) -> BackgroundTask:
        task = self._tasks.get(TaskId(name))
        if task is None:
            raise InputError(f"there is no task {name!r}; there are: {', '.join(self._tasks) or 'none'}")
        return task

    def running(self) -> tuple[BackgroundTask, ...]:
        return tuple(task for task in self._tasks.values() if task.ended is None)

    def take_back(self) -> None:
        """What they made so far that programs obey is moved aside now: whatever starts next would obey it."""
        for task in self.running():
            task.job.move_guarded_files()

    async def stop(self, name: str) -> BackgroundTask:
        """End it and all that it started; nothing of it is left afterwards."""
        task = self.find(name)
        if task.ended is None:
            task.is_stopped = True
            task.job.cut("it was stopped")
            task.job.command.end()
            await task.over.wait()
        return task

    async def close(self) -> None:
        """End all of them."""
        for task in self.running():
            await self.stop(task.id)

    def extras(self) -> tuple[Extra, ...]:
        """What a model must know again after a compaction: tasks that are running."""
        lines = [task.line for task in self.running()]
        return (Extra("tasks", "Background tasks", "\n".join(lines)),) if lines else ()

    async def _watch(self, task: BackgroundTask) -> None:
        try:
            await task.job.watch(_unread)
        finally:
            try:
                task.ended = await task.job.close()
            finally:
                task.stopped = monotonic()
                task.over.set()
        if not task.is_stopped:
            self.on_end(task)


def _unread(text: str) -> None:
    """A task's output is asked for."""
