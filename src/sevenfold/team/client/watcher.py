"""While a session goes on, what is new in the team's folder is sent a moment after its last change.

It looks at texts and not at the disk's events: what an exchange itself has written is no news, so nothing
echoes; and only what a person or the engine stands behind is sent (see `store/memory/directory.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import LockBusy, SevenfoldError
from sevenfold.core.events import Emit, TeamStopped, ignore_event
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.team.client.memory import TeamMemory
from sevenfold.team.protocol import TeamKey

LOOK_SECONDS = 1.0
"""A look costs a file's size while nothing has changed."""
NOTICE_EVERY = 10
"""Looks between two searches for edits that came past the engine: those look at every file."""


class TeamWatcher:
    """Looks now and then, and exchanges when there is something to send."""

    def __init__(
        self,
        team: TeamMemory,
        memory: MemoryDir,
        *,
        is_behind: bool = False,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
    ) -> None:
        self._team, self._memory, self._emit = team, memory, emit
        self._is_behind = is_behind
        """The team's news did not come in time: they are had in the background, which has more of it."""
        self._clock = clock or SystemClock()
        self._looks = 0
        self._generation = -1
        self._unsent: Mapping[TeamKey, str] = {}
        self._since: datetime | None = None
        self._left: Mapping[TeamKey, str] = {}
        """What the last exchange did not take: as it is, the next one will not either."""

    async def run(self) -> None:
        """Until cancelled, or until there is nothing to look at any more, which is told."""
        try:
            while True:
                # Others are busy with the memories: a later look will do.
                with suppress(LockBusy):
                    await self.look()
                await asyncio.sleep(LOOK_SECONDS)
        except SevenfoldError as error:
            self._emit(TeamStopped(str(error)))

    async def finish(self) -> None:
        """For a session that ends: what is new does not wait for the next one, if the server is there."""
        try:
            if self._is_new(await run_blocking(self._team.read_unsent)):
                await self._team.push_news()
        except SevenfoldError as error:
            self._emit(TeamStopped(str(error)))

    async def look(self) -> None:
        generation = await self._next_generation()
        if generation != self._generation:
            self._take(await run_blocking(self._team.read_unsent))
            self._generation = generation
        if self._since is not None and self._is_due(self._since):
            report = await self._team.try_exchange(is_patient=True)
            if report is not None and report.is_settled:
                self._left = {key: text for key, text in self._unsent.items() if key in report.held}
                self._is_behind, self._since = False, None

    def _take(self, unsent: Mapping[TeamKey, str]) -> None:
        if not (self._is_behind or self._is_new(unsent)):
            self._since = None
        elif unsent != self._unsent or self._since is None:
            self._since = self._clock.now()
        self._unsent = unsent

    def _is_due(self, since: datetime) -> bool:
        """A clock that was set back does not hold it up."""
        now = self._clock.now()
        return now < since or now - since >= self._team.settings.push_after

    def _is_new(self, unsent: Mapping[TeamKey, str]) -> bool:
        return any(self._left.get(key) != text for key, text in unsent.items())

    async def _next_generation(self) -> int:
        self._looks += 1
        if self._looks % NOTICE_EVERY == 0:
            await run_blocking(self._memory.notice)
        return await run_blocking(self._memory.generation)
