"""Messages between sessions of one user on one machine, over a Unix socket.

The kernel tells which user runs the process at the other end; other users are refused. A message is a length
and that much JSON. The recipient answers once the message is on disk. A sender without an answer sends it
again under the same id, and it counts once.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Self, TypeAlias

from sevenfold.core.errors import (
    AddressUnknown,
    InputError,
    MailError,
    MessageTooLarge,
    PeerRefused,
    SevenfoldError,
    WireError,
)
from sevenfold.core.events import Emit, PeerDismissed, ignore_event
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import JsonObject, read_object, write_json
from sevenfold.layers.forks.policy import MAX_SUMMARY_CHARS
from sevenfold.store.mailbox import MAIL_ID_PATTERN, MAX_MAIL_BYTES, Mail

ReceiveMail: TypeAlias = Callable[[Mail], Awaitable[None]]
"""Returns when the message is on disk."""

SOCKET_SENDER_PREFIX = "uds:"
"""How a sender over a socket is called, so that none can pass for an agent of the project."""

SOCKET_MAIL_TIMEOUT = timedelta(seconds=10)
"""For a message of a quarter of a megabyte and its answer, on a busy machine."""

MAX_PEERS = 16
"""At once. Each may hold a message in memory."""

_LONGEST_PATH_BYTES = 100
"""The kernel takes 107 on Linux and 103 elsewhere."""

_LENGTH = struct.Struct(">I")
_PEER = struct.Struct("3i")
_KERNEL_LIST = Path("/proc/net/unix")


def choose_socket_folder(home: Path, environ: Mapping[str, str]) -> Path:
    """Where sockets lie: with our files, or where a short path can be had."""
    own = home / "run"
    if len(os.fsencode(own)) + 40 <= _LONGEST_PATH_BYTES:
        return own
    given = environ.get("XDG_RUNTIME_DIR", "")
    return Path(given) / "sevenfold" if given else Path(f"/tmp/sevenfold-{os.getuid()}")


class MailSocket:
    """The socket that a session listens on. `async with await MailSocket.listen(…)`, or `close` it."""

    def __init__(self, path: Path, server: asyncio.Server, inode: int) -> None:
        self.path, self._server, self._inode = path, server, inode

    @classmethod
    async def listen(cls, path: Path, take: ReceiveMail, *, emit: Emit = ignore_event) -> Self:
        """Listen at `path`, in a folder that only this user can enter. What a dead session left goes."""
        if len(os.fsencode(path)) > _LONGEST_PATH_BYTES:
            raise InputError(f"{path} is too long for a socket; name a folder with a shorter path")
        _make_private(path.parent)
        listener = _bind(path)
        gate = asyncio.Semaphore(MAX_PEERS)

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async with gate:
                await _answer(reader, writer, take, emit, path)

        server = await asyncio.start_unix_server(answer, sock=listener, start_serving=False)
        opened = cls(path, server, os.stat(path).st_ino)
        try:
            await server.start_serving()
        except BaseException:
            # Whoever was cancelled here has nothing to close.
            await opened.close()
            raise
        return opened

    async def close(self) -> None:
        """Stop listening and remove the socket, if it is still this one."""
        self._server.close()
        await self._server.wait_closed()
        with suppress(FileNotFoundError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def send_over_socket(path: Path, mail: Mail, *, wait: timedelta = SOCKET_MAIL_TIMEOUT) -> None:
    """Deliver a message to the session that listens at `path`; an error says why it was not."""
    wire = write_json(write_fields(mail))
    if len(wire) > MAX_MAIL_BYTES:
        raise MessageTooLarge(
            f"a message of {len(wire):,} bytes is over the limit of {MAX_MAIL_BYTES:,}; "
            "put the content in a file and send its path"
        )
    _refuse_foreign(path)
    try:
        async with asyncio.timeout(wait.total_seconds()):
            reply = await _exchange(path, wire)
    except TimeoutError as error:
        raise MailError(
            f"{path} gave no answer for {wait.total_seconds():g} s; it may have the message"
        ) from error
    except (OSError, EOFError) as error:
        raise AddressUnknown(f"nobody listens at {path} ({error}); its session may have ended") from error
    if reply.get("ok") is not True:
        raise MailError(f"{path} did not take the message: {reply.get('reason', 'it did not say why')}")


async def _exchange(path: Path, wire: bytes) -> JsonObject:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        _check_peer(writer)
        writer.write(_LENGTH.pack(len(wire)) + wire)
        await writer.drain()
        return read_object(await _read_frame(reader))
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, take: ReceiveMail, emit: Emit, path: Path
) -> None:
    try:
        async with asyncio.timeout(SOCKET_MAIL_TIMEOUT.total_seconds()):
            _check_peer(writer)
            await take(_read_mail(read_object(await _read_frame(reader))))
            result = JsonObject({"ok": True})
    except (SevenfoldError, TimeoutError, OSError, EOFError) as error:
        reason = str(error) or type(error).__name__
        emit(PeerDismissed(str(path), reason))
        result = JsonObject({"ok": False, "reason": reason})
    answer = write_json(result)
    # Who asked may be gone by now, and has no claim to an answer then.
    with suppress(OSError):
        writer.write(_LENGTH.pack(len(answer)) + answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > MAX_MAIL_BYTES:
        raise MessageTooLarge(
            f"a frame of {length:,} bytes is announced; at most {MAX_MAIL_BYTES:,} are read"
        )
    return await reader.readexactly(length)


def _check_peer(writer: asyncio.StreamWriter) -> None:
    """`PeerRefused` unless the process at the other end runs as the same user."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        raise PeerRefused(
            "this system does not say who is at the other end of a socket; use a mailbox instead"
        )
    connected = writer.get_extra_info("socket")
    pid, uid, _ = _PEER.unpack(connected.getsockopt(socket.SOL_SOCKET, option, _PEER.size))
    if uid != os.getuid():
        raise PeerRefused(
            f"process {pid} runs as user {uid}; only processes of user {os.getuid()} may talk here"
        )


