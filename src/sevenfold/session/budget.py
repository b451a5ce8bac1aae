"""What background work may spend: pure arithmetic over expenses, holds and failures, and its JSON form.

Money is held before a call and settled after it, so that concurrent calls cannot each use up the same
remainder. Times are kept in slots of ten minutes: an hour is all slots that touch it, which is on the safe
side of a cap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, ClassVar

from sevenfold.core.fields import JsonForm, NonNegative, write_fields
from sevenfold.core.json import JsonObject
from sevenfold.core.settings import amount, limit, switch

MAIN_KIND = "main"
"""Whose calls a person asked for: counted elsewhere, and never refused."""

SLOT_LENGTH = timedelta(minutes=10)
SPEND_HOUR = timedelta(hours=1)
SPEND_DAY = timedelta(days=1)

MAX_HOLD_AGE = timedelta(minutes=30)
"""No call takes longer. What is held beyond it belonged to a process that died, and counts as spent."""

MICROS_PER_USD = 1_000_000
MICROS_PER_CENT = 10_000
"""Micro-dollars."""

MAX_PAUSE = SPEND_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendSettings:
    SECTION: ClassVar[str] = "spend"

    background: bool = switch(True)
    """The kill switch: off, no model is asked for anything but the conversation itself."""

    cents_per_hour: int = limit(500)
    """All background work of all processes together. Notes of a busy hour on a large model cost a tenth."""

    cents_per_day: int = limit(2_500)
    """Five busy hours: a runaway is stopped the same day, and nobody's work is."""

    tokens_per_hour: int = limit(50_000_000)
    """For models without a known price. Nearly all are cache reads: a hundred forks of a long session."""

    tokens_per_day: int = limit(250_000_000)
    """Five such hours, as for the cents."""

    strikes: int = limit(3, at_least=1)
    """Failures in a row after which a kind of work pauses: what failed three times fails a fourth time."""

    pause_minutes: int = amount(10, at_least=1, at_most=1_440)
    """The first pause. Each failure after it doubles it, up to a day."""


@dataclass(frozen=True, slots=True)
class Expense:
    tokens: NonNegative = 0
    micro_usd: NonNegative = 0
    """0 also where the price is not known; then the caps on tokens hold alone."""

    def __add__(self, other: Expense) -> Expense:
        return Expense(self.tokens + other.tokens, self.micro_usd + other.micro_usd)


@dataclass(frozen=True, slots=True)
class SpendHold:
    """What a call under way may cost."""

    id: str
    kind: str
    expense: Annotated[Expense, JsonForm(is_inline=True)]
    until: datetime


@dataclass(frozen=True, slots=True)
class Strikes:
    """Failures of one kind of work, one after the other."""

    count: NonNegative
    until: datetime
    """It pauses until then, once they are too many."""
    reason: str


@dataclass(frozen=True, slots=True)
class SpendState:
    slots: Mapping[int, Expense] = field(default_factory=dict[int, Expense])
    """By ten-minute slot since 1970."""
    held: tuple[SpendHold, ...] = ()
    strikes: Mapping[str, Strikes] = field(default_factory=dict[str, Strikes])
    stopped: str = ""
    """Who stopped background work and when; empty: nobody."""

    def used(self, now: datetime, span: timedelta) -> Expense:
        """What was spent in the time before `now`, and what is held for calls under way."""
        first = find_slot(now - span)
        spent = sum((each for slot, each in self.slots.items() if slot >= first), Expense())
        return sum((hold.expense for hold in self.held), spent)


@dataclass(frozen=True, slots=True)
class SpendRefusal:
    """Why a call may not be made now, and what to do about it."""

    reason: str


