"""Commands that run beside the conversation. They go on from turn to turn, and end with the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NewType, TypeAlias

from sevenfold.agent.sandbox.command import CommandExit
from sevenfold.agent.sandbox.job import SandboxJob
from sevenfold.core.errors import InputError
from sevenfold.layers.compaction.restore_policy import Extra

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

    @property
    def title(self) -> str:
        wish = self.job.wish
        return wish.description or wish.line.splitlines()[0][:80]

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
            task.job.take_back()

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
                task.over.set()
        if not task.is_stopped:
            self.on_end(task)


def _unread(text: str) -> None:
    """A task's output is asked for."""
