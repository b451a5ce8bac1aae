"""What later calls use of earlier results: lines that edits quote, paths and names in tool inputs.

A use counts against every tool result that showed it. It is in view when one of them still is. Lines in the
agent's own words are not looked at, because nothing clears those. This reading is strict: a name that the
agent wrote itself counts as lost when no result shows it any more.

`measure_cut_fidelity` reports how much of what a session used after each of its own cuts was still in view.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Literal, TypeAlias

from sevenfold.core.json import JsonObject, iterate_texts
from sevenfold.core.messages import Block, Compaction, Message, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.tool_kinds import CONTENT_KEYS, NEW_TEXT_KEYS, OLD_TEXT_KEYS, PATH_KEYS, find_tool
from sevenfold.layers.microcompact.layer import CLEARED_KEY
from sevenfold.store.files import RecordId
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    CutRecord,
    DecisionRecord,
    InjectedRecord,
    KeptSegment,
    MessageRecord,
    Record,
)

QuoteKind: TypeAlias = Literal["span", "path", "name"]

SPAN_CHARS = 40
"""Shorter lines occur by chance."""
LEAST_PATH, LEAST_NAME = 6, 6

QUOTED_INPUT_KEYS = frozenset({*OLD_TEXT_KEYS, "edits"})
NEW_INPUT_KEYS = frozenset({*NEW_TEXT_KEYS, *CONTENT_KEYS})
"""What an edit brings is its own, not a use of something seen."""

_PATH = re.compile(
    r"(?:[\w.~@+-]*/)+[\w.@+-]+|[\w-]+\.(?:go|py|md|json|sh|ts|js|tsx|toml|ya?ml|txt|rs|java|c|h|cpp|jsonl|mod)\b"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Quote:
    """Something that a call uses."""

    kind: QuoteKind
    text: str


@dataclass(frozen=True, slots=True)
class ResultUse:
    """A quote of something that results had shown."""

    kind: QuoteKind
    sources: tuple[int, ...]
    """The clearable results of this segment that showed it, oldest first; empty: a boundary took them all."""


def find_quotes(use: ToolUse) -> list[Quote]:
    """What a call uses, each once, in a fixed order."""
    tool = find_tool(use.name)
    takes_patch = tool is not None and tool.takes_patch
    quotes_lines = tool is not None and tool.effect == "edit" and not takes_patch
    found: dict[Quote, None] = {}
    for key, value in use.input.items():
        for text in iterate_texts(value):
            if quotes_lines and key in QUOTED_INPUT_KEYS:
                found.update(dict.fromkeys(_spans(text.split("\n"))))
                found.update(dict.fromkeys(_names(text)))
            elif takes_patch:
                removed = (line[1:] for line in text.split("\n") if line.startswith("-"))
                found.update(dict.fromkeys(_spans(removed)))
            elif key not in NEW_INPUT_KEYS:
                found.update(dict.fromkeys(_paths(text)))
                found.update(dict.fromkeys(_names(_PATH.sub(" ", text))))
    return list(found)


class TextIndex:
    """Where in a session's blocks a text occurs. Asked again, it knows."""

    __slots__ = ("_ends", "_found", "_starts", "_whole")

    def __init__(self, texts: Sequence[str]) -> None:
        self._whole = "\0".join(texts)
        lengths = [len(text) + 1 for text in texts]
        self._starts = [0, *accumulate(lengths)][:-1]
        self._ends = [start + length for start, length in zip(self._starts, lengths, strict=True)]
        self._found: dict[str, tuple[int, ...]] = {}

    def find(self, text: str) -> tuple[int, ...]:
        """The blocks that hold it, in order."""
        known = self._found.get(text)
        if known is None:
            known = self._found[text] = tuple(self._search(text))
        return known

    def _search(self, text: str) -> Iterator[int]:
        place = self._whole.find(text)
        while place >= 0:
            block = bisect_right(self._starts, place) - 1
            yield block
            place = self._whole.find(text, self._ends[block])


def extract_block_text(block: Block) -> str:
    """What a model can read in a block."""
    match block:
        case Text():
            return block.text
        case Thinking():
            return block.thinking
        case ToolUse():
            return "\n".join(iterate_texts(block.input))
        case ToolResult():
            content = block.content or ""
            return content if isinstance(content, str) else "\n".join(map(extract_block_text, content))
        case Compaction():
            return block.content or ""
        case _:
            return ""


def _spans(lines: Iterator[str] | list[str]) -> Iterator[Quote]:
    return (Quote("span", text) for line in lines if len(text := line.strip()) >= SPAN_CHARS)


def _paths(text: str) -> Iterator[Quote]:
    return (Quote("path", path) for path in _PATH.findall(text) if len(path) >= LEAST_PATH)


def _names(text: str) -> Iterator[Quote]:
    return (Quote("name", name) for name in _NAME.findall(text) if _is_telling(name))


def _is_telling(name: str) -> bool:
    """Whether it looks like a name out of a program: with a hump, or a line inside."""
    if len(name) < LEAST_NAME:
        return False
    has_hump = any(char.isupper() for char in name[1:]) and any(char.islower() for char in name)
    return has_hump or "_" in name.strip("_")


# Cuts of a recorded session. Here a use is in view if any text in view holds it, and one pointer away if the
# view names a file, a spill or a call that had shown it.


