"""The cheapest cuts with hindsight: when to clear all but the last few results, knowing the whole session.

Each cut clears every result that some request has shown, except the last `keep`. What the agent needs again
later is read again, at the same price as under any policy, and goes with the next cut. After a cut nothing
depends on earlier cuts, so the best way to each cut is computed once: exact, in quadratic time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from sevenfold.replay.policies.counterfactual import CacheRates
from sevenfold.replay.policies.recording import RecordedResult, RecordedSegment, Recording

KEPT_RESULTS = 5


@dataclass(frozen=True, slots=True)
class OptimalCuts:
    """The cheapest cuts."""

    cost: float
    cuts: tuple[int, ...]
    """The rounds, counted over the whole session, before whose request a cut is made."""


def find_optimum(recording: Recording, rates: CacheRates, keep: int = KEPT_RESULTS) -> OptimalCuts:
    """The least that a session could have cost, with cuts at the best times."""
    cost, cuts, before = 0.0, list[int](), 0
    for stretch in recording.segments:
        plan = SegmentSearch(stretch, rates, keep).find()
        cost += plan.cost
        cuts += [before + number for number in plan.cuts]
        before += len(stretch.rounds)
    return OptimalCuts(cost, tuple(cuts))


class SegmentSearch:
    """One segment. `-1` stands for the time before any cut."""

    def __init__(self, stretch: RecordedSegment, rates: CacheRates, keep: int) -> None:
        self._stretch, self._rates = stretch, rates
        rounds, results = stretch.rounds, stretch.results
        self._count = len(rounds)
        self._saved = [0, *accumulate(each.result.saved_tokens for each in results)]
        """Tokens saved by clearing the first so many results."""
        self._joined = [turn.results.stop for turn in rounds]
        """Results in view by each round."""
        self._cold = [self._is_cold(number) for number in range(self._count)]
        self._depth = [
            min(self._joined[number - 1] if number else 0, max(0, self._joined[number] - keep))
            for number in range(self._count)
        ]
        """How many results a cut before each round clears."""
        self._spans = [
            [use.sources for use in turn.uses if use.kind == "span" and use.sources] for turn in rounds
        ]
        self._best = [inf] * (self._count + 1)
        self._from = [-1] * (self._count + 1)

    def find(self) -> OptimalCuts:
        """The cheapest cuts of this segment."""
        self._run(-1, 0.0)
        for start in range(self._count):
            if self._best[start] < inf:
                self._run(start, self._best[start])
        cuts: list[int] = []
        at = self._from[self._count]
        while at >= 0:
            cuts.append(at)
            at = self._from[at]
        return OptimalCuts(self._best[self._count], tuple(reversed(cuts)))

    def _run(self, start: int, cost: float) -> None:
        """From a cut on, with what it cost up to and with its request: what each next cut would have cost."""
        prices = self._rates.prices
        run = _Run(self._depth[start] if start >= 0 else 0)
        cached = self._stretch.frame_tokens
        for number in range(max(start, 0), self._count):
            view = self._stretch.rounds[number].tokens - self._saved[run.depth] + run.extra
            if number > start:
                self._offer(number, start, cost, run)
                if self._cold[number] and run.first_extra is not None:
                    run.first_extra = min(run.first_extra, self._guard(run, number, max(start, 0)))
                read = 0 if self._cold[number] else cached
                cost += prices.read * read + prices.write * (view - read)
            cached = view
            needed = run.need(self._spans[number], self._stretch.results, view)
            if needed:
                cost += prices.read * view + prices.write * needed
                cached = view + needed
            run.extras.append(run.extra)
        self._settle(self._count, cost, start)

    def _offer(self, number: int, start: int, cost: float, run: _Run) -> None:
        """A cut before this round's request, coming from `start`."""
        depth = self._depth[number]
        first = self._first_cleared(run, depth, max(start, 0))
        if first is None:
            return
        prices = self._rates.prices
        view = self._stretch.rounds[number].tokens - self._saved[depth]
        read = 0 if self._cold[number] else min(first, view)
        self._settle(number, cost + prices.read * read + prices.write * (view - read), start)

    def _first_cleared(self, run: _Run, depth: int, start: int) -> int | None:
        """Up to where the cache can still be read when these go; None: nothing would go."""
        found: list[int] = []
        number = run.depth
        while number < depth and not self._stretch.results[number].result.saved_tokens:
            number += 1
        if number < depth:
            found.append(self._end(run, self._stretch.results[number].round - 1, start))
        if run.first_extra is not None:
            found.append(run.first_extra)
        return min(found, default=None)

    def _guard(self, run: _Run, number: int, start: int) -> int:
        """Where a request marks the cache: before the round of the first result that could go."""
        for each in range(run.depth, self._joined[number]):
            if self._stretch.results[each].result.saved_tokens:
                return self._end(run, self._stretch.results[each].round - 1, start)
        return self._stretch.rounds[number].tokens + run.extra

    def _end(self, run: _Run, number: int, start: int) -> int:
        """Where the view of this round ended, as it stands since the last cut."""
        if number < 0:
            return self._stretch.frame_tokens
        gone = self._saved[min(run.depth, self._joined[number])]
        extra = run.extras[number - start] if number >= start else 0
        return self._stretch.rounds[number].tokens - gone + extra

    def _settle(self, number: int, cost: float, start: int) -> None:
        if cost < self._best[number]:
            self._best[number], self._from[number] = cost, start

    def _is_cold(self, number: int) -> bool:
        rounds = self._stretch.rounds
        before = rounds[number - 1].started if number else self._stretch.previous
        return before is None or rounds[number].started - before > self._rates.ttl


class _Run:
    """The view between two cuts."""

    __slots__ = ("_back", "depth", "extra", "extras", "first_extra")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.extra = 0
        """Tokens of results that were read again."""
        self.extras: list[int] = []
        """The same after each round."""
        self.first_extra: int | None = None
        """Where in the view the first of them stands."""
        self._back: set[int] = set()

    def need(self, spans: Sequence[tuple[int, ...]], results: Sequence[RecordedResult], view: int) -> int:
        """Tokens of what has to be read again for an answer that quotes these."""
        needed = {
            sources[-1]
            for sources in spans
            if sources[-1] < self.depth and not any(self._is_there(number, results) for number in sources)
        }
        tokens = sum(results[number].result.tokens for number in needed)
        if needed and self.first_extra is None:
            self.first_extra = view
        self._back |= needed
        self.extra += tokens
        return tokens

    def _is_there(self, number: int, results: Sequence[RecordedResult]) -> bool:
        return number in self._back or not results[number].result.saved_tokens
