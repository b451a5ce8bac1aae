"""Hostile command lines, run for real through the shell tool under every permission there is."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sevenfold.agent.permissions.guard import Guard, PermissionRequest, PermissionResponse
from sevenfold.agent.permissions.rules import PermissionRules
from sevenfold.agent.sandbox.job import BackgroundTasks
from sevenfold.agent.sandbox.sandbox import (
    SANDBOXED_PROFILES,
    Sandbox,
    SandboxBackend,
    find_bubblewrap,
    probe_sandbox,
)
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.agent.tools.shell import ShellTool
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import ToolResult, ToolUse, ToolUseId
from sevenfold.core.settings.sections import PermissionMode, SandboxSettings
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.forks.policy import ForkBrief, ToolPermit, render_denial
from tests.torture.rig import Orders, Outcome, outcome
from tests.torture.shell_corpus import Line, all_lines
from tests.torture.shell_stage import KEY, SECRET, Stage, adopting, children, strays

SETTINGS = SandboxSettings(memory_mb=256, file_mb=16, processes=24)
"""Small, so that what is too much is soon too much."""

WORKERS = 3
SLACK_SECONDS = 20
"""On top of a line's time and its grace: a busy machine is not a hang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One way in which an agent, or a fork of it, may come to run a command."""

    name: str
    mode: PermissionMode = "ask"
    access: str = ""
    brief: ForkBrief | None = None
    may_change: bool = False
    is_refused: bool = False
    """Nothing is run at all."""


NOTES = ForkBrief(kind="notes", directive="", allow=(ToolPermit("edit", "/notes.md"),))
LOOKING = ForkBrief(kind="looking", directive="", allow=(ToolPermit("shell"),))
PERMISSIONS = (
    Permission(name="ask, allowed", mode="ask", may_change=True),
    Permission(name="ask, open", mode="ask", access="open", is_refused=True),
    Permission(name="accept edits", mode="accept-edits", may_change=True),
    Permission(name="accept edits, open", mode="accept-edits", access="open", is_refused=True),
    Permission(name="plan", mode="plan"),
    Permission(name="plan, write", mode="plan", access="write", is_refused=True),
    Permission(name="read-only", mode="read-only"),
    Permission(name="read-only, open", mode="read-only", access="open", is_refused=True),
    Permission(name="bypass, held", mode="bypass", access="write", may_change=True),
    Permission(name="fork of notes", mode="bypass", brief=NOTES, is_refused=True),
    Permission(name="fork with a shell", mode="bypass", brief=LOOKING),
    Permission(name="fork, open", mode="bypass", access="open", brief=LOOKING),
)

Call: TypeAlias = Callable[[ToolUse], Awaitable[ToolResult]]


async def answer(question: PermissionRequest) -> PermissionResponse:
    """A person who lets held commands run, and no others."""
    return PermissionResponse(question.need.profile != "open")


def run_shell(orders: Orders) -> list[Outcome]:
    """Every permission with every line, or with some of them."""
    with adopting():
        return asyncio.run(_run(orders))


def run_planted(orders: Orders, sandbox: Sandbox, texts: Sequence[str]) -> Outcome:
    """These lines with a sandbox that is known not to hold."""
    lines = [Line(text, "planted") for text in texts]
    with adopting():
        return asyncio.run(_play(orders, Permission(name="planted", mode="plan"), lines, sandbox))


async def _run(orders: Orders) -> list[Outcome]:
    sandbox = await probe_sandbox(SETTINGS, os.environ)
    if not all(map(sandbox.supports, SANDBOXED_PROFILES)):
        return [Outcome(name="shell", unit="lines", skipped=sandbox.why_not)]
    lines = all_lines()
    found: list[Outcome] = []
    for permission in PERMISSIONS:
        is_first = permission is PERMISSIONS[0]
        chosen = _choose(orders, permission, lines if is_first else [one for one in lines if not one.is_bomb])
        found.append(await _play(orders, permission, chosen, sandbox))
    if find_bubblewrap() is None:
        why = "bubblewrap is not installed: apt-get install bubblewrap"
        return [*found, Outcome(name="shell: bubblewrap", unit="lines", skipped=why)]
    return [*found, *await _play_bubblewrap(orders, lines)]


