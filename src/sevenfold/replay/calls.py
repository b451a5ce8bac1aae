"""Model calls out of a transcript's entries, each once and in order.

A call is spread over several lines, with results of its first tools between them; what was said while it was
being logged was said after it. Lanes do not mix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from sevenfold.core.messages import Block, ToolResult
from sevenfold.core.usage import Usage
from sevenfold.store.foreign.entries import (
    Answered,
    CallId,
    Cleared,
    Compacted,
    Dialect,
    LaneId,
    LineKey,
    Said,
)
from sevenfold.store.foreign.repeats import digest

MOST_HELD = 64
"""Results that a call's tools may have returned before its bill comes; real calls have a dozen."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one line of a call holds."""

    key: LineKey
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Call:
    lane: LaneId
    id: CallId
    model: str
    parts: tuple[Part, ...]
    usage: Usage | None
    """None where the log holds no bill."""
    at: datetime | None
    """When its first line was written."""
    started: datetime | None
    """When the last thing before it was said: the nearest to the request's start that a log has."""
    is_output_final: bool
    """The log says so, or the count rose from one line to the next. Otherwise it may be a stream's first."""
    dialect: Dialect = "anthropic"
    cleared_tokens: int = 0

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(block for part in self.parts for block in part.blocks)


Event: TypeAlias = Said | Answered | Compacted | Cleared
Step: TypeAlias = Said | Call | Compacted | Cleared


@dataclass(slots=True)
class _Open:
    """A call whose lines are still coming."""

    first: Answered
    started: datetime | None
    parts: list[Part]
    usage: Usage | None
    is_final: bool
    cleared_tokens: int
    last_at: datetime | None

    def add(self, more: Answered) -> None:
        self.parts.append(Part(more.key, more.blocks))
        self.last_at = more.at or self.last_at
        self.is_final = self.is_final or more.is_complete
        self.cleared_tokens = max(self.cleared_tokens, more.cleared_tokens)
        if more.usage is None:
            return
        if self.usage is not None and more.usage.output != self.usage.output:
            self.is_final = True  # a stream's first value is repeated; only the last count differs from it
        if self.usage is None or more.usage.output >= self.usage.output:
            self.usage = more.usage

    def closed(self) -> Call:
        first = self.first
        return Call(
            first.lane,
            first.call,
            first.model,
            tuple(self.parts),
            self.usage,
            first.at,
            self.started,
            self.is_final,
            first.dialect,
            self.cleared_tokens,
        )


@dataclass(slots=True)
class _Lane:
    open: _Open | None = None
    held: list[Said] = field(default_factory=list[Said])
    """Said while the open call was being logged."""
    last_at: datetime | None = None


class Assembler:
    """Entries of one file in, steps out. Holds one call a lane, and the ids it has seen."""

    __slots__ = ("_lanes", "_seen")

    def __init__(self) -> None:
        self._lanes: dict[LaneId, _Lane] = {}
        self._seen: set[int] = set()

    def take(self, entry: Event) -> Iterator[Step]:
        """The steps that are certain with this entry."""
        lane = self._lanes.setdefault(entry.lane, _Lane())
        match entry:
            case Said():
                if _is_abandoned(lane, entry):
                    yield from self._close(lane)
                yield from _hear(lane, entry)
            case Answered():
                yield from self._answer(lane, entry)
            case _:
                yield from self._close(lane)
                lane.last_at = entry.at or lane.last_at
                yield entry

    def finish(self) -> Iterator[Step]:
        """What is still open at the end of the file."""
        for lane in self._lanes.values():
            yield from self._close(lane)

    def _answer(self, lane: _Lane, part: Answered) -> Iterator[Step]:
        if part.call and lane.open and lane.open.first.call == part.call:
            lane.open.add(part)
            return
        if part.call and digest(part.call) in self._seen:
            return  # copied by a resume within the file
        yield from self._close(lane)
        lane.open = _Open(
            part,
            lane.last_at or part.at,
            [Part(part.key, part.blocks)],
            part.usage,
            part.is_complete,
            part.cleared_tokens,
            part.at,
        )

    def _close(self, lane: _Lane) -> Iterator[Step]:
        if lane.open:
            call = lane.open.closed()
            lane.last_at = lane.open.last_at or lane.last_at
            lane.open = None
            if call.id and call.usage:
                self._seen.add(digest(call.id))
            yield call
        held, lane.held = lane.held, []
        for said in held:
            yield from _hear(lane, said)


def _is_abandoned(lane: _Lane, said: Said) -> bool:
    """Whether the open call will get no bill any more. A log without any would be held whole otherwise."""
    if lane.open is None or lane.open.usage is not None:
        return False
    is_turn_over = not all(isinstance(block, ToolResult) for block in said.blocks)
    return is_turn_over or len(lane.held) >= MOST_HELD


def _hear(lane: _Lane, said: Said) -> Iterator[Step]:
    if lane.open:
        lane.held.append(said)
        return
    lane.last_at = said.at or lane.last_at
    yield said
