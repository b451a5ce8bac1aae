"""`Brain`: gets the conversation as the model would see it, and returns content blocks.

It knows nothing of HTTP, caching or any provider's JSON; each API converts both ways.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from sevenfold.core.json import JsonObject, freeze
from sevenfold.core.messages import Block, Message, Text, Thinking, ToolResult, ToolUse, ToolUseId

Purpose: TypeAlias = Literal["reply", "summary"]

STOP_REASONS = (
    *("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"),
    *("model_context_window_exceeded", "compaction"),
)
"""What an answer may say of why it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A conversation that wants an answer."""

    number: int
    """Which question this is, from 1, of all that the brain was asked."""
    model: str
    system: str
    tools: tuple[str, ...]
    messages: tuple[Message, ...]
    """What the model sees: less what was cleared, compacted or dropped."""
    max_tokens: int
    thinks: bool = False
    """Whether thinking is wanted."""
    purpose: Purpose = "reply"
    instructions: str | None = None
    """How to write a summary, where the client says."""

    @property
    def last_text(self) -> str:
        """What the user said last, tool results apart."""
        said = (
            "\n".join(block.text for block in message.blocks if isinstance(block, Text))
            for message in reversed(self.messages)
            if message.role == "user"
        )
        return next((text for text in said if text), "")

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results that came last, if the conversation ends with some."""
        last = next((message for message in reversed(self.messages) if message.role != "system"), None)
        if last is None or last.role != "user":
            return ()
        return tuple(block for block in last.blocks if isinstance(block, ToolResult))


def result_text(result: ToolResult) -> str:
    """All text that a tool result shows."""
    content = result.content
    if isinstance(content, tuple):
        return "\n".join(block.text for block in content if isinstance(block, Text))
    return content or ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a brain says."""

    blocks: tuple[Block, ...] = ()
    stop_reason: str | None = None
    """As the blocks suggest, if None: `tool_use` when there is a tool request, else `end_turn`."""
    usage: Mapping[str, int] = field(default_factory=dict[str, int])
    """Counts to report in place of the simulated ones, by their name on the wire."""

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, Text))


class Brain(Protocol):
    async def reply(self, prompt: Prompt) -> Reply:
        """Answer one prompt. An error here is a broken test: it goes back to whoever runs the simulator."""
        ...

    def check_done(self) -> None:
        """Raise if something that was expected never happened."""
        ...


BrainFunction: TypeAlias = Callable[[Prompt], "Reply | str | Awaitable[Reply | str]"]
"""A brain in one function; text alone is a reply of one text block."""


@dataclass(frozen=True, slots=True)
class FunctionBrain:
    function: BrainFunction

    async def reply(self, prompt: Prompt) -> Reply:
        said = self.function(prompt)
        answer = await said if inspect.isawaitable(said) else said
        return say(answer) if isinstance(answer, str) else answer

    def check_done(self) -> None:
        """A function expects nothing."""


def say(text: str = "", *, think: str = "", calls: Mapping[str, Mapping[str, object]] | None = None) -> Reply:
    """A reply made of thinking, text and tool requests, in that order; `calls` is input by tool name."""
    blocks: list[Block] = []
    if think:
        blocks.append(Thinking(think))
    if text:
        blocks.append(Text(text))
    for name, value in (calls or {}).items():
        blocks.append(call_tool(name, value))
    return Reply(tuple(blocks))


def call_tool(name: str, value: Mapping[str, object], tool_use_id: str = "") -> ToolUse:
    """A tool request; without an id it gets one when it is answered."""
    return ToolUse(
        ToolUseId(tool_use_id), name, JsonObject({key: freeze(item) for key, item in value.items()})
    )
