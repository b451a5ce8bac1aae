"""What each tool result cost: written once, then read with every call until it left the context."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Block, ToolUse, ToolUseId
from sevenfold.replay.bills import NANO_USD, CallRates

MAX_COSTLY_RESULTS = 10
MAX_LABEL_CHARS = 120
LABEL_ARGUMENTS = (
    *("file_path", "notebook_path", "pattern", "path", "filename", "command", "cmd", "query", "url"),
    *("description", "prompt", "arguments", "input"),
)
"""Which argument tells a reader best what a tool was asked, most telling first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostlyResult:
    session: str
    tool: str
    label: str
    """What it was asked: a path, a command, a pattern."""
    at: datetime | None
    tokens: int
    """Estimated."""
    sent: int
    """How many calls carried it."""
    usd: Decimal | None
    """Its share of their bills; None where the model has no price."""

    @property
    def rank(self) -> tuple[Decimal, int]:
        """Dollars first; without a price, tokens sent."""
        return (self.usd or Decimal(0), self.tokens * self.sent)


@dataclass(slots=True, kw_only=True)
class _Tracked:
    tool: str
    label: str
    at: datetime | None
    tokens: float
    after_tokens: int
    """How much of the prompt stands before it, at least."""
    first_call: int = 0
    first_total: float = 0.0
    usd: float = 0.0
    is_sent: bool = False


@dataclass(frozen=True, slots=True)
class _Asked:
    tool: str
    label: str


class ResultCosts:
    """Follows the tool results of one conversation. A call costs the same however many there are."""

    __slots__ = (
        "_asked",
        "_calls",
        "_costly",
        "_is_priced",
        "_live",
        "_prompt",
        "_read_total",
        "_serial",
        "_unsent",
    )

    def __init__(self) -> None:
        self._asked: dict[ToolUseId, _Asked] = {}
        self._live: dict[ToolUseId, _Tracked] = {}
        self._unsent: list[_Tracked] = []
        self._read_total = 0.0
        """The sum of all calls' read prices: what one token costs from a call to another is a difference."""
        self._calls = 0
        self._prompt = 0
        self._is_priced = False
        self._serial = 0
        self._costly: list[tuple[Decimal, int, int, CostlyResult]] = []

    def ask(self, blocks: Iterable[Block]) -> None:
        """Tools were called."""
        for block in blocks:
            if isinstance(block, ToolUse):
                self._asked[block.id] = _Asked(block.name, label_tool_input(block.input))

    def label(self, id: ToolUseId) -> str:  # noqa: A002 - the wire's own name
        asked = self._asked.get(id)
        return asked.label if asked else ""

    def add(self, id: ToolUseId, tokens: float, at: datetime | None) -> None:  # noqa: A002
        """A result joined the context."""
        asked = self._asked.pop(id, _Asked("", ""))
        tracked = _Tracked(
            tool=asked.tool, label=asked.label, at=at, tokens=tokens, after_tokens=self._prompt
        )
        self._live[id] = tracked
        self._unsent.append(tracked)

    def bill(self, prompt_tokens: int, read_tokens: int, rates: CallRates | None, *, is_break: bool) -> None:
        """A call carried all that is here."""
        read, paid = (float(rates.read), float(rates.paid)) if rates else (0.0, 0.0)
        self._is_priced = self._is_priced or rates is not None
        if is_break:
            for tracked in self._live.values():
                if tracked.is_sent and tracked.after_tokens >= read_tokens:
                    tracked.usd += tracked.tokens * (paid - read)
        self._read_total += read
        self._calls += 1
        for tracked in self._unsent:
            tracked.is_sent = True
            tracked.usd += tracked.tokens * paid
            tracked.first_call, tracked.first_total = self._calls - 1, self._read_total
        self._unsent.clear()
        self._prompt = prompt_tokens

    def skip(self, prompt_tokens: int) -> None:
        """A call carried all that is here, and is counted elsewhere."""
        for tracked in self._unsent:
            tracked.is_sent = True
            tracked.first_call, tracked.first_total = self._calls, self._read_total
        self._unsent.clear()
        self._prompt = prompt_tokens

    def drop(self, ids: Iterable[ToolUseId]) -> None:
        """Results left the context: what they cost is final."""
        for id in ids:  # noqa: A001
            tracked = self._live.pop(id, None)
            if tracked and tracked.is_sent:
                self._keep(self._finished(tracked))

    def finish(self, session: str) -> tuple[CostlyResult, ...]:
        """The most expensive of all, those still in the context included."""
        self.drop(list(self._live))
        ordered = sorted(self._costly, key=lambda entry: entry[:3], reverse=True)
        return tuple(replace(item, session=session) for *_, item in ordered)

    def _finished(self, tracked: _Tracked) -> CostlyResult:
        usd = tracked.usd + tracked.tokens * (self._read_total - tracked.first_total)
        return CostlyResult(
            session="",
            tool=tracked.tool,
            label=tracked.label,
            at=tracked.at,
            tokens=round(tracked.tokens),
            sent=self._calls - tracked.first_call,
            usd=Decimal(usd).quantize(NANO_USD) if self._is_priced else None,
        )

    def _keep(self, item: CostlyResult) -> None:
        if not item.sent:
            return
        self._serial -= 1  # of equals the first stays; results themselves have no order
        entry = (*item.rank, self._serial, item)
        if len(self._costly) < MAX_COSTLY_RESULTS:
            heapq.heappush(self._costly, entry)
        elif entry[:3] > self._costly[0][:3]:
            heapq.heapreplace(self._costly, entry)


def choose_costliest(results: Iterable[CostlyResult]) -> tuple[CostlyResult, ...]:
    """The most expensive of several sessions'."""
    return tuple(heapq.nlargest(MAX_COSTLY_RESULTS, results, key=lambda item: item.rank))


def label_tool_input(asked: JsonObject) -> str:
    """A tool's request in a few words: its most telling argument, on one line."""
    for key in LABEL_ARGUMENTS:
        value = asked.get(key)
        if isinstance(value, tuple):
            value = " ".join(item for item in value if isinstance(item, str))
        if isinstance(value, str) and value.strip():
            return " ".join(value[: 4 * MAX_LABEL_CHARS].split())[:MAX_LABEL_CHARS]
    return ""
