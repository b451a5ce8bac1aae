"""Files of a repository that count once a person has agreed, with what was answered about each.

For `sevenfold doctor` and `sevenfold settings`: nobody is asked, and nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.consent import ConsentRequest
from sevenfold.agent.hooks.config import read_hook_sources
from sevenfold.agent.mcp.servers import MCP_PROJECT_FILE, read_project_file, request_servers
from sevenfold.agent.opening.workspace import request_local_settings
from sevenfold.agent.subagents.definition_files import list_definition_folders, list_definition_requests
from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.settings.sections import HookSettings, McpSettings
from sevenfold.session.opening import Workspace
from sevenfold.store.project.trust import Consent


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
