"""The spend governor: holds, settles and records every model call that no person waits for.

`SpendStore` keeps the state for all processes of a user, so they share one cap, and a restart resets nothing:

    <home>/spend/spend.json                what the caps are checked against
                 ledger-YYYY-MM-DD.jsonl   one line a call: kind, model, session, tokens, dollars

A disk that fails stops background work, which can wait, and never the conversation. `GovernedProvider`
applies the governor to every call except the conversation's own.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from types import CoroutineType
from typing import Any, Self

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import (
    FileMissing,
    InputError,
    PromptTooLong,
    ProviderError,
    ReplyBroken,
    SpendRefused,
    StoreError,
)
from sevenfold.core.events import CallCharged, CallRefused, Emit, KindPaused, SpendStateLost, ignore_event
from sevenfold.core.fields import read_fields
from sevenfold.core.json import EMPTY_OBJECT, JsonObject, freeze_object, read_object, write_json
from sevenfold.core.messages import Message
from sevenfold.core.prices import CATALOG, Catalog, compute_cost
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.core.system import run_blocking
from sevenfold.core.tokens.estimation import estimate_message
from sevenfold.core.usage import Usage
from sevenfold.providers.provider import ListMemo, OnDelta, Provider, ProviderWrapper
from sevenfold.session.budget import (
    MAIN_KIND,
    MAX_HOLD_AGE,
    MICROS_PER_CENT,
    MICROS_PER_USD,
    SPEND_DAY,
    SPEND_HOUR,
    Expense,
    SpendHold,
    SpendRefusal,
    SpendSettings,
    SpendState,
    add_expense,
    add_strike,
    clear_strikes,
    drop_expired,
    plan_hold,
    settle_hold,
    write_spend_state,
)
from sevenfold.store.files import new_record_id
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import Record, UnknownRecord
from sevenfold.store.transcript.transcript import Transcript

# The state is read and written under a mutex.

SPEND_FOLDER = "spend"
_STATE = "spend.json"
_MAX_STATE_BYTES = 1024 * 1024
LEDGER = "ledger-"
CHARGE = "charge"
"""The kind of a ledger line, so that it differs from the records of a transcript."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendCharge:
    """One call of the ledger."""

    at: datetime
    kind: str
    model: str
    session: str
    tokens: int
    read: int
    """Tokens of these that were read from the cache."""
    micro_usd: int | None
    """None: the price is not known."""
    prompt: int | None = None
    """Tokens of these in the prompt; None in a line of an older version."""

    @property
    def is_unbilled(self) -> bool:
        """Whether no bill came: the answer broke off, or the process died. Caps count the expected cost."""
        return not self.model


class SpendStore:
    """The folder of spending, open. Every method blocks on the disk."""

    def __init__(self, folder: Folder, *, emit: Emit = ignore_event) -> None:
        self._folder = folder
        self._emit = emit

    @classmethod
    def open(cls, home: Path, *, emit: Emit = ignore_event) -> Self:
        return cls(Folder.open(home / SPEND_FOLDER, create=True), emit=emit)

    def close(self) -> None:
        self._folder.close()

    @property
    def path(self) -> Path:
        return self._folder.path

    def read(self, now: datetime) -> JsonObject:
        """The state as it is, empty where there is none. A damaged file is set aside, which is an event."""
        try:
            return read_object(self._folder.read(_STATE, max_bytes=_MAX_STATE_BYTES))
        except FileMissing:
            return EMPTY_OBJECT
        except (InputError, StoreError) as error:
            aside = f"spend-{now:%Y%m%d%H%M%S}.damaged"
            self._folder.move(_STATE, aside)
            self._emit(SpendStateLost(f"{self._folder.path}/{aside}", str(error)))
            return EMPTY_OBJECT

    def change(self, now: datetime, change: Callable[[JsonObject], JsonObject]) -> None:
        """Read, change and replace the state under a lock. If `change` raises, nothing is written."""
        with mutex(self._folder, SPEND_FOLDER):
            before = self.read(now)
            after = change(before)
            if after != before:
                self._folder.replace(_STATE, write_json(after))

    def append(self, charge: SpendCharge) -> None:
        """Append a line. It is on the disk when this returns."""
        fields = {key: value for key, value in asdict(charge).items() if key != "at"}
        at = charge.at.astimezone(UTC)
        with Transcript.open(self._folder, f"{LEDGER}{at:%Y-%m-%d}", emit=self._emit) as ledger:
            ledger.append(Record(UnknownRecord(CHARGE, freeze_object(fields)), at, new_record_id()))

    def charges(self, since: date, until: date) -> Iterator[SpendCharge]:
        """Every call from one day to another, both included, oldest first."""
        day = since
        while day <= until:
            name = f"{LEDGER}{day:%Y-%m-%d}"
            if self._folder.stat(f"{name}.jsonl") is not None:
                for line in scan_transcript(self._folder, name):
                    if isinstance(line, StoredRecord) and (charge := _read_charge(line.record)) is not None:
                        yield charge
            day += timedelta(days=1)


