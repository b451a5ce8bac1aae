"""Five hundred sessions of one project, taught and taught again, with extraction and dreams on the simulator.

    python bench/memory_life.py                       # exit code 1 if a bar is missed
    python bench/memory_life.py --sessions 60 --json

Each session is an agent of its own over HTTP; some hours pass between two of them, and a dream is due once a
day. People say things again in other words and change their minds, and the model that writes memories down
gives them another name each time. Bars: the index within its caps, whole and with the newest memory on a line
of its own, after every session; less than 1% of the memories a duplicate of another, by a checker that shares
nothing with whoever writes them; every dream comes to an end; background work always within its caps.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from memory_world import WAYS, Saying, World

from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.core.clock import ManualClock
from sevenfold.core.events import CallCharged, DreamEnded, Event, ExtractionEnded
from sevenfold.core.memories import Memory
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.session.budget import MICROS_PER_CENT, SPEND_DAY, SPEND_HOUR, SpendSettings
from sevenfold.session.governor import Governor, SpendStore
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.testing import Simulator

MODEL = "claude-opus-5-5"
SESSIONS = 500
BETWEEN = timedelta(hours=3)
INDEX_LINES, INDEX_BYTES = 200, 25_000
BAR_DUPLICATES = 0.01
EVERY = 10
"""Sessions between two counts of duplicates, which compare all memories with all."""
GRAM, NEAR = 5, 0.8
"""Two texts are near duplicates if they share four fifths of their runs of five letters, and all numbers."""


@dataclass(slots=True, kw_only=True)
class Lived:
    sessions: int = 0
    memories: int = 0
    exact: int = 0
    near: int = 0
    """Memories that have a duplicate, exact or near, that came before them."""
    worst_share: float = 0.0
    """Of duplicates, after every tenth session of the second half."""
    index_lines: int = 0
    index_bytes: int = 0
    index_faults: list[str] = field(default_factory=list[str])
    dreams: dict[str, int] = field(default_factory=dict[str, int])
    written: int = 0
    refused: int = 0
    taught: int = 0
    known: int = 0
    """Of the facts that were taught, those whose last value a memory states."""
    outdated: int = 0
    """Memories that state a value that is no longer so."""
    calls: dict[str, int] = field(default_factory=dict[str, int])
    micro_usd: dict[str, int] = field(default_factory=dict[str, int])
    most_of_hour: float = 0.0
    most_of_day: float = 0.0
    """Of the caps, the largest share that was ever used."""
    seconds: float = 0.0

    @property
    def share(self) -> float:
        return (self.exact + self.near) / max(1, self.memories)

    def missed(self) -> list[str]:
        """Which bars it misses, each in a line."""
        failed = sum(count for outcome, count in self.dreams.items() if outcome in ("failed", "killed"))
        bars = {
            f"{self.share:.1%} of the memories are duplicates": self.share < BAR_DUPLICATES,
            f"the index: {'; '.join(self.index_faults[:3])}": not self.index_faults,
            f"{failed} dreams did not come to an end": failed == 0,
            "nobody dreamt": bool(self.dreams),
            f"{self.most_of_hour:.0%} of the cap of an hour was used": self.most_of_hour <= 1,
            f"{self.most_of_day:.0%} of the cap of a day was used": self.most_of_day <= 1,
        }
        return [told for told, is_kept in bars.items() if not is_kept]


class Life:
    """All sessions of one project."""

    def __init__(self, seed: int, home: Path, writer: str) -> None:
        self.world = World(Random(seed))
        self.home, self.clock, self.found = home, ManualClock(), Lived()
        self.project = home / "project"
        self.project.mkdir()
        self.environ = {"HOME": str(home)}
        self._settings = {
            "dream": {"enabled": True},
            "extraction": {"writer": writer},
            # The world's model writes memories down, and does not know which of them a prompt is about.
            "recall": {"side_query": "off"},
        }

    def hear(self, event: Event) -> None:
        found = self.found
        match event:
            case DreamEnded():
                _add(found.dreams, event.outcome)
            case ExtractionEnded():
                found.written += event.written
                found.refused += event.refused
            case CallCharged():
                _add(found.calls, event.kind)
                _add(found.micro_usd, event.kind, event.micro_usd or 0)
            case _:
                pass

    async def live(self, simulator: Simulator, sessions: int) -> None:
        started = time.monotonic()
        http = DefaultAsyncHttpxClient(trust_env=False)
        async with AsyncAnthropic(api_key="life", base_url=simulator.url, http_client=http) as client:
            for number in range(sessions):
                await self._session(AnthropicProvider(client))
                self._look(counts=number >= sessions // 2 and number % EVERY == 0)
                self.clock.pass_time(BETWEEN)
                # There too, or all of it would count as one minute against the provider's limits.
                simulator.advance(BETWEEN)
        self.found.sessions, self.found.seconds = sessions, time.monotonic() - started
        self._judge()

    async def _session(self, provider: AnthropicProvider) -> None:
        agent = await open_agent(
            AgentOptions(
                project=self.project,
                model=MODEL,
                provider=provider,
                settings=self._settings,
                emit=self.hear,
                clock=self.clock,
                environ=self.environ,
            )
        )
        for said in self.world.session():
            await agent.run_turn(said)
            await agent.settle()
        await agent.close()
        self._date(agent.session.id)

    def _date(self, session: str) -> None:
        """Sessions are counted by the time of their files, which is the machine's and not ours."""
        now = self.clock.now().timestamp()
        for path in self.home.glob(f".sevenfold/projects/*/sessions/{session}.jsonl"):
            os.utime(path, (now, now))

    def _look(self, *, counts: bool) -> None:
        """What must hold after every session."""
        found = self.found
        with self._open() as memory:
            index, newest = memory.index_text(), memory.scan(1)
            texts = [item.memory for item in memory.scan(None)] if counts else []
        found.index_lines = max(found.index_lines, len(index.text.splitlines()))
        found.index_bytes = max(found.index_bytes, len(index.text.encode()))
        if index.cut_lines or found.index_lines > INDEX_LINES or found.index_bytes > INDEX_BYTES:
            found.index_faults.append(f"{found.index_lines} lines, {index.cut_lines} cut")
        if newest and f"]({newest[0].memory.key})" not in index.text:
            found.index_faults.append(f"{newest[0].memory.key} is the newest and has no line")
        if texts:
            alike = count_alike(texts)
            found.worst_share = max(found.worst_share, (alike["exact"] + alike["near"]) / len(texts))
        caps, now = SpendSettings(), self.clock.now()
        with closing(SpendStore.open(self.home / ".sevenfold")) as book:
            state = Governor(book, caps, clock=self.clock).state()
        hour, day = state.used(now, SPEND_HOUR).micro_usd, state.used(now, SPEND_DAY).micro_usd
        found.most_of_hour = max(found.most_of_hour, hour / (caps.cents_per_hour * MICROS_PER_CENT))
        found.most_of_day = max(found.most_of_day, day / (caps.cents_per_day * MICROS_PER_CENT))

    def _judge(self) -> None:
        found = self.found
        with self._open() as memory:
            memories = [item.memory for item in memory.scan(None)]
        alike = count_alike(memories)
        found.memories, found.exact, found.near = len(memories), alike["exact"], alike["near"]
        bodies = [memory.body.lower() for memory in memories]
        found.taught = len(self.world.facts)
        for subject, value in self.world.facts.items():
            ways = [Saying(subject, value, way).sentence.lower() for way in range(WAYS)]
            found.known += any(way in body for way in ways for body in bodies)
        for saying in self.world.said.values():
            is_so = self.world.facts[saying.subject] == saying.value
            found.outdated += not is_so and any(saying.sentence.lower() in body for body in bodies)

    def _open(self) -> MemoryDir:
        return MemoryDir.for_project(self.project, environ=self.environ)


