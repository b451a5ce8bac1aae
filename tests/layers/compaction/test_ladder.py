"""A session of 66 steps finishes whatever becomes of its summaries, and wastes three calls at most.

`bench/ladder.py` shows the same with 126 steps, over HTTP and against the simulator.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest

from sevenfold.core.errors import (
    Overloaded,
    PromptTooLong,
    ProviderRefused,
    ProviderUnreachable,
    RateLimited,
    ReplyBroken,
    SignInRefused,
)
from sevenfold.core.events import BreakerOpened, Event, HistoryCompacted, PrefixBroken
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, ToolResult
from sevenfold.core.requests import ModelRequest, ModelResponse, RequestParams
from sevenfold.layers.compaction.policy import CompactionStrategy
from sevenfold.layers.session_notes.structural_notes import StructuralNotes
from sevenfold.providers.scripted import ScriptedProvider, make_response
from sevenfold.session.session import Session

pytestmark = pytest.mark.moves_prefix(
    reason="each summary is about another view than the one before it; views are compared by PrefixBroken"
)

STEPS = 66
"""Six compactions: twice as many as may fail before no model is asked any more."""
TARGET_TOKENS = 27_000
WORDS = "word " * 1_800
# A tool that no layer clears, so that the view does fill up.
TOOL = JsonObject({"name": "Lookup", "input_schema": JsonObject({"type": "object"})})
GOOD = f"<summary>{'The parser is being mended. ' * 8}</summary>"
OLDER, NEWER = "claude-sonnet-4-5", "claude-opus-5-5"

FAILURES: Mapping[str, ModelResponse | str | Exception] = {
    "too long, with figures": PromptTooLong(tokens=212_000, limit=200_000),
    "too long, without": PromptTooLong(),
    "429": RateLimited(),
    "529": Overloaded("busy", status=529),
    "500": Overloaded("failed", status=500),
    "400": ProviderRefused("no such field"),
    "401": SignInRefused("no key"),
    "unreachable": ProviderUnreachable("no connection"),
    "dropped stream": ReplyBroken("the connection closed"),
    "error in mid-stream": ReplyBroken("overloaded in mid-answer"),
    "empty": "",
    "malformed": "Here is what happened: the parser is being mended.",
    "refusal": make_response("I would rather not.", stop_reason="refusal"),
    "cut at max_tokens": make_response(f"<summary>{GOOD}", stop_reason="max_tokens"),
    "window full": make_response("<summary>", stop_reason="model_context_window_exceeded"),
    "tool call": make_response("I look first.", calls={"Lookup": {"word": "a"}}),
    "timeout": TimeoutError(),
    "a defect of the provider": RuntimeError("no attribute 'usage'"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A session whose first rung is this one."""

    rung: CompactionStrategy
    model: str = OLDER
    pct: float = 15
    notes: bool = False
    is_reactive: bool = False
    has_provider: bool = True
    has_structural: bool = True

    @property
    def asks_nobody(self) -> bool:
        """No model is asked for a summary, so that it makes no difference how one would fail."""
        return self.notes or not self.has_provider

    @property
    def settings(self) -> dict[str, dict[str, object]]:
        return {
            "compact": {"auto_compact_pct": self.pct, "auto_compact_enabled": not self.is_reactive},
            "notes": {"compaction_enabled": self.notes},
            "server_edits": {"clear_results": "never"},
        }


STARTS = (
    Start(rung="notes", notes=True),
    Start(rung="block", model=NEWER, pct=2.75),
    Start(rung="summary"),
    Start(rung="trimmed", is_reactive=True),
    Start(rung="structural", has_provider=False),
    Start(rung="clip", has_structural=False),
)


