"""Opens an agent: project, session, model, tools, and the first messages.

`AgentCompactHooks` is what an agent adds to each compaction of its session.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from sevenfold.agent.consent import Confirm, decline_confirmation
from sevenfold.agent.hooks.config import NO_HOOK_RESULT, find_hooks
from sevenfold.agent.hooks.runner import HookContext, SessionHooks
from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.choose_provider import DEFAULT_MODEL, choose_provider, fit_request_params
from sevenfold.agent.loop.project_context import (
    LocalSettingsFile,
    ProjectContext,
    SessionSelector,
    StoredParams,
)
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
    StatefulTool,
    ToolsetBuilder,
    WorkEnvironment,
    render_system_prompt,
)
from sevenfold.agent.permissions.guard import AskPermission, Guard, Reach, RuleSaver, deny_unattended
from sevenfold.agent.permissions.rules import parse_permission_rules
from sevenfold.agent.sandbox.folders import SandboxRunStore
from sevenfold.agent.subagents.definitions import SubagentOptions
from sevenfold.agent.tool import Tool
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import CompactionStopped, StoreError
from sevenfold.core.events import Emit, WriterFailed, ignore_event
from sevenfold.core.requests import RequestParams
from sevenfold.core.settings.sections import (
    AgentSettings,
    HookSettings,
    MemorySettings,
    PermissionMode,
    PermissionSettings,
    SandboxSettings,
)
from sevenfold.core.tool_context import ToolContext
from sevenfold.layers.compaction.hooks import CompactHooks
from sevenfold.layers.compaction.job import Compacted
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.compaction.policy import CompactionTrigger
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.layers.living_docs.policy import DocSettings
from sevenfold.providers.provider import Provider
from sevenfold.session import Session
from sevenfold.session.governor import GovernedProvider
from sevenfold.store.files.disk import run_blocking
from sevenfold.store.project.trust import TrustStore
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
        heard = await self._hooks.ask("PreCompact", "auto", trigger="auto", custom_instructions=None)
        if heard.blocked is not None:
            raise CompactionStopped(f"a PreCompact hook says: {heard.blocked}")
        return "\n".join(heard.context)

    async def _restoring(self) -> Sequence[Extra]:
        if self._toolbox is None or self._hooks is None:
            return ()
        heard = await self._hooks.ask("SessionStart", "compact", source="compact")
        said = (Extra("hook", "SessionStart", text) for text in heard.context)
        return (*self._toolbox.extras(), *said, Extra("session", "where you are", self._where()))

    async def _after(self, done: Compacted) -> None:
        if self._hooks is not None:
            trigger = "manual" if done.trigger == "manual" else "auto"
            await self._hooks.ask("PostCompact", trigger, trigger=trigger, compact_summary=done.summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
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
    settings: Mapping[str, Mapping[str, object]] | None = None
    """By section, as in a settings file."""
    max_rounds: int | None = None
    emit: Emit = ignore_event
    clock: Clock = field(default_factory=SystemClock)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


async def open_agent(setup: AgentOptions) -> Agent:
    """An agent that is ready for its first turn; close it when done."""
    relay = EventRelay(setup.emit)
    file = LocalSettingsFile(setup.project, setup.environ, setup.clock, setup.settings)
    await file.ask_proposals(setup.confirm)
    is_agreed = await file.confirm_trust(setup.confirm)
    wish = SessionSelector(
        project=setup.project,
        session=setup.session,
        is_fork=setup.is_fork,
        settings=setup.settings,
        trusts_local=is_agreed,
    )
    async with AsyncExitStack() as exits:
        ground = await run_blocking(lambda: ProjectContext.open(wish, setup.environ, setup.clock, relay))
        exits.callback(ground.close)
        await run_blocking(lambda: SandboxRunStore(ground.project.control).sweep(relay))
        told = "" if setup.is_child else await start_team_sync(ground, setup.clock, relay, exits)
        return await _Opener(
            setup=setup, ground=ground, relay=relay, exits=exits, trusts_local=is_agreed, team_told=told
        ).open()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opener:
    """An agent on its way. What was opened is closed again, unless it gets to its end."""

    setup: AgentOptions
    ground: ProjectContext
    relay: EventRelay
    exits: AsyncExitStack
    trusts_local: bool
    team_told: str
    """Where what belongs, if some of the memory is a team's."""

    async def open(self) -> Agent:
        ground, compaction = self.ground, AgentCompactHooks()
        provider, guard = self._provider(), self._guard()
        equipment = await self._equip(guard) if self.setup.tools is None else None
        tools = self._tools(equipment)
        frame = self._frame(provider, tools)
        session = await self._session(frame, provider, compaction)
        folder = ground.session_folder(session.id)
        guard.reach = Reach(read=(folder,), edit=(Path(ground.project.memory.path),))
        hooks = await self._hooks(session, guard)
        place = self._place(folder)
        toolbox = ToolExecutor(tools, place, guard, hooks, make_rule_guard(ground, session, place))
        await run_blocking(
            lambda: [tool.begin(toolbox.place) for tool in tools if isinstance(tool, StatefulTool)]
        )
        compaction.attach(toolbox, hooks, self._surrounds)
        opening = await self._opening(hooks, frame)
        gear = AgentDeps(
            session=session,
            toolbox=toolbox,
            provider=self._governed(provider, session),
            frame=frame,
            relay=self.relay,
            hooks=hooks,
            exits=self.exits.pop_all(),
            keep=self._keeping(session.id),
            # The description of the work environment is stored with the request parameters.
            kept=None if ground.stored is None or opening.texts else ground.stored.frame,
            catalog=ground.catalog,
            thinks=ground.settings.of(AgentSettings).thinking,
            max_rounds=self.setup.max_rounds or ground.settings.of(AgentSettings).max_rounds,
            sources=equipment.sources if equipment else None,
            is_child=self.setup.is_child,
        )
        agent = Agent(gear, opening)
        self._join(agent, equipment)
        return agent

    def _provider(self) -> Provider:
        if self.setup.provider is not None:
            return self.setup.provider
        model = self.ground.catalog.find(self._model_name)
        settings = self.ground.settings.of(AgentSettings)
        provider = choose_provider(model, settings, self.setup.environ)
        self.exits.push_async_callback(provider.close)
        return provider

    async def _session(
        self, frame: RequestParams, provider: Provider, compaction: AgentCompactHooks
    ) -> Session:
        setup = self.setup
        session = await Session.open(
            frame,
            project=setup.project,
            session=self.ground.session,
            provider=provider,
            settings=setup.settings,
            hooks=compaction.make_hooks(),
            governs=not setup.is_child,
            is_agent=True,
            trusts_local=self.trusts_local,
            memory=self.ground.memory,
            clock=setup.clock,
            emit=self.relay.forward,
            environ=setup.environ,
        )
        self.exits.push_async_callback(session.close)
        self.relay.log_to(session.keep_event)
        await session.add_context()
        return session

    def _place(self, folder: Path) -> ToolContext:
        setup, ground = self.setup, self.ground
        return ToolContext(
            root=ground.root,
            cwd=ground.cwd,
            session_folder=folder,
            emit=self.relay,
            clock=setup.clock,
            environ=setup.environ,
        )

    def _governed(self, provider: Provider, session: Session) -> Provider:
        """What is asked beside the conversation has a cap; the conversation itself has none."""
        if self.setup.is_child:
            return provider  # its starter's, which has a cap already
        return GovernedProvider(provider, session.governor) if session.governor else provider

    def _join(self, agent: Agent, equipment: AgentToolset | None) -> None:
        """Tell everybody who works with the agent that it is there."""
        for joining in (*agent.toolbox.tools, equipment):
            if isinstance(joining, AgentAwareTool):
                joining.join(agent)
        add_rule_counter(agent, self.ground)
        attribute_saved_memories(agent)
        attribute_edited_memories(agent, self.ground.memory)
        if not self.setup.is_child:
            settings = self.ground.settings.of(DocSettings)
            add_doc_writer(agent, settings, self.ground.templates, self.ground.catalog)
            agent.dream = add_dream_writer(agent, self.ground).dream
            if not self.ground.settings.of(DreamSettings).daily_logs:
                add_extraction_writer(agent, self.ground)

    async def _equip(self, guard: Guard) -> AgentToolset:
        setup = self.setup
        open_child = None if setup.is_child else self._open_child
        making = ToolsetBuilder(
            project_context=self.ground,
            guard=guard,
            environ=setup.environ,
            confirm=setup.confirm,
            emit=self.relay,
            exits=self.exits,
            open_child=open_child,
            mcp=setup.mcp,
        )
        return await making.build()

    async def _open_child(self, child: SubagentOptions, mcp: McpClient | None) -> Agent:
        """An agent that this one starts: with a session and tools of its own, asking whom it is told."""
        return await open_agent(
            replace(
                self.setup,
                project=child.cwd,
                session=child.session,
                is_fork=False,
                is_child=True,
                model=child.model,
                mode=child.mode,
                system=child.system,
                tools=None,
                only=_fewer(child.only, self.setup.only),
                also=child.also,
                provider=child.provider,
                ask=child.ask,
                confirm=decline_confirmation,  # whoever started it has asked
                emit=child.emit,
                mcp=mcp,
            )
        )

    def _tools(self, equipment: AgentToolset | None) -> tuple[Tool, ...]:
        setup = self.setup
        usual = equipment.tools if equipment else setup.tools or ()
        wanted = (tool for tool in usual if setup.only is None or tool.spec.name in setup.only)
        return (*wanted, *setup.also)

    def _frame(self, provider: Provider, tools: Sequence[Tool]) -> RequestParams:
        """The session's stored request parameters, byte for byte; else new ones, which then stay the same."""
        stored = self.ground.stored
        if stored is None:
            system = self.setup.system or render_system_prompt(self.ground.templates)
            made = RequestParams(
                model=self._model_name,
                max_tokens=0,
                system=system,
                tools=tuple(tool.spec.declared() for tool in tools),
            )
            return self._fit(made, provider)
        if self.setup.model in ("", stored.frame.model):
            return stored.frame
        return self._fit(replace(stored.frame, model=self.setup.model), provider)

    @property
    def _model_name(self) -> str:
        """As the caller says, else as the session had it, else as settings say."""
        stored, settings = self.ground.stored, self.ground.settings.of(AgentSettings)
        return self.setup.model or (stored.frame.model if stored else settings.model or DEFAULT_MODEL)

    def _fit(self, frame: RequestParams, provider: Provider) -> RequestParams:
        thinks = self.ground.settings.of(AgentSettings).thinking
        return fit_request_params(frame, self.ground.catalog.find(frame.model), provider, thinks=thinks)

    def _keeping(self, session: SessionId) -> Callable[[RequestParams], Awaitable[bool]]:
        async def keep(frame: RequestParams) -> bool:
            stored = StoredParams(frame, self._surrounds())
            try:
                await run_blocking(lambda: self.ground.write_params(session, stored))
            except StoreError as error:
                self.relay(WriterFailed("frame", str(error)))
                return False
            return True

        return keep

    async def _hooks(self, session: Session, guard: Guard) -> SessionHooks:
        setup, ground = self.setup, self.ground
        found = await find_hooks(
            ground.settings.of(HookSettings),
            ground.folders,
            TrustStore(ground.project.control),
            confirm=setup.confirm,
            emit=self.relay,
        )
        place = HookContext(
            session=session.id,
            root=ground.root,
            cwd=ground.cwd,
            transcript=f"{ground.session_folder(session.id)}.jsonl",
            mode=lambda: guard.mode,
            environ=setup.environ,
            folder=ground.session_folder(session.id),
        )
        return SessionHooks(found, place, self.relay)

    def _guard(self) -> Guard:
        setup, folders = self.setup, self.ground.folders
        permissions = self.ground.settings.of(PermissionSettings)
        mode = setup.mode or permissions.start_mode
        held = self.ground.settings.of(SandboxSettings).allow_workspace
        keep = RuleSaver(self.ground.root, self.relay, TrustStore(self.ground.project.control)).save
        root, home, user_home = self.ground.root, folders.home, folders.user_home
        return Guard(
            mode=mode,
            rules=parse_permission_rules(permissions.allow, permissions.ask, permissions.deny),
            root=root,
            ask=setup.ask,
            home=home,
            user_home=user_home,
            save_rule=keep,
            may_run_sandboxed=held,
        )

    async def _opening(self, hooks: SessionHooks, frame: RequestParams) -> OpeningMessages:
        """What is said beside the first prompt: where the agent works, if that was not said yet, and what
        session-start hooks say."""
        stored, surrounds = self.ground.stored, self._surrounds()
        resumed = "fork" if self.setup.is_fork else "resume"
        source = self.setup.start if self.ground.session is None else resumed
        heard, waiting = NO_HOOK_RESULT, tuple[str, ...]()
        if not self.setup.is_child:
            heard = await hooks.ask("SessionStart", source, source=source, model=frame.model)
            if self.ground.settings.of(MemorySettings).enabled:
                waiting = await run_blocking(lambda: read_review_notice(self.ground.memory))
        is_said = stored is not None and _undated(stored.surrounds) == _undated(surrounds)
        texts = [] if is_said else [surrounds]
        texts += (f"SessionStart hook additional context: {text}" for text in heard.context)
        return OpeningMessages(tuple(texts), (*heard.notices, *waiting), heard.initial_messages)

    def _surrounds(self) -> str:
        today = self.setup.clock.now().astimezone().date()
        where = WorkEnvironment.read(self.ground.cwd, self.ground.root, today).render()
        return f"{self.team_told}\n{where}" if self.team_told else where


def _fewer(wanted: frozenset[str] | None, starter: frozenset[str] | None) -> frozenset[str] | None:
    """The tools of an agent: no others than its starter's."""
    if wanted is None or starter is None:
        return wanted if starter is None else starter
    return wanted & starter


def _undated(surrounds: str) -> str:
    """Without the day: when that changes, the session says so itself."""
    return surrounds.rpartition("\n")[0]
