"""The writers that an agent of its own has: what is brought up to date after a turn."""

from __future__ import annotations

from sevenfold.agent.agent import Agent
from sevenfold.agent.turn import TurnEnd
from sevenfold.background.living_docs import DocTools, DocWriter
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.layers.forks import ForkBrief
from sevenfold.layers.living_docs import KIND, DocSettings
from sevenfold.run.fork import ForkResult, ToolRunner
from sevenfold.run.permissions import Guard
from sevenfold.run.tool import Need
from sevenfold.store.folder import Folder

EDIT = "edit"


def add_doc_writer(agent: Agent, settings: DocSettings, templates: Folder | None = None) -> DocWriter | None:
    """Have living documents kept up to date after each turn; None where nothing can be edited or asked."""
    guard = agent.toolbox.guard
    if not settings.enabled or agent.toolbox.find(EDIT) is None or not isinstance(guard, Guard):
        return None

    def objects(path: str) -> str | None:
        """A file's heading stands for a yes, and no rule or mode that says no is asked twice."""
        use = ToolUse(ToolUseId(KIND), EDIT, JsonObject({"file_path": path}))
        verdict = guard.decide(use, Need("edit", (path,)))
        return verdict.reason if verdict.decision == "deny" else None

    async def run_fork(brief: ForkBrief, run_tool: ToolRunner) -> ForkResult:
        return await agent.session.run_fork(brief, run_tool=run_tool)

    tools = DocTools(EDIT, agent.toolbox.runner, run_fork, objects)
    writer = DocWriter(agent.toolbox.place, tools, settings, templates)

    async def write(end: TurnEnd) -> None:
        may_edit = guard.mode not in ("plan", "read-only")
        await writer.turn_ended(is_idle=end.reason == "answered", may_edit=may_edit)

    agent.add_writer("living documents", write)
    return writer
