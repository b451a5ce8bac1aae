"""A clock that can be put forward: an hour's idle gap costs a test, or a person at a terminal, no time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sevenfold.core.clock import Clock, ManualClock
from sevenfold.core.errors import InputError


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
        self.skipped += elapsed
        return self.now()
