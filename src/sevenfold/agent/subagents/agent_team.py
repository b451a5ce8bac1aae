"""The agents that one agent has started, and the tool with which the model starts them.

Closing the team ends them all, except detached teammates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from uuid import uuid4

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.sandbox.job import BackgroundTasks
from sevenfold.agent.subagents.definition_files import list_definition_folders, read_definitions
from sevenfold.agent.subagents.definitions import (
    AgentDefinition,
    OpenSubagent,
    SpawnRequest,
    Subagent,
    SubagentOutcome,
    render_definitions,
    render_subagent_end,
)
from sevenfold.agent.subagents.mailbox import TeamMail
from sevenfold.agent.subagents.messaging import AgentKind, MailSender, RosterEntry, SendMessageTool
from sevenfold.agent.subagents.subagent_runner import AGENT_TOOL_NAME, SubagentRunner
from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.core.errors import AddressUnknown, AgentRefused, InputError, SevenfoldError
from sevenfold.core.events import AgentStarted, Emit, Event, ignore_event
from sevenfold.core.json import JsonObject, get_choice, get_flag, get_string, object_schema
from sevenfold.core.prices import sum_costs
from sevenfold.core.settings.sections import TeamSettings
from sevenfold.core.system import await_shielded, run_blocking
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.forks.policy import LEAD_NAME, Address, MailMessage, check_agent_name
from sevenfold.session.cache.monitor import UsageLedger
from sevenfold.session.opening import Workspace
from sevenfold.store.transcript.transcript import new_agent_session

MAIN_NAME_PREFIX = "main-"
"""How the name of a session begins that no agent started."""

MAX_SUBAGENTS = 100
"""Agents that run or wait for a free slot. A model that asks for more is in a loop."""


class AgentTeam:
    """One agent's agents. `join` before the first turn, `close` with the last."""

    def __init__(
        self,
        workspace: Workspace,
        open_child: OpenSubagent,
        emit: Emit = ignore_event,
        tasks: BackgroundTasks | None = None,
        *,
        only: frozenset[str] | None = None,
    ) -> None:
        self._workspace, self._open_child, self._emit = workspace, open_child, emit
        self._only = only
        self._tasks = tasks or BackgroundTasks()
        self._room = asyncio.Semaphore(workspace.settings.of(TeamSettings).at_once)
        self._members: dict[str, Subagent] = {}
        self._runs: SubagentRunner | None = None
        self._mail: TeamMail | None = None
        self._reported: set[Event] = set()
        self.definitions = self.read_definitions()

    def read_definitions(self) -> tuple[AgentDefinition, ...]:
        """Those there are now. Blocks on the disk."""
        listed = list_definition_folders(self._workspace.home, self._workspace.root)
        return read_definitions(listed, self._emit_once, self._workspace.trust)

    def _emit_once(self, event: Event) -> None:
        """Definitions are read again before each start; what was reported of them is not reported again."""
        if event not in self._reported:
            self._reported.add(event)
            self._emit(event)

    def join(self, agent: Agent) -> None:
        """The agent whose team this is. From now on others can write to it."""
        if self._runs is not None:
            return
        agent.subagent_usage = UsageLedger(self._workspace.catalog)
        place, project = agent.place, self._workspace.project
        name = f"{MAIN_NAME_PREFIX}{agent.session.id[:8]}"
        office = MailSender(name, project.mail, project.control, place.clock, emit=place.emit)
        self._runs = SubagentRunner(
            workspace=self._workspace,
            lead=agent,
            mail_sender=office,
            open_child=self._open_child,
            fork_batches={},
            only=self._only,
        )
        self._mail = TeamMail(self, office, agent)
        self._mail.listen(self._workspace)

    @property
    def mail(self) -> TeamMail:
        if self._mail is None:
            raise InputError("the team has no agent yet; call join first")
        return self._mail

    async def send(self, sender: str, to: Address, letter: MailMessage, summary: str) -> str:
        """Bring a message to whoever is meant; what became of it. `lead` signs for the agent itself."""
        mail = self.mail
        return await mail.send(mail.name if sender == LEAD_NAME else sender, to, letter, summary)

    @property
    def members(self) -> tuple[Subagent, ...]:
        return tuple(self._members.values())

    def find(self, name: str) -> Subagent | None:
        return self._members.get(name)

    def find_definition(self, name: str) -> AgentDefinition:
        """The agent of that name; `InputError` lists who there is."""
        found = next((item for item in self.definitions if item.name == name), None)
        if found is None:
            known = ", ".join(item.name for item in self.definitions)
            raise InputError(f"there is no agent type {name!r}; there are: {known}")
        return found

    async def start(self, order: SpawnRequest, on_progress: OnProgress) -> str:
        """Start an agent: its answer, or how its end will be reported."""
        listed = self._joined.make_entry(self._new_name(order), new_agent_session(), order)
        member = Subagent(entry=listed, definition=order.definition)
        self._members[member.name] = member
        if order.kind == "teammate":
            self._go_on(member, order)
            return f"the teammate {member.name!r} works in a process of its own and writes to you"
        if order.is_background:
            self._go_on(member, order)
            return f"the agent {member.name!r} works in the background; you are told when it has ended"
        task = member.task = asyncio.create_task(self._run(member, order, on_progress))
        try:
            await asyncio.wait({task})
        finally:
            # Whoever waits for it and is cancelled takes it along.
            await _end({task})
        ending = member.ending or SubagentOutcome(outcome="cancelled", text="")
        return ending.render()

    def resume(self, listed: RosterEntry, prompt: str) -> str:
        """Go on with an agent that has ended, from its transcript, in the background."""
        if listed.kind == "fork":
            raise AddressUnknown(f"{listed.name} was a fork and has ended; start another one")
        definition = self.find_definition(listed.definition or self.definitions[0].name)
        member = Subagent(entry=listed, definition=definition)
        self._members[listed.name] = member
        order = SpawnRequest(
            prompt=prompt,
            description=listed.description,
            kind=listed.kind,
            definition=definition,
            name=listed.name,
            is_background=True,
        )
        self._go_on(member, order)
        return f"{listed.name} had ended and goes on from where it was"

    async def stop(self, name: str) -> None:
        """End an agent now. A message takes it up again."""
        member = self._members.get(name)
        if member is None:
            known = ", ".join(self._members) or "none"
            raise AddressUnknown(f"there is no agent called {name!r}; there are: {known}")
        if member.task is not None:
            await _end({member.task})

    async def close(self) -> None:
        """End everybody, and let go of the name."""
        await _end({member.task for member in self.members if member.task is not None})
        if self._mail is not None:
            await self._mail.close()

    @property
    def _joined(self) -> SubagentRunner:
        if self._runs is None:
            raise InputError("the team has no agent yet; call join first")
        return self._runs

    def _new_name(self, order: SpawnRequest) -> str:
        running = [member for member in self.members if member.is_running]
        if len(running) >= MAX_SUBAGENTS:
            raise AgentRefused(f"{len(running)} agents run or wait already; wait until some have ended")
        name = order.name or f"{order.definition.name}-{uuid4().hex[:6]}"
        if (
            name == LEAD_NAME
            or name.startswith(MAIN_NAME_PREFIX)
            or any(member.name == name for member in running)
        ):
            raise InputError(f"the name {name!r} is taken; use another one")
        return check_agent_name(name)

    def _go_on(self, member: Subagent, order: SpawnRequest) -> None:
        """Run it in the background; its end is reported."""
        member.task = asyncio.create_task(self._run_alone(member, order))

    async def _run_alone(self, member: Subagent, order: SpawnRequest) -> SubagentOutcome:
        ending = await self._run(member, order, _silent)
        if order.kind != "teammate" or ending.outcome != "answered":
            self._joined.lead.post(render_subagent_end(member, ending))
        return ending

    async def _run(self, member: Subagent, order: SpawnRequest, on_progress: OnProgress) -> SubagentOutcome:
        runs = self._joined
        emit = runs.lead.place.emit
        emit(AgentStarted(member.name, member.entry.kind, order.is_background))
        ending = SubagentOutcome(outcome="cancelled", text="")
        try:
            async with self._room:
                # It reads settings, hooks and servers anew.
                self._tasks.take_back()
                send_tool = SendMessageTool(self, member.name)
                ending = await runs.run(member, order, send_tool, on_progress)
        except SevenfoldError as error:
            ending = SubagentOutcome(outcome="failed", text=str(error))
        except Exception as error:  # nobody else would hear of what went wrong in the background
            ending = SubagentOutcome(outcome="failed", text=f"{type(error).__name__}: {error}")
        finally:
            member.ending, member.ended = ending, monotonic()
            emit(ending.event(member.entry))
        if member.queued:
            # Said to it between its last round and its end.
            self.resume(member.entry, "\n\n".join(member.queued))
        return ending


