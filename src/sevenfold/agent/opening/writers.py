"""The writers that an agent of its own has: what is brought up to date after a turn."""

from __future__ import annotations

from pathlib import Path

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.choose_provider import MAX_REPLY_TOKENS
from sevenfold.agent.loop.project_context import ProjectContext
from sevenfold.agent.loop.side_model import (
    ONLOOKER_PROMPT,
    SideCallFacts,
    choose_side_model,
    estimate_messages_tokens,
    estimate_plain_tokens,
    find_cheapest_model,
    render_tail,
)
from sevenfold.agent.loop.turn import TurnEnd
from sevenfold.agent.permissions.guard import Guard
from sevenfold.agent.permissions.reach import ForkGuard, Reach
from sevenfold.agent.tool import AccessRequest
from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.core.text.fences import fence_text
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner, run_fork
from sevenfold.layers.living_docs.policy import LIVING_DOC_KIND, DocSettings
from sevenfold.layers.living_docs.writer import DocTools, DocWriter
from sevenfold.layers.memory.extraction.policy import EXTRACTION_KIND as EXTRACTION
from sevenfold.layers.memory.extraction.policy import ExtractionSettings
from sevenfold.layers.memory.extraction.statement_reader import ConversationSnapshot, RecordedMessage
from sevenfold.layers.memory.extraction.writer import ExtractionPlaces, ExtractionWriter, ForkTools
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.settings import MemorySettings

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
) -> DocWriter | None:
    """Have living documents kept up to date after each turn; None where nothing can be edited or asked."""
    guard = agent.toolbox.guard
    if not settings.enabled or agent.toolbox.find(_EDIT) is None or not isinstance(guard, Guard):
        return None

    def objects(path: str) -> str | None:
        """A file's heading stands for a yes, and no rule or mode that says no is asked twice."""
        use = ToolUse(ToolUseId(LIVING_DOC_KIND), _EDIT, JsonObject({"file_path": path}))
        verdict = guard.decide(use, AccessRequest(kind="edit", paths=(path,)))
        return verdict.reason if verdict.decision == "deny" else None

    async def run(brief: ForkBrief, run_tool: ToolRunner) -> ForkResult:
        aside = _choose_aside(agent, brief, catalog)
        if aside is None:
            return await agent.session.run_fork(brief, run_tool=run_tool)
        return await run_fork(aside, brief, agent.provider, run_tool=run_tool, emit=agent.place.emit)

    tools = DocTools(_EDIT, agent.toolbox.runner, run, objects)
    writer = DocWriter(agent.toolbox.place, tools, settings, templates)

    async def write(end: TurnEnd) -> None:
        may_edit = guard.mode not in ("plan", "read-only")
        await writer.turn_ended(is_idle=end.reason == "answered", may_edit=may_edit)

    agent.add_writer("living documents", write)
    return writer


def add_extraction_writer(agent: Agent, ground: ProjectContext) -> ExtractionWriter | None:
    """Have what the user taught written down after each turn; None where settings say no."""
    settings = ground.settings.of(ExtractionSettings)
    if not settings.enabled or not ground.settings.of(MemorySettings).enabled:
        return None
    session, folder = agent.session, ground.memory.path
    reads = Reach(read=(ground.root, Path(ground.project.sessions.path), folder))
    box = agent.toolbox.at(agent.place.clone(), ForkGuard(reads), who=EXTRACTION)

    async def read(use: ToolUse) -> ToolResult:
        (result,) = await box.run([use])
        return result

    async def run(brief: ForkBrief, run_tool: ToolRunner) -> ForkResult:
        return await session.run_fork(brief, run_tool=run_tool)

    names = tuple(tool.spec.name for tool in agent.toolbox.tools)
    kept = ground.exits.enter_context(ground.project.sessions.subfolder(session.id))
    places = ExtractionPlaces(
        session=session.id, memory=ground.memory, folder=str(folder), kept=kept, templates=ground.templates
    )
    clock, emit = agent.place.clock, agent.place.emit
    writer = ExtractionWriter(places, settings, ForkTools(names, run, read), clock=clock, emit=emit)

    async def write(end: TurnEnd) -> None:
        # What was cut short is looked at with the next turn.
        if end.reason == "answered":
            said = tuple(RecordedMessage(entry.id, entry.message) for entry in session.entries)
            await writer.turn_ended(ConversationSnapshot(said, session.parent.messages))

    agent.add_writer(EXTRACTION, write)
    return writer


def _choose_aside(agent: Agent, brief: ForkBrief, catalog: Catalog) -> ModelRequest | None:
    """What a cheap model is shown of the conversation; None where a fork of it costs less."""
    parent, day = agent.session.parent, agent.place.clock.now().date()
    own = catalog.find(parent.frame.model)
    cheap = find_cheapest_model(own, catalog, day)
    edit = next((tool for tool in parent.frame.tools if tool.get("name") == _EDIT), None)
    if cheap is None or cheap == own or edit is None:
        return None
    tail = render_tail(parent.messages, _TAIL_MESSAGES, _TAIL_BYTES)
    asked = estimate_plain_tokens(brief.directive)
    pricing = SideCallFacts(
        prefix_tokens=estimate_messages_tokens(parent.messages),
        tail_tokens=estimate_plain_tokens(tail),
        own=own,
        cheap=cheap,
        day=day,
        output_tokens=_OUTPUT_TOKENS,
        asked_tokens=asked,
    )
    if choose_side_model(pricing) == "fork":
        return None
    most = min(MAX_REPLY_TOKENS, cheap.max_output_tokens)
    return ModelRequest(
        RequestParams(model=cheap.name, max_tokens=most, system=ONLOOKER_PROMPT, tools=(edit,)),
        (Message("user", fence_text("steps", tail)), Message("assistant", SEEN_REPLY)),
    )
