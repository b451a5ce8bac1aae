"""Hooks: the user's own commands, run before and after what an agent does.

All that match are asked at the same time, and the strictest answer counts. One that fails is told, and costs
nothing but what it would have said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from sevenfold.agent.hooks.command import execute_hook_command
from sevenfold.agent.hooks.config import Hook
from sevenfold.agent.hooks.results import (
    BLOCKING_EXIT_CODE,
    MAX_HOOK_TEXT_CHARS,
    NO_HOOK_RESULT,
    HookEvent,
    HookResult,
    merge_hook_results,
    parse_hook_result,
)
from sevenfold.core.canonical import digest
from sevenfold.core.errors import SevenfoldError, WireError
from sevenfold.core.events import Emit, HookFailed, ignore_event
from sevenfold.core.json import JsonObject, freeze_object, write_json
from sevenfold.core.messages import ToolUse
from sevenfold.core.settings.permissions import PermissionMode
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.offload import run_blocking

HOOK_SPILL_PREFIX = "hook-output"

_CLAUDE_MODES: dict[PermissionMode, str] = {
    "ask": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "read-only": "plan",
    "bypass": "bypassPermissions",
}
"""The modes in the words that hooks know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    """Which session hooks are asked about, and where they run."""

    session: str
    root: Path
    cwd: Path
    transcript: str = ""
    mode: Callable[[], PermissionMode] = lambda: "ask"
    """The permission mode, which people change."""
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    folder: Path | None = None
    """The session's, where long texts of hooks go; None: what is too long is left out."""

    def question(self, event: HookEvent, details: Mapping[str, object]) -> JsonObject:
        common = {
            "session_id": self.session,
            "transcript_path": self.transcript,
            "cwd": str(self.cwd),
            "hook_event_name": event,
            "permission_mode": _CLAUDE_MODES[self.mode()],
        }
        return freeze_object({**common, **details})

    def surroundings(self) -> dict[str, str]:
        root = str(self.root)
        own = {"SEVENFOLD_PROJECT_DIR": root, "SEVENFOLD_SESSION_ID": self.session}
        # What scripts that were written for Claude Code look at.
        theirs = {"CLAUDE_PROJECT_DIR": root, "CLAUDE_CODE_SESSION_ID": self.session, "CLAUDECODE": "1"}
        return {**self.environ, **own, **theirs}


class SessionHooks:
    """The hooks of one session."""

    def __init__(self, hooks: Sequence[Hook], place: HookContext, emit: Emit = ignore_event) -> None:
        self._hooks, self.place, self._emit = tuple(hooks), place, emit

    async def ask(self, event: HookEvent, subject: str = "", **details: object) -> HookResult:
        """What the hooks of an event say; `subject` is what their matchers look at."""
        chosen = [hook for hook in self._hooks if hook.event == event and hook.matches(subject)]
        return merge_hook_results(await asyncio.gather(*(self._ask(hook, details) for hook in chosen)))

    async def ask_before(self, use: ToolUse, name: str = "") -> HookResult:
        """Before a tool runs: whether it may, and with which input. `name` is the tool really meant."""
        return await self._ask_of_tool("PreToolUse", use, name)

    async def ask_after(self, use: ToolUse, response: str, took: timedelta, name: str = "") -> HookResult:
        """After a tool ran: what to say of it, and what the model is shown."""
        milliseconds = round(took.total_seconds() * 1_000)
        return await self._ask_of_tool(
            "PostToolUse", use, name, tool_response=response, duration_ms=milliseconds
        )

    async def _ask_of_tool(self, event: HookEvent, use: ToolUse, name: str, **details: object) -> HookResult:
        named = name or use.name
        told = {"tool_input": use.input, "tool_use_id": use.id, **details}
        chosen = [hook for hook in self._hooks if hook.event == event and hook.matches(named)]
        asked = (self._ask(hook, {"tool_name": hook.tool_name(named), **told}) for hook in chosen)
        return merge_hook_results(await asyncio.gather(*asked))

    async def _ask(self, hook: Hook, details: Mapping[str, object]) -> HookResult:
        question = write_json(self.place.question(hook.event, details))
        environ = self.place.surroundings()
        try:
            ended = await execute_hook_command(
                hook.command, question, cwd=self.place.cwd, environ=environ, limit=hook.limit
            )
        except OSError as error:
            return self._failed(hook, f"it could not be started: {error.strerror or error}")
        if ended.code is None:
            return self._failed(hook, f"it took over {hook.limit.total_seconds():g} s and was stopped")
        if ended.code not in (0, BLOCKING_EXIT_CODE):
            said = ended.err.strip()[:200]
            return self._failed(hook, f"it ended with code {ended.code}{f': {said}' if said else ''}")
        try:
            heard = parse_hook_result(hook.event, ended.code, ended.out, ended.err)
        except WireError as error:
            return self._failed(hook, f"its answer cannot be read: {error}")
        if heard.unheeded:
            asked = ", ".join(heard.unheeded)
            self._failed(
                hook, f"it asks for {asked}, which is not to be had here; the rest of its answer counts"
            )
        if not heard.is_long:
            return heard
        return await run_blocking(lambda: heard.shortened(lambda text: self._shorten(hook, text)))

    def _shorten(self, hook: Hook, text: str) -> str:
        """The beginning of a text that is too long, and where the whole of it is."""
        if len(text) <= MAX_HOOK_TEXT_CHARS:
            return text
        try:
            path = _spill(self.place.folder, text) if self.place.folder else None
            where = f"all of it is in {path}" if path else "the rest is left out"
        except SevenfoldError as error:
            self._failed(hook, f"what it said could not be stored: {error}")
            where = "the rest could not be stored"
        return f"{text[:MAX_HOOK_TEXT_CHARS]}\n[{len(text):,} characters of a hook; {where}]"

    def _failed(self, hook: Hook, reason: str) -> HookResult:
        self._emit(HookFailed(f"{hook.event} {hook.source}".strip(), reason))
        return NO_HOOK_RESULT


def _spill(session: Path, text: str) -> str:
    """Store a text in the session's folder, under a name of this text alone; its path."""
    data = text.encode("utf-8", "backslashreplace")
    name = f"{digest(data)[:16]}.txt"
    with Folder.open(session) as whole, whole.subfolder(HOOK_SPILL_PREFIX) as folder:
        folder.replace(name, data)
        return f"{folder.path}/{name}"
