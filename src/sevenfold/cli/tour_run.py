"""One run of the tour: an agent in a scratch repository, for a day or two, and a simulator that bills it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from sevenfold.agent.agent import Agent
from sevenfold.agent.face.aside import count_running
from sevenfold.agent.seen import Seen
from sevenfold.agent.setup import Setup, open_agent
from sevenfold.cli.tour_morrow import DREAM, MORROW, Night, dream_and_undo
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

TOURIST = {"NAME": "Tour", "EMAIL": "tour@example.invalid"}
"""Who commits: whoever takes the tour has nothing to do with it."""

LONGEST_SECONDS = 60
"""That the tour waits for an agent which answers at once."""

Layers: TypeAlias = Mapping[str, Mapping[str, object]]

NIGHT = timedelta(hours=16)

WITH: Layers = {
    "agent": {"thinking": False},
    "dream": {"writer": "mechanical"},
}
"""As everybody has them: only thinking, which a script has none of, is off, and a dream asks no model."""
WITHOUT: Layers = {
    "agent": {"thinking": False},
    "tool_results": {"enabled": False},
    "microcompact": {"enabled": False},
    "notes": {"enabled": False},
    "compact": {"enabled": False},
    "memory": {"enabled": False},
    "extraction": {"enabled": False},
    "recall": {"enabled": False},
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

    async def show_dream(self, night: Night) -> None:
        """A dream is over, and taken back."""

    async def ask(self, _question: Question) -> Answer:
        """Everything happens in a scratch folder, so everything is allowed."""
        return Answer(True)


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the tour is played: what stays the same from one session to the next."""

    repository: Path
    environ: Mapping[str, str]
    layers: Layers
    guide: Guide
    simulator: Simulator
    clock: ManualClock = field(default_factory=ManualClock)

    def pass_time(self, pause: timedelta) -> None:
        self.clock.pass_time(pause)
        self.simulator.advance(pause)

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[Agent]:
        """A new session of the agent."""
        client = self.simulator.async_client()
        agent = await open_agent(
            Setup(
                self.repository,
                model=MODEL,
                mode="ask",
                ask=self.guide.ask,
                provider=AnthropicProvider(client),
                settings=self.layers,
                clock=self.clock,
                environ=self.environ,
            )
        )
        try:
            yield agent
        finally:
            await agent.close()
            await client.close()

    async def play(self, agent: Agent, scenes: Sequence[Scene], *, may_compact: bool = True) -> None:
        for scene in scenes:
            self.pass_time(timedelta(hours=scene.hours_before))
            await self.guide.open_scene(scene)
            if scene.compacts_before and may_compact:
                await agent.compact()
            await self.guide.start_turn(scene)
            end = await agent.run_turn(f"{scene.prompt}\n{scene.pasted}".strip(), self.guide.watch)
            if end.reason != "answered":
                raise SimulatorError(f"the tour's turn {scene.title!r} was {end.reason}: {end.error}")
            # The writers of a turn work beside the next one; here each is told where it belongs.
            await agent.settle()
            await self.guide.close_scene()


async def run_tour(folder: Path, layers: Layers, guide: Guide) -> Bill:
    """Play the first day in a folder of its own, with layers as they are set, and a second with all of them.

    The bill is that of the first day.
    """
    repository, home = folder / "shop", folder / "home"
    home.mkdir(parents=True)
    make_repository(repository)
    guide.enter(repository)
    is_whole = layers is WITH
    with Simulator(TourBrain((*SCENES, *(MORROW if is_whole else ())))) as simulator:
        stage = Stage(repository, tour_environ(home), layers, guide, simulator)
        async with stage.session() as agent:
            await stage.play(agent, SCENES, may_compact=is_whole)
            await _hear_out(agent, guide)
        bill = _bill(simulator.ledger)
        if is_whole:
            stage.pass_time(NIGHT)
            async with stage.session() as agent:
                await stage.play(agent, MORROW)
                await guide.open_scene(DREAM)
                await guide.show_dream(await dream_and_undo(agent, repository, stage.environ, stage.clock))
        return bill


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


def tour_environ(home: Path) -> dict[str, str]:
    """Nothing of the person's own: neither their settings nor their keys."""
    here = str(Path(sys.executable).parent)
    path = f"{here}:{os.environ.get('PATH', os.defpath)}"
    who = {f"GIT_{role}_{what}": TOURIST[what] for role in ("AUTHOR", "COMMITTER") for what in TOURIST}
    # The tour's model knows its own part, and not which memories a prompt is about.
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "SEVENFOLD_RECALL_SIDE_QUERY": "off", **who}
