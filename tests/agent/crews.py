"""A lead with a team, on scripted models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.agent.permissions.guard import AskPermission, deny_unattended
from sevenfold.agent.sandbox.job import BackgroundTasks
from sevenfold.agent.subagents.agent_team import AgentTeam, AgentTool
from sevenfold.agent.subagents.definitions import SubagentOptions
from sevenfold.agent.subagents.messaging import SendMessageTool
from sevenfold.agent.tool import Tool
from sevenfold.core.clock import ManualClock
from sevenfold.core.events import Emit, Event
from sevenfold.core.messages import Message, Text, ToolResult
from sevenfold.core.settings.sections import PermissionMode
from sevenfold.layers.forks.policy import LEAD_NAME
from sevenfold.providers.provider import Provider
from sevenfold.session.opening import Workspace
from tests.agent.workshop import NO_ASIDES, Noted, Plain

MODEL = "claude-opus-5-5"


@dataclass
class Listener(Noted):
    """Keeps what it is told, and may act on it."""

    hears: Emit | None = None

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if self.hears is not None:
            self.hears(event)


@dataclass(slots=True, kw_only=True)
class Crew:
    """A project, a lead in it, and its team."""

    home: Path
    provider: Provider
    mode: PermissionMode = "bypass"
    tools: tuple[Tool, ...] = field(default_factory=lambda: (Plain(),))
    noted: Listener = field(default_factory=Listener)
    clock: ManualClock = field(default_factory=ManualClock)
    children: list[SubagentOptions] = field(default_factory=list[SubagentOptions])
    more_environ: dict[str, str] = field(default_factory=dict[str, str])
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    ask: AskPermission = deny_unattended

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": "/usr/bin:/bin", **NO_ASIDES, **self.more_environ}

    @property
    def project(self) -> Path:
        folder = self.home / "project"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @asynccontextmanager
    async def lead(self, session: str | None = None) -> AsyncGenerator[Lead]:
        async with AsyncExitStack() as exits:
            workspace = Workspace.open(self._setup(()))
            workspace.listen(self.noted)
            exits.callback(workspace.close)
            team = AgentTeam(workspace, self.open_child, self.noted, self.tasks)
            agent_tool = AgentTool(team)
            tools = (*self.tools, agent_tool, SendMessageTool(team, LEAD_NAME))
            agent = await open_agent(replace(self._setup(tools), session=session))
            exits.push_async_callback(team.close)
            exits.push_async_callback(agent.close)
            await team.mail.ready()
            yield Lead(agent, team, agent_tool)

    async def open_child(self, child: SubagentOptions) -> Agent:
        self.children.append(child)
        usual = [tool for tool in self.tools if child.only is None or tool.spec.name in child.only]
        setup = self._setup((*usual, *child.also))
        return await open_agent(
            replace(
                setup,
                project=child.cwd,
                session=child.session,
                model=child.model,
                mode=child.mode,
                system=child.system,
                provider=child.provider,
                ask=child.ask,
                is_child=True,
            )
        )

    def _setup(self, tools: Sequence[Tool]) -> AgentOptions:
        return AgentOptions(
            project=self.project,
            model=MODEL,
            mode=self.mode,
            provider=self.provider,
            tools=tools,
            ask=self.ask,
            emit=self.noted,
            clock=self.clock,
            environ=self.environ,
        )


@dataclass(frozen=True, slots=True)
class Lead:
    agent: Agent
    team: AgentTeam
    tool: AgentTool

    async def ended(self, name: str) -> None:
        """Until an agent in the background has ended."""
        member = self.team.find(name)
        assert member is not None
        assert member.task is not None
        await asyncio.wait({member.task})


def said(messages: Sequence[Message]) -> str:
    """All that was said to a model, on lines."""
    lines: list[str] = []
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Text):
                lines.append(block.text)
            elif isinstance(block, ToolResult):
                lines.append(f"result: {block.content}")
    return "\n".join(lines)
