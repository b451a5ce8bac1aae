"""The provider's prompt cache as documented: what a request reads, what it writes, and what it pays in full.

It has no clock and does no I/O: call `look_up` when a request starts and `begin_response` when its answer
starts. `docs/simulator-contract.md` numbers the rules; what is not documented is a field of `CacheChoices`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NewType

from sevenfold.core.cache.prompt_blocks import (
    DEFAULT_CACHE_CHOICES,
    FIVE_MINUTES,
    ONE_HOUR,
    BodyBreakpoint,
    BreakpointProblem,
    CacheChoices,
    PromptLevel,
    RefreshRule,
    find_breakpoint_problems,
    find_breakpoints,
)
from sevenfold.core.cache.rendered_prompt import (
    PartCounter,
    PromptDifference,
    PromptPart,
    RenderedPrompt,
    find_first_difference,
    render_prompt,
)
from sevenfold.core.canonical import Digest
from sevenfold.core.models import Model
from sevenfold.core.usage import TokenCounts

__all__ = [
    "DEFAULT_CACHE_CHOICES",
    "FIVE_MINUTES",
    "ONE_HOUR",
    "BodyBreakpoint",
    "BreakpointProblem",
    "CacheChoices",
    "CacheEntryKey",
    "CacheScope",
    "PartCounter",
    "PromptBill",
    "PromptCache",
    "PromptDifference",
    "PromptLevel",
    "PromptPart",
    "RefreshRule",
    "RenderedPrompt",
    "find_breakpoint_problems",
    "find_breakpoints",
    "find_first_difference",
    "render_prompt",
]

CacheScope = NewType("CacheScope", str)
"""Who shares a cache: a workspace."""

LOOKBACK_BLOCKS = 20
"""Positions that each breakpoint checks, its own included."""

COLLAPSED_KINDS = frozenset({"tool_use", "tool_result"})
"""Kinds of which a run is one position."""

EXPIRED_RETENTION = timedelta(days=1)
"""How long an entry is remembered after its death, so that a miss can be told from an expiry."""

SWEEP_AT = 4_096
"""Entries before the first look for forgotten ones; then at every doubling."""


@dataclass(frozen=True, slots=True)
class CacheEntryKey:
    """What an entry is found by."""

    scope: CacheScope
    model: str
    digest: Digest
    ttl: timedelta


@dataclass(frozen=True, slots=True)
class _Entry:
    touched: datetime
    """The start of the request that wrote it or read it last."""
    visible: datetime
    """When the answer to the request that wrote it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBill:
    """What became of a prompt's tokens. The four counts add up to all of it."""

    read: int
    written_5m: int
    written_1h: int
    fresh: int
    started: datetime
    hit: int | None
    """The last part that was read; None when nothing was."""
    expired: int | None
    """The last part after `hit` at which an entry was found dead: what a shorter pause would have read."""
    writes: tuple[CacheEntryKey, ...] = field(repr=False)
    """What `begin_response` makes readable."""

    @property
    def total(self) -> int:
        return self.read + self.written_5m + self.written_1h + self.fresh

    def counts(self, output: int = 0) -> TokenCounts:
        """The bill as usage has it."""
        return TokenCounts(
            fresh=self.fresh,
            read=self.read,
            written_5m=self.written_5m,
            written_1h=self.written_1h,
            output=output,
        )


