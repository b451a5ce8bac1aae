"""Layer 7's core, forks: what is appended to a parent's messages so that a side run reads the parent's cache.

Nothing before the appended messages changes, so the provider has cached all of it, and parallel forks of one
parent differ in their last text block alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sevenfold.core.errors import InputError
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Block, Message, Text, ToolResult, ToolUse
from sevenfold.core.tool_kinds import PATH_KEYS

FORK_MARK = "<sevenfold-fork>"
"""How a directive begins. History that ends in one is a fork's, and a fork starts no forks."""

OPEN_CALL_PLACEHOLDER = "[this call is being answered elsewhere; its result is not needed for what follows]"
"""The same for every call of every fork, so that parallel forks share all but their directive."""


@dataclass(frozen=True, slots=True)
class ToolPermit:
    """A tool that a fork may call."""

    tool: str
    path: str | None = None
    """The one file it may be called on, spelled exactly so; None: on anything."""

    def covers(self, use: ToolUse) -> bool:
        if use.name != self.tool:
            return False
        # Every key is looked at, so that a second one cannot lead a tool elsewhere.
        named = [use.input[key] for key in PATH_KEYS if key in use.input]
        return self.path is None or (bool(named) and all(path == self.path for path in named))


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkBrief:
    """What a fork is told, and what it is allowed."""

    kind: str
    """Whose work it is, for the bill: `summary`, `notes`, …"""
    directive: str
    allow: tuple[ToolPermit, ...] = ()
    """All other tools stay declared, since they are part of the prefix, and are denied when called."""
    max_rounds: int = 1
    max_tokens: int | None = None
    """Of one answer; None: as the parent."""

    def denial(self, use: ToolUse) -> str | None:
        """Why this call is not allowed; None when it is."""
        if any(permit.covers(use) for permit in self.allow):
            return None
        named = [permit for permit in self.allow if permit.tool == use.name]
        if named:
            return f"{use.name} may only be used on {', '.join(str(permit.path) for permit in named)} here"
        tools = ", ".join(permit.tool for permit in self.allow) or "no tool"
        return f"{use.name} may not be used here ({tools} may); answer with what you know already"


def plan_fork(parent: Sequence[Message], brief: ForkBrief) -> tuple[Message, ...]:
    """The messages to append to the parent's own: answers to its open calls, and the directive, last."""
    if is_fork(parent):
        raise InputError(
            f"a {brief.kind} fork cannot start from a fork's messages; start it from the session's own"
        )
    directive = Text(f"{FORK_MARK}\n{brief.directive}")
    if parent and parent[-1].role == "system":
        # Nothing but an answer may follow a system message; a second one is part of the first.
        return (Message("system", (directive,)),)
    waiting = (ToolResult(use.id, OPEN_CALL_PLACEHOLDER) for use in find_open_calls(parent))
    blocks: tuple[Block, ...] = (*waiting, directive)
    return (Message("user", blocks),)


def is_fork(messages: Sequence[Message]) -> bool:
    """Whether these are a fork's messages. Looks back to the last words of no model and no tool."""
    for message in reversed(messages):
        texts = [block for block in message.blocks if isinstance(block, Text)]
        if message.role != "assistant" and texts:
            return texts[-1].text.startswith(FORK_MARK)
    return False


def find_open_calls(messages: Sequence[Message]) -> tuple[ToolUse, ...]:
    """The calls of the last answer that have no result yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role == "assistant":
            uses = (block for block in message.blocks if isinstance(block, ToolUse))
            return tuple(use for use in uses if use.id not in answered)
        answered.update(block.tool_use_id for block in message.blocks if isinstance(block, ToolResult))
    return ()


def render_denial(use: ToolUse, reason: str) -> ToolResult:
    """What a denied call gets back."""
    return ToolResult(use.id, reason, is_error=True)


def thinking_budget(params: JsonObject) -> int:
    """The tokens a request sets aside for thinking, which its `max_tokens` must exceed; 0: none."""
    thinking = params.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, JsonObject) else None
    return budget if isinstance(budget, int) and not isinstance(budget, bool) else 0
