"""HTTP that hangs up on whoever does not say what they want, or does not take it: uvicorn waits for ever.

With h11 and not httptools, which is faster and takes headers of any length. Uvicorn is imported when the
protocol is made, so that the package stays light.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta

from sevenfold.team.server.api_errors import ApiError

HEAD_TIME = timedelta(seconds=20)
"""For the head of a request, from its first byte, or from the connection if there is none yet."""

TAKE_TIME = timedelta(seconds=120)
"""For an answer: 85 KB a second for the largest. Until it is taken, all of it is in memory."""


class _Deadline:
    """By which something has to have happened; it begins once, until it is stopped."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop, span: timedelta, act: Callable[[], None]) -> None:
        if self._timer is None:
            self._timer = loop.call_later(span.total_seconds(), act)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def make_protocol() -> type[asyncio.Protocol]:
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class PatientProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._head, self._answer = _Deadline(), _Deadline()
            self._head.start(self.loop, HEAD_TIME, transport.close)

        def handle_events(self) -> None:
            super().handle_events()
            is_answering = self.cycle and not self.cycle.response_complete
            if is_answering or self.timeout_keep_alive_task is not None:  # a request, or none begun
                self._head.stop()
            else:
                self._head.start(self.loop, HEAD_TIME, self.transport.close)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._answer.start(self.loop, TAKE_TIME, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._answer.stop()

        def connection_lost(self, exc: Exception | None) -> None:
            self._head.stop()
            self._answer.stop()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            """What is no HTTP, or has too long a head, is refused in the shape of everything else."""
            self.transport.write(_spell_refusal(msg))
            self.transport.close()

    return PatientProtocol


def _spell_refusal(message: str) -> bytes:
    refusal = ApiError(
        status=400, kind="bad request", message=message, advice="send HTTP/1.1, with a head of 64 KB at most"
    )
    body = json.dumps(refusal.body())
    return (
        f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        f"connection: close\r\n\r\n{body}"
    ).encode()
