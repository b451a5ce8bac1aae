"""Real Claude Code sessions as the requests they were: what `cache_model.py` simulates.

A transcript holds messages, bills and times; the requests are put together from them. Two kinds of request
are in no transcript and are added, because what later calls read shows that they were made: the one that
summarises at a compaction, and one at the end of each turn over the whole conversation with its last reply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, read_object
from sevenfold.core.usage import Usage, read_usage

CLEARED = "[Old tool result content cleared]"
INSTRUCTION = JsonObject({"type": "text", "text": "(what an unlogged request asks)"})
AT_ONCE = timedelta(seconds=1)
"""How long after a reply the request at the end of a turn starts."""

Cut: TypeAlias = Literal["compaction", "clearing"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a view."""

    role: str
    blocks: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a session, logged or not."""

    started: datetime
    model: str
    view: tuple[Turn, ...]
    usage: Usage | None
    """What was billed; None for a request that no transcript holds."""
    shared: int
    """How many messages of the view belong to the session; an instruction comes after them."""
    cuts: frozenset[Cut] = frozenset()
    """What was announced since the call before."""

    @property
    def has_spoken(self) -> bool:
        """It ends with a person's words, not with tool results."""
        last = self.view[-1].blocks if self.view else ()
        return not any(block.get("type") == "tool_result" for block in last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    turn: Turn
    at: datetime | None
    model: str
    usage: Usage | None
    boundary: JsonObject | None
    summary_at: int
    """Where in the blocks a compaction's summary starts; what is before it answers the view before."""

    @property
    def has_spoken(self) -> bool:
        """A reply that asks for no tool: the turn is over."""
        return self.turn.role == "assistant" and not any(
            block.get("type") == "tool_use" for block in self.turn.blocks
        )


@dataclass(frozen=True, slots=True)
class Session:
    name: str
    lines: tuple[Line, ...]

    def requests(self, *, with_unlogged: bool = True) -> list[Request]:
        return list(_Rebuilt(with_unlogged).requests(self.lines))


def read_sessions(data: Path, limit: int | None = None) -> list[Session]:
    """Every Claude session, sub-agents included. Without any there is nothing to measure."""
    files = sorted(data.glob("sessions/claude*/*.jsonl"))[:limit]
    if not files:
        raise SystemExit(f"error: no claude*/*.jsonl in {data / 'sessions'}; give --data the folder above it")
    return [Session(file.stem, tuple(_read_lines(file))) for file in files]


def _read_lines(file: Path) -> Iterator[Line]:
    with file.open("rb") as source:
        for raw in source:
            line = read_object(raw)
            meta = _object(line.get("meta"))
            boundary, summary_at, at = meta.get("boundary"), meta.get("merged_at"), meta.get("ts")
            model = meta.get("model")
            yield Line(
                turn=Turn(str(line.get("role")), _blocks(line.get("content"))),
                at=datetime.fromisoformat(at) if isinstance(at, str) else None,
                model=model if isinstance(model, str) else "",
                usage=_bill(meta.get("usage")),
                boundary=boundary if isinstance(boundary, JsonObject) else None,
                summary_at=summary_at if isinstance(summary_at, int) else 0,
            )


def _bill(wire: Json) -> Usage | None:
    usage = read_usage(wire) if isinstance(wire, JsonObject) else None
    return usage if usage and usage.prompt else None


def _blocks(content: Json) -> tuple[JsonObject, ...]:
    if isinstance(content, str):
        return (JsonObject({"type": "text", "text": content}),)
    return (
        tuple(block for block in content if isinstance(block, JsonObject))
        if isinstance(content, tuple)
        else ()
    )


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, JsonObject) else EMPTY_OBJECT


@dataclass(slots=True)
class _Rebuilt:
    """The view as it grows, is compacted and is cleared."""

    with_unlogged: bool
    view: list[Turn] = field(default_factory=list[Turn])
    cuts: set[Cut] = field(default_factory=set[Cut])
    last: Request | None = None

    def requests(self, lines: Sequence[Line]) -> Iterator[Request]:
        for line in lines:
            kind = line.boundary.get("kind") if line.boundary else None
            if kind == "compact":
                yield from self._compacted(line)
                continue
            if kind == "microcompact" and line.boundary:
                self._clear(line.boundary.get("cleared_tool_ids"))
            if line.usage is not None and line.at is not None:
                self.last = Request(
                    started=line.at,
                    model=line.model,
                    view=tuple(self.view),
                    usage=line.usage,
                    shared=len(self.view),
                    cuts=frozenset(self.cuts),
                )
                self.cuts.clear()
                yield self.last
            self.view.append(line.turn)
            if line.has_spoken and line.usage is not None:
                yield from self._unlogged(line.at, AT_ONCE)

    def _compacted(self, line: Line) -> Iterator[Request]:
        answers, summary = line.turn.blocks[: line.summary_at], line.turn.blocks[line.summary_at :]
        if answers:
            self.view.append(Turn(line.turn.role, answers))
        yield from self._unlogged(line.at, timedelta())
        self.view = [Turn(line.turn.role, summary)]
        self.cuts.add("compaction")

    def _unlogged(self, at: datetime | None, after: timedelta) -> Iterator[Request]:
        if self.last is None or at is None or not self.with_unlogged:
            return
        asked = (*self.view, Turn("user", (INSTRUCTION,)))
        yield Request(
            started=max(at, self.last.started) + after,
            model=self.last.model,
            view=asked,
            usage=None,
            shared=len(self.view),
        )

    def _clear(self, ids: Json) -> None:
        gone = set(ids) if isinstance(ids, tuple) else set[Json]()

        def shown(block: JsonObject) -> JsonObject:
            return cleared(block) if block.get("tool_use_id") in gone else block

        self.view = [Turn(turn.role, tuple(map(shown, turn.blocks))) for turn in self.view]
        self.cuts.add("clearing")


def cleared(block: JsonObject) -> JsonObject:
    """A tool result without its content."""
    return JsonObject({**block, "content": CLEARED})