def find_slot(when: datetime) -> int:
    return int(when.astimezone(UTC).timestamp() // SLOT_LENGTH.total_seconds())


def plan_hold(
    state: SpendState, hold: SpendHold, now: datetime, settings: SpendSettings
) -> SpendState | SpendRefusal:
    """The state with a hold for this call, or why the caps do not allow it."""
    refusal = _barred(state, hold.kind, now, settings) or _over(state, hold, now, settings)
    return refusal or replace(state, held=(*state.held, hold))


def settle_hold(state: SpendState, hold: SpendHold, spent: Expense, now: datetime) -> SpendState:
    """The call is over: this much of what was held for it was spent."""
    held = tuple(item for item in state.held if item.id != hold.id)
    return add_expense(replace(state, held=held), spent, now)


def clear_strikes(state: SpendState, kind: str) -> SpendState:
    if kind not in state.strikes:
        return state
    return replace(state, strikes={key: each for key, each in state.strikes.items() if key != kind})


def add_strike(
    state: SpendState, kind: str, reason: str, now: datetime, settings: SpendSettings
) -> SpendState:
    """One more failure in a row."""
    before = state.strikes.get(kind)
    count = before.count + 1 if before else 1
    until = now
    if count >= settings.strikes:
        minutes = settings.pause_minutes * 2 ** min(count - settings.strikes, 10)
        until = now + min(timedelta(minutes=minutes), MAX_PAUSE)
    return replace(state, strikes={**state.strikes, kind: Strikes(count, until, reason)})


def drop_expired(state: SpendState, now: datetime) -> SpendState:
    """Without what is too old to count, and with what dead processes held counted as spent."""
    for hold in state.held:
        if hold.until <= now:
            state = settle_hold(state, hold, hold.expense, hold.until)
    first, last = find_slot(now - SPEND_DAY), find_slot(now + SPEND_DAY)
    # A clock that was far ahead once must not block the work of days to come.
    strikes = {
        kind: each if each.until <= now + MAX_PAUSE else replace(each, until=now)
        for kind, each in state.strikes.items()
    }
    slots = {slot: each for slot, each in state.slots.items() if first <= slot <= last}
    held = tuple(hold for hold in state.held if hold.until <= now + MAX_HOLD_AGE)
    return SpendState(slots, held, strikes, state.stopped)


def add_expense(state: SpendState, spent: Expense, when: datetime) -> SpendState:
    slot = find_slot(when)
    return replace(state, slots={**state.slots, slot: state.slots.get(slot, Expense()) + spent})


def _barred(state: SpendState, kind: str, now: datetime, settings: SpendSettings) -> SpendRefusal | None:
    if not settings.background:
        return SpendRefusal("background work is switched off by spend.background")
    if state.stopped:
        return SpendRefusal(
            f"background work was stopped ({state.stopped}); `sevenfold spend resume` lets it go on"
        )
    strikes = state.strikes.get(kind)
    if strikes and strikes.count >= settings.strikes and now < strikes.until:
        return SpendRefusal(
            f"{kind} failed {strikes.count} times in a row ({strikes.reason}) and pauses until "
            f"{strikes.until:%Y-%m-%d %H:%M}; `sevenfold spend forgive {kind}` ends the pause"
        )
    return None


def _over(state: SpendState, hold: SpendHold, now: datetime, settings: SpendSettings) -> SpendRefusal | None:
    caps = (
        ("hour", SPEND_HOUR, settings.cents_per_hour, settings.tokens_per_hour),
        ("day", SPEND_DAY, settings.cents_per_day, settings.tokens_per_day),
    )
    for name, span, cents, tokens in caps:
        used = state.used(now, span) + hold.expense
        if used.micro_usd > cents * MICROS_PER_CENT:
            return SpendRefusal(
                f"{hold.kind} would take background work to ${used.micro_usd / MICROS_PER_USD:.2f} "
                f"in the {name}, "
                f"over the cap of ${cents / 100:.2f}; wait, or raise spend.cents_per_{name}"
            )
        if used.tokens > tokens:
            return SpendRefusal(
                f"{hold.kind} would take background work to {used.tokens:,} tokens in the {name}, over the "
                f"cap of {tokens:,}; wait, or raise spend.tokens_per_{name}"
            )
    return None


def write_spend_state(state: SpendState) -> JsonObject:
    """By slot and by kind, so that the same state has the same bytes."""
    slots, strikes = dict(sorted(state.slots.items())), dict(sorted(state.strikes.items()))
    return write_fields(replace(state, slots=slots, strikes=strikes))
