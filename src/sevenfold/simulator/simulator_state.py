"""Everything that a simulator keeps between requests. A reset replaces it.

`SimulatorState` holds it all. `ArrivalBarrier` delays a reply until every request that arrived with it has
looked up the cache. `VirtualClock` can be moved forward, so that an idle hour costs no time.
`estimate_tokens` counts the tokens of a block. `PrefixCache` is OpenAI's prompt cache.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES, PromptLevel
from sevenfold.core.cache.prompt_cache import PartCounter, PromptCache
from sevenfold.core.canonical import EMPTY_DIGEST, Digest, canonical_bytes, chain_digest, strip_cache_control
from sevenfold.core.clock import Clock, ManualClock
from sevenfold.core.errors import InputError
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, write_json
from sevenfold.core.messages import Opaque, Text, ToolUseId, read_block
from sevenfold.core.models import Model
from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.core.tokens import CALIBRATED_ESTIMATOR, NEWER_TOKENIZER_SCALE
from sevenfold.core.tokens.estimation import START_FACTOR
from sevenfold.simulator.brain import Brain
from sevenfold.simulator.faults import FaultPlan
from sevenfold.simulator.ledger import BillingLedger, RequestRecords
from sevenfold.simulator.wire.choices import DEFAULT_CHOICES, Choices, RateMeter
from sevenfold.simulator.wire.message_cache import MessageCache
from sevenfold.simulator.wire.signatures import get_signature, parse_thinking_seal

# A model's first token takes hundreds of milliseconds, our replies take none. Concurrent requests would all
# miss the provider's cache, so here the first of them waits for the others.

AsgiScope: TypeAlias = MutableMapping[str, object]
AsgiReceive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, object]]]
AsgiSend: TypeAlias = Callable[[MutableMapping[str, object]], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[AsgiScope, AsgiReceive, AsgiSend], Awaitable[None]]
PeerAddress: TypeAlias = object
"""What a connection is known by: the client's address."""

QUIET_PASSES = 8
"""Turns of the loop without anybody new: more than a connection takes from the kernel to its first line."""
ARRIVAL_GRACE_SECONDS = 0.02
"""Quiet that is waited for where others may follow: between threads that share an interpreter, a request may
be several milliseconds behind."""
LONE_GRACE_SECONDS = 0.002
"""The same where nobody is likely to follow: on a connection that is used again and was always alone."""
MAX_ARRIVAL_SECONDS = 1.0
"""However many come, nobody waits longer; a connection that has said nothing by then is given up."""
ARRIVAL_POLL_SECONDS = 0.001