def _read_charge(record: Record) -> SpendCharge | None:
    body = record.body
    if not isinstance(body, UnknownRecord) or body.kind != CHARGE or not isinstance(body.wire, JsonObject):
        return None
    wire = body.wire
    kind, model, session = wire.get("kind"), wire.get("model"), wire.get("session")
    tokens, read, usd = wire.get("tokens"), wire.get("read"), wire.get("micro_usd")
    if not (isinstance(kind, str) and isinstance(model, str) and isinstance(session, str)):
        return None
    if not (isinstance(tokens, int) and isinstance(read, int) and isinstance(usd, int | None)):
        return None
    prompt = wire.get("prompt")
    return SpendCharge(
        at=record.at,
        kind=kind,
        model=model,
        session=session,
        tokens=tokens,
        read=read,
        micro_usd=usd,
        prompt=prompt if isinstance(prompt, int) else None,
    )


class Governor:
    """Holds and settles what background calls cost."""

    def __init__(
        self,
        store: SpendStore,
        settings: SpendSettings,
        *,
        session: str = "",
        catalog: Catalog = CATALOG,
        clock: Clock | None = None,
        emit: Emit = ignore_event,
        check: Callable[[SpendState, SpendHold], None] | None = None,
    ) -> None:
        """`check` may raise `SpendRefused` for a cap of its own, with no other call being held meanwhile."""
        self._store, self._settings, self._session = store, settings, session
        self._check = check
        self._catalog, self._clock, self._emit = catalog, clock or SystemClock(), emit

    @classmethod
    def open(cls, home: Path, settings: SpendSettings, *, emit: Emit = ignore_event) -> Self:
        """Blocks on the disk."""
        return cls(SpendStore.open(home, emit=emit), settings, emit=emit)

    def state(self) -> SpendState:
        """As it is now. Blocks on the disk."""
        now = self._clock.now()
        return drop_expired(self._read(self._store.read(now), now), now)

    def stop(self, why: str) -> None:
        """Stop background work in all processes. Blocks on the disk."""
        self._change(lambda state: replace(state, stopped=why))

    def resume(self) -> None:
        self._change(lambda state: replace(state, stopped=""))

    def forgive(self, kind: str) -> None:
        """Forget its failures. Blocks on the disk."""
        self._change(lambda state: clear_strikes(state, kind))

    async def hold(self, kind: str, model: str, expected: Usage) -> SpendHold:
        """Hold money for a call, or raise `SpendRefused`, which is also an event."""
        now = self._clock.now()
        micro = self._price(expected, model, now) or 0
        hold = SpendHold(secrets.token_hex(8), kind, Expense(_tokens(expected), micro), now + MAX_HOLD_AGE)
        try:
            await run_blocking(lambda: self._change(lambda state: self._add_hold(state, hold)))
        except StoreError as error:
            self._refuse(kind, f"what was spent so far cannot be read ({error}); see `sevenfold doctor`")
        except SpendRefused as error:
            self._refuse(kind, str(error))
        return hold

    async def charge(self, hold: SpendHold, reply: ModelResponse, model: str) -> None:
        """The call was answered: write down what it cost."""
        now = self._clock.now()
        billed = reply.model or model
        usage = reply.usage
        micro = self._price(usage, billed, now)
        spent = Expense(_tokens(usage), micro or 0)
        line = SpendCharge(
            at=now,
            kind=hold.kind,
            model=billed,
            session=self._session,
            tokens=spent.tokens,
            read=usage.billed.read,
            micro_usd=micro,
            prompt=usage.billed.prompt,
        )

        def write() -> None:
            # The ledger first: if the process dies in between, the caps count the call twice, but never not.
            self._store.append(line)
            self._change(lambda state: clear_strikes(settle_hold(state, hold, spent, now), hold.kind))

        await self._written(hold.kind, write)
        self._emit(
            CallCharged(kind=hold.kind, model=billed, tokens=spent.tokens, read=line.read, micro_usd=micro)
        )

    async def fail(self, hold: SpendHold, error: ProviderError) -> None:
        """The call failed: one strike, and what was held is free again unless an answer had begun."""
        now = self._clock.now()
        spent = hold.expense if isinstance(error, ReplyBroken) else Expense()
        is_strike = not isinstance(error, PromptTooLong)  # the caller cuts and asks again
        paused: list[KindPaused] = []

        def change(state: SpendState) -> SpendState:
            settled = settle_hold(state, hold, spent, now)
            if not is_strike:
                return settled
            struck = add_strike(settled, hold.kind, _first_line(error), now, self._settings)
            found = struck.strikes[hold.kind]
            if found.count >= self._settings.strikes:
                paused.append(KindPaused(hold.kind, found.count, found.until.isoformat(), found.reason))
            return struck

        def write() -> None:
            if isinstance(error, ReplyBroken):
                self._store.append(self._unbilled(hold, now))
            self._change(change)

        await self._written(hold.kind, write)
        for event in paused:
            self._emit(event)

    async def abandon(self, hold: SpendHold) -> None:
        """The result of the call is unknown, so it counts as the expected cost."""
        now = self._clock.now()

        def write() -> None:
            self._store.append(self._unbilled(hold, now))
            self._change(lambda state: settle_hold(state, hold, hold.expense, now))

        await self._written(hold.kind, write)

    async def close(self) -> None:
        await run_blocking(self._store.close)

    def _price(self, usage: Usage, model: str, now: datetime) -> int | None:
        usd = compute_cost(usage, self._catalog.find(model), when=now.date(), catalog=self._catalog)
        return None if usd is None else _micro(usd.total)

    def _add_hold(self, state: SpendState, hold: SpendHold) -> SpendState:
        if self._check is not None:
            self._check(state, hold)
        planned = plan_hold(state, hold, self._clock.now(), self._settings)
        if isinstance(planned, SpendRefusal):
            raise SpendRefused(planned.reason)
        return planned

    def _refuse(self, kind: str, reason: str) -> None:
        self._emit(CallRefused(kind, reason))
        raise SpendRefused(reason)

    async def _written(self, kind: str, write: Callable[[], None]) -> None:
        """Write a charge. A disk error is reported, and the answer is used all the same."""
        try:
            await run_blocking(write)
        except StoreError as error:
            self._emit(SpendStateLost(f"{self._store.path}", f"{kind}: {error}"))

    def _change(self, change: Callable[[SpendState], SpendState]) -> None:
        now = self._clock.now()
        dead: list[SpendHold] = []

        def apply(wire: JsonObject) -> JsonObject:
            state = self._read(wire, now)
            dead.extend(hold for hold in state.held if hold.until <= now)
            return write_spend_state(change(drop_expired(state, now)))

        self._store.change(now, apply)
        for hold in dead:
            self._store.append(self._unbilled(hold, now))

    def _unbilled(self, hold: SpendHold, now: datetime) -> SpendCharge:
        """A call without a bill, as a line of the ledger."""
        return SpendCharge(
            at=now, kind=hold.kind, model="", session=self._session, tokens=0, read=0, micro_usd=None
        )

    def _read(self, wire: JsonObject, now: datetime) -> SpendState:
        """The state. If it is missing or cannot be read, it is computed from the ledger."""
        if wire:
            try:
                return read_fields(SpendState, wire)
            except InputError as error:
                self._emit(SpendStateLost(f"{self._store.path}", str(error)))
        day = now.astimezone(UTC).date()
        state = SpendState()
        for charge in self._store.charges(day - SPEND_DAY, day):
            state = add_expense(state, Expense(charge.tokens, charge.micro_usd or 0), charge.at)
        return state


