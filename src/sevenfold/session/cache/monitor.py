"""Monitors the prompt cache: compares every request with the one before it, and every bill with what was
expected.

`check` before a send, `settle` after its answer. Requests are grouped by caller (`who`): the main
conversation, or a kind of fork. A fork continues the main conversation or its own last request; what shares
nothing with either is a conversation of its own. `UsageLedger` sums up usage and cost by caller, and
`MonitoredProvider` does all of this for the calls of forks. `RequestLog` writes each request down before
it is sent.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Literal, TypeAlias

from sevenfold.core.cache.prompt_blocks import FIVE_MINUTES, ONE_HOUR, PROMPT_LEVELS
from sevenfold.core.cache.prompt_cache import PromptDifference
from sevenfold.core.cache.rendered_prompt import DifferenceCause
from sevenfold.core.clock import Clock
from sevenfold.core.errors import ProviderError, ProviderUnreachable, ReplyBroken
from sevenfold.core.events import (
    CacheMissed,
    CutRegistered,
    Emit,
    PrefixBroken,
    PromptTrimmed,
    ignore_event,
)
from sevenfold.core.json import Json, JsonObject
from sevenfold.core.prices import (
    CATALOG,
    NO_COST,
    Catalog,
    Cost,
    compute_cost,
    compute_uncached_cost,
    sum_costs,
)
from sevenfold.core.requests import WHOLE_PROMPT, Cut, ModelRequest, ModelResponse
from sevenfold.core.usage import NO_USAGE, TokenCounts, Usage, is_simulated_id
from sevenfold.layers.conversation_state import Journal
from sevenfold.layers.microcompact.server_clearing import clears_exactly
from sevenfold.providers.provider import OnDelta, Provider, ProviderWrapper
from sevenfold.session.cache.comparer import RequestComparer, RequestComparison, RequestOutline
from sevenfold.store.transcript.records import (
    SentRecord,
    UsageRecord,
)


class RequestLog:
    """Records each request before it is sent, and counts those that have no bill yet."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._open: Counter[str] = Counter()

    @property
    def unbilled(self) -> int:
        """Requests since the session was opened here that have no bill: under way, or lost."""
        return self._open.total()

    def sent(self, model: str, who: str) -> None:
        """On the disk after the next flush, which comes before the request goes out."""
        self._journal.add(SentRecord(model, who))
        self._open[who] += 1

    def resent(self, model: str, who: str) -> None:
        """The last request is about to be sent again. After a refusal or an answer it counts as a new one."""
        if not self._open[who]:
            self.sent(model, who)

    def billed(self, who: str) -> None:
        self._open[who] -= self._open[who] > 0

    def refused(self, model: str, who: str, error: ProviderError) -> None:
        """The request failed. If it cannot have been billed, that is recorded."""
        if self._open[who] > 0 and not isinstance(error, ReplyBroken | ProviderUnreachable):
            self._journal.add(SentRecord(model, who, is_refused=True))
            self._open[who] -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendSummary:
    """What the calls of one caller used, or of all."""

    who: str
    calls: int = 0
    usage: Usage = NO_USAGE
    """All runs together, those beside the totals included: to be counted, not priced."""
    cost: Cost | None = NO_COST
    """None when the price of one call is not known: a part is no total."""
    cost_without_caching: Cost | None = NO_COST
    """What the same calls would have cost with every prompt token fresh."""

    def __add__(self, other: SpendSummary) -> SpendSummary:
        """Both together, under the name of this one."""
        return replace(_total((self, other)), who=self.who)

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens that came out of the cache."""
        return self.usage.read / self.usage.prompt if self.usage.prompt else 0.0


class UsageLedger:
    """Usage and price of every call, summed by caller."""

    def __init__(self, catalog: Catalog = CATALOG) -> None:
        self._catalog = catalog
        self._summaries: dict[str, SpendSummary] = {}

    def add(self, who: str, model: str, reply: ModelResponse, when: date) -> Cost | None:
        """Add one call; returns its price, or None if that is not known."""
        return self.add_usage(who, reply.model or model, reply.usage, when)

    def add_usage(self, who: str, model: str, usage: Usage, when: date) -> Cost | None:
        """The same for a call of which no more than its usage is known."""
        price = plain = None
        if usage.requests:
            billed = self._catalog.find(model)
            price = compute_cost(usage, billed, when=when, catalog=self._catalog)
            plain = compute_uncached_cost(usage, billed, when=when, catalog=self._catalog)
        before = self._summaries.get(who, SpendSummary(who=who))
        self._summaries[who] = SpendSummary(
            who=who,
            calls=before.calls + 1,
            usage=before.usage + usage.billed,
            cost=sum_costs((before.cost, price)),
            cost_without_caching=sum_costs((before.cost_without_caching, plain)),
        )
        return price

    def add_summary(self, summary: SpendSummary) -> None:
        """Book calls that were summed up elsewhere."""
        before = self._summaries.get(summary.who)
        self._summaries[summary.who] = before + summary if before else summary

    def spent(self) -> tuple[SpendSummary, ...]:
        """By caller, in the order of their first calls."""
        return tuple(self._summaries.values())

    def total(self) -> SpendSummary:
        return _total(self._summaries.values())


def _total(summaries: Iterable[SpendSummary]) -> SpendSummary:
    listed = tuple(summaries)
    return SpendSummary(
        who="all",
        calls=sum(one.calls for one in listed),
        usage=sum((one.usage for one in listed), NO_USAGE),
        cost=sum_costs(one.cost for one in listed),
        cost_without_caching=sum_costs(one.cost_without_caching for one in listed),
    )


_MAIN = "main"
_RECENT = 8
"""Requests of one caller that a fork may continue: parallel forks of one kind take turns."""

MESSAGE_DERIVED_PARAMS = frozenset({"citations"})
"""Settings that nobody sets: they follow from what the messages hold."""

MissCause: TypeAlias = DifferenceCause | Literal["idle", "unexplained"]


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """What an answered request left in the cache, up to its last breakpoint."""

    tokens: int
    since: datetime
    """When it started: an entry lives from then."""
    ttl: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOutcome:
    """How a prompt was served: from the cache or not, and why."""

    expected_tokens: int
    """Tokens that the last answered request left in the cache; 0 without one."""
    read_tokens: int
    cause: MissCause | None
    """Why less was read than expected; None when it was not."""
    diagnostics: str
    """The reason that the provider's diagnostics gave; empty without one."""
    cost: Cost | None


