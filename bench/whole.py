"""What a whole session does: one long scripted session a model family, with default settings and every layer.

    python bench/whole.py                                # exit code 1 if a bar is missed
    python bench/whole.py --tasks 8 --family signed --json
    python bench/whole.py --family unsigned --memories 300 --side-query off    # what the side query costs

The agent is opened as `sevenfold chat` opens it: it finds its provider in the environment and speaks HTTP to
the simulator. Families: Claude without signed thinking, Claude with it, and OpenAI. Each task greps, reads,
edits and answers; some fetch a long log with a tool of the caller's own, some teach something that a later
task asks for. The script reads a file again when the lines that it is about to edit are no longer in view.
Between tasks time passes, up to a day, and twice the agent is closed and the session resumed. After three
quarters of the tasks the view is compacted by hand; at the end memories are consolidated.

Two settings differ from the defaults, so that the layers do the same in every run: recall may take its time,
and the clock is the script's. Ids and the name of the folder are the same in every run too: an id that is a
token longer can move a cut by a round.

Printed for each family: what each layer did, the cost by whose calls they were, the share of prompts that was
read from the cache, and for each cut how much of the history the notes covered and how much of what was used
later was in view by then, read again or not. The same session with layers 1 to 5 off is run beside it: the
difference is what they saved. Bars: no unannounced break of the prefix, no refused request, notes that cover
95% of the history at each compaction, and no session dearer than without layers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from pathlib import Path
from unittest.mock import patch

from recall_fresh import read_fresh_directories
from whole_script import BuildLog, ScriptedModel, make_project, say_task

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.turn import RoundEnded, TurnEvent
from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.agent.permissions.guard import PermissionRequest, PermissionResponse
from sevenfold.cli.inspect.stats_facts import read_project_facts
from sevenfold.core.cache.prompt_blocks import PromptLevel
from sevenfold.core.clock import ManualClock
from sevenfold.core.events import (
    CacheMissed,
    DreamEnded,
    Event,
    ExtractionEnded,
    HistoryCompacted,
    HistoryRepaired,
    MemoryRecalled,
    NotesUpdated,
    PrefixBroken,
    ResultsCleared,
    ResultSpilled,
)
from sevenfold.core.json import JsonObject, read_object, write_json
from sevenfold.core.models import Model
from sevenfold.core.usage import Usage
from sevenfold.layers.session_notes.notes_file import NotesFile, read_notes_record
from sevenfold.layers.tool_results.policy import ToolResultSettings
from sevenfold.session.opening import Workspace, WorkspaceOptions
from sevenfold.simulator.simulator_state import estimate_tokens
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.testing import Simulator

TASKS = 24
FAMILIES = {"unsigned": "claude-opus-4-5", "signed": "claude-opus-5-5", "openai": "gpt-5.6"}
LAYERLESS: Mapping[str, Mapping[str, object]] = {
    "tool_results": {"enabled": False},
    "microcompact": {"enabled": False},
    "server_edits": {"clear_results": "never"},
    "notes": {"enabled": False},
    "extraction": {"enabled": False},
    "recall": {"enabled": False},
}
PATIENT: Mapping[str, object] = {"budget_ms": 60_000, "vectors": False}
ROUND_SECONDS = 20
PAUSES = {3: timedelta(minutes=3), 6: timedelta(minutes=40), 10: timedelta(hours=3), 14: timedelta(hours=26)}
"""After these tasks somebody is away."""
_RANDOM = re.compile(r"[0-9a-f]{8,}|(?<=toolu_)\w+|(?<=call_)\w+")
RELATIVE_PRICES = {"fresh": 1.0, "read": 0.1, "written_5m": 1.25, "written_1h": 2.0, "output": 5.0}
"""Of a token, with a fresh one as the unit: comparable between families, also where no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One cut, the notes at that moment, and what became of what it took."""

    layer: int
    reason: str
    covered: float
    """Of the messages of the history, those that the notes cover."""
    in_view: float | None
    """Of what was used later and shown before, what was still in view; None: nothing was used."""
    used: int


@dataclass(slots=True, kw_only=True)
class WholeRun:
    """What one session did and cost."""

    family: str
    model: str
    turns: int = 0
    rounds: int = 0
    restarts: int = 0
    reread: int = 0
    refused: int = 0
    failed_turns: list[str] = field(default_factory=list[str])
    spilled: int = 0
    spilled_bytes: int = 0
    clearings: int = 0
    cleared_results: int = 0
    cleared_tokens: int = 0
    notes_updates: int = 0
    compactions: list[str] = field(default_factory=list[str])
    memories_written: int = 0
    memories_recalled: int = 0
    dream: str = ""
    forks: dict[str, int] = field(default_factory=dict[str, int])
    cuts: list[Cut] = field(default_factory=list[Cut])
    prefix_breaks: int = 0
    cache_misses: list[str] = field(default_factory=list[str])
    repairs: int = 0
    read_share: float = 0.0
    usd: dict[str, float] = field(default_factory=dict[str, float])
    units: float = 0.0
    """Everything that was billed, in fresh tokens."""
    units_without_layers: float = 0.0

    @property
    def saved(self) -> float:
        return 1 - self.units / self.units_without_layers if self.units_without_layers else 0.0

    def missed(self) -> list[str]:
        """Which bars it misses, each in a line."""
        notes = [cut.covered for cut in self.cuts if cut.layer == 4]
        bars = {
            f"{self.prefix_breaks} unannounced breaks of the prefix": self.prefix_breaks == 0,
            f"{self.refused} refused requests": self.refused == 0,
            f"turns that did not end well: {self.failed_turns}": not self.failed_turns,
            f"notes covered {min(notes, default=1.0):.1%} at a compaction": min(notes, default=1.0) >= 0.95,
            f"{-self.saved:.1%} dearer than without layers": self.saved >= 0,
        }
        return [f"{self.family}: {told}" for told, is_kept in bars.items() if not is_kept]


@dataclass(slots=True, kw_only=True)
class WholeSession:
    """One session from its first task to its last."""

    found: WholeRun
    tasks: int
    place: Path
    simulator: Simulator
    settings: Mapping[str, Mapping[str, object]]
    memories: int = 0
    """That the project has before."""
    clock: ManualClock = field(default_factory=ManualClock)
    coverage: list[float] = field(default_factory=list[float])
    agent: Agent | None = None

    @property
    def project(self) -> Path:
        return self.place / "project"

    @property
    def environ(self) -> dict[str, str]:
        url, is_openai = self.simulator.url, self.found.family == "openai"
        own = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{url}/v1"}
        return {"HOME": str(self.place), **(own if is_openai else anthropic_variables(url))}

    def hear(self, event: Event) -> None:
        found = self.found
        match event:
            case ResultSpilled() if event.size_bytes > ToolResultSettings().limit_chars:
                found.spilled, found.spilled_bytes = found.spilled + 1, found.spilled_bytes + event.size_bytes
            case ResultsCleared():
                found.clearings += 1
                found.cleared_results += event.results
                found.cleared_tokens += event.tokens
            case NotesUpdated():
                found.notes_updates += 1
            case HistoryCompacted():
                sizes = f"{event.tokens_before:,} to {event.tokens_after:,} tokens, {event.calls} calls"
                found.compactions.append(f"{event.trigger} by {event.rung}: {sizes}")
                self.coverage.append(self._covered())
            case _:
                self._hear_more(event)

    def _hear_more(self, event: Event) -> None:
        found = self.found
        match event:
            case ExtractionEnded():
                found.memories_written += event.written
            case MemoryRecalled():
                found.memories_recalled += 1
            case DreamEnded():
                found.dream = event.outcome
            case PrefixBroken():
                found.prefix_breaks += 1
            case CacheMissed():
                found.cache_misses.append(f"{event.who}: {event.cause}")
            case HistoryRepaired():
                found.repairs += 1
            case _:
                pass

    def _covered(self) -> float:
        """Of the history's messages, those that the notes cover at this moment."""
        if self.agent is None:
            return 0.0
        with Folder.open(self._session_folder()) as folder:
            text = NotesFile(folder).read()
            covered = read_notes_record(folder).covered_by(text) if text else 0
        return round(covered / max(1, len(self.agent.session.history)), 4)

    def _session_folder(self) -> Path:
        assert self.agent is not None
        return next(self.place.glob(f".sevenfold/projects/*/sessions/{self.agent.session.id}"))

    def watch(self, seen: TurnEvent) -> None:
        if isinstance(seen, RoundEnded):
            self.pass_time(timedelta(seconds=ROUND_SECONDS))

    def pass_time(self, elapsed: timedelta) -> None:
        self.clock.pass_time(elapsed)
        self.simulator.advance(elapsed)

    async def open(self, session: str | None = None) -> Agent:
        options = AgentOptions(
            project=self.project,
            model=self.found.model,
            session=session,
            ask=agree,
            also=[BuildLog()],
            settings=self.settings,
            clock=self.clock,
            environ=self.environ,
            emit=self.hear,
        )
        self.agent = await open_agent(options)
        return self.agent

    async def run(self) -> None:
        make_project(self.project)
        self.add_memories()
        agent = await self.open()
        for task in range(1, self.tasks + 1):
            end = await agent.run_turn(say_task(task), self.watch)
            await agent.settle()
            self.found.turns, self.found.rounds = self.found.turns + 1, self.found.rounds + end.rounds
            if end.reason != "answered":
                self.found.failed_turns.append(f"{task}: {end.reason} {end.error or ''}")
            self.pass_time(PAUSES.get(task, timedelta(minutes=1)))
            if task == self.tasks * 3 // 4:
                await agent.compact()
            if task in (self.tasks // 3, self.tasks * 2 // 3):
                self.found.restarts += 1
                self._add_usage(agent)
                await agent.close()
                agent = await self.open(agent.session.id)
        if agent.dream is not None and not self.settings.get("extraction"):
            await agent.dream(lambda _: None)
        self._add_usage(agent)
        await agent.close()

    def add_memories(self) -> None:
        kept = [one for found in read_fresh_directories() for one in found["memories"]][: self.memories]
        if not kept:
            return
        with MemoryDir.for_project(self.project, environ=self.environ) as memory:
            for one in kept:
                memory.add(one["key"], one["body"], description=one["description"])

    def _add_usage(self, agent: Agent) -> None:
        for spent in agent.session.spent:
            if spent.cost is not None:
                usd = self.found.usd.get(spent.who, 0.0) + float(spent.cost.total)
                self.found.usd[spent.who] = round(usd, 4)
            if spent.who != "main":
                self.found.forks[spent.who] = self.found.forks.get(spent.who, 0) + spent.calls

    def finish(self) -> None:
        entries = [entry for entry in self.simulator.ledger.entries if entry.endpoint != "count_tokens"]
        self.found.refused = sum(entry.status >= 400 for entry in entries)
        used = [entry.usage for entry in entries]
        self.found.units = round(sum(map(weigh_usage, used)), 1)
        prompts = sum(usage.read + usage.written + usage.fresh for usage in used)
        self.found.read_share = round(sum(usage.read for usage in used) / max(1, prompts), 4)
        options = WorkspaceOptions(project=self.project, environ=self.environ, settings=self.settings)
        with Workspace.open(options) as workspace:
            facts = read_project_facts(workspace, date(2026, 1, 1), with_fidelity=True)
        coverage = iter(self.coverage)
        for cut in (cut for session in facts.sessions for cut in session.fidelity):
            covered = next(coverage, 0.0) if cut.layer == 4 else 0.0
            share = round(cut.in_view / cut.used, 4) if cut.used else None
            self.found.cuts.append(
                Cut(layer=cut.layer, reason=cut.reason, covered=covered, in_view=share, used=cut.used)
            )


def anthropic_variables(url: str) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}