def _micro(usd: Decimal) -> int:
    """In micro-dollars, rounded up: a cap may err on the safe side."""
    return int((usd * MICROS_PER_USD).to_integral_value(ROUND_CEILING))


def _tokens(usage: Usage) -> int:
    return usage.billed.prompt + usage.billed.output


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


DEFAULT_OUTPUT_TOKENS = 2_048
"""What an answer of background work is expected to take at most: notes and summaries rarely take more. A cap
may be passed by what calls under way take beyond what was expected."""


class GovernedProvider(ProviderWrapper):
    """Holds before each call and settles after it, by whose call it is. `free` names who is not governed.
    Without `is_cached` a marked prompt is expected to be paid in full, since nobody sent it before."""

    def __init__(
        self,
        inner: Provider,
        governor: Governor,
        *,
        free: frozenset[str] = frozenset({MAIN_KIND}),
        is_cached: bool = True,
    ) -> None:
        super().__init__(inner)
        self._is_cached = is_cached
        self._governor, self._free = governor, free
        self._weights = ListMemo[Message, int](estimate_message)

    def send(
        self, request: ModelRequest, on_delta: OnDelta | None = None
    ) -> CoroutineType[Any, Any, ModelResponse]:
        """Send a request. One that is not governed goes to the provider as it is."""
        send = self._inner.send if request.purpose in self._free else self._send_governed
        return send(request, on_delta)

    async def _send_governed(self, request: ModelRequest, on_delta: OnDelta | None) -> ModelResponse:
        hold = await self._governor.hold(request.purpose, request.frame.model, self._expected(request))
        try:
            reply = await self._inner.send(request, on_delta)
        except ProviderError as error:
            await self._governor.fail(hold, error)
            raise
        except BaseException:
            await self._governor.abandon(hold)
            raise
        await self._governor.charge(hold, reply, request.frame.model)
        return reply

    def _expected(self, request: ModelRequest) -> Usage:
        """A prompt with breakpoints belongs to a fork and is read from the cache; others are paid in full."""
        prompt = sum(self._weights.of(request.messages))
        output = min(request.frame.max_tokens, DEFAULT_OUTPUT_TOKENS)
        if request.breakpoints and self._is_cached:
            return Usage(read=prompt, output=output)
        return Usage(fresh=prompt, output=output)