@dataclass(slots=True, kw_only=True)
class _Sent:
    """A request that was checked."""

    outline: RequestOutline
    started: datetime
    expects: CachedPrefix | None = None
    """What it should read."""
    broken: DifferenceCause | None = None
    is_cut: bool = False
    """A cut came with it, or with one before it that was not answered."""
    promise: CachedPrefix | None = None
    """What it wrote, once it was answered."""

    @property
    def left(self) -> CachedPrefix | None:
        """What the next request can read. A failed request writes nothing and removes nothing."""
        return self.promise or self.expects


@dataclass(frozen=True, slots=True)
class _Found:
    """The request that another one goes on from, or should."""

    sent: _Sent
    step: RequestComparison


@dataclass(slots=True)
class _CallerRequests:
    recent: deque[_Sent] = field(default_factory=lambda: deque[_Sent](maxlen=_RECENT))


class CacheMonitor:
    """The monitor of one session. Not thread-safe: a session has one event loop."""

    def __init__(self, emit: Emit = ignore_event, catalog: Catalog = CATALOG) -> None:
        self._emit = emit
        self._comparer = RequestComparer(catalog)
        self._callers: dict[str, _CallerRequests] = {}
        self.ledger = UsageLedger(catalog)

    def check(
        self, request: ModelRequest, now: datetime, cuts: Sequence[Cut] = ()
    ) -> PromptDifference | None:
        """Compare a request that is about to be sent with the one before it.

        `cuts` are those made since that one; what they explain is no break. The same request again, as after
        a failure, changes nothing.
        """
        for cut in cuts:
            self._emit(CutRegistered(request.purpose, cut.layer, cut.reason, cut.first))
        found = self._predecessor(request)
        if found is None:
            self._requests_of(request.purpose).recent.append(
                _Sent(outline=self._comparer.outline(request), started=now)
            )
            return None
        difference = found.step.difference
        is_cut = bool(cuts) or (found.sent.is_cut and found.sent.promise is None)
        sent = _Sent(outline=found.step.outline, started=now, is_cut=is_cut)
        self._requests_of(request.purpose).recent.append(sent)
        if found.step.is_longer:
            sent.expects = found.sent.left
        if difference is None or has_explaining_cut(cuts, difference):
            return difference
        lost = difference.missed_tokens
        if found.step.is_trimmed:
            self._emit(PromptTrimmed(request.purpose, difference.path, lost))
        elif not _branches(found, request):
            sent.expects, sent.broken = found.sent.left, difference.cause
            self._emit(PrefixBroken(request.purpose, difference.cause, difference.path, lost))
        return difference

    def settle(self, request: ModelRequest, reply: ModelResponse, now: datetime) -> CacheOutcome:
        """Compare the bill of an answer with what was expected, and add it to the ledger."""
        price = self.ledger.add(request.purpose, request.frame.model, reply, now)
        diagnosed = _read_diagnosis(reply.extra.get("diagnostics"))
        sent = next((item for item in self._own(request.purpose) if item.outline.request is request), None)
        run = reply.usage.last_run or _summed_up(reply.usage)
        if sent is None:
            return CacheOutcome(
                expected_tokens=0, read_tokens=run.read, cause=None, diagnostics=diagnosed, cost=price
            )
        promised, sent.promise = sent.expects, _promise(request, reply, sent.started)
        expected = promised.tokens if promised else 0
        if promised is None or run.read >= expected or _is_excused(request, reply, is_cut=sent.is_cut):
            return CacheOutcome(
                expected_tokens=expected, read_tokens=run.read, cause=None, diagnostics=diagnosed, cost=price
            )
        idle = max(timedelta(), sent.started - promised.since)
        cause = sent.broken or ("idle" if idle > promised.ttl else "unexplained")
        missed = CacheMissed(
            who=request.purpose,
            expected_tokens=expected,
            read_tokens=run.read,
            idle_seconds=int(idle.total_seconds()),
            cause=cause,
            told=diagnosed,
        )
        self._emit(missed)
        return CacheOutcome(
            expected_tokens=expected, read_tokens=run.read, cause=cause, diagnostics=diagnosed, cost=price
        )

    def _predecessor(self, request: ModelRequest) -> _Found | None:
        if request.purpose == _MAIN:
            last = next(self._own(_MAIN), None)
            return self._compared(last, request) if last else None
        if all(mark.level != "messages" for mark in request.breakpoints):
            # It has no breakpoint in its messages, so it can miss none.
            return None
        own, main = tuple(self._own(request.purpose)), tuple(self._own(_MAIN))
        first: _Found | None = None
        # The newest first: what was sent before a cut is compared at length, and shares nothing.
        for sent in (*own[:1], *main[:1], *own[1:], *main[1:]):
            if not _is_related(sent, request):
                continue
            found = self._compared(sent, request)
            if found.step.difference is None:
                return found
            first = first or found
        return first

    def _compared(self, sent: _Sent, request: ModelRequest) -> _Found:
        return _Found(sent, self._comparer.compare(sent.outline, request))

    def _requests_of(self, who: str) -> _CallerRequests:
        return self._callers.setdefault(who, _CallerRequests())

    def _own(self, who: str) -> Iterator[_Sent]:
        """The requests of one caller, the last one first."""
        return reversed(self._requests_of(who).recent)