@dataclass(frozen=True, slots=True, kw_only=True)
class CutFidelity:
    """One cut, and what came of it."""

    at: datetime
    layer: int
    reason: str
    used: int
    """Things that were used after it and had been shown before it."""
    in_view: int
    pointed: int
    """Not in view, and named there by something that leads to it."""


@dataclass(slots=True)
class _Piece:
    """A block in view."""

    record: RecordId
    text: str
    use: ToolUseId | None = None
    """Of a tool result: whose."""


@dataclass(slots=True, kw_only=True)
class _Cut:
    at: datetime
    layer: int
    reason: str
    results: int
    """How many results had been shown by then."""
    used: int = 0
    in_view: int = 0
    pointed: int = 0


@dataclass(slots=True, kw_only=True)
class _Gauge:
    pieces: list[_Piece] = field(default_factory=list[_Piece])
    cuts: list[_Cut] = field(default_factory=list[_Cut])
    order: list[RecordId] = field(default_factory=list[RecordId])
    results: list[_Piece] = field(default_factory=list[_Piece])
    """Every result as it was first shown."""
    names: dict[ToolUseId, tuple[str, ...]] = field(default_factory=dict[ToolUseId, tuple[str, ...]])
    """What leads to a result: its call's paths, its spill, its own name."""
    first: dict[str, int] = field(default_factory=dict[str, int])
    """Which result showed a text first."""

    def take(self, record: Record) -> None:
        match record.body:
            case MessageRecord(message):
                if message.role == "assistant" and self.cuts:
                    self._use(message)
                self._show(record.id, message)
                self.order.append(record.id)
            case InjectedRecord(message):
                self._show(record.id, message)
            case DecisionRecord(decision) if decision.preview is not None:
                self._swap({decision.tool_use_id: decision.preview})
                if decision.spill:
                    self.names[decision.tool_use_id] = (
                        *self.names.get(decision.tool_use_id, ()),
                        decision.spill,
                    )
            case CutRecord():
                self._clear(record.at, record.body)
            case BoundaryRecord():
                self.cuts.append(
                    _Cut(
                        at=record.at,
                        layer=4,
                        reason=f"{record.body.trigger} compaction",
                        results=len(self.results),
                    )
                )
                self._keep(record.body.kept)
            case _:
                pass

    def _show(self, record: RecordId, message: Message) -> None:
        for block in message.blocks:
            if isinstance(block, ToolUse):
                paths = (block.input.get(key) for key in PATH_KEYS)
                self.names[block.id] = (block.id, *(path for path in paths if isinstance(path, str)))
            use = block.tool_use_id if isinstance(block, ToolResult) else None
            piece = _Piece(record, extract_block_text(block), use)
            self.pieces.append(piece)
            if use is not None:
                self.results.append(_Piece(record, piece.text, use))

    def _swap(self, texts: dict[ToolUseId, str]) -> None:
        for piece in self.pieces:
            if piece.use is not None and piece.use in texts:
                piece.text = texts[piece.use]

    def _clear(self, at: datetime, cut: CutRecord) -> None:
        cleared = cut.detail.get(CLEARED_KEY)
        if isinstance(cleared, JsonObject):
            self.cuts.append(_Cut(at=at, layer=cut.layer, reason=cut.reason, results=len(self.results)))
            self._swap({ToolUseId(use): str(text) for use, text in cleared.items()})

    def _keep(self, kept: KeptSegment | None) -> None:
        ids: set[RecordId] = set()
        if kept is not None and kept.head in self.order:
            start = self.order.index(kept.head)
            end = self.order.index(kept.tail) + 1 if kept.tail in self.order else len(self.order)
            ids = set(self.order[start:end])
        self.pieces = [piece for piece in self.pieces if piece.record in ids]

    def _use(self, message: Message) -> None:
        texts = [piece.text for piece in self.pieces]
        whole = "\0".join(texts)
        for block in message.blocks:
            for quote in find_quotes(block) if isinstance(block, ToolUse) else ():
                shown = self._first(quote.text)
                if shown is None:
                    continue
                is_seen = quote.text in whole
                is_pointed = not is_seen and self._is_pointed(quote.text, whole)
                for cut in self.cuts:
                    if shown < cut.results:
                        cut.used += 1
                        cut.in_view += is_seen
                        cut.pointed += is_pointed

    def _first(self, text: str) -> int | None:
        known = self.first.get(text)
        if known is None:
            known = next((at for at, piece in enumerate(self.results) if text in piece.text), None)
            if known is not None:
                self.first[text] = known
        return known

    def _is_pointed(self, text: str, whole: str) -> bool:
        shown = (piece.use for piece in self.results if text in piece.text)
        return any(name in whole for use in shown if use for name in self.names.get(use, ()))


def measure_cut_fidelity(records: Iterable[Record]) -> tuple[CutFidelity, ...]:
    """Every cut of a session, oldest first. Records come in the transcript's order, each once."""
    gauge = _Gauge()
    for record in records:
        gauge.take(record)
    return tuple(
        CutFidelity(
            at=cut.at,
            layer=cut.layer,
            reason=cut.reason,
            used=cut.used,
            in_view=cut.in_view,
            pointed=cut.pointed,
        )
        for cut in gauge.cuts
    )
