"""What one scripted session costs: 6 turns, 120 tool calls, a pause of 70 minutes; beside it, a peer.

    python bench/trajectory.py [--trajectory FILE] [--peer PYTHON] [--seeds 7,11,23] [--extraction]

Each contender plays the same session against the strict simulator, over HTTP: breakpoints are billed as sent,
edits of the provider are carried out, and the clock follows the session. The scripted model never reads
anything again, so that cost alone rewards forgetting. Beside it stands how much of what the tools have shown
the model still sees, of all results and of the last ten, as a mean over the requests. `FILE` is a Python file
with `build(seed)`, `SYSTEM` and `TOOLS`; without one the session is made here, of the sources of the standard
library. `PYTHON` has the peer installed (`bench/trajectory_peer.py`); without one only our own are compared.
`--extraction` runs the default extraction after each turn instead, and prints its share of what the session
costs: with forks that find nothing, with forks that write a memory in the user's words after every turn, and
with forks whose every first draft has to be corrected. Turns that are put off are looked through at the end,
ten minutes after the last answer. The exit code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import mean
from typing import Any

from sevenfold.core.events import CacheMissed, CutRegistered, Event, PrefixBroken
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.messages import Message, ToolResult, ToolUse
from sevenfold.core.requests import RequestParams
from sevenfold.layers.memory.extraction.drafts import ConversationSnapshot, RecordedMessage
from sevenfold.layers.memory.extraction.writer import ExtractionWriter
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.session import Session
from sevenfold.simulator.simulator_state import VirtualClock
from sevenfold.testing import Prompt, Reply, Simulator, call_tool, say

READ_USD, WRITE_USD, FRESH_USD = 0.30, 3.75, 3.0
"""A million tokens, for every contender and model: what is compared is how the cache is used."""
UNSIGNED, SIGNED = "claude-sonnet-4-6", "claude-sonnet-5-5"
THOUGHT = "The last output narrows it down; the next place to look at follows from the names in it. " * 3
RECENT_RESULTS = 10
MARKER_CHARS = 400
"""What is shorter and not the result itself stands in for it and shows nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    system: str
    tools: tuple[JsonObject, ...]
    prompts: tuple[str, ...]
    steps: tuple[Step, ...]
    results: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Step:
    """A reply of the scripted model."""

    seconds: float
    """When it is asked for."""
    turn: int
    text: str
    call: str = ""
    """The tool; empty: the answer that ends a turn."""
    number: int = -1
    argument: str = ""


@dataclass(slots=True)
class Player:
    """The scripted model: replies in order, moves the clock, and looks at what it is shown."""

    trajectory: Trajectory
    clock: VirtualClock
    thinks: bool
    at: int = 0
    shown: list[float] = field(default_factory=list[float])
    recent: list[float] = field(default_factory=list[float])
    strays: int = 0
    calls: int = 0
    forks: list[int] = field(default_factory=list[int])
    """Which of the calls were those of extraction."""
    writes: Mapping[int, str] = field(default_factory=dict[int, str])
    """The memory that the fork after a turn writes, by the turn's number."""
    taught: int = 0
    """The first turn that no fork has written about."""
    pause: timedelta = timedelta()
    """Until the next turn."""
    idle: timedelta = timedelta()
    """Since the last answer."""

    def __call__(self, prompt: Prompt) -> Reply:
        self.calls += 1
        if EXTRACTION_MARK in str(prompt.messages[-1]) or self._is_memory(prompt):
            return self._remember(prompt)
        if prompt.purpose != "reply" or self.at >= len(self.trajectory.steps) or not self._is_next(prompt):
            self.strays += 1
            return say("noted")
        self._look(prompt)
        step = self.trajectory.steps[self.at]
        self.at += 1
        if self.at < len(self.trajectory.steps):
            ahead = timedelta(seconds=max(0.0, self.trajectory.steps[self.at].seconds - step.seconds))
            if step.call:
                self.clock.advance(ahead)
            else:
                self.pause = ahead
        said = say(step.text, think=THOUGHT if self.thinks else "")
        if not step.call:
            return said
        use = call_tool(step.call, {"n": step.number, "arg": step.argument}, f"toolu_{step.number:04d}")
        return Reply((*said.blocks, use))

    def _is_memory(self, prompt: Prompt) -> bool:
        return any(result.tool_use_id.startswith("memory_") for result in prompt.results)

    def _remember(self, prompt: Prompt) -> Reply:
        self.forks.append(self.calls - 1)
        turn = self.trajectory.steps[self.at - 1].turn
        texts = {at: self.writes[at] for at in range(self.taught, turn + 1) if at in self.writes}
        if not texts or self._is_memory(prompt):
            return say("Nothing more to keep.")
        self.taught = turn + 1
        return Reply(tuple(_write_memory(at, text) for at, text in texts.items()))

    def _is_next(self, prompt: Prompt) -> bool:
        before = self.trajectory.steps[self.at - 1] if self.at else None
        if before is not None and before.call:
            return any(result.tool_use_id == f"toolu_{before.number:04d}" for result in prompt.results)
        return self.trajectory.prompts[self.trajectory.steps[self.at].turn] in prompt.last_text

    def _look(self, prompt: Prompt) -> None:
        sizes: dict[int, int] = {}
        for message in prompt.messages:
            for block in message.blocks:
                if isinstance(block, ToolResult):
                    number = int(block.tool_use_id.removeprefix("toolu_"))
                    sizes[number] = count_shown(block, self.trajectory.results[number])
        # All that were shown so far: what a summary replaced is in no block any more.
        numbers = [step.number for step in self.trajectory.steps[: self.at] if step.call]
        if numbers:
            self.shown.append(self._share(sizes, numbers))
            self.recent.append(self._share(sizes, numbers[-RECENT_RESULTS:]))

    def _share(self, sizes: Mapping[int, int], numbers: Sequence[int]) -> float:
        whole = sum(len(self.trajectory.results[number]) for number in numbers)
        return sum(sizes.get(number, 0) for number in numbers) / whole if whole else 1.0


