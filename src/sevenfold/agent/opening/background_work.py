"""Background work of a top-level agent, after each turn: living documents, memory extraction and dreams.

Each `add_…_writer` registers one writer with an agent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.choose_provider import (
    MAX_REPLY_TOKENS,
    OBSERVER_PROMPT,
    find_side_model,
    render_tail,
)
from sevenfold.agent.loop.turn import TurnEnd
from sevenfold.agent.permissions.guard import ForkGuard, Guard, Reach
from sevenfold.agent.tool import AccessRequest
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.agent.tools.memory import MEMORY_TOOL_SPEC
from sevenfold.core.errors import LockBusy
from sevenfold.core.events import DreamProgressed, DreamSkipped, Emit, Event, emit_to_both
from sevenfold.core.json import JsonObject
from sevenfold.core.memories import Origin
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.models import Model
from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.core.requests import Breakpoint, ModelRequest, RequestParams
from sevenfold.core.secrets import refuse_secrets
from sevenfold.core.settings import MemorySettings
from sevenfold.core.system import run_blocking
from sevenfold.core.text.safe_text import fence_text
from sevenfold.core.tool_kinds import OWN_READERS, FileReads
from sevenfold.layers.dreams.policy import DREAM_KIND, DreamSettings
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner, is_prefix_warm, run_fork
from sevenfold.layers.living_docs.policy import LIVING_DOC_KIND, DocSettings
from sevenfold.layers.memory.extraction.settings import EXTRACTION_KIND, ExtractionSettings
from sevenfold.layers.memory.trust.taint import split_passages, strip_pasted_text
from sevenfold.providers.provider import Provider
from sevenfold.session.opening import Workspace
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import LockSettings

if TYPE_CHECKING:
    # Nobody waits for a writer, so its modules are imported when it is first needed.
    from sevenfold.layers.dreams.dreamer import Dreamer, DreamResult, OnDreamStep
    from sevenfold.layers.dreams.inputs import DreamGate
    from sevenfold.layers.dreams.workspace import DreamModel
    from sevenfold.layers.living_docs.writer import DocWriter
    from sevenfold.layers.memory.extraction.drafts import ConversationSnapshot, RecordedMessage
    from sevenfold.layers.memory.extraction.writer import ExtractionWriter

_EDIT = "edit"
SEEN_REPLY = "I have read these steps."


_TAIL_MESSAGES = 30
"""What a cheap model is shown of the conversation: about one turn."""
_TAIL_BYTES = 4_000
"""Of each text in it: what a document says of the work has to be read there."""
_OUTPUT_TOKENS = 1_000
"""An edit or two. Only for the choice: what is answered is not cut."""


def add_doc_writer(
    agent: Agent, settings: DocSettings, templates: Folder | None = None, catalog: Catalog = CATALOG
) -> bool:
    """Have living documents kept up to date after each turn; False where nothing can be edited or asked."""
    guard = agent.toolbox.guard
    if not settings.enabled or agent.toolbox.find(_EDIT) is None or not isinstance(guard, Guard):
        return False

    def objects(path: str) -> str | None:
        """The heading is no yes: a stranger may have written it. Nobody is asked beside a conversation."""
        use = ToolUse(ToolUseId(LIVING_DOC_KIND), _EDIT, JsonObject({"file_path": path}))
        verdict = guard.decide(use, AccessRequest(kind="edit", paths=(path,)))
        if verdict.decision == "ask":
            name = os.path.relpath(path, guard.root)
            return (
                f"{verdict.reason}, and the heading is not enough in {guard.mode} mode; an ordinary page is "
                f'kept up to date in accept-edits mode, or with "edit({name})" in permissions.allow'
            )
        return verdict.reason if verdict.decision == "deny" else None

    async def run(brief: ForkBrief, run_tool: ToolRunner) -> ForkResult:
        aside = _choose_aside(agent, brief, catalog)
        return await agent.session.run_fork(brief, run_tool=run_tool, parent=aside)

    @cache
    def make_writer() -> DocWriter:
        from sevenfold.layers.living_docs.writer import DocTools, DocWriter

        tools = DocTools(_EDIT, agent.toolbox.runner, run, objects)
        return DocWriter(agent.toolbox.place, tools, settings, templates)

    async def write(end: TurnEnd) -> None:
        may_edit = guard.mode not in ("plan", "read-only")
        await make_writer().turn_ended(is_idle=end.reason == "answered", may_edit=may_edit)

    agent.add_writer("living documents", write)
    return True


def add_extraction_writer(agent: Agent, workspace: Workspace, resources: ExitStack) -> None:
    """Have what the user taught written down after each turn, unless settings say no."""
    settings = workspace.settings.of(ExtractionSettings)
    if not settings.enabled or not workspace.settings.of(MemorySettings).enabled:
        return
    session, clock = agent.session, agent.place.clock
    answered = clock.now()

    def is_warm() -> bool:
        return is_prefix_warm(session.parent, clock.now() - answered)

    @cache
    def make_writer() -> ExtractionWriter:
        return _make_extraction_writer(agent, workspace, resources, is_warm)

    def take_snapshot() -> ConversationSnapshot:
        from sevenfold.layers.memory.extraction import drafts

        said = tuple(
            drafts.RecordedMessage(entry.id, entry.message, session.find_offset(entry))
            for entry in session.entries
        )
        hidden = frozenset(said[place].id for place in session.hidden)
        return drafts.ConversationSnapshot(said, session.parent.messages, hidden)

    async def write(end: TurnEnd) -> None:
        nonlocal answered
        answered = clock.now()
        # What was cut short is looked at with the next turn, or when the session ends.
        if end.reason == "answered":
            await make_writer().turn_ended(take_snapshot())
        else:
            make_writer()

    async def finish() -> None:
        if make_writer.cache_info().currsize:
            await make_writer().session_ended(take_snapshot())

    agent.add_writer(EXTRACTION_KIND, write, finish)


def _make_extraction_writer(
    agent: Agent, workspace: Workspace, resources: ExitStack, is_warm: Callable[[], bool]
) -> ExtractionWriter:
    from sevenfold.layers.memory.extraction.policy import ExtractionSpend, add_extraction_spend
    from sevenfold.layers.memory.extraction.writer import ExtractionPlaces, ExtractionWriter, ForkTools

    settings, session = workspace.settings.of(ExtractionSettings), agent.session
    folder = workspace.memory.path
    reads = Reach(read=(workspace.root, Path(workspace.project.sessions.path), folder))
    # What the agent has read is not known here: the fork may read it again.
    place = replace(agent.place, reads=FileReads())
    box = agent.toolbox.at(place, ForkGuard(reads), who=EXTRACTION_KIND)

    async def read(use: ToolUse) -> ToolResult:
        (result,) = await box.run([use])
        return result

    async def run(brief: ForkBrief, run_tool: ToolRunner, new: Sequence[RecordedMessage]) -> ForkResult:
        entries, hidden = session.entries, session.hidden
        shown = {entry.id for place, entry in enumerate(entries) if place not in hidden}
        # Of a part of what is new, the conversation says more than was asked for.
        is_last = bool(entries) and entries[-1].id == new[-1].id
        if is_warm() and is_last and all(one.id in shown for one in new):
            return await session.run_fork(brief, run_tool=run_tool)
        # To write the whole prefix into the cache again would cost more than all that is learnt is worth;
        # and after a compaction the prefix has a summary where these messages were.
        aside = make_look_request(session.parent.frame, new)
        return await session.run_fork(brief, run_tool=run_tool, parent=aside)

    def measure_spend() -> ExtractionSpend | None:
        return add_extraction_spend({one.who: one.cost for one in session.spent})

    names = tuple(tool.spec.name for tool in agent.toolbox.tools)
    kept = resources.enter_context(workspace.project.sessions.subfolder(session.id))
    places = ExtractionPlaces(
        session=session.id,
        memory=workspace.memory,
        folder=str(folder),
        kept=kept,
        transcripts=workspace.project.sessions,
        templates=workspace.templates,
    )
    clock, emit = agent.place.clock, agent.place.emit
    return ExtractionWriter(
        places, settings, ForkTools(names, run, read, measure_spend), clock=clock, emit=emit
    )


def _choose_aside(agent: Agent, brief: ForkBrief, catalog: Catalog) -> ModelRequest | None:
    """What a cheap model is shown of the conversation; None where a fork of it costs less."""
    parent, day = agent.session.parent, agent.place.clock.now().date()
    edit = next((tool for tool in parent.frame.tools if tool.get("name") == _EDIT), None)
    tail = render_tail(parent.messages, _TAIL_MESSAGES, _TAIL_BYTES)
    cheap = find_side_model(parent, tail, catalog, day, output_tokens=_OUTPUT_TOKENS, asked=brief.directive)
    if cheap is None or cheap == catalog.find(parent.frame.model) or edit is None:
        return None
    most = min(MAX_REPLY_TOKENS, cheap.max_output_tokens)
    return ModelRequest(
        RequestParams(model=cheap.name, max_tokens=most, system=OBSERVER_PROMPT, tools=(edit,)),
        (Message("user", fence_text("steps", tail)), Message("assistant", SEEN_REPLY)),
    )


def make_look_request(frame: RequestParams, new: Sequence[RecordedMessage]) -> ModelRequest:
    """What the conversation's own model is shown of new messages where its prefix is no longer cached."""
    from sevenfold.layers.memory.extraction.drafts import render_steps

    own = RequestParams(
        model=frame.model,
        max_tokens=frame.max_tokens,
        system=OBSERVER_PROMPT,
        tools=(MEMORY_TOOL_SPEC.declared(),),
    )
    shown = fence_text("steps", render_steps(new))
    return ModelRequest(own, (Message("user", shown), Message("assistant", SEEN_REPLY)))


