"""A run as JSON lines, in the shapes of Claude Code's `stream-json`: scripts written for it can read ours.

`system` (init) first, then `assistant` and `user` (tool results) as they come, events of the layers as
`system` lines of their own, and one `result` last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from sevenfold.agent.loop.turn import TurnEnd
from sevenfold.core.events import Event, describe_event
from sevenfold.core.json import thaw
from sevenfold.core.messages import Message, ToolResult
from sevenfold.core.requests import ModelResponse
from sevenfold.core.usage import Usage
from sevenfold.core.wire import write_message

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

    @property
    def subtype(self) -> ResultSubtype:
        if self.is_over_budget:
            return "error_max_budget_usd"
        if self.end.reason == "out of rounds":
            return "error_max_turns"
        return "success" if self.end.reason == "answered" else "error_during_execution"

    @property
    def exit_code(self) -> int:
        """0: answered; 130: interrupted from the keyboard; 1: anything else."""
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
    told: StreamFields = dict(describe_event(event))
    return {"type": "system", "subtype": "sevenfold_event", **told, "session_id": session}


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
    }
