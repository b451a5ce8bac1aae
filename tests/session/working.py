"""An agent at work through a session and the real provider, against the simulator at its strictest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sevenfold.core.errors import Overloaded, PromptTooLong
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, Text, Thinking, ToolResult
from sevenfold.core.models import MODELS, Model
from sevenfold.core.prices import CATALOG, Catalog, ModelSettings
from sevenfold.core.requests import Capabilities, Dialect, ModelRequest, ModelResponse, RequestParams
from sevenfold.providers.anthropic import AnthropicProvider
from sevenfold.providers.provider import OnDelta
from sevenfold.session import Session
from sevenfold.testing import Choices, Prompt, Simulator, call_tool, say
from sevenfold.testing import Reply as Said
from tests.layers.compaction.overflows import GOOD
from tests.session.talk import Listener

WINDOW = 40_000
"""Automatic compaction sets in at 7,000 tokens: a few rounds."""

SMALL: dict[str, ModelSettings] = {model.name: ModelSettings(window_tokens=WINDOW) for model in MODELS}
CATALOGUE: Catalog = CATALOG.with_overrides(SMALL)
SETTINGS: dict[str, dict[str, object]] = {
    "models": {model.name: {"window_tokens": WINDOW} for model in MODELS},
    "notes": {"keep_tokens": 1_500, "keep_limit_tokens": 3_000, "first_update_tokens": 1_000},
    "compact": {"keep_tokens": 1_500, "thrash_limit": 50},
}

STRICTEST = Choices(empty_text=False, prefill_after_blocks=False)

TOOLS = tuple(
    JsonObject({"name": name, "description": f"{name}.", "input_schema": JsonObject({"type": "object"})})
    for name in ("Look", "Read")
)
SYSTEM = "You mend parsers. " * 60

Respond = Callable[[int, ModelResponse], Sequence[Message]]
"""What the world says to a reply: results, a user's words."""


def thinking(model: Model) -> JsonObject:
    if model.takes_prefill:
        return JsonObject({"thinking": JsonObject({"type": "enabled", "budget_tokens": 1_024})})
    return JsonObject({"thinking": JsonObject({"type": "adaptive"})})


def frame_of(model: Model) -> RequestParams:
    return RequestParams(
        model=model.name, max_tokens=3_000, system=SYSTEM, tools=TOOLS, params=thinking(model)
    )


def brain(prompt: Prompt, calls: int = 1, tool: str = "Look") -> Said:
    """Thinks, says a word and asks for tools; asked for a summary, writes one.

    Layer 2 clears nothing of a tool that it does not know, so that compactions are due.
    """
    if prompt.purpose == "summary":
        return say("The user wants the parser mended; files were read and nothing was found.")
    if "<sevenfold-fork>" in prompt.last_text:
        return say(GOOD)
    uses = tuple(call_tool(tool, {"file_path": f"/src/{number}.py"}) for number in range(calls))
    thought = (Thinking("Where is it?"),) if prompt.thinks else ()
    return Said((*thought, Text("I read on."), *uses))


def results(number: int, reply: ModelResponse, words: int = 1_300) -> Message:
    """Every call is answered."""
    text = f"{number} " + "word " * words
    return Message("user", tuple(ToolResult(use.id, text) for use in reply.tool_uses))


def plain_respond(number: int, reply: ModelResponse) -> Sequence[Message]:
    return (results(number, reply) if reply.tool_uses else Message("user", f"{number} " + "more " * 900),)


class Moody:
    """The real provider, except that calls for summaries fail while they are told to."""

    def __init__(self, inner: AnthropicProvider) -> None:
        self._inner = inner
        self.fails = False

    @property
    def dialect(self) -> Dialect:
        return self._inner.dialect

    def capabilities(self, model: Model) -> Capabilities:
        return self._inner.capabilities(model)

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        if request.purpose != "main" and self.fails:
            raise Overloaded("busy")
        return await self._inner.send(request, on_delta)

    async def close(self) -> None:
        await self._inner.close()


@dataclass(slots=True, kw_only=True)
class Work:
    """One session over all its processes."""

    home: Path
    simulator: Simulator
    provider: Moody
    frame: RequestParams
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=lambda: SETTINGS)
    respond: Respond = plain_respond
    opening: Sequence[Message] = (Message("user", "Please mend the parser."),)
    listener: Listener = field(default_factory=Listener)
    before_round: Callable[[int, Work], None] = lambda _, __: None
    after_round: Callable[[int, Work], None] = lambda _, __: None
    leave_after: frozenset[int] = frozenset()
    """Rounds after which the process ends and another one takes the session up again."""
    fails: bool = False
    """Whether every call for a summary fails."""

    def run(self, rounds: int) -> Work:
        asyncio.run(self._run(rounds))
        return self

    @property
    def rungs(self) -> list[str]:
        found = (getattr(event, "rung", "") for event in self.listener.events)
        names = self.listener.names()
        return [rung for rung, name in zip(found, names, strict=True) if name == "HistoryCompacted"]

    @property
    def refusals(self) -> list[str]:
        """Every 400 that the simulator gave."""
        return [str(entry.error) for entry in self.simulator.ledger.entries if entry.status == 400]

    async def _run(self, rounds: int) -> None:
        self.provider.fails = self.fails
        session = await self._open(None)
        try:
            for message in self.opening:
                session.history.append(message)
            for number in range(rounds):
                self.before_round(number, self)
                reply = await self._round(session)
                for message in self.respond(number, reply):
                    session.history.append(message)
                self.after_round(number, self)
                if number in self.leave_after:
                    await session.close()
                    session = await self._open(session.id)
        finally:
            await session.close()

    async def _open(self, name: str | None) -> Session:
        return await Session.open(
            self.frame,
            project=self.home,
            session=name,
            provider=self.provider,
            settings=self.settings,
            emit=self.listener,
            environ={"HOME": str(self.home)},
        )

    async def _round(self, session: Session) -> ModelResponse:
        view = await session.prepare(frame=self.frame)
        try:
            reply = await self.provider.send(view.request)
        except PromptTooLong as error:
            shorter = await session.recover(error)
            assert shorter is not None
            reply = await self.provider.send(shorter.request)
        await session.record(reply)
        return reply
