"""Dreams of an agent's project: due by themselves after a turn, or asked for; and the log of the day.

The model that dreams is the agent's own, beside the conversation and not as a fork of it: a dream has nothing
to learn from what is being said, would pay for reading it in each of its rounds, and must not take it for
something that was remembered.
"""

from __future__ import annotations

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.choose_provider import MAX_REPLY_TOKENS
from sevenfold.agent.loop.project_context import ProjectContext
from sevenfold.agent.loop.turn import TurnEnd
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.agent.tools.memory import MEMORY_TOOL_SPEC
from sevenfold.core.errors import LockBusy
from sevenfold.core.events import DreamProgressed, DreamSkipped, Emit, Event, emit_to_both
from sevenfold.core.messages import Message
from sevenfold.core.models import Model
from sevenfold.core.provenance import Origin
from sevenfold.core.requests import Breakpoint, ModelRequest, RequestParams
from sevenfold.core.secrets.memory_secrets import refuse_secrets
from sevenfold.core.tool_kinds import OWN_READERS
from sevenfold.layers.dreams.dreamer import Dreamer, DreamResult, OnDreamStep
from sevenfold.layers.dreams.fork import DreamModel
from sevenfold.layers.dreams.gate import DreamGate
from sevenfold.layers.dreams.logs import append_log
from sevenfold.layers.dreams.policy import DREAM_KIND, DreamSettings
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner, run_fork
from sevenfold.layers.memory.trust.own_words import strip_pasted_text
from sevenfold.layers.memory.trust.taint import split_passages
from sevenfold.providers.provider import Provider
from sevenfold.store.files.lock import LockSettings
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.memory.settings import MemorySettings

DREAM_SYSTEM_PROMPT = "You keep the memories of a software project in order, for the agent that works on it."
OPENING, READY = "There is work on the memories.", "What is to be done?"


def make_dream_model(provider: Provider, model: Model, toolbox: ToolExecutor, emit: Emit) -> DreamModel:
    """A model that dreams, with the tools for it and no conversation."""
    found = (toolbox.find(name) for name in OWN_READERS)
    tools = (*(tool.spec.declared() for tool in found if tool), MEMORY_TOOL_SPEC.declared())
    frame = RequestParams(
        model=model.name,
        max_tokens=min(MAX_REPLY_TOKENS, model.max_output_tokens),
        system=DREAM_SYSTEM_PROMPT,
        tools=tools,
    )
    said = (Message("user", OPENING), Message("assistant", READY))
    # A marker, so that each round reads the ones before it from the cache.
    parent = ModelRequest(frame, said, (Breakpoint("messages", 1, 0),))

    async def run(brief: ForkBrief, run_tool: ToolRunner) -> ForkResult:
        return await run_fork(parent, brief, provider, run_tool=run_tool, emit=emit)

    return DreamModel(lambda folders: toolbox.reader(folders, who=DREAM_KIND), run)


class AgentDreams:
    """What an agent has to do with dreams."""

    def __init__(self, agent: Agent, ground: ProjectContext) -> None:
        self._agent, self._ground = agent, ground
        self._settings = ground.settings.of(DreamSettings)
        self._tell: OnDreamStep = _nobody
        place = agent.place
        self.dreamer = Dreamer(
            ground.project,
            ground.memory,
            self._settings,
            locks=ground.settings.of(LockSettings),
            templates=ground.templates,
            clock=place.clock,
            emit=emit_to_both(place.emit, self._hear),
        )
        self._gate = DreamGate(ground.project, self.dreamer.lock, self._settings, place.clock)
        self._logged = ""

    async def dream(self, tell: OnDreamStep) -> DreamResult:
        """Dream now, whatever the gates say. `LockBusy` where somebody does already."""
        agent = self._agent
        model = None
        if self._settings.writer != "mechanical":
            found = self._ground.catalog.find(agent.frame.model)
            model = make_dream_model(agent.provider, found, agent.toolbox, agent.place.emit)
        self._tell = tell
        try:
            return await self.dreamer.dream(model)
        finally:
            self._tell = _nobody
            self._gate.forget()

    async def turn_ended(self, _end: TurnEnd) -> None:
        """Dream if it is time to."""
        if not await self._gate.is_due(self._agent.session.id):
            return
        try:
            await self.dream(_nobody)
        except LockBusy as error:
            self._agent.place.emit(DreamSkipped(str(error)))

    async def log_turn(self, _end: TurnEnd) -> None:
        """Add what the person said last to the log of the day, in their own words."""
        session = self._agent.session
        said = next((entry for entry in reversed(session.entries) if _said(entry.message)), None)
        if said is None or said.id == self._logged:
            return
        self._logged = said.id
        words = strip_pasted_text("\n".join(_said(said.message))).strip()
        if words:
            refuse_secrets(words)
            origin = Origin(
                who="agent", why="said in a turn", session=session.id, messages=(said.id,), said_by="user"
            )
            when = self._agent.place.clock.now().astimezone()
            await run_blocking(lambda: append_log(self._ground.memory, words, when, origin))

    def _hear(self, event: Event) -> None:
        if isinstance(event, DreamProgressed):
            self._tell(f"{event.state}: {event.step}")


def add_dream_writer(agent: Agent, ground: ProjectContext) -> AgentDreams:
    """Have the gates asked after each turn, and the day's log written where settings want one.

    Where no memory is wanted, neither: only a person's own word has one tidied then.
    """
    dreams = AgentDreams(agent, ground)
    ground.exits.callback(dreams.dreamer.close)
    if not ground.settings.of(MemorySettings).enabled:
        return dreams
    settings = ground.settings.of(DreamSettings)
    if settings.daily_logs:
        agent.add_writer("daily log", dreams.log_turn)
    if settings.enabled:
        agent.add_writer(DREAM_KIND, dreams.turn_ended)
    return dreams


def _said(message: Message) -> list[str]:
    """A person's words in a message: not those of tools, of other agents or of the program."""
    return [passage.text for passage in split_passages((message,)) if passage.voice == "user"]


def _nobody(_step: str) -> None:
    """For a dream that nobody watches."""
