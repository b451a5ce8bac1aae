"""The `shell` tool, which runs a command in the sandbox or asks first, and tools for background commands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from sevenfold.agent.sandbox.command import CommandExit
from sevenfold.agent.sandbox.folders import SandboxRunStore
from sevenfold.agent.sandbox.job import MAX_TASKS, BackgroundTask, BackgroundTasks, CommandRequest, SandboxJob
from sevenfold.agent.sandbox.sandbox import Sandbox
from sevenfold.agent.sandbox.supervisor import TERMINATION_GRACE_SECONDS
from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec, error_output
from sevenfold.core.errors import InputError
from sevenfold.core.events import SandboxFailed
from sevenfold.core.json import (
    JsonObject,
    get_choice,
    get_flag,
    get_integer,
    get_string,
    object_schema,
    replace_lone_surrogates,
)
from sevenfold.core.settings.sections import PermissionMode, ShellSettings
from sevenfold.core.tool_kinds import SandboxProfile, ToolContext
from sevenfold.layers.compaction.keep_policy import Extra

MAX_COMMAND_BYTES = 100_000
"""Bytes. The kernel takes 131,072 as one argument."""

ACCESS_PROFILES: dict[str, SandboxProfile] = {"read": "read-only", "write": "workspace", "open": "open"}
STRICTEST_FIRST: tuple[SandboxProfile, ...] = ("read-only", "workspace", "open")
DEFAULT_PROFILES: dict[PermissionMode, SandboxProfile] = {
    "plan": "read-only",
    "read-only": "read-only",
    "ask": "workspace",
    "accept-edits": "workspace",
    "bypass": "open",
}
"""The profile of a command that does not ask for one."""


_DESCRIPTION = """\
Run a command line with bash, in the project's folder. Each call starts there anew: `cd` and variables do \
not last. Its input is empty, so that nothing can be typed. Output and errors come back together, with the \
exit code if it is not 0. Processes that still run when the command ends are ended too: use `background` for \
what is to keep running, and read its output with task_output.

