"""A long session of the agent against the simulator: a thousand rounds, three compactions, forty forks.

    python bench/soak.py                        # exit code 1 if a bar is missed
    python bench/soak.py --rounds 200 --json

The simulator runs in a process of its own, over HTTP, so that what grows here is the agent's. Turns of ten
rounds, one tool call each; after some of them a fork on what was said so far, alone or two at the same time;
in the middle a compaction by hand, with words for the summary, so that a model has to write it.
Bars: no break of the prefix that nobody announced, no cache miss, no fork that reads less than 99% of what
its parent had in the cache, no request that is refused, background work within the governor's cap for an
hour, and at most 20 MB more memory at the end than after the first tenth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.turn import RoundEnded, TurnEvent
from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.agent.tool import AccessRequest, OnProgress, ToolOutput, ToolSpec
from sevenfold.core.events import CacheMissed, Event, HistoryCompacted, PrefixBroken
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import Text, Thinking
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.core.usage import Usage
from sevenfold.layers.forks.policy import FORK_MARK, ForkBrief
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.session.budget import SpendSettings
from sevenfold.testing import Prompt, Simulator, call_tool
from sevenfold.testing import Reply as Said

MODEL = "claude-opus-5-5"
TURN_ROUNDS = 10
ROUNDS, FORKS = 1_000, 40
WINDOW_TOKENS = 190_000
RESULT_LINES = 24
"""With this window and results of this size a thousand rounds need two compactions beside the one by hand."""

BAR_SHARE = 0.99
BAR_RSS_MB = 20.0

SUMMARY = "The user has the parser mended, file by file; each was looked at and nothing was wrong. " * 20


def brain(prompt: Prompt) -> Said:
    """Looks nine times, then answers; writes a summary when asked for one, and answers a fork at once."""
    if prompt.purpose == "summary":
        return Said((Text(SUMMARY),))
    thought = (Thinking("Which file is next?"),) if prompt.thinks else ()
    if FORK_MARK in prompt.last_text:
        return Said((*thought, Text("Nothing to report.")))
    looked = 0
    for message in reversed(prompt.messages):
        if message.role == "user" and any(isinstance(block, Text) for block in message.blocks):
            break
        looked += message.role == "assistant"
    if looked >= TURN_ROUNDS - 1:
        return Said((*thought, Text("All of these are in order.")))
    return Said(
        (*thought, Text("I look at the next one."), call_tool("look", {"file": f"src/{prompt.number}.py"}))
    )


SPEC = ToolSpec("look", "Looks at a file.", freeze_object({"type": "object"}), is_parallel=True)


@dataclass(frozen=True, slots=True)
class Look:
    """A tool that no layer clears results of: only compaction makes room."""

    spec: ToolSpec = SPEC

    def need(self, given: JsonObject, _place: ToolContext, /) -> AccessRequest:
        return AccessRequest(kind="nothing", said=f"look at {given.get('file')}")

    async def run(self, given: JsonObject, _place: ToolContext, _on_progress: OnProgress, /) -> ToolOutput:
        name = str(given.get("file"))
        return ToolOutput("\n".join(f"{name}:{line} nothing wrong here" for line in range(RESULT_LINES)))


@dataclass(slots=True, kw_only=True)
class Soaked:
    """What came of it."""

    rounds: int = 0
    turns: int = 0
    compactions: int = 0
    forks: int = 0
    prefix_breaks: int = 0
    cache_misses: list[str] = field(default_factory=list[str])
    """What each was told to be caused by."""
    refused: int = 0
    parallel_forks: int = 0
    lowest_share: float = 1.0
    lowest_parallel_share: float = 1.0
    cost_usd: dict[str, float] = field(default_factory=dict[str, float])
    background_usd: float = 0.0
    cap_usd: float = 0.0
    rss_growth_mb: float = 0.0
    seconds: float = 0.0

    def missed(self) -> list[str]:
        """Which bars it misses, each in a line."""
        bars = {
            f"{self.prefix_breaks} unannounced breaks of the prefix": self.prefix_breaks == 0,
            f"cache misses: {'; '.join(self.cache_misses)}": not self.cache_misses,
            f"{self.refused} requests that did not end well": self.refused == 0,
            f"a fork read {self.lowest_share:.2%} of its parent's cache": self.lowest_share >= BAR_SHARE,
            f"a parallel fork read {self.lowest_parallel_share:.2%}": self.lowest_parallel_share >= BAR_SHARE,
            f"{self.background_usd:.2f} USD of background work": self.background_usd <= self.cap_usd,
            f"{self.rss_growth_mb:.1f} MB more memory": self.rss_growth_mb <= BAR_RSS_MB,
        }
        return [told for told, is_kept in bars.items() if not is_kept]


class Soak:
    """One session from its first turn to its last."""

    def __init__(self, rounds: int, forks: int) -> None:
        self._turns = max(1, rounds // TURN_ROUNDS)
        self._forks = forks
        self._last = Usage()
        self.found = Soaked(cap_usd=SpendSettings().cents_per_hour / 100)

    def hear(self, event: Event) -> None:
        match event:
            case HistoryCompacted():
                self.found.compactions += 1
            case PrefixBroken():
                self.found.prefix_breaks += 1
            case CacheMissed():
                told = f"{event.who}: {event.cause}, {event.read_tokens:,} of {event.expected_tokens:,} read"
                self.found.cache_misses.append(f"{told} after {event.idle_seconds} s")
            case _:
                pass

    def watch(self, seen: TurnEvent) -> None:
        if isinstance(seen, RoundEnded):
            self._last = seen.reply.usage

    async def run(self, url: str, home: Path) -> Soaked:
        http = DefaultAsyncHttpxClient(trust_env=False)
        async with AsyncAnthropic(api_key="soak", base_url=url, http_client=http) as client:
            agent = await self._open(AnthropicProvider(client), home)
            started, before = time.monotonic(), 0.0
            for number in range(self._turns):
                await self._turn(agent, number)
                if number == self._turns // 10:
                    before = rss_mb()
            self.found.rss_growth_mb = rss_mb() - before
            self.found.seconds = time.monotonic() - started
            self._add_usage(agent)
            await agent.close()
        return self.found

    async def _open(self, provider: AnthropicProvider, home: Path) -> Agent:
        project = home / "project"
        project.mkdir()
        return await open_agent(
            AgentOptions(
                project=project,
                model=MODEL,
                provider=provider,
                tools=[Look()],
                settings={"models": {MODEL: {"window_tokens": WINDOW_TOKENS}}},
                emit=self.hear,
                environ={"HOME": str(home)},
            )
        )

    async def _turn(self, agent: Agent, number: int) -> None:
        end = await agent.run_turn(f"Look at part {number} of the parser.", self.watch)
        self.found.turns += 1
        self.found.rounds += end.rounds
        self.found.refused += end.reason != "answered"
        if number == self._turns // 2:
            await agent.compact("which files are in order")
        due = (number + 1) * self._forks // self._turns - self.found.forks
        if due > 0:
            await self._fork(agent, due if number % 2 else max(2, due))

    async def _fork(self, agent: Agent, count: int) -> None:
        """Forks at the same time; of each, the share of the parent's cached tokens that it read."""
        count = min(count, self._forks - self.found.forks)
        briefs = [
            ForkBrief(kind="check", directive=f"Is part {at} in order? One line.") for at in range(count)
        ]
        results = await asyncio.gather(*(agent.session.run_fork(brief) for brief in briefs))
        cached = self._last.read + self._last.written
        shares = [result.replies[0].usage.read / cached for result in results if cached]
        self.found.forks += count
        if count > 1:
            self.found.parallel_forks += count
            self.found.lowest_parallel_share = min(self.found.lowest_parallel_share, *shares)
        else:
            self.found.lowest_share = min(self.found.lowest_share, *shares)

    def _add_usage(self, agent: Agent) -> None:
        for spent in agent.session.spent:
            usd = float(spent.cost.total) if spent.cost else 0.0
            self.found.cost_usd[spent.who] = round(usd, 4)
            if spent.who != "main":
                self.found.background_usd += usd


def rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


def serve(link: Connection) -> None:
    """The simulator, until somebody says otherwise; then, whether all of it went as expected."""
    with Simulator(brain) as simulator:
        link.send(simulator.url)
        link.recv()
        link.send(sum(entry.status >= 400 for entry in simulator.ledger.entries))


@contextmanager
def simulator_elsewhere(found: Soaked) -> Generator[str]:
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
        here.send("done")
        found.refused += here.recv()
    finally:
        process.terminate()
        process.join()


def soak(rounds: int = ROUNDS, forks: int = FORKS) -> Soaked:
    run = Soak(rounds, forks)
    with tempfile.TemporaryDirectory() as folder, simulator_elsewhere(run.found) as url:
        return asyncio.run(run.run(url, Path(folder)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="a long session of the agent against the simulator")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--forks", type=int, default=FORKS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = soak(options.rounds, options.forks)
    if options.json:
        sys.stdout.write(json.dumps(asdict(found)) + "\n")
    else:
        for name, value in asdict(found).items():
            sys.stdout.write(f"{name:24} {value}\n")
    missed = found.missed()
    for told in missed:
        sys.stderr.write(f"missed: {told}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
