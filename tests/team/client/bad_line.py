"""A line between laptops and a live server that loses, cuts, doubles and delays what goes over it."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from random import Random
from socketserver import BaseRequestHandler, ThreadingTCPServer

FATES = ("well", "lost there", "cut there", "lost back", "cut back", "doubled", "doubled late", "late")
WEIGHTS = (40, 6, 8, 14, 8, 10, 7, 7)
_END = b"\r\n\r\n"
_WAIT_SECONDS = 20


class BadLine:
    """A port to talk to instead of the server's."""

    def __init__(self, port: int, server_port: int, random: Random) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.fates = Counter[str]()
        self.is_quiet = False
        self._server_port, self._random = server_port, random
        self._late: list[bytes] = []
        self._lock = threading.Lock()

    def choose_fate(self) -> str:
        with self._lock:
            fates = ["well"] if self.is_quiet else self._random.choices(FATES, WEIGHTS)
            self.fates.update(fates)
            return fates[0]

    def carry(self, request: bytes, client: socket.socket) -> None:
        fate = self.choose_fate()
        if fate == "lost there":
            return
        if fate == "cut there":
            with self._connected() as server:
                server.sendall(request[:-20])
            return
        if fate in ("late", "doubled late"):
            self._late.append(request)
        if fate == "late":
            return
        answer = self._ask(request)
        if fate == "doubled":
            self._ask(request)
        if fate != "lost back":
            client.sendall(answer[: len(answer) // 2] if fate == "cut back" else answer)

    def deliver(self) -> None:
        """What was late arrives, and nobody waits for the answer any more."""
        while self._late:
            self._ask(self._late.pop(0))

    def _ask(self, request: bytes) -> bytes:
        with self._connected() as server:
            server.sendall(request)
            return b"".join(iter(lambda: server.recv(65_536), b""))

    def _connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._server_port), _WAIT_SECONDS)


@contextmanager
def bad_line(server_port: int, random: Random) -> Generator[BadLine]:
    lines: list[BadLine] = []

    class Call(BaseRequestHandler):
        def handle(self) -> None:
            # A laptop that gave up, or a server that hung up on half a request: that is the point.
            with suppress(OSError):
                request = _read_request(self.request)
                if request:
                    lines[0].carry(request, self.request)

    with ThreadingTCPServer(("127.0.0.1", 0), Call) as relay:
        lines.append(BadLine(relay.server_address[1], server_port, random))
        thread = threading.Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield lines[0]
        finally:
            relay.shutdown()
            thread.join()


def _read_request(client: socket.socket) -> bytes:
    """One request, with word to the server to hang up after its answer; empty where none came whole."""
    client.settimeout(_WAIT_SECONDS)
    data = b""
    while _END not in data:
        some = client.recv(65_536)
        if not some:
            return b""
        data += some
    head, _, body = data.partition(_END)
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    sizes = [int(line.partition(b":")[2]) for line in lines if line.lower().startswith(b"content-length:")]
    while len(body) < sum(sizes):
        some = client.recv(65_536)
        if not some:
            return b""
        body += some
    return b"\r\n".join([*lines, b"connection: close"]) + _END + body
