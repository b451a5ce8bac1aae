"""Runs an agent to its end: fresh, as a fork, or as a teammate.

`ProgressReporter` says at intervals, in three to five words, what an agent is doing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.choose_provider import (
    OBSERVER_PROMPT,
    find_side_model,
    render_tail,
)
from sevenfold.agent.loop.turn import ToolStarted, TurnEvent
from sevenfold.agent.permissions.guard import (
    AskPermission,
    Guard,
    PermissionRequest,
    PermissionResponse,
    Reach,
    deny_unattended,
)
from sevenfold.agent.subagents.definitions import (
    AgentDefinition,
    AgentMemory,
    AgentMemoryPaths,
    AttributedProvider,
    OpenSubagent,
    SpawnRequest,
    Subagent,
    SubagentOptions,
    SubagentOutcome,
    choose_agent_mode,
    choose_agent_model,
    narrow_tools,
    read_agent_memory,
)
from sevenfold.agent.subagents.messaging import (
    PLAN_APPROVED,
    SEND_MESSAGE_NAME,
    MailSender,
    RosterEntry,
    StartedAgent,
    write_started_agent,
)
from sevenfold.agent.subagents.teammate_process import (
    TEAMMATE_KIND,
    PermissionQuery,
    TeammateConfig,
    TeammateProcess,
    UsageReport,
    decode_pipe_message,
    start_teammate,
)
from sevenfold.agent.subagents.worktree import WORKTREES_FOLDER, WorktreeOutcome, Worktrees
from sevenfold.agent.tool import OnProgress, Tool
from sevenfold.core.errors import SevenfoldError, WireError, WorktreeError
from sevenfold.core.events import DefinitionLimited, Emit, MailSkipped, ProgressSkipped, WriterFailed
from sevenfold.core.messages import Message, ToolResult, ToolUse
from sevenfold.core.models import Model
from sevenfold.core.prices import Catalog
from sevenfold.core.requests import ModelRequest, ModelResponse, RequestParams
from sevenfold.core.settings.sections import PermissionMode, TeamSettings
from sevenfold.core.system import run_blocking
from sevenfold.core.text.safe_text import fence_text
from sevenfold.core.usage import read_stored_usage, sum_usage
from sevenfold.layers.forks.policy import ForkBrief, ToolPermit
from sevenfold.layers.forks.runner import ForkBatch, is_prefix_warm
from sevenfold.session.opening import Workspace

# Progress: asks the agent itself on its warm prefix, or a cheap model that sees the last rounds, whichever
# costs less. Asks nothing while nothing has changed.

PROGRESS_KIND = "progress"
"""Whose call it is, for the bill."""

PROGRESS_OUTPUT_TOKENS = 64
"""Five words take ten; the rest is for models that clear their throat."""

_TAIL_MESSAGES = 6
"""Three rounds: what an agent is doing, not what it has done."""

MAX_PROGRESS_CHARS = 60

_ASK = (
    "Say in 3 to 5 words, in the present tense, what is being done right now; name the file or the function. "
    "Answer with these words alone, and call no tool. For example: Reading store/mailbox.py"
)


def parse_progress_line(answer: str) -> str:
    """The words themselves; empty where there are none to show."""
    first = next((line.strip() for line in answer.splitlines() if line.strip()), "")
    words = " ".join(first.strip("\"'`*. ").split())
    return words if len(words) <= MAX_PROGRESS_CHARS else f"{words[: MAX_PROGRESS_CHARS - 1]}…"


class ProgressReporter:
    """Says what agents are doing."""

    def __init__(self, catalog: Catalog, emit: Emit) -> None:
        self._catalog, self._emit = catalog, emit
        self._seen: dict[str, int] = {}
        """How much each agent had said when it was last asked."""

    async def watch(
        self, name: str, find: Callable[[], Agent | None], say: Callable[[str], None], every: timedelta
    ) -> None:
        """Say it again and again, until cancelled."""
        while True:
            await asyncio.sleep(every.total_seconds())
            agent = find()
            line = await self.ask(name, agent) if agent is not None else ""
            if line:
                say(line)

    async def ask(self, name: str, agent: Agent) -> str:
        """What it is doing; empty where nothing has changed since, or nothing can be said."""
        said = len(agent.session.history)
        if said == self._seen.get(name) or not said:
            return ""
        self._seen[name] = said
        parent, day = agent.session.parent, agent.place.clock.now().date()
        tail = render_tail(parent.messages, _TAIL_MESSAGES)
        cheap = find_side_model(parent, tail, self._catalog, day, output_tokens=PROGRESS_OUTPUT_TOKENS)
        try:
            if cheap is not None:
                return parse_progress_line(await _ask_cheap(agent, cheap, tail))
            brief = ForkBrief(kind=PROGRESS_KIND, directive=_ASK, max_tokens=PROGRESS_OUTPUT_TOKENS)
            return parse_progress_line((await agent.session.run_fork(brief)).text)
        except SevenfoldError as error:
            self._emit(ProgressSkipped(name, str(error)))
            return ""


async def _ask_cheap(agent: Agent, model: Model, tail: str) -> str:
    frame = RequestParams(model=model.name, max_tokens=PROGRESS_OUTPUT_TOKENS, system=OBSERVER_PROMPT)
    asked = Message("user", f"{fence_text('steps', tail)}\n\n{_ASK}")
    return (await agent.provider.send(ModelRequest(frame, (asked,), purpose=PROGRESS_KIND))).text


DRAIN_TIMEOUT = timedelta(seconds=5)
"""For what a process that has ended said last to be read."""

AGENT_TOOL_NAME = "agent"
LEAD_ONLY_TOOLS = frozenset({AGENT_TOOL_NAME, SEND_MESSAGE_NAME})
"""Tools that an agent's agents do not have from it: none starts others, and each signs with its own name."""

