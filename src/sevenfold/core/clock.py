"""Time as an argument: nothing in the package asks the machine for the time except through a `Clock`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall clock, in UTC. People set it, so it may jump either way."""
        ...

    def uptime(self) -> timedelta:
        """Time since boot, sleep included. Never steps back while the machine is up: leases count by it."""
        ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def uptime(self) -> timedelta:
        # CLOCK_BOOTTIME goes on through a laptop's sleep; CLOCK_MONOTONIC stops there on Linux, which would
        # stretch a lease by the length of the nap. macOS's monotonic clock is the nearest it has.
        which = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return timedelta(microseconds=time.clock_gettime_ns(which) // 1000)


@dataclass(slots=True)
class ManualClock:
    """A clock that stands still until it is told to move: an hour's wait costs a test nothing."""

    wall: datetime = field(default_factory=lambda: datetime(2026, 11, 15, tzinfo=UTC))
    up: timedelta = timedelta(hours=1)

    def now(self) -> datetime:
        return self.wall

    def uptime(self) -> timedelta:
        return self.up

    def pass_time(self, elapsed: timedelta) -> None:
        """Both clocks move on together, as they do on a healthy machine."""
        self.wall += elapsed
        self.up += elapsed

    def step_wall(self, jump: timedelta) -> None:
        """Somebody sets the wall clock; uptime does not notice."""
        self.wall += jump
