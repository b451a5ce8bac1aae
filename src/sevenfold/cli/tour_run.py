"""One run of the tour's session: an agent, a scratch repository, and a simulator that bills it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from sevenfold.agent.agent import Agent
from sevenfold.agent.face.aside import count_running
from sevenfold.agent.seen import Seen
from sevenfold.agent.setup import Setup, open_agent
from sevenfold.cli.tour_repo import make_repository
from sevenfold.cli.tour_script import SCENES, Scene, TourBrain
from sevenfold.core.clock import ManualClock
from sevenfold.core.errors import SimulatorError
from sevenfold.core.prices import Cost, add_costs
from sevenfold.core.usage import Usage, add_up
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.run.permissions import Answer, Question
from sevenfold.simulator.ledger import Ledger
from sevenfold.testing import Simulator

MODEL = "claude-opus-5"

LONGEST_SECONDS = 60
"""That the tour waits for an agent which answers at once."""

Layers: TypeAlias = Mapping[str, Mapping[str, object]]

WITH: Layers = {
    "agent": {"thinking": False},
}
"""As everybody has them: only thinking, which a script has none of, is off."""
WITHOUT: Layers = {
    "agent": {"thinking": False},
    "tool_results": {"enabled": False},
    "microcompact": {"enabled": False},
    "notes": {"enabled": False},
    "compact": {"enabled": False},
}


@dataclass(frozen=True, slots=True)
class Bill:
    """What a run cost, as the simulator billed it."""

    requests: int
    usage: Usage
    cost: Cost | None
    uncached: Cost | None
    """The same requests with every prompt token fresh."""


class Guide:
    """Leads through a run; this one says nothing."""

    def watch(self, seen: Seen) -> None:
        """While a turn runs, and what it set off after it."""

    def enter(self, repository: Path) -> None:
        """Where everything happens."""

    async def open_scene(self, scene: Scene) -> None:
        """Before anything of it happens."""

    async def start_turn(self, scene: Scene) -> None:
        """The person types."""

    async def close_scene(self) -> None:
        """The model has answered."""

    async def ask(self, _question: Question) -> Answer:
        """Everything happens in a scratch folder, so everything is allowed."""
        return Answer(True)


async def run_tour(folder: Path, layers: Layers, guide: Guide) -> Bill:
    """Play every scene in a folder of its own, with layers as they are set."""
    repository, home = folder / "shop", folder / "home"
    home.mkdir(parents=True)
    make_repository(repository)
    guide.enter(repository)
    clock, is_compacting = ManualClock(), layers is WITH
    with Simulator(TourBrain()) as simulator:
        client = simulator.async_client()
        agent = await open_agent(
            Setup(
                repository,
                model=MODEL,
                mode="ask",
                ask=guide.ask,
                provider=AnthropicProvider(client),
                settings=layers,
                clock=clock,
                environ=_environ(home),
            )
        )
        try:
            for scene in SCENES:
                pause = timedelta(hours=scene.hours_before)
                clock.pass_time(pause)
                simulator.advance(pause)
                await guide.open_scene(scene)
                if scene.compacts_before and is_compacting:
                    await agent.compact()
                await guide.start_turn(scene)
                end = await agent.run_turn(f"{scene.prompt}\n{scene.pasted}".strip(), guide.watch)
                if end.reason != "answered":
                    raise SimulatorError(f"the tour's turn {scene.title!r} was {end.reason}: {end.error}")
                await guide.close_scene()
            await _hear_out(agent, guide)
        finally:
            await agent.close()
            await client.close()
        return _bill(simulator.ledger)


async def _hear_out(agent: Agent, guide: Guide) -> None:
    """Answer what agents in the background have to say, until none is at work."""
    while agent.inbox or count_running(agent):
        async with asyncio.timeout(LONGEST_SECONDS):
            await agent.inbox.wait()
        await agent.run_turn(None, guide.watch)
        await guide.close_scene()


def _bill(ledger: Ledger) -> Bill:
    billed = ledger.billed
    return Bill(
        len(billed),
        add_up(entry.usage for entry in billed),
        ledger.total_cost(),
        add_costs(entry.cost_without_caching for entry in billed),
    )


def _environ(home: Path) -> dict[str, str]:
    """Nothing of the person's own: neither their settings nor their keys."""
    here = str(Path(sys.executable).parent)
    return {"HOME": str(home), "PATH": f"{here}:{os.environ.get('PATH', os.defpath)}", "LANG": "C.UTF-8"}