# Dreams use the agent's own model, but not a fork of the conversation: a dream learns nothing from it, would
# pay to read it in every round, and must not mistake it for memory.

DREAM_SYSTEM_PROMPT = "You keep the memories of a software project in order, for the agent that works on it."
OPENING, READY = "There is work on the memories.", "What is to be done?"


def make_dream_model(
    provider: Provider, model: Model, toolbox: ToolExecutor, workspace: Workspace, emit: Emit
) -> DreamModel:
    """A model that dreams, with the tools for it and no conversation."""
    from sevenfold.layers.dreams.inputs import PastSessions
    from sevenfold.layers.dreams.workspace import DreamModel

    found = (toolbox.find(name) for name in OWN_READERS)
    tools = (*(tool.spec.declared() for tool in found if tool), MEMORY_TOOL_SPEC.declared())
    frame = RequestParams(
        model=model.name,
        max_tokens=min(MAX_REPLY_TOKENS, model.max_output_tokens),
        system=DREAM_SYSTEM_PROMPT,
        tools=tools,
    )
    said = (Message("user", OPENING), Message("assistant", READY))
    # A breakpoint, so that each round reads the ones before it from the cache.
    parent = ModelRequest(frame, said, (Breakpoint("messages", 1, 0),))

    async def run(brief: ForkBrief, run_tool: ToolRunner) -> ForkResult:
        return await run_fork(parent, brief, provider, run_tool=run_tool, emit=emit)

    past = PastSessions(
        home=workspace.home,
        user_home=workspace.user_home,
        root=workspace.root,
        environ=workspace.environ,
        emit=emit,
    )
    return DreamModel(lambda folders: toolbox.reader(folders, who=DREAM_KIND), run, past.find_turns)


