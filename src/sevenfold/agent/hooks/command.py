"""Runs a hook's command: its question on stdin, its answer capped, and nothing left of it afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

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
                await talk.has_said_all.wait()
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
        self.has_ended, self.has_said_all = asyncio.Event(), asyncio.Event()

    def text(self, stream: int) -> str:
        text = self._kept[stream].decode("utf-8", "replace")
        remark = f"\n[more than {MAX_HOOK_OUTPUT_BYTES:,} bytes; the rest was dropped]"
        return f"{text}{remark}" if stream in self._cut else text

    def hear(self, fd: int, data: bytes) -> None:
        kept = self._kept[fd]
        if len(kept) + len(data) > MAX_HOOK_OUTPUT_BYTES:
            self._cut.add(fd)
        kept += data[: MAX_HOOK_OUTPUT_BYTES - len(kept)]

    pipe_data_received = hear  # by asyncio's name for it

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        self._open.discard(fd)
        if not self._open:
            self.has_said_all.set()

    def process_exited(self) -> None:
        self.has_ended.set()


def _ask(transport: asyncio.SubprocessTransport, question: bytes) -> None:
    """Write the question. A hook need not read it: what becomes of the pipe then is told to nobody."""
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