def weigh_usage(usage: Usage) -> float:
    return sum(price * getattr(usage, name) for name, price in RELATIVE_PRICES.items())


async def agree(_asked: PermissionRequest) -> PermissionResponse:
    return PermissionResponse(True)


def count_tokens(model: Model, level: PromptLevel, block: JsonObject) -> int:
    """As the simulator does, with random ids counted alike."""
    text = _RANDOM.sub(lambda found: "0" * len(found[0]), write_json(block).decode())
    return estimate_tokens(model, level, read_object(text.encode()))


@contextmanager
def open_folder() -> Generator[Path]:
    """A folder of this run alone, with the same name as in the run before."""
    for number in range(1000):
        place = Path(tempfile.gettempdir()) / f"whole-{number:03}"
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            continue
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return
    raise SystemExit(f"no free name in {tempfile.gettempdir()}: remove its folders whole-000 to whole-999")


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """What memory a session begins with, and whether a cheap model is asked what of it is meant."""

    memories: int = 0
    side_query: str = "auto"


def run_family(family: str, tasks: int, part: MemoryPart, *, has_layers: bool) -> WholeRun:
    found = WholeRun(family=family, model=FAMILIES[family])
    patient = {"recall": {**PATIENT, "side_query": part.side_query}}
    settings: dict[str, Mapping[str, object]] = {**patient} if has_layers else dict(LAYERLESS)
    with open_folder() as folder, patch.object(os, "urandom", random.Random(7).randbytes):
        model = ScriptedModel(folder / "project")
        with Simulator(model, tokenizer=count_tokens) as simulator:
            session = WholeSession(
                found=found, tasks=tasks, place=folder, simulator=simulator, settings=settings
            )
            session.memories = part.memories
            asyncio.run(session.run())
            session.finish()
        found.reread = model.reread
    return found


