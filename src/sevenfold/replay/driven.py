"""A recorded session sent again through the real request path and the provider's cache as we model it.

`counterfactual` plays the figures alone, for many policies at once; this is what it is checked against: every
view is made by `Session.prepare`, marked as it would be sent, billed by the cache model, and recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

from sevenfold.core.cache_model import Bill, Level, Prompt, PromptCache, Scope, render_prompt
from sevenfold.core.catalog import CATALOG, Catalog, ModelSettings
from sevenfold.core.clock import ManualClock
from sevenfold.core.events import CacheMissed, Event, HistoryRepaired, PrefixBroken
from sevenfold.core.json import JsonObject, freeze
from sevenfold.core.messages import Message, Thinking
from sevenfold.core.requests import Frame, ModelRequest, Reply
from sevenfold.core.token_estimators import weigh_by_shape
from sevenfold.core.usage import read_usage
from sevenfold.core.wire import read_block, write_message
from sevenfold.engine import Session
from sevenfold.layers.microcompact import CachePrices, MicrocompactSettings
from sevenfold.replay.calls import Assembler, Call, Part, Step
from sevenfold.replay.counterfactual_record import FRAME_TOKENS
from sevenfold.store.foreign.entries import MAIN, Agent, Compacted, ForeignSession, Said, Unknown
from sevenfold.store.foreign.transcripts import LineTally, read_transcript

MODEL = "replayed"
"""A model of our own: its prices are those asked for, and its old turns may be rewritten."""

WINDOW_TOKENS = 10_000_000
"""No window to speak of: recorded boundaries stand where they stood."""

SCOPE = Scope("replay")


@dataclass(frozen=True, slots=True)
class Stretch:
    """What was said between two boundaries, in order."""

    steps: tuple[Said | Call, ...]


@dataclass(frozen=True, slots=True)
class Driven:
    """A session under a policy, as its requests would have been billed. Costs as in `counterfactual`."""

    cost: float
    requests: int
    cuts: int
    peak_tokens: int
    unannounced: int
    """Breaks of the prefix that no cut explains."""
    missed: int
    """Reads that were promised and not billed."""
    repairs: int


@dataclass(slots=True)
class _Sums:
    cost: float = 0.0
    requests: int = 0
    cuts: int = 0
    peak: int = 0
    events: list[Event] = field(default_factory=list[Event])


def read_stretches(path: Path, agent: Agent) -> list[Stretch]:
    """The main conversation of a transcript."""
    assembler = Assembler()
    steps: list[Step] = []
    for entry in read_transcript(path, agent, LineTally()):
        if not isinstance(entry, (ForeignSession, Unknown)):
            steps += assembler.take(entry)
    steps += assembler.finish()
    stretches: list[list[Said | Call]] = [[]]
    for step in steps:
        if step.lane != MAIN:
            continue
        if isinstance(step, Compacted):
            stretches.append([])
        elif isinstance(step, Said):
            stretches[-1].append(step)
        elif isinstance(step, Call):
            stretches[-1].append(replace(step, parts=tuple(_signed(part) for part in step.parts)))
    return [Stretch(tuple(found)) for found in stretches if any(isinstance(step, Call) for step in found)]


def drive(
    stretches: Sequence[Stretch],
    policy: MicrocompactSettings,
    ttl: timedelta,
    prices: CachePrices,
    *,
    frame_tokens: int = FRAME_TOKENS,
    scale: float = 1.0,
) -> Driven:
    """Send a recorded session again under a policy."""
    sums = _Sums()
    driver = _Driver(policy, ttl, prices, frame_tokens, scale, sums)
    asyncio.run(driver.run(stretches))
    kinds = [type(event) for event in sums.events]
    return Driven(
        sums.cost,
        sums.requests,
        sums.cuts,
        sums.peak,
        kinds.count(PrefixBroken),
        kinds.count(CacheMissed),
        kinds.count(HistoryRepaired),
    )


@dataclass(slots=True)
class _Driver:
    policy: MicrocompactSettings
    ttl: timedelta
    prices: CachePrices
    frame_tokens: int
    scale: float
    sums: _Sums
    _clock: ManualClock = field(default_factory=ManualClock)
    _cache: PromptCache = field(default_factory=PromptCache)
    _wires: dict[int, JsonObject] = field(default_factory=dict[int, JsonObject])
    _messages: list[Message] = field(default_factory=list[Message])
    """Held, so that no other message gets the place in memory that names one."""
    _prompt: Prompt | None = None

    async def run(self, stretches: Sequence[Stretch]) -> None:
        for stretch in stretches:
            self._prompt = None
            async with await self._open() as session:
                for step in stretch.steps:
                    if isinstance(step, Said):
                        session.history.append(Message(step.role, step.blocks))
                    else:
                        await self._call(session, step)

    async def _open(self) -> Session:
        return await Session.open(
            Frame(MODEL, 8_000, "frame"),
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
            "compact": {"auto_compact_enabled": False},
            "tool_results": {"enabled": False},
            "cache": {"ttl": "1h" if self.ttl > timedelta(minutes=5) else "5m"},
            "models": {MODEL: _priced(self.prices)},
        }

    async def _call(self, session: Session, call: Call) -> None:
        self._reach(call.started or call.at)
        view = await session.prepare()
        self.sums.cuts += len(view.cuts)
        bill = self._bill(view.request)
        self._reach(call.at)
        self._cache.begin_response(bill, self._clock.now())
        self.sums.requests += 1
        self.sums.peak = max(self.sums.peak, bill.total)
        written = bill.written_5m + bill.written_1h
        self.sums.cost += self.prices.read * bill.read + self.prices.write * written + bill.fresh
        await session.record(self._reply(call, bill))

    def _reach(self, when: datetime | None) -> None:
        """The clock of the log; one that was set back stands still here."""
        if when is not None and when > self._clock.now():
            self._clock.pass_time(when - self._clock.now())
        elif when is not None and not self.sums.requests:
            self._clock.wall = when

    def _bill(self, request: ModelRequest) -> Bill:
        body = JsonObject(
            {
                "model": MODEL,
                "system": "frame",
                "messages": tuple(self._wire(message) for message in request.messages),
            }
        )
        catalog = _catalog(self.prices)
        prompt = self._prompt = render_prompt(body, self._count, catalog=catalog, after=self._prompt)
        marks = {_path(mark.level, mark.index, mark.block): mark.ttl for mark in request.breakpoints}
        parts = tuple(replace(part, ttl=marks.get(part.path)) for part in prompt.parts)
        return self._cache.look_up(SCOPE, catalog.find(MODEL), parts, self._clock.now())

    def _wire(self, message: Message) -> JsonObject:
        known = self._wires.get(id(message))
        if known is None:
            frozen = freeze(write_message(message))
            assert isinstance(frozen, JsonObject)
            known = self._wires[id(message)] = frozen
            self._messages.append(message)
        return known

    def _count(self, level: Level, block: JsonObject) -> int:
        if level != "messages":
            return self.frame_tokens
        return max(1, round(weigh_by_shape(read_block(block)) * self.scale))

    def _reply(self, call: Call, bill: Bill) -> Reply:
        usage = {
            "input_tokens": bill.fresh,
            "cache_read_input_tokens": bill.read,
            "cache_creation_input_tokens": bill.written_5m + bill.written_1h,
            "output_tokens": round(sum(weigh_by_shape(block) for block in call.blocks) * self.scale),
        }
        wire = freeze(usage)
        assert isinstance(wire, JsonObject)
        return Reply(Message("assistant", call.blocks), read_usage(usage), wire, model=MODEL)


def _signed(part: Part) -> Part:
    """Logs leave out what signs a thought, without which it would not be sent again."""
    blocks = tuple(
        replace(block, signature=block.signature or "recorded") if isinstance(block, Thinking) else block
        for block in part.blocks
    )
    return replace(part, blocks=blocks)


def _priced(prices: CachePrices) -> dict[str, object]:
    read, write = Decimal(str(prices.read)), Decimal(str(prices.write))
    return {
        "window_tokens": WINDOW_TOKENS,
        "cache_min_tokens": 0,
        "input_usd_per_mtok": Decimal(1),
        "output_usd_per_mtok": Decimal(5),
        "cache_read_usd_per_mtok": read,
        "cache_write_5m_usd_per_mtok": write,
        "cache_write_1h_usd_per_mtok": write,
        "has_preserved_thinking": False,
    }


def _catalog(prices: CachePrices) -> Catalog:
    return CATALOG.with_overrides({MODEL: ModelSettings(**_priced(prices))})  # pyright: ignore[reportArgumentType]


def _path(level: str, index: int, block: int) -> str:
    return f"messages.{index}.content.{block}" if level == "messages" else f"{level}.{index}"
