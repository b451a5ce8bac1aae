"""Opens what a session works with, and builds the steps of the request path around one `Conversation`.

`SessionResources` is what one session opens beside the workspace: its folder, its log and, for a session
that is resumed, its transcript. `Session.prepare` runs the steps in order. `build_view_steps` makes those
that need no model, which is all that it takes to rebuild a view and look at it; the other functions make one
step each.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sevenfold.core.errors import FileMissing
from sevenfold.core.events import Emit, emit_to_both
from sevenfold.core.requests import Capabilities, RequestParams
from sevenfold.core.settings import MemorySettings, Settings
from sevenfold.core.tokens import WindowSettings
from sevenfold.layers.compaction.compactor import CompactionStateFile, Compactor
from sevenfold.layers.compaction.job import SpillText
from sevenfold.layers.compaction.layer import CompactionLayer, WindowPlan
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.compaction.summary_methods import read_summary_prompts
from sevenfold.layers.context import ContextSettings
from sevenfold.layers.context.layer import ContextInputs, ContextLayer
from sevenfold.layers.conversation import Conversation
from sevenfold.layers.conversation_state import DiskJournal, NoJournal
from sevenfold.layers.memory.recall.layer import RecallLayer, SessionMemories, choose_side_query
from sevenfold.layers.memory.recall.policy import RecallSettings, clear_recalled
from sevenfold.layers.microcompact.facts import MicrocompactSettings
from sevenfold.layers.microcompact.layer import ClearingTools, MicrocompactLayer
from sevenfold.layers.microcompact.server_clearing import ServerEditSettings
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.session_notes.writer import NotesLayer, NotesWriter
from sevenfold.layers.templates import read_notes_texts
from sevenfold.layers.tool_results.policy import ToolResultSettings
from sevenfold.layers.tool_results.spill import SpillLayer, SpillStore
from sevenfold.providers.provider import Provider
from sevenfold.session.budget import SpendSettings
from sevenfold.session.cache.breakpoints import RequestBuilder
from sevenfold.session.cache.placement import CacheSettings
from sevenfold.session.governor import Governor, SpendStore
from sevenfold.session.opening import LATEST_SESSION, Workspace
from sevenfold.session.settings import PipelineSettings, SessionDeps
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.instructions import InstructionPaths
from sevenfold.store.project.project import Project
from sevenfold.store.transcript.reader import ResumedSession, resume
from sevenfold.store.transcript.transcript import (
    EventLog,
    SessionId,
    hold_session,
    is_agent_session,
    latest_session,
    new_session_id,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResources:
    """What a session works with: settings, folders and files, open until `close`."""

    id: SessionId
    deps: SessionDeps
    folder: Folder | None
    """The session's own: notes, spills."""
    project: Project | None
    resumed: ResumedSession | None
    exits: ExitStack
    instructions: InstructionPaths
    templates: Folder | None = None
    """Prompts and templates of the user's own, in place of ours."""
    governor: Governor | None = None
    """Over what the session's forks spend; None where nothing is kept on disk."""
    log: EventLog | None = None

    @property
    def start(self) -> str:
        """Where the agent works; empty where nobody said."""
        return str(self.instructions.start or "")

    @classmethod
    def open(
        cls,
        workspace: Workspace,
        session: str | None = None,
        *,
        emit: Emit | None = None,
        clearable: Mapping[str, bool] | None = None,
        looks_only: bool = False,
        closes_workspace: bool = False,
    ) -> Self:
        """A new session, or the one with this id, or the `latest`. Blocks on the disk: run it in a thread.

        `clearable` says of the caller's tools whether layer 2 may clear their results. With `looks_only`
        nothing will be written: somebody else may have the session open.
        """
        with ExitStack() as exits:
            if closes_workspace:
                exits.callback(workspace.close)
            emit = emit or workspace.emit
            if workspace.is_in_memory:
                return cls(
                    id=new_session_id(),
                    deps=_make_deps(workspace, NoJournal(), emit, clearable=clearable),
                    folder=None,
                    project=None,
                    resumed=None,
                    exits=exits.pop_all(),
                    instructions=workspace.paths,
                )
            project, clock = workspace.project, workspace.clock
            named = _choose(project, session)
            folder = exits.enter_context(project.sessions.subfolder(named))
            if not looks_only:
                # Before anything of it is read: what somebody else is adding would be missing.
                exits.enter_context(hold_session(folder, named, clock, emit))
            log = EventLog(folder, clock, emit)
            for event in workspace.events:
                log.add(event)  # emitted before the log was open
            emit = emit_to_both(emit, log.add)
            store = SpendStore.open(workspace.home, emit=emit)
            exits.callback(store.close)
            rules, catalog = workspace.settings.of(SpendSettings), workspace.catalog
            governor = Governor(store, rules, session=named, catalog=catalog, clock=clock, emit=emit)
            spills = SpillStore(folder, workspace.settings.of(ToolResultSettings), emit=emit)
            exits.callback(spills.close)
            journal = DiskJournal(project.sessions, named, clock, emit)
            found = _resume(project.sessions, named, emit) if session else None
            for stored in (*found.kept, *found.records) if found else ():
                journal.note_offset(stored.record.id, stored.offset)
            return cls(
                id=named,
                deps=_make_deps(workspace, journal, emit, spills, clearable),
                folder=folder,
                project=project,
                resumed=found,
                exits=exits.pop_all(),
                instructions=workspace.paths,
                templates=workspace.templates,
                governor=governor,
                log=log,
            )

    async def write_events(self) -> None:
        """Write the events since the last call to the log."""
        if self.log is not None:
            await self.log.write()

    async def close(self) -> None:
        try:
            await self.deps.journal.close()
            await self.write_events()
        finally:
            self.exits.close()


def _make_deps(
    workspace: Workspace,
    journal: DiskJournal | NoJournal,
    emit: Emit,
    spills: SpillStore | None = None,
    clearable: Mapping[str, bool] | None = None,
) -> SessionDeps:
    return SessionDeps(
        settings=select_pipeline_settings(workspace.settings),
        catalog=workspace.catalog,
        clock=workspace.clock,
        emit=emit,
        journal=journal,
        spills=spills,
        estimator=workspace.estimator,
        clearable=clearable or {},
    )


def select_pipeline_settings(settings: Settings) -> PipelineSettings:
    return PipelineSettings(
        tool_results=settings.of(ToolResultSettings),
        compact=settings.of(CompactSettings),
        window=settings.of(WindowSettings),
        cache=settings.of(CacheSettings),
        notes=settings.of(NotesSettings),
        microcompact=settings.of(MicrocompactSettings),
        server_edits=settings.of(ServerEditSettings),
        context=settings.of(ContextSettings),
        memory=settings.of(MemorySettings),
        recall=settings.of(RecallSettings),
    )


def _resume(sessions: Folder, named: SessionId, emit: Emit) -> ResumedSession | None:
    """What was said so far; None for an agent's session that is named before it begins."""
    try:
        return resume(sessions, named, emit=emit)
    except FileMissing:
        if is_agent_session(named):
            return None
        raise


def _choose(project: Project, session: str | None) -> SessionId:
    if session is None:
        return new_session_id()
    return latest_session(project.sessions) if session == LATEST_SESSION else SessionId(session)


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
        spilling=steps.spilling,
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
