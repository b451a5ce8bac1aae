"""What the project shares with a team, what waits, and its conflicts, which can be resolved here."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from difflib import unified_diff

from sevenfold.core.errors import InputError, TeamError
from sevenfold.core.events import ignore_event
from sevenfold.core.memories import TEAM_FOLDER, TEAM_PREFIX
from sevenfold.core.settings.sections import SyncSettings
from sevenfold.session.opening import Workspace
from sevenfold.store.files.folder import Folder
from sevenfold.team.client.local_state import TeamAccess, TokenStore, read_membership
from sevenfold.team.client.memory import TeamMemory
from sevenfold.team.client.status import (
    ResolvedConflict,
    choose_conflict_text,
    describe_team_status,
    find_conflict,
    find_conflicts,
    settle_conflict,
)
from sevenfold.ui.calls import PageCall, PageRoute, route_get, route_post

TEAM_WAIT = timedelta(seconds=10)
"""For another process that exchanges just now: somebody waits for the page."""


class TeamPages:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def routes(self) -> Sequence[PageRoute]:
        return (route_get("team", self.show), route_post("team/resolve", self.resolve))

    def show(self, _: PageCall) -> object:
        """No server is asked."""
        with self._opened() as team:
            if team is None:
                return {"joined": None}
            files = team.files.read_all()
            conflicts = [
                {
                    "memory": one.key,
                    "copy": one.copy,
                    "seen": self._find_hash(one.key),
                    "diff": "\n".join(
                        unified_diff(
                            (files[one.key].text if one.key in files else "").splitlines(),
                            files[one.copy].text.splitlines(),
                            one.key,
                            one.copy,
                            lineterm="",
                        )
                    ),
                }
                for one in find_conflicts(team)
            ]
            return {**describe_team_status(team), "conflicts": conflicts}

    def resolve(self, call: PageCall) -> object:
        """Keep one of two texts. The others hear of it now, or with the next exchange."""
        take, copy = call.text("take"), call.text("copy")
        if take not in ("original", "copy"):
            raise InputError(f"take is {take[:40]!r}; expected original or copy")
        with self._opened() as team:
            if team is None:
                raise InputError("this project has joined no server; `sevenfold team join URL` does that")
            conflict = find_conflict(team, copy)
            text = choose_conflict_text(team, conflict, take)
            resolved = ResolvedConflict(conflict, text, call.text("seen", "") or None)
            asyncio.run(settle_conflict(team, self._workspace.memory, resolved, wait=TEAM_WAIT))
            return {"memory": conflict.key, "waiting": _exchange(team)}

    def _find_hash(self, key: str) -> str:
        stored = self._workspace.memory.find(f"{TEAM_PREFIX}{key}")
        return "" if stored is None else stored.sha256

    @contextmanager
    def _opened(self) -> Generator[TeamMemory | None]:
        workspace = self._workspace
        with (
            workspace.project.memory_state.subfolder(TEAM_FOLDER) as folder,
            Folder.open(workspace.home, create=True) as home,
        ):
            place = read_membership(folder)
            if place is None:
                yield None
                return
            access = TeamAccess(place, TokenStore(home).find(place.url, place.org))
            settings = workspace.settings.of(SyncSettings)
            yield TeamMemory(access, workspace.memory, folder, settings, emit=ignore_event)


def _exchange(team: TeamMemory) -> str:
    """Why the others do not know yet; empty: they do."""
    try:
        asyncio.run(team.exchange(wait=TEAM_WAIT))
    except TeamError as error:
        return str(error)
    return ""
