"""Opening an agent: which project, session, model and tools, and what it is told first."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from sevenfold.agent.agent import Agent, Gear, Opening
from sevenfold.agent.choose_provider import USUAL_MODEL, choose_provider, fit_frame
from sevenfold.agent.compaction import Compaction
from sevenfold.agent.equipment import Equipment, Equipping, Joins
from sevenfold.agent.frame_file import StoredFrame
from sevenfold.agent.ground import Ground, Wish
from sevenfold.agent.prompt import Surrounds, render_system
from sevenfold.agent.relay import Relay
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.events import Emit, ignore
from sevenfold.core.models import Model
from sevenfold.core.requests import Frame
from sevenfold.engine import Session
from sevenfold.layers.compact_restore import Extra
from sevenfold.providers.provider import Provider
from sevenfold.run.agent_settings import AgentSettings
from sevenfold.run.governed import GovernedProvider
from sevenfold.run.governor import Governor
from sevenfold.run.hook_files import HookSettings, find_hooks
from sevenfold.run.hooks import HookPlace, Hooks
from sevenfold.run.keeping import RuleKeeper
from sevenfold.run.mcp_servers import Confirm
from sevenfold.run.mcp_servers import nobody as never
from sevenfold.run.permission_settings import PermissionSettings
from sevenfold.run.permissions import Ask, Guard, Mode, nobody
from sevenfold.run.reach import Reach
from sevenfold.run.sandbox import SandboxSettings
from sevenfold.run.spend import SpendSettings
from sevenfold.run.tool import Tool
from sevenfold.run.toolbox import Toolbox
from sevenfold.run.workplace import Workplace
from sevenfold.store.offload import durably
from sevenfold.store.spend_book import SpendBook
from sevenfold.store.trust import Trust


@dataclass(frozen=True, slots=True)
class Setup:
    """What an agent is opened with. All but the project has a default that works without a person."""

    project: Path
    model: str = ""
    """Empty: as the session had it, else as settings say."""
    mode: Mode | None = None
    """None: as settings say."""
    session: str | None = None
    """The one to take up again, or `latest`; None: a new one."""
    is_fork: bool = False
    """Branch off that session, which stays as it is."""
    ask: Ask = nobody
    """Whom to ask before a tool runs."""
    confirm: Confirm = never
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
    system: str | None = None
    """A system prompt of the caller's own, for a new session."""
    settings: Mapping[str, Mapping[str, object]] | None = None
    """By section, as in a settings file."""
    max_rounds: int | None = None
    emit: Emit = ignore
    clock: Clock = field(default_factory=SystemClock)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


async def open_agent(setup: Setup) -> Agent:
    """An agent that is ready for its first turn; close it when done."""
    relay = Relay(setup.emit)
    wish = Wish(setup.project, setup.session, setup.is_fork, setup.settings)
    async with AsyncExitStack() as exits:
        ground = await durably(lambda: Ground.open(wish, setup.environ, setup.clock, relay))
        exits.callback(ground.close)
        return await _Opener(setup, ground, relay, exits).open()


