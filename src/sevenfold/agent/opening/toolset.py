"""The tools of an agent, and its system prompt.

Both are built once for a session, because they are part of the cached prefix.

The system prompt contains nothing that changes: no date, folder or branch. `WorkEnvironment` holds those.
They are sent beside the first prompt, and again when they have changed.
"""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from sevenfold.agent.loop.rewind import TASK_TAG
from sevenfold.agent.loop.turn import ReadSources
from sevenfold.agent.mcp.client import McpClient
from sevenfold.agent.mcp.listings import ListingStore
from sevenfold.agent.mcp.servers import find_servers
from sevenfold.agent.permissions.guard import Guard
from sevenfold.agent.sandbox.folders import SandboxRunStore
from sevenfold.agent.sandbox.job import BackgroundTask, BackgroundTasks
from sevenfold.agent.sandbox.sandbox import probe_sandbox
from sevenfold.agent.subagents.agent_team import AgentTeam, AgentTool
from sevenfold.agent.subagents.definition_files import ask_definitions, list_definition_folders
from sevenfold.agent.subagents.definitions import SubagentOptions
from sevenfold.agent.subagents.messaging import SendMessageTool
from sevenfold.agent.tool import Tool
from sevenfold.agent.tools.file_changes import EditTool, WriteTool
from sevenfold.agent.tools.memory import MemoryTool
from sevenfold.agent.tools.planning import PlanFile, PlanTool, SkillTool, TodoTool
from sevenfold.agent.tools.read import ReadTool
from sevenfold.agent.tools.search import GlobTool, GrepTool
from sevenfold.agent.tools.shell import ShellTool, TaskOutputTool, TaskStopTool
from sevenfold.agent.tools.web_fetch import WebFetchTool
from sevenfold.core.errors import FileMissing
from sevenfold.core.events import Emit
from sevenfold.core.json import JsonObject
from sevenfold.core.settings import MemorySettings
from sevenfold.core.settings.sections import McpSettings, SandboxSettings, ShellSettings, WebSettings
from sevenfold.core.system import run_blocking
from sevenfold.core.text.safe_text import fence_text, quote_name
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.forks.policy import LEAD_NAME
from sevenfold.session.opening import Workspace
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.git import read_branch
from sevenfold.store.project.instructions import find_skills, list_skill_folders
from sevenfold.store.project.trust import Confirm

if TYPE_CHECKING:
    from sevenfold.agent.loop.agent import Agent


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


@runtime_checkable
class ClearableTool(Protocol):
    """A tool that says of itself what layer 2 may do with its old results."""

    @property
    def is_clearable(self) -> bool:
        """Whether they may be cleared: what they showed can be had again without harm."""
        ...


