"""Everything that a simulator keeps between requests. A reset replaces it.

`SimulatorState` holds it all. `VirtualClock` can be moved forward, so that an idle hour costs no time.
`estimate_tokens` counts the tokens of a block. `PrefixCache` is OpenAI's prompt cache.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from sevenfold.core.cache.prompt_blocks import THINKING_TYPES, PromptLevel
from sevenfold.core.cache.prompt_cache import PartCounter, PromptCache
from sevenfold.core.canonical import EMPTY_DIGEST, Digest, canonical_bytes, chain_digest, strip_cache_control
from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.clock import Clock, ManualClock
from sevenfold.core.errors import InputError
from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject, write_json
from sevenfold.core.messages import Opaque, Text, ToolUseId, read_block
from sevenfold.core.models import Model
from sevenfold.core.tokens import CALIBRATED_ESTIMATOR, NEWER_TOKENIZER_SCALE
from sevenfold.core.tokens.estimation import START_FACTOR
from sevenfold.simulator.responders.brain_protocol import Brain
from sevenfold.simulator.state.arrivals import ArrivalBarrier
from sevenfold.simulator.state.faults import FaultPlan
from sevenfold.simulator.state.ledger import BillingLedger
from sevenfold.simulator.state.request_records import RequestRecords
from sevenfold.simulator.wire.choices import DEFAULT_CHOICES, Choices, RateMeter
from sevenfold.simulator.wire.message_cache import MessageCache
from sevenfold.simulator.wire.signatures import get_signature, parse_thinking_seal

# The clock.

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


# Token counts. A `Tokenizer` is any function of a model, a level and a block.

BlockTokenizer: TypeAlias = Callable[[Model, PromptLevel, JsonObject], int]


def estimate_tokens(model: Model, level: PromptLevel, block: JsonObject) -> int:
    """The default: the estimator that `core.tokens` starts a session with, block by block.

    The same block counts the same in every request, whatever stands around it and wherever a marker is.
    """
    told = _unsealed(strip_cache_control(block))
    if level == "tools" or told.get("type") is None:
        weight = CALIBRATED_ESTIMATOR.weigh(Text(write_json(told).decode()))
    else:
        read = read_block(told)
        weight = CALIBRATED_ESTIMATOR.weigh(
            Text(write_json(told).decode()) if isinstance(read, Opaque) else read
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


@dataclass(frozen=True, slots=True)
class CachePart:
    """One piece of a prompt: a tool, the system prompt, or a block of a message."""

    wire: JsonObject
    tokens: int


@dataclass(frozen=True, slots=True)
class PrefixHit:
    cached_tokens: int
    digests: tuple[Digest, ...]
    """Of each prefix of the prompt, for `keep`."""


class PrefixCache:
    """Prefixes, by owner and model. A difference inside a part counts from the start of the part."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: dict[tuple[str, str, Digest], datetime] = {}

    def look_up(self, workspace: str, model: str, parts: Sequence[CachePart], now: datetime) -> PrefixHit:
        digest, tokens, cached = EMPTY_DIGEST, 0, 0
        digests: list[Digest] = []
        for part in parts:
            digest = chain_digest(digest, canonical_bytes(part.wire))
            digests.append(digest)
            tokens += part.tokens
            used = self._used.get((workspace, model, digest))
            if used is not None and now - used <= OPENAI_CACHE_TTL:
                cached = tokens
        cached -= cached % CACHE_STEP_TOKENS
        return PrefixHit(cached if cached >= MIN_CACHED_TOKENS else 0, tuple(digests))

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
