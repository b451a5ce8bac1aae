"""Whether a session survives every kind of failed summary, on every rung of the ladder, and what that costs.

A scripted agent takes 126 steps against the simulator in a window that overflows every dozen of them, while
every call for a summary fails in one way. Each row is a way to fail, each column the rung that is tried
first. A cell says how many steps were done, how many calls were wasted on summaries, and which rungs served
in the end. Every session is also closed and taken up again on the way: the breaker must outlive that.

    python bench/ladder.py              # the table; exit code 1 if a session died or wasted more than 3 calls
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

from sevenfold.core.errors import PromptTooLong, SevenfoldError
from sevenfold.core.events import Event, HistoryCompacted, PrefixBroken
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolResult
from sevenfold.core.models import Model
from sevenfold.core.requests import Dialect, ModelRequest, ModelResponse, RequestParams
from sevenfold.layers.compaction.policy import MODEL_STRATEGIES, CompactionStrategy
from sevenfold.layers.session_notes.structural_notes import StructuralNotes
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.provider import Capabilities, OnDelta
from sevenfold.session.session import Session
from sevenfold.testing import DropFault, Prompt, Simulator, SlowFault, StatusFault, StreamFault, say
from sevenfold.testing import Reply as Said

STEPS = 126
RESTART_EVERY = 21
MOST_WASTED = 3
RESULT_WORDS = 1_800
TARGET_TOKENS = 27_000

SYSTEM = "You mend parsers, one file at a time, and read every line twice. " * 40
# A tool that no layer clears, so that the view does fill up.
TOOL = JsonObject(
    {"name": "Lookup", "description": "Looks a word up.", "input_schema": JsonObject({"type": "object"})}
)
GOOD = f"<analysis>In order.</analysis><summary>{'The parser is being mended. ' * 8}</summary>"
Fault = StatusFault | StreamFault | DropFault | SlowFault
STREAMED = {"summary_max_tokens": 22_000}
"""Above what the SDK sends without streaming, so that there is a stream to break."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One way in which calls for summaries fail."""

    name: str
    fault: Fault | None = None
    """What the wire does."""
    said: Said | None = None
    """What the model says instead."""
    settings: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def block(self) -> Said | None:
        """The same where a compaction block was asked for: an answer without one. Its text has no form."""
        if self.said is None or self.name == "malformed":
            return None
        return Said((), self.said.stop_reason)


