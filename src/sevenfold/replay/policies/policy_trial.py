"""Recorded sessions under a policy, compared with keeping everything and with the optimum.

Costs, including what has to be read again, come from the real request path (`resend`). What stays in view and
the optimum come from token counts alone (`counterfactual`, `find_optimum`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from decimal import Decimal
from itertools import accumulate
from math import inf
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.layers.microcompact.facts import CachePrices, compute_cache_prices
from sevenfold.layers.microcompact.policy import choose_by_price, choose_prefix_by_price
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.calls import RecordedCall
from sevenfold.replay.parallel import (
    EMPTY_FILE_REASON,
    NO_TRANSCRIPT_REASON,
    FailedTask,
    ProcessPool,
    TaskDone,
    count_cores,
    do_tasks_inline,
)
from sevenfold.replay.policies import CLEARING_POLICIES
from sevenfold.replay.policies.counterfactual import CacheRates, play_recording
from sevenfold.replay.policies.recording import (
    MessageSegment,
    RecordedResult,
    RecordedSegment,
    Recording,
    read_message_segments,
    read_recordings,
)
from sevenfold.replay.policies.resend import resend_session
from sevenfold.store.foreign.transcripts import TranscriptFile, UnreadableFile, detect_agent

# The cheapest cuts with hindsight: when to clear all but the last few results, knowing the whole session.
# Each cut clears every result that some request has shown, except the last `keep`. What the agent needs
# again later is read again, at the same price as under any policy, and goes with the next cut. After a cut
# nothing depends on earlier cuts, so the best way to each cut is computed once: exact, in quadratic time.

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
    for segment in recording.segments:
        plan = SegmentSearch(segment, rates, keep).find()
        cost += plan.cost
        cuts += [before + number for number in plan.cuts]
        before += len(segment.rounds)
    return OptimalCuts(cost, tuple(cuts))


class SegmentSearch:
    """One segment. `-1` stands for the time before any cut."""

    def __init__(self, segment: RecordedSegment, rates: CacheRates, keep: int) -> None:
        self._segment, self._rates = segment, rates
        rounds, results = segment.rounds, segment.results
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
        cached = self._segment.frame_tokens
        for number in range(max(start, 0), self._count):
            view = self._segment.rounds[number].tokens - self._saved[run.depth] + run.extra
            if number > start:
                self._offer(number, start, cost, run)
                if self._cold[number] and run.first_extra is not None:
                    run.first_extra = min(run.first_extra, self._guard(run, number, max(start, 0)))
                read = 0 if self._cold[number] else cached
                cost += prices.read * read + prices.write * (view - read)
            cached = view
            needed = run.need(self._spans[number], self._segment.results, view)
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
        view = self._segment.rounds[number].tokens - self._saved[depth]
        read = 0 if self._cold[number] else min(first, view)
        self._settle(number, cost + prices.read * read + prices.write * (view - read), start)

    def _first_cleared(self, run: _Run, depth: int, start: int) -> int | None:
        """Up to where the cache can still be read when these go; None: nothing would go."""
        found: list[int] = []
        number = run.depth
        while number < depth and not self._segment.results[number].result.saved_tokens:
            number += 1
        if number < depth:
            found.append(self._end(run, self._segment.results[number].round - 1, start))
        if run.first_extra is not None:
            found.append(run.first_extra)
        return min(found, default=None)

    def _guard(self, run: _Run, number: int, start: int) -> int:
        """Where a request marks the cache: before the round of the first result that could go."""
        for each in range(run.depth, self._joined[number]):
            if self._segment.results[each].result.saved_tokens:
                return self._end(run, self._segment.results[each].round - 1, start)
        return self._segment.rounds[number].tokens + run.extra

    def _end(self, run: _Run, number: int, start: int) -> int:
        """Where the view of this round ended, as it stands since the last cut."""
        if number < 0:
            return self._segment.frame_tokens
        gone = self._saved[min(run.depth, self._joined[number])]
        extra = run.extras[number - start] if number >= start else 0
        return self._segment.rounds[number].tokens - gone + extra

    def _settle(self, number: int, cost: float, start: int) -> None:
        if cost < self._best[number]:
            self._best[number], self._from[number] = cost, start

    def _is_cold(self, number: int) -> bool:
        rounds = self._segment.rounds
        before = rounds[number - 1].started if number else self._segment.previous
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


CacheLifetime: TypeAlias = Literal["5m", "1h"]
PriceSource: TypeAlias = Literal["model", "assumed", "asked"]
OnShareDone: TypeAlias = Callable[[float], None]

LIFETIME_RATES: dict[CacheLifetime, CacheRates] = {
    "5m": CacheRates(timedelta(minutes=5), CachePrices(0.1, 1.25)),
    "1h": CacheRates(timedelta(hours=1), CachePrices(0.1, 2.0)),
}
"""What most models ask, and what is assumed of one without a price."""

INLINE_TRIAL_BYTES = 256 * 1024
"""Below this, starting processes takes longer than they would save: sending again is slower than reading."""

NO_CALL_REASON = "it holds no call of a main conversation"
NO_TIMES_REASON = "its calls have no times, so that nobody can say when its cache was cold"
TOO_OLD_REASON = "its last call is older than --since"


@dataclass(frozen=True, slots=True)
class PolicyQuestion:
    """Which policy, and at which prices."""

    policy: str
    lifetime: CacheLifetime
    read_price: float | None
    """Of a token read from the cache, in fresh ones; None: the session's own model's."""
    terms: ReplayTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFigures:
    """One session or several. Costs are in tokens at the price of fresh input, without output."""

    calls: int = 0
    keep_cost: float = 0.0
    """Through the request path, with everything kept."""
    cost: float = 0.0
    """Through the request path, under the policy, with what has to be read again."""
    reread_cost: float = 0.0
    """Of which: for results that were cleared and then needed again."""
    rereads: int = 0
    unannounced: int = 0
    missed: int = 0
    cuts: int = 0
    keep_peak_tokens: int = 0
    peak_tokens: int = 0
    played_cost: float = 0.0
    """By figures, under the policy, with what has to be read again: as the optimum is counted."""
    optimum_cost: float = 0.0
    in_view: int = 0
    one_pointer_away: int = 0
    wanted: int = 0

    def __add__(self, other: PolicyFigures) -> PolicyFigures:
        """Sums, and the larger peak."""
        sums = {item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(self)}
        sums["keep_peak_tokens"] = max(self.keep_peak_tokens, other.keep_peak_tokens)
        sums["peak_tokens"] = max(self.peak_tokens, other.peak_tokens)
        return PolicyFigures(**sums)

    @property
    def ratio(self) -> float:
        """Against keeping everything."""
        return self.cost / self.keep_cost

    @property
    def optimum_ratio(self) -> float:
        return self.played_cost / self.optimum_cost

    @property
    def tax_share(self) -> float:
        return self.reread_cost / self.cost

    @property
    def view_share(self) -> float | None:
        return self.in_view / self.wanted if self.wanted else None

    @property
    def pointer_share(self) -> float | None:
        """Out of view, with a pointer in view that names it."""
        return self.one_pointer_away / self.wanted if self.wanted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRates:
    """What a session's tokens cost."""

    model: str
    prices: CachePrices
    source: PriceSource
    fresh_usd: Decimal | None
    """A million fresh tokens; None: unknown, or not the same for prompts of every size."""
    is_signed: bool
    """The model's old turns cannot be rewritten by the client: the provider clears."""


