"""A clock that can be put forward: an hour's idle gap costs a test, or a person at a terminal, no time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sevenfold.core.clock import Clock, ManualClock
from sevenfold.core.errors import InputError

LATEST_TIME = datetime(9000, 1, 1, tzinfo=UTC)
"""Dates end in 9999, and a cache entry's own times lie after those of the request that made it."""


@dataclass(slots=True)
class VirtualClock:
    """Another clock plus the time that was skipped. Over a `ManualClock` time passes only when told to."""

    under: Clock = field(default_factory=ManualClock)
    skipped: timedelta = timedelta()

    def now(self) -> datetime:
        return self.under.now() + self.skipped

    def uptime(self) -> timedelta:
        return self.under.uptime() + self.skipped

    def advance(self, elapsed: timedelta) -> datetime:
        """Skip some time; the new time is returned. Caches would misbehave if it could be put back."""
        if elapsed < timedelta():
            raise InputError(f"the clock cannot be put back by {-elapsed}; advance it by zero or more")
        left = LATEST_TIME - self.now()
        if elapsed > left:
            seconds, most = (int(each.total_seconds()) for each in (elapsed, left))
            raise InputError(f"the clock cannot be advanced by {seconds} seconds; at most {most} are left")
        self.skipped += elapsed
        return self.now()
