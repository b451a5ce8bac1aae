"""A command and its supervisor process: start, read output, end with all descendants."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.sandbox.supervisor import LaunchSpec

_START = (
    "import sys; sys.path.append(sys.argv[1]); from sevenfold.agent.sandbox.supervisor import "
    "supervise_command; "
    "supervise_command(int(sys.argv[2]), int(sys.argv[3]))"
)
_PACKAGES = str(Path(__file__).resolve().parents[3])
"""Where our own package lies, for an interpreter that looks nowhere by itself."""

READ_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class CommandExit:
    """How a command came to its end."""

    code: int
    """As a shell tells it: 128 and more for a signal."""
    left: int = 0
    """Processes that it had left running; they were ended too."""
    failure: str = ""
    """Why it never ran."""
    is_crowded: bool = False
    """It was ended for starting too many processes."""


class SupervisedCommand:
    """One that runs. Whoever has it closes it, which ends whatever is left of it."""

    def __init__(self, orders: LaunchSpec) -> None:
        """Start it. If it cannot be sandboxed nothing runs, and its end says so."""
        self._output, printing = os.pipe()
        self._status, telling = os.pipe()
        theirs, self._life = os.pipe()
        given = os.memfd_create("orders")
        os.write(given, orders.pack())
        os.lseek(given, 0, os.SEEK_SET)
        try:
            # Isolated from the user's own modules and settings of Python: they must not affect the sandbox.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, _PACKAGES, str(given), str(telling)],
                stdin=theirs,
                stdout=printing,
                stderr=printing,
                pass_fds=(given, telling),
                env={},
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            for file in (self._output, self._status, self._life):
                os.close(file)
            raise
        finally:
            for file in (printing, telling, theirs, given):
                os.close(file)
        os.set_blocking(self._output, False)
        self._ending: asyncio.Task[CommandExit] | None = None
        self._ready = asyncio.Event()
        self._is_over = False

    async def read(self) -> bytes:
        """What it prints next; nothing when it and all that it started have ended."""
        loop = asyncio.get_running_loop()
        self._watch_end()
        loop.add_reader(self._output, self._ready.set)
        try:
            while True:
                is_over = self._is_over
                with suppress(BlockingIOError):
                    return os.read(self._output, READ_CHUNK_BYTES)
                if is_over:
                    return b""
                self._ready.clear()
                await self._ready.wait()
        finally:
            loop.remove_reader(self._output)

    def ask_to_end(self) -> None:
        """Politely, with a moment's grace."""
        with suppress(OSError):
            os.write(self._life, b"t")

    def end(self) -> None:
        """Now, with everything that it started; a reader sees the end of the output."""
        self._let_go("_life")

    async def wait(self) -> CommandExit:
        """Until it and all that it started have ended. Cancelled, it runs on."""
        return await asyncio.shield(self._watch_end())

    async def close(self) -> CommandExit:
        """End it if it still runs, and come back when all of it is gone. Nobody may be reading it."""
        self.end()
        try:
            return await self.wait()
        finally:
            self._let_go("_output")

    def _watch_end(self) -> asyncio.Task[CommandExit]:
        if self._ending is None:
            self._ending = asyncio.create_task(self._until_ended())
        return self._ending

    async def _until_ended(self) -> CommandExit:
        status = b""
        while part := await _read(self._status):
            status += part
        # Its end of the pipe closed because it is exiting.
        self._process.wait()
        self._let_go("_status")
        # A program that became another user's may still hold the output; nobody waits for it.
        self._is_over = True
        self._ready.set()
        return _parse(status.decode("utf-8", "replace"))

    def _let_go(self, name: str) -> None:
        file = getattr(self, name)
        if file >= 0:
            setattr(self, name, -1)
            os.close(file)


async def _read(file: int) -> bytes:
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(file, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)
    return os.read(file, READ_CHUNK_BYTES)


def _parse(status: str) -> CommandExit:
    code, left, failure, is_crowded = 128 + 9, 0, "", False
    for line in status.splitlines():
        word, _, rest = line.partition(" ")
        if word == "failed":
            failure = rest
        elif word == "crowded":
            is_crowded = True
        elif word == "ended":
            code, left = (int(number) for number in rest.split())
    if not status:
        failure = "its supervisor was ended from outside"
    return CommandExit(code, left, failure, is_crowded)
