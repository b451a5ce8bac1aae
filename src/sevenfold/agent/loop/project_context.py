"""What an agent opens with: settings, the project's folders, and the session to continue.

`StoredParams` are the request parameters that are stored with a session. `read_trusted_settings` asks a
person before settings files of a project take effect.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from sevenfold.agent.consent import Confirm, ConsentRequest
from sevenfold.agent.hooks.config import HookFolders
from sevenfold.agent.tools.planning import copy_tool_state
from sevenfold.core.catalog import Catalog, build_catalog
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import FileDamaged, FileMissing, NotRegular, SettingsError, WireError
from sevenfold.core.events import Emit, FrameLost, ignore_event
from sevenfold.core.json import JsonObject, freeze_object, read_object, write_json
from sevenfold.core.requests import RequestParams
from sevenfold.core.settings import Settings
from sevenfold.core.settings.sections import PlaceSettings
from sevenfold.core.text.safe_text import escape_controls
from sevenfold.session.opening import LATEST_SESSION, TEMPLATES_FOLDER, open_if_there
from sevenfold.session.settings import SETTINGS_SECTIONS
from sevenfold.store.files.disk import run_blocking
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project, has_project, open_project
from sevenfold.store.project.settings_files import (
    LOCAL_SETTINGS_FILE,
    Proposal,
    find_checkout,
    find_user_home,
    keep_consent,
    read_local_settings,
    read_proposals,
    read_settings,
)
from sevenfold.store.project.trust import Consent, TrustStore
from sevenfold.store.transcript.transcript import (
    SessionId,
    fork_transcript,
    is_agent_session,
    latest_session,
)

# Request parameters on disk, so that a resumed session sends the same bytes.
PARAMS_FILE = "frame.json"
MAX_PARAMS_BYTES = 8 * 1024 * 1024

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class StoredParams:
    frame: RequestParams
    surrounds: str = ""
    """What the model was last told about where it works."""


def write_stored_params(folder: Folder, stored: StoredParams) -> None:
    frame = stored.frame
    folder.replace(
        PARAMS_FILE,
        write_json(
            freeze_object(
                {
                    "model": frame.model,
                    "max_tokens": frame.max_tokens,
                    "system": frame.system,
                    "tools": frame.tools,
                    "params": frame.params,
                    "betas": frame.betas,
                    "surrounds": stored.surrounds,
                }
            )
        ),
    )


def read_stored_params(folder: Folder, emit: Emit = ignore_event) -> StoredParams | None:
    """None where there is none, or none that can be used: then it is made anew, which costs the cache."""
    try:
        return _read(read_object(folder.read(PARAMS_FILE, max_bytes=MAX_PARAMS_BYTES)))
    except FileMissing:
        return None
    except (FileDamaged, NotRegular, WireError) as error:
        emit(FrameLost(f"{folder.path}/{PARAMS_FILE}", str(error)))
        return None


def _read(wire: JsonObject) -> StoredParams:
    model, most = wire.get("model"), wire.get("max_tokens")
    system, params = wire.get("system"), wire.get("params")
    if not isinstance(model, str) or type(most) is not int or not isinstance(params, JsonObject):
        raise WireError("a stored frame needs a model, max_tokens and params")
    surrounds = wire.get("surrounds")
    frame = RequestParams(
        model=model,
        max_tokens=most,
        system=system if isinstance(system, str) else _all(wire, "system", JsonObject),
        tools=_all(wire, "tools", JsonObject),
        params=params,
        betas=_all(wire, "betas", str),
    )
    return StoredParams(frame, surrounds if isinstance(surrounds, str) else "")


def _all(wire: JsonObject, key: str, kind: type[_Kind]) -> tuple[_Kind, ...]:
    """A list of which each is of that kind: half of the parameters would be sent as if it were all."""
    value = wire.get(key)
    found = [item for item in value if isinstance(item, kind)] if isinstance(value, tuple) else []
    if not isinstance(value, tuple) or len(found) < len(value):
        raise WireError(f"{key} of a stored frame is damaged; expected a list of {kind.__name__}")
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSelector:
    """Which session of which project an agent is wanted for."""

    project: Path
    session: str | None
    """By its id, or `latest`; None: a new one."""
    is_fork: bool
    settings: Mapping[str, Mapping[str, object]] | None
    trusts_local: bool = False
    """Whether somebody has agreed to the project-local settings file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectContext:
    """Open until `close`."""

    settings: Settings
    catalog: Catalog
    project: Project
    folders: HookFolders
    cwd: Path
    session: SessionId | None
    """The one to take up again; None: a new one."""
    stored: StoredParams | None
    """What that session was sent with."""
    templates: Folder | None
    memory: MemoryDir
    """What is remembered of the project, for everybody who works with the agent."""
    exits: ExitStack

    @classmethod
    def open(cls, wish: SessionSelector, environ: Mapping[str, str], clock: Clock, emit: Emit) -> Self:
        """Blocks on the disk: run it in a thread."""
        root = find_checkout(wish.project)
        # The session reads the same files, and reports what is refused.
        settings = read_settings(
            SETTINGS_SECTIONS,
            root=root,
            environ=environ,
            arguments=wish.settings,
            trusts_local=wish.trusts_local,
        )
        user_home = find_user_home(environ)
        home = settings.of(PlaceSettings).home_folder(user_home)
        with ExitStack() as exits:
            project = exits.enter_context(
                open_project(wish.project, settings, user_home=user_home, clock=clock, emit=emit)
            )
            session = _choose(project.sessions, wish, clock, emit)
            stored = None
            if session is not None:
                with project.sessions.subfolder(session) as folder:
                    stored = read_stored_params(folder, emit)
            return cls(
                settings=settings,
                catalog=build_catalog(settings),
                project=project,
                folders=HookFolders(home, user_home, root),
                cwd=Path(os.path.realpath(wish.project)),
                session=session,
                stored=stored,
                templates=open_if_there(home / TEMPLATES_FOLDER, exits),
                memory=exits.enter_context(MemoryDir(project, clock=clock, emit=emit)),
                exits=exits.pop_all(),
            )

    @property
    def root(self) -> Path:
        return self.folders.root or self.cwd

    def session_folder(self, session: SessionId) -> Path:
        return Path(self.project.sessions.path) / session

    def write_params(self, session: SessionId, stored: StoredParams) -> None:
        """Write down what a session is sent with. Blocks on the disk."""
        with self.project.sessions.subfolder(session) as folder:
            write_stored_params(folder, stored)

    def close(self) -> None:
        self.exits.close()


