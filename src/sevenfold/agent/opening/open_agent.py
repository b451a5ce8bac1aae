"""Opens an agent: project, session, model, tools, and the first messages.

`AgentCompactHooks` is what an agent adds to each compaction of its session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sevenfold.agent.hooks.config import NO_HOOK_RESULT, find_hooks
from sevenfold.agent.hooks.runner import HookContext, SessionHooks
from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.choose_provider import DEFAULT_MODEL, choose_provider, fit_request_params
from sevenfold.agent.loop.turn import AgentDeps, EventRelay, OpeningMessages
from sevenfold.agent.mcp.client import McpClient
from sevenfold.agent.opening.background_work import add_doc_writer, add_dream_writer, add_extraction_writer
from sevenfold.agent.opening.memory import (
    add_rule_counter,
    attribute_edited_memories,
    attribute_saved_memories,
    make_rule_guard,
    read_review_notice,
    start_team_sync,
)
from sevenfold.agent.opening.toolset import (
    AgentAwareTool,
    AgentToolset,
    ClearableTool,
    StatefulTool,
    ToolsetBuilder,
    WorkEnvironment,
    render_system_prompt,
)
from sevenfold.agent.opening.workspace import (
    StoredParams,
    StoredSession,
    find_stored_session,
    open_agent_workspace,
    write_stored_params,
)
from sevenfold.agent.permissions.guard import AskPermission, Guard, Reach, RuleSaver, deny_unattended
from sevenfold.agent.permissions.rules import parse_permission_rules
from sevenfold.agent.sandbox.folders import SandboxRunStore
from sevenfold.agent.subagents.definitions import SubagentOptions, narrow_tools
from sevenfold.agent.tool import Tool
from sevenfold.agent.tools.checkpoints import CheckpointStore
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.core.errors import CompactionStopped, StoreError
from sevenfold.core.events import Emit, WriterFailed, ignore_event
from sevenfold.core.requests import RequestParams
from sevenfold.core.settings import MemorySettings
from sevenfold.core.settings.sections import (
    AgentSettings,
    HookSettings,
    PermissionMode,
    PermissionSettings,
    SandboxSettings,
)
from sevenfold.core.system import run_blocking
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.layers.compaction.hooks import CompactHooks
from sevenfold.layers.compaction.job import Compacted
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.compaction.policy import CompactionTrigger
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.layers.living_docs.policy import DocSettings
from sevenfold.providers.provider import Provider
from sevenfold.providers.reply_limits import DEFAULT_RETRIES, PATIENT_RETRIES
from sevenfold.session import Session
from sevenfold.session.governor import GovernedProvider
from sevenfold.session.opening import Workspace, WorkspaceOptions
from sevenfold.session.pipeline import SessionResources
from sevenfold.store.project.trust import Confirm, decline_confirmation
from sevenfold.store.transcript.transcript import SessionId

# Runs hooks around a compaction, and restates what tools, hooks and the environment have to say.


class AgentCompactHooks:
    """Handed to a session before the agent is there; says nothing until it is."""

    def __init__(self) -> None:
        self._toolbox: ToolExecutor | None = None
        self._hooks: SessionHooks | None = None
        self._where: Callable[[], str] = str

    def attach(self, toolbox: ToolExecutor, hooks: SessionHooks, where: Callable[[], str]) -> None:
        """From now on there is something to say; `where` tells where the agent works."""
        self._toolbox, self._hooks, self._where = toolbox, hooks, where

    def make_hooks(self) -> CompactHooks:
        return CompactHooks(self._before, self._restoring, self._after)

    async def _before(self, trigger: CompactionTrigger) -> str:
        if self._hooks is None or trigger == "manual":
            return ""  # whoever compacts by hand has asked the hooks already, and could be refused
        result = await self._hooks.ask("PreCompact", "auto", trigger="auto", custom_instructions=None)
        if result.blocked is not None:
            raise CompactionStopped(f"a PreCompact hook says: {result.blocked}")
        return "\n".join(result.context)

    async def _restoring(self) -> Sequence[Extra]:
        if self._toolbox is None or self._hooks is None:
            return ()
        result = await self._hooks.ask("SessionStart", "compact", source="compact")
        said = (Extra("hook", "SessionStart", text) for text in result.context)
        return (*self._toolbox.extras(), *said, Extra("session", "where you are", self._where()))

    async def _after(self, done: Compacted) -> None:
        if self._hooks is not None:
            trigger = "manual" if done.trigger == "manual" else "auto"
            await self._hooks.ask("PostCompact", trigger, trigger=trigger, compact_summary=done.summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions(WorkspaceOptions):
    """What an agent is opened with. All but the project has a default that works without a person."""

    project: Path
    model: str = ""
    """Empty: as the session had it, else as settings say."""
    mode: PermissionMode | None = None
    """None: as settings say."""
    session: str | None = None
    """The one to take up again, or `latest`; None: a new one."""
    start: Literal["startup", "clear"] = "startup"
    """Of a new session, for hooks: whether it follows one that the person has put aside."""
    is_fork: bool = False
    """Branch off that session, which stays as it is."""
    ask: AskPermission = deny_unattended
    """Whom to ask before a tool runs."""
    confirm: Confirm = decline_confirmation
    """Whom to ask before something of a repository's own is run at all."""
    provider: Provider | None = None
    """None: as settings and the environment say."""
    tools: Sequence[Tool] | None = None
    """None: the usual ones."""
    only: frozenset[str] | None = None
    """Names of the usual tools that are wanted; None: all."""
    also: Sequence[Tool] = ()
    """Tools beside the usual ones."""
    is_child: bool = False
    """Started by another agent: it starts none itself."""
    mcp: McpClient | None = None
    """Connections to MCP servers that somebody else has opened, and closes; None: its own."""
    system: str | None = None
    """A system prompt of the caller's own, for a new session."""
    max_rounds: int | None = None
    is_attended: bool = False
    """A person sees the retries of a request and can interrupt them: there may be more of them."""
    emit: Emit = ignore_event


