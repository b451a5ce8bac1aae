"""The settings of hooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sevenfold.core.settings import switch


@dataclass(frozen=True, slots=True)
class HookSettings:
    SECTION: ClassVar[str] = "hooks"

    enabled: bool = switch(True)
    """On: nothing is run unless a file names it. Off runs no hook, whatever names one."""

    claude_files: bool = switch(True)
    """On: a project's hooks in .claude say the same to any agent, and are run once a person has agreed."""

    claude_user_file: bool = switch(False)
    """Off: what a person had another agent run is theirs to share; on reads ~/.claude/settings.json too."""
