"""What filled the context, call by call, and its size over time.

The bill of a call says how much it carried. Who put it there is estimated from the log and corrected by every
bill on the way (`core/tokens/estimation.py`). What no line accounts for (the system prompt, tool schemas,
reminders) is the rest of the bill, and shown as such. Where the log has the requests themselves there is no
such rest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from sevenfold.core.messages import Block, Message, Role, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.models import Model
from sevenfold.core.tokens import NEWER_TOKENIZER_SCALE
from sevenfold.core.tokens.estimation import CALIBRATED_ESTIMATOR, TOKEN_CLASSES, Calibration, TokenMix
from sevenfold.core.tokens.portions import PortionKind, TextOrigin, TokenPortion, Weigher
from sevenfold.core.tool_kinds import read_path
from sevenfold.store.foreign.entries import ForeignSource, LineKey

FillKind: TypeAlias = PortionKind | Literal["summary", "unlogged"]

KIND_CLASSES: Mapping[FillKind, str] = {
    "assistant": "said",
    "thinking": "said",
    "tool_request": "asked",
    "tool_result": "got",
}
"""The class whose factor corrects a kind, where it is not `told`."""

_PROMPT_KEY = LineKey("system prompt and tools")
"""Of what no boundary takes away."""

_ORIGINS: Mapping[ForeignSource, TextOrigin] = {"human": "human", "memory": "memory"}


class FillRow(NamedTuple):
    """A row of the breakdown: a kind, and for tools whose."""

    kind: FillKind
    tool: str = ""


@dataclass(frozen=True, slots=True)
class FillShare:
    """One row of what filled the context. Estimated, except that all rows together are what was billed."""

    kind: FillKind
    tool: str
    entered_tokens: int
    """What joined the context, counted once."""
    carried_tokens: int
    """The same, counted once for every call that sent it: what was paid for."""


@dataclass(frozen=True, slots=True)
class ContextFill:
    shares: tuple[FillShare, ...] = ()
    """Largest first."""
    repeated_entered_tokens: int = 0
    """Of the tool results: files read again though the very content was still there."""
    repeated_carried_tokens: int = 0

    @property
    def carried_tokens(self) -> int:
        return sum(share.carried_tokens for share in self.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBlock:
    """One block in the context."""

    key: LineKey
    slot: FillRow
    tokens: float
    """Before calibration."""
    result: ToolUseId | None = None
    read: int | None = None
    """Of a file that was read: a digest of its path and content."""
    is_repeated: bool = False


@dataclass(slots=True, kw_only=True)
class FillSums:
    """Tokens by row."""

    entered: defaultdict[FillRow, float] = field(default_factory=lambda: defaultdict[FillRow, float](float))
    carried: defaultdict[FillRow, float] = field(default_factory=lambda: defaultdict[FillRow, float](float))
    billed: int = 0
    unlogged: float = 0.0
    repeated_entered: float = 0.0
    repeated_carried: float = 0.0


class ContextTracker:
    """The context of one conversation as it grows and is cut."""

    __slots__ = (
        "_added",
        "_billed",
        "_calibration",
        "_factors",
        "_has_prompt",
        "_held",
        "_items",
        "_model",
        "_paths",
        "_reads",
        "_repeated",
        "_scale",
        "_sums",
        "_weigher",
    )

    def __init__(self) -> None:
        self._weigher = Weigher(CALIBRATED_ESTIMATOR)
        self._calibration = Calibration()
        self._model: Model | None = None
        self._scale = 1.0
        self._factors = self._calibrated()
        self._items: list[ContextBlock] = []
        self._held: defaultdict[FillRow, float] = defaultdict(float)
        """What is in the context now, before calibration."""
        self._paths: dict[ToolUseId, str] = {}
        """Files that were asked for and have not come yet."""
        self._reads: Counter[int] = Counter()
        """Which files, with which content, are in the context."""
        self._repeated = 0.0
        self._added: list[ContextBlock] = []
        """What came since the last bill."""
        self._billed: int | None = None
        self._has_prompt = False
        """The system prompt and the tools are known, and so everything that was sent."""
        self._sums = FillSums()

    def add(
        self, key: LineKey, role: Role, blocks: tuple[Block, ...], source: ForeignSource = "human"
    ) -> list[ContextBlock]:
        """Blocks join the context; the items they became, one a block."""
        if source == "human" and role == "user":
            self._drop_thinking(blocks)
        origin = _ORIGINS.get(source, "attachment")
        portions = self._weigher.portions(Message(role, blocks), origin)
        items: list[ContextBlock] = []
        for block, portion in zip(blocks, portions, strict=True):
            item = self._item(key, block, portion, source)
            self._hold(item, 1)
            items.append(item)
        self._items += items
        self._added += items
        return items

    def set_prompt(self, system: str, tools: str) -> None:
        """What stands before the conversation from now on."""
        self._leave([item for item in self._items if item.key != _PROMPT_KEY])
        kinds: tuple[tuple[FillKind, str], ...] = (("system_prompt", system), ("tool_schema", tools))
        for kind, text in kinds:
            (portion,) = self._weigher.portions(Message("user", (Text(text),)), "attachment")
            item = ContextBlock(key=_PROMPT_KEY, slot=FillRow(kind), tokens=portion.tokens)
            self._hold(item, 1)
            self._items.append(item)
            self._added.append(item)
        self._has_prompt = True

    def estimate(self, items: Iterable[ContextBlock]) -> float:
        """The tokens that a bill would show for these."""
        return sum(item.tokens * self._factors[_class(item.slot)] for item in items)

    def bill(self, prompt_tokens: int, model: Model, *, is_counted: bool) -> None:
        """A call was billed for what is here now."""
        if self._model is not model:
            self._model, self._billed = model, None
            self._scale = NEWER_TOKENIZER_SCALE if model.tokenizer == "newer" else 1.0
        self._learn(prompt_tokens)
        self._factors = self._calibrated()
        if is_counted:
            self._carry(prompt_tokens)
        self._billed = prompt_tokens
        self._added.clear()

    def cut(self, kept: frozenset[LineKey], kept_from: LineKey) -> list[ContextBlock]:
        """Compaction: only lines that were kept stay. What left."""
        return self._leave(_kept(self._items, kept, kept_from))

    def clear(self, ids: frozenset[ToolUseId]) -> list[ContextBlock]:
        """Old tool results go. What left."""
        return self._leave([item for item in self._items if item.result not in ids])

    def fill(self) -> ContextFill:
        """The breakdown so far."""
        sums = self._sums
        rows = [
            FillShare(slot.kind, slot.tool, round(sums.entered[slot]), round(carried))
            for slot, carried in sums.carried.items()
        ]
        # The rest of the bill, so that the rows add up to it whatever was rounded.
        rest = sums.billed - sum(row.carried_tokens for row in rows)
        shares = [row for row in rows if row.carried_tokens or row.entered_tokens]
        is_known = self._has_prompt and shares and not round(sums.unlogged)
        if sums.billed and not is_known:
            shares.append(FillShare("unlogged", "", 0, rest))
        elif rest:
            shares.sort(key=lambda row: row.carried_tokens)
            shares[-1] = replace(shares[-1], carried_tokens=shares[-1].carried_tokens + rest)
        shares.sort(key=lambda row: (-row.carried_tokens, row.kind, row.tool))
        return ContextFill(tuple(shares), round(sums.repeated_entered), round(sums.repeated_carried))

    def _carry(self, prompt_tokens: int) -> None:
        factors = self._factors
        estimated = {slot: tokens * factors[_class(slot)] for slot, tokens in self._held.items()}
        total = sum(estimated.values())
        # An estimate over the bill is scaled down to it; under it, the rest is what no line accounts for.
        scale = prompt_tokens / total if total > 0 else 1.0
        scale = scale if self._has_prompt else min(1.0, scale)
        sums = self._sums
        sums.unlogged += prompt_tokens - total * scale
        for slot, tokens in estimated.items():
            sums.carried[slot] += tokens * scale
        for item in self._added:
            tokens = item.tokens * factors[_class(item.slot)]
            sums.entered[item.slot] += tokens
            sums.repeated_entered += tokens if item.is_repeated else 0.0
        sums.billed += prompt_tokens
        sums.repeated_carried += self._repeated * factors["got"] * scale

    def _learn(self, prompt_tokens: int) -> None:
        if self._billed is None:
            return
        mix: defaultdict[str, float] = defaultdict(float)
        for item in self._added:
            mix[_class(item.slot)] += item.tokens * self._scale
        self._calibration = self._calibration.learn(TokenMix(**mix), prompt_tokens - self._billed)

    def _drop_thinking(self, blocks: tuple[Block, ...]) -> None:
        """Some models leave earlier thinking out once a person speaks again."""
        speaks = not all(isinstance(block, ToolResult) for block in blocks)
        if speaks and self._model and self._model.drops_thinking and self._held[FillRow("thinking")]:
            self._leave([item for item in self._items if item.slot.kind != "thinking"])

    def _leave(self, staying: list[ContextBlock]) -> list[ContextBlock]:
        keep = set(map(id, staying))
        left = [item for item in self._items if id(item) not in keep]
        self._items = staying
        self._added = [item for item in self._added if id(item) in keep]
        for item in left:
            self._hold(item, -1)
        if left:
            self._billed = None  # the next bill says nothing of what was added
        return left

    def _item(self, key: LineKey, block: Block, portion: TokenPortion, source: ForeignSource) -> ContextBlock:
        kind: FillKind = portion.kind
        if source in ("summary", "system_prompt") and kind == "attachment":
            kind = source
        slot = FillRow(kind, portion.tool)
        if isinstance(block, ToolUse):
            path = read_path(block)
            if path:
                self._paths[block.id] = path
        if not isinstance(block, ToolResult):
            return ContextBlock(key=key, slot=slot, tokens=portion.tokens)
        path = self._paths.pop(block.tool_use_id, None)
        if path is None or block.is_error:
            return ContextBlock(key=key, slot=slot, tokens=portion.tokens, result=block.tool_use_id)
        read = hash((path, block.content))
        return ContextBlock(
            key=key,
            slot=slot,
            tokens=portion.tokens,
            result=block.tool_use_id,
            read=read,
            is_repeated=self._reads[read] > 0,
        )

    def _hold(self, item: ContextBlock, sign: int) -> None:
        self._held[item.slot] += sign * item.tokens
        if item.read is not None:
            self._reads[item.read] += sign
            self._repeated += sign * item.tokens if item.is_repeated else 0.0

    def _calibrated(self) -> Mapping[str, float]:
        """Billed tokens for one weighed, by class, as far as is known now."""
        values = zip(TOKEN_CLASSES, self._calibration.factors.values, strict=True)
        return {name: factor * self._scale for name, factor in values}


def sum_fills(fills: Iterable[ContextFill]) -> ContextFill:
    """What filled several contexts."""
    entered: defaultdict[FillRow, int] = defaultdict(int)
    carried: defaultdict[FillRow, int] = defaultdict(int)
    repeated_entered = repeated_carried = 0
    for fill in fills:
        for share in fill.shares:
            entered[FillRow(share.kind, share.tool)] += share.entered_tokens
            carried[FillRow(share.kind, share.tool)] += share.carried_tokens
        repeated_entered += fill.repeated_entered_tokens
        repeated_carried += fill.repeated_carried_tokens
    shares = [FillShare(slot.kind, slot.tool, entered[slot], tokens) for slot, tokens in carried.items()]
    shares.sort(key=lambda row: (-row.carried_tokens, row.kind, row.tool))
    return ContextFill(tuple(shares), repeated_entered, repeated_carried)


def _kept(items: list[ContextBlock], kept: frozenset[LineKey], kept_from: LineKey) -> list[ContextBlock]:
    prompt = [item for item in items if item.key == _PROMPT_KEY]
    if kept:
        return [*prompt, *(item for item in items if item.key in kept)]
    first = next((place for place, item in enumerate(items) if kept_from and item.key == kept_from), None)
    rest = items[first:] if first is not None else []
    return [*prompt, *(item for item in rest if item.key != _PROMPT_KEY)]


def _class(slot: FillRow) -> str:
    return KIND_CLASSES.get(slot.kind, "told")


# Context size over time, in a bounded number of points.

PointMark: TypeAlias = Literal["", "break", "compaction", "clearing"]

MAX_SERIES_POINTS = 320
"""Twice the dots that 80 columns of braille have; a page needs no more either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoint:
    """A call; after thinning, the largest of a few neighbours."""

    call: int
    """Its number in the session, from 0."""
    at: datetime | None
    prompt_tokens: int
    read_tokens: int
    mark: PointMark = ""


class PointSeries:
    """Takes points without end and keeps a bounded number, marked ones and the largest before others."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: list[SeriesPoint] = []

    def add(self, point: SeriesPoint) -> None:
        self._points.append(point)
        if len(self._points) >= 2 * MAX_SERIES_POINTS:
            self._points = thin_points(self._points)

    def points(self) -> tuple[SeriesPoint, ...]:
        points = self._points
        return tuple(thin_points(points) if len(points) > MAX_SERIES_POINTS else points)


def thin_points(points: list[SeriesPoint]) -> list[SeriesPoint]:
    """Half of them: of each two neighbours the marked one, else the larger. The first and last stay."""
    if len(points) < 3:
        return points
    inside = points[1:-1]
    pairs = (inside[place : place + 2] for place in range(0, len(inside), 2))
    return [points[0], *(max(pair, key=_weight) for pair in pairs), points[-1]]


def _weight(point: SeriesPoint) -> tuple[bool, int]:
    return (bool(point.mark), point.prompt_tokens)
