"""What layer 2 decides from: its settings, the facts and the plan of a clearing, and the account so far.

`ClearingLedger` counts what clearing has saved compared with keeping everything, in tokens at the price of
fresh input. `ClearableResults` are the results in a view that may be cleared, and what is known of each: its
call, its age, and whether its file was read again since.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate, islice
from typing import ClassVar, Literal, TypeAlias

from sevenfold.core.json import write_json
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.models import Prices
from sevenfold.core.settings import amount, choice, names, switch
from sevenfold.core.tool_kinds import PATH_KEYS, QUERY_KEYS, Effect, command_of, find_shown, first_text

LONG_TTL = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CachePrices:
    """What a token costs that is read from the cache, or written to it; a fresh one costs 1."""

    read: float
    write: float


def compute_cache_prices(prices: Prices, ttl: timedelta) -> CachePrices:
    """The cache prices of a model as multiples of fresh input. A free model gets the usual multiples."""
    if not prices.fresh:
        return CachePrices(0.1, 2.0 if ttl >= LONG_TTL else 1.25)
    written = prices.written_1h if ttl >= LONG_TTL else prices.written_5m
    return CachePrices(float(prices.read / prices.fresh), float(written / prices.fresh))


DEFAULT_CACHE_PRICES = CachePrices(0.1, 1.25)
"""Of most models; for one whose price nobody knows."""


@dataclass(frozen=True, slots=True)
class ResultPosition:
    """Where a result comes into the view."""

    round: int
    place: int
    """Tokens of the view before it."""
    cached: int
    """Tokens of the last request."""


@dataclass(frozen=True, slots=True)
class ClearingCost:
    """What a clearing saves in every request to come, and what it had to write again."""

    saved_tokens: int
    rewrite_tokens: int


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """Where a request ended, which is where the cache can be read up to."""

    tokens: int
    touched: datetime
    """When a request last wrote or found it: the next one does."""


class ClearingLedger:
    """The account of one conversation, updated with each request."""

    __slots__ = ("_before_tokens", "cleared_tokens", "kept_cost", "net_saved")

    def __init__(self) -> None:
        self.net_saved = 0.0
        """Saved by clearing so far, less what the cuts cost; below zero when they have not paid back yet."""
        self.kept_cost = 0.0
        """What all requests so far would have cost with everything kept."""
        self.cleared_tokens = 0
        """What the view is shorter by."""
        self._before_tokens: int | None = None

    def send(self, view_tokens: int, prices: CachePrices, *, is_cold: bool) -> None:
        """A request goes out with this view."""
        whole = view_tokens + self.cleared_tokens
        before = self._before_tokens
        if is_cold or before is None:
            self.kept_cost += prices.write * whole
        else:
            self.kept_cost += prices.read * before + prices.write * max(0, whole - before)
        self.net_saved += self.cleared_tokens * (prices.write if is_cold else prices.read)
        self._before_tokens = whole

    def cut(self, saved_tokens: int, rewrite_cost: float) -> None:
        """A cut made the view shorter, at this cost."""
        self.cleared_tokens += saved_tokens
        self.net_saved -= rewrite_cost

    def record_reread(self, tokens: int, view_tokens: int, prices: CachePrices) -> None:
        """The agent asked again for a cleared result: one more round, and the result again."""
        self.net_saved -= prices.read * view_tokens + prices.write * tokens
        self.cleared_tokens -= tokens

    def start_over(self) -> None:
        """A compaction: nothing that was cleared would be in view any more."""
        self.cleared_tokens = 0
        self._before_tokens = None


ClearingPolicy: TypeAlias = Literal["balanced", "thrift", "fixed", "ski", "keep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MicrocompactSettings:
    SECTION: ClassVar[str] = "microcompact"

    enabled: bool = switch(True)
    """On: at most models' prices, old results cost more to carry than to leave behind."""

    policy: str = choice("balanced", "balanced", "thrift", "fixed", "ski", "keep")
    """`balanced` pays a few per cent more than `thrift` to keep in view what will likely be used again."""

    keep_last: int = amount(2, at_least=1)
    """What the agent is working with; a larger number costs more than it keeps of later use."""

    rounds_ahead_5m: int = amount(25, at_least=1)
    """Rounds until a five-minute cache next goes cold: 25 on average, however long it has been warm."""

    rounds_ahead_1h: int = amount(45, at_least=1)
    """The same for an hour's cache, which mostly ends with the session or with a compaction."""

    recent_turn_tokens: int = amount(80_000, at_least=0)
    """In a view below this and below the window's warning, `balanced` keeps what this turn and the one before
    have shown, while the cache is warm. In a larger one that costs too much."""

    recent_result_tokens: int = amount(10_000, at_least=0)
    """Of what those turns have shown, so much of the newest is kept; what is older goes by price. A long turn
    fills a whole view: to keep all of it costs as much as to clear nothing."""

    by_time: bool = switch(False)
    """Off: the economic policies clear as soon as the cache is cold. On: after `idle_minutes`, whatever it
    costs or saves."""

    idle_minutes: int = amount(60, at_least=1)
    """No provider's cache lives longer, so that clearing is free of charge."""

    idle_keep: int = amount(5, at_least=1)
    """After an hour's pause the last few results are the way back into the work."""

    by_pressure: bool = switch(True)
    """On: near the end of the window clearing is cheaper than a summary. Texts of memories that were recalled
    earlier go too."""

    pressure_tokens: int = amount(40_000, at_least=1)
    """Of clearable results: with fewer there is little to win."""

    pressure_keep: int = amount(3, at_least=1)
    """Fewer than after a pause: the window is full and the work goes on."""

    pressure_saves_tokens: int = amount(20_000, at_least=0)
    """A cut that frees less is followed by the next one too soon."""

    clearable: tuple[str, ...] = names(())
    """More tools whose old results may be cleared; `*` stands for any text, as in `mcp__db__*`. Empty: to
    call an unknown tool again might do harm."""

    never_clear: tuple[str, ...] = names(())
    """Tools whose results always stay, even if `clearable` or the caller names them. Empty: what the tools
    that we know have shown can be read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingFacts:
    """What a clearing depends on, at the moment when a request is made ready."""

    now: datetime
    last_request: datetime | None
    """When the last request with this model, system prompt and tools started, which is when its cache entry
    was last touched. None: there was none, so that nothing is cached."""
    last_answer: datetime | None
    ttl: timedelta
    prices: CachePrices
    view_tokens: int
    """Of the view as it would be sent now."""
    cached_tokens: int
    """Of the request before."""
    round: int
    """Requests so far; a result of this round has not been shown yet."""
    warning_tokens: int
    """Where the window's warning begins."""
    live_tokens: int = 0
    """The ends of requests shorter than this were not touched for a lifetime of the cache."""
    marked_tokens: int = 0
    """Up to where the cache can be read instead: the mark that every request repeats."""

    @property
    def is_cold(self) -> bool:
        """Whether nothing can be read from the cache. A clock that went back proves nothing."""
        return self.last_request is None or self.now - self.last_request > self.ttl

    @property
    def idle(self) -> timedelta:
        return self.now - self.last_answer if self.last_answer else timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingPlan:
    """Results to clear now."""

    ids: tuple[ToolUseId, ...]
    by: str
    """The policy, as events name it."""
    reason: str
    """With its figures, for a person."""
    saved_tokens: int
    rewrite_tokens: int
    """What was cached and has to be written again behind the first of them."""
    is_bare: bool = False
    """Their marker says only that they were cleared, not where the original is."""


