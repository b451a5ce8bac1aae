"""The resident process: answers requests on a Unix socket until nobody has asked for a while.

It holds a lock as long as it lives, so that there is one. Requests run in threads; what may wait is done
after the answer. A client of a newer version makes it step down: it stops listening, finishes what it has
begun, and releases the lock.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn

from sevenfold.core import __version__
from sevenfold.core.errors import InputError, SevenfoldError
from sevenfold.core.json import JsonObject, freeze_object, get_string, read_object, write_json
from sevenfold.resident import client
from sevenfold.resident.client import (
    LOCK_NAME,
    MAX_MESSAGE_BYTES,
    PROTOCOL,
    SOCKET_NAME,
    STATUS_ERROR,
    STATUS_OK,
    STATUS_RESTART,
    STOPPING,
    log_failure,
    make_run_folder,
)

if TYPE_CHECKING:
    from sevenfold.core.clock import Clock
    from sevenfold.resident.operations import ResidentOperations

IDLE = timedelta(minutes=30)
"""Without a request, after which the process ends: a coffee break is shorter, and a night is longer."""

MAX_CONNECTIONS = 64
"""At once. Each may hold a message in memory."""

_READ_TIMEOUT = 10.0
"""Seconds for the rest of a message that has begun."""
_LOCK_WAIT = 5.0
"""Seconds to wait for one that steps down."""
_STOP_WAIT = 10.0
"""Seconds for what has begun when it stops."""
STUCK = timedelta(minutes=15)
"""Of one request. To index years of sessions takes less; what takes longer may never end."""
STOP_OPERATION = "stop"


def take_resident_lock(folder: str, wait_seconds: float) -> int | None:
    """Hold the lock of the one process; None where somebody else does and answers."""
    fd = os.open(
        os.path.join(folder, LOCK_NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    end = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if _is_served(folder) or time.monotonic() > end:
                os.close(fd)
                return None
            time.sleep(0.02)
            continue
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()} {__version__}\n".encode(), 0)
        return fd


def mark_stopping(lock: int) -> None:
    """Say in the lock's file that its holder finishes what it has begun, and takes no more requests."""
    os.pwrite(lock, f"{os.getpid()} {__version__} {STOPPING}\n".encode(), 0)


def _release_lock(lock: int) -> None:
    """Whoever takes it next is not named by it yet, and this process no longer."""
    os.ftruncate(lock, 0)
    os.close(lock)


