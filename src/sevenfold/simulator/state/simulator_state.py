"""Everything a simulator remembers between requests. A reset is a new world."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from sevenfold.core.cache.prompt_cache import PromptCache
from sevenfold.core.catalog import CATALOG, Catalog
from sevenfold.core.messages import ToolUseId
from sevenfold.simulator.responders.brain_protocol import Brain
from sevenfold.simulator.state.arrivals import ArrivalBarrier
from sevenfold.simulator.state.clock import VirtualClock
from sevenfold.simulator.state.counting import BlockTokenizer, estimate_tokens
from sevenfold.simulator.state.faults import FaultPlan
from sevenfold.simulator.state.ledger import BillingLedger
from sevenfold.simulator.state.openai_cache import PrefixCache
from sevenfold.simulator.state.request_records import RequestRecords
from sevenfold.simulator.wire.choices import DEFAULT_CHOICES, Choices
from sevenfold.simulator.wire.message_cache import MessageCache
from sevenfold.simulator.wire.rate_limits import RateMeter


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
    """Of the server, so that a world that takes another's place takes this over."""
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