class PromptCache:
    """All entries of all workspaces. Requests are looked up in the order in which they start.

    Not for sharing between threads: whoever serves requests has one loop.
    """

    __slots__ = ("_choices", "_entries", "_sweep_at")

    def __init__(self, choices: CacheChoices = DEFAULT_CACHE_CHOICES) -> None:
        self._choices = choices
        self._entries: dict[CacheEntryKey, _Entry] = {}
        self._sweep_at = SWEEP_AT

    def look_up(
        self, scope: CacheScope, model: Model, parts: Sequence[PromptPart], started: datetime
    ) -> PromptBill:
        """The bill of a request that starts now. What it reads lives on; what it writes nobody sees yet."""
        ends = list(accumulate(part.tokens for part in parts))
        markers = self._markers_in_force(parts, ends, model)
        search = _Search(
            entries=self._entries,
            scope=scope,
            model=model.name,
            parts=parts,
            started=started,
            choices=self._choices,
        )
        found = [item for marker in markers if (item := search.walk_back(marker)) is not None]
        best = max(found, key=lambda item: item.index, default=None)
        for key in self._refreshed(search, found, best):
            entry = self._entries[key]
            self._entries[key] = replace(entry, touched=max(entry.touched, started))
        hit = best.index if best else None
        writes = tuple(self._writes(search, markers, hit))
        counts = _billed(parts, ends, markers, hit)
        return PromptBill(
            read=counts.read,
            written_5m=counts.written_5m,
            written_1h=counts.written_1h,
            fresh=counts.fresh,
            started=started,
            hit=hit,
            expired=search.last_dead(hit),
            writes=writes,
        )

    def begin_response(self, bill: PromptBill, at: datetime) -> None:
        """The answer begins: what its request wrote can be read from now on. Again changes nothing."""
        for key in bill.writes:
            entry = self._entries.get(key)
            visible, touched = at, bill.started
            if entry is not None and bill.started <= entry.touched + key.ttl:
                visible, touched = min(visible, entry.visible), max(touched, entry.touched)
            self._entries[key] = _Entry(touched, visible)
        if len(self._entries) >= self._sweep_at:
            self._sweep(at)

    def __len__(self) -> int:
        """Entries that are remembered, the dead ones included."""
        return len(self._entries)

    def _markers_in_force(self, parts: Sequence[PromptPart], ends: Sequence[int], model: Model) -> list[int]:
        """The parts with a breakpoint whose prefix is long enough to be cached at all."""
        marked = [index for index, part in enumerate(parts) if part.ttl is not None]
        if self._choices.gates_each_marker:
            return [index for index in marked if ends[index] >= model.cache_min_tokens]
        return marked if marked and ends[marked[-1]] >= model.cache_min_tokens else []

    def _refreshed(
        self, search: _Search, found: Sequence[_Found], best: _Found | None
    ) -> Iterable[CacheEntryKey]:
        if best is None:
            return ()
        match self._choices.refresh:
            case "hit":
                return (best.key,)
            case "found":
                return (item.key for item in found)
            case "prefix":
                return [key for index in range(best.index + 1) for key in search.alive(index, None)]

    def _writes(self, search: _Search, markers: Sequence[int], hit: int | None) -> Iterator[CacheEntryKey]:
        for index in markers:
            is_below = hit is not None and index <= hit
            ttl = search.parts[index].ttl
            if ttl is None or (is_below and not self._choices.writes_below_hit):
                continue
            own = ttl if self._choices.hit_needs_ttl else None
            if not any(search.alive(index, own)):
                yield search.key(index, ttl)

    def _sweep(self, now: datetime) -> None:
        kept = {
            key: entry
            for key, entry in self._entries.items()
            if now <= entry.touched + key.ttl + EXPIRED_RETENTION
        }
        self._entries = kept
        self._sweep_at = max(SWEEP_AT, 2 * len(kept))


@dataclass(frozen=True, slots=True)
class _Found:
    index: int
    key: CacheEntryKey


@dataclass(slots=True, kw_only=True)
class _Search:
    """One request's way through the entries."""

    entries: dict[CacheEntryKey, _Entry]
    scope: CacheScope
    model: str
    parts: Sequence[PromptPart]
    started: datetime
    choices: CacheChoices
    dead: list[int] = field(default_factory=list[int])

    def key(self, index: int, ttl: timedelta) -> CacheEntryKey:
        return CacheEntryKey(self.scope, self.model, self.parts[index].digest, ttl)

    def alive(self, index: int, ttl: timedelta | None) -> Iterator[CacheEntryKey]:
        """The entries at a part that can be read now, of this TTL or of any."""
        for own in (ONE_HOUR, FIVE_MINUTES) if ttl is None else (ttl,):
            key = self.key(index, own)
            entry = self.entries.get(key)
            if entry is None or self.started < entry.visible:
                continue
            if self.started <= entry.touched + own:
                yield key
            else:
                self.dead.append(index)

    def walk_back(self, marker: int) -> _Found | None:
        """The nearest part at or before a breakpoint whose prefix was written, within the look-back."""
        ttl = self.parts[marker].ttl if self.choices.hit_needs_ttl else None
        found = (_Found(index, key) for index in self._window(marker) for key in self.alive(index, ttl))
        return next(found, None)

    def last_dead(self, hit: int | None) -> int | None:
        last = max(self.dead, default=None)
        return last if last is not None and (hit is None or last > hit) else None

    def _window(self, marker: int) -> Iterator[int]:
        positions = 0
        for index in range(marker, -1, -1):
            positions += not self._continues_run(index, marker)
            if positions > LOOKBACK_BLOCKS:
                return
            yield index

    def _continues_run(self, index: int, marker: int) -> bool:
        kind = self.parts[index].kind
        return (
            self.choices.collapses_runs
            and index < marker
            and kind in COLLAPSED_KINDS
            and self.parts[index + 1].kind == kind
        )


def _billed(
    parts: Sequence[PromptPart], ends: Sequence[int], markers: Sequence[int], hit: int | None
) -> TokenCounts:
    """Read up to the hit, write for an hour up to the last such breakpoint after it, for five minutes up to
    the last breakpoint, and the rest fresh."""
    read = 0 if hit is None else ends[hit]
    long = max((ends[index] for index in markers if parts[index].ttl == ONE_HOUR), default=0)
    long = max(long, read)
    last = ends[markers[-1]] if markers else 0
    total = ends[-1] if ends else 0
    return TokenCounts(fresh=total - last, read=read, written_5m=last - long, written_1h=long - read)
