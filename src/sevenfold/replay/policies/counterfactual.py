"""What a recorded session would have cost under a policy, by token counts alone: no text is rendered.

The rules are those of `docs/economics.md`. Every change of the view is an announced cut, so no break is left
to chance. `ResultVisibility` tracks which results are in view; `resend` uses it too, so that both read a
result again for the same reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sevenfold.core.messages import ToolUseId
from sevenfold.layers.microcompact.facts import FILE_RESULT_KINDS, ClearableResult
from sevenfold.layers.microcompact.policy import (
    CachePrices,
    ClearableResults,
    ClearingFacts,
    ClearingLedger,
    ClearingPlan,
    MicrocompactSettings,
    PriceRule,
    choose_by_price,
    choose_clearing,
)
from sevenfold.replay.policies.recording import RecordedRound, RecordedSegment, Recording


class ResultVisibility:
    """One session under one policy. Not for sharing between threads."""

    __slots__ = ("_bare", "_numbers", "_segment", "_shown", "in_view", "one_pointer_away", "wanted")

    def __init__(self) -> None:
        self.in_view = 0
        """Uses of what a result had shown, with such a result in view at that moment."""
        self.one_pointer_away = 0
        """Uses of what only cleared results show, where what stands in their place names file or spill."""
        self.wanted = 0
        """All uses of what any result of the session had shown."""
        self._segment: RecordedSegment | None = None
        self._numbers: dict[ToolUseId, int] = {}
        """Which recorded result each of the view shows."""
        self._shown = Counter[int]()
        """How often each recorded result is in view."""
        self._bare: set[int] = set()
        """Cleared results whose marker names nothing."""

    def start(self, segment: RecordedSegment) -> None:
        """A boundary: nothing of what was in view is."""
        self._segment = segment
        self._numbers.clear()
        self._shown.clear()
        self._bare.clear()

    def show(self, use: ToolUseId, number: int) -> None:
        """A recorded result joins the view, as the answer to this call."""
        self._numbers[use] = number
        self._shown[number] += 1

    def show_again(self, use: ToolUseId, before: ToolUseId) -> None:
        """The answer to a call joins the view once more, as that to another one."""
        self.show(use, self._numbers[before])

    def clear(self, uses: Iterable[ToolUseId], *, is_bare: bool = False) -> None:
        """Markers take the place of these."""
        for use in uses:
            number = self._numbers.get(use)
            if number is None:
                continue  # a result that no recorded round shows, which nothing is known to use
            self._shown[number] -= 1
            if is_bare:
                self._bare.add(number)

    def find_needed(self, turn: RecordedRound) -> list[int]:
        """Count what an answer uses. Results to read again before it can be given: the newest that shows a
        line which it quotes and which nothing in view does."""
        needed: dict[int, None] = {}
        for use in turn.uses:
            self.wanted += 1
            if any(self._shown[number] for number in use.sources):
                self.in_view += 1
                continue
            if not use.sources:
                continue
            self.one_pointer_away += any(self._is_named(number) for number in use.sources)
            if use.kind == "span":
                needed[use.sources[-1]] = None
        return list(needed)

    def _is_named(self, number: int) -> bool:
        """Whether what stands in its place, or the call before it, names what to look at."""
        if number not in self._bare or self._segment is None:
            return True
        return self._segment.results[number].result.kind in FILE_RESULT_KINDS


WARNING_TOKENS = 160_000
"""Where the warning of a 200,000-token window lies: the window of nearly all recorded sessions."""


@dataclass(frozen=True, slots=True)
class CacheRates:
    """A provider's cache: how long it lives and what it costs."""

    ttl: timedelta
    prices: CachePrices


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutcome:
    """A session under a policy. Costs are in tokens at the price of fresh input, without output."""

    cost: float
    reread_cost: float
    """Of which: for results that were cleared and then needed again."""
    rereads: int
    cuts: int
    cleared: int
    peak_tokens: int
    in_view: int
    """Uses of what a result had shown, with such a result in view at that moment."""
    one_pointer_away: int
    """Uses of what only cleared results show, where what stands in their place names file or spill."""
    wanted: int
    """All uses of what any result of the session had shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRequest:
    """One request of a session that is played."""

    at: datetime
    view_tokens: int
    read_tokens: int
    cleared: tuple[ToolUseId, ...]
    """What a cut took out before it."""
    joined: tuple[ToolUseId, ...]
    """The results that it is the first to show."""


@dataclass(slots=True, kw_only=True)
class _Sums:
    cost: float = 0.0
    reread_cost: float = 0.0
    rereads: int = 0
    cuts: int = 0
    cleared: int = 0
    peak: int = 0


def play_recording(
    recording: Recording,
    settings: MicrocompactSettings,
    rates: CacheRates,
    on_request: Callable[[PlayedRequest], None] | None = None,
    by_price: PriceRule = choose_by_price,
) -> PolicyOutcome:
    """A recorded session under a policy. A callback gets every request. Where the provider clears, `by_price`
    is another rule."""
    playing = _Playing(settings, rates, on_request, by_price)
    for segment in recording.segments:
        playing.start(segment)
        for turn in segment.rounds:
            playing.send(turn)
            playing.answer(turn)
    sums, visibility = playing.sums, playing.visibility
    return PolicyOutcome(
        cost=sums.cost,
        reread_cost=sums.reread_cost,
        rereads=sums.rereads,
        cuts=sums.cuts,
        cleared=sums.cleared,
        peak_tokens=sums.peak,
        in_view=visibility.in_view,
        one_pointer_away=visibility.one_pointer_away,
        wanted=visibility.wanted,
    )


class _Playing:
    """One session under one policy."""

    def __init__(
        self,
        settings: MicrocompactSettings,
        rates: CacheRates,
        on_request: Callable[[PlayedRequest], None] | None,
        by_price: PriceRule,
    ) -> None:
        self._settings, self._rates, self._on_request = settings, rates, on_request
        self._by_price = by_price
        self.sums, self.visibility = _Sums(), ResultVisibility()
        self._results, self._ledger = ClearableResults(), ClearingLedger()
        self._round = self._shorter = self._cached = 0
        self._view = 0
        self._last: RecordedRound | None = None

    def start(self, segment: RecordedSegment) -> None:
        """A boundary: the frame is all that stays."""
        self._segment = segment
        self._results.start_over()
        self._ledger.start_over()
        self.visibility.start(segment)
        self._shorter, self._cached = 0, segment.frame_tokens

    def send(self, turn: RecordedRound) -> None:
        """The request of a round, after what the policy does before it."""
        prices, sums = self._rates.prices, self.sums
        self._view = turn.tokens - self._shorter
        if self._last is None or turn.turn != self._last.turn:
            self._results.begin_turn()
        for number in turn.results:
            recorded = self._segment.results[number]
            self._show(recorded.result, number, recorded.place - self._shorter)
        facts = self._facts(turn)
        if facts.is_cold:
            self._results.reset_anchors()
        chosen = choose_clearing(facts, self._results, self._ledger, self._settings, self._by_price)
        if chosen is not None:
            self._cut(chosen)
        read = 0 if facts.is_cold else self._cached
        sums.cost += prices.read * read + prices.write * (self._view - read)
        self._ledger.send(self._view, prices, is_cold=facts.is_cold)
        self._cached, self._last = self._view, turn
        sums.peak = max(sums.peak, self._view)
        joined = tuple(self._segment.results[number].result.id for number in turn.results)
        self._tell(turn.started, read, chosen.ids if chosen else (), joined)

    def answer(self, turn: RecordedRound) -> None:
        """What the answer uses; a line that it can quote from nowhere is read again first."""
        needed = self.visibility.find_needed(turn)
        if needed:
            self._read_again(needed, turn)
        self._round += 1

    def _facts(self, turn: RecordedRound) -> ClearingFacts:
        last = self._last
        return ClearingFacts(
            now=turn.started,
            last_request=last.started if last else None,
            last_answer=last.answered if last else None,
            ttl=self._rates.ttl,
            prices=self._rates.prices,
            view_tokens=self._view,
            cached_tokens=self._cached,
            round=self._round,
            warning_tokens=WARNING_TOKENS,
        )

    def _show(self, result: ClearableResult, number: int, place: int) -> None:
        self.visibility.show(result.id, number)
        if self._results.add(result, round_=self._round, place=place, anchor=self._cached):
            self._ledger.record_reread(result.tokens, self._view, self._rates.prices)

    def _cut(self, chosen: ClearingPlan) -> None:
        ids = frozenset(chosen.ids)
        first = next(item for item in self._results.live if item.result.id in ids)
        prices = self._rates.prices
        self._ledger.cut(chosen.saved_tokens, (prices.write - prices.read) * chosen.rewrite_tokens)
        self._results.clear(ids)
        self.visibility.clear(chosen.ids, is_bare=chosen.is_bare)
        self._view -= chosen.saved_tokens
        self._shorter += chosen.saved_tokens
        self._cached = min(first.anchor, self._cached)
        self.sums.cuts += 1
        self.sums.cleared += len(ids)

    def _read_again(self, needed: Sequence[int], turn: RecordedRound) -> None:
        """One round more, with these results at its end: asked for again, they stay like any other."""
        prices, before_tokens = self._rates.prices, self._view
        cost = prices.read * before_tokens
        joined: list[ToolUseId] = []
        for number in needed:
            before = self._segment.results[number].result
            self.sums.rereads += 1
            again = replace(before, id=ToolUseId(f"{before.id} again {self.sums.rereads}"))
            self._show(again, number, self._view)
            joined.append(again.id)
            cost += prices.write * again.tokens
            self._view += again.tokens
            self._shorter -= again.tokens
        self._cached = self._view
        self.sums.cost += cost
        self.sums.reread_cost += cost
        self.sums.peak = max(self.sums.peak, self._view)
        self._tell(turn.answered, before_tokens, (), tuple(joined))

    def _tell(
        self, at: datetime, read_tokens: int, cleared: tuple[ToolUseId, ...], joined: tuple[ToolUseId, ...]
    ) -> None:
        if self._on_request is not None:
            self._on_request(
                PlayedRequest(
                    at=at, view_tokens=self._view, read_tokens=read_tokens, cleared=cleared, joined=joined
                )
            )
