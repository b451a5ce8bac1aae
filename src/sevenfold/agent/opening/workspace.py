"""Opens the workspace of an agent: asks a person about settings files, and finds the session to resume.

`StoredParams` are the request parameters that are stored with a session. `read_repository_files` lists the
files of a repository that need an agreement, with what was answered about each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sevenfold.agent.hooks.config import read_hook_sources
from sevenfold.agent.mcp.servers import MCP_PROJECT_FILE, read_project_file, request_servers
from sevenfold.agent.subagents.definition_files import list_definition_folders, list_definition_requests
from sevenfold.agent.tools.planning import copy_tool_state
from sevenfold.core.clock import Clock
from sevenfold.core.errors import FileDamaged, FileMissing, NotRegular, SevenfoldError, WireError
from sevenfold.core.events import Emit, ExtractionSkipped, FrameLost, ignore_event
from sevenfold.core.json import JsonObject, freeze_object, read_object, write_json
from sevenfold.core.requests import RequestParams
from sevenfold.core.settings.sections import HookSettings, McpSettings
from sevenfold.core.system import run_blocking
from sevenfold.core.text.safe_text import escape_controls
from sevenfold.layers.memory.extraction.settings import EXTRACTION_FILE, MAX_EXTRACTION_FILE_BYTES
from sevenfold.session.opening import LATEST_SESSION, Workspace, WorkspaceOptions, read_settings_files
from sevenfold.session.settings import SETTINGS_SECTIONS
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.settings_files import LOCAL_SETTINGS_FILE, Proposal, SettingsFiles
from sevenfold.store.project.trust import Confirm, Consent, ConsentRequest
from sevenfold.store.transcript.transcript import (
    SessionId,
    fork_transcript,
    is_agent_session,
    latest_session,
)


# A local file can name commands, allow tools and redirect the conversation, and may come from an archive. The
# committed file cannot, but it can switch off what protects the user or keeps costs low. Both need consent.
async def open_agent_workspace(options: WorkspaceOptions, confirm: Confirm) -> Workspace:
    """The workspace of an agent. Asks about settings files of the project that nobody has answered about."""
    files = await run_blocking(lambda: read_settings_files(options))
    await _ask_proposals(files, confirm)
    await _ask_local(files, confirm)
    return await run_blocking(lambda: Workspace.open(options, files))


async def _ask_proposals(files: SettingsFiles, confirm: Confirm) -> None:
    """Ask about the files that came with the repository. No answer is kept where nobody could be asked."""
    for proposal in await run_blocking(lambda: files.proposals(SETTINGS_SECTIONS)):
        if not proposal.waiting or proposal.consent != "unasked":
            continue
        answer = await confirm(_ask_proposal(proposal))
        if answer is not None:
            await run_blocking(
                lambda key=proposal.file.consent_key, content=proposal.content, answer=answer: (
                    files.keep_consent(key, content, is_agreed=answer)
                )
            )


async def _ask_local(files: SettingsFiles, confirm: Confirm) -> None:
    """Ask whether the project-local file is the user's own, where nobody has agreed to it as it is."""
    content, root = files.local_content, files.root
    if content is None or root is None or await run_blocking(lambda: files.local_consent) != "unasked":
        return
    answer = await confirm(request_local_settings(root, content).question)
    if answer is not None:
        await run_blocking(lambda: files.keep_consent(LOCAL_SETTINGS_FILE, content, is_agreed=answer))


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


@dataclass(frozen=True, slots=True)
class StoredSession:
    """The session that an agent goes on with."""

    id: SessionId
    params: StoredParams | None
    """What it was sent with."""


def find_stored_session(
    sessions: Folder, wanted: str, clock: Clock, emit: Emit, *, is_fork: bool
) -> StoredSession:
    """By its id, or `latest`; with `is_fork`, a copy of it under a new id. Blocks on the disk."""
    named = latest_session(sessions) if wanted == LATEST_SESSION else SessionId(wanted)
    if sessions.stat(f"{named}.jsonl") is None and not is_agent_session(named):
        raise FileMissing(
            f"no session {named!r} in {sessions.path}; take one that is there, or `{LATEST_SESSION}`"
        )
    if not is_fork:
        with sessions.subfolder(named) as folder:
            return StoredSession(named, read_stored_params(folder, emit))
    with sessions.subfolder(named) as old:
        # Before the transcript, in which what it says was looked through has to be.
        searched = _read_searched(old, named, emit)
    child = fork_transcript(sessions, named, clock.now())
    with sessions.subfolder(named) as old, sessions.subfolder(child) as new:
        if searched:
            new.replace(EXTRACTION_FILE, searched)
        stored = read_stored_params(old, emit)
        if stored is not None:
            write_stored_params(new, stored)
        copy_tool_state(old, new, emit)
    return StoredSession(child, stored)


def _read_searched(folder: Folder, session: SessionId, emit: Emit) -> bytes:
    """How far a session was looked through for memories; empty where that is not known."""
    try:
        return folder.read(EXTRACTION_FILE, max_bytes=MAX_EXTRACTION_FILE_BYTES)
    except FileMissing:
        return b""
    except (FileDamaged, NotRegular) as error:
        emit(ExtractionSkipped(session, f"a copy of it is read from its start again: {error}"))
        return b""


# Files of a repository that count once a person has agreed, with what was answered about each.
#
# For `sevenfold doctor` and `sevenfold settings`: nobody is asked, and nothing is run.


@dataclass(frozen=True, slots=True)
class RepositoryFile:
    """A file that needs an agreement."""

    request: ConsentRequest
    consent: Consent


@dataclass(frozen=True, slots=True)
class FileProblem:
    """What cannot be used of a file."""

    path: Path
    reason: str
    is_users: bool
    """Whether it is the user's own file."""


@dataclass(frozen=True, slots=True)
class RepositoryFiles:
    files: tuple[RepositoryFile, ...]
    problems: tuple[FileProblem, ...]


def read_repository_files(workspace: Workspace) -> RepositoryFiles:
    """Those of the project. Blocks on the disk, and makes nothing."""
    problems: list[FileProblem] = []
    requests = [
        *_local_settings(workspace),
        *_hooks(workspace, problems),
        *_servers(workspace, problems),
        *list_definition_requests(list_definition_folders(workspace.home, workspace.root)),
    ]
    return RepositoryFiles(
        tuple(
            RepositoryFile(request, workspace.find_consent(request.name, request.content))
            for request in requests
        ),
        tuple(problems),
    )


def _local_settings(workspace: Workspace) -> Iterator[ConsentRequest]:
    if (content := workspace.local_settings) is not None:
        yield request_local_settings(workspace.root, content)


def _hooks(workspace: Workspace, problems: list[FileProblem]) -> Iterator[ConsentRequest]:
    for source in read_hook_sources(workspace.settings.of(HookSettings), workspace.paths):
        file = source.file
        problems += (FileProblem(file.path, one, not file.needs_trust) for one in source.found.problems)
        if source.found.hooks and file.needs_trust:
            yield source.request()


def _servers(workspace: Workspace, problems: list[FileProblem]) -> Iterator[ConsentRequest]:
    mcp, path = workspace.settings.of(McpSettings), workspace.root / MCP_PROJECT_FILE
    if not mcp.enabled or not mcp.project_file:
        return
    try:
        found = read_project_file(path, workspace.root)
    except FileMissing:
        return
    except SevenfoldError as error:
        problems.append(FileProblem(path, str(error), is_users=False))
        return
    if found.servers:
        yield request_servers(path, found)