class AgentDreams:
    """What an agent has to do with dreams."""

    def __init__(self, agent: Agent, workspace: Workspace) -> None:
        self._agent, self._workspace = agent, workspace
        self._settings = workspace.settings.of(DreamSettings)
        self._on_step: OnDreamStep = _nobody
        self._logged = ""

    @cached_property
    def dreamer(self) -> Dreamer:
        from sevenfold.layers.dreams.dreamer import Dreamer

        workspace, place = self._workspace, self._agent.place
        return Dreamer(
            workspace.project,
            workspace.memory,
            self._settings,
            locks=workspace.settings.of(LockSettings),
            templates=workspace.templates,
            clock=place.clock,
            emit=emit_to_both(place.emit, self._report_step),
        )

    @cached_property
    def _gate(self) -> DreamGate:
        from sevenfold.layers.dreams.inputs import DreamGate

        project, clock = self._workspace.project, self._agent.place.clock
        return DreamGate(project, self.dreamer.lock, self._settings, clock)

    def close(self) -> None:
        if "dreamer" in vars(self):
            self.dreamer.close()

    async def dream(self, on_step: OnDreamStep) -> DreamResult:
        """Dream now, whatever the gates say. `LockBusy` where somebody does already."""
        agent = self._agent
        model = None
        if self._settings.writer != "mechanical":
            found = self._workspace.catalog.find(agent.frame.model)
            model = make_dream_model(agent.provider, found, agent.toolbox, self._workspace, agent.place.emit)
        self._on_step = on_step
        try:
            return await self.dreamer.dream(model)
        finally:
            self._on_step = _nobody
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
        from sevenfold.layers.dreams.inputs import append_log

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
            await run_blocking(lambda: append_log(self._workspace.memory, words, when, origin))

    def _report_step(self, event: Event) -> None:
        if isinstance(event, DreamProgressed):
            self._on_step(f"{event.state}: {event.step}")


def add_dream_writer(agent: Agent, workspace: Workspace, resources: ExitStack) -> AgentDreams:
    """Have the gates asked after each turn, and the day's log written where settings want one.

    Where no memory is wanted, neither: only a person's own word has one tidied then.
    """
    dreams = AgentDreams(agent, workspace)
    resources.callback(dreams.close)
    if not workspace.settings.of(MemorySettings).enabled:
        return dreams
    settings = workspace.settings.of(DreamSettings)
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
