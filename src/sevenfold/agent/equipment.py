"""The tools of an agent, put together once a session: the list is part of the cached prefix."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from sevenfold.agent.agents import AgentTool
from sevenfold.agent.ground import ProjectContext
from sevenfold.agent.members import SubagentOptions
from sevenfold.agent.send_message import SendMessageTool
from sevenfold.agent.team import AgentTeam
from sevenfold.core.events import Emit
from sevenfold.layers.context_sources import ContextSource
from sevenfold.layers.mail import LEAD_NAME
from sevenfold.run.held_book import SandboxRunStore
from sevenfold.run.mcp import McpClient
from sevenfold.run.mcp_servers import Confirm, find_servers
from sevenfold.run.mcp_settings import McpSettings
from sevenfold.run.permissions import Guard
from sevenfold.run.sandbox import SandboxSettings
from sevenfold.run.sandbox_trial import probe_sandbox
from sevenfold.run.shell_settings import ShellSettings
from sevenfold.run.tasks import BackgroundTask, BackgroundTasks
from sevenfold.run.tool import Tool
from sevenfold.run.tools.edit import EditTool
from sevenfold.run.tools.glob import GlobTool
from sevenfold.run.tools.grep import GrepTool
from sevenfold.run.tools.memory import MemoryTool
from sevenfold.run.tools.plan import PlanFile, PlanTool
from sevenfold.run.tools.read import ReadTool
from sevenfold.run.tools.shell import ShellTool
from sevenfold.run.tools.skill import SkillTool
from sevenfold.run.tools.tasks import TaskOutputTool, TaskStopTool
from sevenfold.run.tools.todo import TodoTool
from sevenfold.run.tools.web_fetch import WebFetchTool
from sevenfold.run.tools.write import WriteTool
from sevenfold.run.web_settings import WebSettings
from sevenfold.run.workplace import ToolContext
from sevenfold.store.memory_settings import MemorySettings
from sevenfold.store.offload import run_blocking
from sevenfold.store.skills import find_skills, list_skill_folders
from sevenfold.store.trust import TrustStore

if TYPE_CHECKING:
    from sevenfold.agent.agent import Agent


OpenConnected: TypeAlias = "Callable[[SubagentOptions, McpClient | None], Awaitable[Agent]]"
"""Opens an agent, with these connections to servers or its own."""


@runtime_checkable
class AgentAwareTool(Protocol):
    """A tool that works with the agent itself: it starts others, or tells it something later."""

    def join(self, agent: Agent) -> None:
        """The agent is there now. Called once, before its first turn."""
        ...


@runtime_checkable
class StatefulTool(Protocol):
    """A tool that keeps something with the session."""

    def begin(self, place: ToolContext, /) -> None:
        """The session is there: take up what was kept in it. Blocks on the disk."""
        ...


@dataclass(frozen=True, slots=True)
class AgentToolset:
    """The usual tools of one agent, and what stands behind them."""

    tools: tuple[Tool, ...]
    tasks: BackgroundTasks
    mcp: McpClient
    skill: SkillTool

    def sources(self) -> tuple[ContextSource, ...]:
        """What the model is to know of skills and servers, as it is now."""
        return (*self.skill.sources(), *self.mcp.sources())

    def join(self, agent: Agent) -> None:
        """Have what happens in the background told to the agent."""

        def tell(task: BackgroundTask) -> None:
            agent.post(f"Background {task.line}")

        self.tasks.on_end = tell


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetBuilder:
    """Makes them. What has to be closed with the agent goes to `exits`."""

    ground: ProjectContext
    guard: Guard
    environ: Mapping[str, str]
    confirm: Confirm
    emit: Emit
    exits: AsyncExitStack
    open_child: OpenConnected | None = None
    """Opens the agents that this one starts; None: it starts none."""
    mcp: McpClient | None = None
    """Connections of whoever started this one; None: its own."""

    async def equip(self) -> AgentToolset:
        settings = self.ground.settings
        tasks = BackgroundTasks()
        self.exits.push_async_callback(tasks.close)
        sandbox = await probe_sandbox(settings.of(SandboxSettings), self.environ, self.emit)
        hides, project = self.guard.is_hidden, self.ground.project
        folders = list_skill_folders(self.ground.root, self.ground.folders.home)
        skill = SkillTool(skills=await run_blocking(lambda: find_skills(folders, self.emit)))
        book = SandboxRunStore(project.control)
        shell = ShellTool(sandbox, tasks, lambda: self.guard.mode, settings.of(ShellSettings), book)
        mcp = await self._connect()
        stored = self.ground.stored
        tools = (
            ReadTool(),
            WriteTool(),
            EditTool(),
            GlobTool(hides),
            GrepTool(hides),
            shell,
            TaskOutputTool(tasks),
            TaskStopTool(tasks),
            TodoTool(),
            PlanTool(self.guard, PlanFile(None)),
            WebFetchTool(settings.of(WebSettings)),
            *((MemoryTool(self.ground.memory),) if settings.of(MemorySettings).enabled else ()),
            skill,
            *await self._team(mcp, tasks),
            *await mcp.tools(stored.frame.tools if stored else None),
        )
        return AgentToolset(tools, tasks, mcp, skill)

    async def _team(self, mcp: McpClient, tasks: BackgroundTasks) -> tuple[Tool, ...]:
        open_with = self.open_child
        if open_with is None:
            return ()

        async def open_child(child: SubagentOptions) -> Agent:
            # In a folder of its own, servers have to work there too.
            is_shared = child.cwd == self.ground.cwd
            return await open_with(child, mcp if is_shared else None)

        team = await run_blocking(lambda: AgentTeam(self.ground, open_child, self.emit, tasks))
        self.exits.push_async_callback(team.close)
        return (AgentTool(team), SendMessageTool(team, LEAD_NAME))

    async def _connect(self) -> McpClient:
        if self.mcp is not None:
            return self.mcp.share()
        ground = self.ground
        servers = await find_servers(
            ground.settings,
            ground.root,
            TrustStore(ground.project.control),
            confirm=self.confirm,
            emit=self.emit,
        )
        mcp = McpClient.start(
            servers,
            ground.settings.of(McpSettings),
            cwd=ground.cwd,
            environ=self.environ,
            emit=self.emit,
        )
        self.exits.push_async_callback(mcp.close)
        return mcp
