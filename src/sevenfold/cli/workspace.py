"""The workspace of a command: what the settings say, and the project's folders when they are needed."""

from __future__ import annotations

import os
from pathlib import Path

from sevenfold.core.errors import InputError
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.settings import SettingsSection
from sevenfold.session.opening import Workspace, WorkspaceOptions


def open_workspace(
    project: Path | None = None,
    *,
    trusts_local: bool | None = None,
    emit: Emit = ignore_event,
    sections: tuple[type[SettingsSection], ...] | None = None,
) -> Workspace:
    """The workspace of the folder that `--project` names, or of the working folder. Makes nothing.

    The project-local settings file counts if somebody has agreed to it, as for an agent. A command that needs
    few `sections` of the settings names them, and loads the modules of these alone.
    """
    if project is not None:
        require_folder(project)
    options = WorkspaceOptions(
        project=project or Path(), trusts_local=trusts_local, environ=os.environ, sections=sections
    )
    workspace = Workspace.open(options)
    workspace.listen(emit)
    return workspace


def require_folder(project: Path) -> None:
    if not project.is_dir():
        raise InputError(
            f"--project {str(project)!r} is not a folder; name the project's folder, or one in it"
        )