FAILURES = (
    Failure("none"),
    Failure(
        "too long, with figures",
        StatusFault(status=400, message="prompt is too long: 212000 tokens > 200000 maximum"),
    ),
    Failure("too long, without", StatusFault(status=400, message="prompt is too long")),
    Failure("429", StatusFault(status=429)),
    Failure("529", StatusFault(status=529)),
    Failure("500", StatusFault(status=500)),
    Failure("dropped stream", DropFault(4), settings=STREAMED),
    Failure("error in mid-stream", StreamFault(), settings=STREAMED),
    Failure("empty", said=Said()),
    Failure("malformed", said=say("Here is what happened so far: the parser is being mended.")),
    Failure("refusal", said=Said(say("I would rather not.").blocks, "refusal")),
    Failure("cut at max_tokens", said=Said(say("<summary>The parser is").blocks, "max_tokens")),
    Failure("tool call", said=say("I look first.", calls={"Lookup": {"word": "a"}})),
    Failure("timeout", SlowFault(timedelta(seconds=2)), settings={"summary_timeout_seconds": 1}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A session whose first rung is this one."""

    rung: CompactionStrategy
    model: str
    pct: float
    """Of the effective window: where compaction sets in, about 27,000 tokens in all of them."""
    notes: bool = False
    is_reactive: bool = False
    has_provider: bool = True
    has_structural: bool = True


STARTS = (
    Start(rung="notes", model="claude-sonnet-4-5", pct=15, notes=True),
    Start(rung="block", model="claude-opus-5-5", pct=2.75),
    Start(rung="summary", model="claude-sonnet-4-5", pct=15),
    Start(rung="trimmed", model="claude-sonnet-4-5", pct=15, is_reactive=True),
    Start(rung="structural", model="claude-sonnet-4-5", pct=15, has_provider=False),
    Start(rung="clip", model="claude-sonnet-4-5", pct=15, has_structural=False),
)


@dataclass(slots=True, kw_only=True)
class Run:
    """What became of a session."""

    steps: int = 0
    calls: int = 0
    """For summaries."""
    rungs: Counter[str] = field(default_factory=Counter[str])
    breaks: int = 0
    died: str = ""

    @property
    def wasted(self) -> int:
        """Calls that brought no summary."""
        return self.calls - sum(self.rungs[rung] for rung in MODEL_STRATEGIES)

    @property
    def is_fine(self) -> bool:
        return self.steps == STEPS and self.wasted <= MOST_WASTED and not self.breaks and not self.died

    def __str__(self) -> str:
        rungs = " ".join(f"{name}×{count}" for name, count in self.rungs.items())
        end = f" DIED: {self.died}" if self.died else ""
        return f"{self.steps} steps, {self.wasted} wasted: {rungs or 'nothing to do'}{end}"


class Saboteur:
    """The real provider; before each call for a summary it plants the fault."""

    def __init__(self, inner: AnthropicProvider, simulator: Simulator, failure: Failure, run: Run) -> None:
        self._inner, self._simulator, self._failure, self._run = inner, simulator, failure, run

    @property
    def dialect(self) -> Dialect:
        return self._inner.dialect

    def capabilities(self, model: Model) -> Capabilities:
        return self._inner.capabilities(model)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        if request.purpose == "summary":
            self._run.calls += 1
            if self._failure.fault is not None:
                self._simulator.fail(self._failure.fault)
        return await self._inner.send(request, on_delta)

    async def close(self) -> None:
        await self._inner.close()


@dataclass(slots=True, kw_only=True)
class Drive:
    """One session from its first step to its last."""

    simulator: Simulator
    failure: Failure
    start: Start
    home: Path
    run: Run = field(default_factory=Run)

    def hear(self, event: Event) -> None:
        if isinstance(event, HistoryCompacted):
            self.run.rungs[event.rung] += 1
        self.run.breaks += isinstance(event, PrefixBroken)

    def answer(self, prompt: Prompt) -> Said:
        if prompt.purpose == "summary":
            return self.failure.block or say("The parser is being mended, file by file.")
        if "<sevenfold-fork>" in prompt.last_text:
            return self.failure.said or say(GOOD)
        think = "Where is it?" if prompt.thinks else ""
        return say(f"Step {prompt.number}.", think=think, calls={"Lookup": {"word": f"{prompt.number}"}})

    async def go(self) -> Run:
        self.simulator.reset(self.answer)
        async with self.simulator.async_client(max_retries=0) as client:
            provider = Saboteur(AnthropicProvider(client), self.simulator, self.failure, self.run)
            try:
                session: str | None = None
                while self.run.steps < STEPS:
                    session = await self._live(provider, session)
            except SevenfoldError as error:
                self.run.died = f"{type(error).__name__}: {error}"
        return self.run

    async def _live(self, provider: Saboteur, session: str | None) -> str:
        """Open the session, new or again, and work until it is closed."""
        frame = RequestParams(model=self.start.model, max_tokens=4_000, system=SYSTEM, tools=(TOOL,))
        opened = await Session.open(
            frame,
            project=self.home / "project",
            session=session,
            provider=provider if self.start.has_provider else None,
            settings=self._settings(),
            emit=self.hear,
            environ={"SEVENFOLD_HOME": str(self.home / "home"), "HOME": str(self.home)},
        )
        async with opened:
            if session is None:
                opened.history.append(Message("user", "Mend the parser, and change no test."))
            for _ in range(min(RESTART_EVERY, STEPS - self.run.steps)):
                reply = await self._ask(opened, provider)
                await opened.record(reply)
                results = (
                    ToolResult(use.id, f"{self.run.steps} " + "word " * RESULT_WORDS)
                    for use in reply.tool_uses
                )
                opened.history.append(Message("user", tuple(results)))
                self.run.steps += 1
            return opened.id

    async def _ask(self, session: Session, provider: Saboteur) -> ModelResponse:
        view = await session.prepare()
        if not self.start.is_reactive or view.tokens <= TARGET_TOKENS:
            return await provider.send(view.request)
        shorter = await session.recover(PromptTooLong(tokens=view.tokens, limit=TARGET_TOKENS))
        if shorter is None:
            raise PromptTooLong(tokens=view.tokens, limit=TARGET_TOKENS)
        return await provider.send(shorter.request)

    def _settings(self) -> dict[str, dict[str, object]]:
        compact: dict[str, object] = {"auto_compact_pct": self.start.pct, **self.failure.settings}
        if self.start.is_reactive:
            compact["auto_compact_enabled"] = False
        return {
            "compact": compact,
            "notes": {"compaction_enabled": self.start.notes},
            # Cleared on the provider's side, the results would never fill the window.
            "server_edits": {"clear_results": "never"},
        }


def without_structural() -> AbstractContextManager[object]:
    """As if the structural notes had nothing to say, which does not happen by itself."""
    return patch.object(StructuralNotes, "render", return_value="")


def fill_row(failure: Failure, starts: Sequence[Start]) -> dict[str, Run]:
    """In a process of its own: rows have nothing to do with each other."""
    return asyncio.run(_fill_row(failure, starts))


async def _fill_row(failure: Failure, starts: Sequence[Start]) -> dict[str, Run]:
    row: dict[str, Run] = {}
    with Simulator() as simulator:
        for start in starts:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "project").mkdir()
                drive = Drive(simulator=simulator, failure=failure, start=start, home=Path(folder))
                with nullcontext() if start.has_structural else without_structural():
                    row[start.rung] = await drive.go()
        simulator.reset()
    return row


def fill_table(failures: Sequence[Failure], starts: Sequence[Start]) -> Iterator[tuple[str, dict[str, Run]]]:
    """The rows in order, each as soon as it and those before it are done."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        rows = pool.map(fill_row, failures, [starts] * len(failures))
        yield from zip((failure.name for failure in failures), rows, strict=True)


def show_row(failure: str, row: Mapping[str, Run]) -> None:
    print(failure)
    for rung, run in row.items():
        print(f"  {'ok ' if run.is_fine else 'BAD'} {rung:<10} {run}", flush=True)


def show_sum(runs: Sequence[Run]) -> None:
    worst = max(run.wasted for run in runs)
    print(f"{sum(run.is_fine for run in runs)} of {len(runs)} sessions finished as they should;")
    print(f"at most {worst} calls wasted in one (allowed: {MOST_WASTED}), with five restarts in each")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--failure", action="append", help="only this row, by its name; may be given again")
    parser.add_argument("--rung", action="append", help="only this column; may be given again")
    parser.add_argument("--json", action="store_true", help="the table as JSON")
    options = parser.parse_args()
    failures = [item for item in FAILURES if not options.failure or item.name in options.failure]
    starts = [item for item in STARTS if not options.rung or item.rung in options.rung]
    if not failures or not starts:
        names = ", ".join([item.name for item in FAILURES] + [item.rung for item in STARTS])
        parser.error(f"no such row or column; there are: {names}")
    table: dict[str, dict[str, Run]] = {}
    for name, row in fill_table(failures, starts):
        table[name] = row
        if not options.json:
            show_row(name, row)
    runs = [run for row in table.values() for run in row.values()]
    if options.json:
        plain = {
            failure: {
                rung: {"steps": run.steps, "wasted": run.wasted, "rungs": run.rungs, "died": run.died}
                for rung, run in row.items()
            }
            for failure, row in table.items()
        }
        print(json.dumps(plain, indent=1))
    else:
        show_sum(runs)
    return 0 if all(run.is_fine for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
