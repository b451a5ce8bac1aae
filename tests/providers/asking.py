"""Requests for tests of providers, as small as they can be."""

from __future__ import annotations

from collections.abc import Mapping

from sevenfold.core.json import EMPTY_OBJECT, JsonObject, freeze
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.requests import Breakpoint, ModelRequest, RequestParams

MODEL = "claude-opus-5"
PROSE = "The quick brown fox jumps over the lazy dog. " * 60


def user(text: str) -> Message:
    return Message("user", text)


def assistant(text: str) -> Message:
    return Message("assistant", (Text(text),))


def used(name: str, tool_use_id: str = "toolu_1", **fields: object) -> Message:
    """An assistant message that asks for a tool."""
    return Message("assistant", (ToolUse(ToolUseId(tool_use_id), name, frozen(fields)),))


def result(text: str, tool_use_id: str = "toolu_1", *, is_error: bool | None = None) -> Message:
    return Message("user", (ToolResult(ToolUseId(tool_use_id), text, is_error),))


def frozen(fields: Mapping[str, object]) -> JsonObject:
    value = freeze(fields)
    assert isinstance(value, JsonObject)
    return value


def tool(name: str) -> JsonObject:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return frozen({"name": name, "description": f"Does {name}.", "input_schema": schema})


def ask(
    *messages: Message,
    breakpoints: tuple[Breakpoint, ...] = (),
    max_tokens: int = 1_000,
    who: str = "main",
    model: str = MODEL,
    system: str | tuple[JsonObject, ...] = (),
    tools: tuple[JsonObject, ...] = (),
    params: JsonObject = EMPTY_OBJECT,
    betas: tuple[str, ...] = (),
) -> ModelRequest:
    frame = RequestParams(
        model=model, max_tokens=max_tokens, system=system, tools=tools, params=params, betas=betas
    )
    return ModelRequest(frame, messages or (user("Hello?"),), breakpoints, who)
