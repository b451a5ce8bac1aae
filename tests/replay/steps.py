"""Short ways to say what happens in a conversation, for the tests of its account."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Block, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.usage import Usage
from sevenfold.replay.calls import CallPart, RecordedCall
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    CacheDialect,
    CallId,
    ForeignInput,
    ForeignSource,
    LineKey,
)

START = datetime(2026, 11, 3, 10, tzinfo=UTC)
MODEL = "claude-opus-5-5"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def said(*blocks: Block, when: float = 0, key: str = "", source: ForeignSource = "human") -> ForeignInput:
    return ForeignInput(
        conversation=MAIN_CONVERSATION,
        key=LineKey(key),
        at=at(when),
        role="user",
        blocks=blocks,
        source=source,
    )


def use(name: str, tool: str = "Read", **arguments: str) -> ToolUse:
    return ToolUse(ToolUseId(name), tool, JsonObject(dict(arguments)))


def result(name: str, content: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult(ToolUseId(name), content, is_error)


@dataclass
class Calls:
    """Makes calls, each with an id of its own."""

    model: str = MODEL
    dialect: CacheDialect = "anthropic"
    made: int = field(default=0)

    def call(
        self,
        usage: Usage | None,
        *blocks: Block,
        when: float | None = 0,
        model: str | None = None,
        is_final: bool = True,
        cleared: int = 0,
    ) -> RecordedCall:
        self.made += 1
        time = None if when is None else at(when)
        return RecordedCall(
            conversation=MAIN_CONVERSATION,
            id=CallId(f"msg_{self.made:04}"),
            model=model or self.model,
            parts=(CallPart(LineKey(f"line {self.made}"), blocks or (Text("ok"),)),),
            usage=usage,
            at=time,
            started=time,
            is_output_final=is_final,
            dialect=self.dialect,
            cleared_tokens=cleared,
        )
