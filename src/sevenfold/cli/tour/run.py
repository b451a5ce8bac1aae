"""One run of the tour: an agent in a temporary repository, and a simulator that bills it.

On the first day it plays the steps of `script`. The second day shows a session that remembers, a rule shown
in time, a dream and its undo.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.turn import TurnEvent
from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.agent.tui.background_view import count_running
from sevenfold.cli.tour.script import (
    TEST_COMMAND,
    TOUR_STEPS,
    TourBrain,
    TourStep,
    reply_with_calls,
    shell_call,
    write_sample_repository,
)
from sevenfold.core.clock import Clock, ManualClock
from sevenfold.core.errors import SimulatorError
from sevenfold.core.memories import Origin, write_memory
from sevenfold.core.prices import Cost, sum_costs
from sevenfold.core.usage import Usage, sum_usage
from sevenfold.layers.dreams.dreamer import DreamResult
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.simulator.brain import say
from sevenfold.simulator.ledger import BillingLedger
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.testing import Simulator

# The second day.

COMMIT_COMMAND = "git commit -qam 'Round half a cent up'"

SECOND_DAY_STEPS = (
    TourStep(
        title="Day two: what the agent learned",
        narration="The next morning, in a new session that has read nothing yet. The memory that a "
        "prompt is about is added to the prompt.",
        prompt="What did I say about tests before a commit?",
        replies=(say("Always run them first: a red build cost you a day."),),
    ),
    TourStep(
        title="A rule is applied",
        narration="The prompt does not mention tests. The memory says that it applies before a commit, so "
        "the call waits until the model has read it.",
        prompt="Commit the fix.",
        replies=(
            reply_with_calls("", shell_call(COMMIT_COMMAND, "commit the fix")),
            reply_with_calls(
                "The memory says to run the tests first.", shell_call(TEST_COMMAND, "run the tests")
            ),
            reply_with_calls("The tests pass, so I commit.", shell_call(COMMIT_COMMAND, "commit the fix")),
            say("Committed, and the tests ran first."),
        ),
    ),
)

DREAM_STEP = TourStep(
    title="A dream",
    narration='Somebody noted the same fact twice, under two names, and wrote "tomorrow" in a third '
    "note. A dream cleans that up in a copy, checks that no fact is lost, and publishes one change.",
    prompt="",
    replies=(),
)


@dataclass(frozen=True, slots=True)
class SampleMemory:
    """A memory that a person added by hand."""

    name: str
    description: str
    body: str


SAMPLE_MEMORIES = (
    SampleMemory(
        "deploy-days", "When the shop is deployed", "The shop is deployed on Tuesdays and Thursdays."
    ),
    SampleMemory(
        "deploys", "On which days the shop is deployed", "The shop is deployed on Tuesdays and Thursdays."
    ),
    SampleMemory("freeze", "When nothing may be merged", "The freeze starts tomorrow: the rates change."),
)


@dataclass(frozen=True, slots=True)
class DreamDemo:
    """A dream, and what became of it."""

    dreamt: DreamResult
    restored: int
    """Memories that are again what they were, byte for byte."""


async def dream_and_undo(
    agent: Agent, repository: Path, environ: Mapping[str, str], clock: Clock
) -> DreamDemo:
    """Have notes put in order by a dream, and take that back."""
    with MemoryDir.for_project(repository, environ=environ, clock=clock) as memory:
        texts = [
            (f"{note.name}.md", write_memory(note.name, note.description, "project", note.body))
            for note in SAMPLE_MEMORIES
        ]
        memory.commit(
            [Write(key, text, None) for key, text in texts], Origin(who="user", why="added by hand")
        )
        before = _texts(memory)
        if agent.dream is None:
            raise SimulatorError("the tour's agent cannot dream")
        dreamt = await agent.dream(_ignore_step)
        if _texts(memory) == before:
            raise SimulatorError(f"the tour's dream changed nothing: {dreamt.record.outcome}")
        memory.revert(dreamt.record.transaction, "the tour takes it back")
        after = _texts(memory)
        return DreamDemo(dreamt, sum(after.get(key) == text for key, text in before.items()))


def _texts(memory: MemoryDir) -> dict[str, str]:
    return {stored.memory.key: stored.memory.text for stored in memory.scan()}


def _ignore_step(_step: str) -> None:
    """The diff says it all."""


TOUR_MODEL = "claude-opus-5"

COMMIT_IDENTITY = {"NAME": "Tour", "EMAIL": "tour@example.invalid"}
"""Who commits: whoever takes the tour has nothing to do with it."""

_LONGEST_SECONDS = 60
"""That the tour waits for an agent which answers at once."""

LayerSettings: TypeAlias = Mapping[str, Mapping[str, object]]

NIGHT_LENGTH = timedelta(hours=16)

ALL_LAYERS_SETTINGS: LayerSettings = {
    "agent": {"thinking": False},
    "dream": {"writer": "mechanical"},
}
"""As everybody has them: only thinking, which a script has none of, is off, and a dream asks no model."""
NO_LAYERS_SETTINGS: LayerSettings = {
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
class TourBill:
    """What a run cost, as the simulator billed it."""

    requests: int
    usage: Usage
    cost: Cost | None
    uncached: Cost | None
    """The same requests with every prompt token fresh."""


class TourGuide:
    """Leads through a run; this one says nothing."""

    @property
    def is_over(self) -> bool:
        """Whether no further part is wanted."""
        return False

    def watch(self, seen: TurnEvent) -> None:
        """While a turn runs, and what it set off after it."""

    def enter(self, repository: Path) -> None:
        """Where everything happens."""

    async def open_step(self, step: TourStep) -> None:
        """Before anything of it happens."""

    async def start_turn(self, step: TourStep) -> None:
        """The person types."""

    async def close_step(self) -> None:
        """The model has answered."""

    async def show_bill_so_far(self, step: TourStep, bill: TourBill) -> None:
        """A part of the first day is over, and billed."""

    async def show_dream(self, night: DreamDemo) -> None:
        """A dream is over, and taken back."""

    async def ask(self, _question: PermissionRequest) -> PermissionResponse:
        """Everything happens in a scratch folder, so everything is allowed."""
        return PermissionResponse(True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TourStage:
    """Where the tour is played: what stays the same from one session to the next."""

    repository: Path
    environ: Mapping[str, str]
    layers: LayerSettings
    guide: TourGuide
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
            AgentOptions(
                project=self.repository,
                model=TOUR_MODEL,
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

    async def play(self, agent: Agent, steps: Sequence[TourStep], *, may_compact: bool = True) -> None:
        for step in steps:
            if self.guide.is_over:
                return
            self.pass_time(timedelta(hours=step.hours_before))
            await self.guide.open_step(step)
            if step.compacts_before and may_compact:
                await agent.compact()
            await self.guide.start_turn(step)
            end = await agent.run_turn(f"{step.prompt}\n{step.pasted}".strip(), self.guide.watch)
            if end.reason != "answered":
                if end.reason == "interrupted":
                    raise KeyboardInterrupt
                raise SimulatorError(f"the tour's turn {step.title!r} was {end.reason}: {end.error}")
            # The writers of a turn work beside the next one; here each is told where it belongs.
            await agent.settle()
            await self.guide.close_step()
            await self.guide.show_bill_so_far(step, _bill(self.simulator.ledger))


async def play_tour(folder: Path, layers: LayerSettings, guide: TourGuide) -> TourBill:
    """Play the first day in a folder of its own, with layers as they are set, and a second with all of them.

    The bill is that of the first day.
    """
    repository, home = folder / "shop", folder / "home"
    home.mkdir(parents=True)
    write_sample_repository(repository)
    guide.enter(repository)
    is_whole = layers is ALL_LAYERS_SETTINGS
    with Simulator(TourBrain((*TOUR_STEPS, *(SECOND_DAY_STEPS if is_whole else ())))) as simulator:
        stage = TourStage(
            repository=repository,
            environ=build_tour_environ(home),
            layers=layers,
            guide=guide,
            simulator=simulator,
        )
        async with stage.session() as agent:
            await stage.play(agent, TOUR_STEPS, may_compact=is_whole)
            if not guide.is_over:
                await _finish_background(agent, guide)
        bill = _bill(simulator.ledger)
        if is_whole and not guide.is_over:
            stage.pass_time(NIGHT_LENGTH)
            async with stage.session() as agent:
                await stage.play(agent, SECOND_DAY_STEPS)
                if guide.is_over:
                    return bill
                await guide.open_step(DREAM_STEP)
                await guide.show_dream(await dream_and_undo(agent, repository, stage.environ, stage.clock))
        return bill


class BaselineRun(TourGuide):
    """The first day with the layers off, played unseen on a thread of its own, and its bill part by part."""

    def __init__(self) -> None:
        self._bills: dict[str, TourBill] = {}
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._is_stopped = self._is_done = False
        self._total: TourBill | None = None

    @property
    def is_over(self) -> bool:
        return self._is_stopped

    @contextmanager
    def playing(self, folder: Path) -> Generator[None]:
        thread = threading.Thread(target=self._play, args=(folder,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_stopped = True
            thread.join()

    def _play(self, folder: Path) -> None:
        try:
            self._total = asyncio.run(play_tour(folder, NO_LAYERS_SETTINGS, self))
        except BaseException as error:
            self._error = error
        with self._changed:
            self._is_done = True
            self._changed.notify_all()

    async def show_bill_so_far(self, step: TourStep, bill: TourBill) -> None:
        with self._changed:
            self._bills[step.title] = bill
            self._changed.notify_all()

    def wait_for_bill(self, step: TourStep | None = None) -> TourBill:
        """What the day had cost when that part was over; without one, the whole day."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_done or (step is not None and step.title in self._bills), _LONGEST_SECONDS
            )
            found = self._total if step is None else self._bills.get(step.title)
        if found is None:
            raise SimulatorError("the tour's run with the layers off did not finish") from self._error
        return found


async def _finish_background(agent: Agent, guide: TourGuide) -> None:
    """Answer what agents in the background have to say, until none is at work."""
    while agent.inbox or count_running(agent):
        async with asyncio.timeout(_LONGEST_SECONDS):
            await agent.inbox.wait()
        await agent.run_turn(None, guide.watch)
        await guide.close_step()


def _bill(ledger: BillingLedger) -> TourBill:
    billed = ledger.billed
    return TourBill(
        len(billed),
        sum_usage(entry.usage for entry in billed),
        ledger.total_cost(),
        sum_costs(entry.cost_without_caching for entry in billed),
    )


def build_tour_environ(home: Path) -> dict[str, str]:
    """Nothing of the person's own: neither their settings nor their keys."""
    here = str(Path(sys.executable).parent)
    path = f"{here}:{os.environ.get('PATH', os.defpath)}"
    who = {
        f"GIT_{role}_{what}": COMMIT_IDENTITY[what]
        for role in ("AUTHOR", "COMMITTER")
        for what in COMMIT_IDENTITY
    }
    # The tour's model knows its own part, and not which memories a prompt is about.
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "SEVENFOLD_RECALL_SIDE_QUERY": "off", **who}
