"""What an agent adds to every compaction of its session: hooks around it, and what its tools, its hooks and
its environment have to state again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sevenfold.agent.hooks.runner import SessionHooks
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.core.errors import CompactionStopped
from sevenfold.layers.compaction.hooks import CompactHooks
from sevenfold.layers.compaction.job import Compacted
from sevenfold.layers.compaction.policy import CompactionTrigger
from sevenfold.layers.compaction.restore_policy import Extra


class AgentCompactHooks:
    """Handed to a session before the agent is there; says nothing until it is."""

    def __init__(self) -> None:
        self._toolbox: ToolExecutor | None = None
        self._hooks: SessionHooks | None = None
        self._where: Callable[[], str] = str

    def begin(self, toolbox: ToolExecutor, hooks: SessionHooks, where: Callable[[], str]) -> None:
        """From now on there is something to say; `where` tells where the agent works."""
        self._toolbox, self._hooks, self._where = toolbox, hooks, where

    def calls(self) -> CompactHooks:
        return CompactHooks(self._before, self._restoring, self._after)

    async def _before(self, trigger: CompactionTrigger) -> str:
        if self._hooks is None or trigger == "manual":
            return ""  # whoever compacts by hand has asked the hooks already, and could be refused
        heard = await self._hooks.ask("PreCompact", "auto", trigger="auto", custom_instructions=None)
        if heard.blocked is not None:
            raise CompactionStopped(f"a PreCompact hook says: {heard.blocked}")
        return "\n".join(heard.context)

    async def _restoring(self) -> Sequence[Extra]:
        if self._toolbox is None or self._hooks is None:
            return ()
        heard = await self._hooks.ask("SessionStart", "compact", source="compact")
        said = (Extra("hook", "SessionStart", text) for text in heard.context)
        return (*self._toolbox.extras(), *said, Extra("session", "where you are", self._where()))

    async def _after(self, done: Compacted) -> None:
        if self._hooks is not None:
            trigger = "manual" if done.trigger == "manual" else "auto"
            await self._hooks.ask("PostCompact", trigger, trigger=trigger, compact_summary=done.summary)