@dataclass(frozen=True, slots=True)
class PolicyTrial:
    """A session that was sent again."""

    path: Path
    rated: SessionRates
    is_billed: bool
    """The log holds bills; otherwise every size is an estimate."""
    figures: PolicyFigures

    def usd(self, cost: float) -> Decimal | None:
        fresh = self.rated.fresh_usd
        return None if fresh is None else Decimal(str(cost)) * fresh / 1_000_000


@dataclass(frozen=True, slots=True)
class TrialResults:
    done: tuple[PolicyTrial, ...]
    skipped: tuple[UnreadableFile, ...]


@dataclass(frozen=True, slots=True)
class TrialTask:
    file: TranscriptFile
    question: PolicyQuestion


def run_trials(
    found: Sequence[TranscriptFile],
    question: PolicyQuestion,
    *,
    jobs: int | None = None,
    on_share: OnShareDone,
) -> TrialResults:
    """Every session under the policy, in the order given. One that cannot be sent again costs only itself."""
    # The largest first, so that no process is left alone with one at the end.
    orders = [TrialTask(file, question) for file in sorted(found, key=lambda file: -file.size_bytes)]
    total, sent = sum(file.size_bytes for file in found) or 1, 0

    def count(more_bytes: int) -> None:
        nonlocal sent
        sent += more_bytes
        on_share(sent / total)

    on_share(0.0)
    done: dict[Path, PolicyTrial] = {}
    skipped: dict[Path, UnreadableFile] = {}
    with ExitStack() as stack:
        for each in _run(orders, jobs or count_cores(), count, stack):
            path = orders[each.place].file.path
            match each.result:
                case PolicyTrial() as trial:
                    done[path] = trial
                case UnreadableFile() as reason:
                    skipped[path] = reason
                case FailedTask(reason=reason):
                    skipped[path] = UnreadableFile(path, reason.removeprefix(f"cannot read {path}: "))
    paths = [file.path for file in found]
    return TrialResults(
        tuple(done[path] for path in paths if path in done),
        tuple(skipped[path] for path in paths if path in skipped),
    )


