"""Agents to try things on: small tools, a scripted model, a home of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.opening.open_agent import AgentOptions, open_agent
from sevenfold.agent.tool import AccessRequest, OnProgress, Tool, ToolOutput, ToolSpec
from sevenfold.core.errors import InputError
from sevenfold.core.events import Event
from sevenfold.core.json import JsonObject, freeze_object
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.providers.provider import Provider

ANY = freeze_object({"type": "object"})


@dataclass
class Noted:
    """Keeps what it is told."""

    events: list[Event] = field(default_factory=list[Event])

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of(self, name: str) -> list[Event]:
        return [event for event in self.events if type(event).__name__ == name]


@dataclass(kw_only=True)
class Plain:
    """A tool that answers with what it was given, after as many turns of the loop as it was told."""

    name: str = "look"
    is_parallel: bool = True
    waits: int = 1
    kind: str = "nothing"
    log: list[str] = field(default_factory=list[str])
    most_at_once: int = 0
    fails: Exception | None = None
    _running: int = 0

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, f"{self.name}s.", ANY, self.is_parallel)

    def need(self, given: JsonObject, place: ToolContext) -> AccessRequest:
        if given.get("is_bad"):
            raise InputError("is_bad is true; expected nothing of the kind")
        if self.kind == "run":
            return AccessRequest(
                kind="run", command=str(given.get("command", "")), said=f"{self.name} {dict(given)}"
            )
        return AccessRequest(kind="nothing", said=f"{self.name} {dict(given)}")

    async def run(self, given: JsonObject, place: ToolContext, on_progress: OnProgress) -> ToolOutput:
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        self.log.append(f"start {given.get('n', '')}")
        try:
            waits = given.get("waits", self.waits)
            for _ in range(waits if isinstance(waits, int) else 0):
                await asyncio.sleep(0)
            if self.fails is not None:
                raise self.fails
            on_progress(f"{self.name} goes on\n")
            self.log.append(f"end {given.get('n', '')}")
            return ToolOutput(f"{self.name} {given.get('n', '')}")
        finally:
            self._running -= 1


NO_ASIDES = {"SEVENFOLD_RECALL_SIDE_QUERY": "off", "SEVENFOLD_EXTRACTION_WRITER": "rules"}
"""A script has an answer for each call that it knows of: what is asked beside them is tested on its own."""


@dataclass(kw_only=True)
class Shop:
    """A project in a home of its own, and agents in it."""

    home: Path
    provider: Provider
    tools: Sequence[Tool] = field(default_factory=lambda: [Plain()])
    noted: Noted = field(default_factory=Noted)
    change: Callable[[AgentOptions], AgentOptions] = lambda setup: setup

    @property
    def project(self) -> Path:
        folder = self.home / "project"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    async def open(self, session: str | None = None, **changes: object) -> Agent:
        setup = AgentOptions(
            project=self.project,
            model="claude-opus-5-5",
            session=session,
            provider=self.provider,
            tools=self.tools,
            emit=self.noted,
            environ={"HOME": str(self.home), "PATH": "/usr/bin:/bin", **NO_ASIDES},
        )
        return await open_agent(replace(self.change(setup), **changes))