def measure_family(family: str, tasks: int, part: MemoryPart) -> WholeRun:
    found = run_family(family, tasks, part, has_layers=True)
    found.units_without_layers = run_family(family, tasks, part, has_layers=False).units
    return found


def show(found: WholeRun) -> str:
    dollars = ", ".join(f"{who} {usd:.4f}" for who, usd in sorted(found.usd.items()))
    lines = [
        f"{found.family}: {found.model}, {found.turns} turns, {found.rounds} rounds, "
        f"{found.restarts} restarts",
        f"  layer 1  {found.spilled} results stored, {found.spilled_bytes:,} bytes",
        f"  layer 2  {found.clearings} clearings, {found.cleared_results} results, "
        f"{found.cleared_tokens:,} tokens; {found.reread} files read again",
        f"  layer 3  {found.notes_updates} updates of the notes",
        *(f"  layer 4  {told}" for told in found.compactions),
        f"  layer 5  {found.memories_written} memories written, {found.memories_recalled} recalled",
        f"  layer 6  {found.dream or 'no dream'}",
        f"  layer 7  {', '.join(f'{who} {calls}' for who, calls in sorted(found.forks.items()))}",
        f"  cache    {found.read_share:.1%} of all prompts read; {found.prefix_breaks} unannounced breaks; "
        f"{len(found.cache_misses)} misses ({', '.join(sorted(set(found.cache_misses))) or 'none'})",
        f"  cost     worth {found.units:,.0f} fresh tokens; "
        f"without layers {found.units_without_layers:,.0f}: {found.saved:.1%} saved",
        f"  dollars  {dollars or 'the catalog has no price'}",
    ]
    shares = [cut.in_view for cut in found.cuts if cut.layer == 2 and cut.in_view is not None]
    if shares:
        lines.append(
            f"  cuts     of layer 2: {len(shares)}, at least {min(shares):.1%} in view when used later"
        )
    for cut in (cut for cut in found.cuts if cut.layer == 4):
        kept = (
            "nothing used later" if cut.in_view is None else f"{cut.in_view:.1%} of {cut.used} uses in view"
        )
        lines.append(f"  cut      {cut.reason}: notes cover {cut.covered:.1%}, {kept}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="what a whole session does with every layer on")
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--family", choices=tuple(FAMILIES), action="append")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--memories", type=int, default=0, help="that the project has before")
    parser.add_argument("--side-query", choices=("auto", "on", "off"), default="auto")
    options = parser.parse_args(arguments)
    part = MemoryPart(options.memories, options.side_query)
    found = [measure_family(family, options.tasks, part) for family in options.family or FAMILIES]
    if options.json:
        told = {run.family: {**asdict(run), "saved": round(run.saved, 4)} for run in found}
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        sys.stdout.write("\n\n".join(map(show, found)) + "\n")
    missed = [told for run in found for told in run.missed()]
    for told in missed:
        sys.stderr.write(f"missed: {told}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
