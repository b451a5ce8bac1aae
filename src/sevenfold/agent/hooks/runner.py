"""Runs the hooks of a session: the user's own commands, before and after an agent's actions.

`execute_hook_command` runs one command; `SessionHooks` runs all that match an event. They run at the same
time, and the strictest answer counts. A hook that fails is reported as an event; its answer is left out.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from sevenfold.agent.hooks.config import (
    BLOCKING_EXIT_CODE,
    MAX_HOOK_TEXT_CHARS,
    NO_HOOK_RESULT,
    Hook,
    HookDialect,
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
from sevenfold.core.settings.sections import PermissionMode
from sevenfold.core.system import run_blocking
from sevenfold.store.files.folder import Folder

# One command: the request on stdin, the answer within a size limit, no process left afterwards.

MAX_HOOK_OUTPUT_BYTES = 4 * 1024 * 1024
"""Kept of each stream: more than anybody reads. The rest is read and dropped, so that no hook hangs on a full
pipe."""

PIPE_GRACE = timedelta(seconds=1)
"""For what a hook that has ended still has in its pipes; a child that it left running may hold them open."""

OUT, ERR = 1, 2


@dataclass(frozen=True, slots=True)
class HookExit:
    """How a command ended."""

    code: int | None
    """None: it took too long and was killed."""
    out: str
    err: str


async def execute_hook_command(
    command: str, question: bytes, *, cwd: Path, environ: Mapping[str, str], limit: timedelta
) -> HookExit:
    """Run it in a shell and a process group of its own, which is killed when it is late or we are cancelled.

    An `OSError` says that it could not be started.
    """
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(
        loop.subprocess_exec(
            _Talk, "/bin/sh", "-c", command, cwd=cwd, env=dict(environ), start_new_session=True
        )
    )
    try:
        transport, talk = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Half started, it could neither be waited for nor be ended with all that it has started.
        await _end(*await starting)
        raise
    code: int | None = None
    try:
        _ask(transport, question)
        async with asyncio.timeout(limit.total_seconds()):
            await talk.has_ended.wait()
            code = transport.get_returncode()
        with suppress(TimeoutError):
            async with asyncio.timeout(PIPE_GRACE.total_seconds()):
                await talk.has_closed.wait()
    except TimeoutError:
        pass
    finally:
        await _end(transport, talk)
    return HookExit(code, talk.text(OUT), talk.text(ERR))


class _Talk(asyncio.SubprocessProtocol):
    """What a command says, and when it has ended."""

    def __init__(self) -> None:
        self._kept = {OUT: bytearray(), ERR: bytearray()}
        self._open = {OUT, ERR}
        self._cut = set[int]()
        self.has_ended, self.has_closed = asyncio.Event(), asyncio.Event()

    def text(self, stream: int) -> str:
        text = self._kept[stream].decode("utf-8", "replace")
        remark = f"\n[more than {MAX_HOOK_OUTPUT_BYTES:,} bytes; the rest was dropped]"
        return f"{text}{remark}" if stream in self._cut else text

    def receive(self, fd: int, data: bytes) -> None:
        kept = self._kept[fd]
        if len(kept) + len(data) > MAX_HOOK_OUTPUT_BYTES:
            self._cut.add(fd)
        kept += data[: MAX_HOOK_OUTPUT_BYTES - len(kept)]

    pipe_data_received = receive  # by asyncio's name for it

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        self._open.discard(fd)
        if not self._open:
            self.has_closed.set()

    def process_exited(self) -> None:
        self.has_ended.set()


def _ask(transport: asyncio.SubprocessTransport, question: bytes) -> None:
    """Write the request. A hook need not read it, so errors of the pipe are ignored."""
    pipe = transport.get_pipe_transport(0)
    if isinstance(pipe, asyncio.WriteTransport):
        pipe.write(question)
        pipe.write_eof()


async def _end(transport: asyncio.SubprocessTransport, talk: _Talk) -> None:
    if transport.get_returncode() is None:
        _kill(transport.get_pid())
    await talk.has_ended.wait()
    transport.close()


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


HOOK_SPILL_PREFIX = "hook-output"
MAX_KEPT_FILES = 16
"""As many calls as are run at the same time."""

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

    def build_input(self, event: HookEvent, details: Mapping[str, object]) -> JsonObject:
        common = {
            "session_id": self.session,
            "transcript_path": self.transcript,
            "cwd": str(self.cwd),
            "hook_event_name": event,
            "permission_mode": _CLAUDE_MODES[self.mode()],
        }
        return freeze_object({**common, **details})

    def build_environ(self) -> dict[str, str]:
        root = str(self.root)
        own = {"SEVENFOLD_PROJECT_DIR": root, "SEVENFOLD_SESSION_ID": self.session}
        # What scripts that were written for Claude Code look at.
        theirs = {"CLAUDE_PROJECT_DIR": root, "CLAUDE_CODE_SESSION_ID": self.session, "CLAUDECODE": "1"}
        return {**self.environ, **own, **theirs}


class SessionHooks:
    """The hooks of one session."""

    def __init__(self, hooks: Sequence[Hook], place: HookContext, emit: Emit = ignore_event) -> None:
        self._hooks, self.place, self._emit = tuple(hooks), place, emit
        self._before: dict[str, str] = {}
        """What files held before calls that are being run, by the call's id."""

    @property
    def hooks(self) -> tuple[Hook, ...]:
        return self._hooks

    async def ask(self, event: HookEvent, subject: str = "", **details: object) -> HookResult:
        """What the hooks of an event say; `subject` is what their matchers look at."""
        chosen = [hook for hook in self._hooks if hook.event == event and hook.matches(subject)]
        if not chosen:
            return NO_HOOK_RESULT
        return merge_hook_results(await asyncio.gather(*(self._ask(hook, details) for hook in chosen)))

    async def ask_before(self, use: ToolUse, name: str = "") -> HookResult:
        """Before a tool runs: whether it may, and with which input. `name` is the tool really meant."""
        await self._keep_before(use)
        return await self._ask_of_tool("PreToolUse", use, name)

    async def ask_after(self, use: ToolUse, response: str, took: timedelta, name: str = "") -> HookResult:
        """After a tool ran: what to say of it, and what the model is shown."""
        before = self._before.pop(use.id, None)
        chosen = [one for one in self._hooks if one.event == "PostToolUse" and one.matches(name or use.name)]
        if not chosen:
            return NO_HOOK_RESULT
        responses: dict[HookDialect, object] = {"own": response}
        if any(hook.dialect == "claude" for hook in chosen):
            from sevenfold.agent.hooks.claude_response import build_claude_response

            cwd, meant = self.place.cwd, replace(use, name=name or use.name)
            responses["claude"] = await run_blocking(
                lambda: build_claude_response(meant, response, took, cwd=cwd, before=before)
            )
        milliseconds = round(took.total_seconds() * 1_000)
        return await self._ask_of_tool("PostToolUse", use, name, responses, duration_ms=milliseconds)

    async def _ask_of_tool(
        self,
        event: HookEvent,
        use: ToolUse,
        name: str,
        responses: Mapping[HookDialect, object] | None = None,
        **details: object,
    ) -> HookResult:
        named = name or use.name
        described = {"tool_input": use.input, "tool_use_id": use.id, **details}
        chosen = [hook for hook in self._hooks if hook.event == event and hook.matches(named)]
        asked = (
            self._ask(
                hook,
                {
                    "tool_name": hook.tool_name(named),
                    **described,
                    **({"tool_response": responses[hook.dialect]} if responses else {}),
                },
            )
            for hook in chosen
        )
        return merge_hook_results(await asyncio.gather(*asked))

    async def _keep_before(self, use: ToolUse) -> None:
        """For hooks of Claude Code, which are told what a file held before it was changed."""
        if any(hook.event == "PostToolUse" and hook.dialect == "claude" for hook in self._hooks):
            from sevenfold.agent.hooks.claude_response import read_before

            cwd = self.place.cwd
            before = await run_blocking(lambda: read_before(use, cwd))
            if before is not None:
                self._before[use.id] = before
            while len(self._before) > MAX_KEPT_FILES:  # of calls that were never run
                self._before.pop(next(iter(self._before)))

    async def _ask(self, hook: Hook, details: Mapping[str, object]) -> HookResult:
        question = write_json(self.place.build_input(hook.event, details))
        environ = self.place.build_environ()
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
            result = parse_hook_result(hook.event, ended.code, ended.out, ended.err)
        except WireError as error:
            return self._failed(hook, f"its answer cannot be read: {error}")
        if result.unsupported:
            asked = ", ".join(result.unsupported)
            self._failed(
                hook, f"it asks for {asked}, which is not available here; the rest of its answer counts"
            )
        if not result.is_long:
            return result
        return await run_blocking(lambda: result.shortened(lambda text: self._shorten(hook, text)))

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
