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

MAX_BYTES = 256 * 1024
"""Kept of each stream: JSON with a few texts of 10,000 characters. The rest is read and dropped, so that no
hook hangs on a full pipe."""

GRACE = timedelta(seconds=1)
"""For what a hook that has ended still has in its pipes; a child that it left running may hold them open."""

_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int | None
    """None: it took too long and was killed."""
    out: str
    err: str


async def run_command(
    command: str, question: bytes, *, cwd: Path, environ: Mapping[str, str], limit: timedelta
) -> Ended:
    """Run it in a shell and a process group of its own, which is killed when it is late or we are cancelled.

    An `OSError` says that it could not be started.
    """
    process = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        cwd=cwd,
        env=dict(environ),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    out, err = _Kept(), _Kept()
    pipes = [
        asyncio.create_task(_ask(process.stdin, question)),
        asyncio.create_task(_read(process.stdout, out)),
        asyncio.create_task(_read(process.stderr, err)),
    ]
    code: int | None = None
    try:
        async with asyncio.timeout(limit.total_seconds()):
            code = await process.wait()
            await asyncio.wait(pipes, timeout=GRACE.total_seconds())
    except TimeoutError:
        pass
    finally:
        if process.returncode is None or code is None:
            _kill(process.pid)
        for pipe in pipes:
            pipe.cancel()
        with suppress(asyncio.CancelledError):
            await process.wait()
    return Ended(code, out.text(), err.text())


class _Kept:
    """The beginning of a stream."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, chunk: bytes) -> None:
        self._data += chunk[: MAX_BYTES - len(self._data)]

    def text(self) -> str:
        return self._data.decode("utf-8", "replace")


async def _ask(pipe: asyncio.StreamWriter | None, question: bytes) -> None:
    if pipe is None:
        return
    # A hook need not read what it is told.
    with suppress(BrokenPipeError, ConnectionResetError):
        pipe.write(question)
        await pipe.drain()
    pipe.close()


async def _read(pipe: asyncio.StreamReader | None, kept: _Kept) -> None:
    while pipe is not None and (chunk := await pipe.read(_CHUNK)):
        kept.add(chunk)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