def _write_memory(turn: int, text: str) -> ToolUse:
    given = {"action": "write", "name": f"turn-{turn}", "type": "feedback", "description": text}
    return call_tool("memory", {**given, "content": text}, f"memory_{turn}")


def count_shown(result: ToolResult, whole: str) -> int:
    """Characters of a tool's output that stand in the prompt."""
    content = result.content
    text = (
        content if isinstance(content, str) else "".join(getattr(part, "text", "") for part in content or ())
    )
    if text == whole or len(text) > MARKER_CHARS:
        return min(len(text), len(whole))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    usd: float
    shown: float
    recent: float
    refused: int
    read_share: float
    cuts: int = 0
    unannounced: int = 0
    missed: int = 0
    strays: int = 0
    peak: int = 0


def bill(sim: Simulator, player: Player, events: Sequence[Event] = ()) -> Outcome:
    entries = [entry for entry in sim.ledger.entries if entry.status == 200 and entry.endpoint == "messages"]
    read = sum(entry.usage.read for entry in entries)
    written = sum(entry.usage.written for entry in entries)
    fresh = sum(entry.usage.fresh for entry in entries)
    kinds = [type(event) for event in events]
    missed = [event for event in events if isinstance(event, CacheMissed) and event.cause != "idle"]
    return Outcome(
        usd=(READ_USD * read + WRITE_USD * written + FRESH_USD * fresh) / 1_000_000,
        shown=mean(player.shown or [0.0]),
        recent=mean(player.recent or [0.0]),
        refused=len([entry for entry in sim.ledger.entries if entry.status != 200]),
        read_share=read / max(1, read + written + fresh),
        cuts=kinds.count(CutRegistered),
        unannounced=kinds.count(PrefixBroken),
        missed=len(missed),
        strays=player.strays,
        peak=max((entry.usage.prompt for entry in entries), default=0),
    )


IDLE_AT_END = timedelta(minutes=10)
"""The session is left open for a while: what is put off till then finds the cache cold."""
EXTRACTION_MARK = "Look for what is worth remembering in later conversations"
"""Of the prompt of extraction."""


async def play(
    session: Session, provider: AnthropicProvider, player: Player, writer: ExtractionWriter | None = None
) -> None:
    trajectory = player.trajectory
    for prompt in trajectory.prompts:
        session.history.append(Message("user", prompt))
        while True:
            reply = await provider.send((await session.prepare()).request)
            await session.record(reply)
            if not reply.tool_uses:
                break
            results = tuple(
                ToolResult(use.id, trajectory.results[int(str(use.input["n"]))]) for use in reply.tool_uses
            )
            session.history.append(Message("user", results))
        await session.turn_ended()
        if writer is not None:
            said = [RecordedMessage(str(at), message) for at, message in enumerate(session.history)]
            await writer.turn_ended(ConversationSnapshot(said, session.parent.messages))
        player.clock.advance(player.pause)
    if writer is not None:
        player.idle = IDLE_AT_END
        player.clock.advance(IDLE_AT_END)
        said = [RecordedMessage(str(at), message) for at, message in enumerate(session.history)]
        await writer.session_ended(ConversationSnapshot(said, session.parent.messages))


def price_as_billed(model: str) -> dict[str, dict[str, object]]:
    prices = {
        "input_usd_per_mtok": FRESH_USD,
        "cache_read_usd_per_mtok": READ_USD,
        "cache_write_5m_usd_per_mtok": WRITE_USD,
        "output_usd_per_mtok": 15.0,
    }
    return {model: {**prices}}


