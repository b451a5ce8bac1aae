"""Commands for tests: where they run, the sandbox around them, and what they print."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from sevenfold.agent.sandbox.command import CommandExit, SupervisedCommand
from sevenfold.agent.sandbox.job import BackgroundTasks
from sevenfold.agent.sandbox.sandbox import SANDBOXED_PROFILES, Sandbox, SandboxBackend, find_bubblewrap
from sevenfold.agent.tool import OnProgress, Tool, ToolOutput
from sevenfold.agent.tools.shell import ShellTool
from sevenfold.core.events import Event
from sevenfold.core.json import freeze_object
from sevenfold.core.settings.sections import PermissionMode, SandboxSettings
from sevenfold.core.tool_kinds import SandboxProfile, ToolContext

SMALL = SandboxSettings(memory_mb=256, file_mb=4, processes=24)


@cache
def ways() -> tuple[SandboxBackend, ...]:
    """The kinds of sandbox that there are here: bubblewrap need not be installed."""
    found: list[SandboxBackend] = ["namespaces"]
    return (*found, "bubblewrap") if find_bubblewrap() else tuple(found)


def make_sandbox(way: SandboxBackend, settings: SandboxSettings = SMALL) -> Sandbox:
    return Sandbox(
        means=dict.fromkeys(SANDBOXED_PROFILES, way), settings=settings, bubblewrap=find_bubblewrap()
    )


def place_in(folder: Path, **environ: str) -> ToolContext:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    return ToolContext(
        root=project, cwd=project, environ={"PATH": os.environ["PATH"], "HOME": str(folder)} | environ
    )


@dataclass(frozen=True, slots=True)
class Printed:
    text: str
    ended: CommandExit


async def run_line(sandbox: Sandbox, profile: SandboxProfile, line: str, place: ToolContext) -> Printed:
    """A command to its end."""
    command = SupervisedCommand(sandbox.build_launch_spec(profile, line, place))
    printed = b""
    try:
        while part := await command.read():
            printed += part
        ended = await command.wait()
    finally:
        await command.close()
    return Printed(printed.decode("utf-8", "replace"), ended)


class Bench:
    """A shell tool with all that it needs."""

    def __init__(
        self, folder: Path, mode: PermissionMode = "accept-edits", sandbox: Sandbox | None = None
    ) -> None:
        self.events: list[Event] = []
        self.ended: list[str] = []
        self.printed: list[str] = []
        self.mode: PermissionMode = mode
        self.place = replace(place_in(folder), session_folder=folder / "session", emit=self.events.append)
        self.tasks = BackgroundTasks(lambda task: self.ended.append(task.line))
        self.shell = ShellTool(sandbox or make_sandbox("namespaces"), self.tasks, lambda: self.mode)

    async def run(
        self, command: str, *, on_progress: OnProgress | None = None, **given: object
    ) -> ToolOutput:
        return await self.call(self.shell, on_progress=on_progress, command=command, **given)

    async def call(self, tool: Tool, *, on_progress: OnProgress | None = None, **given: object) -> ToolOutput:
        asked = freeze_object(given)
        tool.need(asked, self.place)
        return await tool.run(asked, self.place, on_progress or self.printed.append)


def text_of(output: ToolOutput) -> str:
    assert isinstance(output.content, str)
    return output.content
