"""How a team's memories are exchanged, as settings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from sevenfold.core.settings import amount, choice, limit, switch


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncSettings:
    SECTION: ClassVar[str] = "sync"

    enabled: bool = switch(True)
    """On, and without effect until `sevenfold team join`. Off: only the commands exchange anything."""

    policy: str = choice("merge", "merge", "mirror")
    """Merge: two changes of one memory are put together, or both kept. Mirror: a pull takes the server's text
    and a push sends the file's, and what that overwrites is in the local history alone."""

    pull_seconds: int = limit(4, at_least=1, at_most=60)
    """How long a session waits for the team's news before its prompt is made: as long as a person does."""

    push_after_seconds: int = amount(2, at_least=1, at_most=3_600)
    """After the last change: a memory is often written twice in a row."""

    timeout_seconds: int = limit(20, at_least=1, at_most=600)
    """Of one request in the background: a large upload over a slow line takes ten."""

    @property
    def push_after(self) -> timedelta:
        return timedelta(seconds=self.push_after_seconds)

    @property
    def timeout(self) -> timedelta:
        return timedelta(seconds=self.timeout_seconds)
