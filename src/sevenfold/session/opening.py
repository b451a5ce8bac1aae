"""Opens the workspace of a project.

Options make a `Workspace`: it reads the settings once, opens the project once and builds the model catalog
once. Sessions, agents and commands are built from it. Commands that need no session load this module and
none of the layers: what only some of them ask for is imported when it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Self

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import FileMissing, SettingsError
from sevenfold.core.events import Emit, Event
from sevenfold.core.settings import MemorySettings, PlaceSettings, Settings, SettingsSection
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import (
    Project,
    locate_memory_state,
    locate_project,
    open_project,
    open_user_wide,
)
from sevenfold.store.project.settings_files import Proposal, SettingsFiles, find_checkout
from sevenfold.store.project.trust import Consent, TrustStore

if TYPE_CHECKING:
    from sevenfold.core.prices import Catalog
    from sevenfold.core.tokens import WindowSettings
    from sevenfold.core.tokens.estimation import TokenEstimator
    from sevenfold.store.project.instructions import InstructionPaths
    from sevenfold.store.transcript.transcript import SessionId

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
    sections: tuple[type[SettingsSection], ...] | None = None
    """The sections of settings that are read and checked, `PlaceSettings` and `MemorySettings` among them;
    None: all of them, which loads every layer."""


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
        is_part = options.sections is not None
        sections = options.sections if options.sections is not None else _load_all_sections()
        return cls(options, files, files.resolve(sections, trusts_local=trusts_local, is_part=is_part))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def emit(self, event: Event) -> None:
        self._emit(event)

    def listen(self, emit: Emit, *, replay: Emit | None = None) -> None:
        """Send events to `emit` from now on, and earlier ones to `replay`, or to `emit` without one."""
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
        from sevenfold.store.project.instructions import InstructionPaths

        start = None if self.is_in_memory else self.cwd
        return InstructionPaths(home=self.home, user_home=self.user_home, root=self._files.root, start=start)

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """The settings files that came with the repository, and what was answered about each."""
        return self._files.proposals(_load_all_sections())

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
        from sevenfold.core.prices import build_catalog

        return build_catalog(self.settings)

    @cached_property
    def estimator(self) -> TokenEstimator:
        from sevenfold.core.tokens import WindowSettings

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
    """The settings files of a workspace, for a caller that asks about them before it opens one."""
    root = find_checkout(options.project) if options.project is not None else None
    return SettingsFiles.read(root, environ=options.environ, arguments=options.settings)


def _load_all_sections() -> tuple[type[SettingsSection], ...]:
    from sevenfold.session.settings import SETTINGS_SECTIONS

    return SETTINGS_SECTIONS


def choose_estimator(settings: WindowSettings) -> TokenEstimator:
    """The estimator for tokens that were not billed. May read a tokenizer from disk."""
    from sevenfold.core.tokens.estimation import ESTIMATORS, EXACT_ESTIMATOR_NAME

    if settings.estimator != EXACT_ESTIMATOR_NAME:
        return ESTIMATORS[settings.estimator]
    if settings.tokenizer is None:
        raise SettingsError(
            "window.estimator = 'exact' counts with a tokenizer; name its file with window.tokenizer"
        )
    # Not before it is needed: it comes with the client of local servers.
    from sevenfold.providers.local import open_exact_estimator

    return open_exact_estimator(Path(settings.tokenizer))
