"""Hooks of a loop around every compaction: instructions before it, content to restore, a notice after it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias, TypeVar

from sevenfold.core.errors import CompactionStopped
from sevenfold.core.events import CompactionRefused, Emit, HookFailed
from sevenfold.layers.compaction.job import Compacted
from sevenfold.layers.compaction.keep_policy import Extra
from sevenfold.layers.compaction.policy import CompactionTrigger

_T = TypeVar("_T")

BeforeCompact: TypeAlias = Callable[[CompactionTrigger], Awaitable[str]]
"""What the summary should look at; empty: nothing in particular. `CompactionStopped` refuses it."""
AfterCompact: TypeAlias = Callable[[Compacted], Awaitable[None]]
RestoreExtras: TypeAlias = Callable[[], Awaitable[Sequence[Extra]]]
"""What should be in view again, skills newest first."""


@dataclass(frozen=True, slots=True)
class CompactHooks:
    """Called by the session that compacts, which waits for them: none may call the session."""

    before: BeforeCompact | None = None
    restoring: RestoreExtras | None = None
    after: AfterCompact | None = None


NO_COMPACT_HOOKS = CompactHooks()
BEFORE_HOOK_NAME = "before compaction"
"""The one hook that may refuse."""


@dataclass(frozen=True, slots=True)
class CompactHookRunner:
    """Calls hooks, each within a time limit. A failing hook adds nothing, and an event reports it."""

    hooks: CompactHooks
    limit: timedelta
    emit: Emit

    async def ask_before(self, trigger: CompactionTrigger, *, is_full: bool = False) -> str | None:
        """What the summary should look at; None: a hook postponed an automatic compaction, which is an event.

        By hand a refusal raises `CompactionStopped`. A full window cannot be postponed.
        """
        before = self.hooks.before
        if before is None:
            return ""

        async def asked() -> str:
            return _checked_text(await before(trigger))

        try:
            return await self._call(BEFORE_HOOK_NAME, asked, "")
        except CompactionStopped as refusal:
            if trigger == "manual":
                raise
            if is_full:
                reason = f"the window is full, and is compacted all the same: {refusal}"
                self.emit(HookFailed(BEFORE_HOOK_NAME, reason))
                return ""
            self.emit(CompactionRefused(trigger, str(refusal)))
            return None

    async def ask_restoring(self) -> tuple[Extra, ...]:
        restoring = self.hooks.restoring
        if restoring is None:
            return ()

        async def found() -> tuple[Extra, ...]:
            return tuple(_checked(extra) for extra in await restoring())

        return await self._call("restoring", found, ())

    async def tell_after(self, done: Compacted) -> None:
        after = self.hooks.after
        if after is not None:
            await self._call("after compaction", lambda: after(done), None)

    async def _call(self, name: str, hook: Callable[[], Awaitable[_T]], otherwise: _T) -> _T:
        seconds = self.limit.total_seconds()
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await hook()
        except Exception as error:  # hooks are foreign code, and must not end a compaction
            if name == BEFORE_HOOK_NAME and isinstance(error, CompactionStopped):
                raise
            late = f"it took over {seconds:g} s (compact.hook_seconds)"
            self.emit(HookFailed(name, late if limit.expired() else f"{type(error).__name__}: {error}"))
        return otherwise


def _checked_text(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError(f"a {type(said).__name__} is no text")
    return said


def _checked(extra: object) -> Extra:
    """Check what a hook returned here, where an error costs only its own part."""
    if not isinstance(extra, Extra):
        raise TypeError(f"a {type(extra).__name__} is no Extra")
    return extra
