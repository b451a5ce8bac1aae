"""How often memories were put before a model and what came of it; how warm that leaves each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal, TypeAlias

MemoryUseKind: TypeAlias = Literal["recalled", "shown", "unchanged", "changed", "given up", "acknowledged"]
"""`recalled` beside a prompt, or `shown` as a rule before an action; and then that action was repeated
unchanged, changed, or given up, and the rule acknowledged where it asks for that."""

MEMORY_USE_KINDS: tuple[MemoryUseKind, ...] = (
    "recalled",
    "shown",
    "unchanged",
    "changed",
    "given up",
    "acknowledged",
)

WARMING_KINDS: frozenset[MemoryUseKind] = frozenset({"recalled", "shown"})
"""What counts as a use; the others say what became of one."""

HALF_LIFE = timedelta(days=30)
"""A memory nobody needed for a month is worth half of what it was: about how long a piece of work lasts."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    memory: str
    """Its key."""
    kind: MemoryUseKind


@dataclass(frozen=True, slots=True)
class MemoryUses:
    """All uses of one memory."""

    counts: Mapping[MemoryUseKind, int] = field(
        default_factory=lambda: MappingProxyType[MemoryUseKind, int]({})
    )
    last: datetime | None = None
    """When it was last recalled or shown."""
    warmth: float = 0.0
    """As of then: each use adds one, and half of it is gone after every `HALF_LIFE`."""

    def count(self, kind: MemoryUseKind) -> int:
        return self.counts.get(kind, 0)

    def warmth_at(self, now: datetime) -> float:
        """0 for one that was never used, near it for one not used in a long time."""
        if self.last is None:
            return 0.0
        # A clock that was set back makes nothing warmer.
        return self.warmth * 0.5 ** (max(timedelta(), now - self.last) / HALF_LIFE)

    def with_use(self, kind: MemoryUseKind, now: datetime) -> MemoryUses:
        more: dict[MemoryUseKind, int] = {**self.counts, kind: self.count(kind) + 1}
        counts = MappingProxyType(more)
        if kind not in WARMING_KINDS:
            return replace(self, counts=counts)
        return MemoryUses(counts, max(now, self.last or now), self.warmth_at(now) + 1.0)


NO_USES = MemoryUses()


def add_uses(
    before: Mapping[str, MemoryUses], uses: Iterable[MemoryUse], now: datetime
) -> dict[str, MemoryUses]:
    """The same with these more."""
    after = dict(before)
    for use in uses:
        after[use.memory] = after.get(use.memory, NO_USES).with_use(use.kind, now)
    return after
