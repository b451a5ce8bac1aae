"""What the model is told about itself and its surroundings.

The system prompt is rendered once a session and holds nothing that changes: no date, folder or branch. Those
are said beside the first prompt, and again when they have changed.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path

from sevenfold.core.errors import FileMissing
from sevenfold.store.files.folder import Folder
from sevenfold.store.git.root import read_branch

SYSTEM_PROMPT_FILE = "system.md"
MAX_PROMPT_BYTES = 256 * 1024


def render_system_prompt(templates: Folder | None = None) -> str:
    """The system prompt: the user's template where there is one, else ours."""
    if templates is not None:
        try:
            return (
                templates.read(SYSTEM_PROMPT_FILE, max_bytes=MAX_PROMPT_BYTES)
                .decode("utf-8", "replace")
                .strip()
            )
        except FileMissing:
            pass
    return _packaged()


@cache
def _packaged() -> str:
    return (files("sevenfold.agent") / "prompts" / SYSTEM_PROMPT_FILE).read_text(encoding="utf-8").strip()


@dataclass(frozen=True, slots=True)
class WorkEnvironment:
    """Where a session is at work."""

    cwd: Path
    branch: str
    system: str
    day: date

    @classmethod
    def read(cls, cwd: Path, root: Path, day: date) -> WorkEnvironment:
        """Read from git's own files: a repository can make git run code of its choosing."""
        return cls(cwd, read_branch(root), f"{platform.system()} {platform.release()}", day)

    def render(self) -> str:
        lines = [f"Working folder: {self.cwd}", f"System: {self.system}"]
        lines += [f"Git branch: {self.branch}"] if self.branch else ["Not a git repository"]
        return "\n".join((*lines, f"Today's date: {self.day.isoformat()}"))
