"""What an exchange did, for whoever asked for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sevenfold.team.protocol import TeamKey


@dataclass(frozen=True, slots=True)
class SyncConflict:
    key: TeamKey
    copy: TeamKey


@dataclass(slots=True, kw_only=True)
class SyncReport:
    """What an exchange did."""

    taken: list[TeamKey] = field(default_factory=list[TeamKey])
    dropped: list[TeamKey] = field(default_factory=list[TeamKey])
    merged: list[TeamKey] = field(default_factory=list[TeamKey])
    sent: list[TeamKey] = field(default_factory=list[TeamKey])
    deleted: list[TeamKey] = field(default_factory=list[TeamKey])
    conflicts: list[SyncConflict] = field(default_factory=list[SyncConflict])
    kept: dict[TeamKey, str] = field(default_factory=dict[TeamKey, str])
    held: dict[TeamKey, str] = field(default_factory=dict[TeamKey, str])
    """What is not exchanged for now, and why."""
    is_settled: bool = False
    """Whether it came to its end: nothing is left that it could have done."""

    @property
    def has_news(self) -> bool:
        return bool(self.taken or self.dropped or self.merged or self.sent or self.deleted)
