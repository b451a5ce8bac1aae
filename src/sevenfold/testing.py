"""What we give you to test with: the Messages API on a port of your machine, billing as the provider does.

    with Simulator(script("Hello.")) as sim:
        client = sim.client()
        client.messages.create(model="claude-opus-5-5", max_tokens=100, messages=[...])
        assert sim.last.usage.read == 0

Leaving the block raises if a request was not in the script, or a step was never asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from sevenfold.core.errors import SimulatorError
from sevenfold.core.prices import CATALOG, Catalog
from sevenfold.simulator.brain import (
    ANY_TIMES,
    Brain,
    BrainFunction,
    FunctionBrain,
    Match,
    Prompt,
    Reply,
    Script,
    Step,
    call_tool,
    say,
    script,
)
from sevenfold.simulator.faults import DropFault, SimulatedFault, SlowFault, StatusFault, StreamFault
from sevenfold.simulator.ledger import BillingLedger, Entry, LedgerFile
from sevenfold.simulator.load_brain import EchoBrain, load_brain
from sevenfold.simulator.server import SimulatorServer
from sevenfold.simulator.simulator_state import (
    BlockTokenizer,
    SimulatorState,
    VirtualClock,
    estimate_tokens,
)
from sevenfold.simulator.wire.choices import DEFAULT_CHOICES, Choices, RateLimits

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

__all__ = [
    "ANY_TIMES",
    "Brain",
    "Choices",
    "DropFault",
    "EchoBrain",
    "Entry",
    "Match",
    "Prompt",
    "RateLimits",
    "Reply",
    "Script",
    "Simulator",
    "SlowFault",
    "StatusFault",
    "Step",
    "StreamFault",
    "call_tool",
    "load_brain",
    "say",
    "script",
]

API_KEY = "simulated"


class Simulator:
    """A simulator that runs as long as the `with` block does, plain or async.

    Its clock stands still unless it is advanced: what is cached is still cached however slow a test is.
    """

    def __init__(
        self,
        brain: Brain | BrainFunction | None = None,
        *,
        choices: Choices = DEFAULT_CHOICES,
        clock: VirtualClock | None = None,
        tokenizer: BlockTokenizer = estimate_tokens,
        catalog: Catalog = CATALOG,
        ledger_path: Path | None = None,
        port: int = 0,
    ) -> None:
        self._tokenizer, self._catalog = tokenizer, catalog
        self._ledger_path = ledger_path
        self._host = SimulatorServer(lambda: self._world, port=port)
        self._closing: list[Callable[[], object]] = []
        self._world = self._make_world(_as_brain(brain), choices, clock or VirtualClock())

    def start(self) -> Simulator:
        if self._ledger_path is not None:
            self._world.ledger.file = LedgerFile(self._ledger_path)
        self._host.start()
        return self

    def stop(self) -> None:
        """Stop listening. Whether everything went as expected is asked with `check`."""
        while self._closing:
            self._closing.pop()()
        self._host.stop()
        file, self._world.ledger.file = self._world.ledger.file, None
        if file is not None:
            file.close()

    def check(self) -> None:
        """Raise what went wrong in a brain, or what a script still waits for."""
        for failure in self._world.failures:
            raise failure
        self._world.brain.check_done()

    def reset(
        self,
        brain: Brain | BrainFunction | None = None,
        *,
        choices: Choices = DEFAULT_CHOICES,
        clock: VirtualClock | None = None,
    ) -> None:
        """Forget everything, caches and ledger included, and go on with another brain on the same port."""
        file = self._world.ledger.file
        arrivals = self._world.arrivals
        self._world = self._make_world(_as_brain(brain), choices, clock or VirtualClock())
        self._world.ledger.file, self._world.arrivals = file, arrivals

    @property
    def url(self) -> str:
        return self._host.url

    @property
    def ledger(self) -> BillingLedger:
        return self._world.ledger

    @property
    def last(self) -> Entry:
        """The entry of the request that was answered last."""
        if not self.ledger.entries:
            raise SimulatorError("no request has been made yet, so the ledger has no last entry")
        return self.ledger.entries[-1]

    def now(self) -> datetime:
        return self._world.clock.now()

    def advance(self, elapsed: timedelta) -> datetime:
        """Let time pass for the simulator, at once."""
        return self._world.clock.advance(elapsed)

    def fail(self, fault: SimulatedFault, times: int = 1) -> None:
        """Make the next requests meet a fault."""
        self._world.faults.add(fault, times)

    def client(self, *, api_key: str = API_KEY, max_retries: int = 2, timeout: float = 60) -> Anthropic:
        """The official client, pointed here. Closed with the simulator."""
        import anthropic

        # No proxy of the environment may stand between a test and its own machine.
        http = anthropic.DefaultHttpxClient(trust_env=False)
        client = anthropic.Anthropic(
            api_key=api_key, base_url=self.url, max_retries=max_retries, timeout=timeout, http_client=http
        )
        self._closing.append(client.close)
        return client

    def async_client(
        self, *, api_key: str = API_KEY, max_retries: int = 2, timeout: float = 60
    ) -> AsyncAnthropic:
        """The official async client, pointed here. Close it in the loop that used it."""
        import anthropic

        http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
        return anthropic.AsyncAnthropic(
            api_key=api_key, base_url=self.url, max_retries=max_retries, timeout=timeout, http_client=http
        )

    def __enter__(self) -> Simulator:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        # A test that failed already keeps its own error.
        if error is None:
            self.check()

    async def __aenter__(self) -> Simulator:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)
        if error is None:
            self.check()

    def _make_world(self, brain: Brain, choices: Choices, clock: VirtualClock) -> SimulatorState:
        return SimulatorState(
            brain=brain, choices=choices, clock=clock, tokenizer=self._tokenizer, catalog=self._catalog
        )


def _as_brain(brain: Brain | BrainFunction | None) -> Brain:
    if brain is None:
        return EchoBrain()
    return FunctionBrain(brain) if callable(brain) else brain
