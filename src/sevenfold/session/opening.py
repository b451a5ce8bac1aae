"""Opens the workspace of a project, and sessions in it.

Options make a `Workspace`: it reads the settings once, opens the project once and builds the model catalog
once. Sessions, agents and commands are built from it. `SessionResources` is what one session opens in
addition: its folder, its log and, for a session that is resumed, its transcript.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Self

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import FileMissing, SettingsError
from sevenfold.core.events import Emit, Event, emit_to_both
from sevenfold.core.prices import Catalog, build_catalog
from sevenfold.core.settings import Settings
from sevenfold.core.settings.sections import MemorySettings, PlaceSettings
from sevenfold.core.tokens import WindowSettings
from sevenfold.core.tokens.estimation import ESTIMATORS, EXACT_ESTIMATOR_NAME, TokenEstimator
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.context import ContextSettings
from sevenfold.layers.journal import DiskJournal, NoJournal
from sevenfold.layers.memory.recall.policy import RecallSettings
from sevenfold.layers.microcompact.facts import MicrocompactSettings
from sevenfold.layers.microcompact.server_clearing import ServerEditSettings
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.tool_results.policy import ToolResultSettings
from sevenfold.layers.tool_results.spill import SpillStore
from sevenfold.session.budget import SpendSettings
from sevenfold.session.cache.placement import CacheSettings
from sevenfold.session.governor import Governor, SpendStore
from sevenfold.session.settings import SETTINGS_SECTIONS, PipelineSettings, SessionDeps
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.instructions import InstructionPaths
from sevenfold.store.project.project import (
    Project,
    locate_memory_state,
    locate_project,
    open_project,
    open_user_wide,
)
from sevenfold.store.project.settings_files import Proposal, SettingsFiles, find_checkout
from sevenfold.store.project.trust import Consent, TrustStore
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
class WorkspaceOptions:
    """Which workspace to open."""

    project: Path | None
    """Any path in the project; None: nothing is kept on disk."""
    settings: Mapping[str, Mapping[str, object]] | None = None
    """Settings given in the call, by section, as in a settings file."""
    trusts_local: bool | None = None
    """Whether the project-local settings file is the user's own; None: if somebody has agreed to it."""
    clock: Clock = field(default_factory=SystemClock)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class Workspace:
    """What all sessions, agents and commands of a project share: settings, folders, models and memory.

    Settings are read when it is opened. Everything else is opened when it is first needed, once. Whatever
    blocks on the disk may be called from any thread.
    """

    def __init__(self, options: WorkspaceOptions, files: SettingsFiles, settings: Settings) -> None:
        self.settings, self.clock, self.environ = settings, options.clock, options.environ
        self.home, self.user_home = settings.of(PlaceSettings).home_folder(files.user_home), files.user_home
        self.events: list[Event] = list(settings.refused)
        """What happened before anybody listened."""
        self._options, self._files = options, files
        self._emit: Emit = self.events.append
        self.has_listener = False
        self._lock, self._exits = RLock(), ExitStack()
        self._project: Project | None = None
        self._memory: MemoryDir | None = None
        self._templates: Folder | None = None
        self._has_looked_for_templates = False
        files.emit = self.emit

    @classmethod
    def open(cls, options: WorkspaceOptions, files: SettingsFiles | None = None) -> Self:
        """Read the settings, unless their files were read already. Blocks on the disk."""
        if files is None:
            files = read_settings_files(options)
        trusts_local = options.trusts_local
        if trusts_local is None:
            trusts_local = files.local_consent == "agreed"
        return cls(options, files, files.resolve(SETTINGS_SECTIONS, trusts_local=trusts_local))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def emit(self, event: Event) -> None:
        self._emit(event)

    def listen(self, emit: Emit, *, replay: Emit | None = None) -> None:
        """From now on events go there. What happened before anybody listened goes to `replay` or there."""
        for event in self.events:
            (replay or emit)(event)
        self._emit, self.has_listener = emit, True

    @property
    def is_in_memory(self) -> bool:
        """Whether there is no project, so that nothing is kept on disk."""
        return self._options.project is None

    @property
    def cwd(self) -> Path:
        """Where the work starts: a folder of the project."""
        return Path(os.path.realpath(self._options.project or Path()))

    @property
    def root(self) -> Path:
        """The top of the checkout."""
        return self._files.root or self.cwd

    @property
    def paths(self) -> InstructionPaths:
        start = None if self.is_in_memory else self.cwd
        return InstructionPaths(home=self.home, user_home=self.user_home, root=self._files.root, start=start)

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """The settings files that came with the repository, and what was answered about each."""
        return self._files.proposals(SETTINGS_SECTIONS)

    @property
    def local_settings(self) -> bytes | None:
        """The project-local settings file; None where there is none that may be the user's own."""
        return self._files.local_content

    def find_consent(self, name: str, content: bytes) -> Consent:
        """What a person has answered about a file of the repository. Makes nothing."""
        return self._files.find_consent(name, content)

    def keep_consent(self, name: str, content: bytes, *, is_agreed: bool) -> None:
        """Keep a person's answer. That about a settings file counts for workspaces that are opened later."""
        self._files.keep_consent(name, content, is_agreed=is_agreed)

    @cached_property
    def catalog(self) -> Catalog:
        return build_catalog(self.settings)

    @cached_property
    def estimator(self) -> TokenEstimator:
        return choose_estimator(self.settings.of(WindowSettings))

    @property
    def project_folder(self) -> Path:
        """Where the project's folder is, or would be: nothing is made."""
        return locate_project(self.home, self._files.project_root)

    @property
    def memory_state_folder(self) -> Path:
        """Where the state of the memory directory is, or would be: nothing is made."""
        return locate_memory_state(self.settings, self._files.project_root, self.user_home)

    @property
    def project_root(self) -> Path:
        """The root that names the project: of a worktree, the repository's."""
        return self._files.project_root

    @property
    def project(self) -> Project:
        """Opens it, and makes its folders where there are none."""
        with self._lock:
            if self._project is None:
                project = open_project(
                    self.cwd,
                    self.settings,
                    user_home=self.user_home,
                    root=self._files.project_root,
                    clock=self.clock,
                    emit=self.emit,
                )
                self._project = self._exits.enter_context(project)
            return self._project

    @property
    def memory(self) -> MemoryDir:
        """What is remembered of the project."""
        with self._lock:
            if self._memory is None:
                trusts = self.settings.of(MemorySettings).trust_outside
                memory = MemoryDir(self.project, clock=self.clock, emit=self.emit, trusts_outside=trusts)
                self._memory = self._exits.enter_context(memory)
            return self._memory

    def open_user_wide(self) -> MemoryDir:
        """What is remembered for all projects; open until the workspace is closed."""
        with self._lock:
            project = self._exits.enter_context(open_user_wide(self.home, clock=self.clock, emit=self.emit))
            return self._exits.enter_context(MemoryDir(project, clock=self.clock, emit=self.emit))

    @property
    def trust(self) -> TrustStore:
        """What a person has answered about files of the repository."""
        return TrustStore(self.project.control)

    @property
    def templates(self) -> Folder | None:
        """Prompts and templates of the user's own, in place of ours."""
        with self._lock:
            if not self._has_looked_for_templates:
                with suppress(FileMissing):
                    self._templates = self._exits.enter_context(Folder.open(self.home / TEMPLATES_FOLDER))
                self._has_looked_for_templates = True
            return self._templates

    def session_folder(self, session: SessionId) -> Path:
        return Path(self.project.sessions.path) / session

    def close(self) -> None:
        with self._lock:
            self._exits.close()


def read_settings_files(options: WorkspaceOptions) -> SettingsFiles:
    """The settings files of a workspace, for whoever asks about them before it is opened."""
    root = find_checkout(options.project) if options.project is not None else None
    return SettingsFiles.read(root, environ=options.environ, arguments=options.settings)


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


def choose_estimator(settings: WindowSettings) -> TokenEstimator:
    """The estimator for tokens that were not billed. May read a tokenizer from disk."""
    if settings.estimator != EXACT_ESTIMATOR_NAME:
        return ESTIMATORS[settings.estimator]
    if settings.tokenizer is None:
        raise SettingsError(
            "window.estimator = 'exact' counts with a tokenizer; name its file with window.tokenizer"
        )
    # Not before it is needed: it comes with the client of local servers.
    from sevenfold.providers.local import open_exact_estimator

    return open_exact_estimator(Path(settings.tokenizer))
