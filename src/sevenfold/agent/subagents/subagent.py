"""The agents of a team as values: what is asked for, who is there, and how one ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.permissions.guard import AskPermission
from sevenfold.agent.subagents.definitions import AgentDefinition
from sevenfold.agent.subagents.messaging import AgentKind, RosterEntry
from sevenfold.agent.tool import Tool
from sevenfold.core.events import AgentEnded, Emit
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.core.settings.sections import PermissionMode
from sevenfold.core.text.safe_text import fence_text
from sevenfold.core.usage import NO_USAGE, Usage
from sevenfold.providers.provider import OnDelta, Provider, ProviderWrapper
from sevenfold.session.spend.budget import MAIN_KIND


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRequest:
    """What is asked for."""

    prompt: str
    description: str
    """In a few words, for people."""
    kind: AgentKind
    definition: AgentDefinition
    name: str = ""
    """Empty: one is found."""
    is_background: bool = False
    is_isolated: bool = False
    """In a worktree of its own."""
    is_detached: bool = False
    """Of a teammate: it lives on when its starter ends."""
    asked: timedelta | None = None
    """When, by the time since boot: a fork has to know whether the cache is still warm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentOptions:
    """What a fresh agent is opened with."""

    cwd: Path
    session: str
    """Of an agent's own, new or to be taken up again."""
    model: str
    mode: PermissionMode
    system: str
    only: frozenset[str] | None
    """The tools it has, by name; None: all but those that start agents."""
    also: tuple[Tool, ...]
    provider: Provider
    ask: AskPermission
    emit: Emit


RecordUsage: TypeAlias = Callable[[ModelRequest, ModelResponse], None]
"""Writes an answer down as paid for."""

OpenSubagent: TypeAlias = Callable[[SubagentOptions], Awaitable[Agent]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentOutcome:
    """How an agent ended."""

    outcome: str
    text: str
    rounds: int = 0
    usage: Usage = NO_USAGE
    note: str = ""
    """What its starter should know beside its answer: a worktree that stays."""

    def event(self, listed: RosterEntry) -> AgentEnded:
        used = self.usage
        return AgentEnded(
            name=listed.name,
            kind=listed.kind,
            outcome=self.outcome,
            rounds=self.rounds,
            read_tokens=used.read,
            written_tokens=used.written,
            fresh_tokens=used.fresh,
            output_tokens=used.output,
        )

    def render(self) -> str:
        """What its starter is told."""
        lines = [] if self.outcome == "answered" else [f"[the agent ended early: {self.outcome}]"]
        lines += [self.text or "[it said nothing]"]
        return "\n\n".join([*lines, *([f"[{self.note}]"] if self.note else [])])


@dataclass(slots=True, kw_only=True)
class Subagent:
    """An agent of a team, while it runs and after it."""

    listed: RosterEntry
    definition: AgentDefinition
    agent: Agent | None = None
    """While it runs in this process."""
    task: asyncio.Task[SubagentOutcome] | None = None
    waiting: list[str] = field(default_factory=list[str])
    """Said to it before it was there."""
    said: str = ""
    """What it is doing, in a line."""
    ending: SubagentOutcome | None = None

    @property
    def name(self) -> str:
        return self.listed.name

    @property
    def is_running(self) -> bool:
        return self.ending is None

    @property
    def state(self) -> str:
        return "running" if self.ending is None else self.ending.outcome

    def hear(self, text: str) -> None:
        """Send a message to a running agent; its next round includes it."""
        if self.agent is None:
            self.waiting.append(text)
        else:
            self.agent.post(text)


def render_subagent_end(member: Subagent, ending: SubagentOutcome) -> str:
    """How the end of a background agent is told to whoever started it."""
    who = f"{member.name!r} ({member.listed.description})"
    return (
        f"The agent {who} that you started in the background has "
        f"ended.\n{fence_text('result', ending.render())}"
    )


class AttributedProvider(ProviderWrapper):
    """A provider whose calls are booked to somebody: an agent's own conversation is not its starter's."""

    def __init__(self, inner: Provider, who: str, book: RecordUsage | None = None) -> None:
        super().__init__(inner)
        self._who, self._book = who, book

    async def send(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        own = replace(request, who=self._who) if request.who == MAIN_KIND else request
        reply = await self._inner.send(own, on_delta)
        if self._book is not None:
            self._book(own, reply)
        return reply

    async def close(self) -> None:
        """It is the starter's, who closes it."""
