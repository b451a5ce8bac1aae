"""Where Sevenfold keeps its files: the defaults, and the settings that change them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path, PurePath
from typing import ClassVar

from sevenfold.core.settings import SettingSource, amount, file_path, switch

HOME_FOLDER = ".sevenfold"
"""In the user's own folder."""


@dataclass(frozen=True, slots=True)
class PlaceSettings:
    SECTION: ClassVar[str] = "places"

    home: PurePath | None = file_path(
        None,
        alias="SEVENFOLD_HOME",
        never_from=(SettingSource.COMMITTED, SettingSource.LOCAL, SettingSource.USER),
        never_because="home is where the user file lies, for every project; set SEVENFOLD_HOME instead",
    )
    """Unset: ~/.sevenfold, where people look for what a tool keeps for them."""

    memory_dir: PurePath | None = file_path(None, alias="SEVENFOLD_MEMORY_DIR")
    """Unset: memory/ in the project's own folder under home, so that all worktrees share it and no repository
    holds it."""

    claude_memory: bool = switch(False)
    """Off: another agent's folder is its own. On keeps a project's memories where Claude Code does, so that
    both have the same; a `memory_dir` goes before it."""

    sweep_hours: int = amount(24, at_most=8_760)
    """Half-made files of dead writers cost nothing but room; looking for them goes through every folder."""

    @property
    def sweep_every(self) -> timedelta:
        return timedelta(hours=self.sweep_hours)

    def home_folder(self, user_home: Path) -> Path:
        """Where `home` is, said or not."""
        return user_home / HOME_FOLDER if self.home is None else Path(self.home)