@dataclass(frozen=True, slots=True)
class AgentToolset:
    """The usual tools of one agent, and what stands behind them."""

    tools: tuple[Tool, ...]
    tasks: BackgroundTasks
    servers: McpClient | None
    """MCP servers; None where there are none."""
    skill: SkillTool

    @property
    def sources(self) -> tuple[ReadSources, ...]:
        """Read what the model is to know of skills and servers, as it is then."""
        skills = (self.skill.sources,) if self.skill.skills else ()
        return (*skills, *((self.servers.sources,) if self.servers else ()))

    def join(self, agent: Agent) -> None:
        """Have what happens in the background told to the agent."""

        def tell(task: BackgroundTask) -> None:
            agent.post(fence_text(TASK_TAG, f"Background {task.line}"))

        self.tasks.on_end = tell


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetBuilder:
    """Makes them. What has to be closed with the agent goes to `exits`."""

    workspace: Workspace
    guard: Guard
    stored_tools: tuple[JsonObject, ...] | None
    """As the resumed session declared them; None: a new session."""
    confirm: Confirm
    emit: Emit
    exits: AsyncExitStack
    open_child: OpenConnected | None = None
    """Opens the agents that this one starts; None: it starts none."""
    only: frozenset[str] | None = None
    """The tools that it is limited to, and with it all that it starts; None: it is not."""
    mcp: McpClient | None = None
    """Connections of whoever started this one; None: its own."""

    async def build(self) -> AgentToolset:
        settings = self.workspace.settings
        tasks = BackgroundTasks()
        self.exits.push_async_callback(tasks.close)
        sandbox = await probe_sandbox(settings.of(SandboxSettings), self.workspace.environ, self.emit)
        hides, project = self.guard.is_hidden, self.workspace.project
        folders = list_skill_folders(self.workspace.root, self.workspace.home)
        skill = SkillTool(skills=await run_blocking(lambda: find_skills(folders, self.emit)))
        runs = SandboxRunStore(project.control)
        shell = ShellTool(sandbox, tasks, lambda: self.guard.mode, settings.of(ShellSettings), runs)
        mcp = await self._connect()
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
            *((MemoryTool(self.workspace.memory),) if settings.of(MemorySettings).enabled else ()),
            skill,
            *await self._team(mcp, tasks),
            *await mcp.tools(self.stored_tools),
        )
        return AgentToolset(tools, tasks, mcp if mcp.has_servers else None, skill)

    async def _team(self, mcp: McpClient, tasks: BackgroundTasks) -> tuple[Tool, ...]:
        open_with = self.open_child
        if open_with is None:
            return ()

        async def open_child(child: SubagentOptions) -> Agent:
            # In a folder of its own, servers have to work there too.
            is_shared = child.cwd == self.workspace.cwd
            return await open_with(child, mcp if is_shared else None)

        listed = list_definition_folders(self.workspace.home, self.workspace.root)
        await ask_definitions(listed, self.workspace.trust, self.confirm)
        team = await run_blocking(
            lambda: AgentTeam(self.workspace, open_child, self.emit, tasks, only=self.only)
        )
        self.exits.push_async_callback(team.close)
        return (AgentTool(team), SendMessageTool(team, LEAD_NAME))

    async def _connect(self) -> McpClient:
        if self.mcp is not None:
            return self.mcp.share()
        workspace = self.workspace
        servers = await find_servers(
            workspace.settings,
            workspace.root,
            workspace.trust,
            confirm=self.confirm,
            emit=self.emit,
        )
        mcp = McpClient.start(
            servers,
            workspace.settings.of(McpSettings),
            cwd=workspace.cwd,
            environ=self.workspace.environ,
            emit=self.emit,
            listings=await self._open_listings() if servers else None,
        )
        self.exits.push_async_callback(mcp.close)
        return mcp

    async def _open_listings(self) -> ListingStore:
        """Where agents may not write: what is kept there is declared to models."""
        folder = await run_blocking(lambda: self.workspace.project.control.subfolder(_LISTINGS_FOLDER))
        self.exits.callback(folder.close)
        return ListingStore(folder)


_LISTINGS_FOLDER = "mcp-listings"
SYSTEM_PROMPT_FILE = "system.md"
MAX_PROMPT_BYTES = 256 * 1024


def render_system_prompt(templates: Folder | None = None) -> str:
    """The system prompt: the user's template where there is one, else ours."""
    if templates is not None:
        try:
            return (
                templates.read(SYSTEM_PROMPT_FILE, max_bytes=MAX_PROMPT_BYTES)
                .decode("utf-8", "replace")
                .strip()
            )
        except FileMissing:
            pass
    return _packaged()


@cache
def _packaged() -> str:
    return (files("sevenfold.agent") / "prompts" / SYSTEM_PROMPT_FILE).read_text(encoding="utf-8").strip()


@dataclass(frozen=True, slots=True)
class WorkEnvironment:
    """Where a session is at work."""

    cwd: Path
    branch: str
    system: str
    day: date

    @classmethod
    def read(cls, cwd: Path, root: Path, day: date) -> WorkEnvironment:
        """Read from git's own files: a repository can make git run code of its choosing."""
        return cls(cwd, read_branch(root), f"{platform.system()} {platform.release()}", day)

    def render(self) -> str:
        # A folder's name and `.git/HEAD` come with an archive, and must not look like lines of ours.
        lines = [f"Working folder: {quote_name(str(self.cwd))}", f"System: {self.system}"]
        lines += [f"Git branch: {quote_name(self.branch)}"] if self.branch else ["Not a git repository"]
        return "\n".join((*lines, f"Today's date: {self.day.isoformat()}"))