def _is_served(folder: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(1)
        try:
            asking.connect(os.path.join(folder, SOCKET_NAME))
        except OSError:
            return False
    return True


def bind_socket(folder: str) -> socket.socket:
    """The socket of whoever holds the lock. One that a dead process left is replaced."""
    path = os.path.join(folder, SOCKET_NAME)
    with suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    listener.listen(MAX_CONNECTIONS)
    listener.setblocking(False)
    return listener


class ResidentServer:
    """Answers on a socket until it is idle, stopped, or asked by a newer client."""

    def __init__(
        self,
        service: ResidentOperations,
        clock: Clock,
        *,
        idle: timedelta = IDLE,
        stop_seconds: float = _STOP_WAIT,
        lock: int | None = None,
    ) -> None:
        self._service, self._clock, self._idle, self._stop_seconds = service, clock, idle, stop_seconds
        self._lock = lock
        self._last = clock.uptime()
        self._stopping = asyncio.Event()
        self._busy = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._connections: set[asyncio.StreamWriter] = set()
        self._begun: dict[asyncio.StreamWriter, timedelta] = {}
        self._upkeep: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nobody has asked for so long that it may end."""
        return not self._busy and self._clock.uptime() - self._last >= self._idle

    @property
    def is_stuck(self) -> bool:
        """Whether a request has run for so long that it will never end."""
        return any(self._clock.uptime() - begun >= STUCK for begun in self._begun.values())

    def stop(self) -> None:
        self._stopping.set()
        if self._lock is not None:
            mark_stopping(self._lock)

    async def serve(self, listener: socket.socket) -> bool:
        """Returns whether everything that was begun has ended; threads that hang cannot be ended."""
        server = await asyncio.start_unix_server(self._talk, sock=listener, limit=2**16)
        path = listener.getsockname()
        self._keep_up()  # hooks may have left messages while there was no process
        try:
            while not self._stopping.is_set() and not self.is_idle and not self.is_stuck:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), min(60, self._idle.total_seconds()))
        finally:
            self.stop()
            server.close()
            with suppress(FileNotFoundError):
                os.unlink(path)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._quiet.wait(), self._stop_seconds)
            for writer in list(self._connections):
                writer.close()
            if self._upkeep is not None:
                await asyncio.wait({self._upkeep}, timeout=self._stop_seconds)
        if self._begun or (self._upkeep is not None and not self._upkeep.done()):
            return False
        await asyncio.to_thread(self._service.close)
        return True

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS or not _is_same_user(writer):
            writer.close()
            return
        self._connections.add(writer)
        try:
            while not self._stopping.is_set():
                head = await reader.readexactly(4)
                self._busy += 1
                self._begun[writer] = self._clock.uptime()
                self._quiet.clear()
                try:
                    reply = await self._take(reader, int.from_bytes(head, "big"))
                    writer.write(len(reply).to_bytes(4, "big") + reply)
                    await asyncio.wait_for(writer.drain(), _READ_TIMEOUT)
                finally:
                    self._busy -= 1
                    self._begun.pop(writer, None)
                    self._last = self._clock.uptime()
                    if not self._busy:
                        self._quiet.set()
                self._keep_up()
        except (OSError, EOFError, TimeoutError):
            pass  # the client is gone, or does not speak as clients do
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _take(self, reader: asyncio.StreamReader, length: int) -> bytes:
        if length > MAX_MESSAGE_BYTES:
            raise EOFError(f"a message of {length:,} bytes is announced")
        data = await asyncio.wait_for(reader.readexactly(length), _READ_TIMEOUT)
        try:
            message = read_object(data)
            if _is_newer(message):
                self.stop()
                return STATUS_RESTART
            operation = get_string(message, "operation")
            if operation == STOP_OPERATION:
                self.stop()
                return STATUS_OK + write_json(freeze_object({"pid": os.getpid()}))
            given, environ = _get_object(message, "arguments"), _get_object(message, "environ")
            known = {name: value for name, value in environ.items() if isinstance(value, str)}
            answer = await asyncio.to_thread(self._service.run, operation, given, known)
            # A hook prints its answer without looking into it.
            plain = answer.get("stdout") if message.get("plain") is True else None
            body = plain.encode() if isinstance(plain, str) else write_json(freeze_object(answer))
            reply = STATUS_OK + body
        except SevenfoldError as error:
            reply = _render_failure(type(error).__name__, str(error))
        except Exception as error:  # the process outlives a defect in one operation
            log_failure(os.environ, f"{type(error).__name__}: {error}")
            reply = _render_failure("SevenfoldError", f"{type(error).__name__}: {error}")
        if len(reply) > MAX_MESSAGE_BYTES:
            reply = _render_failure("InputError", f"the answer has {len(reply):,} bytes; ask for less")
        return reply

    def _keep_up(self) -> None:
        if self._upkeep is None or self._upkeep.done():
            self._upkeep = asyncio.get_running_loop().create_task(self._run_upkeep())

    async def _run_upkeep(self) -> None:
        try:
            while not self._stopping.is_set() and await asyncio.to_thread(self._service.finish):
                pass
        except Exception as error:  # what may wait may also fail
            log_failure(os.environ, f"{type(error).__name__}: {error}")


def _is_same_user(writer: asyncio.StreamWriter) -> bool:
    # Where the system does not say who it is, nobody else can enter the folder of the socket.
    return client.find_peer_uid(writer.get_extra_info("socket")) in (os.getuid(), None)


def _is_newer(message: JsonObject) -> bool:
    """Whether a client is newer than this process, by the messages it sends or by its version."""
    protocol, version = message.get("protocol"), message.get("version")
    if isinstance(protocol, int) and protocol > PROTOCOL:
        return True
    return isinstance(version, str) and _numbers(version) > _numbers(__version__)


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.partition("+")[0].split(".")[:4]
    return tuple(int(part) if part.isdecimal() else 0 for part in parts)


def _get_object(message: JsonObject, key: str) -> JsonObject:
    value = message.get(key)
    if not isinstance(value, JsonObject):
        raise InputError(f"{key} is {type(value).__name__}; expected an object")
    return value


def _render_failure(kind: str, message: str) -> bytes:
    return STATUS_ERROR + write_json(freeze_object({"error": kind, "message": message}))


def serve_until_idle(environ: Mapping[str, str], *, idle: timedelta = IDLE) -> bool:
    """Be the resident process; returns False where there is one already."""
    folder = make_run_folder(environ)
    lock = take_resident_lock(folder, _LOCK_WAIT)
    if lock is None:
        return False
    try:
        asyncio.run(_serve(folder, idle, lock))
    except Exception as error:
        log_failure(environ, f"the resident process ended: {type(error).__name__}: {error}")
        raise
    finally:
        _release_lock(lock)
    return True


async def _serve(folder: str, idle: timedelta, lock: int) -> None:
    # Whoever waits for the socket may connect while these are loaded.
    listener = bind_socket(folder)
    from sevenfold.core.clock import SystemClock
    from sevenfold.resident.operations import ResidentOperations

    clock = SystemClock()
    service = ResidentOperations(clock, asks_model=True)
    server = ResidentServer(service, clock, idle=idle, lock=lock)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    if not await server.serve(listener):
        # Waiting for its threads would keep the lock, and with it the next process from starting.
        log_failure(os.environ, "something that was begun did not end; the resident process ends without it")
        _release_lock(lock)
        os._exit(1)


def run_resident() -> NoReturn:
    """The program that a client starts. It keeps nothing of that client: no file, folder or terminal."""
    os.closerange(3, 4096)
    os.chdir("/")
    os.umask(0o077)
    serve_until_idle(os.environ)
    os._exit(0)
