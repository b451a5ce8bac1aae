"""What one repository, request and organisation may use, and how fast."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta

from sevenfold.sync.protocol import MAX_BODY_BYTES, MAX_ENTRIES, MAX_FILE_BYTES, MAX_TOTAL_BYTES


@dataclass(frozen=True, slots=True)
class Limits:
    entries: int = MAX_ENTRIES
    """Living memories of a repository: a prompt shows an index of 200."""
    total_bytes: int = MAX_TOTAL_BYTES
    """Of all living memories of a repository."""
    kept_bytes: int = 1_000_000_000
    """Of a repository with its history: a hundred times all that may live at once."""
    waiting_bytes: int = 2 * MAX_TOTAL_BYTES
    """Of bodies that no commit has named yet: two whole pushes."""
    body_bytes: int = MAX_BODY_BYTES
    file_bytes: int = MAX_FILE_BYTES
    repos: int = 1_000
    """Of one organisation."""
    token_rate: int = 20
    """Requests a second of one token: a client asks a few times a minute."""
    org_rate: int = 200
    """Requests a second of one organisation, in each server process."""
    stranger_rate: int = 20
    """Requests a second without a token that is known, of one address."""
    burst_seconds: int = 5
    """How much of a rate may be used at once after a rest."""
    at_once: int = 8
    """Transactions of one organisation at the same time; the others' wait is not longer for it."""
    waiting: int = 2_000
    """Requests that wait for the database. Beyond, a refusal now is kinder than an answer too late."""
    tombstone_days: int = 90
    body_hours: int = 24
    """How long a body waits for its commit."""
    replay_days: int = 30
    """How long the answer to a commit is kept for whoever did not hear it."""

    @property
    def raw_bytes(self) -> int:
        """Of a request's JSON: one file in which every character is an escape of six."""
        return 6 * self.file_bytes + 100_000


MOST_BUCKETS = 50_000
"""Of those not used for longest, the rest is forgotten: they are full again anyway."""


class Buckets:
    """A bucket of permits for each name; it fills at a rate and holds some seconds' worth."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, max(1.0, burst)
        self._levels: OrderedDict[str, _Level] = OrderedDict()

    def look(self, name: str, now: timedelta) -> timedelta:
        """Zero if there is a permit, else how long until there is one."""
        permits = self._permits(name, now)
        return timedelta() if permits >= 1 else timedelta(seconds=(1 - permits) / self._rate)

    def take(self, name: str, now: timedelta) -> timedelta:
        """The same, and the permit is taken if there is one."""
        wait = self.look(name, now)
        if not wait:
            self._levels[name] = _Level(self._permits(name, now) - 1, now.total_seconds())
            self._levels.move_to_end(name)
            if len(self._levels) > MOST_BUCKETS:
                self._levels.popitem(last=False)
        return wait

    def _permits(self, name: str, now: timedelta) -> float:
        level = self._levels.get(name)
        if level is None:
            return self._burst
        return min(self._burst, level.permits + (now.total_seconds() - level.at) * self._rate)


@dataclass(frozen=True, slots=True)
class _Level:
    permits: float
    at: float