def count_alike(memories: Sequence[Memory]) -> Counter[str]:
    """Memories that say what one before them says, by their letters alone."""
    found: Counter[str] = Counter()
    seen: list[tuple[str, frozenset[str], frozenset[str]]] = []
    for memory in memories:
        plain = " ".join(re.findall(r"[a-z0-9]+", memory.body.lower()))
        grams = frozenset(plain[at : at + GRAM] for at in range(max(1, len(plain) - GRAM + 1)))
        numbers = frozenset(re.findall(r"\d+", plain))
        if any(plain == other for other, _, _ in seen):
            found["exact"] += 1
        elif any(numbers == theirs and _likeness(grams, other) >= NEAR for _, other, theirs in seen):
            found["near"] += 1
        seen.append((plain, grams, numbers))
    return found


def _add(counts: dict[str, int], name: str, count: int = 1) -> None:
    counts[name] = counts.get(name, 0) + count


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def live(sessions: int = SESSIONS, *, seed: int = 1, writer: str = "auto") -> Lived:
    with tempfile.TemporaryDirectory() as folder:
        life = Life(seed, Path(folder), writer)
        with Simulator(life.world.answer) as simulator:
            asyncio.run(life.live(simulator, sessions))
        return life.found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="a project's memories over many sessions and dreams")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writer", choices=("auto", "model", "rules"), default="auto")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = live(options.sessions, seed=options.seed, writer=options.writer)
    if options.json:
        sys.stdout.write(json.dumps(asdict(found)) + "\n")
    else:
        show(found)
    missed = found.missed()
    for bar in missed:
        sys.stderr.write(f"MISSED: {bar}\n")
    return 1 if missed else 0


def show(found: Lived) -> None:
    usd = {kind: f"{found.calls[kind]} calls ${micro / 1e6:.2f}" for kind, micro in found.micro_usd.items()}
    lines = (
        f"{found.sessions} sessions in {found.seconds:.0f} s; dreams: {dict(found.dreams)}",
        f"{found.written} memories written, {found.refused} drafts refused, {found.memories} at the end",
        f"duplicates at the end: {found.exact} exact, {found.near} near ({found.share:.2%}); "
        f"at worst {found.worst_share:.2%} in the second half",
        f"facts taught {found.taught}, stated with their last value {found.known}, outdated {found.outdated}",
        f"index: at most {found.index_lines} lines of {INDEX_LINES}, {found.index_bytes:,} bytes of "
        f"{INDEX_BYTES:,}, faults {len(found.index_faults)}",
        f"background work: {usd}; at most {found.most_of_hour:.1%} of an hour's cap, "
        f"{found.most_of_day:.1%} of a day's",
    )
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