def has_explaining_cut(cuts: Sequence[Cut], difference: PromptDifference) -> bool:
    """Whether one of the cuts accounts for a difference."""
    if not cuts:
        return False
    first = min(cut.first for cut in cuts)
    if difference.cause == "message":
        return first <= int(difference.path.split(".")[1])
    return first == WHOLE_PROMPT or difference.path in MESSAGE_DERIVED_PARAMS


def _is_related(sent: _Sent, request: ModelRequest) -> bool:
    """Whether both begin with the same message on the same model, so that one should go on from the other."""
    earlier = sent.outline.request
    if not earlier.messages or not request.messages or earlier.frame.model != request.frame.model:
        return False
    return earlier.messages[0] is request.messages[0] or earlier.messages[0] == request.messages[0]


def _branches(found: _Found, request: ModelRequest) -> bool:
    """Whether a fork only leaves the conversation at an earlier place, with one message of its own."""
    is_alike = found.step.difference is not None and found.step.difference.cause == "message"
    return request.purpose != _MAIN and is_alike and found.step.shared >= len(request.messages) - 1


def _summed_up(usage: Usage) -> TokenCounts:
    """The run of an answer that is a compaction alone: it read the conversation, as any other would."""
    return usage.iterations[-1] if usage.iterations else TokenCounts()


