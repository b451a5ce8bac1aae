"""Recorded sessions under a policy, beside keeping everything and beside the best that hindsight could do.

Costs, with what has to be read again, come from the real request path (`driven`). What stays in view and the
optimum come from the figures alone (`counterfactual`, `optimum`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.layers.stakes import CachePrices, cache_prices
from sevenfold.replay.account import Terms
from sevenfold.replay.calls import Call
from sevenfold.replay.counterfactual import Rates, play
from sevenfold.replay.counterfactual_record import Recording, read_recordings
from sevenfold.replay.crew import Crew, Done, Failed, run_inline
from sevenfold.replay.driven import drive
from sevenfold.replay.driven_record import Stretch, read_stretches
from sevenfold.replay.optimum import find_optimum
from sevenfold.replay.parallel import EMPTY, NO_TRANSCRIPT, count_cores
from sevenfold.replay.policies import POLICIES
from sevenfold.store.foreign.detect import detect
from sevenfold.store.foreign.find import Found, Unreadable

Lifetime: TypeAlias = Literal["5m", "1h"]
Source: TypeAlias = Literal["model", "assumed", "asked"]
OnShare: TypeAlias = Callable[[float], None]

LIFETIMES: dict[Lifetime, Rates] = {
    "5m": Rates(timedelta(minutes=5), CachePrices(0.1, 1.25)),
    "1h": Rates(timedelta(hours=1), CachePrices(0.1, 2.0)),
}
"""What most models ask, and what is assumed of one without a price."""

SMALL_BYTES = 256 * 1024
"""Below this, starting processes takes longer than they would save: sending again is slower than reading."""

NO_CALL = "it holds no call of a main conversation"
NO_TIMES = "its calls have no times, so that nobody can say when its cache was cold"
TOO_OLD = "its last call is older than --since"


@dataclass(frozen=True, slots=True)
class Question:
    """Which policy, and at which prices."""

    policy: str
    lifetime: Lifetime
    read_price: float | None
    """Of a token read from the cache, in fresh ones; None: the session's own model's."""
    terms: Terms


@dataclass(frozen=True, slots=True)
class Figures:
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

    def __add__(self, other: Figures) -> Figures:
        """Sums, and the larger peak."""
        sums = {item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(self)}
        sums["keep_peak_tokens"] = max(self.keep_peak_tokens, other.keep_peak_tokens)
        sums["peak_tokens"] = max(self.peak_tokens, other.peak_tokens)
        return Figures(**sums)

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


@dataclass(frozen=True, slots=True)
class Rated:
    """What a session's tokens cost."""

    model: str
    prices: CachePrices
    source: Source
    fresh_usd: Decimal | None
    """A million fresh tokens; None: unknown, or not the same for prompts of every size."""
    is_signed: bool
    """The model's old turns cannot be rewritten by the client, as is done here."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A session that was sent again."""

    path: Path
    rated: Rated
    is_billed: bool
    """The log holds bills; otherwise every size is an estimate."""
    figures: Figures

    def usd(self, cost: float) -> Decimal | None:
        fresh = self.rated.fresh_usd
        return None if fresh is None else Decimal(str(cost)) * fresh / 1_000_000


@dataclass(frozen=True, slots=True)
class Trials:
    done: tuple[Trial, ...]
    skipped: tuple[Unreadable, ...]


@dataclass(frozen=True, slots=True)
class Order:
    file: Found
    question: Question