def try_policy(order: TrialTask, on_bytes: Callable[[int], None]) -> PolicyTrial | UnreadableFile:
    """Run one task in a process of the pool: the main conversation of one file, or why not."""
    file, question = order.file, order.question
    agent = detect_agent(file.path)
    if agent is None:
        return UnreadableFile(file.path, NO_TRANSCRIPT_REASON if file.size_bytes else EMPTY_FILE_REASON)
    segments = read_message_segments(file.path, agent)
    calls = [step for segment in segments for step in segment.steps if isinstance(step, RecordedCall)]
    recording = next(
        (each for each in read_recordings(file.path, agent) if each.name == file.path.stem), None
    )
    since = question.terms.since
    if not calls:
        return UnreadableFile(file.path, NO_CALL_REASON)
    if recording is None:
        return UnreadableFile(file.path, NO_TIMES_REASON)
    if since and recording.segments[-1].rounds[-1].answered < since:
        return UnreadableFile(file.path, TOO_OLD_REASON)
    rated = choose_session_rates(calls, question)
    figures = _measure(segments, recording, question, rated, lambda: on_bytes(file.size_bytes // 3))
    is_billed = any(call.usage and call.usage.prompt for call in calls)
    return PolicyTrial(file.path, rated, is_billed, figures)


def choose_session_rates(calls: Sequence[RecordedCall], question: PolicyQuestion) -> SessionRates:
    """At the prices of the model that made most calls, on the day of the first."""
    terms, usual = question.terms, LIFETIME_RATES[question.lifetime]
    name = Counter(call.model for call in calls).most_common(1)[0][0]
    model = terms.reprice or terms.catalog.find(name)
    tariff = model.prices_at(None if terms.reprice else calls[0].at)
    prices = compute_cache_prices(tariff.prices, usual.ttl) if tariff else usual.prices
    source: PriceSource = "model" if tariff else "assumed"
    if question.read_price is not None:
        prices, source = replace(prices, read=question.read_price), "asked"
    fresh = tariff.prices.fresh if tariff and tariff.long_prices is None else None
    # A model that no table knows is taken to sign, for caution: that says nothing about it.
    is_signed = model.is_known and model.has_preserved_thinking
    return SessionRates(model=model.name, prices=prices, source=source, fresh_usd=fresh, is_signed=is_signed)


def _measure(
    segments: Sequence[MessageSegment],
    recording: Recording,
    question: PolicyQuestion,
    rated: SessionRates,
    on_step: Callable[[], None],
) -> PolicyFigures:
    rates, is_signed = CacheRates(LIFETIME_RATES[question.lifetime].ttl, rated.prices), rated.is_signed
    by_price = choose_prefix_by_price if is_signed else choose_by_price
    settings = CLEARING_POLICIES[question.policy]
    played, optimum = (
        play_recording(recording, settings, rates, by_price=by_price),
        find_optimum(recording, rates),
    )
    on_step()
    keep = resend_session(segments, recording, CLEARING_POLICIES["keep"], rates, is_signed=is_signed)
    on_step()
    done = keep
    if question.policy != "keep":
        done = resend_session(segments, recording, settings, rates, is_signed=is_signed)
    on_step()
    return PolicyFigures(
        calls=keep.requests,
        keep_cost=keep.cost,
        cost=done.cost,
        unannounced=done.unannounced,
        missed=done.missed,
        cuts=done.cuts,
        keep_peak_tokens=keep.peak_tokens,
        peak_tokens=done.peak_tokens,
        reread_cost=done.reread_cost,
        rereads=done.rereads,
        played_cost=played.cost,
        optimum_cost=optimum.cost,
        in_view=played.in_view,
        one_pointer_away=played.one_pointer_away,
        wanted=played.wanted,
    )


def _run(
    orders: Sequence[TrialTask], jobs: int, count: Callable[[int], None], stack: ExitStack
) -> Iterator[TaskDone[PolicyTrial | UnreadableFile]]:
    is_small = sum(order.file.size_bytes for order in orders) < INLINE_TRIAL_BYTES
    if jobs == 1 or len(orders) < 2 or is_small:
        return do_tasks_inline(try_policy, orders, count)
    pool = ProcessPool[TrialTask, PolicyTrial | UnreadableFile](try_policy, min(jobs, len(orders)))
    return stack.enter_context(pool).run(orders, count)
