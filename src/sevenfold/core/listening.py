"""A socket that a server of ours listens on, with an error that says what to try."""

from __future__ import annotations

import socket

from sevenfold.core.errors import InputError


def listen(address: str, port: int, *, backlog: int = 2048) -> socket.socket:
    """Bound and listening, so that a client may connect before anybody accepts. Port 0: any free one."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's delay, 40 ms an answer, off only where it is.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(backlog)
        listener.setblocking(False)
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(f"cannot listen on {address} port {port}: {error}; try --port 0") from error
    return listener


def listener_url(address: str, listener: socket.socket) -> str:
    """Where it is reached over HTTP."""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{listener.getsockname()[1]}"
