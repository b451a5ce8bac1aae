"""HTTP that hangs up on whoever connects and then does not say what they want: uvicorn itself waits for ever.

With h11 and not httptools, which is faster and takes headers of any length. Uvicorn is imported when the
protocol is made, so that the package stays light.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

from sevenfold.server.refusals import Refusal

HEAD_TIME = timedelta(seconds=20)
"""For the head of a request, from its first byte, or from the connection if there is none yet."""


def make_protocol() -> type[asyncio.Protocol]:
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class PatientProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._expect_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle and not self.cycle.response_complete:
                self._stop_expecting()
            elif self._deadline is None:
                self._expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_expecting()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            """What is no HTTP, or has too long a head, is refused in the shape of everything else."""
            self.transport.write(_spell_refusal(msg))
            self.transport.close()

        def _expect_head(self) -> None:
            self._deadline = self.loop.call_later(HEAD_TIME.total_seconds(), self.transport.close)

        def _stop_expecting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return PatientProtocol


def _spell_refusal(message: str) -> bytes:
    refusal = Refusal(400, "bad request", message, "send HTTP/1.1, with a head of 64 KB at most")
    body = json.dumps(refusal.body())
    return (
        f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        f"connection: close\r\n\r\n{body}"
    ).encode()
