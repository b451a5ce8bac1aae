"""What an agent adds to every compaction of its session (SPEC E1, E3): hooks around it, and what its tools,
its hooks and its surroundings have to say again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sevenfold.core.events import Emit, HookFailed
from sevenfold.layers.compact_ladder import Trigger
from sevenfold.layers.compact_restore import Extra
from sevenfold.request.compact_hooks import CompactHooks
from sevenfold.request.overflow_job import Compacted
from sevenfold.run.hooks import Hooks
from sevenfold.run.toolbox import Toolbox


@dataclass(slots=True)
class Compaction:
    """Handed to a session before the agent is there; says nothing until it is."""

    emit: Emit
    toolbox: Toolbox | None = None
    hooks: Hooks | None = None
    more: list[Callable[[], Sequence[Extra]]] = field(default_factory=list[Callable[[], Sequence[Extra]]])
    """Whoever else has something to put back."""

    def calls(self) -> CompactHooks:
        return CompactHooks(self._before, self._restoring, self._after)

    async def _before(self, trigger: Trigger) -> str:
        if self.hooks is None or trigger == "manual":
            return ""  # whoever compacts by hand has asked the hooks already, and could be refused
        heard = await self.hooks.ask("PreCompact", "auto", trigger="auto", custom_instructions=None)
        if heard.blocked is not None:
            reason = f"a compaction that is due cannot be blocked: {heard.blocked}"
            self.emit(HookFailed("PreCompact", reason))
        return "\n".join(heard.context)

    async def _restoring(self) -> Sequence[Extra]:
        extras = list(self.toolbox.extras()) if self.toolbox else []
        extras += (extra for tell in self.more for extra in tell())
        if self.hooks is not None:
            heard = await self.hooks.ask("SessionStart", "compact", source="compact")
            extras += (Extra("hook", "SessionStart", text) for text in heard.context)
        return extras

    async def _after(self, done: Compacted) -> None:
        if self.hooks is not None:
            trigger = "manual" if done.trigger == "manual" else "auto"
            await self.hooks.ask("PostCompact", trigger, trigger=trigger, compact_summary=done.summary)