def run_trials(
    found: Sequence[Found], question: Question, *, jobs: int | None = None, on_share: OnShare
) -> Trials:
    """Every session under the policy, in the order given. One that cannot be sent again costs only itself."""
    # The largest first, so that no process is left alone with one at the end.
    orders = [Order(file, question) for file in sorted(found, key=lambda file: -file.size_bytes)]
    total, sent = sum(file.size_bytes for file in found) or 1, 0

    def count(more_bytes: int) -> None:
        nonlocal sent
        sent += more_bytes
        on_share(sent / total)

    on_share(0.0)
    done: dict[Path, Trial] = {}
    skipped: dict[Path, Unreadable] = {}
    with ExitStack() as stack:
        for each in _run(orders, jobs or count_cores(), count, stack):
            path = orders[each.place].file.path
            match each.result:
                case Trial() as trial:
                    done[path] = trial
                case Unreadable() as reason:
                    skipped[path] = reason
                case Failed(reason=reason):
                    skipped[path] = Unreadable(path, reason.removeprefix(f"cannot read {path}: "))
    paths = [file.path for file in found]
    return Trials(
        tuple(done[path] for path in paths if path in done),
        tuple(skipped[path] for path in paths if path in skipped),
    )


def try_session(order: Order, on_bytes: Callable[[int], None]) -> Trial | Unreadable:
    """What a process does with an order: the main conversation of one file, or why not."""
    file, question = order.file, order.question
    agent = detect(file.path)
    if agent is None:
        return Unreadable(file.path, NO_TRANSCRIPT if file.size_bytes else EMPTY)
    stretches = read_stretches(file.path, agent)
    calls = [step for stretch in stretches for step in stretch.steps if isinstance(step, Call)]
    recording = next(
        (each for each in read_recordings(file.path, agent) if each.name == file.path.stem), None
    )
    since = question.terms.since
    if not calls:
        return Unreadable(file.path, NO_CALL)
    if recording is None:
        return Unreadable(file.path, NO_TIMES)
    if since and recording.stretches[-1].rounds[-1].answered < since:
        return Unreadable(file.path, TOO_OLD)
    rated = rate(calls, question)
    figures = _measure(stretches, recording, question, rated.prices, lambda: on_bytes(file.size_bytes // 3))
    is_billed = any(call.usage and call.usage.prompt for call in calls)
    return Trial(file.path, rated, is_billed, figures)


def rate(calls: Sequence[Call], question: Question) -> Rated:
    """At the prices of the model that made most calls, on the day of the first."""
    terms, usual = question.terms, LIFETIMES[question.lifetime]
    name = Counter(call.model for call in calls).most_common(1)[0][0]
    model = terms.reprice or terms.catalog.find(name)
    tariff = model.prices_at(None if terms.reprice else calls[0].at)
    prices = cache_prices(tariff.prices, usual.ttl) if tariff else usual.prices
    source: Source = "model" if tariff else "assumed"
    if question.read_price is not None:
        prices, source = replace(prices, read=question.read_price), "asked"
    fresh = tariff.prices.fresh if tariff and tariff.long_prices is None else None
    # A model that no table knows is taken to sign, for caution: that says nothing about it.
    is_signed = model.is_known and model.has_preserved_thinking
    return Rated(model.name, prices, source, fresh, is_signed)


def _measure(
    stretches: Sequence[Stretch],
    recording: Recording,
    question: Question,
    prices: CachePrices,
    on_step: Callable[[], None],
) -> Figures:
    rates = Rates(LIFETIMES[question.lifetime].ttl, prices)
    settings = POLICIES[question.policy]
    played, optimum = play(recording, settings, rates), find_optimum(recording, rates)
    on_step()
    keep = drive(stretches, recording, POLICIES["keep"], rates)
    on_step()
    done = keep
    if question.policy != "keep":
        done = drive(stretches, recording, settings, rates)
    on_step()
    return Figures(
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
    orders: Sequence[Order], jobs: int, count: Callable[[int], None], stack: ExitStack
) -> Iterator[Done[Trial | Unreadable]]:
    is_small = sum(order.file.size_bytes for order in orders) < SMALL_BYTES
    if jobs == 1 or len(orders) < 2 or is_small:
        return run_inline(try_session, orders, count)
    crew = Crew[Order, Trial | Unreadable](try_session, min(jobs, len(orders)))
    return stack.enter_context(crew).run(orders, count)