async def _end(tasks: set[asyncio.Task[SubagentOutcome]]) -> None:
    """Cancel them and wait, whoever loses patience meanwhile: each has something to tidy up."""
    for task in tasks:
        task.cancel()
    if tasks:
        await await_shielded(_wait(tasks))


async def _wait(tasks: set[asyncio.Task[SubagentOutcome]]) -> None:
    await asyncio.wait(tasks)


def _silent(_text: str) -> None:
    """For an agent that nobody watches."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSummary:
    """One agent, for a person who looks."""

    name: str
    state: str
    activity: str
    task: str
    """What it was started for."""
    last_call: str
    """The tool call that it made last; empty: none yet."""
    elapsed: timedelta
    """From its start to its end, or until now."""
    tokens: int
    """That it used so far; 0: not known."""
    spent_usd: float | None
    """None: not known."""


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
        lines = "\n".join(f"- {row.name}: {row.activity}" for row in running)
        return (Extra("agents", "agents that you started and that still run", lines),)

    def listing(self) -> Sequence[str]:
        """The types there are, a line each."""
        return render_definitions(self._team.definitions).splitlines()

    def running(self) -> Sequence[AgentSummary]:
        """Every agent that was started, and what it is doing or how it ended."""
        return [_summarize(each) for each in self._team.members]

    def find_member(self, name: str) -> Subagent | None:
        return self._team.find(name)

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


def _summarize(member: Subagent) -> AgentSummary:
    spent = member.agent.spent if member.agent else ()
    usages = [one.usage for one in spent] or ([member.ending.usage] if member.ending else [])
    cost = sum_costs(one.cost for one in spent) if spent else None
    until = monotonic() if member.ended is None else member.ended
    return AgentSummary(
        name=member.name,
        state=member.state,
        activity=_said(member),
        task=member.entry.description,
        last_call=member.last_call,
        elapsed=timedelta(seconds=until - member.started),
        tokens=sum(used.read + used.written + used.fresh + used.output for used in usages),
        spent_usd=member.spent_usd if cost is None else float(cost.total),
    )


def _said(member: Subagent) -> str:
    return member.activity or member.entry.description


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