async def _play_bubblewrap(orders: Orders, lines: Sequence[Line]) -> list[Outcome]:
    """The same with the other means, where both are there."""
    means: SandboxBackend = "bubblewrap"
    sandbox = Sandbox(
        means=dict.fromkeys(SANDBOXED_PROFILES, means), settings=SETTINGS, bubblewrap=find_bubblewrap()
    )
    held = [one for one in lines if not one.is_bomb]
    wanted = [
        Permission(name="bubblewrap, write", mode="accept-edits", may_change=True),
        Permission(name="bubblewrap", mode="plan"),
    ]
    return [
        await _play(orders, permission, _choose(orders, permission, held), sandbox) for permission in wanted
    ]


def _choose(orders: Orders, permission: Permission, lines: Sequence[Line]) -> Sequence[Line]:
    wanted = orders.pick(24, 60, len(lines))
    if wanted >= len(lines):
        return lines
    random = orders.random(f"shell {permission.name}")
    quick = [line for line in lines if line.timeout_seconds > 1]
    slow = [line for line in lines if line.timeout_seconds == 1]
    return [*random.sample(quick, wanted - wanted // 8), *random.sample(slow, wanted // 8)]


async def _play(orders: Orders, permission: Permission, lines: Sequence[Line], sandbox: Sandbox) -> Outcome:
    with outcome(f"shell: {permission.name}", "lines") as found:
        waiting = list(reversed(lines))
        known = set(children())

        async def work(number: int) -> None:
            with Stage(orders.place, number) as stage:
                known.add(stage.victim.pid)
                call = _caller(permission, stage, sandbox)
                while waiting:
                    line = waiting.pop()
                    await _try(found, permission, line, stage, call)
                    found.count += 1
                    orders.progress(f"shell, {permission.name}", found.count, len(lines), "lines")
                    for stray in strays(known):
                        found.wrong(f"a process was left behind after {line.text!r}: {stray}")
                for trace in stage.traces():
                    found.wrong(f"{trace} was made by one of the lines")

        await asyncio.gather(*(work(number) for number in range(WORKERS)))
    return found


async def _try(found: Outcome, permission: Permission, line: Line, stage: Stage, call: Call) -> None:
    given = {"command": stage.fill(line.text), "timeout_seconds": line.timeout_seconds}
    if permission.access:
        given["access"] = permission.access
    began = time.monotonic()
    try:
        async with asyncio.timeout(line.timeout_seconds + SLACK_SECONDS):
            result = await call(ToolUse(ToolUseId("one"), "shell", freeze_object(given)))
    except TimeoutError:
        found.wrong(f"{line.text!r} hung for {time.monotonic() - began:.0f} s")
        return
    said = result.content if isinstance(result.content, str) else ""
    damage = stage.damage(may_change=permission.may_change)
    if SECRET in said or KEY in said:
        damage.append("a secret was shown")
    if "it did not run" in said:
        damage.append(f"it could not be held: {said[-200:]}")
    if permission.is_refused and "not allowed" not in said and "may not be used" not in said:
        damage.append(f"it was run: {said[:100]}")
    for what in damage:
        found.wrong(f"{what} by {line.text!r}")


def _caller(permission: Permission, stage: Stage, sandbox: Sandbox) -> Call:
    guard = Guard(
        mode=permission.mode, rules=PermissionRules(), root=stage.project, ask=answer, user_home=stage.home
    )
    place = ToolContext(root=stage.project, cwd=stage.project, environ=stage.environ())
    toolbox = ToolExecutor([ShellTool(sandbox, BackgroundTasks(), lambda: guard.mode)], place, guard)
    brief = permission.brief

    async def call(use: ToolUse) -> ToolResult:
        if brief is None:
            return (await toolbox.run([use]))[0]
        reason = brief.denial(use)
        return render_denial(use, reason) if reason else await toolbox.runner(place)(use)

    return call
