"""Builds the steps of the request path, around one `Conversation`.

`Session.prepare` runs them in order. `build_view_steps` makes those that need no model, which is all that it
takes to rebuild a view and look at it; the other functions make one step each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sevenfold.core.requests import Capabilities, RequestParams
from sevenfold.layers.compaction.compactor import CompactionStateFile, Compactor
from sevenfold.layers.compaction.job import SpillText
from sevenfold.layers.compaction.layer import CompactionLayer, WindowPlan
from sevenfold.layers.compaction.summary_methods import read_summary_prompts
from sevenfold.layers.context.layer import ContextInputs, ContextLayer
from sevenfold.layers.conversation import Conversation
from sevenfold.layers.memory.recall.layer import RecallLayer, SessionMemories, choose_side_query
from sevenfold.layers.memory.recall.policy import clear_recalled
from sevenfold.layers.microcompact.layer import ClearingTools, MicrocompactLayer
from sevenfold.layers.session_notes.writer import NotesLayer, NotesWriter
from sevenfold.layers.templates import read_notes_texts
from sevenfold.layers.tool_results.spill import SpillLayer
from sevenfold.providers.provider import Provider
from sevenfold.session.cache.breakpoints import RequestBuilder
from sevenfold.session.opening import SessionResources
from sevenfold.session.settings import SessionDeps
from sevenfold.store.memory.directory import MemoryDir


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSteps:
    """The conversation, and the steps from its history to a request."""

    conversation: Conversation
    spilling: SpillLayer
    clearing: MicrocompactLayer
    window: WindowPlan
    requests: RequestBuilder

    def use(self, frame: RequestParams, capabilities: Capabilities) -> None:
        """Use other request parameters from now on."""
        self.conversation.use(frame, capabilities)
        self.window.use(frame, self.conversation.model)
        self.requests.use_params()


def build_view_steps(frame: RequestParams, capabilities: Capabilities, deps: SessionDeps) -> ViewSteps:
    settings = deps.settings
    conversation = Conversation(
        frame,
        capabilities,
        catalog=deps.catalog,
        clock=deps.clock,
        emit=deps.emit,
        journal=deps.journal,
        estimator=deps.estimator,
    )
    spilling = SpillLayer(settings=settings.tool_results, spills=deps.spills, emit=deps.emit)
    tools = ClearingTools(
        settings=settings.microcompact,
        server_edits=settings.server_edits,
        ttl=settings.cache.lifetime,
        clock=deps.clock,
        emit=deps.emit,
        store_result=spilling.store_whole if deps.spills is not None else None,
        clear_memories=clear_recalled,
        declared=deps.clearable,
    )
    clearing = MicrocompactLayer(conversation, tools)
    window = WindowPlan(settings.window, settings.compact, frame, conversation.model)
    return ViewSteps(
        conversation=conversation,
        spilling=spilling,
        clearing=clearing,
        window=window,
        requests=RequestBuilder(conversation, window, clearing, settings.cache, deps.clock),
    )


def build_compaction(
    steps: ViewSteps, opened: SessionResources, provider: Provider | None
) -> CompactionLayer:
    deps = opened.deps
    compactor = Compactor(
        provider,
        deps.settings.compact,
        notes=deps.settings.notes,
        state=CompactionStateFile(opened.folder, emit=deps.emit),
        catalog=deps.catalog,
        clock=deps.clock,
        prompts=read_summary_prompts(opened.templates),
        emit=deps.emit,
    )
    return CompactionLayer(
        steps.conversation,
        steps.window,
        compactor,
        spills=deps.spills,
        folder=opened.start,
        ttl=deps.settings.cache.lifetime,
        clock=deps.clock,
        emit=deps.emit,
    )


def build_notes(
    steps: ViewSteps, opened: SessionResources, provider: Provider | None, spill: SpillText
) -> NotesLayer:
    deps, folder, texts = opened.deps, opened.folder, read_notes_texts(opened.templates)
    settings, writer = deps.settings.notes, None
    if folder is not None:
        writer = NotesWriter(
            folder,
            opened.id,
            settings,
            texts,
            provider=provider,
            spill=spill,
            clock=deps.clock,
            emit=deps.emit,
        )
    return NotesLayer(
        steps.conversation,
        writer,
        folder=folder,
        session=opened.id,
        settings=settings,
        template=texts.template,
        clock=deps.clock,
        emit=deps.emit,
    )


def build_memories(opened: SessionResources, memory: MemoryDir | None) -> SessionMemories:
    deps = opened.deps
    return SessionMemories(
        opened.project,
        deps.settings.memory,
        home=opened.instructions.home,
        root=opened.instructions.root,
        memory=memory,
        clock=deps.clock,
        emit=deps.emit,
    )


def build_context(steps: ViewSteps, opened: SessionResources, memories: SessionMemories) -> ContextLayer:
    deps, records = opened.deps, opened.resumed.records if opened.resumed else ()
    inputs = ContextInputs(
        settings=deps.settings.context,
        instructions=opened.instructions,
        folder=Path(opened.start),
        read_index=memories.index,
        clock=deps.clock,
        emit=deps.emit,
        resumed_at=records[-1].record.at if records else None,
    )
    return ContextLayer(steps.conversation, inputs, is_resumed=opened.resumed is not None)


def build_recall(
    steps: ViewSteps,
    opened: SessionResources,
    memories: SessionMemories,
    provider: Provider | None,
    *,
    is_agent: bool,
) -> RecallLayer:
    deps, settings = opened.deps, opened.deps.settings.recall
    side = choose_side_query(
        steps.conversation.model,
        settings,
        provider,
        catalog=deps.catalog,
        today=deps.clock.now().date(),
        templates=opened.templates,
        is_agent=is_agent,
    )
    return RecallLayer(steps.conversation, memories, settings, side=side, clock=deps.clock, emit=deps.emit)