_FORK = (
    "You are a fork of the conversation above, which goes on without you. Do this one thing, then answer "
    "with the result; do not go on with anything else, start no agent and ask nobody.\n\n"
)


def find_caller(order: SpawnRequest) -> str:
    """Whose calls a fresh agent's are, in the bill of whoever starts it."""
    return "background agent" if order.is_background else AGENT_TOOL_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentRunner:
    """How the agents of one lead are run."""

    workspace: Workspace
    lead: Agent
    mail_sender: MailSender
    open_child: OpenSubagent
    fork_batches: dict[int, ForkBatch]
    """By how long the lead's history was when its forks were asked for."""
    only: frozenset[str] | None = None
    """The tools that the lead is limited to; None: it is not. Nobody that it starts has others."""

    @property
    def settings(self) -> TeamSettings:
        return self.workspace.settings.of(TeamSettings)

    async def run(
        self, member: Subagent, order: SpawnRequest, send_tool: Tool, on_progress: OnProgress
    ) -> SubagentOutcome:
        match member.entry.kind:
            case "fork":
                return await self._run_fork(member, order)
            case "teammate":
                return await self._run_teammate(member, order)
            case _:
                return await self._run_fresh(member, order, send_tool, on_progress)

    async def _write_down(self, member: Subagent, who: str) -> None:
        """Whose agent it is: its bill is part of the starter's, also when that is opened again."""
        folder, started = self.lead.place.session_folder, StartedAgent(member.entry.session, who)
        if folder is None:
            return
        try:
            await run_blocking(lambda: write_started_agent(folder, started))
        except SevenfoldError as error:
            self.lead.place.emit(WriterFailed("the list of agents", str(error)))

    async def _run_fresh(
        self, member: Subagent, order: SpawnRequest, send_tool: Tool, on_progress: OnProgress
    ) -> SubagentOutcome:
        tree: WorktreeOutcome | None = None
        listed = member.entry
        if order.is_isolated:
            _check_isolation(self.lead.mode)
        async with AsyncExitStack() as exits:
            if order.name:
                # Others may want to talk with it, now or later.
                claims = exits.enter_context(ExitStack())
                await run_blocking(lambda: self.mail_sender.roster.claim(member.entry, claims))
            if order.is_isolated:
                trees = self._worktrees()
                # What killed processes left behind goes now: nobody else looks for it.
                await trees.sweep()
                tree = await exits.enter_async_context(trees.make(member.name))
                member.entry = replace(member.entry, cwd=str(tree.tree.path))
            child = await self._open(member, order, send_tool)
            exits.push_async_callback(child.close)
            await self._write_down(member, find_caller(order))
            every = self.settings.progress_every
            if every is not None:
                exits.push_async_callback(_end, asyncio.create_task(self._tell(member, on_progress, every)))
            ending = await self._converse(member, child, order.prompt, on_progress)
        if tree is None or not tree.kept:
            member.entry = listed
            return ending
        if order.name:
            await run_blocking(lambda: self.mail_sender.roster.write(member.entry))
        where = f"{tree.tree.path}, on branch {tree.tree.branch}"
        return replace(ending, note=f"its worktree stays at {where}: {tree.kept}")

    async def _converse(
        self, member: Subagent, child: Agent, prompt: str, on_progress: OnProgress
    ) -> SubagentOutcome:
        def watch(seen: TurnEvent) -> None:
            if isinstance(seen, ToolStarted):
                member.last_call = seen.said
                on_progress(f"{member.name}: {seen.said}\n")

        member.agent = child
        try:
            for text in member.queued:
                child.post(text)
            member.queued.clear()
            end = await child.run_turn(prompt, watch)
            rounds = end.rounds
            # Nothing is awaited from here on, so whatever is said to it later finds it gone and takes it up.
            while child.inbox and end.reason == "answered":
                end = await child.run_turn(None, watch)
                rounds += end.rounds
        finally:
            member.agent, member.spent_usd = None, child.spent_usd
        text = end.text if end.error is None else f"{end.text}\n\n{end.error}".strip()
        used = sum_usage(spent.usage for spent in child.session.spent)
        return SubagentOutcome(outcome=end.reason, text=text, rounds=rounds, usage=used)

    async def _open(self, member: Subagent, order: SpawnRequest, send_tool: Tool) -> Agent:
        definition, listed = member.definition, member.entry
        memory = await self._memory(member)
        who = find_caller(order)
        lead, guard = self.lead, self.lead.toolbox.guard

        def add_usage(request: ModelRequest, reply: ModelResponse) -> None:
            lead.subagent_usage.add(who, request.frame.model, reply, lead.place.clock.now().date())

        child = await self.open_child(
            SubagentOptions(
                cwd=Path(listed.cwd),
                session=listed.session,
                model=listed.model,
                mode=self._mode(member),
                system=_system(definition.prompt, memory),
                only=None if definition.tools is None else frozenset(definition.tools) - LEAD_ONLY_TOOLS,
                also=(send_tool,),
                provider=AttributedProvider(lead.provider, who, add_usage),
                ask=self._ask(member),
                emit=lead.place.emit,
            )
        )
        child.toolbox.who = member.name
        if listed.cwd == str(lead.place.cwd):
            # Its edits are taken back with the lead's; those in a worktree of its own are nobody else's.
            child.toolbox.place = replace(child.place, before_change=lead.place.before_change)
        own = child.toolbox.guard
        if isinstance(own, Guard) and isinstance(guard, Guard):
            # What was allowed for the session is allowed to its agents.
            own.grants = guard.grants
            if memory is not None:
                own.reach = Reach((*own.reach.read, memory.folder), own.reach.edit)
        return child

    def _ask(self, member: Subagent) -> AskPermission:
        """Whoever the lead asks, told who wants to know: a background agent's question comes at any time."""
        guard = self.lead.toolbox.guard
        if not isinstance(guard, Guard):
            return deny_unattended

        async def ask(question: PermissionRequest) -> PermissionResponse:
            return await guard.ask(replace(question, reason=f"agent {member.name!r}: {question.reason}"))

        return ask

    def _mode(self, member: Subagent) -> PermissionMode:
        starter = self.lead.mode
        definition, is_free = member.definition, member.entry.plan == PLAN_APPROVED
        chosen = starter if is_free else choose_agent_mode(definition.mode, starter)
        if definition.origin == "project" and definition.mode not in (None, chosen) and not is_free:
            reason = f"it may do no more than whoever starts it, who is in {starter} mode"
            self.lead.place.emit(DefinitionLimited(definition.path, "mode", reason))
        return chosen

    async def _memory(self, member: Subagent) -> AgentMemory | None:
        scope, name = member.definition.memory, member.definition.name
        if scope is None:
            return None
        # What an agent reads may want to be remembered: writing there is asked for in each scope.
        workspace = self.workspace
        places = AgentMemoryPaths(workspace.home, workspace.root, Path(workspace.project.folder.path))
        return await run_blocking(lambda: read_agent_memory(places, scope, name))

    async def _run_fork(self, member: Subagent, order: SpawnRequest) -> SubagentOutcome:
        lead = self.lead
        parent = lead.session.parent
        wave = self.fork_batches.setdefault(len(parent.messages), ForkBatch())
        for old in [key for key in self.fork_batches if key < len(parent.messages)]:
            del self.fork_batches[old]
        guard = lead.toolbox.guard
        if isinstance(guard, Guard):
            guard = replace(guard, ask=self._ask(member))
        box = lead.toolbox.at(lead.place.clone(), guard, who=member.name)

        async def run_tool(use: ToolUse) -> ToolResult:
            return (await box.run((use,)))[0]

        named = (tool.spec.name for tool in lead.toolbox.tools)
        brief = ForkBrief(
            kind="fork",
            directive=f"{_FORK}{order.prompt}",
            allow=tuple(ToolPermit(name) for name in named if name not in LEAD_ONLY_TOOLS),
            max_rounds=self.settings.fork_rounds,
        )
        since = lead.place.clock.uptime() - order.asked if order.asked else timedelta()
        async with wave.join(warm=is_prefix_warm(parent, since)) as on_delta:
            done = await lead.session.run_fork(brief, run_tool=run_tool, on_delta=on_delta)
        outcome = "answered" if done.is_done else "out of rounds"
        return SubagentOutcome(outcome=outcome, text=done.text, rounds=len(done.replies), usage=done.usage)

    def _tools(self, definition: AgentDefinition) -> tuple[str, ...] | None:
        """The tools of an agent in a process of its own: no others than its lead's. None: all usual ones."""
        allowed = narrow_tools(None if definition.tools is None else frozenset(definition.tools), self.only)
        return None if allowed is None else tuple(sorted(allowed))

    async def _run_teammate(self, member: Subagent, order: SpawnRequest) -> SubagentOutcome:
        listed, definition = member.entry, member.definition
        memory = await self._memory(member)
        charge = TeammateConfig(
            name=listed.name,
            lead=self.mail_sender.name,
            cwd=listed.cwd,
            session=listed.session,
            model=listed.model,
            mode=self._mode(member),
            lead_mode=self.lead.mode,
            system=_system(definition.prompt, memory),
            prompt=order.prompt,
            definition=definition.name,
            description=listed.description,
            tools=self._tools(definition),
            memory=str(memory.folder) if memory else "",
            is_detached=order.is_detached,
        )
        process = await start_teammate(charge, self.lead.place.environ)
        attending = asyncio.create_task(self._attend(process, member))
        try:
            if not order.is_detached:  # one that is goes on by itself, and has an account of its own
                await self._write_down(member, TEAMMATE_KIND)
            wrong = await process.wait()
            await asyncio.wait({attending}, timeout=DRAIN_TIMEOUT.total_seconds())
        finally:
            await _end(attending)
            if not order.is_detached:
                await process.end()
        return SubagentOutcome(outcome="failed" if wrong else "answered", text=wrong)

    async def _attend(self, process: TeammateProcess, member: Subagent) -> None:
        """Answer the permission requests of a teammate and record what it pays, until it has ended."""
        asking: set[asyncio.Task[None]] = set()
        try:
            async for line in process.receive():
                try:
                    said = decode_pipe_message(line)
                    if isinstance(said, PermissionQuery):
                        asking.add(asyncio.create_task(self._answer(process, member, said)))
                    else:
                        self._add_usage(said)
                except WireError as error:
                    self.lead.place.emit(MailSkipped(member.name, str(error)))
        finally:
            for task in asking:
                await _end(task)

    async def _answer(self, process: TeammateProcess, member: Subagent, asked: PermissionQuery) -> None:
        guard = self.lead.toolbox.guard
        # Between the questions of the lead and of its agents here: a person is asked one thing at a time.
        async with guard.grants.asking if isinstance(guard, Guard) else nullcontext():
            process.answer(asked.id, await self._ask(member)(asked.question))

    def _add_usage(self, paid: UsageReport) -> None:
        today = self.lead.place.clock.now().date()
        self.lead.subagent_usage.add_usage(
            paid.who, paid.model, read_stored_usage(paid.wire, paid.dialect), today
        )

    async def _tell(self, member: Subagent, on_progress: OnProgress, every: timedelta) -> None:
        def say(line: str) -> None:
            member.activity = line
            on_progress(f"{member.name}: {line}\n")

        progress = ProgressReporter(self.workspace.catalog, self.lead.place.emit)
        await progress.watch(member.name, lambda: member.agent, say, every)

    def _worktrees(self) -> Worktrees:
        folder = Path(self.workspace.project.folder.path) / WORKTREES_FOLDER
        return Worktrees(
            self.workspace.root, folder, self.workspace.project.control, emit=self.lead.place.emit
        )

    def make_entry(self, name: str, session: str, order: SpawnRequest) -> RosterEntry:
        """How a new agent is written down."""
        model = choose_agent_model(order.definition.model, self.lead.frame.model, self.workspace.catalog)
        return RosterEntry(
            name=name,
            kind=order.kind,
            session=session,
            definition=order.definition.name,
            description=order.description,
            cwd=str(self.lead.place.cwd),
            model=model,
        )


def _check_isolation(mode: PermissionMode) -> None:
    """A worktree writes a branch and files, which a session that changes nothing may not."""
    if mode in ("plan", "read-only"):
        raise WorktreeError(
            f"no worktree is made in {mode} mode, because it adds a branch and a checkout; start the agent "
            "without worktree, or ask the user to change the mode with /mode"
        )


def _system(prompt: str, memory: AgentMemory | None) -> str:
    return f"{prompt}\n\n{memory.render()}" if memory else prompt


async def _end(running: asyncio.Task[None]) -> None:
    running.cancel()
    await asyncio.wait({running})