def _choose(sessions: Folder, wish: SessionSelector, clock: Clock, emit: Emit) -> SessionId | None:
    if wish.session is None:
        return None
    named = latest_session(sessions) if wish.session == LATEST_SESSION else SessionId(wish.session)
    if sessions.stat(f"{named}.jsonl") is None and not is_agent_session(named):
        raise FileMissing(
            f"no session {named!r} in {sessions.path}; take one that is there, or `{LATEST_SESSION}`"
        )
    if not wish.is_fork:
        return named
    child = fork_transcript(sessions, named, clock.now())
    with sessions.subfolder(named) as old, sessions.subfolder(child) as new:
        stored = read_stored_params(old, emit)
        if stored is not None:
            write_stored_params(new, stored)
        copy_tool_state(old, new, emit)
    return child


# A local file can name commands, allow tools and redirect the conversation, and may come from an archive. The
# committed file cannot, but it can switch off what protects the user or keeps costs low. Both need consent.


@dataclass(frozen=True, slots=True)
class LocalSettingsFile:
    """The one of the project that a path lies in."""

    project: Path
    environ: Mapping[str, str]
    clock: Clock
    settings: Mapping[str, Mapping[str, object]] | None = None
    """Given in the call, by section."""

    async def confirm_trust(self, confirm: Confirm) -> bool:
        """Whether it may count as the user's own. Asks where nobody has agreed to it as it is now."""
        root = await run_blocking(lambda: find_checkout(self.project))
        try:
            content = await run_blocking(lambda: read_local_settings(root))
        except SettingsError:
            return False  # reading the settings reports what is wrong with it
        if content is None:
            return False  # so that one which appears meanwhile does not count unseen
        kept = await run_blocking(lambda: self._find_consent(content))
        if kept != "unasked":
            return kept == "agreed"
        answer = await confirm(request_local_settings(root, content).question)
        if answer is not None:
            await run_blocking(lambda: self._keep_consent(content, is_agreed=answer))
        return bool(answer)

    async def ask_proposals(self, confirm: Confirm) -> None:
        """Ask about the files that came with the repository, where no answer to them as they are was kept.

        Nothing is kept where nobody could be asked; `read_settings` goes by what was.
        """
        root = await run_blocking(lambda: find_checkout(self.project))
        for proposal in await run_blocking(lambda: self._proposals(root)):
            if not proposal.waiting or proposal.consent != "unasked":
                continue
            answer = await confirm(_ask_proposal(proposal))
            if answer is not None:
                await run_blocking(
                    lambda proposal=proposal, answer=answer: self._keep(root, proposal, answer)
                )

    def _proposals(self, root: Path) -> tuple[Proposal, ...]:
        return read_proposals(SETTINGS_SECTIONS, root=root, environ=self.environ, arguments=self.settings)

    def _keep(self, root: Path, proposal: Proposal, answer: bool) -> None:
        user_home = find_user_home(self.environ)
        keep_consent(proposal, self._read(), root=root, user_home=user_home, is_agreed=answer)

    def is_trusted(self) -> bool:
        """Whether somebody has agreed to it as it is. Asks nobody, makes nothing; blocks on the disk."""
        try:
            content = read_local_settings(find_checkout(self.project))
        except SettingsError:
            return False
        return content is not None and self._find_consent(content) == "agreed"

    def _find_consent(self, content: bytes) -> Consent:
        if not has_project(self.project, self._read(), user_home=find_user_home(self.environ)):
            return "unasked"
        with self._open() as project:
            return TrustStore(project.control).find(LOCAL_SETTINGS_FILE, content)

    def _keep_consent(self, content: bytes, *, is_agreed: bool) -> None:
        with self._open() as project:
            TrustStore(project.control).keep(LOCAL_SETTINGS_FILE, content, is_agreed=is_agreed)

    def _open(self) -> Project:
        user_home = find_user_home(self.environ)
        return open_project(self.project, self._read(), user_home=user_home, clock=self.clock)

    def _read(self) -> Settings:
        """Without a word of the file itself, which must not say where agreements lie."""
        return read_settings(
            SETTINGS_SECTIONS,
            root=find_checkout(self.project),
            environ=self.environ,
            arguments=self.settings,
            trusts_local=False,
        )