@dataclass(frozen=True, slots=True)
class _Opener:
    """An agent on its way. What was opened is closed again, unless it gets to its end."""

    setup: Setup
    ground: Ground
    relay: Relay
    exits: AsyncExitStack

    async def open(self) -> Agent:
        setup, ground = self.setup, self.ground
        settings = ground.settings.of(AgentSettings)
        provider = setup.provider or choose_provider(self._model, settings, setup.environ)
        if setup.provider is None:
            self.exits.push_async_callback(provider.close)
        guard = self._guard()
        equipment = await self._equip(guard) if setup.tools is None else None
        tools = self._tools(equipment)
        frame = self._frame(provider, tools)
        compaction = Compaction(self.relay)
        session = await Session.open(
            frame,
            project=setup.project,
            session=ground.session,
            provider=provider,
            settings=setup.settings,
            hooks=compaction.calls(),
            clock=setup.clock,
            emit=self.relay,
            environ=setup.environ,
        )
        self.exits.push_async_callback(session.close)
        await session.add_context()
        folder = ground.session_folder(session.id)
        guard.reach = Reach(read=(folder,), edit=(Path(ground.project.memory.path),))
        if equipment is not None:
            equipment.begin(folder, session.history)
        hooks = await self._hooks(session, guard)
        place = Workplace(
            ground.root, ground.cwd, folder, emit=self.relay, clock=setup.clock, environ=setup.environ
        )
        toolbox = Toolbox(tools, place, guard, hooks)
        compaction.toolbox, compaction.hooks = toolbox, hooks
        compaction.more.append(lambda: (Extra("session", "where you are", self._surrounds()),))
        opening = await self._opening(hooks, frame)

        async def fit(wanted: Frame) -> Frame:
            fitted = self._fit(wanted, provider)
            stored = StoredFrame(fitted, self._surrounds())
            await durably(lambda: ground.keep(session.id, stored))
            return fitted

        if ground.stored is None or ground.stored.frame != frame or opening.texts:
            stored = StoredFrame(frame, self._surrounds())
            await durably(lambda: ground.keep(session.id, stored))
        most = setup.max_rounds or settings.max_rounds
        book = await durably(lambda: SpendBook.open(ground.folders.home, emit=self.relay))
        governor = Governor(
            book,
            ground.settings.of(SpendSettings),
            session=session.id,
            catalog=ground.catalog,
            clock=setup.clock,
            emit=self.relay,
        )
        governed = GovernedProvider(provider, governor)
        sources = equipment.sources if equipment else None
        exits = self.exits.pop_all()
        gear = Gear(session, toolbox, governed, frame, self.relay, hooks, exits, fit, most, sources)
        agent = Agent(gear, opening)
        for joining in (*toolbox.tools, equipment):
            if isinstance(joining, Joins):
                joining.join(agent)
        return agent

    async def _equip(self, guard: Guard) -> Equipment:
        setup = self.setup
        making = Equipping(self.ground, guard, setup.environ, setup.confirm, self.relay, self.exits)
        return await making.equip()

    def _tools(self, equipment: Equipment | None) -> tuple[Tool, ...]:
        setup = self.setup
        usual = equipment.tools if equipment else setup.tools or ()
        wanted = (tool for tool in usual if setup.only is None or tool.spec.name in setup.only)
        return (*wanted, *setup.also)

    def _frame(self, provider: Provider, tools: Sequence[Tool]) -> Frame:
        """As the session had it, to the byte; else made now, and the same from then on (SPEC J1)."""
        stored = self.ground.stored
        if stored is None:
            system = self.setup.system or render_system(self.ground.templates)
            made = Frame(self._model_name, 0, system, tuple(tool.spec.declared() for tool in tools))
            return self._fit(made, provider)
        if self.setup.model in ("", stored.frame.model):
            return stored.frame
        return self._fit(replace(stored.frame, model=self.setup.model), provider)

    @property
    def _model_name(self) -> str:
        """As the caller says, else as the session had it, else as settings say."""
        stored, settings = self.ground.stored, self.ground.settings.of(AgentSettings)
        return self.setup.model or (stored.frame.model if stored else settings.model or USUAL_MODEL)

    @property
    def _model(self) -> Model:
        return self.ground.catalog.find(self._model_name)

    def _fit(self, frame: Frame, provider: Provider) -> Frame:
        thinks = self.ground.settings.of(AgentSettings).thinking
        return fit_frame(frame, self.ground.catalog.find(frame.model), provider, thinks=thinks)

    async def _hooks(self, session: Session, guard: Guard) -> Hooks:
        setup, ground = self.setup, self.ground
        found = await find_hooks(
            ground.settings.of(HookSettings),
            ground.folders,
            Trust(ground.project.control),
            confirm=setup.confirm,
            emit=self.relay,
        )
        place = HookPlace(
            session.id,
            ground.root,
            ground.cwd,
            f"{ground.session_folder(session.id)}.jsonl",
            lambda: guard.mode,
            setup.environ,
        )
        return Hooks(found, place, self.relay)

    def _guard(self) -> Guard:
        setup, folders = self.setup, self.ground.folders
        permissions = self.ground.settings.of(PermissionSettings)
        mode = setup.mode or permissions.start_mode
        held = self.ground.settings.of(SandboxSettings).allow_workspace
        keep = RuleKeeper(self.ground.root, self.relay).keep
        root, home, user_home = self.ground.root, folders.home, folders.user_home
        return Guard(
            mode,
            permissions.rules,
            root,
            setup.ask,
            home=home,
            user_home=user_home,
            keep=keep,
            may_run_held=held,
        )

    async def _opening(self, hooks: Hooks, frame: Frame) -> Opening:
        """What is said beside the first prompt: where the agent works, if that was not said yet, and what
        session-start hooks say."""
        stored, surrounds = self.ground.stored, self._surrounds()
        source = "startup" if self.ground.session is None else "fork" if self.setup.is_fork else "resume"
        heard = await hooks.ask("SessionStart", source, source=source, model=frame.model)
        is_said = stored is not None and _undated(stored.surrounds) == _undated(surrounds)
        texts = [] if is_said else [surrounds]
        texts += (f"SessionStart hook additional context: {text}" for text in heard.context)
        return Opening(tuple(texts), heard.notices)

    def _surrounds(self) -> str:
        today = self.setup.clock.now().astimezone().date()
        return Surrounds.read(self.ground.cwd, self.ground.root, today).render()


def _undated(surrounds: str) -> str:
    """Without the day: when that changes, the session says so itself."""
    return surrounds.rpartition("\n")[0]
