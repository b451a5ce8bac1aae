"""One prompt, one turn, for scripts: the answer on standard output as text, JSON or JSON lines.

JSON lines follow Claude Code's `stream-json`, so scripts written for it work. First `system` (init), then
`assistant` and `user` (tool results) as they come, events as `system` lines, and one `result` last.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.loop.turn import LayerActed, RoundEnded, ToolEnded, TurnEnd, TurnEvent
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import (
    Event,
    EventsLost,
    SpendStateLost,
    ToolDenied,
    TranscriptFailed,
    WriterFailed,
    describe_event,
)
from sevenfold.core.json import thaw
from sevenfold.core.messages import Message, ToolResult, write_message
from sevenfold.core.requests import ModelResponse
from sevenfold.core.text.safe_text import escape_json
from sevenfold.core.usage import NO_USAGE, Usage

StreamFields: TypeAlias = dict[str, object]
ResultSubtype: TypeAlias = Literal[
    "success", "error_max_turns", "error_max_budget_usd", "error_during_execution"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlessResult:
    """What a run was, when it is over."""

    end: TurnEnd
    session: str
    took: timedelta
    usage: Usage
    spent_usd: float | None
    denials: Sequence[StreamFields] = ()
    is_over_budget: bool = False
    unsaved: Sequence[str] = ()
    """What the disk did not take, each with the reason."""

    @property
    def subtype(self) -> ResultSubtype:
        if self.is_over_budget:
            return "error_max_budget_usd"
        if self.end.reason == "out of rounds":
            return "error_max_turns"
        is_whole = self.end.reason == "answered" and not self.unsaved
        return "success" if is_whole else "error_during_execution"

    @property
    def exit_code(self) -> int:
        """0: answered and kept; 130: interrupted from the keyboard; 1: anything else."""
        if self.end.reason == "interrupted" and not self.is_over_budget:
            return 130
        return 0 if self.subtype == "success" else 1


def render_init_line(session: str, cwd: str, model: str, mode: str, tools: Sequence[str]) -> StreamFields:
    return {
        "type": "system",
        "subtype": "init",
        "session_id": session,
        "cwd": cwd,
        "model": model,
        "permissionMode": mode,
        "tools": list(tools),
    }


def render_assistant_line(reply: ModelResponse, session: str) -> StreamFields:
    message: StreamFields = {
        "id": reply.id,
        "type": "message",
        "model": reply.model,
        **write_message(reply.message),
        "stop_reason": reply.stop_reason,
        "usage": thaw(reply.usage_wire),
    }
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": session}


def render_results_line(results: Sequence[ToolResult], session: str) -> StreamFields:
    message = write_message(Message("user", tuple(results)))
    return {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": session}


def render_event_line(event: Event, session: str) -> StreamFields:
    fields: StreamFields = dict(describe_event(event))
    return {"type": "system", "subtype": "sevenfold_event", **fields, "session_id": session}


def render_result_line(facts: HeadlessResult) -> StreamFields:
    end = facts.end
    failed = end.error is not None or facts.subtype != "success"
    return {
        "type": "result",
        "subtype": facts.subtype,
        "is_error": failed,
        "result": str(end.error) if end.error is not None else end.text,
        "stop_reason": end.reason,
        "num_turns": end.rounds,
        "duration_ms": round(facts.took.total_seconds() * 1000),
        "session_id": facts.session,
        "total_cost_usd": facts.spent_usd,
        "usage": {
            "input_tokens": facts.usage.fresh,
            "cache_read_input_tokens": facts.usage.read,
            "cache_creation_input_tokens": facts.usage.written,
            "output_tokens": facts.usage.output,
        },
        "permission_denials": list(facts.denials),
        "unsaved": list(facts.unsaved),
    }


def render_opening_failure(error: SevenfoldError) -> str:
    """The result line of a run that failed before it had a session."""
    end = TurnEnd("", 0, "failed", error)
    facts = HeadlessResult(end=end, session="", took=timedelta(), usage=NO_USAGE, spent_usd=0.0)
    return _spelled(render_result_line(facts))


OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]


@dataclass(frozen=True, slots=True)
class HeadlessOptions:
    """The output format of a run, and what it may cost."""

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
    losses: dict[str, str] = field(default_factory=dict[str, str])
    """What the disk did not take, by kind."""
    is_over_budget: bool = False
    is_told: bool = False
    """The result was written, and is the last line."""

    def watch(self, seen: TurnEvent) -> None:
        session = self.agent.session.id
        match seen:
            case RoundEnded():
                self.usage += seen.reply.usage
                self._line(render_assistant_line(seen.reply, session))
                self._stop_over_budget(seen.spent_usd)
            case ToolEnded():
                result = ToolResult(seen.use.id, seen.output.content, seen.output.is_error or None)
                self._line(render_results_line([result], session))
            case LayerActed():
                if isinstance(seen.event, ToolDenied):
                    denied = seen.event
                    self.denials.append({"tool_name": denied.tool, "tool_use_id": denied.tool_use_id})
                self._note_loss(seen.event)
                self._line(render_event_line(seen.event, session))
            case _:
                pass

    def list_unsaved(self) -> tuple[str, ...]:
        """What is not on the disk now, as a person reads it."""
        losses, waiting = dict(self.losses), self.agent.session.unsaved_records
        why = losses.pop("transcript", "")
        if waiting:
            losses["transcript"] = f"{waiting} records of the transcript could not be written: {why}"
        return tuple(losses.values())

    def _note_loss(self, event: Event) -> None:
        match event:
            case TranscriptFailed():
                self.losses["transcript"] = _cause(event.reason)
            case SpendStateLost():
                self.losses["spend"] = f"spending could not be written: {_cause(event.reason)}"
            case EventsLost():
                self.losses["events"] = f"events of the session could not be written: {_cause(event.reason)}"
            case WriterFailed() if is_full_disk(event):
                self.losses[event.writer] = describe_lost_work(event)
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

    def _stop_over_budget(self, spent_usd: float | None) -> None:
        most = self.shot.max_usd
        if most is not None and spent_usd is not None and spent_usd >= most:
            self.is_over_budget = True
            self.agent.interrupt()

    def _line(self, fields: StreamFields) -> None:
        if self.shot.form == "stream-json" and not self.is_told:
            self.write(_spelled(fields))


def is_full_disk(event: WriterFailed) -> bool:
    """Whether the work of a writer is lost because there is no room for it."""
    return any(os.strerror(code) in event.reason for code in (errno.ENOSPC, errno.EDQUOT))


def describe_lost_work(event: WriterFailed) -> str:
    return f"what the writer {event.writer} made could not be written: {_cause(event.reason)}"


def _cause(reason: str) -> str:
    """Without the advice for those who can try again: this run is over."""
    return reason.partition(";")[0]


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
        unsaved=run.list_unsaved(),
    )
    if shot.form == "text" and end.error is not None:
        raise end.error
    run.end(facts)
    return facts


async def _interruptible(agent: Agent, prompt: Message | str, run: _Run) -> TurnEnd:
    """Ctrl-C ends the turn and not the program, so that a result is still written."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, agent.interrupt)
    try:
        return await agent.run_turn(prompt, run.watch)
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _settle(agent: Agent) -> None:
    """Wait for what is written after a turn; Ctrl-C ends the waiting."""
    loop, settling = asyncio.get_running_loop(), asyncio.create_task(agent.finish())
    loop.add_signal_handler(signal.SIGINT, settling.cancel)
    try:
        await asyncio.wait({settling})
    finally:
        settling.cancel()
        loop.remove_signal_handler(signal.SIGINT)


def _spelled(fields: StreamFields) -> str:
    return escape_json(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))
