"""Sends a recorded session again, through the real request path and our model of the provider's cache.

`counterfactual` plays token counts alone, for many policies at once, and is checked against this. Here every
view is built by `Session.prepare`, gets its breakpoints, is billed by the cache model, and is recorded. An
answer that quotes cleared text waits for one more round first: the recorded call, with the recorded result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from decimal import Decimal

from sevenfold.core.cache.prompt_cache import (
    CacheScope,
    PromptBill,
    PromptCache,
    PromptLevel,
    RenderedPrompt,
    render_prompt,
)
from sevenfold.core.clock import ManualClock
from sevenfold.core.events import CacheMissed, Event, HistoryRepaired, PrefixBroken
from sevenfold.core.json import JsonObject, freeze
from sevenfold.core.messages import Block, Message, ToolResult, ToolUse, ToolUseId, read_block, write_message
from sevenfold.core.prices import CATALOG, Catalog, ModelSettings
from sevenfold.core.requests import (
    ModelRequest,
    ModelResponse,
    PreparedRequest,
    RequestParams,
    with_result_texts,
)
from sevenfold.core.tokens.estimation import weigh_by_shape
from sevenfold.core.usage import read_usage
from sevenfold.layers.microcompact.facts import BARE_MARKER, MARKER_TOKENS
from sevenfold.layers.microcompact.layer import CLEARED_KEY
from sevenfold.layers.microcompact.policy import CachePrices, MicrocompactSettings
from sevenfold.layers.microcompact.server_clearing import find_cleared_uses
from sevenfold.replay.calls import RecordedCall
from sevenfold.replay.policies.counterfactual import CacheRates, ResultVisibility
from sevenfold.replay.policies.recording import (
    MessageSegment,
    RecordedRound,
    RecordedSegment,
    Recording,
    compute_token_scale,
)
from sevenfold.session import Session
from sevenfold.store.foreign.entries import ForeignInput

REPLAY_MODEL = "replayed"
"""A model of our own, at the prices asked for."""

REPLAY_WINDOW_TOKENS = 10_000_000
"""No window to speak of: recorded boundaries stand where they stood."""

REPLAY_SCOPE = CacheScope("replay")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResendOutcome:
    """A session under a policy, as its requests would have been billed. Costs as in `counterfactual`."""

    cost: float
    reread_cost: float
    """Of which: of the rounds in which cleared results were asked for again."""
    rereads: int
    """How many results that were."""
    requests: int
    """Those rounds included."""
    cuts: int
    peak_tokens: int
    unannounced: int
    """Breaks of the prefix that no cut explains."""
    missed: int
    """Reads that were promised and not billed."""
    repairs: int


@dataclass(slots=True, kw_only=True)
class _Sums:
    cost: float = 0.0
    reread_cost: float = 0.0
    rereads: int = 0
    requests: int = 0
    cuts: int = 0
    peak: int = 0
    events: list[Event] = field(default_factory=list[Event])


def resend_session(
    segments: Sequence[MessageSegment],
    recording: Recording,
    policy: MicrocompactSettings,
    rates: CacheRates,
    *,
    is_signed: bool = False,
) -> ResendOutcome:
    """Send a recorded session again under a policy. Both are read from the same transcript. With `is_signed`
    the model signs its thinking, and the provider clears."""
    sums = _Sums()
    driver = _Driver(
        policy=policy,
        rates=rates,
        recording=recording,
        scale=compute_token_scale(segments, recording),
        sums=sums,
        is_signed=is_signed,
    )
    asyncio.run(driver.run(segments))
    kinds = [type(event) for event in sums.events]
    return ResendOutcome(
        cost=sums.cost,
        reread_cost=sums.reread_cost,
        rereads=sums.rereads,
        requests=sums.requests,
        cuts=sums.cuts,
        peak_tokens=sums.peak,
        unannounced=kinds.count(PrefixBroken),
        missed=kinds.count(CacheMissed),
        repairs=kinds.count(HistoryRepaired),
    )


@dataclass(frozen=True, slots=True)
class _Turn:
    """A recorded call as the figures know it."""

    segment: RecordedSegment
    round: RecordedRound


@dataclass(slots=True, kw_only=True)
class _Driver:
    policy: MicrocompactSettings
    rates: CacheRates
    recording: Recording
    scale: float
    sums: _Sums
    is_signed: bool = False
    _clock: ManualClock = field(default_factory=ManualClock)
    _cache: PromptCache = field(default_factory=PromptCache)
    _visibility: ResultVisibility = field(default_factory=ResultVisibility)
    _uses: dict[ToolUseId, ToolUse] = field(default_factory=dict[ToolUseId, ToolUse])
    _results: dict[ToolUseId, ToolResult] = field(default_factory=dict[ToolUseId, ToolResult])
    _wires: dict[int, JsonObject] = field(default_factory=dict[int, JsonObject])
    _messages: list[Message] = field(default_factory=list[Message])
    """Held, so that no other message gets the place in memory that names one."""
    _prompt: RenderedPrompt | None = None
    _gone: frozenset[ToolUseId] = frozenset()
    """What the provider clears."""

    async def run(self, segments: Sequence[MessageSegment]) -> None:
        turns = self._turns(segments)
        for segment in segments:
            self._prompt = None
            self._gone = frozenset()
            async with await self._open() as session:
                for step in segment.steps:
                    self._keep(step.blocks)
                    if isinstance(step, ForeignInput):
                        session.history.append(Message(step.role, step.blocks))
                    else:
                        await self._call(session, step, next(turns))

    def _turns(self, segments: Sequence[MessageSegment]) -> Iterator[_Turn | None]:
        """What each call used. The figures leave out calls before the first that has a time."""
        found = [_Turn(each, turn) for each in self.recording.segments for turn in each.rounds]
        calls = sum(isinstance(step, RecordedCall) for segment in segments for step in segment.steps)
        yield from [None] * (calls - len(found))
        before = None
        for turn in found:
            if turn.segment is not before:
                before = turn.segment
                self._visibility.start(before)
            yield turn

    def _keep(self, blocks: Sequence[Block]) -> None:
        """Calls and results, should they have to be sent again."""
        self._uses.update((block.id, block) for block in blocks if isinstance(block, ToolUse))
        self._results.update((block.tool_use_id, block) for block in blocks if isinstance(block, ToolResult))

    async def _open(self) -> Session:
        return await Session.open(
            RequestParams(model=REPLAY_MODEL, max_tokens=8_000, system="frame"),
            project=None,
            settings=self._settings(),
            clock=self._clock,
            emit=self.sums.events.append,
            environ={"HOME": "/"},
        )

    def _settings(self) -> Mapping[str, Mapping[str, object]]:
        kept = {item.name: getattr(self.policy, item.name) for item in fields(self.policy)}
        return {
            "microcompact": kept,
            "server_edits": {"clear_results": "never" if self.policy.policy == "keep" else "signed"},
            "compact": {"auto_compact_enabled": False},
            "tool_results": {"enabled": False},
            "cache": {"ttl": "1h" if self.rates.ttl > timedelta(minutes=5) else "5m"},
            "models": {REPLAY_MODEL: _priced(self.rates.prices, is_signed=self.is_signed)},
        }

    async def _call(self, session: Session, call: RecordedCall, turn: _Turn | None) -> None:
        self._reach(call.started or call.at)
        bill = await self._send(session)
        needed: list[ToolUseId] = []
        if turn is not None:
            results = turn.segment.results
            for number in turn.round.results:
                self._visibility.show(results[number].result.id, number)
            needed = [results[number].result.id for number in self._visibility.find_needed(turn.round)]
        self._reach(call.at)
        self._cache.begin_response(bill, self._clock.now())
        if needed:
            bill = await self._ask_again(session, needed, bill)
        await session.record(self._reply(call.blocks, bill))

    async def _send(self, session: Session) -> PromptBill:
        view = await session.prepare()
        self.sums.cuts += len(view.cuts)
        self._visibility.clear(_cleared(view))
        self._clear_there(view.request)
        bill = self._bill(view.request)
        self.sums.requests += 1
        self.sums.peak = max(self.sums.peak, bill.total)
        self.sums.cost += self._cost(bill)
        return bill

    async def _ask_again(self, session: Session, needed: Sequence[ToolUseId], bill: PromptBill) -> PromptBill:
        """The round in which these come back: called as they were, they say what they said."""
        uses: list[ToolUse] = []
        results: list[ToolResult] = []
        for name in needed:
            self.sums.rereads += 1
            again = ToolUseId(f"{name}_again_{self.sums.rereads}")
            uses.append(replace(self._uses[name], id=again))
            results.append(replace(self._results[name], tool_use_id=again))
            self._visibility.show_again(again, name)
        await session.record(self._reply(uses, bill))
        session.history.append(Message("user", tuple(results)))
        bill = await self._send(session)
        self._cache.begin_response(bill, self._clock.now())
        self.sums.reread_cost += self._cost(bill)
        return bill

    def _clear_there(self, request: ModelRequest) -> None:
        """Carry out the edits of a request, as the provider does."""
        gone = find_cleared_uses(request)
        if gone == self._gone:
            return
        self._visibility.clear(gone - self._gone, is_bare=True)
        self._gone = gone
        for message in request.messages:
            texts = {
                block.tool_use_id: BARE_MARKER
                for block in message.blocks
                if isinstance(block, ToolResult) and block.tool_use_id in gone
            }
            if texts:
                self._wires[id(message)] = _freeze(with_result_texts(message, texts))
                self._messages.append(message)

    def _cost(self, bill: PromptBill) -> float:
        prices = self.rates.prices
        return prices.read * bill.read + prices.write * (bill.written_5m + bill.written_1h) + bill.fresh

    def _reach(self, when: datetime | None) -> None:
        """The clock of the log; one that was set back stands still here."""
        if when is not None and when > self._clock.now():
            self._clock.pass_time(when - self._clock.now())
        elif when is not None and not self.sums.requests:
            self._clock.wall = when

    def _bill(self, request: ModelRequest) -> PromptBill:
        body = JsonObject(
            {
                "model": REPLAY_MODEL,
                "system": "frame",
                "messages": tuple(self._wire(message) for message in request.messages),
            }
        )
        catalog = _catalog(self.rates.prices)
        prompt = self._prompt = render_prompt(body, self._count, catalog=catalog, after=self._prompt)
        marks = {_path(mark.level, mark.index, mark.block): mark.ttl for mark in request.breakpoints}
        parts = tuple(
            replace(part, ttl=marks[part.path]) if part.path in marks else part for part in prompt.parts
        )
        return self._cache.look_up(REPLAY_SCOPE, catalog.find(REPLAY_MODEL), parts, self._clock.now())

    def _wire(self, message: Message) -> JsonObject:
        known = self._wires.get(id(message))
        if known is None:
            known = self._wires[id(message)] = _freeze(message)
            self._messages.append(message)
        return known

    def _count(self, level: PromptLevel, block: JsonObject) -> int:
        if level != "messages":
            return self.recording.segments[0].frame_tokens
        if block.get("content") == BARE_MARKER:
            # Nothing is spilled here; where something is, its marker says where.
            return MARKER_TOKENS
        return max(1, round(weigh_by_shape(read_block(block)) * self.scale))

    def _reply(self, blocks: Sequence[Block], bill: PromptBill) -> ModelResponse:
        usage = {
            "input_tokens": bill.fresh,
            "cache_read_input_tokens": bill.read,
            "cache_creation_input_tokens": bill.written_5m + bill.written_1h,
            "output_tokens": round(sum(weigh_by_shape(block) for block in blocks) * self.scale),
        }
        wire = freeze(usage)
        assert isinstance(wire, JsonObject)
        return ModelResponse(
            message=Message("assistant", tuple(blocks)),
            usage=read_usage(usage),
            usage_wire=wire,
            model=REPLAY_MODEL,
        )


def _freeze(message: Message) -> JsonObject:
    frozen = freeze(write_message(message))
    assert isinstance(frozen, JsonObject)
    return frozen


def _cleared(view: PreparedRequest) -> Iterator[ToolUseId]:
    for cut in view.cuts:
        gone = cut.detail.get(CLEARED_KEY)
        if isinstance(gone, JsonObject):
            yield from map(ToolUseId, gone)


def _priced(prices: CachePrices, *, is_signed: bool = False) -> dict[str, object]:
    read, write = Decimal(str(prices.read)), Decimal(str(prices.write))
    return {
        "window_tokens": REPLAY_WINDOW_TOKENS,
        "cache_min_tokens": 0,
        "input_usd_per_mtok": Decimal(1),
        "output_usd_per_mtok": Decimal(5),
        "cache_read_usd_per_mtok": read,
        "cache_write_5m_usd_per_mtok": write,
        "cache_write_1h_usd_per_mtok": write,
        "has_preserved_thinking": is_signed,
    }


def _catalog(prices: CachePrices) -> Catalog:
    return CATALOG.with_overrides({REPLAY_MODEL: ModelSettings(**_priced(prices))})  # pyright: ignore[reportArgumentType]


def _path(level: str, index: int, block: int) -> str:
    return f"messages.{index}.content.{block}" if level == "messages" else f"{level}.{index}"
