"""Conversations to put through a session, without a model."""

from __future__ import annotations

from dataclasses import dataclass, field

from sevenfold.core.events import Event
from sevenfold.core.json import JsonObject, freeze
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import ModelResponse, RequestParams
from sevenfold.core.usage import read_usage

FRAME = RequestParams(model="claude-opus-5", max_tokens=8_000, system="You are helpful.")


@dataclass
class Listener:
    """Keeps the events it is told."""

    events: list[Event] = field(default_factory=list[Event])

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


def call(number: int, tool: str = "Bash", tokens: int = 1_000, **given: str) -> ModelResponse:
    """A reply that asks for one tool."""
    use = ToolUse(ToolUseId(f"t{number}"), tool, JsonObject(given or {"command": f"make {number}"}))
    return reply(Message("assistant", (Text(f"step {number}"), use)), number, tokens)


def reply(message: Message, number: int, tokens: int = 1_000) -> ModelResponse:
    usage = {"input_tokens": tokens, "output_tokens": 20}
    wire = freeze(usage)
    assert isinstance(wire, JsonObject)
    return ModelResponse(
        message=message, usage=read_usage(usage), usage_wire=wire, stop_reason="tool_use", id=f"msg_{number}"
    )


def result(number: int, text: str) -> Message:
    return Message("user", (ToolResult(ToolUseId(f"t{number}"), text),))
