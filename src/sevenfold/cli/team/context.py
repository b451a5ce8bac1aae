"""What every action of `sevenfold team` works with."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import cast

from sevenfold.agent.loop.local_settings import read_trusted_settings
from sevenfold.cli.memory.context import MemoryContext, open_memory_context
from sevenfold.cli.screen import Screen
from sevenfold.core.errors import InputError
from sevenfold.core.settings.sync import SyncSettings
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.place_settings import PlaceSettings
from sevenfold.store.project.settings_files import find_user_home
from sevenfold.team.client.conflicts import is_conflict_copy, original_key
from sevenfold.team.client.membership import TEAM_FOLDER, TeamAccess, find_team_access
from sevenfold.team.client.memory import TeamMemory
from sevenfold.team.client.report import SyncConflict
from sevenfold.team.protocol import TeamKey

TEAM_LOCK_TIMEOUT = timedelta(seconds=30)
"""For another process that exchanges just now: somebody waits at the terminal."""


@dataclass(frozen=True, slots=True)
class TeamContext:
    """A project's shared memories, joined or not, and the person who looks at them."""

    desk: MemoryContext
    folder: Folder
    """The project's, with what is known of its exchanges."""
    home: Folder
    settings: SyncSettings

    @property
    def screen(self) -> Screen:
        return self.desk.screen

    def open_team(self) -> TeamMemory:
        """The team, or `InputError` with how to join one."""
        joined = find_team_access(self.folder, self.home)
        if joined is None:
            raise InputError("this project has joined no server; `sevenfold team join URL` does that")
        return self.make_team(joined)

    def make_team(self, joined: TeamAccess) -> TeamMemory:
        return TeamMemory(joined, self.desk.memory, self.folder, self.settings, emit=self.desk.warn)

    def find_key(self, team: TeamMemory, name: str) -> TeamKey:
        """The shared memory that is meant by a name or a file."""
        bare = name.removeprefix("team/").removesuffix(".md")
        key = TeamKey(f"{bare}.md")
        if key not in team.files.read_all():
            raise InputError(
                f"there is no {key!r} among the shared memories; `sevenfold memory list` shows all"
            )
        return key


def find_conflicts(team: TeamMemory) -> list[SyncConflict]:
    """Copies that were kept and not resolved yet, with the memory that each lies beside."""
    return [
        SyncConflict(original_key(key), key) for key in sorted(team.files.read_all()) if is_conflict_copy(key)
    ]


@contextmanager
def open_team_context(options: Namespace, screen: Screen) -> Generator[TeamContext]:
    settings = read_trusted_settings(cast("Path", options.project), os.environ)
    place = settings.of(PlaceSettings).home_folder(find_user_home(os.environ))
    with (
        open_memory_context(options, screen) as desk,
        desk.project.control.subfolder(TEAM_FOLDER) as folder,
        Folder.open(place, create=True) as home,
    ):
        yield TeamContext(desk, folder, home, settings.of(SyncSettings))
