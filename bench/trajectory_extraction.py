"""What extraction costs of a scripted session: `python bench/trajectory.py --extraction`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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

from sevenfold.agent.opening.background_work import make_look_request
from sevenfold.agent.tools.memory import MEMORY_TOOL_SPEC
from sevenfold.core.events import Emit, Event, ExtractionSkipped
from sevenfold.core.messages import ToolResult, ToolUse
from sevenfold.core.requests import RequestParams
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner, is_prefix_warm, run_fork
from sevenfold.layers.memory.extraction.drafts import RecordedMessage
from sevenfold.layers.memory.extraction.policy import ExtractionSpend, add_extraction_spend
from sevenfold.layers.memory.extraction.settings import ExtractionSettings
from sevenfold.layers.memory.extraction.writer import ExtractionPlaces, ExtractionWriter, ForkTools
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.provider import Provider
from sevenfold.session import Session
from sevenfold.simulator.simulator_state import VirtualClock
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.testing import Simulator


@dataclass(frozen=True, slots=True, kw_only=True)
class LookPlaces:
    """Where extraction of a scripted session works."""

    session: Session
    provider: Provider
    player: Player
    home: str
    names: tuple[str, ...]
    emit: Emit


def make_extraction_writer(at: LookPlaces) -> ExtractionWriter:
    """With default settings, as an agent has it."""
    session = at.session

    async def look(brief: ForkBrief, run_tool: ToolRunner, new: Sequence[RecordedMessage]) -> ForkResult:
        if is_prefix_warm(session.parent, at.player.idle):
            return await session.run_fork(brief, run_tool=run_tool)
        aside = make_look_request(session.parent.frame, new)
        return await run_fork(aside, brief, at.provider, run_tool=run_tool)

    async def read(use: ToolUse) -> ToolResult:
        return ToolResult(use.id, "not read here", is_error=True)

    def measure_spend() -> ExtractionSpend | None:
        return add_extraction_spend({one.who: one.cost for one in session.spent})

    memory = MemoryDir.for_project(at.home, environ={"HOME": at.home})
    places = ExtractionPlaces(session=session.id, memory=memory, folder=str(memory.path))
    tools = ForkTools(at.names, look, read, measure_spend)
    return ExtractionWriter(places, ExtractionSettings(), tools, emit=at.emit)


RULES = (
    "From now on keep public signatures as they are.",
    "Never add a dependency without asking me first.",
    "I prefer small functions with early returns.",
    "In this project, tests go next to the file they cover.",
    "Please always use pathlib instead of os.path.",
    "We never catch bare exceptions in library code.",
)
"""What the user says at the end of each prompt where every turn teaches something."""
_UNSAID = "In turn {} the user wanted the names of fixtures to stay as they are."
"""No words of the user's: such a draft goes back to the fork."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionCost:
    calls: int
    deferred: int
    """Turns that were put off."""
    written: int
    usd: float
    session_usd: float


def teach(trajectory: Trajectory) -> Trajectory:
    """The same session with a rule in each prompt."""
    prompts = [f"{prompt} {RULES[at % len(RULES)]}" for at, prompt in enumerate(trajectory.prompts)]
    return replace(trajectory, prompts=tuple(prompts))


def run_extraction(trajectory: Trajectory, model: str, writes: Mapping[int, str]) -> ExtractionCost:
    """What extraction costs of a session whose forks write these memories, by turn."""
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
                places = LookPlaces(
                    session=session,
                    provider=provider,
                    player=player,
                    home=home,
                    names=names,
                    emit=told.append,
                )
                await play(session, provider, player, make_extraction_writer(places))
        with MemoryDir.for_project(home, environ={"HOME": home}) as memory:
            written.extend(stored.memory.key for stored in memory.scan(None))

    written, told = list[str](), list[Event]()
    with Simulator(player, clock=clock) as sim, tempfile.TemporaryDirectory() as home:
        asyncio.run(run(home))
        entries = [one for one in sim.ledger.entries if one.status == 200 and one.endpoint == "messages"]
    usd = [
        (READ_USD * one.usage.read + WRITE_USD * one.usage.written + FRESH_USD * one.usage.fresh) / 1_000_000
        for one in entries
    ]
    spent = sum(usd[at] for at in player.forks)
    deferred = sum(isinstance(event, ExtractionSkipped) for event in told)
    return ExtractionCost(
        calls=len(player.forks), deferred=deferred, written=len(written), usd=spent, session_usd=sum(usd)
    )


MAX_EXTRACTION_SHARE = 0.05
"""Where nothing is taught, where something is after every turn, and where every draft has to be corrected,
which takes a second answer."""


def tell_extraction(trajectory: Trajectory, seed: int) -> bool:
    """Print the share; whether it is small enough."""
    turns = range(len(trajectory.prompts))
    own = {turn: RULES[turn % len(RULES)] for turn in turns}
    unsaid = {turn: _UNSAID.format(turn) for turn in turns}
    is_small = True
    for name, model in (("unsigned", UNSIGNED), ("signed", SIGNED)):
        for label, played, writes in (
            ("nothing to keep", trajectory, {}),
            ("a rule a turn", teach(trajectory), own),
            ("all corrected", trajectory, unsaid),
        ):
            found = run_extraction(played, model, writes)
            share = found.usd / found.session_usd
            is_right = found.calls > 0 and (writes is not own or found.written == len(own))
            is_small = is_small and is_right and share <= MAX_EXTRACTION_SHARE
            print(
                f"{seed:>4}  {name:9} {label:16} {found.calls:>3} calls  {found.deferred} put off  "
                f"{found.written} written  "
                f"${found.usd:.3f} of ${found.session_usd:.2f}  {share:.1%}",
                flush=True,
            )
    return is_small