def group_charges(charges: Iterable[SpendCharge]) -> dict[str, list[SpendCharge]]:
    """By the kind of work."""
    kinds: dict[str, list[SpendCharge]] = {}
    for charge in charges:
        kinds.setdefault(charge.kind, []).append(charge)
    return kinds


def describe_spend(
    state: SpendState, recent: list[SpendCharge], rules: SpendSettings, now: datetime
) -> dict[str, object]:
    """What background work spent, as JSON: `recent` are the charges of the last day."""

    def cap(span: timedelta, cents: int, tokens: int) -> dict[str, object]:
        used = state.used(now, span)
        caps = {"cap_micro_usd": cents * MICROS_PER_CENT, "cap_tokens": tokens}
        return {"micro_usd": used.micro_usd, "tokens": used.tokens, **caps}

    return {
        "background": rules.background and not state.stopped,
        "stopped": state.stopped,
        "hour": cap(SPEND_HOUR, rules.cents_per_hour, rules.tokens_per_hour),
        "day": cap(SPEND_DAY, rules.cents_per_day, rules.tokens_per_day),
        "kinds": {
            kind: {
                "calls": len(calls),
                "tokens": sum(call.tokens for call in calls),
                "cached_tokens": sum(call.read for call in calls),
                "micro_usd": sum(call.micro_usd or 0 for call in calls),
                "unpriced_calls": sum(call.micro_usd is None for call in calls),
            }
            for kind, calls in group_charges(recent).items()
        },
        "strikes": {
            kind: {"count": each.count, "until": each.until.isoformat(), "reason": each.reason}
            for kind, each in sorted(state.strikes.items())
        },
    }
