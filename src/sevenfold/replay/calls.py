"""Model calls, put together from the entries of a transcript, each once and in order.

A call is spread over several lines, with results of its first tools between them. What was said while the
call was being logged was said after it. Conversations in one file do not mix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from sevenfold.core.messages import Block, ToolResult
from sevenfold.core.usage import Usage
from sevenfold.store.foreign.entries import (
    CacheDialect,
    CallId,
    ConversationId,
    ForeignClearing,
    ForeignCompaction,
    ForeignInput,
    ForeignOutput,
    LineKey,
)
from sevenfold.store.foreign.transcripts import hash_call_id

MAX_HELD_RESULTS = 64
"""Results that a call's tools may have returned before its bill comes; real calls have a dozen."""


@dataclass(frozen=True, slots=True)
class CallPart:
    """What one line of a call holds."""

    key: LineKey
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    lane: ConversationId
    id: CallId
    model: str
    parts: tuple[CallPart, ...]
    usage: Usage | None
    """None where the log holds no bill."""
    at: datetime | None
    """When its first line was written."""
    started: datetime | None
    """When the last thing before it was said: the nearest to the request's start that a log has."""
    is_output_final: bool
    """The log says so, or the count rose from one line to the next. Otherwise it may be a stream's first."""
    dialect: CacheDialect = "anthropic"
    cleared_tokens: int = 0

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(block for part in self.parts for block in part.blocks)


TranscriptEvent: TypeAlias = ForeignInput | ForeignOutput | ForeignCompaction | ForeignClearing
TranscriptStep: TypeAlias = ForeignInput | RecordedCall | ForeignCompaction | ForeignClearing


@dataclass(slots=True, kw_only=True)
class _Open:
    """A call whose lines are still coming."""

    first: ForeignOutput
    started: datetime | None
    parts: list[CallPart]
    usage: Usage | None
    is_final: bool
    cleared_tokens: int
    last_at: datetime | None

    def add(self, more: ForeignOutput) -> None:
        self.parts.append(CallPart(more.key, more.blocks))
        self.last_at = more.at or self.last_at
        self.is_final = self.is_final or more.is_complete
        self.cleared_tokens = max(self.cleared_tokens, more.cleared_tokens)
        if more.usage is None:
            return
        if self.usage is not None and more.usage.output != self.usage.output:
            self.is_final = True  # a stream's first value is repeated; only the last count differs from it
        if self.usage is None or more.usage.output >= self.usage.output:
            self.usage = more.usage

    def closed(self) -> RecordedCall:
        first = self.first
        return RecordedCall(
            lane=first.lane,
            id=first.call,
            model=first.model,
            parts=tuple(self.parts),
            usage=self.usage,
            at=first.at,
            started=self.started,
            is_output_final=self.is_final,
            dialect=first.dialect,
            cleared_tokens=self.cleared_tokens,
        )


@dataclass(slots=True)
class _Lane:
    open: _Open | None = None
    held: list[ForeignInput] = field(default_factory=list[ForeignInput])
    """Said while the open call was being logged."""
    last_at: datetime | None = None


class CallAssembler:
    """Entries of one file in, steps out. Holds one open call per conversation, and the ids it has seen."""

    __slots__ = ("_lanes", "_seen")

    def __init__(self) -> None:
        self._lanes: dict[ConversationId, _Lane] = {}
        self._seen: set[int] = set()

    def take(self, entry: TranscriptEvent) -> Iterator[TranscriptStep]:
        """The steps that are certain with this entry."""
        lane = self._lanes.setdefault(entry.lane, _Lane())
        match entry:
            case ForeignInput():
                if _is_abandoned(lane, entry):
                    yield from self._close(lane)
                yield from _hear(lane, entry)
            case ForeignOutput():
                yield from self._answer(lane, entry)
            case _:
                yield from self._close(lane)
                lane.last_at = entry.at or lane.last_at
                yield entry

    def finish(self) -> Iterator[TranscriptStep]:
        """What is still open at the end of the file."""
        for lane in self._lanes.values():
            yield from self._close(lane)

    def _answer(self, lane: _Lane, part: ForeignOutput) -> Iterator[TranscriptStep]:
        if part.call and lane.open and lane.open.first.call == part.call:
            lane.open.add(part)
            return
        if part.call and hash_call_id(part.call) in self._seen:
            return  # copied by a resume within the file
        yield from self._close(lane)
        lane.open = _Open(
            first=part,
            started=lane.last_at or part.at,
            parts=[CallPart(part.key, part.blocks)],
            usage=part.usage,
            is_final=part.is_complete,
            cleared_tokens=part.cleared_tokens,
            last_at=part.at,
        )

    def _close(self, lane: _Lane) -> Iterator[TranscriptStep]:
        if lane.open:
            call = lane.open.closed()
            lane.last_at = lane.open.last_at or lane.last_at
            lane.open = None
            if call.id and call.usage:
                self._seen.add(hash_call_id(call.id))
            yield call
        held, lane.held = lane.held, []
        for said in held:
            yield from _hear(lane, said)


def _is_abandoned(lane: _Lane, said: ForeignInput) -> bool:
    """Whether the open call will get no bill any more. A log without any would stay in memory otherwise."""
    if lane.open is None or lane.open.usage is not None:
        return False
    is_turn_over = not all(isinstance(block, ToolResult) for block in said.blocks)
    return is_turn_over or len(lane.held) >= MAX_HELD_RESULTS


def _hear(lane: _Lane, said: ForeignInput) -> Iterator[TranscriptStep]:
    if lane.open:
        lane.held.append(said)
        return
    lane.last_at = said.at or lane.last_at
    yield said