def run_ours(trajectory: Trajectory, model: str, policy: str = "balanced") -> Outcome:
    clock, events = VirtualClock(), list[Event]()
    player = Player(trajectory, clock, thinks=model == SIGNED)

    async def run(home: str) -> None:
        async with sim.async_client() as client:
            provider = AnthropicProvider(client)
            frame = RequestParams(
                model=model, max_tokens=4_000, system=trajectory.system, tools=trajectory.tools
            )
            async with await Session.open(
                frame,
                project=home,
                provider=provider,
                settings={"models": price_as_billed(model), "microcompact": {"policy": policy}},
                clearable={str(tool["name"]): True for tool in trajectory.tools},
                clock=clock,
                emit=events.append,
                environ={"HOME": home},
            ) as session:
                await play(session, provider, player)

    with Simulator(player, clock=clock) as sim, tempfile.TemporaryDirectory() as home:
        asyncio.run(run(home))
        return bill(sim, player, events)


def run_peer(trajectory: Trajectory, model: str, python: str) -> Outcome:
    clock = VirtualClock()
    player = Player(trajectory, clock, thinks=model == SIGNED)
    told = {
        "system": trajectory.system,
        "tools": [json.loads(json.dumps(tool, default=dict)) for tool in trajectory.tools],
        "prompts": trajectory.prompts,
        "results": {str(number): text for number, text in trajectory.results.items()},
    }
    script = str(Path(__file__).with_name("trajectory_peer.py"))
    with Simulator(player, clock=clock) as sim, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trajectory.json")
        path.write_text(json.dumps(told), encoding="utf-8")
        done = subprocess.run(
            [python, script, sim.url, model, str(path)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(done.stderr[-2_000:], file=sys.stderr)
        return bill(sim, player)


def read_trajectory(path: Path | None, seed: int) -> Trajectory:
    return load_trajectory(path, seed) if path else make_trajectory(seed)


def load_trajectory(path: Path, seed: int) -> Trajectory:
    """A session as a file describes it: `build(seed)` gives its items, its results by number, its times."""
    spec = spec_from_file_location("trajectory_of_a_file", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    items, results, times = module.build(seed)
    prompts: list[str] = []
    steps: list[Step] = []
    for role, content in items:
        if role == "user":
            prompts.append(content)
            continue
        text = "".join(block["text"] for block in content if block["type"] == "text")
        use = next((block for block in content if block["type"] == "tool_use"), None)
        at, turn = times[len(steps)], len(prompts) - 1
        if use is None:
            steps.append(Step(at, turn, text))
        else:
            steps.append(Step(at, turn, text, use["name"], use["input"]["n"], use["input"]["arg"]))
    return Trajectory(
        system=module.SYSTEM,
        tools=tuple(freeze_object(tool) for tool in module.TOOLS),
        prompts=tuple(prompts),
        steps=tuple(steps),
        results=results,
    )


PAUSES = (0, 240, 90, 4_200, 120, 600)
"""Seconds before each turn; one is longer than any cache lives."""
STEPS = 20
READ_LINES, LOG_LINES = (60, 200, 400, 900), (5, 40, 120, 800, 2_500)


def make_trajectory(seed: int) -> Trajectory:
    """Reads, searches, commands and edits by chance, over the sources of the standard library."""
    rolls = random.Random(seed)
    sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    results: dict[int, str] = {}
    steps: list[Step] = []
    seconds = 0.0
    for turn, pause in enumerate(PAUSES):
        seconds += pause
        for _ in range(STEPS):
            tool = rolls.choices(("Read", "Grep", "Bash", "Edit"), (45, 20, 25, 10))[0]
            path, number = rolls.choice(sources), len(results)
            results[number] = make_output(tool, path, rolls)
            steps.append(Step(seconds, turn, f"Next: {path.name}.", tool, number, path.name))
            seconds += rolls.uniform(4, 25)
        steps.append(Step(seconds, turn, f"Turn {turn} is done."))
        seconds += 30
    return Trajectory(
        system="You work in a checkout of Python. " + "Keep changes small and run the tests. " * 120,
        tools=tuple(declare_tool(name) for name in ("Read", "Grep", "Bash", "Edit")),
        prompts=tuple(f"Task {turn}: find out why a test fails and fix it." for turn in range(len(PAUSES))),
        steps=tuple(steps),
        results=results,
    )


def make_output(tool: str, path: Path, rolls: random.Random) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if tool == "Read":
        first = rolls.randrange(max(1, len(lines) - 50))
        shown = lines[first : first + rolls.choice(READ_LINES)]
        return "\n".join(f"{first + at}\t{line}" for at, line in enumerate(shown, 1))
    if tool == "Grep":
        word = rolls.choice(("def ", "raise ", "import ", "self."))
        found = [f"{path.name}:{at}:{line}" for at, line in enumerate(lines, 1) if word in line]
        return "\n".join(found)[: rolls.choice((2_000, 9_000, 40_000))]
    if tool == "Bash":
        count = rolls.choices(LOG_LINES, (30, 30, 28, 6, 6))[0]
        return "\n".join(f"test_{path.stem}_{at} ... ok" for at in range(count))
    return f"{path.name} was changed in three places."


def declare_tool(name: str) -> JsonObject:
    properties = {"n": {"type": "integer"}, "arg": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["n", "arg"]}
    return freeze_object({"name": name, "description": f"{name} something.", "input_schema": schema})


def rename_tools(trajectory: Trajectory) -> Trajectory:
    """The same with tools that nobody knows."""
    names = {str(tool["name"]): f"custom_{at}" for at, tool in enumerate(trajectory.tools)}
    return replace(
        trajectory,
        tools=tuple(freeze_object({**tool, "name": names[str(tool["name"])]}) for tool in trajectory.tools),
        steps=tuple(replace(step, call=names.get(step.call, "")) for step in trajectory.steps),
    )


@dataclass(frozen=True, slots=True)
class Bar:
    """What one contender may cost of another."""

    ours: str
    other: str
    most: float


BARS = (
    Bar("ours", "peer", 0.75),
    Bar("ours, custom tools", "peer, custom tools", 0.75),
    Bar("ours, signed", "fixed edit, signed", 0.60),
)


def list_contenders(peer: str | None) -> dict[str, Callable[[Trajectory], Outcome]]:
    ours: dict[str, Callable[[Trajectory], Outcome]] = {
        "kept": lambda told: run_ours(told, UNSIGNED, "keep"),
        "ours": lambda told: run_ours(told, UNSIGNED),
        "ours, custom tools": lambda told: run_ours(rename_tools(told), UNSIGNED),
        "fixed edit, signed": lambda told: run_ours(told, SIGNED, "fixed"),
        "ours, signed": lambda told: run_ours(told, SIGNED),
        "thrift": lambda told: run_ours(told, UNSIGNED, "thrift"),
        "thrift, signed": lambda told: run_ours(told, SIGNED, "thrift"),
    }
    if peer is None:
        return ours
    return {
        **ours,
        "peer": lambda told: run_peer(told, UNSIGNED, peer),
        "peer, custom tools": lambda told: run_peer(rename_tools(told), UNSIGNED, peer),
        "peer, signed": lambda told: run_peer(told, SIGNED, peer),
    }


def show(seed: int, name: str, found: Outcome) -> None:
    cost = f"${found.usd:.2f}" if not found.refused else f"refused after ${found.usd:.2f}"
    print(
        f"{seed:>4}  {name:20} {cost:>8}  in view {found.shown:.2f}, of the last ten {found.recent:.2f}  "
        f"read {found.read_share:.3f}  peak {found.peak:>7,}  cuts {found.cuts:>2}  "
        f"unannounced {found.unannounced}  missed {found.missed}  strays {found.strays}",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description="What one scripted session costs.")
    options.add_argument("--trajectory", type=Path, help="a file with build(seed), SYSTEM and TOOLS")
    options.add_argument("--peer", help="a Python that has pydantic-ai-harness installed")
    options.add_argument("--seeds", default="7,11,23")
    options.add_argument("--extraction", action="store_true", help="what extraction costs of the session")
    given = options.parse_args()
    if given.extraction:
        from trajectory_extraction import tell_extraction

        seeds = map(int, given.seeds.split(","))
        sys.exit(not all([tell_extraction(read_trajectory(given.trajectory, seed), seed) for seed in seeds]))  # noqa: C419 - print all
    costs: dict[str, list[float]] = {}
    for seed in map(int, given.seeds.split(",")):
        told = read_trajectory(given.trajectory, seed)
        for name, run in list_contenders(given.peer).items():
            found = run(told)
            show(seed, name, found)
            costs.setdefault(name, []).append(found.usd)
    is_missed = False
    for bar in BARS:
        if bar.other not in costs:
            continue
        ratios = [one / other for one, other in zip(costs[bar.ours], costs[bar.other], strict=True)]
        whole = sum(costs[bar.ours]) / sum(costs[bar.other])
        is_missed = is_missed or whole > bar.most
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"{bar.ours} / {bar.other}: {whole:.3f} ({each}), at most {bar.most:.2f}")
    sys.exit(1 if is_missed else 0)


if __name__ == "__main__":
    main()
