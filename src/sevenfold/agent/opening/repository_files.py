"""Files of a repository that count once a person has agreed, with what was answered about each.

For `sevenfold doctor` and `sevenfold settings`: nobody is asked, and nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.consent import ConsentRequest
from sevenfold.agent.hooks.config import HookFolders, read_hook_sources
from sevenfold.agent.loop.project_context import request_local_settings
from sevenfold.agent.mcp.servers import MCP_PROJECT_FILE, read_project_file, request_servers
from sevenfold.agent.subagents.definition_files import list_definition_folders, list_definition_requests
from sevenfold.core.errors import FileMissing, SevenfoldError, StoreError
from sevenfold.core.settings import Settings
from sevenfold.core.settings.sections import HookSettings, McpSettings, PlaceSettings
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.project import find_control, open_project
from sevenfold.store.project.settings_files import find_checkout, find_user_home, read_local_settings
from sevenfold.store.project.trust import Consent, TrustStore


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


def read_repository_files(project: Path, settings: Settings, environ: Mapping[str, str]) -> RepositoryFiles:
    """Those of the project that a path lies in. Blocks on the disk, and makes nothing."""
    root, user_home = find_checkout(project), find_user_home(environ)
    home = settings.of(PlaceSettings).home_folder(user_home)
    problems: list[FileProblem] = []
    requests = [
        *_local_settings(root),
        *_hooks(settings, HookFolders(home, user_home, root), problems),
        *_servers(settings, root, problems),
        *list_definition_requests(list_definition_folders(home, root)),
    ]
    return RepositoryFiles(
        tuple(RepositoryFile(request, _find_consent(home, root, request)) for request in requests),
        tuple(problems),
    )


def keep_answer(
    request: ConsentRequest, project: Path, settings: Settings, environ: Mapping[str, str], *, is_agreed: bool
) -> None:
    """Write down what a person has answered; it holds until the file changes."""
    with open_project(project, settings, user_home=find_user_home(environ)) as opened:
        TrustStore(opened.control).keep(request.name, request.content, is_agreed=is_agreed)


def _find_consent(home: Path, root: Path, request: ConsentRequest) -> Consent:
    try:
        with Folder.open(find_control(home, root)) as control:
            return TrustStore(control).find(request.name, request.content)
    except StoreError:
        return "unasked"  # no answer was ever kept for this project, or none can be read


def _local_settings(root: Path) -> Iterator[ConsentRequest]:
    with suppress(SevenfoldError):  # reading the settings reports what is wrong with it
        content = read_local_settings(root)
        if content is not None:
            yield request_local_settings(root, content)


def _hooks(settings: Settings, folders: HookFolders, problems: list[FileProblem]) -> Iterator[ConsentRequest]:
    for source in read_hook_sources(settings.of(HookSettings), folders):
        file = source.file
        problems += (FileProblem(file.path, one, not file.needs_trust) for one in source.found.problems)
        if source.found.hooks and file.needs_trust:
            yield source.request()


def _servers(settings: Settings, root: Path, problems: list[FileProblem]) -> Iterator[ConsentRequest]:
    mcp, path = settings.of(McpSettings), root / MCP_PROJECT_FILE
    if not mcp.enabled or not mcp.project_file:
        return
    try:
        found = read_project_file(path, root)
    except FileMissing:
        return
    except SevenfoldError as error:
        problems.append(FileProblem(path, str(error), is_users=False))
        return
    if found.servers:
        yield request_servers(path, found)
