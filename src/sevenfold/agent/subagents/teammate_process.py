"""Agents in processes of their own: how one is started, how it talks with its starter, and that it goes when
that does.

The starter holds the other ends of the process's standard input and output (see `lifeline`). When the first
closes, however the starter died, the teammate ends its turn and goes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta

from sevenfold.agent.permissions.guard import PermissionResponse
from sevenfold.agent.subagents.parent_pipe import MAX_PIPE_LINE_BYTES, encode_permission_response
from sevenfold.core.errors import AgentError, WireError
from sevenfold.core.json import freeze_object, read_object, write_json
from sevenfold.core.settings.permissions import PERMISSION_MODES, PermissionMode

TEAMMATE_MODULE = "sevenfold.agent.opening.teammate"
MAX_STDERR_TAIL_CHARS = 2_000

TEAMMATE_EXIT_TIMEOUT = timedelta(seconds=20)
"""For a teammate to end by itself: a round of a model that is under way is broken off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeammateConfig:
    """What a teammate is started with, on one line of JSON."""

    name: str
    lead: str
    """The mailbox of whoever started it."""
    cwd: str
    session: str
    model: str
    mode: PermissionMode
    lead_mode: PermissionMode
    """What it may do once its lead has approved its plan: never more than the lead."""
    system: str
    prompt: str
    """Empty: it is taken up again, and waits for what is in its mailbox."""
    definition: str = ""
    description: str = ""
    tools: tuple[str, ...] | None = None
    memory: str = ""
    """A folder that it may write to beside the project; empty: none."""
    is_detached: bool = False
    """It lives on when its starter ends."""

    def write(self) -> bytes:
        return write_json(freeze_object(asdict(self))) + b"\n"


def parse_teammate_config(line: bytes) -> TeammateConfig:
    """`WireError` where it is none."""
    wire = read_object(line)
    texts = {key: value for key, value in wire.items() if isinstance(value, str)}
    mode, lead_mode = _mode(texts.pop("mode", "")), _mode(texts.pop("lead_mode", ""))
    tools = wire.get("tools")
    named = tuple(str(tool) for tool in tools) if isinstance(tools, tuple) else None
    is_detached = wire.get("is_detached") is True
    try:
        return TeammateConfig(mode=mode, lead_mode=lead_mode, tools=named, is_detached=is_detached, **texts)
    except TypeError as error:
        raise WireError(f"a teammate cannot be started with this: {error}") from error


def _mode(said: str) -> PermissionMode:
    if said not in PERMISSION_MODES:
        raise WireError(f"a teammate's mode is {said!r}; expected one of {', '.join(PERMISSION_MODES)}")
    return PERMISSION_MODES[PERMISSION_MODES.index(said)]


class TeammateProcess:
    """A teammate as its starter holds it."""

    def __init__(self, running: asyncio.subprocess.Process) -> None:
        self._running = running
        self._errors = asyncio.create_task(_read_end(running.stderr))

    async def hear(self) -> AsyncGenerator[bytes]:
        """What it says, a line at a time, until it has ended."""
        while self._running.stdout is not None and (line := await self._running.stdout.readline()):
            yield line

    def answer(self, asked: str, answer: PermissionResponse) -> None:
        if self._running.stdin is not None and not self._running.stdin.is_closing():
            self._running.stdin.write(encode_permission_response(asked, answer))

    async def wait(self) -> str:
        """Until it has ended; what was wrong, or nothing."""
        code = await self._running.wait()
        said = await self._errors
        return "" if code == 0 else f"its process ended with {code}: {said or 'it said nothing'}"

    async def end(self, patience: timedelta = TEAMMATE_EXIT_TIMEOUT) -> None:
        """Let go of it and wait until it is gone; one that does not go is killed."""
        if self._running.stdin is not None:
            self._running.stdin.close()
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await self._running.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._running.kill()
        finally:
            # Also where we are cancelled meanwhile: nobody else will bury it.
            await asyncio.shield(self._running.wait())
        await self._errors


async def start_teammate(charge: TeammateConfig, environ: Mapping[str, str]) -> TeammateProcess:
    try:
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", TEAMMATE_MODULE),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL if charge.is_detached else asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environ),
            cwd=charge.cwd,
            # Ctrl-C at the terminal is meant for its starter, who ends it properly.
            start_new_session=True,
            limit=MAX_PIPE_LINE_BYTES,
        )
    except OSError as error:
        raise AgentError(f"the teammate {charge.name!r} cannot be started: {error}") from error
    process = TeammateProcess(running)
    if running.stdin is not None:
        with suppress(OSError):  # it died at once: waiting for it says of what
            running.stdin.write(charge.write())
            await running.stdin.drain()
        if charge.is_detached:
            running.stdin.close()
    return process


async def _read_end(stream: asyncio.StreamReader | None) -> str:
    """The last of what it says, read all the while: a full pipe would stop it."""
    kept = ""
    while stream is not None and (part := await stream.read(4_096)):
        kept = (kept + part.decode("utf-8", "replace"))[-MAX_STDERR_TAIL_CHARS:]
    return kept.strip()