def read_trusted_settings(project: Path, environ: Mapping[str, str]) -> Settings:
    """The settings that an agent of this project obeys: the project-local file's if somebody has agreed."""
    is_trusted = LocalSettingsFile(project, environ, SystemClock()).is_trusted()
    return read_settings(
        SETTINGS_SECTIONS, root=find_checkout(project), environ=environ, trusts_local=is_trusted
    )


def _ask_proposal(proposal: Proposal) -> str:
    text = escape_controls(proposal.content.decode("utf-8", "backslashreplace")).rstrip("\n")
    return (
        f"{proposal.file.path} came with the repository and says:\n{text}\n"
        f"These can weaken your protection or raise your costs: {proposal.keys}\nLet them count?"
    )


def request_local_settings(root: Path, content: bytes) -> ConsentRequest:
    """What a person is asked about a project-local file."""
    path = root / LOCAL_SETTINGS_FILE
    text = escape_controls(content.decode("utf-8", "backslashreplace")).rstrip("\n")
    lines = text.split("\n")
    return ConsentRequest(
        name=LOCAL_SETTINGS_FILE,
        path=path,
        content=content,
        wants=tuple(lines),
        # At the end, where it is seen however much of the file has run off the screen.
        question=f"{path} says:\n{text}\nLet all {len(lines)} lines of it count as settings of your own?",
    )
