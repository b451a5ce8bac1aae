"""The tool that starts agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.subagents.agent_team import AgentTeam
from sevenfold.agent.subagents.definitions import render_definitions
from sevenfold.agent.subagents.messaging import AgentKind
from sevenfold.agent.subagents.subagent import SpawnRequest, Subagent
from sevenfold.agent.subagents.subagent_runner import AGENT_TOOL_NAME
from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.core.errors import InputError
from sevenfold.core.json import JsonObject
from sevenfold.core.json_fields import get_choice, get_flag, get_string, object_schema
from sevenfold.core.tool_context import ToolContext
from sevenfold.layers.compaction.restore_policy import Extra
from sevenfold.layers.forks.mail import check_agent_name
from sevenfold.store.files.offload import run_blocking

STARTABLE_KINDS: tuple[AgentKind, ...] = ("fresh", "fork", "teammate")

_TOLD = (
    "Have another agent do a task. kind `fresh` (the usual one) begins with nothing but your prompt: say all "
    "it needs to know. `fork` goes on from this conversation, knows everything said here and costs little; "
    "use it for side work that needs this context. `teammate` runs in a process of its own, works alongside "
    "you and talks with you by messages. Several calls in one answer run at the same time. With background "
    "you go on at once and are told of the end. With worktree it gets a checkout of its own, so that its "
    "changes meet nobody else's; it stays if something was changed. The answer of an agent is seen by you "
    "alone.\n\n"
    "Types of agents:\n"
)


@dataclass(frozen=True, slots=True)
class AgentSummary:
    """One agent, for a person who looks."""

    name: str
    state: str
    said: str


class AgentTool:
    """Starts agents of a team. The types are listed once: the description is part of the cached prefix."""

    def __init__(self, team: AgentTeam) -> None:
        self._team = team
        self._agent: Agent | None = None
        self._asked_at: timedelta | None = None
        self._listing = render_definitions(team.definitions)
        self.spec = ToolSpec(AGENT_TOOL_NAME, f"{_TOLD}{self._listing}", _SCHEMA, is_parallel=True)

    def join(self, agent: Agent) -> None:
        self._agent = agent
        self._team.join(agent)
        declared = next((tool for tool in agent.frame.tools if tool.get("name") == AGENT_TOOL_NAME), None)
        # A session that is taken up again has the list of back then.
        if declared is not None and not str(declared.get("description")).endswith(self._listing):
            self._tell_change()

    def need(self, given: JsonObject, place: ToolContext, /) -> AccessRequest:
        asked = _read(given)
        # A person may take their time to allow it, and the cache does not wait.
        self._asked_at = place.clock.uptime()
        who = asked.name or asked.type
        return AccessRequest(
            kind="spawn", said=f"{asked.kind} agent {who}: {get_string(given, 'description')}"
        )

    async def run(self, given: JsonObject, _place: ToolContext, on_progress: OnProgress, /) -> ToolOutput:
        await self._refresh()
        return ToolOutput(await self._team.start(self._order(given), on_progress))

    def extras(self) -> Sequence[Extra]:
        """Who runs, for after a compaction."""
        running = [row for row in self.running() if row.state == "running"]
        if not running:
            return ()
        lines = "\n".join(f"- {row.name}: {row.said}" for row in running)
        return (Extra("agents", "agents that you started and that still run", lines),)

    def listing(self) -> Sequence[str]:
        """The types there are, a line each."""
        return render_definitions(self._team.definitions).splitlines()

    def running(self) -> Sequence[AgentSummary]:
        """Every agent that was started, and what it is doing or how it ended."""
        return [AgentSummary(each.name, each.state, _said(each)) for each in self._team.members]

    async def stop(self, name: str) -> None:
        await self._team.stop(name)

    def _order(self, given: JsonObject) -> SpawnRequest:
        asked = _read(given)
        return SpawnRequest(
            prompt=asked.prompt,
            description=get_string(given, "description"),
            kind=asked.kind,
            definition=self._team.find_definition(asked.type),
            name=asked.name,
            is_background=get_flag(given, "background"),
            is_isolated=asked.is_isolated,
            is_detached=get_flag(given, "detached"),
            asked=self._asked_at,
        )

    async def _refresh(self) -> None:
        """Somebody may have written a new definition: it counts from now on, and the model is told."""
        self._team.definitions = await run_blocking(self._team.read_definitions)
        listing = render_definitions(self._team.definitions)
        if listing != self._listing:
            self._listing = listing
            self._tell_change()

    def _tell_change(self) -> None:
        if self._agent is not None:
            self._agent.remind(f"The types of agents have changed. There are now:\n{self._listing}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What can be checked of a call without looking at anything."""

    kind: AgentKind
    type: str
    name: str
    prompt: str
    is_isolated: bool


def _read(given: JsonObject) -> _Asked:
    kind = STARTABLE_KINDS[STARTABLE_KINDS.index(get_choice(given, "kind", STARTABLE_KINDS, "fresh"))]
    name, prompt = get_string(given, "name", ""), get_string(given, "prompt")
    is_isolated = get_flag(given, "worktree")
    if not prompt.strip():
        raise InputError("prompt is empty; say what the agent should do")
    if is_isolated and kind != "fresh":
        raise InputError(f"a worktree is for a fresh agent; a {kind} works where you do")
    return _Asked(
        kind=kind,
        type=get_string(given, "type", "general"),
        name=check_agent_name(name) if name else "",
        prompt=prompt,
        is_isolated=is_isolated,
    )


def _said(member: Subagent) -> str:
    return member.said or member.listed.description


_SCHEMA = object_schema(
    {
        "description": {"type": "string", "description": "the task in 3 to 6 words, for display"},
        "prompt": {"type": "string", "description": "what it should do, and what its answer should hold"},
        "kind": {"enum": list(STARTABLE_KINDS)},
        "type": {"type": "string", "description": "one of the types listed; general if left out"},
        "name": {"type": "string", "description": "what you call it, to send it messages"},
        "background": {"type": "boolean", "description": "go on at once; its end is told as a message"},
        "worktree": {"type": "boolean", "description": "a checkout of its own"},
        "detached": {"type": "boolean", "description": "a teammate that lives on when this session ends"},
    },
    ("description", "prompt"),
)