def _promise(request: ModelRequest, reply: ModelResponse, started: datetime) -> CachedPrefix | None:
    """What the next request can read of this one: all up to its last breakpoint, as it was billed."""
    run = reply.usage.last_run
    if run is None or reply.dialect != "anthropic" or not run.read + run.written:
        # Other providers cache as they decide, so nothing is expected.
        return None
    marks = sorted(
        request.breakpoints, key=lambda mark: (PROMPT_LEVELS.index(mark.level), mark.index, mark.block)
    )
    is_long = run.written_1h and not run.written_5m
    ttl = marks[-1].ttl if marks else ONE_HOUR if is_long else FIVE_MINUTES
    return CachedPrefix(run.read + run.written, started, ttl)


def _is_excused(request: ModelRequest, reply: ModelResponse, *, is_cut: bool) -> bool:
    """Whether the provider changed the prompt. What it clears for us changes only with a cut."""
    return _is_edited(reply) and (is_cut or not clears_exactly(request.frame.params))


def _is_edited(reply: ModelResponse) -> bool:
    """Whether the provider says that it changed the prompt."""
    management = reply.extra.get("context_management")
    edits = management.get("applied_edits") if isinstance(management, JsonObject) else None
    return bool(edits or reply.extra.get("input_transformations") or len(reply.usage.iterations) > 1)


def _read_diagnosis(diagnostics: Json) -> str:
    reason = diagnostics.get("cache_miss_reason") if isinstance(diagnostics, JsonObject) else None
    kind = reason.get("type") if isinstance(reason, JsonObject) else None
    return kind if isinstance(kind, str) else ""


class MonitoredProvider(ProviderWrapper):
    """The provider of forks: each call is monitored, billed and recorded."""

    def __init__(
        self, inner: Provider, monitor: CacheMonitor, journal: Journal, clock: Clock, log: RequestLog
    ) -> None:
        super().__init__(inner)
        self._monitor, self._journal, self._clock, self._log = monitor, journal, clock, log

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        self._monitor.check(request, self._clock.now())
        self._log.sent(request.frame.model, request.purpose)
        await self._journal.flush()
        try:
            reply = await self._inner.send(request, on_delta)
        except ProviderError as error:
            self._log.refused(request.frame.model, request.purpose, error)
            raise
        self._log.billed(request.purpose)
        self._monitor.settle(request, reply, self._clock.now())
        model = reply.model or request.frame.model
        self._journal.add(
            UsageRecord(
                model=model,
                who=request.purpose,
                wire=reply.usage_wire,
                dialect=reply.dialect,
                is_simulated=is_simulated_id(reply.id),
            )
        )
        return reply

    async def close(self) -> None:
        """Do nothing: the owner of the provider closes it."""
