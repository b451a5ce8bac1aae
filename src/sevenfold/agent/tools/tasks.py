"""The tools for background commands: what one has printed, and an end to it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from sevenfold.agent.sandbox.background_tasks import BackgroundTask, BackgroundTasks
from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.core.json import JsonObject
from sevenfold.core.json_fields import get_integer, get_string, object_schema
from sevenfold.core.tool_context import ToolContext
from sevenfold.layers.compaction.restore_policy import Extra

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
        return ToolOutput(_told(task))

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
        return ToolOutput(_told(await self.tasks.stop(get_string(given, "task"))))


def _told(task: BackgroundTask) -> str:
    news = task.job.output.news()
    printed = task.job.told(news) if task.ended else news.rstrip("\n")
    return f"{task.line}\n{printed or '[nothing new was printed]'}"
