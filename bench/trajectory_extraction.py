"""What extraction costs of a scripted session: `python bench/trajectory.py --extraction`."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass

from trajectory import (
    FRESH_USD,
    READ_USD,
    SIGNED,
    UNSIGNED,
    WRITE_USD,
    Player,
    Trajectory,
    play,
    price_as_billed,
)

from sevenfold.agent.tools.memory import MEMORY_TOOL_SPEC
from sevenfold.core.messages import ToolResult, ToolUse
from sevenfold.core.requests import RequestParams
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner
from sevenfold.layers.memory.extraction.settings import ExtractionSettings
from sevenfold.layers.memory.extraction.writer import ExtractionPlaces, ExtractionWriter, ForkTools
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.session import Session
from sevenfold.simulator.simulator_state import VirtualClock
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.testing import Simulator


def make_extraction_writer(session: Session, home: str, names: tuple[str, ...]) -> ExtractionWriter:
    """With default settings, as an agent has it."""

    async def run_fork(brief: ForkBrief, run_tool: ToolRunner) -> ForkResult:
        return await session.run_fork(brief, run_tool=run_tool)

    async def read(use: ToolUse) -> ToolResult:
        return ToolResult(use.id, "not read here", is_error=True)

    memory = MemoryDir.for_project(home, environ={"HOME": home})
    places = ExtractionPlaces(session=session.id, memory=memory, folder=str(memory.path))
    return ExtractionWriter(places, ExtractionSettings(), ForkTools(names, run_fork, read))


@dataclass(frozen=True, slots=True)
class ExtractionCost:
    forks: int
    calls: int
    usd: float
    session_usd: float


def run_extraction(trajectory: Trajectory, model: str, *, writes: bool) -> ExtractionCost:
    """What extraction costs of a session."""
    clock = VirtualClock()
    player = Player(trajectory, clock, thinks=model == SIGNED, writes=writes)
    tools = (*trajectory.tools, MEMORY_TOOL_SPEC.declared())

    async def run(home: str) -> None:
        async with sim.async_client() as client:
            provider = AnthropicProvider(client)
            frame = RequestParams(model=model, max_tokens=4_000, system=trajectory.system, tools=tools)
            async with await Session.open(
                frame,
                project=home,
                provider=provider,
                settings={"models": price_as_billed(model)},
                clearable={str(tool["name"]): True for tool in trajectory.tools},
                clock=clock,
                environ={"HOME": home},
            ) as session:
                names = tuple(str(tool["name"]) for tool in tools)
                await play(session, provider, player, make_extraction_writer(session, home, names))

    with Simulator(player, clock=clock) as sim, tempfile.TemporaryDirectory() as home:
        asyncio.run(run(home))
        entries = [one for one in sim.ledger.entries if one.status == 200 and one.endpoint == "messages"]
    usd = [
        (READ_USD * one.usage.read + WRITE_USD * one.usage.written + FRESH_USD * one.usage.fresh) / 1_000_000
        for one in entries
    ]
    calls = len(player.forks)
    spent = sum(usd[at] for at in player.forks)
    return ExtractionCost(len(trajectory.prompts) if calls else 0, calls, spent, sum(usd))


MAX_EXTRACTION_SHARE = 0.05
"""Where nothing is taught, as in this session. A fork that writes asks twice, and is shown beside it."""


def tell_extraction(trajectory: Trajectory, seed: int) -> bool:
    """Print the share; whether it is small enough."""
    is_small = True
    for name, model in (("unsigned", UNSIGNED), ("signed", SIGNED)):
        for writes in (False, True):
            found = run_extraction(trajectory, model, writes=writes)
            share = found.usd / found.session_usd
            is_small = is_small and found.calls > 0 and (writes or share <= MAX_EXTRACTION_SHARE)
            print(
                f"{seed:>4}  {name:9} {'forks that write' if writes else 'nothing to keep':16} "
                f"{found.calls:>3} calls  ${found.usd:.3f} of ${found.session_usd:.2f}  {share:.1%}",
                flush=True,
            )
    return is_small
