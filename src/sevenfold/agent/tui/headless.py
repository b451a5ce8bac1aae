"""One prompt, one turn, for scripts: the answer on standard output as text, JSON or JSON lines."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.turn import TurnEnd
from sevenfold.agent.loop.turn_events import LayerActed, RoundEnded, ToolEnded, TurnEvent
from sevenfold.agent.tui.stream_json import (
    HeadlessResult,
    StreamFields,
    render_assistant_line,
    render_event_line,
    render_init_line,
    render_result_line,
    render_results_line,
)
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.events import ToolDenied
from sevenfold.core.messages import Message, ToolResult
from sevenfold.core.usage import NO_USAGE, Usage

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]


@dataclass(frozen=True, slots=True)
class HeadlessOptions:
    """How a run is told, and what it may cost."""

    form: OutputFormat = "text"
    max_usd: float | None = None
    """The turn ends with the round that reaches it."""


DEFAULT_HEADLESS = HeadlessOptions()


@dataclass(slots=True, kw_only=True)
class _Run:
    """What is known of a run while it is under way."""

    agent: Agent
    shot: HeadlessOptions
    write: Callable[[str], None]
    usage: Usage = NO_USAGE
    denials: list[StreamFields] = field(default_factory=list[StreamFields])
    is_over_budget: bool = False
    is_told: bool = False
    """The result was written, and is the last line."""

    def watch(self, seen: TurnEvent) -> None:
        session = self.agent.session.id
        match seen:
            case RoundEnded():
                self.usage += seen.reply.usage
                self._line(render_assistant_line(seen.reply, session))
                self._stop_if_dear(seen.spent_usd)
            case ToolEnded():
                result = ToolResult(seen.use.id, seen.output.content, seen.output.is_error or None)
                self._line(render_results_line([result], session))
            case LayerActed():
                if isinstance(seen.event, ToolDenied):
                    denied = seen.event
                    self.denials.append({"tool_name": denied.tool, "tool_use_id": denied.tool_use_id})
                self._line(render_event_line(seen.event, session))
            case _:
                pass

    def begin(self) -> None:
        agent = self.agent
        tools = [str(tool["name"]) for tool in agent.toolbox.declared()]
        self._line(
            render_init_line(agent.session.id, str(agent.place.cwd), agent.frame.model, agent.mode, tools)
        )

    def end(self, facts: HeadlessResult) -> None:
        self.is_told = True
        if self.shot.form == "text":
            self.write(facts.end.text)
        else:
            self.write(_spelled(render_result_line(facts)))

    def _stop_if_dear(self, spent_usd: float | None) -> None:
        most = self.shot.max_usd
        if most is not None and spent_usd is not None and spent_usd >= most:
            self.is_over_budget = True
            self.agent.interrupt()

    def _line(self, fields: StreamFields) -> None:
        if self.shot.form == "stream-json" and not self.is_told:
            self.write(_spelled(fields))


async def run_headless(
    agent: Agent,
    prompt: Message | str,
    write: Callable[[str], None],
    shot: HeadlessOptions = DEFAULT_HEADLESS,
    clock: Clock | None = None,
) -> HeadlessResult:
    """Run the turn and tell it. In text form an error is raised for the caller to tell."""
    clock = clock or SystemClock()
    began, run = clock.uptime(), _Run(agent=agent, shot=shot, write=write)
    run.begin()
    end = await _interruptible(agent, prompt, run)
    took = clock.uptime() - began
    if shot.form != "text":
        # Whoever reads a bill wants all of it; whoever reads an answer wants it now.
        await _settle(agent)
    facts = HeadlessResult(
        end=end,
        session=agent.session.id,
        took=took,
        usage=run.usage,
        spent_usd=agent.spent_usd,
        denials=tuple(run.denials),
        is_over_budget=run.is_over_budget,
    )
    if shot.form == "text" and end.error is not None:
        raise end.error
    run.end(facts)
    return facts


async def _interruptible(agent: Agent, prompt: Message | str, run: _Run) -> TurnEnd:
    """Ctrl-C ends the turn and not the program, so that a result is told all the same."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, agent.interrupt)
    try:
        return await agent.run_turn(prompt, run.watch)
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _settle(agent: Agent) -> None:
    """Wait for what is written after a turn; Ctrl-C ends the waiting."""
    loop, settling = asyncio.get_running_loop(), asyncio.create_task(agent.settle())
    loop.add_signal_handler(signal.SIGINT, settling.cancel)
    try:
        await asyncio.wait({settling})
    finally:
        settling.cancel()
        loop.remove_signal_handler(signal.SIGINT)


def _spelled(fields: StreamFields) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
