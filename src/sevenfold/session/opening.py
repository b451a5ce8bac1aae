"""Opens a session: reads settings, opens folders and, for a session that is resumed, reads its transcript."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sevenfold.core.catalog import build_catalog
from sevenfold.core.clock import Clock
from sevenfold.core.errors import FileMissing, SettingsError
from sevenfold.core.events import Emit, emit_to_both
from sevenfold.core.settings import Settings
from sevenfold.core.settings.sections import MemorySettings, PlaceSettings
from sevenfold.core.tokens import WindowSettings
from sevenfold.core.tokens.estimation import ESTIMATORS, EXACT_ESTIMATOR_NAME, TokenEstimator
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.context import ContextSettings
from sevenfold.layers.memory.recall.policy import RecallSettings
from sevenfold.layers.microcompact.facts import MicrocompactSettings
from sevenfold.layers.microcompact.server_clearing import ServerEditSettings
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.tool_results.policy import ToolResultSettings
from sevenfold.layers.tool_results.spill import SpillStore
from sevenfold.providers.exact_tokens import open_exact_estimator
from sevenfold.session.budget import SpendSettings
from sevenfold.session.cache.placement import CacheSettings
from sevenfold.session.governor import Governor, SpendStore
from sevenfold.session.settings import SETTINGS_SECTIONS, PipelineSettings, SessionDeps
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.instructions import InstructionPaths
from sevenfold.store.project.project import Project, open_project
from sevenfold.store.project.settings_files import find_checkout, find_user_home, read_settings
from sevenfold.store.transcript.journal import DiskJournal, NoJournal
from sevenfold.store.transcript.reader import ResumedSession, resume
from sevenfold.store.transcript.transcript import (
    EventLog,
    SessionId,
    hold_session,
    is_agent_session,
    latest_session,
    new_session_id,
)

LATEST_SESSION = "latest"
TEMPLATES_FOLDER = "templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """Which session to open."""

    project: Path | None
    """Any path in the project; None: nothing is kept on disk."""
    session: str | None = None
    """The one to take up again, or `latest`; None: a new one."""
    arguments: Mapping[str, Mapping[str, object]] | None = None
    """Settings given in the call, by section."""
    looks_only: bool = False
    """Nothing will be written: somebody else may have the session open."""
    trusts_local: bool = True
    """Whether the project-local settings file is the user's own."""


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
    def open(cls, wanted: SessionOptions, environ: Mapping[str, str], clock: Clock, emit: Emit) -> Self:
        """Blocks on the disk: run it in a thread."""
        root = find_checkout(wanted.project) if wanted.project else None
        settings = read_settings(
            SETTINGS_SECTIONS,
            root=root,
            environ=environ,
            arguments=wanted.arguments,
            trusts_local=wanted.trusts_local,
            emit=emit,
        )
        user_home = find_user_home(environ)
        home = settings.of(PlaceSettings).home_folder(user_home)
        start = Path(os.path.realpath(wanted.project)) if wanted.project else None
        instructions = InstructionPaths(home=home, user_home=user_home, root=root, start=start)
        if wanted.project is None:
            path, catalog = select_pipeline_settings(settings), build_catalog(settings)
            estimator = choose_estimator(path.window)
            around = SessionDeps(
                settings=path,
                catalog=catalog,
                clock=clock,
                emit=emit,
                journal=NoJournal(),
                estimator=estimator,
            )
            return cls(
                id=new_session_id(),
                deps=around,
                folder=None,
                project=None,
                resumed=None,
                exits=ExitStack(),
                instructions=instructions,
            )
        with ExitStack() as exits:
            project = exits.enter_context(
                open_project(wanted.project, settings, user_home=user_home, clock=clock, emit=emit)
            )
            named = _choose(project, wanted.session)
            folder = exits.enter_context(project.sessions.subfolder(named))
            if not wanted.looks_only:
                # Before anything of it is read: what somebody else is adding would be missing.
                exits.enter_context(hold_session(folder, named, clock, emit))
            path, catalog = select_pipeline_settings(settings), build_catalog(settings)
            log = EventLog(folder, clock, emit)
            for refusal in settings.refused:
                log.add(refusal)  # emitted before the log was open
            emit = emit_to_both(emit, log.add)
            book = SpendStore.open(home, emit=emit)
            exits.callback(book.close)
            rules = settings.of(SpendSettings)
            governor = Governor(book, rules, session=named, catalog=catalog, clock=clock, emit=emit)
            spills = SpillStore(folder, path.tool_results, emit=emit)
            exits.callback(spills.close)
            journal = DiskJournal(project.sessions, named, clock, emit)
            found = _resume(project.sessions, named, emit) if wanted.session else None
            for stored in (*found.kept, *found.records) if found else ():
                journal.note_offset(stored.record.id, stored.offset)
            around = SessionDeps(
                settings=path,
                catalog=catalog,
                clock=clock,
                emit=emit,
                journal=journal,
                spills=spills,
                estimator=choose_estimator(path.window),
            )
            templates = open_if_there(home / TEMPLATES_FOLDER, exits)
            return cls(
                id=named,
                deps=around,
                folder=folder,
                project=project,
                resumed=found,
                exits=exits.pop_all(),
                instructions=instructions,
                templates=templates,
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


def open_if_there(path: Path, exits: ExitStack) -> Folder | None:
    """A folder that stays open until `exits` does; None where there is none."""
    try:
        return exits.enter_context(Folder.open(path))
    except FileMissing:
        return None


def _choose(project: Project, session: str | None) -> SessionId:
    if session is None:
        return new_session_id()
    return latest_session(project.sessions) if session == LATEST_SESSION else SessionId(session)


def choose_estimator(settings: WindowSettings) -> TokenEstimator:
    """The estimator for tokens that were not billed. May read a tokenizer from disk."""
    if settings.estimator != EXACT_ESTIMATOR_NAME:
        return ESTIMATORS[settings.estimator]
    if settings.tokenizer is None:
        raise SettingsError(
            "window.estimator = 'exact' counts with a tokenizer; name its file with window.tokenizer"
        )
    return open_exact_estimator(Path(settings.tokenizer))