class ArrivalBarrier:
    """Belongs to the loop that serves."""

    __slots__ = ("_arrived", "_at", "_busy", "_fresh", "_looking", "_newcomers", "_partners")

    def __init__(self) -> None:
        self._fresh: set[PeerAddress] = set()
        """Connections that have sent nothing yet."""
        self._busy: dict[object, PeerAddress] = {}
        """The connection of each request that is being served, by its task."""
        self._looking: set[object] = set()
        """Requests that are not looked up yet."""
        self._newcomers: set[object] = set()
        """Requests that are the first of their connection."""
        self._partners: set[PeerAddress] = set()
        """Connections of clients that have had several requests open at once."""
        self._arrived = 0
        self._at = float("-inf")

    def connect(self, peer: PeerAddress) -> None:
        self._fresh.add(peer)
        self._mark()

    def disconnect(self, peer: PeerAddress) -> None:
        self._fresh.discard(peer)
        self._partners.discard(peer)

    def mark_looked_up(self) -> None:
        """The request of the running task has seen the cache, or never will."""
        self._looking.discard(asyncio.current_task())

    async def pause(self, delay: timedelta) -> None:
        """Wait this long, and hold nobody up."""
        if delay:
            self.mark_looked_up()
            await asyncio.sleep(delay.total_seconds())

    async def settle(self, first_token: timedelta) -> None:
        """Wait until nobody is on the way, and at least this long."""
        self.mark_looked_up()
        loop = asyncio.get_running_loop()
        start = loop.time()
        while not await self._is_quiet(start):
            if loop.time() >= start + MAX_ARRIVAL_SECONDS:
                self._fresh.clear()
                break
        await asyncio.sleep(max(0.0, first_token.total_seconds() - (loop.time() - start)))

    async def _is_quiet(self, start: float) -> bool:
        """Whether nobody is on the way: nobody has come for a while, and the kernel has nobody either."""
        # Looking up may have taken all the time, and the interpreter with it: others get some after it.
        left = max(start + LONE_GRACE_SECONDS, self._at + self._grace()) - asyncio.get_running_loop().time()
        if left > 0 or self._is_expecting():
            await asyncio.sleep(
                ARRIVAL_POLL_SECONDS if self._is_expecting() else max(left, ARRIVAL_POLL_SECONDS)
            )
            return False
        before = self._arrived
        for _ in range(QUIET_PASSES):
            await asyncio.sleep(0)
        return self._arrived == before and not self._is_expecting()

    def watch(self, app: AsgiApp) -> AsgiApp:
        """The application, its requests counted as they come and go."""

        async def watched(scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
            task = asyncio.current_task()
            self._enter(task, scope.get("client"))

            async def sent(message: MutableMapping[str, object]) -> None:
                # Whoever answers has nothing left to look up, and may take long over it.
                self._looking.discard(task)
                await send(message)

            try:
                await app(scope, receive, sent)
            finally:
                self._busy.pop(task, None)
                self._looking.discard(task)
                self._newcomers.discard(task)

        return watched

    def _enter(self, task: object, peer: PeerAddress) -> None:
        if peer in self._fresh:
            self._fresh.discard(peer)
            self._newcomers.add(task)
        self._busy[task] = peer
        self._looking.add(task)
        if len(self._busy) > 1:
            self._partners.update(self._busy.values())
        self._mark()

    def _grace(self) -> float:
        return ARRIVAL_GRACE_SECONDS if self._may_have_company() else LONE_GRACE_SECONDS

    def _may_have_company(self) -> bool:
        """Whether the client is one that may send more at once: a new one, or one that has done so before."""
        task = asyncio.current_task()
        if task in self._newcomers:
            return True
        return self._busy.get(task) in self._partners and not self._partners <= set(self._busy.values())

    def _is_expecting(self) -> bool:
        return bool(self._fresh or self._looking)

    def _mark(self) -> None:
        self._arrived += 1
        self._at = asyncio.get_running_loop().time()


LATEST_TIME = datetime(9000, 1, 1, tzinfo=UTC)
"""Dates end in 9999, and a cache entry's own times lie after those of the request that made it."""


@dataclass(slots=True)
class VirtualClock:
    """Another clock plus the time that was skipped. Over a `ManualClock` time passes only when told to."""

    under: Clock = field(default_factory=ManualClock)
    skipped: timedelta = timedelta()

    def now(self) -> datetime:
        return self.under.now() + self.skipped

    def uptime(self) -> timedelta:
        return self.under.uptime() + self.skipped

    def advance(self, elapsed: timedelta) -> datetime:
        """Skip some time; the new time is returned. Caches would misbehave if it could be put back."""
        if elapsed < timedelta():
            raise InputError(f"the clock cannot be put back by {-elapsed}; advance it by zero or more")
        left = LATEST_TIME - self.now()
        if elapsed > left:
            seconds, most = (int(each.total_seconds()) for each in (elapsed, left))
            raise InputError(f"the clock cannot be advanced by {seconds} seconds; at most {most} are left")
        self.skipped += elapsed
        return self.now()


# A tokenizer is any function of a model, a level and a block.
BlockTokenizer: TypeAlias = Callable[[Model, PromptLevel, JsonObject], int]


def estimate_tokens(model: Model, level: PromptLevel, block: JsonObject) -> int:
    """The default: the estimator that `core.tokens` starts a session with, block by block.

    The same block counts the same in every request, whatever stands around it and wherever a marker is.
    """
    wire = _unsealed(strip_cache_control(block))
    if level == "tools" or wire.get("type") is None:
        weight = CALIBRATED_ESTIMATOR.weigh(Text(write_json(wire).decode()))
    else:
        read = read_block(wire)
        weight = CALIBRATED_ESTIMATOR.weigh(
            Text(write_json(wire).decode()) if isinstance(read, Opaque) else read
        )
    scale = NEWER_TOKENIZER_SCALE if model.tokenizer == "newer" else 1.0
    return max(1, round(weight * START_FACTOR * scale))


def _unsealed(block: Json) -> JsonObject:
    """Thinking with its text, which our signatures hold: what is withheld costs what it costs when shown."""
    if not isinstance(block, JsonObject):
        return EMPTY_OBJECT
    if block.get("type") not in THINKING_TYPES:
        return block
    seal = parse_thinking_seal(get_signature(block))
    if seal is None:
        return block
    return JsonObject({"type": "thinking", "thinking": seal.thinking, "signature": get_signature(block)})


def make_part_counter(tokenizer: BlockTokenizer, model: Model) -> PartCounter:
    """A tokenizer for one model, in the form that the cache model takes."""

    def count(level: PromptLevel, block: JsonObject) -> int:
        return tokenizer(model, level, block)

    return count


def count_block_tokens(tokenizer: BlockTokenizer, model: Model, blocks: Iterable[JsonObject]) -> int:
    """The tokens of a reply's blocks."""
    return sum(tokenizer(model, "messages", block) for block in blocks)


# OpenAI's prompt cache: automatic, by exact prefix, from 1,024 tokens on.
MIN_CACHED_TOKENS = 1_024
CACHE_STEP_TOKENS = 128
"""Hits are counted in steps of so many tokens."""
OPENAI_CACHE_TTL = timedelta(minutes=30)
"""From the last use. It is what newer models say; older ones forget after five to ten idle minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePart:
    """One piece of a prompt: a tool, the system prompt, or a block of a message."""

    wire: JsonObject
    tokens: int
    path: str
    """`tools.0`, `system.0`, `messages.3.content.0`."""
    level: PromptLevel
    kind: str


@dataclass(frozen=True, slots=True)
class PrefixHit:
    cached_tokens: int
    digests: tuple[Digest, ...]
    """Of each prefix of the prompt, for `keep`."""
    expired: int | None = None
    """The last part behind those that were read whose prefix is known and too old."""


class PrefixCache:
    """Prefixes, by owner and model. A difference inside a part counts from the start of the part."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: dict[tuple[str, str, Digest], datetime] = {}

    def look_up(self, workspace: str, model: str, parts: Sequence[CachePart], now: datetime) -> PrefixHit:
        digest, tokens, cached = EMPTY_DIGEST, 0, 0
        digests: list[Digest] = []
        expired: int | None = None
        for at, part in enumerate(parts):
            digest = chain_digest(digest, canonical_bytes(part.wire))
            digests.append(digest)
            tokens += part.tokens
            used = self._used.get((workspace, model, digest))
            if used is not None and now - used <= OPENAI_CACHE_TTL:
                cached = tokens
            elif used is not None and tokens >= MIN_CACHED_TOKENS:
                expired = at
        cached -= cached % CACHE_STEP_TOKENS
        return PrefixHit(cached if cached >= MIN_CACHED_TOKENS else 0, tuple(digests), expired)

    def keep(self, workspace: str, model: str, hit: PrefixHit, now: datetime) -> None:
        """The answer begins: what was asked can be read from here on."""
        for digest in hit.digests:
            self._used[workspace, model, digest] = now


@dataclass(slots=True, kw_only=True)
class SimulatorState:
    """Belongs to the loop that serves; others may read the ledger, plan faults and move the clock."""

    brain: Brain
    choices: Choices = DEFAULT_CHOICES
    clock: VirtualClock = field(default_factory=VirtualClock)
    tokenizer: BlockTokenizer = estimate_tokens
    catalog: Catalog = CATALOG
    ledger: BillingLedger = field(default_factory=BillingLedger)
    faults: FaultPlan = field(default_factory=FaultPlan)
    salt: str = ""
    """Goes into every id, so that those of two runs can be told apart."""
    failures: list[Exception] = field(default_factory=list[Exception])
    """What the brain, or a bug, raised while a request was served."""
    records: RequestRecords = field(default_factory=RequestRecords)
    knowledge: MessageCache = field(default_factory=MessageCache)
    """Of messages that come again; without it everything is the same, and slower."""
    arrivals: ArrivalBarrier = field(default_factory=ArrivalBarrier)
    """Belongs to the server, so a reset hands it to the new state."""
    cleared: defaultdict[str, frozenset[ToolUseId]] = field(
        default_factory=lambda: defaultdict(frozenset[ToolUseId])
    )
    """Tool results that each workspace has had cleared, where clearing is sticky."""
    prefixes: PrefixCache = field(default_factory=PrefixCache)
    """What the OpenAI-shaped endpoints have cached."""
    cache: PromptCache = field(init=False)
    meter: RateMeter = field(init=False)
    _served: int = 0
    _asked: int = 0

    def __post_init__(self) -> None:
        self.cache = PromptCache(self.choices.cache)
        self.meter = RateMeter(self.choices.limits)

    def next_request(self) -> str:
        """What the next request's ids end in."""
        self._served += 1
        return f"{self.salt}{self._served:016d}"

    def next_question(self) -> int:
        """The number of the next prompt for the brain."""
        self._asked += 1
        return self._asked