async def open_agent(options: AgentOptions, workspace: Workspace | None = None) -> Agent:
    """An agent that is ready for its first turn; close it when done.

    It opens the workspace that its options ask for, unless it is given one, which stays open after it.
    """
    relay = EventRelay(options.emit)
    async with AsyncExitStack() as exits:
        if workspace is None:
            workspace = await open_agent_workspace(options, options.confirm)
            exits.callback(workspace.close)
        if not workspace.has_listener:
            workspace.listen(relay, replay=relay.forward)
        stored = await run_blocking(lambda: _prepare_project(options, workspace, relay))
        guidance = "" if options.is_child else await start_team_sync(workspace, relay, exits)
        resources = exits.enter_context(ExitStack())
        return await _Opener(
            options=options,
            workspace=workspace,
            stored=stored,
            relay=relay,
            exits=exits,
            resources=resources,
            team_guidance=guidance,
        ).open()


def _prepare_project(options: AgentOptions, workspace: Workspace, emit: Emit) -> StoredSession | None:
    """Open the project, and find the session to resume; None for a new one. Blocks on the disk."""
    SandboxRunStore(workspace.project.control).sweep(emit)
    if options.session is None:
        return None
    sessions = workspace.project.sessions
    return find_stored_session(sessions, options.session, workspace.clock, emit, is_fork=options.is_fork)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opener:
    """An agent on its way. What was opened is closed again, unless it gets to its end."""

    options: AgentOptions
    workspace: Workspace
    stored: StoredSession | None
    """The session that it goes on with; None: a new one."""
    relay: EventRelay
    exits: AsyncExitStack
    resources: ExitStack
    """Of background work; closed with the agent."""
    team_guidance: str
    """Where what belongs, if some of the memory is a team's."""

    async def open(self) -> Agent:
        workspace, compaction = self.workspace, AgentCompactHooks()
        provider, guard = self._provider(), self._guard()
        equipment = await self._equip(guard) if self.options.tools is None else None
        tools = self._tools(equipment)
        frame = self._frame(provider, tools)
        session = await self._session(frame, provider, compaction, tools)
        folder = workspace.session_folder(session.id)
        guard.reach = Reach(read=(folder,), edit=(Path(workspace.project.memory.path),))
        hooks = await self._hooks(session, guard)
        place = self._place(folder)
        toolbox = ToolExecutor(tools, place, guard, hooks, make_rule_guard(workspace, session, place))
        await run_blocking(
            lambda: [tool.begin(toolbox.place) for tool in tools if isinstance(tool, StatefulTool)]
        )
        compaction.attach(toolbox, hooks, self._surrounds)
        opening = await self._opening(hooks, frame)
        deps = AgentDeps(
            session=session,
            toolbox=toolbox,
            provider=self._governed(provider, session),
            frame=frame,
            relay=self.relay,
            hooks=hooks,
            exits=self.exits.pop_all(),
            keep=self._keeping(session.id),
            # The description of the work environment is stored with the request parameters.
            kept=None if opening.texts or self._params is None else self._params.frame,
            catalog=workspace.catalog,
            thinks=workspace.settings.of(AgentSettings).thinking,
            max_rounds=self.options.max_rounds or workspace.settings.of(AgentSettings).max_rounds,
            sources=equipment.sources if equipment else (),
            is_child=self.options.is_child,
        )
        agent = Agent(deps, opening)
        self._join(agent, equipment)
        return agent

    def _provider(self) -> Provider:
        if self.options.provider is not None:
            return self.options.provider
        model = self.workspace.catalog.find(self._model_name)
        settings = self.workspace.settings.of(AgentSettings)
        limits = PATIENT_RETRIES if self.options.is_attended else DEFAULT_RETRIES
        provider = choose_provider(model, settings, self.workspace.environ, self.relay, limits=limits)
        self.exits.push_async_callback(provider.close)
        return provider

    async def _session(
        self,
        frame: RequestParams,
        provider: Provider,
        compaction: AgentCompactHooks,
        tools: Sequence[Tool],
    ) -> Session:
        named, emit = self.stored.id if self.stored else None, self.relay.forward
        declared = {tool.spec.name: tool.is_clearable for tool in tools if isinstance(tool, ClearableTool)}
        opened = await run_blocking(
            lambda: SessionResources.open(self.workspace, named, emit=emit, clearable=declared)
        )
        session = await Session.start(
            frame,
            opened,
            provider,
            compaction.make_hooks(),
            governs=not self.options.is_child,
            is_agent=True,
            memory=self.workspace.memory,
        )
        self.exits.push_async_callback(session.close)
        self.relay.log_to(session.keep_event)
        await session.add_context()
        return session

    def _place(self, folder: Path) -> ToolContext:
        workspace = self.workspace
        return ToolContext(
            root=workspace.root,
            cwd=workspace.cwd,
            session_folder=folder,
            emit=self.relay,
            clock=workspace.clock,
            environ=workspace.environ,
        )

    def _governed(self, provider: Provider, session: Session) -> Provider:
        """What is asked beside the conversation has a cap; the conversation itself has none."""
        if self.options.is_child:
            return provider  # its starter's, which has a cap already
        return GovernedProvider(provider, session.governor) if session.governor else provider

    def _join(self, agent: Agent, equipment: AgentToolset | None) -> None:
        """Tell everybody who works with the agent that it is there."""
        for joining in (*agent.toolbox.tools, equipment):
            if isinstance(joining, AgentAwareTool):
                joining.join(agent)
        add_rule_counter(agent, self.workspace)
        is_child = self.options.is_child
        attribute_saved_memories(agent, is_child=is_child)
        attribute_edited_memories(agent, self.workspace.memory, is_child=is_child)
        if not is_child:
            self._keep_checkpoints(agent)
            settings = self.workspace.settings.of(DocSettings)
            add_doc_writer(agent, settings, self.workspace.templates, self.workspace.catalog)
            agent.dream = add_dream_writer(agent, self.workspace, self.resources).dream
            if not self.workspace.settings.of(DreamSettings).daily_logs:
                add_extraction_writer(agent, self.workspace, self.resources)

    def _keep_checkpoints(self, agent: Agent) -> None:
        """Have what files held before each edit kept with the session."""
        session, place = agent.session, agent.place
        if place.session_folder is None:
            return
        agent.checkpoints = CheckpointStore(
            session=place.session_folder,
            last_message=lambda: session.entries[-1].id if session.entries else None,
            emit=place.emit,
        )
        agent.toolbox.place = replace(place, before_change=agent.checkpoints.note)

    async def _equip(self, guard: Guard) -> AgentToolset:
        options = self.options
        open_child = None if options.is_child else self._open_child
        making = ToolsetBuilder(
            workspace=self.workspace,
            stored_tools=self._params.frame.tools if self._params else None,
            guard=guard,
            confirm=options.confirm,
            emit=self.relay,
            exits=self.exits,
            open_child=open_child,
            only=options.only,
            mcp=options.mcp,
        )
        return await making.build()

    async def _open_child(self, child: SubagentOptions, mcp: McpClient | None) -> Agent:
        """An agent that this one starts: with a session and tools of its own, asking whom it is told."""
        # In a worktree of its own, settings are that one's.
        workspace = self.workspace if child.cwd == self.workspace.cwd else None
        return await open_agent(
            replace(
                self.options,
                project=child.cwd,
                session=child.session,
                is_fork=False,
                is_child=True,
                model=child.model,
                mode=child.mode,
                system=child.system,
                tools=None,
                only=narrow_tools(child.only, self.options.only),
                also=child.also,
                provider=child.provider,
                ask=child.ask,
                confirm=decline_confirmation,  # whoever started it has asked
                emit=child.emit,
                mcp=mcp,
            ),
            workspace,
        )

    def _tools(self, equipment: AgentToolset | None) -> tuple[Tool, ...]:
        options = self.options
        usual = equipment.tools if equipment else options.tools or ()
        wanted = (tool for tool in usual if options.only is None or tool.spec.name in options.only)
        return (*wanted, *options.also)

    def _frame(self, provider: Provider, tools: Sequence[Tool]) -> RequestParams:
        """The session's stored request parameters, byte for byte; else new ones, which then stay the same."""
        stored = self._params
        if stored is None:
            system = self.options.system or render_system_prompt(self.workspace.templates)
            made = RequestParams(
                model=self._model_name,
                max_tokens=0,
                system=system,
                tools=tuple(tool.spec.declared() for tool in tools),
            )
            return self._fit(made, provider)
        if self.options.model in ("", stored.frame.model):
            return stored.frame
        return self._fit(replace(stored.frame, model=self.options.model), provider)

    @property
    def _params(self) -> StoredParams | None:
        return self.stored.params if self.stored else None

    @property
    def _model_name(self) -> str:
        """As the caller says, else as the session had it, else as settings say."""
        stored, settings = self._params, self.workspace.settings.of(AgentSettings)
        return self.options.model or (stored.frame.model if stored else settings.model or DEFAULT_MODEL)

    def _fit(self, frame: RequestParams, provider: Provider) -> RequestParams:
        thinks = self.workspace.settings.of(AgentSettings).thinking
        return fit_request_params(frame, self.workspace.catalog.find(frame.model), provider, thinks=thinks)

    def _keeping(self, session: SessionId) -> Callable[[RequestParams], Awaitable[bool]]:
        async def keep(frame: RequestParams) -> bool:
            stored = StoredParams(frame, self._surrounds())
            try:
                await run_blocking(lambda: self._write_params(session, stored))
            except StoreError as error:
                self.relay(WriterFailed("frame", str(error)))
                return False
            return True

        return keep

    def _write_params(self, session: SessionId, stored: StoredParams) -> None:
        with self.workspace.project.sessions.subfolder(session) as folder:
            write_stored_params(folder, stored)

    async def _hooks(self, session: Session, guard: Guard) -> SessionHooks:
        options, workspace = self.options, self.workspace
        found = await find_hooks(
            workspace.settings.of(HookSettings),
            workspace.paths,
            workspace.trust,
            confirm=options.confirm,
            emit=self.relay,
        )
        place = HookContext(
            session=session.id,
            root=workspace.root,
            cwd=workspace.cwd,
            transcript=f"{workspace.session_folder(session.id)}.jsonl",
            mode=lambda: guard.mode,
            environ=workspace.environ,
            folder=workspace.session_folder(session.id),
        )
        return SessionHooks(found, place, self.relay)

    def _guard(self) -> Guard:
        workspace = self.workspace
        permissions = workspace.settings.of(PermissionSettings)
        return Guard(
            mode=self.options.mode or permissions.start_mode,
            rules=parse_permission_rules(permissions.allow, permissions.ask, permissions.deny),
            root=workspace.root,
            ask=self.options.ask,
            home=workspace.home,
            user_home=workspace.user_home,
            save_rule=RuleSaver(workspace.root, self.relay, workspace.trust).save,
            may_run_sandboxed=workspace.settings.of(SandboxSettings).allow_workspace,
        )

    async def _opening(self, hooks: SessionHooks, frame: RequestParams) -> OpeningMessages:
        """What is said beside the first prompt: where the agent works, if that was not said yet, and what
        session-start hooks say."""
        stored, surrounds = self._params, self._surrounds()
        resumed = "fork" if self.options.is_fork else "resume"
        source = self.options.start if self.stored is None else resumed
        result, waiting = NO_HOOK_RESULT, tuple[str, ...]()
        if not self.options.is_child:
            result = await hooks.ask("SessionStart", source, source=source, model=frame.model)
            if self.workspace.settings.of(MemorySettings).enabled:
                waiting = await run_blocking(lambda: read_review_notice(self.workspace.memory))
        is_said = stored is not None and _undated(stored.surrounds) == _undated(surrounds)
        texts = [] if is_said else [surrounds]
        texts += (f"SessionStart hook additional context: {text}" for text in result.context)
        return OpeningMessages(tuple(texts), (*result.notices, *waiting), result.initial_messages)

    def _surrounds(self) -> str:
        today = self.workspace.clock.now().astimezone().date()
        where = WorkEnvironment.read(self.workspace.cwd, self.workspace.root, today).render()
        return f"{self.team_guidance}\n{where}" if self.team_guidance else where


def _undated(surrounds: str) -> str:
    """Without the day: when that changes, the session says so itself."""
    return surrounds.rpartition("\n")[0]