# Adding a result costs the same however long the view is; only a cut touches what is already there.

ResultKind: TypeAlias = Literal["read", "edit", "write", "list", "search", "shell"]

FILE_RESULT_KINDS: frozenset[ResultKind] = frozenset({"read", "edit", "write"})
"""Results that show what a file holds."""

_KINDS: dict[Effect | None, ResultKind] = {
    "read": "read",
    "edit": "edit",
    "write": "write",
    "list": "list",
    "search": "search",
    "fetch": "search",
}
"""By what a call does. Every other clearable result is what a command printed."""

MAX_SUBJECT_CHARS = 60
"""Characters of a subject that a marker repeats: the call before it holds the whole."""

MARKER_TOKENS = 40
"""What a marker with a short subject and a path weighs. A result of no more is not worth clearing."""
BARE_MARKER = "[Old tool result content cleared]"
_MARKER = re.compile(r"\[[^\n]*: output cleared, kept in [^\n]*\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearableResult:
    """A result that may be cleared, and the call that it answers."""

    id: ToolUseId
    tool: str
    kind: ResultKind
    subject: str
    """What the call was about, in a few words."""
    path: str
    """The file it shows; empty where it shows none."""
    call: int
    """A hash of the whole call: the same call again asks for the same result."""
    tokens: int

    @property
    def saved_tokens(self) -> int:
        """What the view loses in tokens when a marker takes its place."""
        return max(0, self.tokens - MARKER_TOKENS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedResult:
    """A clearable result and where in the view it stands."""

    result: ClearableResult
    order: int
    """Which clearable result of the session it is, counted from one."""
    round: int
    """The first request that shows it."""
    place: int
    """Tokens of the view before it."""
    edge: int
    """Tokens of the view before the first message of its round, where the cache can be marked."""
    anchor: int
    """Tokens up to which the cache can still be read without it; no more than its edge."""
    turn: int = 0
    """The turn that asked for it."""


def describe_clearable(use: ToolUse, tokens: int) -> ClearableResult:
    """The result of a call, by what the call says."""
    shown = find_shown(use)
    kind = _KINDS.get(shown.effect, "shell")
    path = shown.path if kind in FILE_RESULT_KINDS else ""
    named = first_text(use.input, PATH_KEYS)
    subject = " ".join((named or command_of(use.input) or first_text(use.input, QUERY_KEYS)).split())
    # The end of a path tells more than its beginning.
    short = subject[-MAX_SUBJECT_CHARS:] if named and path else subject[:MAX_SUBJECT_CHARS]
    call = hash((use.name, write_json(use.input)))
    return ClearableResult(
        id=use.id, tool=use.name, kind=kind, subject=short, path=path, call=call, tokens=tokens
    )


def render_cleared_marker(result: ClearableResult, where: str | None) -> str:
    """What stands in for a cleared result: whose it was and the file that holds it, or that it is gone."""
    if where is None:
        return BARE_MARKER
    about = f"{result.tool} {result.subject}".rstrip()
    return f"[{about}: output cleared, kept in {where}]"


def is_cleared_marker(content: str) -> bool:
    """Whether a result's content is what stands in for a cleared one."""
    return content == BARE_MARKER or _MARKER.fullmatch(content) is not None


class ClearableResults:
    """The clearable results of one conversation's view, in order. Not for sharing between threads."""

    __slots__ = ("_answered", "_cleared", "_latest", "_rounds", "live", "turn")

    def __init__(self) -> None:
        self.live: list[PlacedResult] = []
        self.turn = 0
        """How often the user has said something."""
        self._rounds: list[int] = []
        """In which round each result came, the cleared ones too."""
        self._latest: dict[str, int] = {}
        """By file: the last time that it was read or written."""
        self._cleared: set[int] = set()
        self._answered = 0
        """So many of them, from the first, have an answer behind them."""

    @property
    def count(self) -> int:
        """Clearable results so far, the cleared ones too."""
        return len(self._rounds)

    def add(self, result: ClearableResult, *, round_: int, place: int, anchor: int) -> bool:
        """A result joins the view, after a request that ended at `anchor`.

        True when it brings back what a cut had taken out.
        """
        self._rounds.append(round_)
        if result.saved_tokens:
            self.live.append(
                PlacedResult(
                    result=result,
                    order=self.count,
                    round=round_,
                    place=place,
                    edge=anchor,
                    anchor=anchor,
                    turn=self.turn,
                )
            )
        if result.path and result.kind in {"read", "write"}:
            self._latest[result.path] = self.count
        is_back = result.call in self._cleared
        self._cleared.discard(result.call)
        return is_back

    def begin_turn(self) -> None:
        """The user says something."""
        self.turn += 1

    def take_answer(self) -> None:
        """The model answers: some request has shown it what came before, also one that was not made here."""
        self._answered = self.count

    def clear(self, ids: Collection[ToolUseId]) -> None:
        """A cut took these out: what stands behind moves up.

        The request after a cut marks the cache before the round of the first result behind the last that
        went, so that the next cut need not write again what this one has.
        """
        gone = [item for item in self.live if item.result.id in ids]
        if not gone:
            return
        self._cleared.update(item.result.call for item in gone)
        kept = [item for item in self.live if item.result.id not in ids]
        places = [item.place for item in gone]
        saved = [0, *accumulate(item.result.saved_tokens for item in gone)]

        def moved(tokens: int) -> int:
            return tokens - saved[bisect_left(places, tokens)]

        first, last = gone[0], gone[-1]
        mark = next((moved(item.edge) for item in kept if item.place > last.place), 0)
        self.live = [
            item
            if item.place < first.place
            else replace(
                item,
                place=moved(item.place),
                edge=moved(item.edge),
                anchor=max(first.anchor, mark) if item.place > last.place else first.anchor,
            )
            for item in kept
        ]

    def reset_anchors(self) -> None:
        """The cache is cold and everything is written again: it can then be read up to where it is marked,
        which is before the first of these."""
        if self.live:
            mark = self.live[0].edge
            self.live = [replace(item, anchor=mark) for item in self.live]

    def start_over(self) -> None:
        """A compaction took everything out."""
        self.live = []
        self._cleared.clear()

    def find_stale(self, keep: int, before_round: int, most: int | None = None) -> list[PlacedResult]:
        """What a cut may take, newest first: all but the last `keep`, and none that no request has shown."""
        last = self.count - keep
        allowed = (
            item
            for item in reversed(self.live)
            # Before the first request nobody knows what the provider has in its cache.
            if item.order <= last
            and before_round
            and (item.round < before_round or item.order <= self._answered)
        )
        return list(islice(allowed, most))

    def count_stale_rounds(self, item: PlacedResult, keep: int, round_: int) -> int:
        """For how many rounds it has not been among the last `keep`."""
        follower = item.order + keep
        return round_ - self._rounds[follower - 1] if follower <= self.count else 0

    def age(self, item: PlacedResult) -> int:
        """Clearable results since it came."""
        return self.count - item.order

    def is_superseded(self, item: PlacedResult) -> bool:
        """Whether its file was read or written again since."""
        result = item.result
        return result.kind == "read" and self._latest.get(result.path, 0) > item.order


def is_cache_cold(idle: timedelta | None, ttl: timedelta) -> bool:
    """Whether nothing of the last request can be read any more. A clock that was set back proves nothing."""
    return idle is None or idle > ttl