@dataclass(kw_only=True)
class Agent:
    """A loop that looks one thing up after the other."""

    start: Start
    failure: ModelResponse | str | Exception
    steps: int = 0
    wasted: int = 0
    heard: list[Event] = field(default_factory=list[Event])

    def __post_init__(self) -> None:
        self.provider = ScriptedProvider(self.work, by_purpose={"summary": self.fail})

    def work(self, _: ModelRequest) -> ModelResponse:
        return make_response(f"Step {self.steps}.", think="Hm.", calls={"Lookup": {"word": f"{self.steps}"}})

    def fail(self, _: ModelRequest) -> ModelResponse | str | Exception:
        self.wasted += 1
        return self.failure

    async def live(self, steps: int, *, project: Path | None = None, session: str | None = None) -> str:
        """Open the session, new or again, and work for so many steps."""
        opened = await Session.open(
            RequestParams(
                model=self.start.model, max_tokens=4_000, system="You mend parsers.", tools=(TOOL,)
            ),
            project=project,
            session=session,
            provider=self.provider if self.start.has_provider else None,
            settings=self.start.settings,
            emit=self.heard.append,
            environ={} if project is None else {"SEVENFOLD_HOME": str(project / ".home")},
        )
        async with opened:
            if session is None:
                opened.history.append(Message("user", "Mend the parser, and change no test."))
            for _ in range(steps):
                await self._step(opened)
            return opened.id

    async def _step(self, session: Session) -> None:
        view = await session.prepare()
        if self.start.is_reactive and view.tokens > TARGET_TOKENS:
            shorter = await session.recover(PromptTooLong(tokens=view.tokens, limit=TARGET_TOKENS))
            assert shorter is not None
            view = shorter
        reply = await self.provider.send(view.request)
        await session.record(reply)
        results = (ToolResult(use.id, f"{self.steps} {WORDS}") for use in reply.tool_uses)
        session.history.append(Message("user", tuple(results)))
        self.steps += 1

    @property
    def rungs(self) -> Counter[str]:
        return Counter(event.rung for event in self.heard if isinstance(event, HistoryCompacted))

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.heard)


def run(agent: Agent) -> None:
    with (
        nullcontext()
        if agent.start.has_structural
        else patch.object(StructuralNotes, "render", return_value="")
    ):
        asyncio.run(agent.live(STEPS))


FEW = ("dropped stream", "too long, with figures", "empty")
CELLS = [
    (start, failure)
    for start in STARTS
    for failure in FAILURES
    # Where no model is asked, and on rungs that fail alike, a few stand for all: the benchmark has the rest.
    if start.rung == "summary" or failure in FEW[: 1 if start.asks_nobody else None]
]


ALIKE = frozenset(
    {
        *("too long, without", "500", "401", "unreachable", "error in mid-stream"),
        *("malformed", "cut at max_tokens", "window full"),
    }
)
"""Each fails like another one does; `make stories` has them."""


@pytest.mark.parametrize(
    ("start", "failure"),
    [
        pytest.param(
            start,
            failure,
            id=f"{start.rung}, {failure}",
            marks=[pytest.mark.story] if failure in ALIKE else [],
        )
        for start, failure in CELLS
    ],
)
def test_a_session_finishes_whatever_becomes_of_its_summaries(start: Start, failure: str) -> None:
    agent = Agent(start=start, failure=FAILURES[failure])
    run(agent)
    assert agent.steps == STEPS
    assert agent.wasted <= 3
    assert agent.count(PrefixBroken) == 0
    assert sum(agent.rungs.values()) >= 5
    served = {"notes": "notes", "clip": "clip"}.get(start.rung, "structural")
    assert set(agent.rungs) == {served}


@pytest.mark.parametrize("start", [STARTS[1], STARTS[3]], ids=lambda start: start.rung)
def test_the_breaker_is_told_once(start: Start) -> None:
    agent = Agent(start=start, failure=Overloaded("busy"))
    run(agent)
    assert agent.wasted == 3
    opened = [event.breaker for event in agent.heard if isinstance(event, BreakerOpened)]
    assert opened.count("summary") == 1


def test_a_summary_that_can_be_used_is_used_every_time() -> None:
    agent = Agent(start=Start(rung="summary"), failure=GOOD)
    run(agent)
    assert set(agent.rungs) == {"summary"}
    assert agent.wasted == agent.rungs["summary"], "one call each"


@pytest.mark.parametrize("failure", ["529", "dropped stream"])
def test_restarts_forgive_nothing(failure: str, tmp_path: Path) -> None:
    agent = Agent(start=Start(rung="summary"), failure=FAILURES[failure])
    session = None
    for _ in range(6):
        session = asyncio.run(agent.live(STEPS // 6, project=tmp_path, session=session))
    assert agent.steps == STEPS
    assert agent.wasted == 3
