"""What every action of `sevenfold team` uses: shared memories of a project, and how they are shown."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from sevenfold.cli.memory.context import MemoryContext, open_memory_context
from sevenfold.cli.screen import Screen, TableCell
from sevenfold.core.errors import InputError
from sevenfold.core.memories import TEAM_FOLDER
from sevenfold.core.settings.sections import SyncSettings
from sevenfold.store.files.folder import Folder
from sevenfold.team.client.local_state import (
    TeamAccess,
    TokenStore,
    find_team_access,
    read_membership,
)
from sevenfold.team.client.memory import DELETED, TeamMemory
from sevenfold.team.client.ports import SyncReport
from sevenfold.team.client.status import describe_team_status, find_conflicts, find_held, find_leaked
from sevenfold.team.protocol import TeamKey

TEAM_LOCK_TIMEOUT = timedelta(seconds=30)
"""For another process that exchanges just now: somebody waits at the terminal."""


@dataclass(frozen=True, slots=True)
class TeamContext:
    """A project's shared memories, joined or not, and the person who looks at them."""

    memory_context: MemoryContext
    folder: Folder
    """The project's, with what is known of its exchanges."""
    home: Folder
    settings: SyncSettings

    @property
    def screen(self) -> Screen:
        return self.memory_context.screen

    def open_team(self) -> TeamMemory:
        """The team, or `InputError` with how to join one."""
        joined = find_team_access(self.folder, self.home)
        if joined is None:
            raise InputError("this project has joined no server; `sevenfold team join URL` does that")
        return self.make_team(joined)

    def make_team(self, joined: TeamAccess) -> TeamMemory:
        return TeamMemory(
            joined, self.memory_context.memory, self.folder, self.settings, emit=self.memory_context.warn
        )

    def find_key(self, team: TeamMemory, name: str) -> TeamKey:
        """The shared memory that is meant by a name or a file."""
        bare = name.removeprefix("team/").removesuffix(".md")
        key = TeamKey(f"{bare}.md")
        if key not in team.files.read_all():
            raise InputError(
                f"there is no {key!r} among the shared memories; `sevenfold memory list` shows all"
            )
        return key


@contextmanager
def open_team_context(options: Namespace, screen: Screen) -> Generator[TeamContext]:
    with (
        open_memory_context(options, screen) as memory_context,
        memory_context.project.memory_state.subfolder(TEAM_FOLDER) as folder,
        Folder.open(memory_context.workspace.home, create=True) as home,
    ):
        settings = memory_context.workspace.settings.of(SyncSettings)
        yield TeamContext(memory_context, folder, home, settings)


def show_sync_status(context: TeamContext) -> None:
    """What is joined, what waits and what is in the way; no server is asked."""
    place = read_membership(context.folder)
    if place is None:
        if context.memory_context.is_json:
            context.screen.show_json({"joined": None})
        else:
            context.screen.show_line("this project has joined no server; `sevenfold team join URL` does that")
        return
    token = TokenStore(context.home).find(place.url, place.org)
    if not token:
        context.screen.note(
            f"note: there is no token for {place.url}; `sevenfold team join {place.url}` asks for one"
        )
    team = context.make_team(TeamAccess(place, token))
    if context.memory_context.is_json:
        context.screen.show_json(describe_team_status(team))
        return
    rows = [
        ("server", place.url),
        ("repository", place.repo_name),
        ("member", f"{place.member} of {place.org}"),
        ("shared", _count(len(team.files.read_all()))),
    ]
    context.screen.show_table([[TableCell(name, "faint"), TableCell(text)] for name, text in rows])
    _show_open(team, context.screen)


def _show_open(team: TeamMemory, screen: Screen) -> None:
    for key, what in sorted(team.read_unsent().items()):
        screen.show_line(f"to send: {key}{' (delete)' if what == DELETED else ''}")
    held = find_held(team)
    for key, reason in held.items():
        screen.show_line(f"held back: {key}: {reason}", "warning")
    for key, reason in find_leaked(team, held).items():
        screen.show_line(
            f"shared already: {key}: {reason}; others have it: change it where it is used, then take it out",
            "warning",
        )
    for one in find_conflicts(team):
        screen.show_line(f"conflict: {one.key} and {one.copy}", "warning")
    refusal = team.ledger.read_retry().refusal
    if refusal:
        screen.show_line(f"refused by the server: {refusal}", "warning")


def show_sync_report(report: SyncReport, screen: Screen) -> None:
    """What an exchange did; its warnings were printed as they came."""
    said = [
        f"{_count(len(keys))} {what}"
        for keys, what in (
            (report.taken, "received"),
            (report.dropped, "deleted by others"),
            (report.merged, "merged"),
            (report.sent, "sent"),
            (report.deleted, "deleted for all"),
        )
        if keys
    ]
    screen.show_line(", ".join(said) if said else "nothing new", "plain" if said else "faint")
    for one in report.conflicts:
        screen.show_line(
            f"conflict: {one.key} and {one.copy}; `sevenfold team conflicts` shows both", "warning"
        )
    if not report.is_settled:
        screen.show_line("others are changing the same memories; run it again", "warning")


def describe_sync_report(report: SyncReport) -> dict[str, object]:
    return {
        "taken": report.taken,
        "dropped": report.dropped,
        "merged": report.merged,
        "sent": report.sent,
        "deleted": report.deleted,
        "conflicts": [{"memory": one.key, "copy": one.copy} for one in report.conflicts],
        "kept": report.kept,
        "held": report.held,
        "lost": report.lost,
        "is_settled": report.is_settled,
    }


def _count(memories: int) -> str:
    return "1 memory" if memories == 1 else f"{memories:,} memories"
