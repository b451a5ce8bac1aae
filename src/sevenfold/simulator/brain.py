"""`Brain`: gets the conversation as the model would see it, and returns content blocks.

It knows nothing of HTTP, caching or any provider's JSON; each API converts both ways. `FunctionBrain` calls a
function. `Script` follows a script, and fails on unexpected requests and unused steps.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from sevenfold.core.errors import CallUnexpected, ScriptError, StepsUnused
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
    """Names of what may be called."""
    messages: tuple[Message, ...]
    """What the model sees: less what was cleared, compacted or dropped."""
    max_tokens: int
    thinks: bool = False
    """Whether thinking is wanted."""
    purpose: Purpose = "reply"
    instructions: str | None = None
    """How to write a summary, where the client says."""
    tool_schemas: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """The JSON schema of each tool's input, by its name; empty for a tool that declares none."""

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


# A test that no longer tests what it should must fail, not pass by luck. So a script allows nothing else.

ANY_TIMES = 0
"""`times` of a step that may be asked for again and again, and need not be asked for at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What a request must look like: everything that is given must hold; nothing given fits every reply."""

    text: str | None = None
    """Stands in what the user said last."""
    pattern: str | None = None
    """A regular expression found there."""
    result: str | None = None
    """Stands in one of the tool results that came last."""
    tool: str | None = None
    """The tool that one of those results answers."""
    system: str | None = None
    """Stands in the system prompt."""
    model: str | None = None
    purpose: Purpose = "reply"

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise ScriptError(f"pattern {self.pattern!r} is no regular expression: {error}") from error

    def mismatch(self, prompt: Prompt) -> str | None:
        """What about a prompt is not as it should be; None when it fits."""
        found = {
            "purpose": prompt.purpose == self.purpose,
            "model": self.model in {None, prompt.model},
            "text": (self.text or "") in prompt.last_text,
            "pattern": re.search(self.pattern or "", prompt.last_text) is not None,
            "system": (self.system or "") in prompt.system,
            "result": self.result is None or any(self.result in result_text(item) for item in prompt.results),
            "tool": self.tool is None or self.tool in _answered_tools(prompt),
        }
        return next((f"{name} {getattr(self, name)!r}" for name, holds in found.items() if not holds), None)


ANY_REPLY = Match()


@dataclass(frozen=True, slots=True)
class Step:
    reply: Reply
    match: Match = ANY_REPLY
    times: int = 1
    """How often it is asked for; `ANY_TIMES` for any number, none included."""
    name: str = ""


@dataclass(slots=True)
class Script:
    """Steps in order. Unordered, a request takes the first step that fits and is not used up."""

    steps: tuple[Step, ...]
    is_ordered: bool = True
    _used: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._used = [0] * len(self.steps)
        for at, step in enumerate(self.steps):
            if step.times < 0:
                raise ScriptError(f"{_named(at, step)}: times must be 0 (any) or more, not {step.times}")
            if step.reply.stop_reason not in {None, *STOP_REASONS}:
                raise ScriptError(f"{_named(at, step)}: {explain_unknown_reason(step.reply.stop_reason)}")

    async def reply(self, prompt: Prompt) -> Reply:
        refused: list[str] = []
        for at, step in enumerate(self.steps):
            if step.times and self._used[at] == step.times:
                continue
            mismatch = step.match.mismatch(prompt)
            if mismatch is None:
                self._used[at] += 1
                return step.reply
            refused.append(f"{_named(at, step)} wants {mismatch}")
            if self.is_ordered and self._used[at] < step.times:
                break
        expected = "; ".join(refused[:5]) or "every step is used up"
        raise CallUnexpected(
            f"request {prompt.number} is not in the script: {_described(prompt)}. {expected}"
        )

    def check_done(self) -> None:
        left = [
            f"{_named(at, step)} ({step.times - self._used[at]} of {step.times} left)"
            for at, step in enumerate(self.steps)
            if self._used[at] < step.times
        ]
        if left:
            raise StepsUnused(
                f"{len(left)} of {len(self.steps)} steps were never asked for: {', '.join(left[:10])}"
            )


def script(*replies: Reply | str | Step) -> Script:
    """A script of replies in order: texts, replies or whole steps."""
    return Script(tuple(make_script_step(item) for item in replies))


def make_script_step(item: Reply | str | Step) -> Step:
    if isinstance(item, Step):
        return item
    return Step(say(item) if isinstance(item, str) else item)


def explain_unknown_reason(reason: str | None) -> str:
    """What is said of a stop reason that no answer has."""
    return f"stop_reason {reason!r} is unknown; expected one of {', '.join(STOP_REASONS)}"


def _answered_tools(prompt: Prompt) -> set[str]:
    names: Mapping[str, str] = {
        block.id: block.name
        for message in prompt.messages
        for block in message.blocks
        if isinstance(block, ToolUse)
    }
    return {names.get(result.tool_use_id, "") for result in prompt.results}


def _named(at: int, step: Step) -> str:
    return f"step {at + 1}" + (f" ({step.name})" if step.name else "")


def _described(prompt: Prompt) -> str:
    results = _shown(item for result in prompt.results if (item := result_text(result)))
    said = f"results {results}" if results else f"text {prompt.last_text[:80]!r}"
    return f"a {prompt.purpose} on {prompt.model} with {len(prompt.messages)} messages, last {said}"


def _shown(texts: Iterable[str]) -> str:
    return ", ".join(repr(text[:80]) for text in list(texts)[:3])