def _refuse_foreign(path: Path) -> None:
    """Before connecting: another user's socket could keep what it is told."""
    try:
        found = path.lstat()
    except OSError as error:
        raise AddressUnknown(f"{path} is not there ({error.strerror}); its session may have ended") from error
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.getuid():
        raise PeerRefused(f"{path} is no socket of user {os.getuid()}; nothing was sent")


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PeerRefused(f"{folder} is not a folder of user {os.getuid()}; remove it, or name another")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)


def _bind(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        try:
            listener.bind(str(path))
        except OSError:
            if not _is_stale(path):
                raise
            path.unlink()
            listener.bind(str(path))
        path.chmod(0o600)
    except OSError as error:
        listener.close()
        raise MailError(f"cannot listen at {path}: {error.strerror or error}; another session may") from error
    except BaseException:
        listener.close()
        raise
    return listener


def find_stale_sockets(folder: Path) -> tuple[Path, ...]:
    """Sockets of sessions that have died, by the kernel's list; none where it gives none. Nobody is called:
    a session that lives would take that for a peer."""
    try:
        bound = {line.split(maxsplit=7)[-1] for line in _KERNEL_LIST.read_text().splitlines()}
        found = [path for path in sorted(folder.iterdir()) if stat.S_ISSOCK(path.lstat().st_mode)]
    except OSError:
        return ()
    return tuple(path for path in found if str(path) not in bound)


def _is_stale(path: Path) -> bool:
    """Whether a socket is there that nobody listens at any more."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.connect(str(path))
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _read_mail(wire: JsonObject) -> Mail:
    mail = read_fields(Mail, wire)
    if not MAIL_ID_PATTERN.fullmatch(mail.id) or "id" not in wire:
        raise WireError("a message needs an id of letters, digits, '_' and '-'")
    if not mail.sender.startswith(SOCKET_SENDER_PREFIX):
        raise WireError(
            f"the sender over a socket is called {SOCKET_SENDER_PREFIX}<path>, not {mail.sender!r}"
        )
    return replace(mail, summary=mail.summary[:MAX_SUMMARY_CHARS])
