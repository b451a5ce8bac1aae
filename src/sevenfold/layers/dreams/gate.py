"""Whether a dream is due by itself: the facts that its gates ask for, gathered one by one, cheapest first."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sevenfold.core.clock import Clock
from sevenfold.layers.dreams.policy import DreamFacts, DreamSettings, choose_dream_step
from sevenfold.store.files.lock import Lock
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.project.project import Project
from sevenfold.store.transcript.sessions import is_agent_session, list_sessions

SPREAD = timedelta(hours=1)
"""Over which the projects of a machine are spread, so that after a night not all dream at once."""


class DreamGate:
    """Asked after every turn. What it counted is remembered, so that most answers cost one small read."""

    def __init__(self, project: Project, lock: Lock, settings: DreamSettings, clock: Clock) -> None:
        self._project, self._lock, self._settings, self._clock = project, lock, settings, clock
        self._last_count: datetime | None = None
        self._sessions: int | None = None

    async def is_due(self, own: str) -> bool:
        """Whether the only thing left to do is to take the lock. `own` is the session that asks."""
        if not self._settings.enabled:
            return False
        facts = await run_blocking(self._read)
        step = choose_dream_step(facts, self._settings)
        if step == "count sessions":
            self._sessions = await run_blocking(lambda: self._count(facts.last_dream, own))
            self._last_count = facts.now
            counted = replace(facts, last_count=self._last_count, sessions_since=self._sessions)
            step = choose_dream_step(counted, self._settings)
        return step == "take lock"

    def forget(self) -> None:
        """There was a dream: what was counted is of another night."""
        self._last_count = self._sessions = None

    def _read(self) -> DreamFacts:
        state = self._lock.read_state()
        return DreamFacts(
            now=self._clock.now(),
            last_dream=state.last_success,
            last_attempt=state.last_attempt,
            strikes=state.strikes,
            spread=self._spread(),
            last_count=self._last_count,
            sessions_since=self._sessions,
        )

    def _spread(self) -> timedelta:
        digest = hashlib.sha256(self._project.id.encode()).digest()
        return SPREAD * int.from_bytes(digest[:2], "big") / 2**16

    def _count(self, last: datetime | None, own: str) -> int:
        since = last or datetime.fromtimestamp(0, UTC)
        return sum(
            entry.modified > since and entry.id != own and not is_agent_session(entry.id)
            for entry in list_sessions(self._project.sessions)
        )