`access` says what the command needs:
- read: it changes nothing and needs no network.
- write: it changes files of the project, and needs no network. Repositories and settings stay as they are.
- open: it needs the network, commits, or changes things elsewhere. The user is asked.
Ask for no more than is needed: `read`, and often `write`, run without asking. To read, edit or search \
files, use the tools for that."""


def choose_profile(
    wanted: SandboxProfile | None, mode: PermissionMode, most: SandboxProfile, sandbox: Sandbox
) -> SandboxProfile:
    """The profile of a command: the one it asks for, or that of the mode; never more than `most`."""
    chosen: SandboxProfile = wanted or DEFAULT_PROFILES[mode]
    if wanted is None and mode in ("ask", "accept-edits") and not sandbox.supports(chosen):
        # It will be asked for, where a mode that asks nobody would refuse it.
        chosen = "open"
    return next(profile for profile in STRICTEST_FIRST if profile in (chosen, most))


class ShellTool:
    """Runs commands for one agent. `mode` is asked at each call, since people change it."""

    def __init__(
        self,
        sandbox: Sandbox,
        tasks: BackgroundTasks,
        mode: Callable[[], PermissionMode],
        settings: ShellSettings | None = None,
        run_store: SandboxRunStore | None = None,
    ) -> None:
        self._sandbox, self._tasks, self._mode, self._run_store = sandbox, tasks, mode, run_store
        self._settings = settings or ShellSettings()
        self._foreground: dict[SandboxJob, asyncio.Timeout] = {}
        """What is waited for, and until when."""
        self._leaving: set[SandboxJob] = set()
        self._spec = ToolSpec("shell", _DESCRIPTION, self._schema())

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        request = self._read_request(given, place)
        self._seconds(given)
        get_flag(given, "background")
        return AccessRequest(
            kind="run",
            command=request.line,
            profile=request.profile,
            said=request.description or request.line,
        )

    async def run(self, given: JsonObject, place: ToolContext, on_progress: OnProgress) -> ToolOutput:
        request = self._read_request(given, place)
        if os.uname().sysname != "Linux":
            return error_output(
                f"not run: commands run on Linux only so far, and this is {os.uname().sysname}"
            )
        if request.profile != "open" and not self._sandbox.supports(request.profile):
            place.emit(SandboxFailed(request.profile, self._sandbox.why_not))
            return error_output(
                f"not run: a command cannot be held to {request.profile} access on this machine "
                f"({self._sandbox.why_not}). Use other tools, or tell the user"
            )
        self._tasks.take_back()
        if get_flag(given, "background"):
            task = self._tasks.start(lambda: SandboxJob(request, self._sandbox, place, self._run_store))
            return ToolOutput(
                f"{task.id} runs in the background; you are told when it ends; task_output reads it"
            )
        job = SandboxJob(request, self._sandbox, place, self._run_store)
        return await self._run_to_end(job, self._seconds(given), on_progress)

    @property
    def longest_seconds(self) -> int:
        """The most that a call may wait for its command."""
        return self._settings.longest_seconds

    @property
    def has_foreground(self) -> bool:
        """Whether a call waits for a command now."""
        return bool(self._foreground)

    def move_to_background(self) -> bool:
        """Wait no longer for commands that run: they become tasks. False: none was moved."""
        room = MAX_TASKS - len(self._tasks.running())
        leaving = [job for job in self._foreground if job not in self._leaving][: max(room, 0)]
        for job in leaving:
            self._leaving.add(job)
            self._foreground[job].reschedule(0)  # by the loop's clock: at once
        return bool(leaving)

    async def _run_to_end(self, job: SandboxJob, seconds: int, on_progress: OnProgress) -> ToolOutput:
        is_late = is_moved = False
        ended: CommandExit | None = None
        try:
            async with asyncio.timeout(seconds) as limit:
                self._foreground[job] = limit
                await job.watch(on_progress)
        except TimeoutError:
            if job in self._leaving:
                output = self._go_on_in_background(job)
                is_moved = True
                return output
            is_late = True
            job.cut(f"it was ended after {seconds} s")
            with suppress(TimeoutError):
                async with asyncio.timeout(TERMINATION_GRACE_SECONDS):
                    await job.watch(on_progress)
        finally:
            self._foreground.pop(job, None)
            self._leaving.discard(job)
            if not is_moved:
                ended = await job.close()
            self._tasks.take_back()
        return ToolOutput(
            job.render_output(job.output.text()), is_error=is_late or ended is None or ended.code != 0
        )

    def _go_on_in_background(self, job: SandboxJob) -> ToolOutput:
        task = self._tasks.start(lambda: job)
        printed = job.output.read_new().rstrip("\n")
        said = (
            f"the user sent it to the background as {task.id}; task_output reads it, and its end is announced"
        )
        return ToolOutput("\n".join(part for part in (printed, f"[{said}]") if part))

    def _read_request(self, given: JsonObject, place: ToolContext) -> CommandRequest:
        line = replace_lone_surrogates(get_string(given, "command"))
        size = len(line.encode())
        if not line.strip() or "\0" in line or size > MAX_COMMAND_BYTES:
            raise InputError(
                f"command has {size:,} bytes; expected a command line of up to "
                f"{MAX_COMMAND_BYTES:,} without NUL; "
                "put a longer one into a file"
            )
        access = get_choice(given, "access", ("", *ACCESS_PROFILES), "")
        profile = choose_profile(ACCESS_PROFILES.get(access), self._mode(), place.confined_to, self._sandbox)
        return CommandRequest(line, profile, get_string(given, "description", ""))

    def _seconds(self, given: JsonObject) -> int:
        settings = self._settings
        usual = min(settings.timeout_seconds, settings.longest_seconds)
        return get_integer(given, "timeout_seconds", usual, at_least=1, at_most=settings.longest_seconds)

    def _schema(self) -> JsonObject:
        usual, most = self._settings.timeout_seconds, self._settings.longest_seconds
        return object_schema(
            {
                "command": {"type": "string", "description": "The command line."},
                "description": {"type": "string", "description": "What it does, in five to ten words."},
                "access": {
                    "type": "string",
                    "enum": list(ACCESS_PROFILES),
                    "description": "What it needs; left out: what the user's mode gives.",
                },
                "timeout_seconds": {
                    "type": "integer",
                    "description": f"At most {most}; {usual} if left out.",
                },
                "background": {"type": "boolean", "description": "Do not wait for its end."},
            },
            ("command",),
        )


# Background commands: read what one has printed, and stop it.

_MOST_SECONDS = 600
"""To wait for an end: as long as a call in the foreground may take."""

_TASK = {"type": "string", "description": "Its id, such as task-1."}


class TaskOutputTool:
    """Reads what a task has printed since it was last read; without a task, lists them."""

    spec = ToolSpec(
        "task_output",
        "What a background task has printed since this was last asked, and whether it still runs. Without a "
        "task: all tasks of the session. With wait_seconds: wait so long for its end first.",
        object_schema(
            {
                "task": _TASK,
                "wait_seconds": {"type": "integer", "description": f"0 to {_MOST_SECONDS}; 0 if left out."},
            }
        ),
    )

    def __init__(self, tasks: BackgroundTasks) -> None:
        self.tasks = tasks

    def need(self, given: JsonObject, _place: ToolContext) -> AccessRequest:
        name = get_string(given, "task", "")
        get_integer(given, "wait_seconds", 0, at_least=0, at_most=_MOST_SECONDS)
        return AccessRequest(kind="nothing", said=f"output of {name}" if name else "list of tasks")

    async def run(self, given: JsonObject, _place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        name = get_string(given, "task", "")
        if not name:
            return ToolOutput("\n".join(task.line for task in self.tasks.all()) or "there are no tasks")
        task = self.tasks.find(name)
        seconds = get_integer(given, "wait_seconds", 0, at_least=0, at_most=_MOST_SECONDS)
        if seconds and task.ended is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await task.over.wait()
        return ToolOutput(_describe_task(task))

    def extras(self) -> Sequence[Extra]:
        return self.tasks.extras()


class TaskStopTool:
    """Ends a task with everything that it started."""

    spec = ToolSpec("task_stop", "End a background task.", object_schema({"task": _TASK}, ("task",)))

    def __init__(self, tasks: BackgroundTasks) -> None:
        self.tasks = tasks

    def need(self, given: JsonObject, _place: ToolContext) -> AccessRequest:
        return AccessRequest(kind="nothing", said=f"stop {get_string(given, 'task')}")

    async def run(self, given: JsonObject, _place: ToolContext, _on_progress: OnProgress) -> ToolOutput:
        return ToolOutput(_describe_task(await self.tasks.stop(get_string(given, "task"))))


def _describe_task(task: BackgroundTask) -> str:
    news = task.job.output.read_new()
    printed = task.job.render_output(news) if task.ended else news.rstrip("\n")
    return f"{task.line}\n{printed or '[nothing new was printed]'}"
