"""Laptops of a team on one live server: real folders, real HTTP, real database."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sevenfold.cli.team.serve import open_database
from sevenfold.core.clock import ManualClock
from sevenfold.core.events import Event
from sevenfold.core.memories import TEAM_FOLDER, Origin
from sevenfold.core.settings.sections import SyncSettings
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import ANYTHING, Remove, Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.project.project import Project
from sevenfold.team.client.local_state import Membership, TeamAccess, write_membership
from sevenfold.team.client.memory import TeamMemory
from sevenfold.team.server.database import Database
from tests.team.live import Live, serving
from tests.team.team import Team

PERSON = Origin(who="user", why="wrote it", said_by="user")


@dataclass(slots=True, kw_only=True)
class Laptop:
    """One person's machine."""

    team: TeamMemory
    memory: MemoryDir
    folder: Folder
    clock: ManualClock
    events: list[Event]

    def write(self, key: str, text: str) -> None:
        self.memory.commit([Write(f"team/{key}", text, ANYTHING)], PERSON)

    def remove(self, key: str) -> None:
        self.memory.commit([Remove(f"team/{key}", ANYTHING)], PERSON)

    def texts(self) -> dict[str, str]:
        return {key: local.text for key, local in self.team.files.read_all().items()}

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


@dataclass(slots=True)
class Office:
    """A server, a team on it, and a place for laptops."""

    live: Live
    people: Team
    place: Path
    exits: ExitStack

    def laptop(self, name: str, *, settings: SyncSettings | None = None, url: str = "") -> Laptop:
        root = self.place / name / "app"
        root.mkdir(parents=True, exist_ok=True)
        events: list[Event] = []
        project = self.exits.enter_context(Project.open(root, home=self.place / name / "home"))
        memory = self.exits.enter_context(MemoryDir(project, emit=events.append))
        folder = self.exits.enter_context(project.control.subfolder(TEAM_FOLDER))
        place = Membership(
            url=url or self.live.url, repo=self.people.repo, repo_name="acme/app", org="acme", member="ada"
        )
        write_membership(folder, place)
        joined = TeamAccess(place, self.people.token)
        clock = ManualClock()
        team = TeamMemory(joined, memory, folder, settings or SyncSettings(), clock=clock, emit=events.append)
        return Laptop(team=team, memory=memory, folder=folder, clock=clock, events=events)

    def with_token(self, laptop: Laptop, token: str) -> None:
        laptop.team.joined = replace(laptop.team.joined, token=token)


@dataclass(frozen=True, slots=True)
class Hall:
    """A server that several teams share, since starting one takes a moment."""

    live: Live
    database: Database


@contextmanager
def hall(place: Path) -> Generator[Hall]:
    database = open_database(f"sqlite:///{place}/team.db")
    try:
        with serving(database) as live:
            yield Hall(live, database)
    finally:
        database.close()


@contextmanager
def office(in_hall: Hall, place: Path) -> Generator[Office]:
    with ExitStack() as exits:
        yield Office(in_hall.live, Team(in_hall.database, now_ms=int(time.time() * 1000)), place, exits)
