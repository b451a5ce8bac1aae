"""The tools of an agent, put together once a session: the list is part of the cached prefix."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from sevenfold.agent.agents import AgentTool
from sevenfold.agent.ground import Ground
from sevenfold.agent.members import Child
from sevenfold.agent.send_message import SendMessage
from sevenfold.agent.team import Team
from sevenfold.core.events import Emit
from sevenfold.layers.context_sources import ContextSource
from sevenfold.layers.mail import LEAD
from sevenfold.run.held_book import HeldBook
from sevenfold.run.mcp import McpClient
from sevenfold.run.mcp_servers import Confirm, find_servers
from sevenfold.run.mcp_settings import McpSettings
from sevenfold.run.permissions import Guard
from sevenfold.run.sandbox import SandboxSettings
from sevenfold.run.sandbox_trial import find_sandbox
from sevenfold.run.shell_settings import ShellSettings
from sevenfold.run.tasks import Task, Tasks
from sevenfold.run.tool import Tool
from sevenfold.run.tools.edit import Edit
from sevenfold.run.tools.glob import Glob
from sevenfold.run.tools.grep import Grep
from sevenfold.run.tools.memory import Memory
from sevenfold.run.tools.plan import Plan, PlanFile
from sevenfold.run.tools.read import Read
from sevenfold.run.tools.shell import Shell
from sevenfold.run.tools.skill import Skill
from sevenfold.run.tools.tasks import TaskOutput, TaskStop
from sevenfold.run.tools.todo import Todo
from sevenfold.run.tools.web_fetch import WebFetch
from sevenfold.run.tools.write import Write
from sevenfold.run.web_settings import WebSettings
from sevenfold.run.workplace import Workplace
from sevenfold.store.memory_settings import MemorySettings
from sevenfold.store.offload import durably
from sevenfold.store.skills import find_skills, skill_folders
from sevenfold.store.trust import Trust

if TYPE_CHECKING:
    from sevenfold.agent.agent import Agent


OpenWith: TypeAlias = "Callable[[Child, McpClient | None], Awaitable[Agent]]"
"""Opens an agent, with these connections to servers or its own."""


@runtime_checkable
class Joins(Protocol):
    """A tool that works with the agent itself: it starts others, or tells it something later."""

    def join(self, agent: Agent) -> None:
        """The agent is there now. Called once, before its first turn."""
        ...


@runtime_checkable
class Keeps(Protocol):
    """A tool that keeps something with the session."""

    def begin(self, place: Workplace, /) -> None:
        """The session is there: take up what was kept in it. Blocks on the disk."""
        ...


@dataclass(frozen=True, slots=True)
class Equipment:
    """The usual tools of one agent, and what stands behind them."""

    tools: tuple[Tool, ...]
    tasks: Tasks
    mcp: McpClient
    skill: Skill

    def sources(self) -> tuple[ContextSource, ...]:
        """What the model is to know of skills and servers, as it is now."""
        return (*self.skill.sources(), *self.mcp.sources())

    def join(self, agent: Agent) -> None:
        """Have what happens in the background told to the agent."""

        def tell(task: Task) -> None:
            agent.post(f"Background {task.line}")

        self.tasks.on_end = tell


@dataclass(frozen=True, slots=True)
class Equipping:
    """Makes them. What has to be closed with the agent goes to `exits`."""

    ground: Ground
    guard: Guard
    environ: Mapping[str, str]
    confirm: Confirm
    emit: Emit
    exits: AsyncExitStack
    open_child: OpenWith | None = None
    """Opens the agents that this one starts; None: it starts none."""
    mcp: McpClient | None = None
    """Connections of whoever started this one; None: its own."""

    async def equip(self) -> Equipment:
        settings = self.ground.settings
        tasks = Tasks()
        self.exits.push_async_callback(tasks.close)
        sandbox = await find_sandbox(settings.of(SandboxSettings), self.environ, self.emit)
        hides, project = self.guard.is_hidden, self.ground.project
        folders = skill_folders(self.ground.root, self.ground.folders.home)
        skill = Skill(await durably(lambda: find_skills(folders, self.emit)))
        book = HeldBook(project.control)
        shell = Shell(sandbox, tasks, lambda: self.guard.mode, settings.of(ShellSettings), book)
        mcp = await self._connect()
        stored = self.ground.stored
        tools = (
            Read(),
            Write(),
            Edit(),
            Glob(hides),
            Grep(hides),
            shell,
            TaskOutput(tasks),
            TaskStop(tasks),
            Todo(),
            Plan(self.guard, PlanFile(None)),
            WebFetch(settings.of(WebSettings)),
            *((Memory(self.ground.memory),) if settings.of(MemorySettings).enabled else ()),
            skill,
            *await self._team(mcp, tasks),
            *await mcp.tools(stored.frame.tools if stored else None),
        )
        return Equipment(tools, tasks, mcp, skill)

    async def _team(self, mcp: McpClient, tasks: Tasks) -> tuple[Tool, ...]:
        open_with = self.open_child
        if open_with is None:
            return ()

        async def open_child(child: Child) -> Agent:
            # In a folder of its own, servers have to work there too.
            is_shared = child.cwd == self.ground.cwd
            return await open_with(child, mcp if is_shared else None)

        team = await durably(lambda: Team(self.ground, open_child, self.emit, tasks))
        self.exits.push_async_callback(team.close)
        return (AgentTool(team), SendMessage(team, LEAD))

    async def _connect(self) -> McpClient:
        if self.mcp is not None:
            return self.mcp.share()
        ground = self.ground
        servers = await find_servers(
            ground.settings,
            ground.root,
            Trust(ground.project.control),
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
