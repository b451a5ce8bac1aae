"""The agents that one agent has started. Closing the team ends them all, except detached teammates."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.project_context import ProjectContext
from sevenfold.agent.sandbox.job import BackgroundTasks
from sevenfold.agent.subagents.definitions import AgentDefinition, list_definition_folders, read_definitions
from sevenfold.agent.subagents.messaging import MailSender, RosterEntry, SendMessageTool
from sevenfold.agent.subagents.subagent import (
    OpenSubagent,
    SpawnRequest,
    Subagent,
    SubagentOutcome,
    render_subagent_end,
)
from sevenfold.agent.subagents.subagent_runner import ProgressReporter, SubagentRunner
from sevenfold.agent.subagents.team_mail import TeamMail
from sevenfold.agent.tool import OnProgress
from sevenfold.core.errors import AddressUnknown, AgentRefused, InputError, SevenfoldError
from sevenfold.core.events import AgentStarted, Emit, ignore_event
from sevenfold.core.settings.sections import TeamSettings
from sevenfold.layers.forks.mail import LEAD_NAME, Address, MailMessage, check_agent_name
from sevenfold.session.cache.monitor import UsageLedger
from sevenfold.store.files.offload import await_shielded
from sevenfold.store.transcript.sessions import new_agent_session

MAIN_NAME_PREFIX = "main-"
"""How the name of a session begins that no agent started."""

MAX_SUBAGENTS = 100
"""Agents that run or wait for a free slot. A model that asks for more is in a loop."""


class AgentTeam:
    """One agent's agents. `join` before the first turn, `close` with the last."""

    def __init__(
        self,
        ground: ProjectContext,
        open_child: OpenSubagent,
        emit: Emit = ignore_event,
        tasks: BackgroundTasks | None = None,
    ) -> None:
        self._ground, self._open_child, self._emit = ground, open_child, emit
        self._tasks = tasks or BackgroundTasks()
        self._room = asyncio.Semaphore(ground.settings.of(TeamSettings).at_once)
        self._members: dict[str, Subagent] = {}
        self._runs: SubagentRunner | None = None
        self._mail: TeamMail | None = None
        self.definitions = self.read_definitions()

    def read_definitions(self) -> tuple[AgentDefinition, ...]:
        """Those there are now. Blocks on the disk."""
        folders = self._ground.folders
        return read_definitions(list_definition_folders(folders.home, folders.root), self._emit)

    def join(self, agent: Agent) -> None:
        """The agent whose team this is. From now on others can write to it."""
        if self._runs is not None:
            return
        agent.crew = UsageLedger(self._ground.catalog)
        place, project = agent.place, self._ground.project
        name = f"{MAIN_NAME_PREFIX}{agent.session.id[:8]}"
        office = MailSender(name, project.mail, project.control, place.clock, emit=place.emit)
        progress = ProgressReporter(self._ground.catalog, place.emit)
        self._runs = SubagentRunner(
            ground=self._ground,
            lead=agent,
            office=office,
            open_child=self._open_child,
            progress=progress,
            waves={},
        )
        self._mail = TeamMail(self, office, agent)
        self._mail.listen(self._ground)

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
        listed = self._joined.list_new(self._new_name(order), new_agent_session(), order)
        member = Subagent(listed=listed, definition=order.definition)
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

    def take_up(self, listed: RosterEntry, prompt: str) -> str:
        """Go on with an agent that has ended, from its transcript, in the background."""
        if listed.kind == "fork":
            raise AddressUnknown(f"{listed.name} was a fork and has ended; start another one")
        definition = self.find_definition(listed.definition or self.definitions[0].name)
        member = Subagent(listed=listed, definition=definition)
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
        emit(AgentStarted(member.name, member.listed.kind, order.is_background))
        ending = SubagentOutcome(outcome="cancelled", text="")
        try:
            async with self._room:
                # It reads settings, hooks and servers anew.
                self._tasks.take_back()
                pen = SendMessageTool(self, member.name)
                ending = await runs.run(member, order, pen, on_progress)
        except SevenfoldError as error:
            ending = SubagentOutcome(outcome="failed", text=str(error))
        except Exception as error:  # nobody else would hear of what went wrong in the background
            ending = SubagentOutcome(outcome="failed", text=f"{type(error).__name__}: {error}")
        finally:
            member.ending = ending
            emit(ending.event(member.listed))
        if member.waiting:
            # Said to it between its last round and its end.
            self.take_up(member.listed, "\n\n".join(member.waiting))
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
