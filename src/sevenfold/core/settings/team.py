"""Settings of the agents that an agent starts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from sevenfold.core.settings import amount, limit


@dataclass(frozen=True, slots=True)
class TeamSettings:
    SECTION: ClassVar[str] = "agents"

    at_once: int = limit(8, at_least=1, at_most=64)
    """More than a person can follow, and about what an account's rate limit bears. Others wait their turn."""

    fork_rounds: int = limit(50, at_least=1)
    """A fork cannot compact its context, so it is for work that ends before the window does."""

    progress_seconds: int = amount(30, at_most=86_400)
    """Often enough to see that an agent is alive, seldom enough to cost next to nothing. 0: never."""

    @property
    def progress_every(self) -> timedelta | None:
        return timedelta(seconds=self.progress_seconds) if self.progress_seconds else None
